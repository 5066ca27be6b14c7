"""Runs tiny trainings in processes of their own, some killed, for the tests.

Reads a JSON list of jobs from standard input, runs each in a forked child (torch is imported once,
before) and prints the list of their exit codes.
"""

import faulthandler
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "workflow" / "src"))


def data(vocabulary: int, length: int) -> dict:
    """Sequences with something to learn: each token is the last one plus 0, 1 or 2."""
    draw = np.random.default_rng(7)

    def split(count):
        steps = draw.integers(0, 3, (count, length))
        return SimpleNamespace(tokens=(steps.cumsum(1) % vocabulary).astype("uint8"))

    return {"train": split(300), "validation": split(41)}


def train(job: dict) -> None:
    from manybody.training import loop

    description = job["description"]
    loop.train(
        description,
        job["recipe"],
        data(description["vocabulary"], description["length"]),
        Path(job["out"]),
        seed=3,
        init_seed=4,
        about={"source": "counting"},
        device="cpu",
        code="test",
        save_every=job["save_every"],
    )


def die_at_write(count: int) -> None:
    """Kills this process at its `count`-th rename of a finished file, before it or after it."""
    rename, calls = Path.replace, iter(range(1, 10**6))

    def replace(path, target):
        last = next(calls) == count
        if last and count % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(path, target)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    Path.replace = replace


def run(job: dict, work) -> int:
    """Exit code of `work(job)` in a child; minus the signal if it was killed."""
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(120, exit=True)
        try:
            if job.get("die_at_write"):
                die_at_write(job["die_at_write"])
            work(job)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if job.get("kill_after") is not None:
        time.sleep(job["kill_after"])
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcomes(script: str, jobs: list[dict], folder: Path) -> dict[str, list[int]]:
    """Runs jobs by a script beside this one: the exit codes of each folder of runs, in order."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name(script)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    codes: dict[str, list] = {}
    for job, code in zip(jobs, json.loads(done.stdout), strict=True):
        codes.setdefault(str(Path(job["out"]).relative_to(folder)), []).append(code)
    return codes


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    needed = ["manybody.training.loop", "torch._dynamo", "pyarrow.parquet"]
    needed += {f"manybody.models.{job['description']['architecture']}.network" for job in jobs}
    for name in needed:
        import_module(name)
    threads = [Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    if len(threads) > 1:
        sys.exit(f"a library started threads, with which forking is not safe: {threads}")
    print(json.dumps([run(job, train) for job in jobs]))
