"""Which sampler, energy and model of a clone fit together, and what is said else."""

import pytest
from configs import refusal, with_entry

from manybody.pipeline.check import check

ENUMERATED = {"sampler": "enumerated", "energy": "norm", "sweeps": [1]}
GPT = {"model": "gpt", "sampler": "ancestral", "energy": "norm", "sweeps": [1]}


@pytest.mark.parametrize(
    "changes",
    [
        {"energy": "reference"},
        {"energy": "reference", "sampler": "heat-bath"},
        {"model": "bert-generator", "sampler": "gibbs"},
        GPT,
    ],
)
def test_what_fits_together_passes(changes):
    check(with_entry("clones", "n2", **changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "gpt"}, ["model: found gpt, a causal model", "sampler: ancestral"]),
        (
            {"sampler": "ancestral"},
            ["found n2", "a causal model", "mh or heat-bath or gibbs"],
        ),
        ({"sampler": "heat-bath", "model": "n4"}, ["model: found n4", "one or two layers"]),
        ({"sampler": "heat-bath", "energy": "norm"}, ["energy: found norm", "raw or reference"]),
        ({"energy": "reference", "model": "n4"}, ["energy: found reference of n4", "raw or norm"]),
        ({"energy": "reference", "gauge": "mean"}, ["gauge: found mean", "free of the gauge"]),
        (GPT | {"sweeps": [1, 2]}, ["sweeps: found [1, 2]", "expected [1]"]),
        (GPT | {"order": "permuted"}, ["order: found permuted", "left-to-right"]),
        (ENUMERATED, ["sampler: found enumerated of |V|^L = 400^16", "65536 states", "take gibbs"]),
        (ENUMERATED | {"order": "permuted"}, ["order: found permuted", "left-to-right"]),
        (ENUMERATED | {"sweeps": [1, 2]}, ["sweeps: found [1, 2]", "expected [1]"]),
        (ENUMERATED | {"energy": "raw"}, ["energy: found raw", "expected norm"]),
        (ENUMERATED | {"model": "gpt"}, ["model: found gpt", "sampler: ancestral"]),
        (
            {"energy": "reference", "precision": "bfloat16"},
            ["precision: found bfloat16", "energy reference"],
        ),
    ],
)
def test_what_does_not_is_refused_with_its_key(changes, expected):
    said = refusal(with_entry("clones", "n2", **changes))
    assert "clones.mine" in said
    assert [part for part in expected if part not in said] == []
