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
    """Missing files of a job's output, or of those that it lists if it is a manifest."""
    if not output.exists():
        return [output]
    return manifest.missing(output) if output.name == store.MANIFEST else []


def watch(workflow) -> None:
    """To be called before Snakemake builds its graph of jobs."""
    build = workflow._prepare_dag

    def prepare(*arguments, **named):
        build(*arguments, **named)
        dag = workflow.dag
        dag.forcefiles, update = Gone(dag.forcefiles), dag.update_needrun

        async def update_needrun(*arguments, **named):
            await update(*arguments, **named)
            for job in dag.needrun_jobs():
                say_what_is_missing(job, dag.reason(job))

        dag.update_needrun = update_needrun

    workflow._prepare_dag = prepare


def say_what_is_missing(job, reason) -> None:
    """Makes missing outputs the reason of a job, where Snakemake would call it forced."""
    if reason.forced and (lost := [output for output in job.output if not Path(output).exists()]):
        reason.forced = False
        reason.missing_output.update(lost)
