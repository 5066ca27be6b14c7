"""Measurements of speed: one module a part, each with its baseline."""
