"""Scores all pairs of sites by the couplings of one model."""

from manybody.evaluation.contacts import score_run, write_scores
from manybody.runtime.logs import log_to

log_to(snakemake.log[0])

scores, about = score_run(snakemake.input.model, snakemake.input.train)
write_scores(snakemake.output.contacts, scores, about)
