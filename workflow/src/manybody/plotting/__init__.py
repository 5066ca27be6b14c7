"""Figures: pure functions from small tables to a figure, the numbers drawn and the checks."""
