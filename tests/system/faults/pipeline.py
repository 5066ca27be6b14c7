"""The tiny pipeline, and ways to disturb it."""

import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
from pipelines import PATIENCE, Pipeline

RESULTS = Path("results/tiny")
TARGETS = (
    "losses/tiny/seed-0.parquet",
    "curves/tiny.parquet",
    "figures/simplicity/gradient_flow.pdf",
)
VICTIMS = ("job", "snakemake", "both")


class Tiny(Pipeline):
    """The targets of config/tiny.yaml, in a folder of their own."""

    def __init__(self, folder: Path, overlay: str = "", targets=TARGETS, **settings):
        super().__init__(folder, overlay, targets, **settings)

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

    def kill(self, call: subprocess.Popen, victim: str, choice: int) -> bool:
        """Kills the victim; whether there was one.

        `choice` picks one of the jobs that run at that moment.
        """
        family = []
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(call.pid).children(recursive=True)
        if victim == "job":
            jobs = [process for process in family if _is_script(process)]
            if not jobs:
                return False
            family = [jobs[choice % len(jobs)]]
        else:
            call.kill()
        for process in family if victim != "snakemake" else ():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return True

    def wait_for(self, call: subprocess.Popen, name: str) -> None:
        """Until the file `name` of the results is there, or the call has ended."""
        end = time.monotonic() + PATIENCE
        while not (self.results / name).exists():
            assert call.poll() is None, f"{name} never came: {self.printed.read_text()[-3000:]}"
            assert time.monotonic() < end, f"{name} did not come in {PATIENCE} s"
            time.sleep(0.02)


def _is_script(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(".snakemake/scripts/" in word for word in process.cmdline()[1:2])
    return False
