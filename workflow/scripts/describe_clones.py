"""Writes the cards of all clones of a source."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.measure import cards, clones

given = snakemake.input
described = clones.describe(
    list(zip(given.clones, given.runs, strict=True)),
    given.train,
    given.test,
    snakemake.params.device,
)
cards.write(snakemake.output.cards, described)

job.keep()
