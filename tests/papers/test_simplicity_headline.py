"""The headline on made curves: what it decides is what it draws."""

import itertools
import math

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from planted_kinds import EARLY, LATE, LOW, SEEDS, STOPPED, TARGETS, generators, losses
from planted_losses import BERT, Evaluated

from manybody.papers import style
from manybody.papers.saturation import SATURATION
from manybody.papers.simplicity import headline

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
