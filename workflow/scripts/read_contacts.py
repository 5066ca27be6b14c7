"""Reads which pairs of sites are known to be in contact."""

import sys

from manybody.io.store import begin

job = begin(snakemake)

from manybody.measure.known_contacts import make

said = make(
    snakemake.input.truth,
    snakemake.input.train,
    snakemake.output.known,
    snakemake.params.chain,
)
for place in (sys.stdout, sys.__stdout__):  # the log, and the terminal
    print(snakemake.input.truth, "; ".join(said), sep=": ", file=place, flush=True)

job.keep()
