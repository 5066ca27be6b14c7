"""Writes what a config's texts are made of, what to set for them, and what the run will take."""

from manybody.io.store import begin

job = begin(snakemake)

import yaml

from manybody.data import SPLITS
from manybody.io.atomic import write_text
from manybody.pipeline import advice
from manybody.pipeline.price import by_stage

params, given = snakemake.params, snakemake.input
pages, every = [], []
for number, source in enumerate(params.sources):
    part = slice(3 * number, 3 * number + 3)
    documents = dict(zip(SPLITS, given.documents[part], strict=True))
    sequences = dict(zip(SPLITS, given.sequences[part], strict=True))
    counts = (files[number] for files in (given.overlap, given.ngrams, given.tokenizer))
    text = advice.read(documents, sequences, *counts)
    made_from = (params.runs[source], params.clones[source])
    found = advice.suggestions(text, source, params.config, *made_from)
    # The command that is printed below the page is that with the suggestions.
    sizes = {"vocabulary": text.vocabulary, "length": text.length}
    sizes |= {a.path[-1]: a.suggested for a in found if a.path[0] == "sources"}
    config = advice.overlay(found, params.config)
    seconds = by_stage(config, {source: sizes}, *made_from)
    every += found
    pages.append(advice.page(source, text, found, seconds))
write_text(snakemake.output.advice, "\n".join(pages))
changes = yaml.safe_dump(advice.overlay(every, params.given), sort_keys=False)
write_text(snakemake.output.advised, f"# What `advise` suggests, by advice.md\n{changes}")

job.keep()
