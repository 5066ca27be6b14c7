"""Training any model on any sequences."""
