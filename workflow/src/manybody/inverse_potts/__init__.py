"""Couplings inferred from sequences: fits by pseudo-likelihood, and learning curves."""
