"""Figures of arXiv 2304.07235 (`potts`), a module each."""
