"""Figures of models that were trained elsewhere, a module each."""
