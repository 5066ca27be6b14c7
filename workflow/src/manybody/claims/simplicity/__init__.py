"""Claims of the figures of simplicity."""
