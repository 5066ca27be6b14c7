"""Claim 11 on made curves: planted ratios of times, planted variances, planted premises."""

import itertools
import math

import numpy as np
import pandas as pd
import planted_losses as planted
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from planted_losses import BERT, LENGTH, clone, factored

from manybody.claims import verdicts
from manybody.claims.saturation import SATURATION, log_times, saturation
from manybody.claims.simplicity import comparison, corpora, headline
from manybody.claims.simplicity.comparison import BOUND, Interval, Kind
from manybody.claims.simplicity.evaluated import Evaluated
from manybody.plotting import style
from manybody.plotting.simplicity.headline import figure_of

STEPS = np.concatenate([[0, 1, 10, 50], np.round(np.geomspace(100, 3000, 50))])
CHAINS = 80


def fall(time, steps=STEPS, rise=0.0):
    """From 6 to 1, with 5 % of the drop left at about `time`; a share of `rise` comes back."""
    steps = np.asarray(steps, float)
    loss = 1 + 5 / (1 + (steps / time) ** 3 * 19)
    return loss + rise * np.log1p(steps / 3000)


# --- Times ---------------------------------------------------------------------------------------


def test_a_time_is_interpolated_in_its_logarithm():
    steps = [0, 100, 1000, 10000]
    # Drop 4 to the minimum at 10000; 5 % of it is 0.2: between 1.4 (100) and 0.1 (1000) left.
    found, width = log_times(steps, [5.0, 2.4, 1.1, 1.0], 0.05)
    share = (1.4 - 0.2) / (1.4 - 0.1)
    assert found == pytest.approx(math.log(100) + share * math.log(10))
    assert width == pytest.approx(math.log(10))


def test_an_interpolated_time_lies_before_the_checkpoint_of_saturation():
    rng = np.random.default_rng(2)
    for _ in range(200):
        losses = rng.random(12) * np.linspace(3, 0.5, 12)
        step, spacing = saturation(range(12), losses, 0.05)
        found, _ = log_times(range(12), losses, 0.05)
        if step - spacing > 0:
            assert math.log(step - spacing) <= found <= math.log(step)
        else:
            assert math.isnan(found)


def test_a_curve_without_a_fall_has_no_time():
    for losses in ([1.0, 1.1, 1.2], [1.0, 1.0, 1.0]):
        assert np.isnan(log_times([0, 10, 20], losses, 0.05)).all()
    # Between step 0 and the first checkpoint there is no logarithm to interpolate in.
    assert math.isnan(log_times([0, 10, 20], [3.0, 1.0, 1.0], 0.05)[0])


def test_many_curves_at_once_are_each_their_own():
    curves = np.stack([fall(200), fall(800), fall(400, rise=1.0)]).reshape(3, 1, -1)
    together = log_times(STEPS, curves, 0.05)[0]
    alone = [log_times(STEPS, curve[0], 0.05)[0] for curve in curves]
    assert together.ravel().tolist() == pytest.approx([float(one) for one in alone])
    assert np.exp(together.ravel()[:2]).tolist() == pytest.approx([200, 800], rel=0.02)


# --- The interval --------------------------------------------------------------------------------


def kinds_of(rng, d, students, generators, chains, each=(5, 2, 200), count=2):
    """Two kinds with planted d and planted sds of log t over students (the part that differs
    between kinds), generators and chains."""
    seeds, runs, bootstraps = each
    made = []
    for place in range(count):
        times = np.full((seeds, runs), d if place == 0 else 0.0)
        times += rng.normal(0, students / math.sqrt(2), (seeds, 1))
        times += rng.normal(0, generators, (1, runs))
        # Every generator has chains of its own, which all students share.
        times += rng.normal(0, chains, (1, runs))
        resampled = times + rng.normal(0, chains, (bootstraps, 1, runs))
        made.append(Kind(times, resampled, 0.05, 620))
    return made


@pytest.mark.parametrize(
    "sds",
    [
        (0.1, 0.0, 0.0),
        (0.0, 0.1, 0.0),
        (0.0, 0.0, 0.1),
        (0.1, 0.1, 0.0),
        (0.05, 0.15, 0.02),
        (0.1, 0.1, 0.1),
    ],
)
def test_the_interval_covers_the_planted_ratio(sds):
    rng = np.random.default_rng(11)
    repeats, covered, widths = 1500, 0, []
    for _ in range(repeats):
        late, early = kinds_of(rng, 0.2, *sds)
        found = comparison.interval(late, early, comparison.spread([late, early]))
        covered += abs(found.value - 0.2) <= found.half
        widths.append(found.half)
    # By Banerjee's bound at least 95 %; chains are counted in two parts.
    assert covered / repeats >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / repeats)
    # And no wider than it must be: within 2.5 times what the planted sds would give if known.
    students, generators, chains = sds
    truth = math.sqrt(students**2 / 5 + generators**2 + 2 * chains**2)
    assert np.median(widths) < 4.6 * truth


def test_each_part_of_the_error_is_the_planted_one():
    rng = np.random.default_rng(3)
    late, early = kinds_of(rng, 0.0, 0.2, 0.1, 0.05, (4000, 2, 4000))
    found = comparison.interval(late, early, (0.1**2, 2))
    assert found.students == pytest.approx(0.2 / math.sqrt(4000), rel=0.05)
    assert found.generators == pytest.approx(0.1)
    # Two kinds of two generators each, whose chains are independent: 0.05 again.
    assert found.chains == pytest.approx(0.05, rel=0.05)
    parts = (found.students, found.generators, found.chains)
    assert found.error == pytest.approx(math.hypot(*parts))
    expected = math.hypot(
        2 * parts[0], verdicts.margin(parts[1], 3), verdicts.margin(parts[2], 620)
    )
    assert found.half == pytest.approx(expected, rel=0.01)


def test_the_spread_of_generators_is_pooled_over_kinds():
    def kind(*means):
        times = np.tile(means, (3, 1))
        return Kind(times, times[None], 0.1, 10)

    variance, degrees = comparison.spread([kind(0.0, 0.2), kind(1.0, 1.0, 1.3)])
    assert degrees == 3
    assert variance == pytest.approx((2 * 0.1**2 + 2 * 0.1**2 + 0.2**2) / 3)
    assert comparison.spread([kind(0.0), kind(1.0)])[1] == 0


def test_students_that_all_clones_share_do_not_widen_the_interval():
    """A student that is late on every clone says nothing about d."""
    shared = np.array([0.0, 0.5, -0.3])[:, None]
    late = Kind(shared + np.array([0.3, 0.3]), np.zeros((5, 3, 2)), 0.1, 50)
    early = Kind(shared + np.array([0.0, 0.0]), np.zeros((5, 3, 2)), 0.1, 50)
    found = comparison.interval(late, early, (0.0, 2))
    assert (found.value, found.half) == pytest.approx((0.3, 0.0), abs=1e-12)


def test_one_student_decides_nothing():
    late, early = kinds_of(np.random.default_rng(0), 1.0, 0.1, 0.1, 0.1, (1, 2, 50))
    found = comparison.interval(late, early, comparison.spread([late, early]))
    assert found.half == math.inf
    assert comparison.answer(found) == "undecided"


# --- The decision --------------------------------------------------------------------------------


def of(low, high):
    return Interval((low + high) / 2, 0.1, (high - low) / 2, 0.1, 0.1, 0.1)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.23, 0.4, "yes"),
        (0.22, 0.4, "undecided"),
        (-0.2, 0.22, "no"),
        (-0.2, 0.23, "undecided"),
        (-0.9, -0.3, "no"),
        (-0.9, 0.1, "no"),
        (math.nan, math.nan, "undecided"),
        (-math.inf, math.inf, "undecided"),
    ],
)
def test_an_interval_decides_by_log_five_quarters(low, high, expected):
    assert math.log(1.25) == pytest.approx(0.22314, abs=1e-5) == BOUND
    assert comparison.answer(of(low, high)) == expected


def test_definitions_must_agree():
    yes, no, wide = of(0.3, 0.5), of(-0.1, 0.1), of(-0.5, 0.5)
    assert comparison.decide([yes, yes]) == "yes"
    assert comparison.decide([no, no]) == "no"
    for pair in ([yes, no], [yes, wide], [wide, no], [wide, wide]):
        assert comparison.decide(pair) == "undecided"


# --- From tables of losses -----------------------------------------------------------------------


GENERATORS = {
    "bert": BERT,
    "wide": factored(2, 64),
    "stopped": factored(4, 128),
    "low": factored(3, 96),
}
TARGETS = {
    f"{name}-{seed}": clone(description, name, last=name != "stopped", seed=seed)
    | {"rows": list(range(CHAINS))}
    for name, description in GENERATORS.items()
    for seed in (0, 1)
} | {"original": {"original": True}}
LATE, EARLY = ["bert-0", "bert-1"], ["wide-0", "wide-1"]
STOPPED, LOW = ["stopped-0", "stopped-1"], ["low-0", "low-1"]
SEEDS = 4


def losses(times, steps=STEPS, seeds=SEEDS, student=0.02, generator=0.02, shape=fall, draw=0):
    """A table of losses: target -> planted t, with small planted spreads of log t."""
    rng = np.random.default_rng(draw)
    difficulty = rng.normal(0, 0.2, CHAINS)
    lots = rng.normal(0, 0.1, seeds)
    frames = []
    for target, time in times.items():
        made = rng.normal(0, generator)
        for seed in range(seeds):
            shift = math.exp(made + lots[seed] + rng.normal(0, student))
            curve = shape(time * shift, steps)
            loss = curve[:, None] * (1 + 0.1 * rng.normal(size=CHAINS)) + difficulty
            frames.append(planted.table(target, seed, steps, loss))
    return pd.concat(frames, ignore_index=True)


def generators(apart=0.0):
    """Test losses of every generator; those of the low orders are worse by `apart`."""
    clones = [document for document in TARGETS.values() if not document["original"]]
    return planted.equal_generators(clones, apart)


def compared(late, early, apart=0.0, targets=TARGETS, **settings):
    """The comparison of BERT's clones with the wide model's, of planted times."""
    table = losses({name: late for name in LATE} | {name: early for name in EARLY}, **settings)
    given = generators(apart)
    (made,) = comparison.compare("fig", table, targets, given, "test", [(LATE, EARLY)], 200)
    return made


def test_a_planted_order_is_found():
    made = compared(1200, 600)
    assert made.claim["value"] == pytest.approx(math.log(2), abs=0.06)
    assert made.words == "BERT, any order against n = 2, order 3, rank 64"
    assert "4 students, 2 and 2 generators" in made.claim["claim"]


# A generator that was not tested at the step that was sampled.
UNTESTED = TARGETS | {"wide-1": clone(GENERATORS["wide"], "wide", step=1700, seed=1)}
COARSE = [0, 1, 10, 100, 300, 1000, 2000, 3000]


@pytest.mark.parametrize(
    ("late", "early", "settings", "premise", "holds", "said"),
    [
        (1200, 600, {}, "yes", "yes", ""),
        (800, 800, {}, "yes", "no", ""),
        (600, 1200, {}, "yes", "no", ""),
        (1200, 800, {"generator": 0.3, "draw": 4}, "yes", "undecided", ""),
        (1200, 800, {"student": 0.6}, "yes", "undecided", ""),
        (1200, 600, {"steps": COARSE}, "yes", "undecided", "checkpoints do not resolve the times"),
        (1200, 600, {"apart": 0.12}, "no", "undecided", "[equal loss: no]"),
        # Within the bound, but not by the error.
        (1200, 600, {"apart": 0.045}, "undecided", "undecided", "[equal loss: undecided]"),
        (1200, 600, {"targets": UNTESTED}, "not-run", "undecided", "wide-1 was not tested"),
    ],
)
def test_times_spreads_and_premises_decide_the_claim(late, early, settings, premise, holds, said):
    made = compared(late, early, **settings)
    assert (made.premise["holds"], made.claim["holds"]) == (premise, holds)
    assert said in made.premise["claim"] + made.claim["claim"]


def test_definitions_that_disagree_leave_the_claim_undecided():
    """Both kinds come to 5 % at 600, but one of them to 2 % twice as late as the other."""

    def tail(time, steps):
        five, two = (time / 2, time * 1.1) if time > 850 else (time, time * 1.1)
        left = np.interp(
            np.log(np.maximum(steps, 1)), np.log([50, five, two, 2900]), [1, 0.05, 0.02, 0]
        )
        return 1 + 5 * left

    made = compared(1200, 600, shape=tail)
    five, two = (made.found[share] for share in SATURATION)
    assert comparison.answer(five) == "no"
    assert comparison.answer(two) == "yes"
    assert made.claim["holds"] == "undecided"


def test_the_premise_is_that_of_the_pair_that_is_farthest_apart():
    given = generators()
    given[3].losses["loss_sum"] += 0.2 * LENGTH  # the second wide generator
    row = comparison.equal_losses("c", given, TARGETS, LATE, EARLY, "test")
    assert (row["holds"], round(row["value"], 1)) == ("no", 0.2)


def test_one_generator_of_each_kind_is_a_statement_about_these_two():
    table = losses({"bert-0": 1200, "wide-0": 600})
    (made,) = comparison.compare(
        "fig", table, TARGETS, generators(), "test", [(LATE[:1], EARLY[:1])], 200
    )
    assert made.claim["holds"] == "yes"
    assert "these two generators only" in made.claim["claim"]
    assert math.isnan(made.found[0.05].generators)


def test_chains_from_the_same_starts_are_drawn_together():
    """What is common to chains of equal starts does not enter the error of d."""
    table = losses({"bert-0": 900, "wide-0": 800})
    rng = np.random.default_rng(8)
    slow = rng.random(CHAINS) < 0.3  # the same hard starts are late on both clones
    late = 1 + 0.6 * slow[table["sequence"]] * (table["step"].to_numpy() < 1500)
    table["loss_sum"] *= late
    pair = [["bert-0"], ["wide-0"]]

    def error(targets):
        kinds = comparison.read_kinds(table, targets, pair, 0.05, 400)
        return comparison.interval(*kinds, (math.nan, 0)).chains

    noise = TARGETS["wide-0"] | {"rows": None, "chain_init": "unigram"}
    apart = TARGETS | {"wide-0": noise}
    assert error(TARGETS) < 0.6 * error(apart)


def test_the_bootstrap_has_the_spread_of_new_chains():
    """The error over chains is the sd of d between sets of chains that are drawn anew."""
    targets = {name: TARGETS[name] | {"rows": None} for name in ("bert-0", "wide-0")}
    found = []
    for draw in range(60):
        rng = np.random.default_rng(1000 + draw)
        frames = []
        for target, time in (("bert-0", 900), ("wide-0", 700)):
            own = rng.normal(0, 0.3, CHAINS)  # log t of each chain
            curves = np.stack([fall(time * math.exp(shift)) for shift in own], axis=1)
            frames += [planted.table(target, seed, STEPS, curves) for seed in range(2)]
        pair = [[name] for name in targets]
        kinds = comparison.read_kinds(pd.concat(frames), targets, pair, 0.05, 200)
        found.append(comparison.interval(*kinds, (math.nan, 0)))
    spread = np.std([one.value for one in found], ddof=1)
    assert np.mean([one.chains for one in found]) == pytest.approx(spread, rel=0.3)


def test_the_generators_of_two_kinds_of_chains_are_counted_once():
    """Chains from noise belong to the same generators: their spread is no further evidence."""
    noise = {
        f"noise-{seed}": TARGETS[f"wide-{seed}"] | {"chain_init": "unigram", "rows": None}
        for seed in (0, 1)
    }
    targets = TARGETS | noise
    times = dict.fromkeys([*LATE, *STOPPED, *LOW], 900) | {"wide-0": 600, "wide-1": 900}
    times |= {"noise-0": 900, "noise-1": 900}
    table = losses(times, student=0.0, generator=0.0)
    pairs = [(LATE, EARLY), (LATE, list(noise)), (STOPPED, LOW)]
    made = comparison.compare("fig", table, targets, generators(), "test", pairs, 50)
    between = math.log(1.5) ** 2 / 2
    assert made[0].found[0.05].generators == pytest.approx(math.sqrt(between / 4), rel=0.2)
    assert "from noise" in made[1].words
    assert made[0].premise["claim"] == made[1].premise["claim"]


# --- The figure ----------------------------------------------------------------------------------


def corpus(source="docs", steps=STEPS, late=1200, bootstraps=50):
    times = dict.fromkeys(LATE, late) | dict.fromkeys(EARLY, 600)
    times |= dict.fromkeys([*STOPPED, *LOW], 300) | {"original": 1500}
    block = {
        "evaluation": "students",
        "control": "original",
        "test": "test",
        "generators": [],
        "comparisons": [{"late": LATE, "early": EARLY}, {"late": STOPPED, "early": LOW}],
    }
    student = Evaluated(dict(description=BERT, source=source), losses(times, steps), TARGETS)
    return corpora.compare(student, block, generators(), bootstraps)


def test_the_headline_draws_and_lists_what_it_decided():
    made = [corpus(bootstraps=100), corpus("second", late=620, bootstraps=100)]
    found = headline.claims(made)
    figure, drawn = figure_of(made)
    assert list(drawn.columns) == style.FIGURE_COLUMNS
    assert set(drawn["panel"]) == {"loss", "times", "d", "errors"}
    claims = found[found["claim"].str.startswith("11 (")]
    assert claims["holds"].tolist() == ["yes", "no", "no", "no"]
    assert claims["claim"].str.contains("on this corpus, at this scale").all()
    stopped = claims["claim"].str.contains("may itself be of low effective order")
    assert stopped.tolist() == [False, True, False, True]
    premises = found[found["claim"].str.startswith("11, premise")]
    assert premises["holds"].tolist() == ["yes"] * 4
    d = drawn[drawn["panel"] == "d"]
    assert len(d) == 2 * 2 * len(SATURATION)
    first = claims[["value", "tolerance"]].iloc[0].tolist()
    assert d[["x", "y_err"]].iloc[0].tolist() == pytest.approx(first)
    errors = drawn[drawn["panel"] == "errors"].iloc[:3]["y"]
    assert math.hypot(*errors) == pytest.approx(claims["standard_error"].iloc[0])
    times = drawn[(drawn["panel"] == "times") & (drawn["y"] == 5)]
    assert len(times) == 2 * 8 * SEEDS
    assert len(figure.axes) == 3


def test_headings_stand_clear_of_each_other_at_two_columns_width():
    """Of every pair: which clones, at the left, and the answer, at the right, above its intervals;
    at 100 % no text is smaller than 7 points."""
    made = [corpus(), corpus("another-corpus", late=620)]
    figure, found = figure_of(made)[0], headline.claims(made)
    assert figure.get_figwidth() <= 7.2
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    (axes,) = (axes for axes in figure.axes if axes.texts)
    claims = found[found["claim"].str.startswith("11 (")]
    assert [text.get_text() for text in axes.texts[1::2]] == [
        f"the order sets the time: {holds}" for holds in claims["holds"]
    ]
    edges = [text.get_window_extent(renderer) for text in axes.texts]
    edges += [line.get_window_extent(renderer) for line in axes.lines if line.get_marker() in "oD"]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(edges, 2))
    written = [*axes.texts, *axes.get_xticklabels(), *figure.legends[0].get_texts()]
    written += [text for one in figure.axes for text in (one.title, one.xaxis.label)]
    assert min(text.get_fontsize() for text in written) >= 7


def test_a_single_corpus_says_that_the_second_is_missing():
    found = headline.claims([corpus()])
    assert found["holds"].tolist()[-1] == "not-run"
    assert "headline-second.yaml" in found["claim"].iloc[-1]
