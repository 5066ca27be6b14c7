"""Gathers the claims of all figures."""

from manybody.claims import scorecard
from manybody.io.logs import log_to

log_to(snakemake.log[0])

scorecard.write(snakemake.input.claims, snakemake.output.scorecard)
