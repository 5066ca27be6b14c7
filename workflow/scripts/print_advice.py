"""Prints the advice on the terminal, not to a log."""

from pathlib import Path

print(Path(snakemake.input.advice).read_text(encoding="utf-8"), end="")
