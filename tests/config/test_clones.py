"""Which sampler, energy and temperatures of a clone fit together, and what is said else."""

import pytest
from configs import refusal, with_entry

from manybody.pipeline.check import check

PATHS = {"energy": "brook", "paths": 4}
GPT = {"model": "gpt", "sampler": "ancestral", "energy": "norm", "sweeps": [1]}
LADDER = {"inverse_temperatures": [1, 0.8, 0.5]}


@pytest.mark.parametrize(
    "changes",
    [
        {"energy": "reference"},
        {"energy": "reference", "sampler": "heat-bath"} | LADDER,
        {"sampler": "heat-bath", "annealing": {"start": 0.2, "sweeps": 9}},
        {"energy": "reference", "model": "n4", "paths": 2},
        {"model": "bert-generator"} | PATHS,
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
        ({"energy": "brook"}, ["paths: found None", "such as 4"]),
        ({"energy": "reference", "paths": 4}, ["paths: found 4", "leave it out"]),
        ({"energy": "reference", "gauge": "mean"}, ["gauge: found mean", "free of the gauge"]),
        ({"sampler": "gibbs"} | LADDER, ["inverse_temperatures: found one", "mh or heat-bath"]),
        ({"inverse_temperatures": [1, 0.5, 0.8]}, ["inverse_temperatures: found [1, 0.5, 0.8]"]),
        ({"inverse_temperatures": [0.9, 0.8]}, ["inverse_temperatures", "1 and then falling"]),
        ({"annealing": {"start": 0.5, "sweeps": 10}}, ["sweeps: found 10", "after 10"]),
        ({"annealing": {"start": 0.5, "sweeps": 2}} | LADDER, ["annealing", "one of them"]),
        (GPT | {"sweeps": [1, 2]}, ["sweeps: found [1, 2]", "expected [1]"]),
        (GPT | {"order": "permuted"}, ["order: found permuted", "left-to-right"]),
        (
            {"model": "bert-generator", "precision": "bfloat16"} | PATHS,
            ["precision: found bfloat16", "energy brook"],
        ),
    ],
)
def test_what_does_not_is_refused_with_its_key(changes, expected):
    said = refusal(with_entry("clones", "n2", **changes))
    assert "clones.mine" in said
    assert [part for part in expected if part not in said] == []
