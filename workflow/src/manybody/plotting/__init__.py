"""Figures: pure functions from small tables to a figure, and the numbers drawn."""
