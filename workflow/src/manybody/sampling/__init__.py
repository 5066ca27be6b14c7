"""Metropolis-Hastings clones of masked language models, and how to tell when they have settled."""
