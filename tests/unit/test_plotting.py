"""Figures from small synthetic tables: what is drawn, what is said, and that bytes repeat."""

import numpy as np
import pandas as pd
import pytest

from manybody.plotting import labels, style
from manybody.plotting.needs import needs
from manybody.plotting.simplicity import generators, learning, passages

STEPS = [0, 1, 3, 10, 30, 100, 150, 200, 300, 400, 600, 800, 1000, 1400, 1800, 2200, 2600, 3000]
SEQUENCES, LENGTH = 40, 16


def factored(layers, rank=32, length=LENGTH, variant="exact"):
    sizes = dict(layers=layers, rank=rank, bias=True, variant=variant)
    return dict(architecture="factored", vocabulary=400, length=length, **sizes)


BERT = dict(
    architecture="bert", vocabulary=400, length=LENGTH, layers=2, heads=4, width=64, mlp=128
)


def clone(description, name, sweep=20, energy="raw", start="test", step=2500, last=True):
    generator = dict(model=name, seed=0, step=step, last=last, description=description)
    return dict(
        original=False,
        clone=name,
        sweep=sweep,
        length=description["length"],
        generator=generator,
        energy=energy,
        start=start,
    )


TARGETS = {
    "n2": clone(factored(2), "n2"),
    "n4": clone(factored(4), "n4"),
    "bert": clone(BERT, "bert"),
    "n4-70": clone(factored(4), "n4", 70),
    "bert-70": clone(BERT, "bert", 70),
    "n4-early": clone(factored(4), "n4-early", step=700, last=False),
    "n2-wide": clone(factored(2, 160), "n2-wide"),
    "n2-norm": clone(factored(2), "n2-norm", energy="norm"),
    "n4-norm": clone(factored(4), "n4-norm", energy="norm"),
    "bert-norm": clone(BERT, "bert-norm", energy="norm"),
    "n4-unigram": clone(factored(4), "n4-unigram", 70, start="unigram"),
    "original": {"original": True},
}
# Plateau's loss, last loss, step at which the fall is halfway, rise after the minimum.
SHAPES = {
    "n2": (3.3, 230, 0.6),
    "n4": (1.9, 300, 0.0),
    "bert": (1.0, 420, 0.0),
    "n4-early": (2.2, 260, 0.1),
    "n2-wide": (1.2, 400, 0.0),
    "original": (1.8, 520, 0.0),
}
BLOCK = dict(
    evaluation="bert",
    ladder=["n2", "n4", "bert"],
    control="original",
    late_steps=[600, 1000, 3000],
    early_stopped="n4-early",
    wide="n2-wide",
    norm=["n2-norm", "n4-norm", "bert-norm"],
    starts=["n4-70", "n4-unigram"],
)
STUDENT = dict(description=BERT, source="docs", seed=0, steps_per_epoch=200.0)


def curve(target, steps=STEPS):
    final, middle, rise = SHAPES.get(target) or SHAPES[target.split("-")[0]]
    steps = np.asarray(steps, float)
    plateau = 6.1 - 1.9 * (1 - np.exp(-steps / 30))
    fall = 1 / (1 + (middle / np.maximum(steps, 1e-9)) ** 3)
    return plateau + (final - 4.2) * fall + rise * np.log1p(steps / 600) * fall


def losses(seeds=(0, 1, 2), steps=STEPS, targets=tuple(TARGETS), predictions=LENGTH):
    frames = []
    for seed in seeds:
        # The difficulty of a sequence is its own, whatever the checkpoint.
        difficulty = np.random.default_rng(1).normal(0, 0.15, SEQUENCES)
        noise = np.random.default_rng(seed)
        for target in targets:
            for step, mean in zip(steps, curve(target, steps), strict=True):
                loss = mean + difficulty + noise.normal(0, 0.02) + noise.normal(0, 0.02, SEQUENCES)
                frames.append(
                    pd.DataFrame(
                        {
                            "target": target,
                            "step": step,
                            "sequence": np.arange(SEQUENCES),
                            "loss_sum": loss * predictions,
                            "correct": np.rint(predictions * np.clip(0.75 - 0.11 * loss, 0, 1)),
                            "predictions": predictions,
                            "seed": seed,
                        }
                    )
                )
    return pd.concat(frames, ignore_index=True)


def trace(start, end, sweeps=70, scale=8.0, seed=0):
    sweep = np.arange(sweeps + 1)
    noise = np.random.default_rng(seed).normal(0, 0.01, sweeps + 1)
    score = end - (end - start) * np.exp(-sweep / scale) + noise
    return pd.DataFrame({"sweep": sweep, "score": score, "score_se": 0.07})


def fig3_inputs(seeds=(0,), steps=STEPS):
    def run(description, target, own):
        table = losses((0,), steps, (target,)).assign(target="test")
        own_losses = losses((0,), steps[-1:], (target,)).assign(target="own")
        found = {"test": {"original": True}, "own": TARGETS[own]}
        about = dict(description=description, seed=0, source="docs")
        return generators.Run(about, pd.concat([table, own_losses]), found)

    runs = {
        "n2-test": run(factored(2), "n2", "n2-norm"),
        "n4-test": run(factored(4), "n4", "n4-norm"),
        "bert-test": run(BERT, "bert", "bert-norm"),
        "wide-test": run(factored(2, 160), "n2-wide", "n2-wide"),
    }
    table = trace(6.6, 10.7)
    made = {
        name: generators.Chains({**TARGETS[name], "chain_seed": 5}, table + shift * (table > 1e9))
        for name, shift in (("n2", 0), ("n4", 1), ("bert", 2), ("n4-early", 0))
    }
    for name, (start, end) in {"n4": (9.0, 13.3), "bert": (9.6, 11.0)}.items():
        made[name] = generators.Chains(made[name].about, trace(start, end, seed=3))
    for name, evaluation in (
        ("n2-norm", "n2-test"),
        ("n4-norm", "n4-test"),
        ("bert-norm", "bert-test"),
    ):
        own = runs[evaluation].losses.query("target == 'own'")
        score = -own["loss_sum"].sum() / own["predictions"].sum()
        made[name] = generators.Chains(
            {**TARGETS[name], "chain_seed": 5}, trace(score - 1, score).assign(score=score)
        )
    student = generators.Run(STUDENT, losses(seeds, steps), TARGETS)
    return runs, made, student


FIG3 = dict(
    evaluation="bert",
    control="original",
    pairs=[["n4", "n4-70"], ["bert", "bert-70"]],
    generators=["n2-test", "n4-test", "bert-test"],
    wide_generator="wide-test",
    test="test",
    early_stopped_clone="n4-early",
    chains=["n2", "n4", "bert"],
)
PASSAGES = [
    ("test text", "the array is returned as a view if possible, and"),
    ("test text", "raised if the " + "index is out of bounds " * 5),
    ("n = 2, order 3", "the the returned $ value of $ array of the\n name"),
    ("n = 2, order 3", "if if the the"),
    ("n = 6, nominal order 33 > L = 16: any order", "the index is returned as a copy if it is not"),
]
