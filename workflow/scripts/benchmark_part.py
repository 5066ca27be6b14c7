"""Measures one part of the package against its baseline."""

import csv
import sys
from importlib import import_module

from manybody.io.atomic import atomic
from manybody.io.logs import log_to

log_to(snakemake.log[0])

sys.path += snakemake.input.get("peers", [])
part = snakemake.wildcards.part.replace("-", "_")
rows = import_module(f"benchmarks.{part}").measure(*snakemake.input.get("told", []))
with atomic(snakemake.output.table) as temporary, temporary.open("w", newline="") as opened:
    writer = csv.DictWriter(opened, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
