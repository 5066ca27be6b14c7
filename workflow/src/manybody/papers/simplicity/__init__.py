"""Figures of arXiv 2410.19637 (`simplicity`), a module each."""
