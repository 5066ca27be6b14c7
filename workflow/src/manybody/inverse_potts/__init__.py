"""Couplings inferred from sequences: gauges, errors, scores."""
