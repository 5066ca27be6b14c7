"""Clones of trained models: chains under an energy, and sequences drawn exactly."""
