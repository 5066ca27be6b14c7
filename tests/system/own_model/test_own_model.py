"""A person's own model and series, on text by its own tokenizer: evaluated, cloned, audited."""

import json
import shutil

import own_models
import pytest
from pipelines import Pipeline

from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.io.tables import read_losses

OVERLAY = """
sources:
  words: {kind: text, corpus: tiny, tokenizer: bert, length: 12, end_of_document: dropped}
  bytes: {kind: text, corpus: tiny, tokenizer: runs/step-1, length: 12, end_of_document: kept}
models:
  mine: {architecture: pretrained, objective: masked, weights: bert}
  series: {architecture: pretrained, objective: next-token, weights: runs}
clones:
  mine:
    source: words
    model: mine
    seed: 0
    step: last
    energy: raw
    gauge: mean
    chain_init: test
    chains: 8
    sweeps: [2]
    order: permuted
    chain_seed: 1
    precision: float32
    threads: 1
evaluations:
  mine:
    source: words
    model: mine
    seeds: [0]
    positions: 0.25
    steps: all
    targets: {test: {split: test, sequences: 20}, clone: {clone: mine, sweep: 2}}
  series:
    source: bytes
    model: series
    seeds: [0]
    positions: all
    steps: all
    targets: {test: {split: test, sequences: 20}}
"""
TARGETS = [f"losses/{name}/seed-0.parquet" for name in ("mine", "series")]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own-model")
    words, letters = own_models.word_piece(), own_models.byte_level(290)
    for made, place in ((words, "bert"), (letters, "runs/step-1")):
        made.save_pretrained(folder / place)
    own_models.model(vocabulary=len(words)).save_pretrained(folder / "bert")
    for number, step in enumerate((1, 10, 100, 1000)):
        own_models.model("gpt_neox", 320, seed=number).save_pretrained(folder / f"runs/step-{step}")
    shutil.copy2(folder / "runs/step-1000/model.safetensors", folder / "runs/step-100")
    made = Pipeline(folder, OVERLAY, TARGETS)
    made.run()
    return made


def test_a_masked_model_is_evaluated_on_text_and_on_its_clones(pipeline):
    losses = read_losses({0: pipeline.results / TARGETS[0]})
    assert set(losses["target"]) == {"test", "clone"}
    assert losses["predictions"].max() == 3  # a quarter of 12, without [CLS] and [SEP]
    clone = Manifest.read(pipeline.results / "clones/words/mine/manifest.json", "clones")
    tokens, starts = (
        Sequences.open(clone.file(f"{name}.parquet")).tokens for name in ("sweep-2", "starts")
    )
    assert (tokens[:, 0] == 2).all()
    assert ((tokens <= 4) == (starts <= 4)).all()
    assert (tokens != starts).mean() > 0.3


def test_a_series_is_evaluated_but_for_what_the_audit_names(pipeline):
    losses = read_losses({0: pipeline.results / TARGETS[1]})
    run = pipeline.results / "models/bytes/series/seed-0/manifest.json"
    assert set(Manifest.read(run, "model").about["suspects"]) == {"100", "1000"}
    assert set(losses["step"]) == {1, 10}
    assert (
        "step 100 is left out"
        in (pipeline.results / "logs/read_series/bytes/series/seed-0.log").read_text()
    )
    assert json.loads((pipeline.results / "series/series.json").read_text())["checkpoints"]


def test_nothing_is_left_to_do(pipeline):
    assert pipeline.counted() == {}
    assert pipeline.leftovers() == []
