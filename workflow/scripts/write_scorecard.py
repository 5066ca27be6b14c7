"""Gathers the claims of all figures."""

from manybody.io.logs import log_to
from manybody.report import scorecard

log_to(snakemake.log[0])

scorecard.write(snakemake.input.claims, snakemake.output.scorecard)
