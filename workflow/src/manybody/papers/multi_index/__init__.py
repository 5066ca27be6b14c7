"""Figures of the paper on sequence multi-index models, a module each."""
