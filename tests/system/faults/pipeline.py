"""The tiny pipeline in a folder of its own, and ways to disturb it."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from manybody.files.atomic import sha256

ROOT = Path(__file__).resolve().parents[3]
RESULTS = Path("results/tiny")
TARGETS = (
    "losses/tiny/seed-0.parquet",
    "curves/tiny.parquet",
    "figures/simplicity/gradient_flow.pdf",
    "claims/simplicity/gradient_flow.csv",
)
JOBS = 14
# Logs, resources and times are outside the promise of equal bytes.
FREE = ("logs", "usage")
PATIENCE = 1800.0  # seconds after which a call hangs, on however busy a machine
VICTIMS = ("job", "snakemake", "both")


class Pipeline:
    """`snakemake` with config/tiny.yaml in `folder`; `overlay` is YAML text laid over it."""

    python = sys.executable  # which has the Snakemake that is called
    root = ROOT  # the checkout whose Snakefile is run

    def __init__(self, folder: Path, overlay: str = "", targets=TARGETS, **environment):
        self.folder, self.targets = folder, [str(RESULTS / target) for target in targets]
        folder.mkdir(parents=True, exist_ok=True)
        self.configs = [str(ROOT / "config" / "tiny.yaml")]
        if overlay:
            (folder / "mine.yaml").write_text(overlay)
            self.configs.append("mine.yaml")
        self.environment = {**os.environ, "COLUMNS": "200", **environment}
        self.printed, self.output = folder / "output", ""

    @property
    def results(self) -> Path:
        return self.folder / RESULTS

    def start(self, *arguments: str, cores: int | str = 2, targets=None) -> subprocess.Popen:
        """A running call, whose output goes to the file `printed`."""
        targets = self.targets if targets is None else targets
        command = [self.python, "-m", "snakemake", "--snakefile", str(self.root / "Snakefile")]
        command += ["--workflow-profile", str(self.root / "profiles" / "default")]
        command += ["--cores", str(cores), "--configfile", *self.configs, *arguments]
        with self.printed.open("w") as output:
            return subprocess.Popen(
                [*command, "--", *targets],
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def finish(self, call: subprocess.Popen) -> int:
        code = call.wait(PATIENCE)
        self.output = self.printed.read_text(errors="replace")
        return code

    def run(self, *arguments: str, check: bool = True, **settings) -> int:
        """Exit code of a whole call; what it printed is in `output`."""
        code = self.finish(self.start(*arguments, **settings))
        if check:
            assert code == 0, self.output[-6000:]
        return code

    def listed(self) -> set[str]:
        """Names of all rules."""
        self.run("--list-rules", targets=[])
        return set(re.findall(r"^\w+$", self.output, re.MULTILINE))

    def unlock(self) -> None:
        self.run("--unlock")

    def go_on(self, tries: int = 20) -> int:
        """Unlocks and runs until all is made, as a person would; the number of failed calls.

        A call may meet a job that outlived its snakemake, and must then stop with its name.
        """
        for failed in range(tries):
            self.unlock()
            if self.run(check=False) == 0:
                return failed
            assert "is being written by process" in self.output, self.output[-6000:]
            time.sleep(1.0)
        raise AssertionError(f"not done after {tries} calls: {self.output[-6000:]}")

    def artifacts(self) -> dict[str, str]:
        """sha256 of every file that is promised, by its name in the results."""
        found = {}
        for path in sorted(self.results.rglob("*")):
            name = path.relative_to(self.results)
            hidden = any(part.startswith(".") for part in name.parts)
            kept = name.parts[0] not in FREE and name.name != "timing.jsonl"
            resume = any(part == "resume" or part.endswith(".resume") for part in name.parts)
            if path.is_file() and kept and not hidden and not resume:
                found[str(name)] = sha256(path)
        return found

    def leftovers(self) -> list[str]:
        """Temporary files, leases and saved states: nothing of them outlives a finished run."""
        patterns = ("*.tmp", ".lease*", "resume", "*.resume", "*.part", ".deduplicating")
        return [str(path) for pattern in patterns for path in self.results.rglob(pattern)]

    def jobs(self, call: subprocess.Popen) -> list[psutil.Process]:
        """The script processes that this call has started and that live."""
        try:
            family = psutil.Process(call.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [process for process in family if _is_script(process)]

    def kill(self, call: subprocess.Popen, victim: str, choice: int) -> bool:
        """Kills the victim; whether there was one.

        `choice` picks one of the jobs that run at that moment.
        """
        jobs = self.jobs(call)
        if victim == "job":
            if jobs:
                _kill(jobs[choice % len(jobs)])
            return bool(jobs)
        family = psutil.Process(call.pid).children(recursive=True) if victim == "both" else []
        call.kill()
        for process in family:
            _kill(process)
        return True

    def wait_for(self, call: subprocess.Popen, name: str) -> None:
        """Until the file `name` of the results is there, or the call has ended."""
        end = time.monotonic() + PATIENCE
        while not (self.results / name).exists():
            assert call.poll() is None, (
                f"{name} never came: {self.finish(call)} {self.output[-3000:]}"
            )
            assert time.monotonic() < end, f"{name} did not come in {PATIENCE} s"
            time.sleep(0.02)


def survivors(folder: Path) -> list[psutil.Process]:
    """Processes of scripts, of any parent, that work in `folder`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def end(folder: Path) -> None:
    """Kills what still works in `folder`, so that no test leaves a process behind."""
    for process in survivors(folder):
        _kill(process)


def _is_script(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return (
        "python" in Path(words[0]).name and any(".snakemake/scripts/" in w for w in words[1:2])
        if words
        else False
    )


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGKILL)
