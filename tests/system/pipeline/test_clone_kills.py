"""Clones whose drawing is killed at any moment and started again have the same bytes."""

import functools
import signal

import numpy as np
import pytest
from pyarrow import parquet
from training_jobs import outcomes

from manybody.files.manifest import Manifest
from manybody.files.sequences import Sequences

SIZES = {"vocabulary": 9, "length": 8}
CASES = {
    "factored": {
        "description": {"architecture": "factored", "layers": 2, "rank": 4} | SIZES,
        "energy": "raw",
        "order": "left-to-right",
        "together": 14,
    },
    "groups": {
        "description": {"architecture": "factored", "layers": 2, "rank": 4} | SIZES,
        "energy": "raw",
        "order": "permuted",
        "together": 5,
    },
    "bert": {
        "description": {"architecture": "bert", "layers": 2, "heads": 2, "width": 16, "mlp": 32}
        | SIZES,
        "energy": "norm",
        "order": "permuted",
        "together": 14,
    },
}
KILLED = -signal.SIGKILL


NAMES = ["factored", "groups", pytest.param("bert", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """For an architecture, the folder of all runs and the exit codes of each one, in order.

    `killed` is stopped at seeded writes (before the rename or after it), then at seeded times.
    """

    @functools.cache
    def of(architecture):
        folder = tmp_path_factory.mktemp("clones")
        draw = np.random.default_rng(4)
        jobs = []
        for name, case in CASES.items():
            if case["description"]["architecture"] != architecture:
                continue
            killed = case | {"out": str(folder / "killed" / name)}
            jobs += [
                case | {"out": str(folder / "whole" / name)},
                *(killed | {"die_at_write": count} for count in (1, 2, 3, 6)),
                *(killed | {"kill_after": wait} for wait in draw.uniform(0.01, 0.1, 3)),
                killed | {"die_at_write": 4},
                killed,
            ]
        return folder, outcomes("clone_jobs.py", jobs, folder)

    return lambda name: of(CASES[name]["description"]["architecture"])


@pytest.mark.parametrize("name", NAMES)
def test_bytes_do_not_depend_on_kills(runs, name):
    folder, codes = runs(name)
    whole, killed = folder / "whole" / name, folder / "killed" / name
    assert codes[f"whole/{name}"] == [0]
    assert codes[f"killed/{name}"][:4] == [KILLED] * 4
    assert codes[f"killed/{name}"][-1] == 0
    files = sorted(path.name for path in whole.iterdir())
    assert files == sorted(path.name for path in killed.iterdir())
    for file in files:
        assert (whole / file).read_bytes() == (killed / file).read_bytes(), file


@pytest.mark.parametrize("name", NAMES)
def test_the_artifact_is_whole_and_says_what_it_is(runs, name):
    folder, _ = runs(name)
    manifest = Manifest.read(folder / "whole" / name / "manifest.json", "clones")
    states = ["starts", "sweep-2", "sweep-5", "sweep-9"]
    expected = sorted([*(f"{state}.parquet" for state in states), "trace.parquet", "samples.md"])
    assert manifest.names() == expected
    about = Sequences.open(manifest.file("sweep-5.parquet")).about
    assert about["generator"] == "tiny"
    assert about["energy"] == CASES[name]["energy"]
    assert about["sweep"] == 5
    tokens = {state: Sequences.open(manifest.file(f"{state}.parquet")).tokens for state in states}
    trace = parquet.read_table(manifest.file("trace.parquet")).to_pydict()
    assert trace["sweep"] == list(range(10))
    for sweep in (2, 5, 9):
        changed = (tokens[f"sweep-{sweep}"] != tokens["starts"]).mean()
        assert trace["changed"][sweep] == pytest.approx(changed, abs=1e-12)
    assert trace["changed"][0] == 0
    assert 0 < trace["accepted"][9] <= 1
    assert about["acceptance"] == pytest.approx(
        np.average(trace["accepted"][1:6], weights=1 - np.array(trace["same"][1:6]))
    )
    letters = "".join(chr(ord("a") + token) for token in tokens["sweep-9"][0])
    assert f"**sweep 9**\n\n> {letters}\n" in manifest.file("samples.md").read_text()
