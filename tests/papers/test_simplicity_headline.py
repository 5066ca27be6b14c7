"""The headline on made curves: what it decides is what it draws."""

import itertools
import math

import numpy as np
import pandas as pd
import planted_losses as planted
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from planted_losses import BERT, Evaluated, clone, factored

from manybody.papers import style
from manybody.papers.saturation import SATURATION
from manybody.papers.simplicity import headline

STEPS = np.concatenate([[0, 1, 10, 50], np.round(np.geomspace(100, 3000, 50))])
CHAINS = 80


def fall(time, steps=STEPS):
    """From 6 to 1, with 5 % of the drop left at about `time`."""
    return 1 + 5 / (1 + (np.asarray(steps, float) / time) ** 3 * 19)


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


# --- The figure ----------------------------------------------------------------------------------


def corpus(source="docs", late=1200, bootstraps=50):
    times = dict.fromkeys(LATE, late) | dict.fromkeys(EARLY, 600)
    times |= dict.fromkeys([*STOPPED, *LOW], 300) | {"original": 1500}
    part = {
        "evaluation": "students",
        "control": "original",
        "test": "test",
        "generators": [],
        "comparisons": [{"late": LATE, "early": EARLY}, {"late": STOPPED, "early": LOW}],
    }
    student = Evaluated(dict(description=BERT, source=source), losses(times), TARGETS)
    block = headline.HeadlineCorpus.model_validate(part)
    return headline.compare(student, block, generators(), bootstraps)


@pytest.mark.long
def test_the_headline_draws_and_lists_what_it_decided():
    made = [corpus(bootstraps=100), corpus("second", late=620, bootstraps=100)]
    tables = headline.tables_of(made)
    drawn, found = tables.drawn, headline.claims(tables)
    assert list(drawn.columns) == style.COLUMNS
    assert set(drawn["panel"]) == {"loss", "times", "d", "errors"}
    assert [claim.verdict for claim in found] == ["yes", "no", "no", "no"]
    d = drawn[drawn["panel"] == "d"]
    assert len(d) == 2 * 2 * len(SATURATION)
    first = found[0].parts[0]
    assert d[["x", "y_err"]].iloc[0].tolist() == pytest.approx([first.value, first.half])
    errors = drawn[drawn["panel"] == "errors"].iloc[:3]["y"]
    assert math.hypot(*errors) == pytest.approx(first.error)
    times = drawn[(drawn["panel"] == "times") & (drawn["y"] == 5)]
    assert len(times) == 2 * 8 * SEEDS


@pytest.mark.long
def test_headings_stand_clear_of_each_other_at_two_columns_width():
    """Of every pair: which clones, above its intervals; no text is smaller than 7 points."""
    tables = headline.tables_of([corpus(), corpus("another-corpus", late=620)])
    figure = headline.draw(tables)
    assert figure.get_figwidth() <= 7.2
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    assert len(figure.axes) == 3
    (axes,) = (axes for axes in figure.axes if axes.texts)
    edges = [text.get_window_extent(renderer) for text in axes.texts]
    edges += [line.get_window_extent(renderer) for line in axes.lines if line.get_marker() in "oD"]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(edges, 2))
    written = [*axes.texts, *axes.get_xticklabels(), *figure.legends[0].get_texts()]
    written += [text for one in figure.axes for text in (one.title, one.xaxis.label)]
    assert min(text.get_fontsize() for text in written) >= 7


def test_a_single_corpus_says_that_the_second_is_missing():
    last = headline.claims(headline.tables_of([corpus()]))[-1]
    assert last.verdict == "not-run"
    assert "headline-second.yaml" in last.because
