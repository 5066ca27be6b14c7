"""Pseudo-likelihood: its slopes, its weights, the masked loss, planted couplings, bad input."""

import configs
import explicit
import numpy as np
import pandas as pd
import pytest
import torch

from manybody.data import gauge, pair_gibbs, potts
from manybody.data.hamiltonian import Hamiltonian
from manybody.io import sequences, tables
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.measure.contacts import factors
from manybody.measure.intervals import margin
from manybody.models import build
from manybody.training import learning_curves as curves, pseudolikelihood as pl
from manybody.training.loop import train_files

LENGTH, COLOURS = 6, 4


def tokens(count: int = 90, seed: int = 0) -> np.ndarray:
    """Ordered sequences, so that some repeat and a colour is common; one colour never occurs."""
    return np.random.default_rng(seed).choice(COLOURS, size=(count, LENGTH), p=[0.7, 0.2, 0.1, 0.0])


def heads(number: int = 2, seed: int = 1) -> pl.Heads:
    rng = np.random.default_rng(seed)
    attention = rng.standard_normal((number, LENGTH, LENGTH))
    attention[:, np.arange(LENGTH), np.arange(LENGTH)] = 0
    values = rng.standard_normal((number, COLOURS, COLOURS))
    return pl.Heads(attention, values, rng.standard_normal((LENGTH, COLOURS)))


MODELS = pytest.mark.parametrize("model", [heads(1), heads(3)], ids=["1", "3"])


def direct(model, data: np.ndarray) -> np.ndarray:
    """Loss of each site of each sequence (N, L), as the formula is written."""
    couplings, found = model.couplings, np.empty(data.shape)
    for n, s in enumerate(data):
        for i in range(LENGTH):
            logits = model.fields[i].copy()
            for j in range(LENGTH):
                if j != i:
                    logits += couplings[i, j, :, s[j]]
            found[n, i] = np.log(np.exp(logits).sum()) - logits[s[i]]
    return found


@MODELS
def test_losses_are_those_of_the_formula(model):
    data = tokens()
    expected = direct(model, data)
    np.testing.assert_allclose(pl.losses(model, data), expected.mean(axis=1), rtol=0, atol=1e-13)
    total, _ = pl.loss_and_gradients(pl.Counted(data, COLOURS), model)
    assert total == pytest.approx(expected.sum(), rel=1e-13)


@MODELS
def test_slopes_are_the_numerical_ones(model):
    rng = np.random.default_rng(2)
    counted = pl.Counted(tokens(), COLOURS, rng.random(90))
    _, slopes = pl.loss_and_gradients(counted, model)
    step = 1e-5
    for number, slope in enumerate(slopes):
        direction = rng.standard_normal(slope.shape)
        if number == 0:  # a site is not coupled to itself
            own = (slice(None), *np.diag_indices(LENGTH))
            direction[own] = 0
            assert not slope[own].any()
        ends = []
        for sign in (1, -1):
            moved = [part.copy() for part in model]
            moved[number] += sign * step * direction
            ends.append(pl.loss_and_gradients(counted, pl.Heads(*moved))[0])
        numerical = (ends[0] - ends[1]) / (2 * step)
        assert (slope * direction).sum() == pytest.approx(numerical, rel=1e-7, abs=1e-7)


def test_a_weight_is_a_number_of_repeats():
    data, repeats = tokens(40), np.random.default_rng(3).integers(0, 4, 40)
    weighted = pl.Counted(data, COLOURS, repeats)
    repeated = pl.Counted(np.repeat(data, repeats, axis=0), COLOURS)
    assert weighted.total == repeated.total == repeats.sum()
    assert len(np.unique(data, axis=0)) == weighted.tokens.shape[1] < 40
    (one, first), (two, second) = (
        pl.loss_and_gradients(counted, heads()) for counted in (weighted, repeated)
    )
    assert one == pytest.approx(two, rel=1e-13)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)


def test_slopes_do_not_depend_on_the_number_of_threads():
    counted = pl.Counted(tokens(), COLOURS)
    one, slopes = pl.loss_and_gradients(counted, heads(), threads=1)
    for threads in (2, 3):
        other, others = pl.loss_and_gradients(counted, heads(), threads=threads)
        assert one == other
        for a, b in zip(slopes, others, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("number", [1, 2])
def test_pseudo_likelihood_is_the_masked_loss(number):
    """Against the registry's model with every mask made explicitly, in double precision."""
    data, wanted = tokens(), heads(number)
    torch.manual_seed(0)
    sizes = dict(vocabulary=COLOURS, length=LENGTH, layers=1, heads=number)
    model = build(dict(architecture="factored", rank=None, bias=False, **sizes)).double()
    with torch.no_grad():
        for weight, given in (
            (model.attention[0], wanted.attention),
            (model.left[0], wanted.values),
        ):
            weight.copy_(torch.from_numpy(given if number > 1 else given[0]))
    losses, _ = explicit.masked(model, torch.from_numpy(data))
    expected = losses.detach().view(90, LENGTH).mean(1).numpy()
    wanted.fields[:] = 0
    np.testing.assert_allclose(pl.losses(wanted, data), expected, rtol=0, atol=1e-12)


# --- Planted couplings ---------------------------------------------------------------------------


def colours() -> np.ndarray:
    matrix = np.random.default_rng(5).standard_normal((COLOURS, COLOURS))
    # Mostly attractive: -U would fit as well where the two signs are alike.
    return (matrix + matrix.T) / np.sqrt(2) + 1.5 * np.eye(COLOURS)


# J of a ring: doubly stochastic, two neighbours each.
RING = (np.roll(np.eye(LENGTH), 1, axis=1) + np.roll(np.eye(LENGTH), -1, axis=1)) / 2
LAW = Hamiltonian(RING, -colours() / 2, 1.0)


def planted(count: int, seed: int) -> np.ndarray:
    return pair_gibbs.sample(LAW, count, 40, np.random.SeedSequence(seed)).tokens


def test_factored_attention_recovers_planted_couplings():
    fit = pl.fit_heads(pl.Counted(planted(4000, 1), COLOURS), iterations=80)
    found = dict(curves.errors(fit.model.attention[0], LAW))
    assert found["pearson"] > 0.99
    assert found["score correlation"] > 0.99
    assert found["coupling error"] < 0.03
    test = planted(2000, 2)
    excess = (pl.losses(fit.model, test) - pl.losses(curves.true_conditionals(LAW), test)).mean()
    assert -0.001 < excess < 0.004  # p / (2 M L) is 0.0009


@pytest.mark.parametrize("summed", [False, True])
def test_several_heads_end_where_the_slopes_vanish(summed):
    """By the other loops; more heads than couplings have patterns stay zero."""
    data, ridge = planted(400, 1), 3.0 if summed else 1e-3
    counted = pl.Counted(data, COLOURS, np.random.default_rng(0).random(len(data)))
    settings = dict(heads=COLOURS**2 + 2, fields=True, summed=summed)
    fit = pl.fit_heads(counted, ridge=ridge, **settings)
    loss, slopes = pl.loss_and_gradients(counted, fit.model)
    count = counted.total * LENGTH
    assert fit.loss == pytest.approx(loss / count, rel=1e-6)
    for part, slope in zip(fit.model, slopes, strict=True):
        slope = slope / (1.0 if summed else count) + ridge * part
        assert np.abs(slope).max() < 1e-2 * ridge * np.abs(part).max()
    assert not fit.model.values[-2:].any()
    assert fit.model.values[-3].any()


def test_true_conditionals_are_those_of_the_hamiltonian():
    """At a temperature other than 1."""
    data, hamiltonian = tokens(), Hamiltonian(RING, -colours() / 2, 0.37)
    logs = np.take_along_axis(hamiltonian.log_conditionals(data), data[:, :, None], axis=2)
    expected = -logs[:, :, 0].mean(axis=1)
    found = pl.losses(curves.true_conditionals(hamiltonian), data)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# --- Curves --------------------------------------------------------------------------------------

ENTRY = dict(
    kind="recovery", source="ring", sizes=[500, 1000, 2000], ridge=1e-4, realisations=3, test=500,
    iterations=40, init_scale=dict(attention=0.1, values=0.3), seed=0,
)  # fmt: skip
SEPARABILITY = dict(
    kind="separability", source="ring", sizes=[2, 8], ridges=[1e-2, 1e-1], realisations=2, test=200,
    iterations=40, init_scale=dict(attention=0.1, values=0.3), seed=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ring")
    found = {split: folder / f"{split}.parquet" for split in ("train", "validation")}
    found["hamiltonian"] = folder / "hamiltonian.safetensors"
    sequences.write(found["train"], planted(6000, 3), COLOURS, {})
    sequences.write(found["validation"], planted(500, 4), COLOURS, {})
    LAW.save(found["hamiltonian"], {})
    return found


def test_the_coupling_error_falls_as_one_over_m(paths, tmp_path):
    frame, _ = curves.compute(ENTRY, paths, tmp_path, threads=2)
    assert abs(frame[frame["quantity"] == "mean slope"].iloc[0]["y"] + 1) < 0.3
    assert frame["quantity"].value_counts()["coupling error"] == 9


def test_a_killed_curve_goes_on_to_the_same_bytes(paths, tmp_path, monkeypatch):
    whole, about = curves.compute(SEPARABILITY, paths, tmp_path / "whole")
    tables.write_theory(tmp_path / "whole.parquet", whole, about)
    fit, calls = pl.fit_heads, []

    def interrupted(*arguments, **settings):
        calls.append(settings)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fit(*arguments, **settings)

    monkeypatch.setattr(pl, "fit_heads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        curves.compute(SEPARABILITY, paths, tmp_path / "resume")
    finished = len(list((tmp_path / "resume").iterdir()))  # of four, of two fits each
    assert 1 <= finished < 4
    monkeypatch.setattr(pl, "fit_heads", lambda *a, **b: calls.append(b) or fit(*a, **b))
    calls.clear()
    frame, again = curves.compute(SEPARABILITY, paths, tmp_path / "resume", threads=2)
    assert len(calls) == 2 * (4 - finished)
    tables.write_theory(tmp_path / "again.parquet", frame, again)
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    calls.clear()  # fits of other settings are not taken up
    curves.compute({**SEPARABILITY, "iterations": 39}, paths, tmp_path / "resume")
    assert len(calls) == 8
    # A start for each realisation and number of sequences.
    assert len({tuple(call["seed"].entropy) for call in calls}) == 4
    curves.forget(tmp_path / "resume")
    assert not (tmp_path / "resume").exists()


def test_a_curve_has_what_the_figure_reads(paths, tmp_path, monkeypatch):
    totals, progress = [], curves.Progress
    monkeypatch.setattr(
        curves, "Progress", lambda total, *said: totals.append(total) or progress(total, *said)
    )
    frame, about = curves.compute(SEPARABILITY, paths, tmp_path)
    assert totals == [8 * 65]  # fits of 2 or 8 sequences, and of 60 more for the rest of each
    assert about["length"] == LENGTH
    counts = frame.groupby(["quantity", "series"]).size()
    for quantity in ("test loss", "training loss", "excess loss", "iterations"):
        assert counts[quantity].to_dict() == {"0.01": 4, "0.1": 4}
    values = frame.set_index(["quantity", "series", "seed", "x"])["y"]
    optimum = frame.loc[frame["quantity"] == "optimum", "y"].item()
    pd.testing.assert_series_equal(
        values["test loss"] - optimum, values["excess loss"], check_names=False
    )


# --- The default setting of the specification -----------------------------------------------------


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    """Samples of the contact map and the stored U at beta 1.707, six times 3000 and 5000 more."""
    folder = tmp_path_factory.mktemp("default")
    law = Hamiltonian(potts.contact_map(20), -potts.stored_colours() / 2, 1.707)
    found = {split: folder / f"{split}.parquet" for split in ("train", "validation")}
    for number, (split, count) in enumerate({"train": 18_000, "validation": 5000}.items()):
        drawn = pair_gibbs.sample(law, count, 200, np.random.SeedSequence(number), 2)
        sequences.write(found[split], drawn.tokens, 20, {})
    found["hamiltonian"] = folder / "hamiltonian.safetensors"
    law.save(found["hamiltonian"], {})
    return found


@pytest.mark.long
def test_free_attention_recovers_the_default_couplings_as_was_measured(default, tmp_path):
    """potts, section 6: M = 3000, and the fall with M; means over six samples."""
    entry = ENTRY | dict(sizes=[500, 1000, 3000], realisations=6, test=5000, iterations=120)
    frame, _ = curves.compute(entry, default, tmp_path, threads=2)
    slope = frame[frame["quantity"] == "mean slope"].iloc[0]
    assert abs(slope["y"] + 1) + margin(slope["y_err"], 6) < 0.15
    found = dict(tuple(frame[frame["x"] == 3000].groupby("quantity")["y"]))
    assert 0.004 < found["excess loss"].mean() < 0.009
    error, pearson = found["coupling error"], found["pearson"]
    assert error.mean() + margin(error.std() / 6**0.5, 6) < 0.06
    assert pearson.mean() - margin(pearson.std() / 6**0.5, 6) > 0.96


@pytest.mark.long
def test_softmax_attention_recovers_the_default_couplings_as_was_measured(default, tmp_path):
    """potts, section 6: one run on M = 3000 sequences by the recipe of the demo."""
    entry = dict(configs.load()["models"]["potts-softmax"])
    recipe = entry.pop("training") | {"subset": 3000}
    entry.pop("init_seed")
    manifest = train_files(
        entry, default, recipe=recipe, out=tmp_path / "run", seed=0, init_seed=0,
        about=dict(source="potts", model="softmax"),
    )  # fmt: skip
    law, held_out = Hamiltonian.load(default["hamiltonian"]), Sequences.open(default["validation"])
    (attention,), _ = factors(Manifest.read(manifest, "model"))
    found = gauge.coupling_error(attention, law.couplings)
    assert found.error < 0.03
    assert found.pearson > 0.985
    optimum = pl.losses(curves.true_conditionals(law), held_out.tokens).mean()
    _, history = tables.read_run(manifest)
    end = history[history["split"] == "validation"].sort_values("step")["loss"].iloc[-1]
    assert 0.004 < end - optimum < 0.009
