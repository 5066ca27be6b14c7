"""What the tests on a cluster share: a SLURM of one node, and copies of the repository."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import repository
import yaml
from pipelines import Pipeline, end

sys.path.insert(0, str(Path(__file__).parent))

from slurm import HOW, Slurm, missing

LOCAL = {}  # artifacts of local runs, by their targets
# Trainings of seconds made longer: to be met in the middle of their work, and to outlast SLURM's
# shortest time limit, a minute, on a fast machine.
STEPS = {"long": 12000, "longer": 40000}


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


class Checkout(Pipeline):
    """A copy of the repository's own files; its config, of one `scale`, asks for GPUs."""

    def __init__(self, folder: Path, cluster: Slurm):
        repository.copy(folder)
        # Loops that a copy before compiled: on a busy machine that takes longer than the rest.
        self.cluster, self.compiled = cluster, cluster.folder / "compiled"
        if self.compiled.exists():
            shutil.copytree(self.compiled, folder / "workflow" / "src", dirs_exist_ok=True)
        tiny = yaml.safe_load((folder / "config" / "tiny.yaml").read_text())["models"]["tiny"]
        longer = {}
        for name, steps in STEPS.items():
            # States are saved at checkpoints, but for long times without one.
            kept = {"logarithmic": 3, "listed": [*range(500, steps, 500)]}
            training = {**tiny["training"], "steps": steps, "checkpoints": kept}
            longer[name] = {**tiny, "training": training}
        overlay = {"compute": {"device": "auto", "gpus": 1}, "models": longer}
        super().__init__(folder, yaml.safe_dump(overlay), root=folder)
        self.environment = cluster.env

    def where(self, cores) -> list[str]:
        """On this machine for a number of cores, for none on the cluster through the profile."""
        if cores:
            return super().where(cores)
        # These jobs take seconds, so look after seconds; there is no accounting here, which the
        # plugin does not see.
        found = ["--workflow-profile", "profiles/slurm", "--slurm-status-command", "squeue"]
        return [*found, "--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10"]

    def start(self, *arguments, cores=None, **settings) -> subprocess.Popen:
        return super().start(*arguments, cores=cores, **settings)

    def sampled(self) -> None:
        """Puts the source there that trainings read, made by this machine once for all tests."""
        kept = self.cluster.folder / "spins"
        folder = self.results / "sequences" / "spins"
        if not kept.exists():
            self.run(targets=["results/tiny/sequences/spins/train.parquet"], cores=2)
            shutil.copytree(folder, kept)
        shutil.copytree(kept, folder, dirs_exist_ok=True)

    def undisturbed(self, *targets: str) -> dict[str, str]:
        """The artifacts of `targets` as this machine makes them alone; made once for all tests."""
        if targets not in LOCAL:
            alone = Pipeline(self.folder / "alone", self.overlay, scale=self.scale, root=self.root)
            # The config names files of the tests by paths from the folder that it runs in.
            (alone.folder / "tests").symlink_to(self.folder / "tests")
            alone.run(targets=targets)
            LOCAL[targets] = alone.artifacts()
        return LOCAL[targets]

    def all_jobs(self, *states: str) -> list[dict[str, str]]:
        """SLURM's jobs that were submitted from here."""
        return [job for job in self.cluster.jobs(*states) if job["WorkDir"] == str(self.folder)]

    def jobs(self, rule: str, *states: str) -> list[dict[str, str]]:
        """Those of one rule."""
        found = self.all_jobs(*states)
        return [job for job in found if job["Comment"].split("_wildcards_")[0] == f"rule_{rule}"]

    def close(self) -> None:
        """Ends what this copy has started here and on the cluster."""
        end(self.folder)
        mine = [job["JobId"] for job in self.all_jobs("PENDING", "RUNNING", "COMPLETING")]
        if mine:
            self.cluster.call("scancel", *mine)
            time.sleep(1)
        # Without cgroups SLURM loses sight of processes whose parents it killed.
        end(self.folder)
        source = self.folder / "workflow" / "src"
        for cache in source.rglob("*.nb[ci]"):
            kept = self.compiled / cache.relative_to(source)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(cache, kept)
