"""Claims of the figures of multi-index."""
