"""Claims of figure 3: the generators' quality, and whether their chains have settled."""

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd

from manybody.claims import labels, verdicts
from manybody.claims.simplicity.evaluated import Evaluated
from manybody.claims.simplicity.quality import Chains, Quality, generator_label, read
from manybody.io import tables

A_SAMPLE = "a clone is a sample of its model, not the state that sweeps have left"
VERBATIM = 0.01  # share of test blocks that may stand in the training text


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return claims(read(files, block, context))


def claims(quality: Quality) -> pd.DataFrame:
    """The claims about generators, their chains, and a student's losses on them."""
    return verdicts.table(
        [
            *_quality_claims(quality),
            *_energy_claims(quality),
            *_overlap_claims(quality),
            *_settled_claims(quality),
            *_chain_claims(quality),
            *_twin_claims(quality),
            *_sweep_claims(quality),
        ]
    )


def _quality_claims(quality: Quality) -> list[dict]:
    """Claim 2: the generators, from low to high order, are better models of the text."""
    block, found = quality.block, []
    runs = [quality.generators[name] for name in block["generators"]]
    for worse, better in pairwise(runs):
        losses = (_last(run, block["test"]) for run in (better, worse))
        claim = f"2 (fig. 3a): {generator_label(better)} beats {generator_label(worse)}"
        found.append(verdicts.gap(claim, *tables.paired_difference(*losses)))
    return found


def _last(run: Evaluated, target: str) -> pd.DataFrame:
    return tables.select(run.losses, target, tables.last_step(run.losses, target))


def _energy_claims(quality: Quality) -> Iterator[dict]:
    """Claim 3, on the chains of this figure: by the norm score, E / L is the generator's own loss.

    The sampler's incremental energy and the evaluation's masked forward passes share no code.
    """
    for run in quality.generators.values():
        for target, document in run.targets.items():
            if document.get("energy") != "norm":
                continue
            made = document["generator"]
            if made["description"] != run.about["description"] or not made["last"]:
                continue
            sums = _last(run, target)
            if (sums["predictions"] != document["length"]).any():
                continue  # only all L positions make up E
            loss, _ = tables.ratio(sums["loss_sum"].to_numpy(), sums["predictions"].to_numpy())
            trace = quality.chains[document["clone"]].trace.set_index("sweep")
            score = trace["score"].loc[document["sweep"]]
            claim = f"3 (fig. 3): {generator_label(run)}: E / L of its chains is its loss on them"
            yield verdicts.identity(claim, loss + score, 0.0, verdicts.IDENTITY)


def _overlap_claims(quality: Quality) -> list[dict]:
    """What is tested is new, of the text sources that the chains start from. No gate: another text
    may well repeat itself."""
    shares = {
        about["source"]: about["overlap"]["verbatim"]
        for about, _ in quality.chains.values()
        if "overlap" in about
    }
    text = "corpus (fig. 3): share of the test blocks that stand verbatim in the training text"
    return [verdicts.bounded(f"{text}: {s}", "<", x, 0.0, VERBATIM) for s, x in shares.items()]


def _shown(quality: Quality) -> Iterator[tuple[Chains, list[int]]]:
    """The chains of the figure, and the sweeps after which they are judged."""
    for name in quality.block["chains"]:
        last = int(quality.chains[name].trace["sweep"].max())
        yield quality.chains[name], sorted({min(20, last), last})


def _settled_claims(quality: Quality) -> list[dict]:
    return [
        verdicts.settled(
            f"4 (fig. 3b): {chains.label}: the score drifts by < 1 % over the last quarter of "
            f"{sweep} sweeps",
            chains.trace,
            sweep,
        )
        for chains, sweeps in _shown(quality)
        for sweep in sweeps
    ]


def _chain_claims(quality: Quality) -> Iterator[dict]:
    """What the sampler's own diagnostics say: R-hat, and how much of the start is still there."""
    for chains, sweeps in _shown(quality):
        text = f"chains (fig. 3b): {chains.label}:"
        claim = f"{text} split R-hat of the score, second half of {sweeps[-1]} sweeps"
        yield verdicts.mixed(claim, chains.trace)
        for sweep in sweeps:
            claim = f"{text} share of the start's tokens after {sweep} sweeps"
            yield verdicts.forgotten(claim, chains.trace, sweep, chains.about["chains"])


def _twin_claims(quality: Quality) -> list[dict]:
    """Whether a clone is a sample of its model: do chains from text and from noise agree?"""
    found = []
    for twins in quality.block.get("twins", []):
        run = quality.generators[twins["evaluation"]]
        names = (twins["text"], twins["noise"])
        text, noise = (run.targets[name] for name in names)
        made = [quality.chains[document["clone"]] for document in (text, noise)]
        claim = (
            f"chains (fig. 3b): {generator_label(run)}, {text['energy']} score: after "
            f"{text['sweep']} sweeps {A_SAMPLE}"
        )
        losses = tuple(_last(run, name) for name in names)
        count = min(one.about["chains"] for one in made)
        traces = tuple(one.trace for one in made)
        found.append(verdicts.sample(claim, traces, losses, text["sweep"], count))
    return found


def _sweep_claims(quality: Quality) -> list[dict]:
    """Claim 5: a student's losses on the same chains at two sweeps are the same."""
    student, block = quality.student, quality.block
    curves, found = tables.learning_curves(student.losses), []
    for pair in block["pairs"]:
        one, two = (student.targets[target] for target in pair)
        claim = (
            f"5 (fig. 3c): {labels.target(one)}: after {one['sweep']} and {two['sweep']} sweeps "
            f"the losses are the same"
        )
        given = student.losses, curves, *pair, block["control"]
        found.append(verdicts.same_losses(claim, verdicts.loss_differences(*given, paired=True)))
    return found
