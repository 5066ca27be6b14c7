"""Claims about students of known laws, from planted times and ends, right ones and wrong ones."""

import numpy as np
import planted_runs
import planted_truths
import pytest
from planted_truths import CLONES, CUTS, HALVES, student

from manybody.claims import verdicts
from manybody.claims.simplicity import truths, truths_runs

HALF = "stop falling in the order of the half"


def answers(**planted):
    claims = verdicts.table(truths.claims([student(**planted)]))
    return dict(zip(claims["claim"], claims["holds"], strict=True)), claims


def of(found, *words):
    mine = [holds for claim, holds in found.items() if all(word in claim for word in words)]
    assert len(mine) == 1, (words, len(mine))
    return mine[0]


def reversed_times(times):
    return dict(zip(times, np.flip(list(times.values())), strict=True))


def test_what_is_planted_alike_is_found_alike():
    found, _ = answers()
    assert of(found, "M_1 comes to half its end before M_3") == "yes"
    assert of(found, "cuts: the loss on orders up to 2", "orders up to 3 (") == "yes"
    assert of(found, "clones: the loss on clone of order 2", "that on clone of order 5") == "yes"
    assert of(found, "the losses on cuts stop falling in the order of the half-times") == "yes"
    assert of(found, "the losses on clones", "half-times", "3 pairs alike, 0 not") == "yes"
    assert of(found, "the losses on clones", "in the order of those on cuts") == "yes"
    assert of(found, "clone of order 3 (clones) stops falling with that on orders up to 3") == "yes"
    assert set(found.values()) == {"yes"}
    assert len(found) == 3 + 3 + 2 * 3 + 2 + 1 + 3


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (dict(halves=reversed_times(HALVES)), ("cuts stop", f"clones {HALF}")),
        (dict(cuts=reversed_times(CUTS)), ("cuts stop falling", "order of those on cuts")),
        (dict(clones=reversed_times(CLONES)), (f"clones {HALF}", "those on cuts")),
    ],
)
def test_an_order_that_is_another_is_denied(change, wrong):
    found, _ = answers(**change)
    for words in wrong:
        assert of(found, words) == "no"


def test_a_clone_that_is_early_misleads():
    found, claims = answers(clones=CLONES | {"n3": 240.0})
    assert of(found, "clone of order 5 (clones) stops falling with") == "no"
    assert of(found, "clone of order 2 (clones) stops falling with") == "yes"
    row = claims[claims["claim"].str.contains("clone of order 5 .clones. stops")].iloc[0]
    assert row["value"] == pytest.approx(np.log(240 / 900), abs=0.02)
    # Two rungs at one time are in no order.
    assert of(found, "the losses on clones", "order of the half-times") != "yes"


@pytest.mark.parametrize(
    ("name", "apart", "answer"),
    [
        ("cut-2", 0.012, "yes"),
        ("cut-2", 0.03, "no"),
        ("cut-2", -0.03, "no"),
        ("test", 0.010, "undecided"),  # where 0.01 are allowed
        ("test", 0.02, "no"),
    ],
)
def test_ends_are_held_against_the_exact_losses(name, apart, answer):
    found, claims = answers(apart={name: apart})
    words = {"cut-2": "cuts: orders up to 2: the last", "test": "the whole law: the last"}[name]
    assert of(found, words) == answer
    value = claims.loc[claims["claim"].str.contains(words), "value"].item()
    # Runs differ by a thousandth each; the exact loss is that of the same sequences.
    assert value == pytest.approx(apart + 1e-3, abs=5e-4)


def test_one_run_decides_nothing():
    found, _ = answers(seeds=(0,))
    assert set(found.values()) == {"undecided"}


@pytest.mark.parametrize(
    ("each", "near", "far"),
    [(6, ("undecided", "do not resolve"), ("yes", "2%")), (24, *[("undecided", "resolve")] * 2)],
)
def test_checkpoints_decide_no_time_nearer_than_they_are(monkeypatch, each, near, far):
    steps = planted_truths.STEPS
    monkeypatch.setattr(planted_truths, "STEPS", np.append(steps[:-1:each], steps[-1]))
    found, _ = answers()
    assert of(found, "cuts: the loss on orders up to 2", "orders up to 3 (", near[1]) == near[0]
    assert of(found, "cuts: the loss on orders up to 2", "the whole law (", far[1]) == far[0]
    assert of(found, "clone of order 2 (clones) stops falling with", "resolve") == "undecided"
    assert of(found, "M_1 comes to half its end before M_3") == "yes"


def test_files_are_read_as_they_are_written(tmp_path):
    def run(folder, seed):
        history = planted_runs.rows([0, 15], [6.0, 1.8], 1, 200)
        about = dict(description=planted_truths.spectrum().about["description"], source="known")
        return planted_runs.write(folder, history, **about, seed=seed)

    files, block, context = planted_truths.written(tmp_path, run)
    (found,) = truths_runs.read_students(files, block, context)
    (cuts,) = found.ladders
    assert [rung.label for rung in cuts.rungs] == [
        "orders up to 2", "orders up to 3", "the whole law"
    ]  # fmt: skip
    assert [np.exp(rung.time()[0]) for rung in cuts.rungs] == pytest.approx(
        list(CUTS.values()), rel=0.03
    )
    assert [rung.exact - rung.own for rung in cuts.rungs[:2]] == pytest.approx([0.1, 0.1], abs=0.1)
    assert len(truths.judge(files, block, context)) == 3 + 3 + 3 + 1
    # The student is compared on the sequences of the truth, or not at all.
    truth, about = truths_runs.tables.read_theory(files["truths"][0])
    truths_runs.tables.write_theory(files["truths"][0], truth[truth["x"] < 50], about)
    with pytest.raises(ValueError, match="60 sequences, the truth of 50"):
        truths_runs.read_students(files, block, context)
