"""Scores all pairs of sites by the couplings of one model."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.measure.contacts import CONTACTS, score_run, write_list, write_scores

scores, about = score_run(snakemake.input.model, snakemake.input.train)
write_scores(snakemake.output.contacts, scores, about)
frame, _ = CONTACTS.read(snakemake.output.contacts)
write_list(snakemake.output.listed, frame, about["sites"])

job.keep()
