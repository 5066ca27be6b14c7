"""Figures of order spectra, from tables that obey their claims and from tables that do not."""

import dataclasses

import numpy as np
import pandas as pd
import planted_runs
import planted_spectra
import pytest
import tabulated
from legible import faults
from planted_spectra import BERT, ENDS, FACTORED, HALVES, STEPS, rows, spectra, table

from manybody.io import tables as stored
from manybody.measure.spectrum import enumerated
from manybody.papers.inputs import Spectrum, Trained, with_files
from manybody.papers.simplicity import spectrum, spectrum_truth
from manybody.papers.simplicity.spectra import Spectra, half_time_ratio
from manybody.papers.style import COLUMNS

# --- Spectra and half-times -----------------------------------------------------------------------


def one(found) -> Spectra:
    return Spectra({0: (found, planted_spectra.about())})


@pytest.mark.parametrize("order", HALVES)
def test_half_times_are_those_planted(order):
    found = one(table()).half_time(0, order)
    assert found.step == pytest.approx(HALVES[order], rel=0.01)
    assert 0 < found.error < 0.1


def test_the_error_of_half_times_is_a_bound_on_their_spread_over_contexts():
    """12 samples of contexts, on each of which all checkpoints are measured."""
    early_part, late_part = (tabulated.model(5, 3, 2, seed, causal=True) for seed in (1, 2))
    found, said = [], []
    for seed in range(12):
        tokens, tables = np.random.default_rng(seed).integers(0, 3, (48, 5)), []
        for step in (100, 400, 800):
            shares = (step / 800) ** 0.5, (step / 800) ** 2

            def logits(given, shares=shares):
                parts = zip(shares, (early_part, late_part), strict=True)
                return sum(share * part.logits(given) for share, part in parts)

            mixed = early_part._replace(logits=logits)
            measured = enumerated(mixed, tokens, mu=np.ones(3) / 3, seed=seed).table
            tables.append(measured.assign(step=step))
        mine = one(pd.concat(tables))
        early, late = (mine.half_time(0, k) for k in (1, 2))
        found.append([np.log(early.step), np.log(late.step), np.log(late.step / early.step)])
        said.append([early.error, late.error, half_time_ratio(mine, 1, 2).resolution])
    spread = np.std(found, axis=0, ddof=1)
    assert ((spread > 0.005) & (spread < np.mean(said, axis=0))).all()


def test_a_value_that_is_too_high_early_is_no_half_time():
    found = table()
    early = (found["quantity"] == "M") & (found["order"] == 3) & found["step"].between(300, 400)
    place = found.index[early][0]
    found.loc[place, ["value", "se"]] = 0.6 * ENDS[3], 0.3 * ENDS[3]
    assert one(found).half_time(0, 3).step == pytest.approx(HALVES[3], rel=0.05)


def test_no_half_time_where_checkpoints_do_not_enclose_it():
    late = [step for step in STEPS if step > 1200]
    assert np.isnan(one(table(steps=late)).half_time(0, 1).step)
    found = table()
    found["state"] = "upper bound"
    assert np.isnan(one(found).half_time(0, 1).step)


# --- Which orders are used along training ---------------------------------------------------------


def tables(folder, runs=(0, 1, 2), **planted) -> spectrum.Tables:
    """Of a generator of order 3, another, a student with these runs, and another distribution."""
    vanishing = table(ends={1: 4.0, 2: 0.2, 3: 1e-13}, steps=STEPS[-1:])
    roles = {
        "generators": [
            Spectra({0: (vanishing, planted_spectra.about("n2", FACTORED))}),
            spectra((0,), "other"),
        ],
        "students": [spectra(runs, **planted)],
        "laws": [spectra((0,), "bert-unigram", law="unigram", excess=())],
    }
    files, keys = [], {role: [] for role in roles}
    for role, found in ((role, one) for role, group in roles.items() for one in group):
        name = found.about["spectrum"]
        for seed, frame in found.runs.items():
            files.append(str(folder / f"{name}-{seed}.parquet"))
            stored.write_spectra(files[-1], frame, found.about | {"seed": seed})
            keys[role].append(Spectrum(spectrum=name, seed=seed))
    inputs = with_files(spectrum.Inputs(**keys, entry={}, source={}), {"spectra": files})
    return spectrum.tables(inputs, spectrum.Block(students=["bert"]))


def by_name(found) -> dict:
    return {claim.id.rpartition("/")[2]: claim for claim in spectrum.claims(found)}


def test_what_is_planted_is_found(tmp_path):
    found = by_name(tables(tmp_path))
    assert {name: claim.verdict for name, claim in found.items()} == {
        "additive": "yes", "half-times": "yes", "half-times-by-distribution": "yes",
        "pairs": "yes", "triples": "yes",
    }  # fmt: skip
    said = {name for name, claim in found.items() if claim.sentence}
    assert said == {"additive", "half-times", "pairs"}
    assert "over that of M_1, is 1.8" in found["half-times"].sentence
    ratios = [np.exp(part.value) for part in found["half-times"].parts]
    assert ratios == pytest.approx([1100 / 600, 1300 / 1100], rel=0.02)
    # Runs are equal here: what is left is the error by their common contexts.
    part = found["half-times"].parts[0]
    assert (part.error, part.runs) == (pytest.approx(0.0, abs=1e-12), 3)
    assert 0.01 < part.resolution < 0.1
    (alone,) = found["pairs"].parts
    assert (alone.value, alone.error, alone.deviations) == (0.1, 0.002, 3)
    assert found["triples"].value == 0.01


def test_what_is_planted_otherwise_is_denied(tmp_path):
    found = by_name(tables(tmp_path, halves=HALVES | {1: 1500.0}, excess=(1.5, 0.001, 0.2, 0.0)))
    assert found["half-times"].verdict == "no"
    assert found["half-times"].value == pytest.approx(np.log(1100 / 1500), abs=0.02)
    assert found["half-times-by-distribution"].verdict == "yes"
    assert found["pairs"].verdict == "undecided"
    assert (found["triples"].verdict, found["triples"].value) == ("no", 0.2)


def test_one_run_and_no_measured_loss_decide_nothing(tmp_path):
    found = by_name(tables(tmp_path, runs=(0,), excess=()))
    assert found["half-times"].verdict == "undecided"
    assert (found["pairs"].verdict, found["triples"].verdict) == ("not-run", "not-run")
    without = dataclasses.replace(tables(tmp_path), laws=[])
    assert by_name(without)["half-times-by-distribution"].verdict == "not-run"


def test_the_panels_hold_what_was_read(tmp_path):
    found = tables(tmp_path)
    assert faults(spectrum.draw(found)) == []
    drawn = found.drawn
    assert list(drawn.columns) == COLUMNS
    assert set(drawn["panel"]) == {"a", "d", "c", "e", "f"}
    halves = drawn[(drawn["panel"] == "c") & (drawn["series"] == "BERT: M_2")]
    assert halves["x"].to_numpy() == pytest.approx(np.full(3, HALVES[2]), rel=0.01)
    vanished = drawn[(drawn["panel"] == "e") & (drawn["y"] < 1e-12)]
    assert vanished["series"].str.startswith("n = 2, order 3").all()
    assert len(vanished) == 1


# --- Beside the truth -----------------------------------------------------------------------------

TRUE = dict(architecture="energy", length=8, order=4, vocabulary=4)
SHARES = (0.66, 0.27, 0.07, 0, 0, 0, 0)


def of_shares(shares=SHARES, description=TRUE, se=0.0) -> Spectra:
    found = [rows(3000, "W", d, 4 * share, se) for d, share in enumerate(shares, 1)]
    about = {"description": description, "entry": {}, "source": "known"}
    return Spectra({0: (pd.DataFrame(found), about)})


def beside_truth(**changed):
    """The one claim, of a student, a model of pairs and a loss near the truth."""
    given = dict(
        truth=of_shares(),
        student=of_shares(description=BERT),
        pairs=of_shares((1, 0, 0, 0, 0, 0, 0), FACTORED),
        excess=0.005,
        degrees=range(1, 4),
    )
    (claim,) = spectrum_truth.claims(spectrum_truth.Tables(pd.DataFrame(), **given | changed))
    return claim


def test_a_network_near_the_truth_has_its_shares():
    found = beside_truth()
    assert found.verdict == "yes"
    assert [part.value for part in found.parts] == pytest.approx([0.005, 0, 0, 0, 0.34])


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        (dict(student=of_shares((0.70, 0.245, 0.055, 0, 0, 0, 0), BERT)), 1),
        (dict(student=of_shares((0.66, 0.27, 0.02, 0, 0, 0, 0), BERT)), 3),
        (dict(excess=0.02), 0),
        (dict(pairs=of_shares()), 4),
    ],
)
def test_a_network_off_the_truth_has_not(changed, wrong):
    found = beside_truth(**changed)
    expected = ["no" if place == wrong else "yes" for place in range(5)]
    assert [part.verdict() for part in found.parts] == expected
    assert (found.verdict, found.value) == ("no", found.parts[wrong].value)


def test_the_truth_is_drawn_beside_the_student(tmp_path):
    def of_w(name, description, shares, steps=STEPS, se=0.0):
        found = [
            rows(step, quantity, d, 4 * share * (step / 3000 if steps is STEPS else 1), se)
            for step in steps
            for d, share in enumerate(shares, 1)
            for quantity in ("W", "M")
        ]
        path = str(tmp_path / f"{name}.parquet")
        frame = pd.DataFrame(found)[stored.SPECTRA_SCHEMA.names]
        stored.write_spectra(path, frame, planted_spectra.about(name, description) | {"seed": 0})
        return Spectrum(spectrum=name, seed=0), path

    keys, files = zip(
        of_w("truth", TRUE, SHARES[:3], STEPS[-1:]),
        of_w("estimate", TRUE, (0.6, 0.3, 0.1), STEPS[-1:], 0.1),
        of_w("student", BERT, SHARES[:3], se=0.01),
        of_w("pairs", FACTORED, (1.0, 1e-9, 1e-9), STEPS[-1:]),
        strict=True,
    )
    losses = {"truth": [1.0], "estimate": [1.0], "student": [3.0, 1.2, 1.004], "pairs": [1.1]}
    runs = []
    for name, ends in losses.items():
        history = planted_runs.rows(np.arange(len(ends)), ends, 1, 1500)
        runs.append(str(planted_runs.write(tmp_path / f"run-{name}", history, description={})))
    trained = [Trained(source="known", model=name, seed=0) for name in losses]
    inputs = spectrum_truth.Inputs(spectra=list(keys), runs=trained, source={}, student={})
    given = with_files(inputs, {"spectra": list(files), "models": runs})
    block = spectrum_truth.Block(**{name: name for name in losses})
    found = spectrum_truth.tables(given, block)
    assert found.excess == pytest.approx(0.004)
    assert spectrum_truth.claims(found)[0].verdict == "yes"
    assert faults(spectrum_truth.draw(found)) == []
    drawn = found.drawn.set_index(["panel", "series"])
    assert drawn.loc[("a", "order 2, truth"), "y"].item() == pytest.approx(0.66)
    assert drawn.loc[("a", "order 2, truth from draws"), "y_err"].item() == pytest.approx(0.025)
    assert drawn.loc[("c", "pairs"), "y"].item() == pytest.approx(0.1)
    assert drawn.loc[("c", "BERT"), "y"].tolist() == pytest.approx([0.2, 0.004])
    # M_k grows as the step does: its half is at half of the steps.
    assert drawn.loc[("half-times", "M_2"), "x"].item() == pytest.approx(1500, rel=0.01)
