"""The card of each clone of a text: measured on the clone, judged by the rules of claims."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.claims import labels, verdicts
from manybody.data import RUN
from manybody.data.likeness import Text
from manybody.io import tables
from manybody.io.atomic import sha256
from manybody.io.cards import (
    Card,
    Distance,
    Generator,
    Lacking,
    Loss,
    Measured,
    Scores,
    State,
    Twins,
)
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences

SEQUENCES = 1000  # of a set, the first ones, that losses and copies are looked for in
PREDICTIONS = 2**13  # masked tokens of a set that a loss is the mean of, about
CLOSE = 0.1  # of the generator's own loss: how far apart twins that agree may be
POINTS = 60  # sweeps of which a card has the score
EXACT = "it is drawn exactly"
SHORT = Lacking(lacking=f"its sequences are shorter than the {RUN} tokens that count as copied")
SAMPLERS = {
    "mh": "Metropolis-Hastings by the {energy} score",
    "heat-bath": "heat bath by the {energy} score",
    "gibbs": "masked-conditional Gibbs, of no energy",
    "ancestral": "token by token",
}
N_GRAMS = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
SMOOTHINGS = {
    "kneser-ney": "interpolated Kneser-Ney",
    "maximum-entropy": "the law of largest entropy",
}


@dataclass(frozen=True)
class _Chains:
    """A clone of a trained model, and the manifest of its generator's run."""

    path: Path
    run: Path

    @cached_property
    def manifest(self) -> Manifest:
        return Manifest.read(self.path, "clones")

    @cached_property
    def about(self) -> dict:
        return self.manifest.about

    @cached_property
    def trace(self) -> pd.DataFrame:
        return tables.read_trace(self.path)[1]

    @property
    def name(self) -> str:
        return self.path.parent.name

    @property
    def generator(self) -> tuple[str, int]:
        return str(self.run), self.about["generator"]["step"]

    @property
    def sampler(self) -> str:
        return self.about.get("sampler", "mh")

    @property
    def exact(self) -> bool:
        return self.sampler == "ancestral"

    def tokens(self, sweep: int) -> np.ndarray:
        return Sequences.open(self.manifest.file(f"sweep-{sweep}.parquet")).tokens

    def last(self, column: str) -> float:
        return float(self.trace[column].iloc[-1])

    def twin_of(self, other: "_Chains") -> bool:
        """Whether they differ by their start alone, and by what is drawn."""
        keys = ("energy", "gauge", "order", "reference", "annealing", "inverse_temperatures")
        mine, its = ([one.about.get(key) for key in keys] for one in (self, other))
        alike = mine == its and self.sampler == other.sampler and self.generator == other.generator
        return alike and self.about["chain_init"] != other.about["chain_init"]


def describe(
    clones: Sequence[tuple[str | Path, str | Path]],
    n_grams: Iterable[str | Path],
    train: str | Path,
    test: str | Path,
    device: str = "cpu",
) -> list[Card]:
    """Cards of all clones of a source, in their order, n-grams last.

    clones: the manifest of each, and that of its generator's run. n_grams: of each clone by
    n-grams the test sequences, whose document has what was measured when it was drawn. train, test:
    sequences of the source. A loss is taken on at most `SEQUENCES` sequences and about
    `PREDICTIONS` tokens, so that a card takes `PREDICTIONS` forwards for each saved sweep and for
    the text. Raises `ArtifactError` for a file that is missing, altered or not what it should be.
    """
    chains = [_Chains(Path(path), Path(run)) for path, run in clones]
    given, test = Text(Sequences.open(train)), Sequences.open(test)
    sets = {}  # (clone, saved sweep, or None for the text beside it) -> tokens
    for one in chains:
        sets[one.name, None] = _text(one.about, test)[0]
        sets |= {(one.name, sweep): one.tokens(sweep) for sweep in one.about["sweeps"]}
    copies = given.copied([tokens[:SEQUENCES] for tokens in sets.values()])
    measured = {
        key: {
            "unigram": given.distance(tokens, 1),
            "bigram": given.distance(tokens, 2),
            "copied": copied,
        }
        for (key, tokens), copied in zip(sets.items(), copies, strict=True)
    }
    losses = dict(_losses(chains, sets, device))
    found = [
        _card(one, _text(one.about, test)[1], losses, measured, _twins(one, chains, losses))
        for one in chains
    ]
    return [*found, *(_n_gram_card(Path(path)) for path in n_grams)]


def _text(about: dict, test: Sequences) -> tuple[np.ndarray, str]:
    """The test sequences that a clone is compared with, and which these are."""
    if about.get("rows") is not None:
        return test.tokens[about["rows"]], "the test sequences that its chains started from"
    count = min(about["chains"], len(test))
    return test[:count], f"the first {count} test sequences"


def _losses(chains: list[_Chains], sets: dict, device: str):
    """The generator's loss on each of `sets`, with the same keys; each model is read once."""
    from manybody.io.devices import pick
    from manybody.models.stored import load_model

    for generator in sorted({one.generator for one in chains}):
        model = load_model(*generator, pick(device))
        known: dict[bytes, Measured] = {}  # clones with one chain_seed have the same text
        for one in chains:
            for sweep in (None, *one.about["sweeps"]) if one.generator == generator else ():
                tokens = sets[one.name, sweep]
                key = tokens.tobytes()
                if key not in known:
                    known[key] = _loss(model, tokens)
                yield (one.name, sweep), known[key]


def _loss(model, tokens: np.ndarray) -> Measured:
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
    value, error = tables.ratio(sums.loss_sum.numpy(), sums.predictions.numpy())
    return Measured(value=value, error=error)


def _state(one: _Chains, sweep: int, losses: dict, measured: dict, twins: Twins | Lacking) -> State:
    loss, own, text = losses[one.name, sweep], measured[one.name, sweep], measured[one.name, None]
    settled = (
        isinstance(twins, Twins)
        and twins.agree == "yes"
        and sweep >= twins.sweep
        and 1 - one.last("changed") < verdicts.FORGOTTEN
    )
    return State(
        sweep=Lacking(lacking=EXACT) if one.exact else sweep,
        loss=loss,
        ratio=_ratio(loss, losses[one.name, None]),
        called="a sample" if one.exact or settled else f"the state after {sweep} sweeps",
        **{
            name: SHORT if own[name] is None else Distance(clone=own[name], text=text[name])
            for name in own
        },
    )


def _ratio(clone: Measured, text: Measured) -> Measured:
    value = clone.value / text.value
    parts = (one.error / one.value for one in (clone, text))
    return Measured(value=value, error=value * math.hypot(*parts))


def _twins(one: _Chains, chains: list[_Chains], losses: dict) -> Twins | Lacking:
    """How chains from text and from noise compare, after the most sweeps that both have saved."""
    if one.exact:
        return Lacking(lacking=f"{EXACT}, whatever its start")
    others = [other for other in chains if one.twin_of(other)]
    start = {"test": "noise", "unigram": "text"}[one.about["chain_init"]]
    if not others:
        return Lacking(lacking=f"no chains from {start} are there to compare with")
    common = [set(one.about["sweeps"]) & set(other.about["sweeps"]) for other in others]
    sweep, other = max(
        ((max(sweeps), other) for sweeps, other in zip(common, others, strict=True) if sweeps),
        key=lambda found: found[0],
        default=(None, None),
    )
    if other is None:
        return Lacking(lacking=f"{others[0].name} from {start} has saved none of the same sweeps")
    pair = (one, other) if start == "noise" else (other, one)
    count = min(each.about["chains"] for each in pair)
    own = [(losses[each.name, sweep].value, losses[each.name, sweep].error) for each in pair]
    found = verdicts.agreement([each.trace for each in pair], own, sweep, count)
    score, loss = (Measured(value=value, error=error) for value, error in found[:2])
    agree, most = found.holds, CLOSE * losses[one.name, sweep].value
    if agree == "yes" and abs(loss.value) + verdicts.margin(loss.error, count) > most:
        agree = "undecided"  # as much evidence as against
    return Twins(name=other.name, sweep=sweep, score=score, loss=loss, agree=agree)


def _card(one: _Chains, on: str, losses: dict, measured: dict, twins: Twins | Lacking) -> Card:
    about, made = one.about, one.about["generator"]
    exact, text = one.exact, losses[one.name, None]
    kept = 1 - one.last("changed")
    every = "every token is drawn anew, none is refused"
    few = "there are too few sweeps, or its score does not move"
    anew = "each token but the first is drawn anew"
    return Card(
        name=one.name,
        source=about["source"],
        digest=sha256(one.path),
        generator=Generator(
            model=made["model"],
            seed=made["seed"],
            step=made["step"],
            label=labels.target({"original": False, **about}, rank=True),
            order=_order(made),
        ),
        sampler=_sampler(one),
        start={"test": "test sequences", "unigram": "unigram noise"}[about["chain_init"]],
        sequences=about["chains"],
        loss=Loss(
            text=text,
            task="next" if exact else "masked",
            masked=Lacking(lacking="its model predicts no masked token") if exact else text,
            on=on,
        ),
        states=[_state(one, sweep, losses, measured, twins) for sweep in about["sweeps"]],
        energy=Lacking(lacking="it is drawn from no energy") if exact else about["energy"],
        scores=Lacking(lacking=f"{EXACT}, without sweeps") if exact else _scores(one.trace),
        twins=twins,
        rhat=Lacking(lacking="its sequences are independent")
        if exact
        else _known(one, "rhat", few),
        effective=about["chains"] if exact else _known(one, "effective_samples", few),
        accepted=(
            _known(one, "accepted", "no other token was proposed in the last sweep")
            if one.sampler == "mh"
            else Lacking(lacking=every)
        ),
        kept=Lacking(lacking=anew) if exact else kept,
        swapped=_swapped(one),
        why=anew if exact else _why(one.last("rhat"), kept, twins),
    )


def _order(made: dict) -> int | Lacking:
    if made["order"] is None:
        return Lacking(lacking="nothing but the length of the sequences bounds it")
    if made["nominal"]:
        return Lacking(lacking=f"that of {made['order']} is nominal: LayerNorm bounds nothing")
    return made["order"]


def _sampler(one: _Chains) -> str:
    text = SAMPLERS[one.sampler].format(energy=one.about["energy"])
    if one.about.get("annealing"):
        first, sweeps = one.about["annealing"]
        text += f", {sweeps} sweeps of annealing from inverse temperature {first:g}"
    ladder = one.about.get("inverse_temperatures", [1.0])
    if len(ladder) > 1:
        text += f", {len(ladder)} inverse temperatures down to {ladder[-1]:g}"
    return text


def _scores(trace: pd.DataFrame) -> Scores:
    """Every so many sweeps, the first and the last among them."""
    places = np.unique(np.linspace(0, len(trace) - 1, POINTS).round().astype(int))
    found = trace.iloc[places]
    return Scores(
        sweep=found["sweep"].tolist(),
        value=found["score"].tolist(),
        error=found["score_se"].tolist(),
    )


def _known(one: _Chains, column: str, otherwise: str) -> float | Lacking:
    value = one.last(column)
    return value if math.isfinite(value) else Lacking(lacking=otherwise)


def _swapped(one: _Chains) -> float | Lacking:
    """The pair of neighbouring temperatures that swaps least, over the second half of sweeps."""
    if "tempering.parquet" not in one.manifest.names():
        return Lacking(lacking="its chains have one temperature at a time")
    found = pd.read_parquet(one.manifest.file("tempering.parquet"))
    half = found[found["sweep"] > found["sweep"].max() / 2]
    return float(half.groupby("inverse_temperature")["swapped"].mean().min())


def _why(rhat: float, kept: float, twins: Twins | Lacking) -> str:
    settled = verdicts.in_words(rhat, kept)
    return f"{settled}; {twins.lacking if isinstance(twins, Lacking) else twins.words}"


def _n_gram_card(path: Path) -> Card:
    """The card of n-grams, of what was measured when they were drawn."""
    clone = Sequences.open(path)
    about, said = clone.about, clone.about["card"]
    order, smoothing = about["order"], SMOOTHINGS[about["smoothing"]]
    text, drawn = (said["loss"][key] and _measured(said["loss"][key]) for key in ("text", "clone"))
    masked, impossible = said["loss"]["masked"], said["loss"]["impossible"]
    never = Lacking(lacking="it gives no test sequence any probability")
    exact = Lacking(lacking=f"{EXACT}, without chains")
    copied = said["copied"]["clone"]
    on = f"the first {len(clone)} test sequences"
    if impossible:
        on = f"the {1 - impossible:.0%} of {on} that its law gives a probability"
    state = State(
        sweep=exact,
        loss=drawn,
        ratio=_ratio(drawn, text) if text else never,
        unigram=said["distance"]["unigram"],
        bigram=said["distance"]["bigram"],
        copied=SHORT if copied is None else said["copied"],
        called=said["state"],
    )
    return Card(
        name=about["source"],
        source=about["of"],
        digest=sha256(path),
        generator=Generator(
            model=about["source"],
            seed=Lacking(lacking="n-grams are counted, not trained"),
            step=Lacking(lacking="n-grams are counted, not trained"),
            label=f"{N_GRAMS.get(order, f'{order}-grams')}, {smoothing}",
            order=order,
        ),
        sampler="token by token",
        start=exact,
        sequences=len(clone),
        loss=Loss(
            text=text or never,
            task="next",
            masked=_measured(masked) if masked else never,
            on=on,
        ),
        states=[state],
        energy=Lacking(lacking="it is drawn from no energy"),
        scores=exact,
        twins=exact,
        rhat=exact,
        effective=len(clone),
        accepted=exact,
        kept=exact,
        swapped=exact,
        why=EXACT,
    )


def _measured(pair: Sequence[float]) -> Measured:
    return Measured(value=pair[0], error=pair[1])
