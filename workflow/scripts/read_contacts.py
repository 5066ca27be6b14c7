"""Reads which pairs of sites are known to be in contact."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.logs import tell
from manybody.measure.known_contacts import make

said = make(
    snakemake.input.truth,
    snakemake.input.train,
    snakemake.output.known,
    snakemake.params.chain,
)
tell(snakemake.input.truth, said)

job.keep()
