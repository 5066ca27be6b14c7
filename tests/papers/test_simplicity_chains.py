"""Figure 3: quality of generators, their chains, and a student's losses on them."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import planted_losses as planted
import pytest
from claimed import by_name
from planted_losses import FIG3

from manybody.papers import claims as records, style
from manybody.papers.simplicity import fig3, students

SWEEP = np.arange(41)
RISES = 0.1 * SWEEP
SETTLES = 4.0 - 4.0 * np.exp(-SWEEP / 3.0)


def of_score(score):
    table = pd.DataFrame({"sweep": np.arange(len(score)), "score": score, "score_se": 0.1})
    return planted.chains("n2", table)


@pytest.mark.parametrize(
    ("score", "sweeps", "verdict"),
    [
        (RISES, 40, "no"),
        (SETTLES, 40, "yes"),
        (SETTLES, 4, "no"),
        ([1.0, 2.0], 1, "undecided"),  # too short
    ],
)
def test_a_score_that_settles_and_one_that_still_rises(score, sweeps, verdict):
    assert of_score(score).settled(sweeps).verdict() == verdict


def test_a_score_that_rises_evenly_drifts_by_a_quarter():
    part = of_score(RISES).settled(40)
    assert (part.value, part.error) == pytest.approx((0.25, 0.0), abs=1e-12)


def test_noise_about_a_settled_score_does_not_count_as_drift():
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(40):
        score = np.r_[0.0, np.full(40, 5.0) + rng.normal(0, 0.1, 40)]
        answers.append(of_score(score).settled(40).verdict())
    assert answers.count("no") <= 4


def moved(name="n4", changed=0.95, rhat=1.01, score=9.0):
    """Chains of 20 sweeps that have changed a share of their start."""
    sweep = np.arange(21)
    share = changed * (1 - np.exp(-sweep / 3)) / (1 - np.exp(-20 / 3))
    columns = dict(sweep=sweep, score=score, score_se=0.07, changed=share, rhat=rhat)
    return planted.chains(name, pd.DataFrame(columns))


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [(0.98, "yes"), (0.88, "undecided"), (0.6, "no"), (math.nan, "undecided")],
)
def test_a_start_is_forgotten_where_less_than_a_tenth_is_left(changed, verdict):
    part = moved(changed=changed).forgotten(20)
    assert part.verdict() == verdict
    if changed == 0.6:
        assert (part.value, part.error) == pytest.approx((0.4, math.sqrt(0.24 / 160)))
    assert moved(changed=0.98).forgotten(3).verdict() == "no"
    assert moved(changed=0.98).forgotten(30).verdict() == "undecided"


@pytest.mark.parametrize(
    ("rhat", "verdict"), [(1.01, "yes"), (1.06, "no"), (2.8, "no"), (math.nan, "undecided")]
)
def test_chains_are_mixed_below_an_rhat_of_1_05(rhat, verdict):
    assert moved(rhat=rhat).mixed().verdict() == verdict


def own_losses(mean, seed):
    draws = np.random.default_rng(seed).normal(mean, 0.3, 160)
    return pd.DataFrame({"loss_sum": 16 * draws, "predictions": 16})


@pytest.mark.parametrize(
    ("score", "loss", "verdicts"),
    [
        (9.1, 1.2, ["yes", "yes"]),
        (9.1, 1.4, ["yes", "no"]),  # four times the error of the difference
        (9.4, 1.2, ["no", "yes"]),
        (math.nan, 1.2, ["undecided", "yes"]),
    ],
)
def test_chains_from_text_and_from_noise_agree_within_two_errors(score, loss, verdicts):
    text, noise = moved(), moved("n4-unigram", score=score)
    found = list(students.agreement(text, noise, (own_losses(1.2, 1), own_losses(loss, 2)), 20))
    assert [part.verdict() for part in found] == verdicts
    assert found[0].error == pytest.approx(0.07 * math.sqrt(2))
    assert [part.value for part in found][:1] == pytest.approx([score - 9.0], nan_ok=True)
    assert all("from noise, 20 sweeps" in part.label for part in found)


# --- The figure ----------------------------------------------------------------------------------


def claims(found=None, block=FIG3):
    return by_name(fig3.claims(planted.of_figure_3(found, block)))


def test_generators_and_their_chains_are_judged():
    found = claims()
    assert {name: claim.verdict for name, claim in found.items()} == {
        "quality": "yes",
        "settled": "no",  # twenty sweeps are too few
        "sweeps": "no",
        "samples": "no",
        "new-text": "not-run",
    }
    kept = [part.value for part in found["samples"].parts if "70 sweeps" in part.label]
    assert kept == pytest.approx([0.3] * 3, abs=0.01)
    assert sum("R-hat" in part.label for part in found["samples"].parts) == 3
    inverted = claims(block=FIG3 | {"generators": ["bert-test", "n4-test", "n2-test"]})
    assert inverted["quality"].verdict == "no"
    assert len(found["sweeps"].parts) == 2 * 10  # of each pair the checkpoints after the plateau


def test_the_generators_distances_from_the_last_are_said_with_intervals():
    found = planted.quality()
    last = {
        name: run.losses[run.losses["step"] == planted.STEPS[-1]] for name, run in found[0].items()
    }
    expected = []
    for name, label in (("n2-test", "n = 2, order 3"), ("n4-test", "n = 4, order 9")):
        apart = (last[name]["loss_sum"].to_numpy() - last["bert-test"]["loss_sum"].to_numpy()) / 16
        error = apart.std(ddof=1) / np.sqrt(len(apart))
        numbers = apart.mean(), apart.mean() - 2 * error, apart.mean() + 2 * error
        expected.append(f"{records.written(*numbers)} for {label}")
    begins = "The test loss above that of BERT, any order, in nats a token, is "
    assert claims(found)["quality"].sentence == f"{begins}{' and '.join(expected)}."
    alone = claims(block=FIG3 | {"generators": ["bert-test"]})
    assert not any(claim.sentence for claim in alone.values())


@pytest.mark.parametrize(("fall", "falls"), [(2.5, True), (1.5, False), (-2.5, False)])
def test_generators_that_still_fall_are_named_on_the_figure(fall, falls):
    runs, made = planted.quality()
    curve = runs["n2-test"].curves.sort_values("step")
    (before, last), error = curve["loss"].iloc[-2:], np.hypot(*curve["loss_se"].iloc[-2:])
    losses = runs["n2-test"].losses.copy()
    moved = losses["step"] == planted.STEPS[-1]
    losses.loc[moved, "loss_sum"] += (before - fall * error - last) * losses["predictions"]
    runs["n2-test"] = replace(runs["n2-test"], losses=losses)
    tables = planted.of_figure_3((runs, made))
    assert ("n = 2, order 3" in tables.falling) == falls
    figure = fig3.draw(tables)
    ends = [line for line in figure.axes[0].lines if line.get_marker() == "v"]
    last = runs["n2-test"].curves.sort_values("step").iloc[-1][["step", "loss"]].tolist()
    assert ([last] in [end.get_xydata().tolist() for end in ends]) == falls
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ("generators still falling" in words) == bool(ends)


def test_a_generator_of_one_checkpoint_does_not_fall():
    runs, made = planted.quality()
    last = runs["n2-test"].losses["step"] == planted.STEPS[-1]
    runs["n2-test"] = replace(runs["n2-test"], losses=runs["n2-test"].losses[last])
    assert "n = 2, order 3" not in planted.of_figure_3((runs, made)).falling


@pytest.mark.parametrize(("changes", "verdict"), [({"rhat": 1.02}, "yes"), ({}, "no")])
def test_a_clone_is_a_sample_where_chains_from_text_and_from_noise_agree(changes, verdict):
    paired = [{"evaluation": "n4-test", "text": "n4-70", "noise": "n4-unigram"}]
    block = FIG3 | {"twins": paired, "chains": ["n4"]}
    samples = claims(planted.paired(*planted.quality(), **changes, changed=0.99), block)["samples"]
    assert samples.verdict == verdict  # R-hat 2.8 unless it is changed
    assert len(samples.parts) == 2 + 2 + 2  # R-hat, the start at two sweeps, score and loss
    apart = planted.paired(*planted.quality(), noise=1.0, rhat=1.02, changed=0.99)
    assert claims(apart, block)["samples"].verdict == "no"


@pytest.mark.parametrize(("share", "verdict"), [(0.009, "yes"), (0.02, "no")])
def test_test_text_is_new_where_little_of_it_is_in_the_training_text(share, verdict):
    runs, made = planted.quality()
    overlap = {"source": "docs", "overlap": {"verbatim": share}}
    made = {name: one._replace(about=one.about | overlap) for name, one in made.items()}
    assert claims((runs, made))["new-text"].verdict == verdict


def test_figure_3_holds_generators_chains_and_sweeps():
    drawn = planted.of_figure_3().drawn
    assert list(drawn.columns) == style.COLUMNS
    counts = drawn.groupby("panel")["series"].nunique()
    assert counts.to_dict() == {"a": 4, "b": 3, "c": 4, fig3.R_HAT: 3}
    assert len(drawn[drawn["panel"] == "b"]) == 3 * 71
    assert drawn.loc[drawn["panel"] == fig3.R_HAT, "y"].tolist() == [2.8] * 3


@pytest.mark.long
def test_figure_3_is_read_from_files(tmp_path):
    block = {key: value for key, value in FIG3.items() if key != "wide_generator"} | {"seeds": [1]}
    inputs, block = planted.written(tmp_path)(fig3, block)
    tables = fig3.tables(inputs, block)
    assert set(tables.drawn[tables.drawn["panel"] == "c"]["seed"]) == {"1"}
    quality = next(claim for claim in fig3.claims(tables) if claim.id.endswith("quality"))
    assert quality.verdict == "undecided"  # equal losses
    assert " on letters: " in quality.scope
