"""Figures 1, 4 and 5: a student's losses on clones whose answers were planted."""

import math

import numpy as np
import pandas as pd
import planted_losses as planted
import pytest
from claimed import by_name
from planted_losses import BERT, BLOCK, STEPS, TARGETS, clone, factored

from manybody import models
from manybody.models import labels
from manybody.papers import style
from manybody.papers.claims import margin
from manybody.papers.simplicity import fig1, fig4, fig4_paper, fig5, learning

FEW = {key: BLOCK[key] for key in ("evaluation", "ladder", "control", "late_steps")}
CHECKPOINTS = [0, 100, 200, 400, 800]
LOW = [5.0, 3.0, 2.0, 2.2, 2.5]  # saturates at 200, then rises
HIGH = [5.0, 3.0, 2.0, 1.5, 1.0]  # falls to the end
AHEAD = [5.0, 2.0, 1.9, 1.8, 1.7]  # its drop is made on the plateau


def of_curves(**losses):
    """A student with these curves: target -> one list of losses for each seed."""
    rows = [
        planted.table(target, seed, CHECKPOINTS, np.array(run)[:, None])
        for target, runs in losses.items()
        for seed, run in enumerate(runs)
    ]
    return planted.Evaluated({}, pd.concat(rows), dict.fromkeys(losses, TARGETS["original"]))


def compared(low, high, text, steps=(200, 800)):
    """Two differences of times, three late changes, a ratio of drops, and the end of the text."""
    student = of_curves(low=low, high=high, text=text)
    ladder = ["low", "high"]
    return [
        *learning.ordered(student, ladder),
        *learning.late_changes(student, ladder, steps),
        *learning.overlap(student, ladder, "text"),
        *learning.still_falling(student, "text"),
    ]


def verdicts(parts):
    return [part.verdict() for part in parts]


@pytest.mark.parametrize(
    ("low", "high", "text", "expected"),
    [
        (LOW, HIGH, HIGH, ["yes"] * 7),
        # Checkpoints do not resolve the end of this plateau.
        (HIGH, LOW, LOW, [*["no"] * 5, "undecided", "no"]),
    ],
)
def test_comparisons_say_yes_where_it_was_built_in(low, high, text, expected):
    assert verdicts(compared([low] * 3, [high] * 3, [text] * 3)) == expected


def test_comparisons_have_the_numbers_that_were_built_in():
    *parts, _ = compared([LOW] * 3, [HIGH] * 3, [HIGH] * 3)
    # Two times that differ by 600, the rise of one loss, the fall of the other and both, a ratio.
    assert [part.value for part in parts] == pytest.approx([600.0, 600.0, 0.5, 1.0, 1.5, 1.0])
    ahead = compared([AHEAD] * 3, [HIGH] * 3, [HIGH] * 3)[5]
    assert (ahead.verdict(), ahead.value) == ("no", 1.5)


def test_one_run_decides_nothing():
    assert set(verdicts(compared([LOW], [HIGH], [HIGH]))) == {"undecided"}


def test_late_steps_that_are_no_checkpoints_decide_nothing():
    late = compared([LOW] * 3, [HIGH] * 3, [HIGH] * 3, (200, 900))[2:5]
    assert set(verdicts(late)) == {"undecided"}


AT_400 = [5.0, 3.0, 2.0, 1.0, 1.0]
AT_800 = [5.0, 4.0, 3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("low", "high", "value", "resolution"),
    [
        # Saturation at 400 (spacing 200) and at 800 (spacing 400): a difference of 400.
        (AT_400, AT_800, 400, math.sqrt((200**2 + 400**2) / 12)),
        # At 200 (spacing 100) and at 400 (200): 200, by a margin of 129.
        ([5.0, 3.0, 1.0, 1.0, 1.0], [5.0, 4.0, 3.0, 1.0, 1.0], 200, math.sqrt(50000 / 12)),
    ],
)
def test_the_spacing_of_checkpoints_is_part_of_the_error_of_a_time(low, high, value, resolution):
    """Three seeds that agree to the checkpoint know the difference no better than the spacing."""
    part = next(learning.ordered(of_curves(low=[low] * 3, high=[high] * 3), ["low", "high"]))
    ends = [value - 2 * resolution, value + 2 * resolution]
    assert [part.value, *part.interval()] == pytest.approx([value, *ends])
    assert part.verdict() == "yes"


def test_times_that_differ_by_one_spacing_or_by_none_are_undecided():
    """On average they differ by less than checkpoints resolve."""
    runs = [[5.0, 4.0, 3.0, 1.0, 1.0], [5.0, 4.0, 1.0, 1.0, 1.0], [5.0, 4.0, 1.0, 1.0, 1.0]]
    mixed = of_curves(low=[[5.0, 3.0, 1.0, 1.0, 1.0]] * 3, high=runs)
    assert next(learning.ordered(mixed, ["low", "high"])).verdict() == "undecided"


# Half the range of ratios .95, 1 and 1.05 over three seeds: 4.53 standard errors reach out of
# 1 +- 0.1, where two would not have.
@pytest.mark.parametrize(("half", "verdict"), [(0.05, "undecided"), (0.02, "yes")])
def test_the_error_of_the_overlap_is_that_of_the_mean_over_seeds(half, verdict):
    """Drops up to the plateau's end, 1, with planted ratios."""
    high = [[5.0, 4.0, 2.0, 1.5, 1.0]] * 3
    low = [[5.0, 5.0 - ratio, 2.0, 2.0, 2.0] for ratio in (1 - half, 1.0, 1 + half)]
    part = compared(low, high, high)[5]
    assert (part.value, part.error) == pytest.approx((1, half / math.sqrt(3)))
    assert part.verdict() == verdict


def test_bounds_over_few_seeds_are_students():
    """Changes and rises whose two standard errors would decide, and whose 4.53 do not."""
    # Changes from 200 to 800 of -0.03, -0.17 and -0.1 against a bound of 5 % of the drop, 0.19.
    low = [[5.0, 3.0, 1.5, 1.2, 1.5 + change] for change in (-0.03, -0.17, -0.1)]
    # The loss on text ends below all before by 0.1, 0.02 and 0.06.
    text = [[5.0, 3.0, 2.0, 1.5, 1.5 - fall] for fall in (0.1, 0.02, 0.06)]
    _, _, change, *_, fall = compared(low, [HIGH] * 3, text)
    assert verdicts([change, fall]) == ["undecided"] * 2
    assert change.value == pytest.approx(-0.1)
    assert change.value - 2 * change.error > -0.189
    assert fall.value < -2 * fall.error
    assert fall.interval()[1] == pytest.approx(fall.value + margin(fall.error, 3))


def test_losses_are_compared_after_the_plateau_alone():
    """Of the second target they are 1 % higher at every step."""
    rows = [
        planted.table(target, 0, [step], np.full((1, 20), factor * loss))
        for step, loss in ((0, 5.0), (10, 4.9), (20, 2.1), (30, 2.0))
        for target, factor in (("n2", 1.0), ("n4", 1.01), ("original", 1.0))
    ]
    tested = planted.Evaluated(planted.STUDENT, pd.concat(rows), TARGETS)
    found = list(learning.similar_losses("losses", tested, "n2", "n4", "original"))
    assert ["step 20" in found[0].label, "step 30" in found[1].label] == [True, True]
    assert [part.value for part in found] == pytest.approx([0.01, 0.01])
    assert [part.region for part in found] == [(-0.02, 0.02)] * 2


# --- Claims --------------------------------------------------------------------------------------


def answers(claims):
    """Name in the id -> verdict."""
    return {claim.id.rpartition("/")[2]: claim.verdict for claim in claims}


TURNED = {"ladder": ["bert", "n2"], "norm": ["bert-norm", "n2-norm"]}


@pytest.mark.parametrize(
    ("ladders", "verdict"),
    [({"ladder": ["n2", "bert"], "norm": ["n2-norm", "bert-norm"]}, "yes"), (TURNED, "no")],
)
def test_the_order_that_was_built_into_the_losses_is_what_the_claims_say(ladders, verdict):
    found = answers(fig4.claims(planted.of_figure_4(BLOCK | ladders)))
    assert {found[name] for name in ("order-of-learning", "late-losses", "norm-score")} == {verdict}
    assert found["early-overlap"] == "yes"


def test_the_claims_of_figure_4_say_what_they_are_about():
    found = by_name(fig4.claims(planted.of_figure_4()))
    assert len(found["order-of-learning"].parts) == 6  # three pairs, two definitions
    assert len(found["late-losses"].parts) == 4
    assert len(found["norm-score"].parts) == 10
    assert found["original-text"].verdict == "undecided"
    assert all("3 runs" in claim.scope for claim in found.values())
    beyond = {name for name, claim in found.items() if claim.reference != "figure 4"}
    assert beyond == {"order-at-equal-loss", "norm-score"}
    # The checkpoints, 200, 300, 400, 600, do not resolve the times to log 1.25.
    for part in found["order-at-equal-loss"].parts:
        assert part.unusable.endswith("checkpoints do not resolve the times")
    stopped = found["order-at-equal-loss"].parts[0].label
    assert "n = 4, order 9, rank 32, stopped against n = 2, order 3, rank 32" in stopped


def test_claims_whose_clones_a_run_does_not_have_are_not_run_or_not_made():
    found = answers(fig4.claims(planted.of_figure_4(FEW)))
    assert found["order-at-equal-loss"] == "not-run"
    assert "norm-score" not in found


def test_figures_4_and_5_make_the_same_claims_under_their_own_names():
    tables = planted.of_figure_4()
    names = [answers(module.claims(tables)) for module in (fig4, fig5)]
    assert names[0] == names[1]
    assert all(claim.id.startswith("simplicity/fig5/") for claim in fig5.claims(tables))
    paper = fig4_paper.claims(tables)
    assert set(answers(paper)) == {"order-of-learning", "early-overlap", "late-losses"}


def test_order_33_is_a_rung_like_any_other_where_it_is_a_restriction():
    made = {name: one for name, one in TARGETS.items() if not one["original"]}
    long = {
        name: clone(one["generator"]["description"] | {"length": 64}, name)
        for name, one in made.items()
    }
    long |= {"original": TARGETS["original"], "n4-early": clone(factored(6, length=64), "n6")}
    block = BLOCK | {"ladder": ["n2", "n4", "n4-early", "bert"]}
    order, _ = fig1.claims(planted.of_figure_1(block, targets=long))
    assert len(order.parts) == 8
    assert sum("n = 6, order 33" in part.label for part in order.parts) == 4


def test_claims_about_the_same_runs_are_counted_once():
    assert fig1.claims(planted.of_figure_1(claims_reported_by="fig4")) == []
    names = answers(fig1.claims(planted.of_figure_1(BLOCK | {"ladder": ["n2", "bert"]})))
    assert names == {"order-of-learning": "yes", "early-overlap": "yes"}


@pytest.mark.parametrize(
    ("description", "name"),
    [
        (factored(2), "n = 2, order 3"),
        (factored(4, variant="paper"), "n = 4, nominal order 9"),
        (factored(1, variant="paper"), "n = 1, order 2"),
        (factored(6), "n = 6, order 33 > L = 16: any order"),
        (factored(6, length=33), "n = 6, order 33"),
        (BERT, "BERT, any order"),
    ],
)
def test_legends_say_the_order_and_what_it_is_worth(description, name):
    assert models.about(description).generator == name


def test_legends_of_clones_say_what_sets_them_apart():
    assert labels.target(TARGETS["n4-early"]) == "n = 4, order 9, stopped at step 700"
    assert labels.target(TARGETS["n2-wide"], rank=True) == "n = 2, order 3, rank 160"
    short = [labels.short(one) for one in (TARGETS["n4"], clone(factored(6), "n6"))]
    assert short == ["9", "33\n> L"]


# --- Pictures ------------------------------------------------------------------------------------


def test_figure_4_has_the_means_and_runs_of_its_losses():
    drawn = planted.of_figure_4().drawn
    assert list(drawn.columns) == style.COLUMNS
    assert set(drawn["panel"]) == {"loss", "accuracy", "between"}
    table = planted.losses()
    mine = table[(table["target"] == "n4") & (table["step"] == 600)]
    runs = mine.groupby("seed")["loss_sum"].sum() / mine.groupby("seed")["predictions"].sum()
    rows = style.series(drawn, "loss", "n = 4, order 9").query("x == 600").set_index("seed")
    assert rows.loc[["0", "1", "2"], "y"].tolist() == pytest.approx(runs.tolist())
    assert rows.loc["mean", ["y", "y_err"]].tolist() == pytest.approx([runs.mean(), runs.std()])
    assert (drawn["x"] > 0).all()


def test_figure_4_has_a_bar_and_a_group_of_late_losses_for_each_clone():
    """Bars lie between the checkpoints around saturation; controls stand beside their pair."""
    tables = planted.of_figure_4()
    _, times, late = fig4.draw(tables).axes
    names = ["n2", "n4-early", "n4", "bert", "n2-wide", "original"]
    for row, (name, bar) in enumerate(zip(names, times.lines, strict=True)):
        known = learning.saturated(tables.student, name)
        low, high = (known["time"] - known["spacing"]).min(), known["time"].max()
        assert bar.get_xydata().tolist() == [[low, row], [high, row]]
        curves = tables.student.curves.query("target == @name")
        means = curves.groupby("step")["loss"].mean()[BLOCK["late_steps"]]
        assert late.lines[row].get_ydata() == pytest.approx(means.to_numpy())
    written = [label.get_text() for label in times.get_yticklabels()]
    assert written == ["3", "9 stopped", "9", "BERT", "3 wide", "original"]


def test_a_loss_that_never_falls_saturates_at_the_left_end_of_figure_4():
    student = planted.student()
    student.curves.loc[student.curves["target"] == "n2", "loss"] = 3.0
    times = fig4.draw(fig4.tables_of(student, [], fig4.Block.model_validate(FEW))).axes[1]
    assert times.lines[0].get_xdata().tolist() == [0, 0]


def test_x_of_figure_1_is_epochs_of_200_steps():
    assert planted.of_figure_1().drawn["x"].max() == pytest.approx(STEPS[-1] / 200)


# --- From files ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("module", [fig1, fig4, fig5, fig4_paper])
def test_learning_figures_are_read_from_files(tmp_path, module):
    block = {key: BLOCK[key] for key in FEW if key != "late_steps"} if module is fig1 else BLOCK
    inputs, block = planted.written(tmp_path)(module, block)
    found = module.tables(inputs, block)
    expected = planted.of_figure_1 if module is fig1 else planted.of_figure_4
    pd.testing.assert_frame_equal(found.drawn, expected(seeds=(0, 1)).drawn)
    # No generator was tested at the step that was sampled.
    ratios = [one.unusable for one in getattr(found, "pairs", [])]
    assert all("was not tested at its step" in reason for reason in ratios)
    assert "2 runs" in module.caption(inputs, block)


def test_the_caption_explains_open_markers_where_any_are_drawn():
    cases = ({}, False), ({"early_stopped": "n4-early"}, True), ({"wide": "n2-wide"}, True)
    for given, open_markers in cases:
        assert (
            "Open markers" in fig4.panels(fig4.Block.model_validate(FEW | given))
        ) == open_markers
