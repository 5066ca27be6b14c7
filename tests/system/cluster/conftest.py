"""What the tests on a cluster share: a SLURM of one node, and copies of the repository."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import repository
import yaml

sys.path.insert(0, str(Path(__file__).parent))

from slurm import HOW, Slurm, missing

ROOT = Path(__file__).resolve().parents[3]
LOCAL = {}  # artifacts of local runs, by their targets
PATIENCE = 30 * 60  # seconds that a call may take on a busy machine
# Trainings of seconds made longer: to be met in the middle of their work, and to outlast SLURM's
# shortest time limit, a minute, on a fast machine.
STEPS = {"long": 6000, "longer": 40000}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A running cluster; skips where SLURM is not installed."""
    if lacking := missing():
        pytest.skip(f"no SLURM here, so nothing is tried on one: no {lacking[0]} ({HOW})")
    # What a shell runs in the background ignores Ctrl-C, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Slurm(tmp_path_factory.mktemp("slurm")) as up:
        yield up


@pytest.fixture
def checkout(tmp_path, cluster):
    """A copy of the repository whose jobs go to `cluster`; none of them outlives the test."""
    copy = Checkout(tmp_path / "checkout", cluster)
    yield copy
    copy.close()


class Checkout:
    """A copy of the repository's own files; its config, of one `scale`, asks for GPUs."""

    scale = "tiny"

    def __init__(self, folder: Path, cluster: Slurm):
        self.folder, self.cluster, self.running = repository.copy(folder), cluster, []
        # Loops that a copy before compiled: on a busy machine that takes longer than the rest.
        self.compiled = cluster.folder / "compiled"
        if self.compiled.exists():
            shutil.copytree(self.compiled, folder / "workflow" / "src", dirs_exist_ok=True)
        tiny = yaml.safe_load((folder / "config" / "tiny.yaml").read_text())["models"]["tiny"]
        overlay = {
            "compute": {"device": "auto", "gpus": 1},
            "models": {
                name: {**tiny, "training": {**tiny["training"], "steps": steps}}
                for name, steps in STEPS.items()
            },
        }
        (folder / "mine.yaml").write_text(yaml.safe_dump(overlay))

    @property
    def results(self) -> Path:
        return self.folder / "results" / self.scale

    def start(self, *arguments: str, cluster: bool = True, configs=()) -> subprocess.Popen:
        """Starts snakemake, on the cluster through the profile or else on this machine."""
        where = ["--cores", "2"]
        if cluster:
            # These jobs take seconds, so look after seconds.
            where = ["--workflow-profile", "profiles/slurm"]
            where += ["--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10"]
            # There is no accounting here, which the plugin does not see.
            where += ["--slurm-status-command", "squeue"]
        # To a file: a pipe would be kept open by jobs that outlive snakemake.
        self.said = self.folder / f"snakemake-{len(self.running)}.log"
        with self.said.open("w") as out:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "snakemake", *where),
                    *("--configfile", f"config/{self.scale}.yaml", "mine.yaml", *configs),
                    *arguments,
                ],
                cwd=self.folder,
                env=self.cluster.env if cluster else os.environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self.running.append(process)
        return process

    def snakemake(self, *arguments: str, check=True, timeout=PATIENCE, **options) -> int:
        """Runs snakemake to its end; `output` is what it said."""
        code = self.start(*arguments, **options).wait(timeout)
        if check:
            assert code == 0, self.output[-8000:]
        return code

    @property
    def output(self) -> str:
        return self.said.read_text()

    def artifacts(self) -> dict[str, bytes]:
        """Every file that the design promises bit for bit."""
        outside = {"logs", "usage", "resume", "timing.jsonl", ".lease"}
        return {
            str(path.relative_to(self.results)): path.read_bytes()
            for path in sorted(self.results.rglob("*"))
            if path.is_file() and not outside & set(path.relative_to(self.results).parts)
        }

    def sampled(self) -> None:
        """Puts the source there that trainings read, made by this machine once for all tests."""
        kept = self.cluster.folder / "spins"
        folder = self.results / "sequences" / "spins"
        if not kept.exists():
            self.snakemake("--", "results/tiny/sequences/spins/train.parquet", cluster=False)
            shutil.copytree(folder, kept)
        shutil.copytree(kept, folder, dirs_exist_ok=True)

    def undisturbed(self, *targets: str, timeout=PATIENCE) -> dict[str, bytes]:
        """The artifacts of `targets` as this machine makes them alone; made once for all tests."""
        if targets not in LOCAL:
            LOCAL[targets] = self._local(targets, timeout)
        return LOCAL[targets]

    def _local(self, targets: tuple[str, ...], timeout: float) -> dict[str, bytes]:
        aside = self.results.with_name("from-cluster")
        if self.results.exists():
            self.results.rename(aside)
        self.snakemake("--", *targets, cluster=False, timeout=timeout)
        expected = self.artifacts()
        shutil.rmtree(self.results)
        if aside.exists():
            aside.rename(self.results)
        return expected

    def holders(self) -> str:
        """Whom `make resume` names before it unlocks; nobody if it would."""
        asked = subprocess.run(
            [sys.executable, "-m", "manybody.files.running", "results"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": "workflow/src"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert asked.returncode == bool(asked.stderr), asked.stderr
        return asked.stderr

    def all_jobs(self, *states: str) -> list[dict[str, str]]:
        """SLURM's jobs that were submitted from here."""
        return [job for job in self.cluster.jobs(*states) if job["WorkDir"] == str(self.folder)]

    def jobs(self, rule: str, *states: str) -> list[dict[str, str]]:
        """Those of one rule."""
        found = self.all_jobs(*states)
        return [job for job in found if job["Comment"].split("_wildcards_")[0] == f"rule_{rule}"]

    def close(self) -> None:
        """Ends what this copy has started here and on the cluster."""
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        mine = [job["JobId"] for job in self.all_jobs("PENDING", "RUNNING", "COMPLETING")]
        if mine:
            self.cluster.call("scancel", *mine)
            time.sleep(1)
        # Without cgroups SLURM loses sight of processes whose parents it killed.
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.cwd() == str(self.folder):
                    process.kill()
        source = self.folder / "workflow" / "src"
        for cache in source.rglob("*.nb[ci]"):
            kept = self.compiled / cache.relative_to(source)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(cache, kept)
