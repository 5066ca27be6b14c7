"""Bounds on what orders tell of a text: planted losses of generators, two widths of each order."""

import numpy as np
import pandas as pd
import planted_order
import pytest
from configs import load, refusal

from manybody.io import tables as stored
from manybody.io.manifest import write_manifest
from manybody.papers import inputs as needed
from manybody.papers.simplicity import order, text_bounds

LENGTH, SEQUENCES = 8, 400


def run_of(folder, name, layers, loss):
    """A run of an evaluation whose last losses are so many nats a token, one sequence as another
    but for what all generators have in common."""
    common = np.random.default_rng(0).normal(0, 0.3, SEQUENCES)
    rows = [
        pd.DataFrame({"target": "test", "step": step, "sequence": np.arange(SEQUENCES),
                      "loss_sum": LENGTH * (loss + common + extra), "correct": 0,
                      "predictions": LENGTH})
        for step, extra in ((0, 2.0), (100, 0.0))
    ]  # fmt: skip
    stored.LOSSES.write(folder / f"{name}.parquet", pd.concat(rows), {})
    description = dict(architecture="factored", layers=layers, rank=4, vocabulary=9, length=LENGTH)
    write_manifest(folder / f"{name}.json", "model", [], {"description": description})
    run = needed.Tested(evaluation=name, seed=0, targets={"test": {"split": "test"}})
    run._files |= {"losses": str(folder / f"{name}.parquet"), "runs": str(folder / f"{name}.json")}
    return run


def bounds(folder, losses):
    """Bounds of one, two and three layers, from the losses of a narrow and a wide one each."""
    folder.mkdir()
    return text_bounds.read(
        [
            [run_of(folder, f"n{layers}-{place}", layers, one) for place, one in enumerate(both)]
            for layers, both in enumerate(losses, start=1)
        ]
    )


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ([(3.0, 3.0), (2.99, 2.99), (2.985, 2.984)], "yes"),
        ([(3.0, 3.0), (2.97, 2.97), (2.985, 2.984)], "no"),
        ([(3.0, 3.0), (2.99, 2.984), (2.985, 2.984)], "undecided"),
    ],
)
def test_a_gain_is_judged_where_widths_agree(tmp_path, losses, verdict):
    found = bounds(tmp_path / "runs", losses)
    assert [one.order for one in found] == [2, 3, 5]
    assert found[0].losses[1][0] == pytest.approx(3.0, abs=0.05)
    gain = text_bounds.gain("text", found)
    assert gain.verdict() == verdict
    assert gain.value == pytest.approx(3.0 - min(map(min, losses)), abs=1e-9)
    assert gain.error == pytest.approx(0, abs=1e-9)  # of a difference, paired by sequence
    assert ("order 3 are 0.006 nats apart" in gain.unusable) == (verdict == "undecided")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"widths": [["bert"], ["bert", "n2"]]}, "a list of at least 2 items"),
        ({"widths": [["bert", "n2"], ["n2", "n4"]]}, "of bounded order"),
        ({"widths": [["n2", "none"], ["n2", "n4"]]}, "there is no evaluations.none"),
    ],
)
def test_generators_that_bound_nothing_are_refused(change, said):
    config = load()
    given = {"label": "text", "widths": [["n2", "n2-wide"], ["n4", "n4"]]} | change
    config["figures"]["simplicity"]["order"]["text"] = [given]
    assert said in refusal(config)


def test_texts_are_a_panel_of_figure_order(tmp_path):
    found = bounds(tmp_path / "runs", [(3.01, 3.0), (2.99, 2.99), (2.985, 2.984)])
    times = planted_order.times(2, ["ladder"])
    times = times[times["cell"] == "L = 12"]
    tables = order.tables_of(times, bounds={"stories": found}, bootstraps=2)
    rows = tables.drawn[tables.drawn["panel"] == "e"]
    assert rows["series"].tolist() == ["stories", "stories, narrower"] * 3
    claims = {one.id.rpartition("/")[2]: one.verdict for one in order.claims(tables)}
    assert claims["text"] == "undecided"
    figure = order.draw(tables)
    titles = [axes.get_title(loc="left") for part in figure.subfigs for axes in part.axes]
    assert "(e) texts" in titles
