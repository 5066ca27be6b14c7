"""Scores all pairs of sites by the couplings of one model."""

from manybody.files.store import begin

job = begin(snakemake)

from manybody.evaluation.contacts import score_run, write_scores

scores, about = score_run(snakemake.input.model, snakemake.input.train)
write_scores(snakemake.output.contacts, scores, about)

job.keep()
