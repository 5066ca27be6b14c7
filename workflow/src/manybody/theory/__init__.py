"""Calculations without data on disk: exact answers that figures show beside measured numbers.

One module a kind of the config's `theory` block, each with `compute(entry)`, which
returns a table (`tables.write_theory`) and a JSON document on what was calculated.
"""
