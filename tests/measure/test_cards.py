"""Cards of clones: every kind of clone has a whole one, and its numbers are those of the clone."""

import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

import manybody as mb
from manybody.data import overlap
from manybody.io import tables
from manybody.io.atomic import ArtifactError
from manybody.measure import cards, clones
from manybody.models.samplers import ENERGIES, NEEDS
from manybody.sampling import metropolis
from manybody.sampling.draws import unigram

VOCABULARY, LENGTH, CHAINS = 24, 9, 40
BERT = dict(architecture="bert", layers=1, heads=2, width=8, mlp=16)
MODELS = {
    "n2": dict(architecture="factored", layers=2, rank=4, bias=True),
    "bert": BERT,
    "gpt": {**BERT, "architecture": "gpt"},
}
# Every sampler and every energy, and the same from noise.
CHAINED = {
    "raw": dict(model="n2"),
    "noise": dict(model="n2", chain_init="unigram"),
    "norm": dict(model="bert", energy="norm", sweeps=[4, 8]),
    "reference": dict(model="n2", energy="reference", sampler="heat-bath"),
    "gibbs": dict(model="bert", sampler="gibbs", sweeps=[4, 8]),
    "ancestral": dict(model="gpt", energy="norm", sampler="ancestral", sweeps=[1]),
}
# What a clone does not have: all else is a value.
NEVER = {
    **{name: {"agree"} for name in CHAINED}, "raw": set(), "noise": set(),
    "ancestral": {"agree", "rhat", "kept"},
}  # fmt: skip


def drawn(folder, name, model, tokens, model_name, chain_init="test", **given):
    """A clone as the pipeline's script draws it."""
    energy = given.get("energy", "raw")
    split = "test" if chain_init == "test" else "train"
    initial, rows = metropolis.choose_initial(tokens(split), CHAINS, chain_init, VOCABULARY, 5)
    generator = {
        "model": model_name, "seed": 0, "step": 3, "last": True, "description": model.description,
        "order": model.about.order, "nominal": model.about.nominal,
    }  # fmt: skip
    return metropolis.sample(
        model, initial, folder / "clones" / name, energy=energy, gauge="none",
        sweeps=given.get("sweeps", [4, 40]), order="left-to-right", seed=5, stream=name,
        sampler=given.get("sampler", "mh"),
        mu=unigram(tokens("train"), VOCABULARY) if energy == "reference" else None,
        about={"source": "letters", "chain_init": chain_init, "rows": rows, "generator": generator},
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Clones of every kind, and their cards as they are read."""
    folder, random = tmp_path_factory.mktemp("cards"), np.random.default_rng(1)
    law = random.dirichlet(np.full(VOCABULARY, 2.0), VOCABULARY)
    parts = {}
    for split, count in (("train", 300), ("validation", 60), ("test", 60)):
        rows = random.integers(VOCABULARY, size=(count, LENGTH))
        for place in range(1, LENGTH):
            sums = law[rows[:, place - 1]].cumsum(axis=1)
            rows[:, place] = (sums < random.random(count)[:, None]).sum(axis=1)
        parts[split] = rows
        mb.write_sequences(folder / f"{split}.parquet", rows, VOCABULARY)
    runs = {}
    for name, sizes in MODELS.items():
        mb.train_model(
            folder / name, parts["train"], parts["validation"], VOCABULARY, steps=3, batch=8,
            **sizes,
        )  # fmt: skip
        runs[name] = folder / name / "manifest.json"
    chained = {}
    for name, given in CHAINED.items():
        given = dict(given)
        model = given.pop("model")
        path = drawn(folder, name, mb.load_model(runs[model]), parts.__getitem__, model, **given)
        chained[name] = (path, runs[model])
    ends = [folder / f"{split}.parquet" for split in ("train", "test")]
    found = clones.describe(list(chained.values()), *ends)
    cards.write(folder / "cards.json", found)
    read = cards.read(folder / "cards.json")
    assert read == found
    named = {card.name: card for card in read}
    return SimpleNamespace(
        cards=named, folder=folder, parts=parts, runs=runs, clones=chained, ends=ends
    )


# --- Every clone has a whole card -----------------------------------------------------------------


def lacking(value, path="") -> set[str]:
    """The paths of all that a card does not have, numbers of states left out."""
    if value is None:
        return {path}
    if isinstance(value, list):
        return set().union(*(lacking(part, path) for part in value))
    if isinstance(value, cards.Part):
        names = type(value).model_fields
        return set().union(
            *(lacking(getattr(value, name), f"{path}.{name}".strip(".")) for name in names)
        )
    return set()


def test_all_kinds_of_clones_are_tried():
    samplers = {given.get("sampler", "mh") for given in CHAINED.values()}
    samplers |= {"enumerated"}  # of few states: below
    assert samplers == set(NEEDS) == set(clones.SAMPLERS)
    assert {given.get("energy", "raw") for given in CHAINED.values()} == set(ENERGIES)


def test_a_card_of_draws_from_all_states(tmp_path):
    tokens = np.random.default_rng(0).integers(2, size=(300, 5))
    mb.write_sequences(tmp_path / "all.parquet", tokens, 2)
    mb.train_model(tmp_path / "bert", tokens, tokens[:60], 2, steps=3, batch=8, **BERT)
    model = mb.load_model(tmp_path / "bert" / "manifest.json")
    given = dict(energy="norm", sampler="enumerated", sweeps=[1])
    path = metropolis.sample(
        model, tokens[:40], tmp_path / "clone", gauge="none", order="left-to-right", seed=0,
        about={"source": "bits", "chain_init": "test", "rows": list(range(40)),
               "generator": {"model": "bert", "seed": 0, "step": 3, "last": True, "order": None,
                             "description": model.description, "nominal": False}}, **given,
    )  # fmt: skip
    ends = [tmp_path / "all.parquet"] * 2
    (card,) = clones.describe([(path, tmp_path / "bert" / "manifest.json")], *ends)
    assert (card.task, card.states[-1].called, card.effective) == ("masked", "a sample", 40)
    assert card.sampler == "the stationary distribution of Gibbs sweeps, over all states"


@pytest.mark.parametrize("name", CHAINED)
def test_a_card_has_every_value_of_its_kind(run, name):
    card, exact = run.cards[name], name == "ancestral"
    assert lacking(card) == NEVER[name]
    said = card.sentence()
    assert "None" not in said
    assert f"{card.states[-1].called} (" in said
    tokens = " of next tokens" if exact else ""
    assert f"loss{tokens} is {cards.rounded(card.text.loss)} on text" in said
    assert ("R-hat" in said) != exact
    assert card.why in said


# --- Its numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["raw", "noise", "gibbs", "ancestral"])
def test_losses_are_those_of_the_generator(run, name):
    card, (path, model) = run.cards[name], run.clones[name]
    model = mb.load_model(model)
    rows = run.parts["test"][:CHAINS]
    if name != "noise":
        rows = mb.read_sequences(path.parent / "starts.parquet").tokens
    text = mb.losses(model, rows)
    assert card.text.loss[0] == pytest.approx(text.mean(), abs=1e-5)
    assert card.text.loss[1] == pytest.approx(text.std(ddof=1) / CHAINS**0.5, rel=1e-3)
    for state in card.states:
        drawn = mb.read_sequences(path.parent / f"sweep-{state.sweep}.parquet")
        assert state.loss[0] == pytest.approx(mb.losses(model, drawn.tokens).mean(), abs=1e-5)


def test_distances_and_copies_are_those_of_counting(run):
    card, train = run.cards["raw"], run.parts["train"].tolist()
    tokens = mb.read_sequences(run.clones["raw"][0].parent / "sweep-40.parquet").tokens.tolist()
    starts = mb.read_sequences(run.clones["raw"][0].parent / "starts.parquet").tokens.tolist()
    for order, name in ((1, "unigram"), (2, "bigram")):
        laws = []
        for rows in (train, tokens, starts):
            grams = [
                tuple(row[place : place + order])
                for row in rows
                for place in range(LENGTH - order + 1)
            ]
            laws.append({gram: count / len(grams) for gram, count in Counter(grams).items()})
        distance = [getattr(measured, name) for measured in (card.states[-1], card.text)]
        for law, found in zip(laws[1:], distance, strict=True):
            away = sum(abs(law.get(gram, 0) - laws[0].get(gram, 0)) for gram in {*law, *laws[0]})
            assert found == pytest.approx(away / 2)
    stream = [token for row in train for token in row]
    known = {tuple(stream[place : place + 8]) for place in range(len(stream) - 7)}
    runs = [tuple(row[place : place + 8]) in known for row in tokens for place in (0, 1)]
    assert card.states[-1].copied == pytest.approx(np.mean(runs))


def test_diagnostics_are_those_of_the_trace(run):
    card, trace = run.cards["raw"], pd.read_parquet(run.clones["raw"][0].parent / "trace.parquet")
    assert card.rhat == trace["rhat"].iloc[-1]
    assert card.effective == trace["effective_samples"].iloc[-1]
    assert card.kept == pytest.approx(1 - trace["changed"].iloc[-1])


def test_paired_chains_are_compared_and_settle_what_a_clone_is(run):
    text, noise = run.cards["raw"], run.cards["noise"]
    ends = [tables.read_trace(run.clones[name][0])[1].iloc[-1] for name in ("raw", "noise")]
    score = ends[1]["score"] - ends[0]["score"], np.hypot(*(end["score_se"] for end in ends))
    (low, low_se), (high, high_se) = text.states[-1].loss, noise.states[-1].loss
    loss = high - low, np.hypot(low_se, high_se)
    said = (
        f"after 40 sweeps, noise less text: scores {cards.rounded(score)}, own losses "
        f"{cards.rounded(loss)} nats a token)"
    )
    assert f"(beside noise {said}" in text.why
    assert f"(beside raw {said}" in noise.why
    # Of an untrained model, whose law is nearly that of independent tokens.
    assert text.agree == noise.agree == "yes"
    assert [state.called for state in text.states] == ["the state after 4 sweeps", "a sample"]
    assert "chains from text and from noise agree" in text.why
    # Chains without a pair are not called a sample, however well they mix.
    assert run.cards["reference"].states[-1].called == "the state after 40 sweeps"
    assert "no chains from noise" in run.cards["reference"].why
    assert run.cards["ancestral"].states[-1].called == "a sample"
    assert run.cards["ancestral"].effective == CHAINS


def change_noise(monkeypatch, change):
    """Lets `change(about, trace)` alter what is read of the chains from noise."""
    read = tables.read_trace

    def other(path):
        about, trace = read(path)
        if path.parent.name == "noise":
            change(about, trace)
        return about, trace

    monkeypatch.setattr(tables, "read_trace", other)


@pytest.mark.parametrize(
    ("wrong", "tolerance", "answer"),
    [
        (["score"], clones.PAIRED_LOSS_TOLERANCE, "no"),
        (["rhat"], clones.PAIRED_LOSS_TOLERANCE, "no"),
        ([], 1e-4, "undecided"),  # too few to tell
    ],
)
def test_paired_chains_that_do_not_agree_are_no_samples(run, wrong, tolerance, answer, monkeypatch):
    def change(_, trace):
        for name in wrong:
            trace[name] += 1.0

    monkeypatch.setattr(clones, "PAIRED_LOSS_TOLERANCE", tolerance)
    change_noise(monkeypatch, change)
    found = clones.describe([run.clones[name] for name in ("raw", "noise")], *run.ends)
    assert [card.agree for card in found] == [answer, answer]
    assert found[0].states[-1].called == "the state after 40 sweeps"
    assert ("may agree or not" in found[0].why) == (answer == "undecided")


def both_starts(run):
    """The same clone from text and from noise, measured."""
    train, test = map(mb.read_sequences, run.ends)
    text = overlap.Text(train)
    return [clones._Chains(*run.clones[name], text, test, "cpu") for name in ("raw", "noise")]


@pytest.mark.parametrize(("margin", "answer"), [(0.1, "yes"), (0.125, "undecided")])
def test_losses_of_paired_chains_must_be_known_to_a_tenth(run, margin, answer):
    """Of 2 nats, so 0.2: losses 0.09 apart may be as far apart as that or not."""
    both = both_starts(run)
    student = stats.t.ppf(stats.norm.cdf(2), CHAINS - 1)
    for one, loss in zip(both, (2.0, 2.09), strict=True):
        one.saved[40] = one.saved[40].model_copy(update={"loss": (loss, margin / student / 2**0.5)})
    assert clones._paired(both[0], both)[0] == answer


@pytest.mark.parametrize(
    "changed",
    [
        dict(generator={"seed": 1}),
        dict(sampler="heat-bath"),
        dict(energy="norm"),
        dict(gauge="zero-sum"),
        dict(order="permuted"),
        dict(reference={"mu": 1}),
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_chains_that_differ_by_more_than_their_start_are_no_pair(run, changed, monkeypatch):
    def pair():
        both = both_starts(run)
        return clones._paired(both[0], both)[:2]

    assert pair() == ("yes", 40)

    def change(about, _):
        about |= changed | {"generator": about["generator"] | changed.get("generator", {})}

    change_noise(monkeypatch, change)
    assert pair() == (None, -1)


def test_a_loss_takes_no_more_forward_passes_than_it_says(run, monkeypatch):
    asked = []
    model = mb.load_model(run.runs["bert"])
    monkeypatch.setattr(clones, "PREDICTIONS", 4 * CHAINS)
    kept = model.masked_logits

    def counted(tokens, rows, positions):
        asked.append(len(rows))
        return kept(tokens, rows, positions)

    monkeypatch.setattr(model, "masked_logits", counted)
    with torch.no_grad():
        found = clones._loss(model, run.parts["test"][:CHAINS])
    assert sum(asked) == 4 * CHAINS
    assert found[0] == pytest.approx(mb.losses(model, run.parts["test"]).mean(), abs=0.2)


# --- Copies, and the file -------------------------------------------------------------------------


def test_copies_are_said_above_five_percent(run):
    card = run.cards["raw"]
    for share, said in ((0.049, False), (0.051, True)):
        state = card.states[0].model_copy(update={"copied": share})
        one = card.model_copy(update={"states": [state]})
        assert state.copies == said
        assert ("5% of its runs of 8 tokens stand in the training text" in
                one.sentence()) == said  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card.pop("rhat"), r"cards\.0\.rhat: Field required"),
        (lambda card: card.update(rhat="low"), r"cards\.0\.rhat"),
        (lambda card: card.update(more=1), r"cards\.0\.more: Extra inputs"),
        (lambda card: card["states"].clear(), r"cards\.0\.states: List should have at least 1"),
        (lambda card: card.update(text={}), r"cards\.0\.text\.loss: Field required"),
    ],
)
def test_a_card_that_is_not_whole_is_refused_by_file_and_key(run, tmp_path, change, said):
    document = json.loads((run.folder / "cards.json").read_text("utf-8"))
    change(document["cards"][0])
    (tmp_path / "letters.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ArtifactError, match=rf"letters\.json has no cards of clones: {said}"):
        cards.read(tmp_path / "letters.json")


def test_a_value_that_is_no_number_is_no_card():
    with pytest.raises(ValueError, match="finite"):
        cards.Measured(loss=(float("nan"), 1.0), unigram=0.1, bigram=0.2, copied=None)
