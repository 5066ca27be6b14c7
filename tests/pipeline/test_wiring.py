"""What each rule takes: splits, seeds, sources and steps, against a table written by hand.

A row of wiring.tsv is a job by its first output, some of its inputs by name and some of its
parameters, whose keys are joined by dots.
"""

import csv
import runpy
from functools import reduce
from operator import getitem
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pipelines import ROOT, planned

import manybody as mb
from manybody.io import store
from manybody.sampling import metropolis

with Path(__file__).with_name("wiring.tsv").open(encoding="utf-8") as opened:
    TABLE = list(csv.DictReader(opened, delimiter="\t"))


def shown(paths, results):
    """Paths in the results, without the endings that most have."""
    paths = [paths] if isinstance(paths, str) else paths
    names = (str(Path(path).relative_to(results)) for path in paths)
    return ",".join(name.removesuffix("/manifest.json").removesuffix(".parquet") for name in names)


class Named(dict):
    """Inputs of a job, by key and by attribute."""

    __getattr__ = dict.__getitem__


def pairs(text):
    return [part.split("=", 1) for part in text.split()]


OVERLAYS = {row["config"] for row in TABLE} - {"demo"}


@pytest.mark.parametrize(
    "config",
    ["demo", *(pytest.param(name, marks=pytest.mark.long) for name in sorted(OVERLAYS))],
)
def test_each_rule_takes_what_the_table_says(config, tmp_path):
    jobs = planned(tmp_path, *[] if config == "demo" else [f"{config}.yaml"])
    made = {shown(job.output[0], tmp_path / "results"): job for job in jobs if job.output}
    mine = [row for row in TABLE if row["config"] == config]
    for row in mine:
        job = made[row["makes"]]
        assert job.rule.name == row["rule"]
        takes = {name: shown(paths, tmp_path / "results") for name, paths in job.input.items()}
        for name, expected in pairs(row["takes"]):
            assert takes[name] == expected, (row["makes"], name)
        for key, expected in pairs(row["is told"]):
            told = reduce(getitem, key.split("."), dict(job.params.items()))
            assert str(told) == expected, (row["makes"], key)
    if config == "demo":
        assert {row["rule"] for row in mine} == {job.rule.name for job in made.values()}
        # A new seed must not run the jobs of the others again.
        for run, key in (("losses/bert/seed-0", "evaluation"), ("spectra/bert/seed-0", "entry")):
            assert "seeds" not in made[run].params[key]


@pytest.mark.parametrize(
    ("start", "step", "expected"), [("test", "last", 6), ("unigram", 2, 2), ("test", 6, 6)]
)
def test_a_clone_is_drawn_with_the_seed_the_starts_and_the_step_of_its_entry(
    tmp_path, monkeypatch, start, step, expected
):
    tokens = np.random.default_rng(0).integers(0, 5, (60, 4))
    splits = {"train": tokens[:30], "validation": tokens[30:40], "test": tokens[40:]}
    given = {split: tmp_path / f"{split}.parquet" for split in splits}
    for split, rows in splits.items():
        mb.write_sequences(given[split], rows, 5)
    sizes = dict(layers=1, rank=2, recipe={"checkpoints": {"logarithmic": 0, "listed": [2, 4]}})
    mb.train_model(tmp_path / "run", tokens, tokens[:8], 5, steps=6, batch=8, seed=7, **sizes)
    given |= dict(model=tmp_path / "run" / "manifest.json", reference=[], tokenizer=[], overlap=[])
    clone = dict(
        source="letters", model="n1", seed=7, chain_seed=4, step=step, chain_init=start, chains=6,
        energy="raw", gauge="none", order="permuted", sweeps=[1], precision="float32", threads=1,
    )  # fmt: skip
    drawn = []
    monkeypatch.setattr(store, "begin", lambda job: SimpleNamespace(keep=lambda: None))
    monkeypatch.setattr(metropolis, "sample", lambda *parts, **named: drawn.append((parts, named)))
    job = SimpleNamespace(
        input=Named(given),
        output=SimpleNamespace(manifest=tmp_path / "clone" / "manifest.json"),
        params=SimpleNamespace(clone=clone, device="cpu", code="code"),
        wildcards=SimpleNamespace(clone="mine"),
    )
    runpy.run_path(str(ROOT / "workflow/scripts/sample_clones.py"), {"snakemake": job})
    (((model, initial, folder), named),) = drawn
    starts, rows = metropolis.choose_initial(
        splits["test" if start == "test" else "train"], 6, start, 5, 4
    )
    assert np.array_equal(initial, starts)
    assert (named["seed"], named["stream"], named["about"]["rows"]) == (4, "mine", rows)
    about = named["about"]["generator"]
    assert (about["seed"], about["step"], about["last"]) == (7, expected, expected == 6)
    kept = mb.load_model(given["model"], expected).state_dict()
    assert all(torch.equal(kept[name], value) for name, value in model.state_dict().items())
    assert folder == tmp_path / "clone"
