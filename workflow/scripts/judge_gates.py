"""Fails, and names them, where gates of the figures are contradicted."""

from manybody.claims import scorecard
from manybody.io.logs import log_to

log_to(snakemake.log[0])

scorecard.judge(snakemake.input.claims, snakemake.output.gates)
