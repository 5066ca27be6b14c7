"""Claims about definitions of order, from tables that agree and from tables that do not."""

import pytest
from planted_definitions import FALLS, SIZES, make, reversed_steps
from planted_spectra import ENDS, HALVES

from manybody.claims.simplicity import definitions
from manybody.claims.simplicity.definitions_runs import read_students
from manybody.io import tables


def answers(folder, **planted):
    claims = definitions.judge(*make(folder, **planted))
    return dict(zip(claims["claim"], claims["holds"], strict=True)), claims


def of(found, *words):
    mine = [holds for claim, holds in found.items() if all(word in claim for word in words)]
    assert len(mine) == 1, words
    return mine[0]


def test_definitions_that_agree_are_found_alike(tmp_path):
    found, claims = answers(tmp_path, clones=False)
    assert of(found, "order spectrum:", "M_1", "before M_3") == "yes"
    assert of(found, "KL(p‖q):", "n = 1", "before n = 3") == "yes"
    assert of(found, "KL(q‖p):", "n = 2", "before n = 3") == "yes"
    assert of(found, "interactions:", "m = 0", "before m = 12") == "yes"
    assert of(found, "alike") == "yes"
    assert claims["value"].iloc[-1] == 1
    assert len(found) == 4 * 3 + 1


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (dict(halves=reversed_steps(HALVES)), "order spectrum"),
        (dict(falls=reversed_steps(FALLS)), "n-grams, KL(p‖q)"),
        (dict(sizes=reversed_steps(SIZES)), "interactions"),
    ],
)
def test_one_that_disagrees_is_named(tmp_path, change, name):
    found, _ = answers(tmp_path, clones=False, **change)
    assert of(found, "alike") == "no"
    assert of(found, "alike", f"{name} no") == "no"
    assert sum(holds == "no" for holds in found.values()) >= 4


def test_what_one_leaves_undecided_leaves_all_undecided(tmp_path):
    found, _ = answers(tmp_path, clones=False, sizes={0: 800.0, 12: 1000.0})
    assert of(found, "interactions:", "m = 0") == "yes"
    assert of(found, "alike", "interactions undecided") == "undecided"


def test_orders_that_come_together_are_not_low_before_high(tmp_path):
    found, _ = answers(tmp_path, clones=False, sizes={0: 800.0, 12: 801.0})
    assert of(found, "interactions:", "m = 0") == "undecided"  # which of them is first
    assert of(found, "alike", "interactions no") == "no"


def test_losses_on_clones_are_one_of_the_definitions(tmp_path):
    found, _ = answers(tmp_path)
    # Two students: their interval is as wide as seven tenths of d times 13.
    assert of(found, "clones:", "order 3 is learned before order 9") in ("yes", "undecided")
    assert of(found, "clones:", "order 3 is learned before BERT") in ("yes", "undecided")
    assert of(found, "alike", "[clones ")
    students = read_students(*make(tmp_path / "again"))
    clones = students[0].definitions[0]
    steps = [rung.times[0].step for rung in clones.rungs]
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


def test_a_run_alone_answers_by_its_own_error(tmp_path):
    found, _ = answers(tmp_path, clones=False, seeds=(0,))
    assert (
        of(found, "order spectrum: M_1", "before M_3 (log of the ratio of steps, 1 run)") == "yes"
    )


def test_the_end_is_held_against_the_truth(tmp_path):
    found, claims = answers(tmp_path, clones=False, truth=ENDS)
    assert of(found, "that of the truth") == "yes"
    assert claims["value"].iloc[0] == pytest.approx(0, abs=1e-9)
    found, claims = answers(tmp_path / "other", clones=False, truth=ENDS | {2: 1.5})
    assert of(found, "that of the truth") == "no"
    assert claims["value"].iloc[0] == pytest.approx(1.0 / 4.0)


@pytest.mark.parametrize(
    ("spread", "error", "holds"), [(0.0, 0.001, "yes"), (0.05, 0.001, "undecided"), (0, 0.03, "no")]
)
def test_an_end_near_the_bound_is_decided_by_its_error(tmp_path, spread, error, holds):
    """Three runs 8 % of the largest value from the truth, with errors; 20 % in the last case."""
    files, block, context = make(tmp_path, clones=False, truth=ENDS)
    away = 0.2 if holds == "no" else 0.08
    for (name, seed), path in zip(context["spectra"], files["spectra"], strict=True):
        if name == "one":
            found, about = tables.read_spectra(path)
            moved = (found["quantity"] == "M") & (found["order"] == 1)
            apart = (away + spread * (seed - 1)) * ENDS[1]
            found.loc[moved, "value"] *= 1 - apart / ENDS[1]
            found["se"] = error * ENDS[1]
            tables.write_spectra(path, found, about)
    claims = definitions.judge(files, block, context)
    row = claims[claims["claim"].str.contains("that of the truth")].iloc[0]
    assert row["value"] == pytest.approx(away, rel=0.02)
    assert row["standard_error"] > error
    assert row["holds"] == holds


def test_orders_that_the_data_have_not_are_left_out(tmp_path):
    found, _ = answers(tmp_path, clones=False, truth=ENDS | {3: 0.0009 * ENDS[1]})
    assert not [claim for claim in found if "M_3" in claim]
    assert of(found, "order spectrum:", "M_1", "before M_2") == "yes"


def test_times_are_those_planted(tmp_path):
    (student,) = read_students(*make(tmp_path, clones=False))
    found = {one.name: [rung.times[0] for rung in one.rungs] for one in student.definitions}
    for time, half in zip(found["order spectrum"], HALVES.values(), strict=True):
        assert time.step == pytest.approx(half, rel=0.01)
    for time, half in zip(found["interactions"], SIZES.values(), strict=True):
        assert time.step == pytest.approx(half, rel=0.01)
    # 5 % of the fall is left at 19^(1/4) = 2.09 times its middle.
    for time, middle in zip(found["n-grams, KL(p‖q)"], FALLS.values(), strict=True):
        assert 0.95 < time.step / (2.09 * middle) < 1.3
        assert 0 < time.error < 0.1


def test_what_is_known_from_the_start_is_not_learned(tmp_path):
    """A law that a run begins with: its divergence only rises."""
    files, block, context = make(tmp_path, clones=False)
    for (name, _), path in zip(context["spectra"], files["spectra"], strict=True):
        if name == "one-n-grams":
            found, about = tables.read_spectra(path)
            lowest = found["order"] == 1
            found.loc[lowest, "value"] = 0.01 + found.loc[lowest, "step"] / 3000
            tables.write_spectra(path, found, about)
    claims = definitions.judge(files, block, context)["claim"]
    assert not claims.str.contains("n = 1").any()
    assert claims.str.contains("n = 2 is learned before n = 3").sum() == 2
