"""Students of known distributions: claims and picture, from planted times and ends."""

from dataclasses import replace

import numpy as np
import planted_runs
import planted_truths
import pytest
from claimed import by_name, part
from planted_truths import CUTS, ENDS, HALVES, student

from manybody.io import tables as stored
from manybody.measure.saturation import SATURATION, Times
from manybody.papers import style
from manybody.papers.claims import above
from manybody.papers.simplicity import truths


def claims(**planted):
    return by_name(truths.claims(truths.tables_of([student(**planted)])))


def reversed_times(times):
    return dict(zip(times, np.flip(list(times.values())), strict=True))


def test_what_is_planted_the_same_is_found_the_same():
    found = claims()
    assert {name: (claim.verdict, len(claim.parts)) for name, claim in found.items()} == {
        "ends": ("yes", 3),
        "losses": ("yes", 3 * 2),
        "half-times": ("yes", 3),
        "agreement": ("yes", 1),
    }
    later = part(found["losses"], "cuts: ", "order ≤ 3 over that of order ≤ 2", "5%")
    assert later.value == pytest.approx(np.log(240 / 60), abs=0.03)
    assert part(found["half-times"], "M_3 over that of M_1").value == pytest.approx(
        np.log(1100 / 100), abs=0.03
    )
    assert part(found["agreement"], "cuts against the half").value == 1.0


@pytest.mark.parametrize(
    "change", [dict(halves=reversed_times(HALVES)), dict(cuts=reversed_times(CUTS))]
)
def test_an_order_that_is_another_is_denied(change):
    agreement = claims(**change)["agreement"]
    (only,) = agreement.parts
    assert (agreement.verdict, only.value) == ("no", -1.0)


def test_definitions_that_leave_an_order_open_are_not_counted():
    yes, no, wide = (above("t", value, error) for value, error in ((1, 0.1), (-1, 0.1), (1, 1)))
    cuts = [[yes, yes], [yes, wide], [no, wide], [no, no]]
    found = truths.agreement("cuts", cuts, [[yes], [yes], [no], [yes]])
    assert found.label == "cuts: 1 pairs the same, 1 not, of 4"
    assert (found.value, found.half) == (0, 0.5)


def test_two_steps_at_one_time_are_in_no_order():
    found = claims(cuts=CUTS | {"test": 240.0})
    assert part(found["agreement"], "cuts against the half").value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "apart", "verdict"),
    [
        ("cut-2", 0.012, "yes"),
        ("cut-2", 0.03, "no"),
        ("cut-2", -0.03, "no"),
        ("test", 0.010, "undecided"),  # where 0.01 are allowed
        ("test", 0.02, "no"),
    ],
)
def test_ends_are_held_against_the_exact_losses(name, apart, verdict):
    ends = claims(apart={name: apart})["ends"]
    found = part(ends, {"cut-2": "cuts, order ≤ 2", "test": "cuts, whole"}[name])
    assert (found.verdict(), ends.verdict) == (verdict, verdict)
    # Runs differ by a thousandth each; the exact loss is that of the same sequences.
    assert found.value == pytest.approx(apart + 1e-3, abs=5e-4)


def test_one_run_decides_nothing():
    assert {claim.verdict for claim in claims(seeds=(0,)).values()} == {"undecided"}


@pytest.mark.parametrize(
    ("each", "near", "far"), [(6, "undecided", "yes"), (24, *["undecided"] * 2)]
)
def test_checkpoints_decide_no_time_nearer_than_they_are(monkeypatch, each, near, far):
    steps = planted_truths.STEPS
    monkeypatch.setattr(planted_truths, "STEPS", np.append(steps[:-1:each], steps[-1]))
    found = claims()
    low = "over that of order ≤ 2"
    assert part(found["losses"], "cuts: ", f"order ≤ 3 {low}", "2%").verdict() == near
    assert part(found["losses"], "cuts: ", f"whole {low}", "2%").verdict() == far
    assert found["half-times"].verdict == "yes"


def test_files_are_read_as_they_are_written(tmp_path):
    def run(folder, seed):
        history = planted_runs.rows([0, 15], [6.0, 1.8], 1, 200)
        about = dict(description=planted_truths.spectrum().about["description"], source="known")
        return planted_runs.write(folder, history, **about, seed=seed)

    inputs, block = planted_truths.written(tmp_path, run)
    made = truths.tables(inputs, block)
    ((cuts,),) = (found.series.values() for found in made.found)
    assert [step.label for step in cuts] == [
        "order ≤ 2", "order ≤ 3", "whole"
    ]  # fmt: skip
    assert [np.exp(step.time()[0]) for step in cuts] == pytest.approx(list(CUTS.values()), rel=0.03)
    assert [step.exact - step.own for step in cuts[:2]] == pytest.approx([0.1, 0.1], abs=0.1)
    assert {claim.id for claim in truths.claims(made)} == {
        f"simplicity/truths/docs/{name}" for name in ("ends", "losses", "half-times", "agreement")
    }
    # The student is compared on the sequences of the truth, or not at all.
    truth, about = stored.THEORY.read(tmp_path / "truths.parquet")
    stored.write_theory(tmp_path / "truths.parquet", truth[truth["x"] < 50], about)
    with pytest.raises(ValueError, match="60 sequences, the truth of 50"):
        truths.tables(inputs, block)


def test_the_panels_hold_what_was_read():
    found = planted_truths.of_figure()
    ids = [claim.id for claim in truths.claims(found)]
    assert len(set(ids)) == len(ids) == 8
    assert "simplicity/truths/known-2/ends" in ids
    table = found.drawn
    assert set(table["panel"]) == set("abcd")
    exact = table[(table["panel"] == "a") & (table["seed"] == "exact")].set_index("series")["y"]
    assert exact["whole, exact"] == pytest.approx(ENDS["test"], abs=0.1)
    assert len(exact) == 3
    times = table[table["panel"] == "c"].groupby("series")["y"].apply(list)
    assert times["cuts"] == pytest.approx(list(CUTS.values()), rel=0.03)
    assert times["half-times, M_k"] == pytest.approx(list(HALVES.values()), rel=0.02)
    assert (table.loc[table["panel"] == "c", "y_err"] < 0.1).all()
    below, above = style.factors(100.0, 2.0)
    assert (100 - below[0], 100 + above[0]) == pytest.approx((100 / 7.389, 738.9), rel=1e-3)


def test_the_error_of_a_time_is_that_of_runs_and_of_draws():
    times = Times(np.array([1, 3]), np.array([[0, 2], [2, 6], [1, 1]]), 0.1, 1)
    step = truths.Step("whole", None, 0, 0, None, 0, {SATURATION[0]: times})
    assert step.time() == pytest.approx((2, np.hypot(1, 3**0.5)))


def test_the_error_of_an_end_is_that_of_runs_and_of_sequences():
    losses, truth = planted_truths.losses(CUTS, {})
    last = losses[(losses["target"] == "test") & (losses["step"] == losses["step"].max())]
    exact = truth.loc[(truth["series"] == "test") & (truth["quantity"] == "truth"), "y"]
    each = last["loss_sum"].to_numpy().reshape(3, -1) / planted_truths.LENGTH - exact.to_numpy()
    by_run, by_sequence = (
        means.std(ddof=1) / len(means) ** 0.5 for means in (each.mean(axis=1), each.mean(axis=0))
    )
    end = part(claims()["ends"], "cuts, whole")
    assert end.error == pytest.approx(np.hypot(by_run, by_sequence))
    # Two errors of many sequences; of three runs as much of Student's distribution.
    half = np.hypot(4.5266 * by_run, 2 * by_sequence)
    assert end.interval() == pytest.approx((end.value - half, end.value + half), rel=1e-4)


@pytest.mark.parametrize(
    ("widths", "slack"), [((0.1, 0.2), 0), ((0.1, 0.5), 0.6), ((0.5, 0.1), 0.6), ((0.5, 0.6), 1.1)]
)
def test_one_coarse_side_widens_a_difference_of_times_by_both(widths, slack):
    early, late = student().series["cuts"][:2]

    def of_widths(*widths):
        made = [
            step._replace(logs={k: replace(one, width=w) for k, one in step.logs.items()})
            for step, w in zip((late, early), widths, strict=True)
        ]
        return truths.later("cuts", *made[::-1])

    for wide, fine in zip(of_widths(*widths), of_widths(0.1, 0.1), strict=True):
        assert (wide.value, wide.error) == (fine.value, fine.error)
        assert wide.half == pytest.approx(fine.half + slack)
