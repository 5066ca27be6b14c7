"""Measures which orders of interaction the checkpoints of one run use."""

import shutil
from pathlib import Path

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data.tokenizer import decoder
from manybody.io.devices import pick
from manybody.io.tables import SPECTRA
from manybody.measure.spectra import measure

entry, inputs, output = snakemake.params.entry, snakemake.input, Path(snakemake.output.spectra)
parts = output.with_name(f".{output.stem}.parts")
found, about = measure(
    inputs.model,
    inputs.test,
    entry,
    parts,
    job.version.name,
    device=pick(snakemake.params.device),
    label=f"spectrum {snakemake.wildcards.spectrum} seed {int(snakemake.wildcards.seed)}",
    words=decoder(inputs.words) if inputs.words else None,
)
about |= {"spectrum": snakemake.wildcards.spectrum, "entry": entry}
SPECTRA.write(output, found, about)
shutil.rmtree(parts)

job.keep()
