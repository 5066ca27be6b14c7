"""Runs tiny trainings in processes of their own, killed or launched together, for the tests.

Reads a JSON list of jobs from standard input, runs each in forked children (torch is imported
once) and prints the list of their exit codes.
"""

import faulthandler
import json
import os
import signal
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workflow" / "src"))


def data(vocabulary: int, length: int) -> dict:
    """Sequences with something to learn: each token is the last one plus 0, 1 or 2."""
    draw = np.random.default_rng(7)

    def split(count):
        steps = draw.integers(0, 3, (count, length))
        return SimpleNamespace(tokens=(steps.cumsum(1) % vocabulary).astype("uint8"))

    return {"train": split(300), "validation": split(41)}


def train(job: dict) -> None:
    from manybody import training

    description = job["description"]
    training.train(
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


def fork(job: dict, environment: dict) -> int:
    child = os.fork()
    if child:
        return child
    faulthandler.dump_traceback_later(120, exit=True)
    try:
        os.environ.update(environment)
        if job.get("die_at_write"):
            die_at_write(job["die_at_write"])
        train(job)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def run(job: dict) -> list[int]:
    """Exit codes of the job's processes; minus the signal for one that was killed."""
    processes = job.get("processes", 1)
    environments = [{}]
    if processes > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        common |= {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
        environments = [
            {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)
        ]
    children = [fork(job, environment) for environment in environments]
    if job.get("kill_after") is not None:
        time.sleep(job["kill_after"])
        for child in children:
            os.kill(child, signal.SIGKILL)
    codes: dict[int, int] = {}
    while len(codes) < len(children):
        child, status = os.wait()
        codes[child] = os.waitstatus_to_exitcode(status)
        if codes[child]:  # the others would wait for it
            for other in set(children) - codes.keys():
                os.kill(other, signal.SIGKILL)
    return [codes[child] for child in children]


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    needed = ["manybody.training", "torch._dynamo", "pyarrow.parquet"]
    needed += {f"manybody.models.{job['description']['architecture']}" for job in jobs}
    for name in needed:  # once, before forking, and with no thread started
        import_module(name)
    print(json.dumps([run(job) for job in jobs]))
