"""Makes Snakemake notice what is gone though nothing that runs asks for it.

Left alone it would call all up to date once an intermediate file is deleted, or once a job that
makes one anew has failed, as the figure that was drawn of it stands. Nor does it look at the files
that a manifest lists.
"""

from pathlib import Path

from snakemake.logging import logger

from manybody.io import manifest, store


class Gone(set):
    """The outputs whose jobs run in any case: those asked for, and those that are not whole."""

    def __init__(self, forced):
        super().__init__(forced)
        self.said = set()

    def isdisjoint(self, outputs) -> bool:
        lost = [path for output in outputs for path in missing(Path(output))]
        for path in set(lost) - self.said:
            if any(Path(output).exists() for output in outputs):
                logger.info(f"{path} is gone or damaged: it is made again, and what rests on it")
        self.said.update(lost)
        return not lost and super().isdisjoint(outputs)


def missing(output: Path) -> list[Path]:
    """What is not there of a job's output, or of what it lists if it is a manifest."""
    if not output.exists():
        return [output]
    return manifest.missing(output) if output.name == store.MANIFEST else []


def watch(workflow) -> None:
    """To be called before Snakemake builds its graph of jobs."""
    build = workflow._prepare_dag

    def prepare(*arguments, **named):
        build(*arguments, **named)
        workflow.dag.forcefiles = Gone(workflow.dag.forcefiles)

    workflow._prepare_dag = prepare
