"""Claims of the figures of potts."""
