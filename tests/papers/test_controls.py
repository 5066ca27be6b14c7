"""Order against quality: regressions with known shares, and clones with planted times."""

import math

import numpy as np
import pandas as pd
import planted_losses as planted
import planted_spectra
import pytest
from legible import faults
from planted_losses import BERT, LENGTH, clone, factored

from manybody.papers.simplicity import controls, crossed
from manybody.papers.simplicity.comparison import BOUND
from manybody.papers.simplicity.crossed import LATE, MEASURES, Design
from manybody.papers.simplicity.students import Evaluated
from manybody.papers.style import COLUMNS

# --- Regressions ---------------------------------------------------------------------------------

# The raw clones of controls.md, section 5: order, loss, t(5 %), t(2 %), late change.
TABLE = np.array(
    [
        (2, 3.57, 362, 421, 0.34),
        (3, 3.09, 302, 366, 0.61),
        (3, 2.58, 457, 711, 0.07),
        (3, 1.76, 1169, 1506, -0.67),
        (9, 3.09, 402, 484, 0.16),
        (9, 2.49, 705, 957, -0.28),
        (16, 3.07, 367, 449, 0.32),
        (16, 2.51, 639, 852, -0.24),
        (16, 1.78, 1331, 1824, -0.90),
    ]
)
RAW = Design(TABLE[:, 0], TABLE[:, 1], np.array([0, 1, 2, 2, 3, 3, 4, 4, 4]))


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.log(TABLE[:, 2]), (0.09, 0.87, 0.87, 0.00, 0.79)),
        (np.log(TABLE[:, 3]), (0.09, 0.91, 0.91, 0.00, 0.83)),
        (TABLE[:, 4], (0.13, 0.84, 0.86, 0.01, 0.73)),
    ],
)
def test_the_published_shares_follow_from_the_published_table(y, expected):
    found = crossed.statistics(RAW, y)
    # The table is rounded, and its times are means over students before the logarithm.
    assert list(found.values())[:5] == pytest.approx(expected, abs=0.013)
    assert found["order less loss"] == pytest.approx(found["order"] - found["loss"])


def test_the_published_pairs_are_found():
    found = crossed.matched(RAW)
    named = {tuple(pair) for pair in found["order at equal loss"]}
    # 4 and 6 against 1 at 3.09, 6 against 4; 7 against 5 at 2.5; 8 against 3 at 1.8.
    assert named == {(4, 1), (6, 1), (6, 4), (7, 5), (8, 3)}
    ratios = {pair: TABLE[pair[0], 2] / TABLE[pair[1], 2] for pair in named}
    published = [ratios[pair] for pair in ((4, 1), (6, 1), (8, 3))]
    assert published == pytest.approx([1.33, 1.21, 1.14], abs=0.01)
    better = {tuple(pair) for pair in found["quality at equal order"]}
    assert {(3, 1), (5, 4), (8, 6)} <= better
    mean = crossed.statistics(RAW, np.log(TABLE[:, 2]))["order at equal loss"]
    assert mean == pytest.approx(np.mean(np.log(list(ratios.values()))))


def test_planted_shares_are_found_exactly():
    """y from uncorrelated parts whose variances are set: their shares are the answer."""
    rng = np.random.default_rng(1)
    parts, _ = np.linalg.qr(np.column_stack([np.ones(12), rng.normal(size=(12, 3))]))
    order, loss, rest = parts[:, 1:].T
    design = Design(2**order, loss, np.arange(12))
    y = 5 + math.sqrt(0.5) * order - math.sqrt(0.3) * loss + math.sqrt(0.2) * rest
    # R^2 of the order, the loss and both, what is unique to each, their difference, and b
    expected = [0.5, 0.3, 0.8, 0.5, 0.3, 0.2, math.sqrt(0.5)]
    assert list(crossed.statistics(design, y).values())[:7] == pytest.approx(expected)


def test_what_two_correlated_causes_share_is_unique_to_neither():
    rng = np.random.default_rng(2)
    order = rng.integers(1, 5, 12).astype(float)
    loss = 4 - 0.5 * order + rng.normal(0, 0.1, 12)
    found = crossed.statistics(Design(2**order, loss, np.arange(12)), 2 - loss)
    assert found["loss"] == found["both"] == pytest.approx(1.0)
    assert found["order"] > 0.9
    unique = found["unique to order"], found["doubling"]
    assert unique == pytest.approx((0.0, 0.0), abs=1e-12)
    assert found["doubling alone"] > 0.3


def test_a_weight_counts_a_clone_so_often():
    rng = np.random.default_rng(3)
    design = Design(2.0 ** rng.integers(1, 5, 12), rng.uniform(1.5, 3.5, 12), np.arange(12))
    y = rng.normal(size=12)
    weights = rng.integers(0, 3, 12)
    again = np.repeat(np.arange(12), weights)
    repeated = Design(*(np.asarray(part)[again] for part in design))
    expected = pytest.approx(crossed.statistics(repeated, y[again]), nan_ok=True)
    assert crossed.statistics(design, y, weights) == expected


def test_what_clones_do_not_tell_apart_is_no_number():
    y = np.array([1.0, 2.0, 3.0, 5.0])
    same = Design(np.full(4, 3.0), np.array([3.0, 2.5, 2.0, 1.7]), np.array([0, 1, 1, 1]))
    found = crossed.estimates(same, y[None] + np.zeros((3, 1)), bootstraps=50)
    for name in ("order", "doubling", "order at equal loss"):
        assert math.isnan(found[name].value)
    assert found["quality at equal order"].value > 0
    alone = Design(same.order, same.loss, np.zeros(4, int))
    found = crossed.estimates(alone, y[None] + np.zeros((3, 1)), bootstraps=50)
    assert not found["quality at equal order"].half < math.inf  # one training says nothing


STOPS = np.array([0, 1, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 6])
CROSSED = Design(
    np.array([2, 2, 3, 3, 3, 3, 5, 5, 9, 9, 16, 16, 16.0]),
    np.array([3.57, 2.7, 3.09, 3.09, 2.5, 1.85, 3.1, 2.5, 3.1, 2.46, 3.08, 2.48, 1.9]),
    STOPS,
)


def drawn(rng, doubling, nat, training=0.1, own=0.1, student=0.08, students=5):
    y = doubling * np.log2(CROSSED.order) + nat * CROSSED.loss
    y = y + rng.normal(0, training, 7)[STOPS] + rng.normal(0, own, 13)
    return y + rng.normal(0, student, (students, 13))


@pytest.mark.long
def test_the_interval_covers_planted_coefficients():
    """At least as often as it says, and in a tenth of the range that no data would leave."""
    rng, covered, halves = np.random.default_rng(4), [], []
    for _ in range(80):
        y = drawn(rng, 0.2, -0.7)
        found = crossed.estimates(CROSSED, y, 120)
        one = found["doubling"]
        covered.append(abs(one.value - 0.2) <= one.half)
        halves.append(one.half)
    assert np.mean(covered) >= 0.9
    assert np.median(halves) < 0.25


def test_early_stops_of_one_training_are_no_independent_evidence():
    y = drawn(np.random.default_rng(5), 0.0, -0.7, training=0.4, own=0.02)
    together = crossed.estimates(CROSSED, y, bootstraps=300)
    apart = crossed.estimates(CROSSED._replace(training=np.arange(13)), y, bootstraps=300)
    for name in ("doubling", "order at equal loss"):
        assert together[name].half > 1.15 * apart[name].half


# --- Clones with planted times -------------------------------------------------------------------

STEPS = np.concatenate([[0, 1, 10, 50], np.round(np.geomspace(100, 3000, 40))]).astype(int)
STEPS = np.union1d(STEPS, [600])
SEEDS, CHAINS = 4, 30
GENERATORS = {
    "n1": (factored(1), 3.57, 2500),
    "n2": (factored(2), 3.09, 2500),
    "wide-1": (factored(2, 160), 3.09, 480),
    "wide-3": (factored(2, 160), 1.9, 2000),
    "n3": (factored(3), 2.5, 2500),
    "n4-1": (factored(4), 3.09, 860),
    "n4": (factored(4), 2.5, 2500),
    "bert-1": (BERT, 3.09, 660),
    "bert": (BERT, 1.9, 3000),
}
ORDERS = {"n1": 2, "n2": 3, "wide-1": 3, "wide-3": 3, "n3": 5, "n4-1": 9, "n4": 9, "bert-1": 16}
DRAWN = {
    "trigrams": {"order": 3, "smoothing": "kneser-ney", "card": {"loss": {"masked": [2.9, 0.01]}}},
    "noise-30": {"share": 0.3},
}
BLOCK = {
    "evaluation": "controls",
    "control": "original",
    "test": "test",
    "generators": [],
    "series": [
        {"label": "raw", "targets": [f"raw-{name}" for name in GENERATORS]},
        {"label": "Gibbs", "targets": [f"gibbs-{name}" for name in GENERATORS]},
        {"label": "n-grams", "targets": ["trigrams"]},
    ],
    "twins": [["raw-n2", "raw-n2-noise"]],
    "noise": ["noise-30"],
    "spectrum": "bert",
    "late": [600, 3000],
}


def documents():
    found = {"original": {"original": True}}
    found |= {name: {"original": False, "source": name} for name in DRAWN}
    for name, (description, _, step) in GENERATORS.items():
        made = clone(description, name.partition("-")[0], step=step, last=name in ("n1", "bert"))
        for kind in ("raw", "gibbs"):
            found[f"{kind}-{name}"] = made | {"clone": f"{kind}-{name}"}
    found["raw-n2-noise"] = found["raw-n2"] | {"clone": "noise", "chain_init": "unigram"}
    return found


def fall(time, rise):
    steps = np.asarray(STEPS, float)
    loss = 1 + 5 / (1 + (steps / np.maximum(time, 1)) ** 3 * 19)
    return loss + rise * np.log(np.maximum(steps, 600) / 600)


def design_of(doubling=0.0, nat=-0.8, noise=500.0, noisy_rise=0.3, twin=1.0, bootstraps=60):
    """Everything that a figure reads: log t is linear in log2(order) and the loss."""
    rng = np.random.default_rng(7)
    times = {"original": 1500.0, "noise-30": noise, "trigrams": 300.0}
    for name, (_, loss, _) in GENERATORS.items():
        log = 6 + doubling * (math.log2(ORDERS.get(name, LENGTH)) - 2) + nat * (loss - 2.7)
        times |= {f"raw-{name}": math.exp(log), f"gibbs-{name}": math.exp(log)}
    times["raw-n2-noise"] = times["raw-n2"] * twin
    frames = []
    for target, time in times.items():
        made = rng.normal(0, 0.03)
        for seed in range(SEEDS):
            curve = fall(time * math.exp(made + rng.normal(0, 0.03)), 0.0)
            if target.startswith("noise"):
                curve = curve + fall(1e9, noisy_rise) - 6
            loss = curve[:, None] * (1 + 0.1 * rng.normal(size=CHAINS))
            frames.append(planted.table(target, seed, STEPS, loss))
    about = dict(description=BERT, source="docs", seed=0)
    student = Evaluated(about, pd.concat(frames, ignore_index=True), documents())
    tested = []
    for description, loss, step in GENERATORS.values():
        table = planted.table("test", 0, [step], np.full((1, 50), loss))
        tested.append(Evaluated(dict(description=description, seed=0), table, {}))
    block = controls.Block.model_validate(BLOCK)
    spectrum = planted_spectra.spectra(range(SEEDS), excess=())
    return crossed.crossed(student, tested, DRAWN, spectrum, block, bootstraps)


def claims_of(design):
    found = controls.claims(controls.tables_of(design))
    return {claim.id.rpartition("/")[2]: claim for claim in found}


@pytest.fixture(scope="module")
def by_quality():
    return design_of()


def test_what_is_known_of_generators_is_read(by_quality):
    raw = by_quality.series[0]
    assert raw.design.order.tolist() == [*(ORDERS[name] for name in list(GENERATORS)[:-1]), 16]
    assert raw.design.loss == pytest.approx([loss for _, loss, _ in GENERATORS.values()])
    # wide-1 and wide-3 are of one training, bert-1 and bert of another.
    assert len(np.unique(raw.design.training)) == 6
    grams = by_quality.series[2]
    assert (grams.design.order[0], grams.design.loss[0]) == (3, 2.9)
    assert grams.names == ["n-grams: 3-grams, kneser-ney (trigrams)"]
    assert set(raw.measured) == set(MEASURES)
    logs = raw.measured[0.05].mean(axis=0)
    assert np.ptp(logs + 0.8 * raw.design.loss) < 0.2  # planted: 0.8 a nat
    assert raw.measured[LATE].shape == (SEEDS, 9)


def test_times_that_follow_the_quality_are_not_read_as_order(by_quality):
    found = claims_of(by_quality)
    for name in ("order-less-loss", "doubling", "order-at-equal-loss"):
        assert found[name].verdict == "no"
        # Of one clone of n-grams there is no regression.
        assert [part.verdict() for part in found[name].parts] == ["no"] * 4
    assert [part.verdict() for part in found["quality-at-equal-order"].parts] == ["yes"] * 4
    doubling = found["doubling"].parts[0]
    expected = by_quality.series[0].found[0.05]["doubling"]
    assert doubling.label == "raw, 9 clones, 5% left"
    assert (doubling.value, doubling.half) == pytest.approx(
        (math.log2(3) * expected.value, math.log2(3) * expected.half)
    )
    assert doubling.region == (BOUND, math.inf)
    assert found["order-less-loss"].parts[0].region == (0.0, math.inf)


def test_times_that_follow_the_order_are_found():
    found = claims_of(design_of(doubling=0.6, nat=0.0))
    for name in ("doubling-alone", "order-less-loss", "doubling", "order-at-equal-loss"):
        assert found[name].verdict == "yes", name
    assert found["quality-at-equal-order"].verdict == "no"


def test_numbers_without_an_interval_are_no_claims(by_quality):
    raw = by_quality.series[0]
    assert raw.interval("doubling")
    found = {share: dict(raw.found[share]) for share in raw.found}
    found[0.02]["doubling"] = found[0.02]["doubling"]._replace(half=math.nan)
    one = raw._replace(found=found)
    assert not one.interval("doubling")
    claims = claims_of(by_quality._replace(series=[one]))
    assert claims["doubling"].verdict == "not-run"
    assert claims["doubling-alone"].verdict != "not-run"


def test_definitions_of_saturation_must_agree(by_quality):
    raw = by_quality.series[0]
    found = {share: dict(raw.found[share]) for share in MEASURES}
    yes = found[0.05]["quality at equal order"]
    found[0.02]["quality at equal order"] = yes._replace(value=0.0)
    claim = claims_of(by_quality._replace(series=[raw._replace(found=found)]))
    assert claim["quality-at-equal-order"].verdict != "yes"
    assert claim["quality-at-equal-order"].parts[0].verdict() == "yes"


def test_noise_and_starts_are_judged_either_way(by_quality):
    names = ("noise-early", "noise-late", "start", "half-times")
    found = claims_of(by_quality)
    assert [found[name].verdict for name in names] == ["no", "no", "yes", "yes"]
    assert found["start"].parts[0].label.startswith("raw: n = 2, order 3, rank 32")
    other = claims_of(design_of(noise=1500.0, noisy_rise=-0.3, twin=2.0))
    assert [other[name].verdict for name in names] == ["yes", "yes", "no", "yes"]
    assert other["start"].parts[0].value == pytest.approx(math.log(2), abs=0.15)
    fallen = np.interp([600, 3000], STEPS, fall(1500, 0.0))
    expected = fallen[0] - fallen[1] + 0.3 * math.log(5)
    assert other["noise-late"].value == pytest.approx(expected, abs=0.15)


def test_an_untested_generator_is_named(by_quality):
    with pytest.raises(ValueError, match="raw-n1: its generator was not tested at its step"):
        crossed.crossed(by_quality.student, [], DRAWN, by_quality.spectrum, by_quality.block, 10)


def test_the_figure_holds_what_was_measured(by_quality):
    found = controls.tables_of(by_quality)
    assert faults(controls.draw(found)) == []
    table = found.drawn
    assert list(table.columns) == COLUMNS
    assert set(table["panel"]) == {
        "loss", "order", "times", "shares", "d", "noise", "half-times",
    }  # fmt: skip
    clones = sum(len(one.names) for one in by_quality.series)
    assert (table["panel"] == "loss").sum() == clones
    assert (table["panel"] == "times").sum() == 2 * SEEDS * clones
    unique = table[table["series"] == "raw, 5%: unique to loss"].iloc[0]
    one = by_quality.series[0].found[0.05]["unique to loss"]
    assert (unique["x"], unique["y_err"]) == pytest.approx((one.value, one.half))
