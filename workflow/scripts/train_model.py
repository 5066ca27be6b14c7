"""Trains one model on one source with one seed."""

from pathlib import Path

from manybody.io.store import begin

# The processes that `launch` starts import this file once more.
if __name__ == "__main__":
    job = begin(snakemake)
    from manybody.io.devices import launch
    from manybody.training.loop import train_files

    wildcards, params = snakemake.wildcards, snakemake.params
    launch(
        params.processes,
        snakemake.log[0],
        train_files,
        description=params.model,
        recipe=params.recipe,
        # Weights are an empty list where the recipe asks for none.
        paths={name: path for name, path in snakemake.input.items() if path},
        out=Path(snakemake.output.manifest).parent,
        seed=int(wildcards.seed),
        init_seed=params.init_seed,
        stream=params.stream,
        about={"source": wildcards.source, "model": wildcards.model},
        device=params.device,
        code=params.code,
    )
    job.keep()
