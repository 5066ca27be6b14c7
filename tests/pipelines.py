"""The pipeline as a person calls it: `snakemake` in a folder, with a config and an overlay."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
from repository import ROOT

from manybody.io.atomic import sha256

PATIENCE = 4 * 3600.0  # seconds after which a call hangs, on however busy a machine
# Logs, resources and times, which the page shows, are outside the promise of equal bytes; saved
# states go.
FREE = {"logs", "usage", "store", "resume", "timing.jsonl", "index.html"}
UNFINISHED = ("*.tmp", ".lease*", "resume", "*.resume", "*.part", ".*.parts", ".deduplicating")


class Pipeline:
    """`snakemake` in `folder` with config/`scale`.yaml and the YAML text `overlay` laid over it.

    The Snakefile is that of the checkout `root`; `targets` are files of the results.
    """

    python = sys.executable  # which has the Snakemake that is called

    def __init__(self, folder, overlay="", targets=(), scale="tiny", root=ROOT, **variables):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.root, self.scale, self.overlay = folder, root, scale, overlay
        self.targets = [f"results/{scale}/{target}" for target in targets]
        self.environment = {**os.environ, "COLUMNS": "200", **variables}
        self.printed, self.output = folder / "output", ""

    @property
    def results(self) -> Path:
        return self.folder / "results" / self.scale

    def where(self, cores) -> list[str]:
        """The arguments that say what runs the jobs."""
        return [
            "--workflow-profile",
            str(self.root / "profiles" / "default"),
            "--cores",
            str(cores),
        ]

    def start(self, *arguments, overlay="", cores=2, targets=None) -> subprocess.Popen:
        """A running call, whose output goes to the file `printed`; `overlay` is for it alone."""
        configs = [str(self.root / "config" / f"{self.scale}.yaml")]
        for name, text in (("mine.yaml", self.overlay), ("more.yaml", overlay)):
            (self.folder / name).write_text(text or "{}")
            configs.append(name)
        command = [
            self.python, "-m", "snakemake", "--snakefile", str(self.root / "Snakefile"),
            *self.where(cores), "--configfile", *configs, *arguments,
        ]  # fmt: skip
        # To a file: a pipe would be kept open by jobs that outlive snakemake.
        with self.printed.open("w") as output:
            return subprocess.Popen(
                [*command, "--", *(self.targets if targets is None else targets)],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def finish(self, call: subprocess.Popen) -> int:
        code = call.wait(PATIENCE)
        self.output = self.printed.read_text(errors="replace")
        return code

    def run(self, *arguments, check=True, **settings) -> int:
        """Exit code of a whole call; what it printed is in `output`."""
        code = self.finish(self.start(*arguments, **settings))
        if check:
            assert code == 0, self.output[-8000:]
        return code

    def counted(self, *arguments, **settings) -> dict[str, int]:
        """How many jobs of each rule a dry run would start, but for the target rules."""
        self.run("-n", *arguments, **settings)
        table = self.output.rpartition("Job stats:")[2]
        counts = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}
        return {rule: n for rule, n in counts.items() if rule not in ("all", "total")}

    def artifacts(self) -> dict[str, str]:
        """sha256 of every file that is promised, by its name in the results."""
        found = {}
        for path in sorted(self.results.rglob("*")):
            name = path.relative_to(self.results)
            free = any(part in FREE or part.endswith(".resume") for part in name.parts)
            hidden = any(part.startswith(".") for part in name.parts)
            if path.is_file() and not free and not hidden:
                found[str(name)] = sha256(path)
        return found

    def leftovers(self) -> list[str]:
        """Temporary files, leases and saved states: nothing of them outlives a finished run."""
        return [str(path) for pattern in UNFINISHED for path in self.results.rglob(pattern)]

    def resume(self) -> subprocess.CompletedProcess:
        """What `make resume` asks before it unlocks."""
        config = ["--configfile", str(self.root / "config" / f"{self.scale}.yaml")]
        return subprocess.run(
            [sys.executable, "-m", "manybody.io.running", "results", *config],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.root / "workflow" / "src")},
            capture_output=True,
            text=True,
        )


def planned(folder, *overlays):
    """The jobs of a fresh run, and of each the jobs that it waits for; overlays: of config/."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import (
        ConfigSettings,
        DAGSettings,
        OutputSettings,
        Quietness,
        ResourceSettings,
    )

    files = [ROOT / "config" / name for name in overlays]
    given = ConfigSettings(config={"results": str(folder / "results")}, configfiles=files)
    with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=2),
            config_settings=given,
            snakefile=ROOT / "Snakefile",
            workdir=folder,
        )
        workflow.dag(DAGSettings()).execute_workflow(executor="dryrun")
        dag = workflow._workflow.dag
        return {job: set(dag.dependencies[job]) for job in dag.jobs}


def end(folder: Path) -> None:
    """Kills what still works in `folder`, of any parent: no test leaves a process behind."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == str(folder):
                process.kill()
