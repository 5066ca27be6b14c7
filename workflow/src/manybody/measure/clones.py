"""Measures the cards of clones: of chains of trained models, and of n-grams."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.data.overlap import Text
from manybody.io import tables
from manybody.io.atomic import sha256
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.measure import chains
from manybody.measure.cards import Card, Estimate, Paired, State
from manybody.measure.intervals import margin
from manybody.models import labels

SEQUENCES = 1000  # of a set, the first ones, that losses and copies are looked for in
PREDICTIONS = 2**13  # masked tokens of a set that a loss is the mean of, about
PAIRED_LOSS_TOLERANCE = 0.1  # of the own loss: how far apart paired chains that agree may be
POINTS = 60  # sweeps of which a card has the score
SAMPLERS = {
    "mh": "Metropolis-Hastings by the {energy} score",
    "heat-bath": "heat bath by the {energy} score",
    "gibbs": "masked-conditional Gibbs, of no energy",
    "ancestral": "token by token",
}
STARTS = {"test": "test sequences", "unigram": "unigram noise"}
N_GRAMS = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
SMOOTHINGS = {
    "kneser-ney": "interpolated Kneser-Ney",
    "maximum-entropy": "the law of largest entropy",
}


def describe(
    clones: Iterable[tuple[str | Path, str | Path]],
    n_grams: Iterable[str | Path],
    train: str | Path,
    test: str | Path,
    device: str = "cpu",
) -> list[Card]:
    """Measures the cards of all clones of a source, in their order, n-grams last.

    clones: the manifest of each, and that of its generator's run. n_grams: of each clone by
    n-grams the test sequences, whose document has what was measured when it was drawn. train, test:
    sequences of the source. A loss is taken on at most `SEQUENCES` sequences and about
    `PREDICTIONS` tokens, so that a card takes `PREDICTIONS` forward passes for each saved sweep and
    for the text. Raises `ArtifactError` for a file that is missing, altered or not what it should
    be.
    """
    text, test = Text(Sequences.open(train)), Sequences.open(test)
    found = [_Chains(Path(path), run, text, test, device) for path, run in clones]
    return [*(_card(one, found) for one in found), *map(_n_gram_card, map(Path, n_grams))]


class _Chains:
    """A clone of a trained model, with losses after each saved sweep, and how like the text it is:
    for each measure the value of the text beside it, and of each saved sweep."""

    def __init__(self, path: Path, run: str | Path, text: Text, test: Sequences, device: str):
        from manybody.io.devices import pick
        from manybody.models.stored import load_model

        self.path, self.name = path, path.parent.name
        self.about, self.trace = tables.read_trace(path)
        self.exact = self.about.get("sampler") == "ancestral"
        model = load_model(run, self.about["generator"]["step"], pick(device))
        rows, sweeps = self.about.get("rows"), self.about["sweeps"]
        files = (Manifest.read(path, "clones").file(f"sweep-{sweep}.parquet") for sweep in sweeps)
        beside = test[: self.about["chains"]] if rows is None else test.tokens[rows]
        sets = [beside, *(Sequences.open(file).tokens for file in files)]
        self.text, *losses = (_loss(model, tokens) for tokens in sets)
        self.losses = dict(zip(sweeps, losses, strict=True))
        self.likeness = {
            "unigram": [text.distance(tokens, 1) for tokens in sets],
            "bigram": [text.distance(tokens, 2) for tokens in sets],
            "copied": text.copied([tokens[:SEQUENCES] for tokens in sets]),
        }
        # What two clones have in common that differ by their start alone, and by what is drawn.
        keys = ("generator", "sampler", "energy", "gauge", "order", "reference", "annealing")
        self.recipe = [self.about.get(key) for key in (*keys, "inverse_temperatures")]

    def states(self, settled: float) -> list[State]:
        """The saved states, samples from sweep `settled` on."""
        found = []
        for place, (sweep, loss) in enumerate(self.losses.items(), start=1):
            called = "a sample" if sweep >= settled else f"the state after {sweep} sweeps"
            likeness = {name: (own[place], own[0]) for name, own in self.likeness.items()}
            found.append(_state(None if self.exact else sweep, loss, called, likeness))
        return found


def _state(sweep: int | None, loss: Estimate, called: str, likeness: dict[str, tuple]) -> State:
    """A state whose measures of likeness are those of the clone and of text; None if not known."""
    known = {name: None if pair[0] is None else pair for name, pair in likeness.items()}
    return State(sweep=sweep, loss=loss, called=called, **known)


def _loss(model, tokens: np.ndarray) -> Estimate:
    """The model's loss on tokens (N, L), in nats a token, with its error over sequences."""
    import torch

    from manybody.measure.losses import masked_positions
    from manybody.models.objectives import sequence_sums

    rows = torch.from_numpy(tokens[:SEQUENCES].astype(np.int64))
    share = PREDICTIONS / rows.numel()
    masks = None
    if share < 1 and not model.about.causal:
        masks = masked_positions(*rows.shape, share, 0)
    sums = sequence_sums(model, rows, masks)
    return tables.ratio(sums.loss_sum.numpy(), sums.predictions.numpy())


def _card(one: _Chains, found: list[_Chains]) -> Card:
    about, made, last = one.about, one.about["generator"], one.trace.iloc[-1]
    paired, settled, why = None, 0.0, "each token but the first is drawn anew"
    scores, rhat, kept, effective = None, None, None, about["chains"]
    if not one.exact:
        scores, kept = _scores(one.trace), 1 - float(last["changed"])
        rhat, effective = (_finite(last[name]) for name in ("rhat", "effective_samples"))
        paired, agreed = _paired(one, found)
        why = f"{chains.in_words(float(last['rhat']), kept)}; {agreed}"
        settles = paired and paired.agree == "yes" and kept < chains.FORGOTTEN
        settled = paired.sweep if settles else math.inf
    return Card(
        name=one.name,
        source=about["source"],
        digest=sha256(one.path),
        label=labels.target({"original": False, **about}, rank=True),
        model=made["model"],
        seed=made["seed"],
        step=made["step"],
        order=None if made["nominal"] else made["order"],
        sampler=sampler_in_words(about),
        start=STARTS[about["chain_init"]],
        text=one.text,
        task="next" if one.exact else "masked",
        states=one.states(settled),
        scores=scores,
        paired=paired,
        rhat=rhat,
        effective=effective,
        kept=kept,
        why=why,
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _scores(trace: pd.DataFrame) -> list[tuple]:
    """Every so many sweeps, the first and the last among them."""
    places = np.unique(np.linspace(0, len(trace) - 1, POINTS).round().astype(int))
    found = trace.iloc[places][["sweep", "score", "score_se"]]
    return list(found.itertuples(index=False, name=None))


def _paired(one: _Chains, found: list[_Chains]) -> tuple[Paired | None, str]:
    """Chains from the other start, after the most sweeps that both have saved, and in words whether
    they agree or why there are none."""
    start = {"test": "noise", "unigram": "text"}[one.about["chain_init"]]
    others = [
        other
        for other in found
        if other.recipe == one.recipe and other.about["chain_init"] != one.about["chain_init"]
    ]
    if not others:
        return None, f"no chains from {start} are there to compare with"
    common = [(max(one.losses.keys() & other.losses.keys(), default=-1), other) for other in others]
    sweep, other = max(common, key=lambda pair: pair[0])
    if sweep < 0:
        return None, f"{others[0].name} from {start} has saved none of the same sweeps"
    pair = (one, other) if start == "noise" else (other, one)
    count = min(each.about["chains"] for each in pair)
    traces, losses = zip(*((each.trace, each.losses[sweep]) for each in pair), strict=True)
    score, loss, _, agree = chains.agreement(traces, losses, sweep, count)
    most = PAIRED_LOSS_TOLERANCE * one.losses[sweep][0]
    if agree == "yes" and abs(loss[0]) + margin(loss[1], count) > most:
        agree = "undecided"  # as much evidence as against
    said = {"yes": "agree", "no": "do not agree", "undecided": "may agree or not"}[agree]
    paired = Paired(name=other.name, sweep=sweep, score=score, loss=loss, agree=agree)
    return paired, f"chains from text and from noise {said}"


def sampler_in_words(about: dict) -> str:
    """Names the sampler of a clone, with its score, its annealing and its temperatures."""
    text = SAMPLERS[about.get("sampler", "mh")].format(energy=about["energy"])
    if about.get("annealing"):
        first, sweeps = about["annealing"]
        text += f", {sweeps} sweeps of annealing from inverse temperature {first:g}"
    temperatures = about.get("inverse_temperatures", [1.0])
    if len(temperatures) > 1:
        text += f", {len(temperatures)} inverse temperatures down to {temperatures[-1]:g}"
    return text


def _n_gram_card(path: Path) -> Card:
    """The card of n-grams, of what was measured when they were drawn."""
    clone = Sequences.open(path)
    about, said = clone.about, clone.about["card"]
    order, loss, why = about["order"], said["loss"], "it is drawn exactly"
    if loss["impossible"]:
        why += f"; it gives {loss['impossible']:.0%} of the test sequences no probability"
    measured = {**said["distance"], "copied": said["copied"]}
    likeness = {name: (both["clone"], both["text"]) for name, both in measured.items()}
    return Card(
        name=about["source"],
        source=about["of"],
        digest=sha256(path),
        label=f"{N_GRAMS.get(order, f'{order}-grams')}, {SMOOTHINGS[about['smoothing']]}",
        model=about["source"],
        order=order,
        sampler="token by token",
        text=loss["text"],
        task="next",
        states=[_state(None, loss["clone"], "a sample", likeness)],
        effective=len(clone),
        why=why,
        **dict.fromkeys(("seed", "step", "start", "scores", "paired", "rhat", "kept")),
    )
