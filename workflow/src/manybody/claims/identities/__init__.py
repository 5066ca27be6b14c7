"""Exact statements about models, samplers and losses, and how far off they are."""
