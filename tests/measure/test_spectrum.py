"""The order spectrum against enumeration, and what its draws, errors and laws are."""

from itertools import combinations, product
from math import factorial

import numpy as np
import pandas as pd
import pytest
import tabulated
import torch
from scipy.linalg import hadamard
from scipy.special import log_softmax

from manybody import models
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.many_body import vectors_tensor
from manybody.io import tables
from manybody.io.refusal import Refusal
from manybody.io.seeds import spawn
from manybody.measure import flips, spectra, spectrum
from manybody.measure.flips import Conditionals

NEVER = dict(first=0.0, higher=0.0)  # errors that are not reached, so that all forwards are used


def random_tokens(count, length, vocabulary, seed=0):
    return np.random.default_rng(seed).integers(0, vocabulary, (count, length))


def found(table, quantity, order):
    row = table[(table["quantity"] == quantity) & (table["order"] == order)]
    assert len(row) == 1
    return row.iloc[0]


def pairs(table, truth):
    """Value, error and truth of all results that have one."""
    for row in table.itertuples():
        if (row.quantity, row.order) in truth:
            yield f"{row.quantity} {row.order}", row.value, row.se, truth[row.quantity, row.order]


def population_truth(model, population, mu):
    """The mean over independent s and r of a population, and over targets."""
    targets = range(1 if model.causal else 0, population.shape[1])
    weights = [
        tabulated.walsh(model, s, r, target, mu)
        for s in population
        for r in population
        for target in targets
    ]
    return tabulated.spectrum(np.mean(weights, axis=0))


def pulls(model, vocabulary, count, blocks, first=0, **options):
    """(value - truth) / error of estimates from independent blocks of one population.

    The estimates have the seeds `first`, `first` + 1, ...
    """
    length, rng = 9 if vocabulary > 2 else 13, np.random.default_rng([7, first])
    population = rng.integers(0, vocabulary, (6, length))
    mu = np.arange(vocabulary, 0, -1) / sum(range(vocabulary + 1))
    truth, rows = population_truth(model, population, mu), []
    for seed in range(first, first + count):
        tokens = population[rng.integers(0, len(population), 2 * blocks)]
        table = spectrum.spectrum(model, tokens, mu=mu, seed=seed, **NEVER, **options).table
        rows.append({name: (value - of) / se for name, value, se, of in pairs(table, truth)})
    return pd.DataFrame(rows)


@pytest.mark.long
def test_errors_are_those_of_estimates():
    """Many draws a block, so that errors between blocks count and those of draws alone do not."""
    each = pulls(tabulated.model(9, 4, 3), 4, 40, 100, orders=2, forwards=7 * 640)
    assert set(each) == {"Var g 0", "mean degree 1", "M 1", "M 2"}
    assert (each.mean().abs() < 0.5).all()
    assert ((each.std() > 0.7) & (each.std() < 1.35)).all()
    assert each.abs().max().max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", [4, 2])  # N = 8 and 12
@pytest.mark.parametrize("degree", [3, 4, 8])
def test_pulls_of_400_estimates(degree, vocabulary):
    """The mean pull of 400 has an error of .05, that of 200 of .07, too near to .15 to decide.
    Estimates that are low have low errors, which makes the mean negative with few blocks."""
    length, first = 9 if vocabulary > 2 else 13, 1000 * (10 * vocabulary + degree)
    model = tabulated.dense(length, vocabulary, degree, seed=first)
    each = pulls(model, vocabulary, 400, 600, first, orders=3, forwards=15 * 5120)
    summary = pd.DataFrame({"mean": each.mean(), "sd": each.std(), "most": each.abs().max()})
    assert (summary["mean"].abs() <= 0.15).all()
    assert ((summary["sd"] - 1).abs() <= 0.1).all()
    assert (summary["most"] < 4.5).all()


@pytest.mark.parametrize("causal", [False, True])
def test_enumeration_is_the_definition(causal):
    model, mu = tabulated.model(5, 3, 3, causal=causal), np.array([0.5, 0.3, 0.2])
    tokens = random_tokens(12, 5, 3)
    result = spectrum.enumerated(model, tokens, mu=mu, seed=3)
    draws = spectrum.Draws(model, tokens, mu, "text", (), 1, 3)
    targets = range(1, 5) if causal else range(5)
    weights = [
        tabulated.walsh(model, s, r, target, mu)
        for s, r in zip(draws.s, draws.r, strict=True)
        for target in targets
    ]
    truth = tabulated.spectrum(np.mean(weights, axis=0))
    names = [name for name, value, _, of in pairs(result.table, truth)]
    assert {"Var g 0", "mean degree 1", "M 4", "W 1", "W 4"} <= set(names)
    for name, value, _, of in pairs(result.table, truth):
        assert value == pytest.approx(of, rel=1e-10, abs=1e-13), name


@pytest.mark.parametrize(
    ("model", "importance"),
    [
        (tabulated.dense(8, 2, 4), False),
        (tabulated.dense(8, 2, 4), True),
        pytest.param(tabulated.model(8, 2, 3, causal=True), True, marks=pytest.mark.long),
    ],
)
def test_draws_have_no_bias(model, importance):
    """Means over 60,000 draws, with errors of a percent, against all flips of the same blocks."""
    mu = np.array([0.6, 0.4])
    tokens = random_tokens(40, 8, 2)
    exact = spectrum.enumerated(model, tokens, mu=mu).table
    draws = spectrum.Draws(model, tokens, mu, "text", (), 1, 0)
    if importance:
        draws.learn_profile()
    draws.chunk = 3000 * len(draws.blocks)
    for order in (1, 2, 3):
        rows = draws.sets(order, 0)
        for name, part in rows.assign(value=rows["weight"] * rows["value"]).groupby("order"):
            each = np.zeros(draws.chunk)
            np.add.at(each, part["draw"], part["value"])
            quantity = ("M", name) if name else ("Var g", 0)
            expected = found(exact, *quantity).value
            error = each.std() / np.sqrt(draws.chunk)
            assert error < 0.015 * expected
            assert abs(each.mean() - expected) < 4 * error, quantity


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_factored_model_has_nothing_above_its_order(layers):
    torch.manual_seed(7)
    description = dict(architecture="factored", vocabulary=6, length=9, layers=layers)
    model = models.build({**description, "rank": None, "variant": "exact"}).double()
    with torch.no_grad():
        for weight in (*model.left, *model.right, model.bias):
            weight.normal_()
    degree = model.about.order - 1
    table = spectrum.spectrum(
        model, random_tokens(80, 9, 6), orders=degree + 1, forwards=2 ** (degree + 3) * 64, **NEVER
    ).table
    assert found(table, "M", degree + 1).draws >= 64
    assert abs(found(table, "M", degree + 1).value) < 1e-9 * found(table, "M", 1).value
    assert found(table, "M", degree).value > 1e-6 * found(table, "M", 1).value


def planted(length=8, vocabulary=4, order=4):
    """A Hamiltonian with terms of 1 to 4 bodies: its U is not centred."""
    rng = np.random.default_rng(6)
    couplings = vectors_tensor(rng.normal(size=(6, length)), order)
    places = np.indices(couplings.shape).reshape(order, -1)
    alike = (np.diff(np.sort(places, axis=0), axis=0) == 0).any(0).reshape(couplings.shape)
    couplings[alike] = 0
    colours = vectors_tensor(0.4 + rng.normal(size=(5, vocabulary)), order)
    return Hamiltonian(couplings, colours, 2 / Hamiltonian(couplings, colours, 1.0).logit_scale())


def from_tables(law, s, r, target, mu):
    """W_d, d = 0 .. 3, of one target from J and U alone: each tuple's own flips, by hand."""
    others = np.delete(np.arange(law.length), target)
    total = {}
    for sites in combinations(others, law.order - 1):
        strength = -law.beta * factorial(law.order) * law.couplings[(target, *sites)]
        for flipped in product((0, 1), repeat=len(sites)):
            colours = [r[j] if f else s[j] for j, f in zip(sites, flipped, strict=True)]
            part = strength * law.colours[(slice(None), *colours)] / 2 ** len(sites)
            for signs in product((0, 1), repeat=len(sites)):
                chosen = frozenset(j for j, sign in zip(sites, signs, strict=True) if sign)
                total[chosen] = total.get(chosen, 0) + (-1) ** np.dot(flipped, signs) * part
    weights = np.zeros(law.order)
    for chosen, g in total.items():
        weights[len(chosen)] += mu @ (g - mu @ g) ** 2
    return weights


@pytest.mark.long
def test_the_spectrum_of_a_planted_hamiltonian_is_that_of_its_tables():
    law = planted()
    assert (law.shares()[1:] > 0.1).all()  # of 2, 3 and 4 bodies
    model, tokens = tabulated.of_hamiltonian(law), random_tokens(40, 8, 4)
    mu = flips.unigram(tokens, 4)
    exact = spectrum.enumerated(model, tokens).table
    draws = spectrum.Draws(model, tokens, None, "text", (), 1, 0)
    weights = [
        from_tables(law, s, r, target, mu)
        for s, r in zip(draws.s, draws.r, strict=True)
        for target in range(8)
    ]
    truth = tabulated.spectrum(np.mean(weights, axis=0))
    compared = list(pairs(exact, truth))
    assert len(compared) == 2 + 3 + 3
    for name, value, _, of in compared:
        assert value == pytest.approx(of, rel=1e-10), name
    for degree in range(4, 8):
        assert abs(found(exact, "W", degree).value) < 1e-12 * truth["Var g", 0]
    # Its blocks are those that were enumerated, so that errors are too large, if anything.
    drawn = spectrum.spectrum(model, tokens, degree=3, forwards=9 * 1920, **NEVER).table
    for name, value, se, of in pairs(drawn, truth):
        assert abs(value - of) < 3 * se, name
        assert se < 0.4 * of, name


def summed(strength, vocabulary, causal):
    """Logits sum_j strength_ij V(s_j)."""
    values = torch.from_numpy(np.random.default_rng(0).normal(size=(vocabulary, vocabulary)))

    def masked(tokens, positions):
        return torch.einsum("nj,njv->nv", strength[positions], values[tokens])

    def next_tokens(tokens):
        size = tokens.shape[1]
        return torch.einsum("ij,njv->niv", strength[1 : size + 1, :size].tril(), values[tokens])

    return Conditionals(next_tokens if causal else masked, vocabulary, causal, 64)


def decaying(length, vocabulary=4, causal=False):
    """Strengths 1 / |i - j|: the influence of j falls as the square of its distance."""
    places = torch.arange(length)
    apart = (places[:, None] - places).abs().double()
    return summed(torch.where(apart > 0, 1 / apart, 0), vocabulary, causal)


def test_importance_takes_a_third_of_the_forwards():
    model, tokens = decaying(128), random_tokens(400, 128, 4)
    tables_ = [
        spectrum.spectrum(
            model, tokens, orders=1, forwards=3 * 64 * 25, importance=importance, **NEVER
        ).table
        for importance in (True, False)
    ]
    drawn, uniform = (found(table, "M", 1) for table in tables_)
    assert drawn.forwards == uniform.forwards == 3 * 64 * 25
    assert (uniform.se / drawn.se) ** 2 > 3
    assert abs(drawn.value - uniform.value) < 4 * np.hypot(drawn.se, uniform.se)


def test_draws_are_added_until_the_errors_are_reached():
    model, tokens = decaying(16), random_tokens(2000, 16, 4)
    table = spectrum.spectrum(model, tokens, orders=2, first=0.02).table
    pair = found(table, "M", 1)
    assert pair.reached
    assert pair.se <= 0.02 * pair.value
    assert pair.forwards == 3 * pair.draws
    assert found(table, "M", 2).draws == 4 * 64  # no more, as it vanishes
    fewer = found(spectrum.spectrum(model, tokens, orders=1, first=0.2).table, "M", 1)
    assert fewer.draws == 4 * 64 < pair.draws
    given = dict(orders=1, first=0.01, forwards=1000)
    capped = found(spectrum.spectrum(model, tokens, **given).table, "M", 1)
    assert not capped.reached
    assert capped.forwards == 3 * 64 * 5  # whole chunks within the cap
    with pytest.raises(Refusal, match="forwards: found 100; expected at least"):
        spectrum.spectrum(model, tokens, orders=1, forwards=100)
    # Enough for the first order alone: the others would have no draws.
    with pytest.raises(Refusal, match="forwards: found 500; expected at least"):
        spectrum.spectrum(model, tokens, orders=3, forwards=500)


def test_draws_end_where_only_more_blocks_would_help():
    model, tokens = decaying(16), random_tokens(40, 16, 4)
    pair = found(spectrum.spectrum(model, tokens, orders=1, first=0.01).table, "M", 1)
    assert not pair.reached
    assert pair.forwards < 20_000  # of 100,000
    assert pair.asked == 0.01 * pair.value < pair.floor < pair.se < 1.1 * pair.floor


def test_saved_draws_go_on_as_if_nothing_had_stopped(tmp_path):
    model, tokens = tabulated.model(6, 4, 2), random_tokens(40, 6, 4)
    saved, counted = [], []

    class Progress:
        def update(self, done):
            counted.append(done)

    given = dict(orders=2, **NEVER)
    whole = spectrum.spectrum(
        model, tokens, forwards=9000, save=saved.append, progress=Progress(), **given
    )
    assert len(saved) > 1
    assert sum(counted) == whole.table[whole.table["quantity"] == "M"]["forwards"].sum() <= 9000
    tables.SPECTRUM.write(tmp_path / "rows.parquet", saved[1], {"seed": 0})
    rows, about = tables.SPECTRUM.read(tmp_path / "rows.parquet")
    assert about == {"seed": 0}
    again = spectrum.spectrum(model, tokens, forwards=9000, rows=rows, **given)
    keys = ["order", "draw", "target"]
    first, second = (
        each.rows.astype({"value": float}).sort_values(keys, ignore_index=True)
        for each in (whole, again)
    )
    pd.testing.assert_frame_equal(first, second)
    pd.testing.assert_frame_equal(whole.table, again.table)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("law", ["text", "unigram", "model"])
def test_special_tokens_are_kept(law, causal):
    tokens = random_tokens(60, 8, 5, seed=1)
    tokens = np.where(tokens == 0, 1, tokens)
    tokens[:, 0] = 0
    tokens[::3, 5] = 0
    plain, seen = decaying(8, 5, causal), set()

    def logits(given, *positions):
        rows = given.numpy()
        allowed = tokens[:, : rows.shape[1]]
        # Special tokens stand where they stand in one of the blocks, and are never asked for.
        seen.update(tuple(row == 0) for row in rows)
        assert (rows[:, 0] == 0).all()
        assert set(map(tuple, rows == 0)) <= set(map(tuple, allowed == 0))
        if positions and law != "model":
            assert (rows[np.arange(len(rows)), positions[0].numpy()] != 0).all()
        return plain.logits(given, *positions)

    model = plain._replace(logits=logits)
    rows = spectrum.spectrum(
        model, tokens, law=law, special=(0,), orders=2, forwards=2000, **NEVER
    ).rows
    variance = rows[rows["order"] == 0]
    assert tokens[variance["block"], variance["target"]].all()  # none is the special token 0
    free = (tokens[rows["block"]] != 0) & (
        (np.arange(8) < rows["target"].to_numpy()[:, None])
        if causal
        else (np.arange(8) != rows["target"].to_numpy()[:, None])
    )
    drawn = rows["target"] > 0
    np.testing.assert_array_equal(rows["positions"][drawn], free.sum(1)[drawn])
    assert (rows["differing"] <= rows["positions"]).all()
    assert len(seen) == 2


def test_the_laws_of_what_takes_a_tokens_place():
    tokens, mu = random_tokens(2000, 4, 3), np.array([0.7, 0.2, 0.1])
    sure = torch.log(torch.tensor([0.25, 0.25, 0.5]))
    masked = Conditionals(lambda t, p: sure.expand(len(t), 3), 3)
    causal = Conditionals(lambda t: sure.expand(*t.shape, 3), 3, True)

    def law_of(name, model):
        draws = spectrum.Draws(model, tokens, mu, name, (), 1, 0)
        assert (draws.s == tokens[draws.blocks]).all()
        return draws, draws.r

    draws, r = law_of("text", masked)
    assert set(map(tuple, r)) <= set(map(tuple, tokens))
    assert not set(draws.blocks) & set(np.setdiff1d(np.arange(2000), draws.blocks))
    assert len(set(draws.blocks)) == 1000
    _, r = law_of("unigram", masked)
    np.testing.assert_allclose(np.bincount(r.ravel()) / r.size, mu, atol=0.03)
    for model in (masked, causal):
        draws, r = law_of("model", model)
        asked = r[:, 1:] if model.causal else r
        np.testing.assert_allclose(
            np.bincount(asked.ravel()) / asked.size, [0.25, 0.25, 0.5], atol=0.03
        )
        if model.causal:
            assert (r[:, 0] == draws.s[:, 0]).all()  # no token is before the first


def test_the_models_own_tokens_depend_on_their_context():
    """Conditionals that copy a neighbour: r is known from s."""
    tokens = random_tokens(40, 5, 7)
    far = 1e4 * torch.eye(7)
    causal = Conditionals(lambda t: far[(t + 1) % 7], 7, True)
    draws = spectrum.Draws(causal, tokens, None, "model", (), 1, 0)
    assert (draws.r[:, 1:] == (draws.s[:, :-1] + 1) % 7).all()
    masked = Conditionals(lambda t, p: far[(t[torch.arange(len(t)), p - 1]) % 7], 7)
    draws = spectrum.Draws(masked, tokens, None, "model", (), 30, 0)
    assert (draws.r == draws.r[:, :1]).mean() > 0.5  # sweeps see what was drawn before


def test_the_share_of_positions_that_differ_is_said():
    tokens = random_tokens(400, 6, 3)
    table = spectrum.spectrum(decaying(6, 3), tokens, orders=1, forwards=6000, **NEVER).table
    share = found(table, "differing", 0)
    assert abs(share.value - 2 / 3) < 4 * share.se < 0.1
    each = found(table, "M per differing", 1).value
    assert each == pytest.approx(found(table, "M", 1).value / (5 * share.value))


def test_states_of_results():
    tokens = random_tokens(60, 6, 3)
    flat = Conditionals(lambda t, p: torch.zeros(len(t), 3), 3)
    table = spectrum.spectrum(flat, tokens, orders=1, variance=1.0).table
    assert set(table["state"]) == {"no spectrum yet"}
    model = decaying(6, 3)
    variance = found(spectrum.spectrum(model, tokens, orders=1).table, "Var g", 0).value
    tiny = model._replace(logits=lambda *asked: 1e-5 * model.logits(*asked))  # 1e-10 of it
    for reference, expected in ((0.002, "measured"), (0.05, "no spectrum yet")):
        table = spectrum.spectrum(tiny, tokens, orders=1, variance=reference * variance).table
        assert set(table["state"]) == {expected}
    rows = pd.DataFrame(
        [(b, b, 0, k, 0, 1, 1, 1.0, v) for b, v in enumerate([0, 0, 1.0, 0]) for k in (0, 1)]
    )
    rows.columns = spectrum.COLUMNS
    assert found(spectrum.summary(rows), "M", 1).state == "upper bound"
    rows["value"] = 1 + 0.01 * rows["value"]
    assert found(spectrum.summary(rows), "M", 1).state == "measured"
    rows.loc[rows["order"] == 1, "value"] = 1e-10  # what rounding leaves
    assert found(spectrum.summary(rows), "M", 1).state == "upper bound"


def test_errors_are_those_of_blocks_not_of_draws():
    """Three blocks with a value each, drawn a hundred times: the error is that of three numbers,
    whose variance the bootstrap alone has two thirds of."""
    values = np.array([4.0, 5.0, 7.0])
    rows = pd.DataFrame(
        [
            (block, 3 * draw + block, 0, order, 0, 1, 1, 1.0, value)
            for order in (0, 1)
            for draw in range(100)
            for block, value in enumerate(values)
        ],
        columns=spectrum.COLUMNS,
    )
    table = spectrum.summary(rows)
    pair, degree = found(table, "M", 1), found(table, "mean degree", 1)
    assert pair.floor == pytest.approx(pair.se)  # nothing varies within blocks
    assert pair.value == pytest.approx(values.mean())
    assert pair.se == pytest.approx(values.std(ddof=1) / np.sqrt(3), rel=0.1)
    assert degree.value == pytest.approx(1)
    assert degree.se < 1e-12  # of a ratio of the same numbers nothing is left


@pytest.mark.parametrize("causal", [False, True])
def test_shares_by_span(causal):
    """Sources 1 and 2 away, the latter with half the strength, a quarter of the influence."""
    length = 12
    strength = torch.zeros(length, length).double()
    strength[range(1, length), range(length - 1)] = 1
    strength[range(2, length), range(length - 2)] = 0.5
    rows = spectrum.spectrum(
        summed(strength, 4, causal), random_tokens(200, length, 4), orders=1, forwards=6000, **NEVER
    ).rows
    shares = spectra.ranges(rows, 1)
    assert shares["value"].sum() == pytest.approx(1)
    shares = shares.set_index("order")
    assert shares["value"].drop([1, 2]).abs().max() < 1e-20
    # 11 targets have a source one before, 10 have one two before.
    assert shares["value"][2] == pytest.approx(2.5 / 13.5, abs=0.02)
    assert 0 < shares["se"][2] < 0.02


def test_a_triple_spans_from_its_first_to_its_last():
    def masked(tokens, positions):
        rows = torch.arange(len(tokens))
        left, right = (tokens[rows, (positions + d) % 8] for d in (1, 3))
        return torch.stack([(left * right).double(), 0 * left, 0 * left], dim=1)

    rows = spectrum.spectrum(
        Conditionals(masked, 3), random_tokens(100, 8, 3), orders=2, forwards=7 * 640, **NEVER
    ).rows
    shares = spectra.ranges(rows, 2)
    shares = shares[shares["quantity"] == "span 2"]
    # i, i + 1, i + 3; around the end 7, 0, 2, then 5, 6, 0 and 6, 7, 1.
    assert set(shares["order"][shares["value"] > 1e-12]) == {3, 6, 7}


@pytest.mark.parametrize("causal", [False, True])
def test_the_map_of_a_passage_is_its_pairs(causal):
    """The influence in a sum over sources is known for each r, whatever the other tokens are."""
    length, tokens = 6, random_tokens(7, 6, 3)
    model, mu = decaying(length, 3, causal)._replace(batch=2), flips.unigram(tokens, 3, (2,))
    passage = random_tokens(1, length, 3, seed=9)[0]
    passage[4] = 2
    found_, pairs = spectra.influence_map(model, tokens, passage, special=(2,), contexts=7, seed=1)
    np.testing.assert_allclose(pairs, found_, atol=1e-12)
    targets = range(1, length) if causal else range(length)
    free = passage != 2
    for i, j in product(range(length), repeat=2):
        if i not in targets or not free[i] or not free[j] or (j >= i if causal else j == i):
            assert np.isnan(found_[i, j])
            continue
        expected = []
        for r in tokens:
            r = np.where(free & (r != 2), r, passage)
            alone = passage.copy()
            alone[j] = r[j]
            asked = np.full((1, 1), i) if not causal else np.arange(1, length)[None]
            both = [flips.ask(model, each[None], asked) for each in (passage, alone)]
            expected.append(flips.norm((both[0] - both[1]) / 2, mu)[0, i - 1 if causal else 0])
        assert found_[i, j] == pytest.approx(np.mean(expected), abs=1e-12)


def test_the_map_takes_as_many_targets_as_its_passes_allow():
    entry = {"orders": 2, "passage": 0, "law": "text", "forwards": 3 * 8 * 2 * 6}
    model = models.build(dict(architecture="bert", vocabulary=3, length=6, **ENCODER))
    (table,) = spectra.of_the_last(model, random_tokens(20, 6, 3), entry, None)
    assert table["quantity"].str.startswith("influence").sum() == 3 * 5
    assert (table["draws"] == 2 * 8).all()


@pytest.mark.long
@pytest.mark.parametrize("causal", [False, True])
def test_the_map_tells_pairs_from_higher_orders(causal):
    """The mean over draws of contexts is that of the cube, for each pair and each of the two."""
    model, tokens = tabulated.model(4, 3, 3, causal=causal), random_tokens(1, 4, 3)
    passage, few = (tokens[0] + 1) % 3, np.repeat(tokens, 4, axis=0)
    length, mu = 4, flips.unigram(few, 3)
    draws = np.array(
        [spectra.influence_map(model, few, passage, contexts=2, seed=seed) for seed in range(400)]
    )
    targets = np.arange(1, length) if causal else np.array([2])
    cube = flips.cube(model, passage, tokens[0], np.arange(length), targets)
    logits = torch.cat([part for _, part in cube]).numpy()
    logits = logits - (logits @ mu)[..., None]
    bits = np.arange(2**length)[:, None] >> np.arange(length) & 1
    for place, i in enumerate(targets):
        for j in range(i) if causal else set(range(length)) - {i}:
            change = (logits[:, place] * (1 - 2 * bits[:, [j]])).reshape(2**length, -1)
            both = (change + change[np.arange(2**length) ^ (1 << j)]) / 2
            every = (both**2 @ mu).mean(), both.mean(0) ** 2 @ mu
            for found, expected in zip(draws[:, :, i, j].T, every, strict=True):
                assert abs(found.mean() - expected) < found.std(ddof=1) / 5 + 1e-12  # 4 errors


def test_a_map_of_few_targets_is_that_of_all():
    model, tokens = tabulated.model(6, 3, 3), random_tokens(5, 6, 3)
    few = spectra.influence_map(model, tokens, tokens[0], contexts=2, targets=2)
    assert np.flatnonzero(np.isfinite(few[0]).any(1)).tolist() == [0, 5]


@pytest.mark.parametrize("causal", [False, True])
def test_the_anchored_loss_is_that_of_logits_cut_by_degree(causal):
    model, tokens = tabulated.model(5, 3, 3, causal=causal), random_tokens(12, 5, 3)
    table = spectra.anchored_loss(model, tokens, size=4, targets=6, seed=2)
    draws = spectrum.Draws(model, tokens, None, "text", (), 1, 2)
    # The same targets: the first number of each turn.
    rng = np.random.default_rng(spawn(2, "anchored"))
    expected = np.zeros((6, 5))
    for number in range(6):
        target = rng.choice(draws.targets)
        rng.gumbel(size=(1, 5))
        s, r = draws.s[number], draws.r[number]
        bits, logits = tabulated.all_flips(model, s, r, target)
        coefficients = hadamard(32) @ logits / 32
        for degree in range(5):
            cut = coefficients[bits.sum(1) <= degree].sum(0)
            expected[number, degree] = -log_softmax(cut)[s[target]]
    loss, excess = (table[table["quantity"] == f"anchored {one}"] for one in ("loss", "excess"))
    np.testing.assert_allclose(loss["value"], expected.mean(0), rtol=1e-9)
    above = expected.mean(0) - expected[:, -1].mean()
    np.testing.assert_allclose(excess["value"], above, atol=1e-9)
    assert excess["se"].iloc[-1] == 0
    assert loss["se"].iloc[0] == pytest.approx((expected[:, 0].std(ddof=1) / np.sqrt(6)), rel=0.15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(tokens=random_tokens(3, 6, 3)), "at least 4 blocks"),
        (dict(tokens=random_tokens(9, 1, 3)), "give a longer text"),
        (dict(tokens=random_tokens(9, 6, 4)), "own tokenizer"),
        (dict(tokens=0 * random_tokens(9, 6, 3), special=(0,)), "found 0 blocks"),
        (dict(orders=6), "orders: found 6, expected 1 to L - 1 = 5"),
        (dict(degree=0), "degree: found 0, expected 1"),
        (dict(mu=np.ones(4) / 4), r"mu: found shape \(4,\)"),
        (dict(mu=np.array([0.5, 0, 0.5])), "mu: found no share for 1 tokens of .*the first is 1"),
    ],
)
def test_what_cannot_be_done_is_refused(change, message):
    given = dict(tokens=random_tokens(9, 6, 3)) | change
    with pytest.raises(Refusal, match=message):
        spectrum.spectrum(tabulated.model(6, 3, 1), **given)


ENCODER = dict(layers=1, heads=2, width=8, mlp=8)


@pytest.mark.long
@pytest.mark.parametrize(
    ("description", "least"),
    [
        (dict(architecture="bert", **ENCODER), 4),
        (dict(architecture="gpt", **ENCODER), 4),
        (dict(architecture="factored", layers=1, variant="exact"), 1),
        (dict(architecture="factored", layers=2, variant="exact"), 2),
        (dict(architecture="factored", layers=2, variant="paper"), 4),  # with LayerNorm
        (dict(architecture="factored", layers=4, variant="exact"), 4),  # order 9, L = 5
    ],
)
def test_a_degree_that_is_no_bound_is_refused(description, least):
    """One that is a bound gives what enumeration gives of the same blocks."""
    torch.manual_seed(7)
    sizes = dict(rank=None) if description["architecture"] == "factored" else {}
    model = models.build(dict(vocabulary=12, length=5) | description | sizes).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.4)
    tokens, conditionals = random_tokens(8, 5, 12), flips.of_model(model)
    for asked in (model, conditionals) if "heads" in description else (model,):
        message = f"degree: found {least - 1} for .*; expected at least {least}, .*give orders"
        with pytest.raises(Refusal, match=message if least > 1 else "degree: found 0"):
            spectrum.spectrum(asked, tokens, degree=least - 1)
    exact = spectrum.enumerated(model, tokens).table
    drawn = spectrum.spectrum(model, tokens, degree=least, forwards=16_000, **NEVER).table
    variance = found(exact, "Var g", 0).value
    for row in drawn[drawn["quantity"].isin(["M", "W"])].itertuples():
        expected = found(exact, row.quantity, row.order).value
        assert row.value == pytest.approx(expected, abs=0.05 * variance + 0.05 * expected), row


def test_long_sequences_are_not_enumerated():
    with pytest.raises(Refusal, match="found L = 18"):
        spectrum.enumerated(decaying(18), random_tokens(9, 18, 4))
