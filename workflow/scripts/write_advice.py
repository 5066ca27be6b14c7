"""Writes what a config's texts are made of, what to set for them, and what the run will take."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.pipeline import advice

params, given = snakemake.params, snakemake.input
splits = ("train", "validation", "test")
pages = []
for number, source in enumerate(params.sources):
    part = slice(3 * number, 3 * number + 3)
    documents = dict(zip(splits, given.documents[part], strict=True))
    sequences = dict(zip(splits, given.sequences[part], strict=True))
    text = advice.read(documents, sequences, given.overlap[number], given.ngrams[number])
    runs, clones = params.runs[source], params.clones[source]
    pages.append(advice.page(source, text, params.config, runs, clones, params.figures))
advice.write(snakemake.output.advice, pages)

job.keep()
