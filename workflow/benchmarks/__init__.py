"""What the package claims of its speed: one module a part, each with its baseline."""
