"""Measures the cards of clones."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from manybody.data.overlap import Text
from manybody.io import tables
from manybody.io.atomic import sha256
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.measure import chains
from manybody.measure.cards import Card, Estimate, Measured, State, rounded
from manybody.measure.intervals import margin
from manybody.models.samplers import INDEPENDENT

SEQUENCES = 1000  # of a set, the first ones, that losses and copies are looked for in
PREDICTIONS = 2**13  # masked tokens of a set that a loss is the mean of, about
PAIRED_LOSS_TOLERANCE = 0.1  # of the own loss: how far apart paired chains that agree may be
SAMPLERS = {
    "mh": "Metropolis-Hastings by the {energy} score, from {start}",
    "heat-bath": "heat bath by the {energy} score, from {start}",
    "gibbs": "masked-conditional Gibbs, of no energy, from {start}",
    "ancestral": "token by token, from {start}",
    "enumerated": "the stationary distribution of Gibbs sweeps, over all states",
}
STARTS = {"test": "test sequences", "unigram": "unigram noise"}


def describe(
    clones: Iterable[tuple[str | Path, str | Path]],
    train: str | Path,
    test: str | Path,
    device: str = "cpu",
) -> list[Card]:
    """Measures the cards of all clones of a source, in their order.

    clones: the manifest of each, and that of its generator's run. train, test: sequences of the
    source. `ArtifactError` names a file that is damaged.
    """
    text, test = Text(Sequences.open(train)), Sequences.open(test)
    found = [_Chains(Path(path), run, text, test, device) for path, run in clones]
    return [_card(one, found) for one in found]


class _Chains:
    """A clone of a trained model, measured after each saved sweep, and test text beside it."""

    def __init__(self, path: Path, run: str | Path, text: Text, test: Sequences, device: str):
        from manybody.io.devices import pick
        from manybody.models.stored import load_model

        self.path = path
        self.about, self.trace = tables.read_trace(path)
        self.known = chains.known(path)
        model = load_model(run, self.about["generator"]["step"], pick(device))
        rows, sweeps = self.about.get("rows"), self.about["sweeps"]
        files = (Manifest.read(path, "clones").file(f"sweep-{sweep}.parquet") for sweep in sweeps)
        beside = test[: self.about["chains"]] if rows is None else test.tokens[rows]
        sets = [beside, *(Sequences.open(file).tokens for file in files)]
        copied = text.copied([tokens[:SEQUENCES] for tokens in sets])
        self.text, *saved = (
            Measured(
                loss=_loss(model, tokens),
                unigram=text.distance(tokens, 1),
                bigram=text.distance(tokens, 2),
                copied=share,
            )
            for tokens, share in zip(sets, copied, strict=True)
        )
        self.saved = dict(zip(sweeps, saved, strict=True))
        # What two clones have in common that differ by their start alone, and by what is drawn.
        keys = ("generator", "sampler", "energy", "gauge", "order", "reference")
        self.recipe = [self.about.get(key) for key in keys]


def _loss(model, tokens: np.ndarray) -> Estimate:
    """The model's loss on tokens (N, L), in nats a token, with its error over sequences."""
    import torch

    from manybody.models.objectives import masked_positions, sequence_sums

    rows = torch.from_numpy(tokens[:SEQUENCES].astype(np.int64))
    every = model.about.causal or rows.numel() <= PREDICTIONS
    masks = None if every else masked_positions(*rows.shape, PREDICTIONS / rows.numel(), 0)
    sums = sequence_sums(model, rows, masks)
    return tables.ratio(sums.loss_sum.numpy(), sums.predictions.numpy())


def _card(one: _Chains, found: list[_Chains]) -> Card:
    about, made, known = one.about, one.about["generator"], one.known
    agree, settled, why = None, 0, "the draws are independent"
    numbers = {"kept": None, "rhat": None, "effective": about["chains"]}
    if about.get("sampler") not in INDEPENDENT:
        numbers = {name: known[name] if math.isfinite(known[name]) else None for name in numbers}
        agree, sweep, pair = _paired(one, found)
        why = f"{known['verdict']}; {pair}"
        settled = sweep if agree == "yes" and known["kept"] < chains.FORGOTTEN else math.inf
    return Card(
        name=known["name"],
        source=known["source"],
        digest=sha256(one.path),
        label=known["generator"],
        model=f"{made['model']} of seed {made['seed']} at step {made['step']}",
        sampler=SAMPLERS[about.get("sampler", "mh")].format(
            energy=about["energy"], start=STARTS[about["chain_init"]]
        ),
        text=one.text,
        task="next" if about.get("sampler") == "ancestral" else "masked",
        states=[
            State(sweep=sweep, sample=sweep >= settled, **measured.model_dump())
            for sweep, measured in one.saved.items()
        ],
        agree=agree,
        why=why,
        **numbers,
    )


def _paired(one: _Chains, found: list[_Chains]) -> tuple[str | None, int, str]:
    """Says if chains from the other start agree (None: there are none), after how many sweeps, the
    most that both have saved, and both in words."""
    start = {"test": "noise", "unigram": "text"}[one.about["chain_init"]]
    common = [
        (max(one.saved.keys() & other.saved.keys(), default=-1), other)
        for other in found
        if other.recipe == one.recipe and other.about["chain_init"] != one.about["chain_init"]
    ]
    sweep, other = max(common, key=lambda pair: pair[0], default=(-1, None))
    if sweep < 0:
        return None, sweep, f"no chains from {start} with the same sweeps to compare with"
    pair = (one, other) if start == "noise" else (other, one)
    count = min(each.about["chains"] for each in pair)
    traces, losses = [each.trace for each in pair], [each.saved[sweep].loss for each in pair]
    score, loss, agree = chains.agreement(traces, losses, sweep, count)
    most = PAIRED_LOSS_TOLERANCE * one.saved[sweep].loss[0]
    if agree == "yes" and abs(loss[0]) + margin(loss[1], count) > most:
        agree = "undecided"  # as much evidence as against
    said = {"yes": "agree", "no": "do not agree", "undecided": "may agree or not"}[agree]
    words = (
        f"chains from text and from noise {said} (beside {other.known['name']} after {sweep} "
        f"sweeps, noise less text: scores {rounded(score)}, own losses {rounded(loss)} nats a "
        "token)"
    )
    return agree, sweep, words
