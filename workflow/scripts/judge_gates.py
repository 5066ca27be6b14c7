"""Fails, and names them, where gates of the figures are contradicted."""

from manybody import scorecard
from manybody.logs import log_to

log_to(snakemake.log[0])

scorecard.judge(snakemake.input.checks, snakemake.output.gates)
