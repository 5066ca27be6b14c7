"""What the modules of theory, sources and curves cannot compute is refused before any job."""

import re

import pytest
from configs import load, refusal

NAN, INF = float("nan"), float("inf")
RANDOM = {"init": "random", "overlaps": None, "side_information": 0.0}
INTERACTION = {"vectors": 3, "variables": "signs", "probability": 0.5}
# Block, entry, what is changed in it; the last key is the one that is refused.
CASES = [
    *[
        ("theory", "gamp", change)
        for change in (
            {"activation": "relu"},
            {"activation": "linear", "skip": 0},
            {"skip": -1},
            {"regulariser": -1e-3},
            {"noise": NAN},
            {"side_information": -1},
            {"alphas": [0.5, 0]},
            {"alphas": []},
            {"alphas": [0.0001]},
            {"alphas": [1.2, 1.2]},
            {"alphas": [1.2, 1.2000001]},
            {"damping": 0},
            {"damping": 1.1},
            {"init": "warm"},
            {"overlaps": None},
            {"overlaps": [0.3, 1.0]},
            {"overlaps": [0.3]},
            RANDOM | {"points": 64},
            {"init": "random", "overlaps": [0.3, 0.6]},
            {"damping": 0.8, "points": 64},
            {"points": 48},
            {"dimension": 0},
            {"runs": 0},
            {"iterations": 0},
            {"threads": 0},
        )
    ],
    *[
        ("theory", "sgd", change)
        for change in (
            {"skip": -0.1},
            {"skip": NAN},
            {"alpha": 0},
            {"dimension": 20, "alpha": 0.01},
            {"learning_rate": 0},
            {"init_scale": 0},
            {"weight_decay": -1},
            {"batch": 0},
            {"repeats": 0},
            {"dimension": 0},
            {"epochs": 0},
            {"runs": 0},
            {"threads": 0},
        )
    ],
    *[
        ("theory", "trec", change)
        for change in (
            {"runs": 0},
            {"batch": 0},
            {"width": 0},
            {"hidden": 0},
            {"threads": 0},
            {"length": 2},
            {"learning_rate": 0},
            {"learning_rate": INF},
            {"epsilon": 0},
            {"init_scale": -1.0},
            {"held_out": 0},
            {"held_out": 1},
            {"vocabulary": None},
        )
    ],
    *[
        ("theory", "state-evolution", change)
        for change in (
            {"skip": -1.0},
            {"alphas": [0.0]},
            {"points": 100},
            {"points": 32},
            {"scrambles": 1},
            {"activation": "relu"},
            {"regulariser": -1e-3},
            {"side_information": 0.0},
        )
    ],
    *[
        ("theory", "layer-2-held", change)
        for change in (
            {"overlaps": [1.5]},
            {"overlaps": []},
            {"alpha": 0.0},
            {"skip": -1.0},
            {"side_information": 0.0},
        )
    ],
    *[
        ("theory", "thresholds", change)
        for change in (
            {"skips": [0.5, -1.0]},
            {"skips": [0.5, 1000.0]},
            {"skips": []},
            {"points": 1000},
            {"tolerance_1": 0.0},
            {"tolerance_1": 1.0},
        )
    ],
    *[
        ("theory", "three-layers", change)
        for change in (
            {"skip": -1.0},
            {"skips": [1.0, 0.0]},
            {"skips": [NAN]},
            {"alphas": [0.5, 0.0]},
            {"alphas": []},
            {"points": 1000},
            {"scrambles": 1},
            {"regulariser": -1e-3},
        )
    ],
    *[
        ("theory", "replica", change)
        for change in (
            {"gamma": 1.9},
            {"ridge": 0.0},
            {"ridge": -1.0},
            {"alphas": [0.5, -1.0]},
            {"realisations": 1},
            {"length": 2},
            {"threads": 0},
        )
    ],
    *[
        ("theory", "gradient-flow", change)
        for change in ({"length": 1}, {"decay": 0.0}, {"scales": [0.0, 0.1]})
    ],
    *[
        ("curves", "recovery", change)
        for change in (
            {"sizes": [500]},
            {"sizes": [500, 500]},
            {"realisations": 1},
            {"kind": "other"},
            {"ridge": -1.0},
            {"init_scale": {"attention": 0.0, "values": 0.3}},
            {"iterations": 0},
        )
    ],
    *[
        ("sources", "potts", change)
        for change in (
            {"length": 1},
            {"vocabulary": 1},
            {"couplings": "ring"},
            {"colours": "clock"},
            {"temperature": {}},
            {"temperature": {"beta": 1.0, "hamming": 0.3}},
            {"temperature": {"beta": -1.0}},
            {"temperature": {"hamming": 0.0}},
            {"temperature": {"hamming": 0.95}},
            {"sweeps": 1},
            {"sequences": {"train": 9, "validation": 1, "test": 9}},
        )
    ],
    *[
        ("sources", "many-body", change)
        for change in (
            {"order": 1},
            {"order": 5},
            {"length": 3},
            {"vocabulary": 1},
            {"couplings": "potts"},
            {"couplings": INTERACTION | {"vectors": 0}},
            {"colours": INTERACTION | {"variables": "spins"}},
            {"colours": INTERACTION | {"probability": 1}},
            {"colours": "clock"},
            {"logit_scale": 0},
            {"logit_scale": -1.0},
            {"sweeps": -1},
            {"sequences": {"train": 1, "validation": 9, "test": 9}},
        )
    ],
    *[
        ("sources", "tree", change)
        for change in (
            {"depth": 0},
            {"level": 5},
            {"level": -1},
            {"vocabulary": 1},
            {"rules": {"deviation": -1.0}},
            {"rules": "random"},
        )
    ],
    *[
        ("sources", "cut", change)
        for change in ({"at": 0}, {"at": 4}, {"kept": "pairs"}, {"source": "docs"})
    ],
    *[
        ("sources", "family", change)
        for change in (
            {"identity": 0.0},
            {"format": "phylip"},
            {"alphabet": "text"},
            {"split": {"train": 0.5, "validation": 0.2, "test": 0.2}},
            {"split": {"train": 0.8, "validation": 0.1, "test": 0.1, "by": "name"}},
        )
    ],
]
COUNTS = {"train": 20, "validation": 10, "test": 10}
EXACT = {
    "tree": {"kind": "tree", "depth": 4, "level": 0, "vocabulary": 4, "rules": {"deviation": 1.0}},
    "cut": {"kind": "cut", "source": "small", "at": 2, "kept": "marginals"},
}
FAMILY = {
    "kind": "alignment",
    "file": "family.fasta",
    "format": "fasta",
    "alphabet": "protein",
    "identity": 0.8,
    "split": {"train": 0.8, "validation": 0.1, "test": 0.1},
    "seed": 0,
}


@pytest.mark.parametrize(("block", "name", "change"), CASES)
def test_a_bad_entry_is_refused_by_key_and_value(block, name, change):
    config = load()
    config["sources"] |= {
        name: {**made, "sequences": COUNTS, "seed": 0} for name, made in EXACT.items()
    }
    config["sources"] |= {"family": FAMILY}
    config["sources"]["small"] = config["sources"]["many-body"] | {"length": 6}
    config[block][name] = config[block][name] | change
    key = [*change][-1]  # or what is in it
    lines = [line.strip() for line in refusal(config).split("\n")]
    said = [line for line in lines if line.startswith(f"{block}.{name}.{key}")]
    assert said, lines
    assert all(re.search(": (found|missing) .*; expected ", line) for line in said)
