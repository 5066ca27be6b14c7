"""What rules and scripts hand on: a dry run says what a job reads; a script runs with a recorder in
the place of the function that it calls."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from manybody.files import checkpoints, sequences
from manybody.models import stored
from manybody.runtime import devices, logs
from manybody.sampling import metropolis

ROOT = Path(__file__).resolve().parents[3]
SPLITS = ("train", "validation", "test")


class Named(dict):
    """Stands for what Snakemake gives a script: names that are attributes as well."""

    def __getattr__(self, name):
        return self[name]


@pytest.fixture
def run(monkeypatch):
    """Runs a script with `snakemake` made from keywords."""
    monkeypatch.setattr(logs, "log_to", lambda path: None)

    def call(script, **given):
        job = {name: Named(named) for name, named in given.items()}
        job = SimpleNamespace(log=["log"], **job)
        path = ROOT / "workflow" / "scripts" / script
        runpy.run_path(str(path), {"snakemake": job}, run_name="__main__")

    return call


def test_tokenizers_are_trained_on_training_documents_and_splits_read_their_own(tmp_path):
    wanted = [f"{tmp_path}/sequences/docs/{split}.parquet" for split in SPLITS]
    command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1"]
    command += ["--configfile", "config/smoke.yaml", "--config", f"results={tmp_path}", "--"]
    ran = subprocess.run([*command, *wanted], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # Of each job its message and the reason, which names what an earlier job makes for it.
    reasons = dict(re.findall(r"^Job \d+: (.*)\nReason: (.*)$", ran.stdout, re.MULTILINE))
    read = {job: re.findall(r"corpora/small/(\w+).parquet", why) for job, why in reasons.items()}
    assert read["Training the tokenizer of docs"] == ["train"]
    for split in SPLITS:
        assert read[f"Tokenising the {split} split of docs"] == [split]


@pytest.mark.parametrize("seed", [0, 3])
def test_runs_are_trained_with_the_seed_of_their_file_name(run, monkeypatch, seed):
    calls = []
    monkeypatch.setattr(devices, "launch", lambda *_, **arguments: calls.append(arguments))
    params = dict(model={}, recipe={}, init_seed=5, stream="shared", device="cpu", code="")
    run(
        "train_model.py",
        wildcards=dict(source="docs", model="bert", seed=str(seed)),
        params={**params, "processes": 1},
        input=dict(train="train.parquet", validation="validation.parquet", sequence_weights=[]),
        output=dict(manifest="out/manifest.json"),
    )
    ((made),) = calls
    assert (made["seed"], made["init_seed"], made["stream"]) == (seed, 5, "shared")
    assert made["paths"] == dict(train="train.parquet", validation="validation.parquet")


@pytest.mark.parametrize(("chain_init", "split"), [("test", "test"), ("unigram", "train")])
def test_chains_start_from_the_split_that_their_config_says(
    run, monkeypatch, tmp_path, chain_init, split
):
    # Tokens 0 to 3 stand in the training text alone, 4 to 7 in the test text.
    tokens = {"train": np.arange(60).reshape(20, 3) % 4}
    tokens["test"] = tokens["train"] + 4
    for name, made in tokens.items():
        sequences.write(tmp_path / f"{name}.parquet", made, 8, {"split": name})
    about = SimpleNamespace(order=2, nominal=2)
    model = SimpleNamespace(vocabulary=8, description={}, about=about)
    monkeypatch.setattr(stored, "load_model", lambda *_: model)
    monkeypatch.setattr(checkpoints, "chosen_step", lambda *_: 7)
    monkeypatch.setattr(checkpoints, "checkpoint_steps", lambda *_: [0, 7])
    calls = []
    monkeypatch.setattr(metropolis, "sample", lambda *given, **named: calls.append((given, named)))
    clone = dict(source="docs", model="bert", seed=1, step="last", chain_init=chain_init, chains=6)
    clone |= dict(energy="raw", gauge="none", sweeps=[1], order="permuted", chain_seed=9)
    clone |= dict(precision="float32", threads=1)
    paths = {name: str(tmp_path / f"{name}.parquet") for name in tokens}
    run(
        "sample_clones.py",
        wildcards=dict(source="docs", clone="bert"),
        params=dict(clone=clone, device="cpu", code=""),
        input=dict(model="manifest.json", reference=[], tokenizer=[], overlap=[], **paths),
        output=dict(manifest=f"{tmp_path}/out/manifest.json"),
    )
    (((_, starts, _), named),) = calls
    assert starts.shape == (6, 3)
    assert set(starts.ravel() // 4) == {0 if split == "train" else 1}
    about = named["about"]
    assert about["split"] == split
    assert about["sequences"] == sequences.Sequences.open(paths[split]).sha256
    assert (about["generator"]["seed"], named["seed"], named["stream"]) == (1, 9, "bert")
    if split == "test":
        assert np.array_equal(starts, tokens["test"][about["rows"]])
