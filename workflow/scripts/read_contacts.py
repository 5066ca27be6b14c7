"""Reads which pairs of sites are known to be in contact."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.measure.known_contacts import make

make(
    snakemake.input.truth,
    snakemake.input.train,
    snakemake.output.known,
    snakemake.params.chain,
)

job.keep()
