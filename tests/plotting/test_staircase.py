"""Figure 2 from synthetic runs with planted plateaus, ends and orders of layers."""

import math

import numpy as np
import pytest
from legible import faults
from planted_staircase import (
    HELD_OUT,
    LENGTH,
    PROTOCOL,
    TRUTH,
    make,
    rows_of,
    write_run,
)

from manybody.claims.simplicity import staircase_runs
from manybody.plotting import style
from manybody.plotting.simplicity import fig2, fig2_literal, fig2_seeds, staircase


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return make(tmp_path_factory.mktemp("planted"), protocol=PROTOCOL)


@pytest.fixture(scope="module")
def drawn(planted):
    return fig2.draw(*planted)


def test_the_panels_hold_what_was_read(drawn):
    figure, table = drawn
    assert faults(figure) == []
    assert list(table.columns) == style.FIGURE_COLUMNS
    panels = ["b", "d", "c", "lines", "shares", "classes", "escapes", "plateaus"]
    assert list(dict.fromkeys(table["panel"])) == panels
    ends = table[(table["panel"] == "d") & table["series"].str.startswith("n = 3:")]
    assert ends.groupby("series").size().to_dict() == {
        "n = 3: reached the 4-body region": 4,
        "n = 3: rests on the 3-body line": 2,
        "n = 3: rests on the 2-body line": 1,
        "n = 3: between lines": 1,
    }
    assert set(table[table["panel"] == "c"]["seed"]) == {"2"}
    moved = table[(table["panel"] == "escapes") & (table["series"] == "n = 3")]
    moved = moved[moved["seed"] == "7"].set_index("x")["y"]
    assert moved.to_dict() == {1.0: 70, 2.0: 130, 3.0: 3}
    assert table[table["panel"] == "shares"]["y"].sum() == pytest.approx(1)
    lowest = table[(table["panel"] == "lines") & (table["series"] == "true 4-body")]
    assert lowest["y"].tolist() == [TRUTH]
    words = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert "4 | 12  reached the 4-body region" in words


def test_ends_lie_in_the_middle_of_their_column_but_for_those_that_would_cover_each_other(planted):
    (part,) = staircase_runs.read_parts(*planted)
    ends = {0: 1.5, 1: 1.4, 2: 1.4, 3: math.inf}
    aside = staircase._beside(ends, part.lines)
    assert aside == {0: 0, 3: 0, 1: -staircase.BESIDE / 2, 2: staircase.BESIDE / 2}
    many = staircase._beside(dict.fromkeys(range(40), 1.4), part.lines)
    assert max(map(abs, many.values())) < 0.4
    assert len(set(many.values())) == 40


@pytest.mark.parametrize("more", [0, 3])
def test_names_of_columns_do_not_run_into_each_other(planted, more):
    files, block, context = planted
    protocols = block["protocols"] * (1 + more)
    figure, _ = fig2.draw(files, {**block, "protocols": protocols}, context)
    assert faults(figure) == []


def test_the_literal_recipe_has_a_row_of_panels_for_each_part(planted):
    files, block, context = planted
    part = {key: block[key] for key in ("source", "networks", "lines", "truth")}
    figure, drawn = fig2_literal.draw(files, {"parts": [part, part]}, context)
    assert faults(figure) == []
    assert len(figure.axes) == 6
    assert drawn["panel"].str.startswith("many-body: ").all()


def test_every_seed_of_every_recipe_is_shown(planted):
    figure, drawn = fig2_seeds.draw(*planted)
    assert faults(figure) == []
    curves = drawn[drawn["panel"] == "b"].groupby("series")["seed"].nunique()
    assert curves.to_dict() == {"n = 3": 8, "n = 3, protocol": 12}
    assert figure.axes[1].get_title(loc="left").endswith("12 of 12 seeds reach order 4")


def test_a_diverged_run_is_a_class_and_not_an_error(planted, tmp_path):
    files, block, context = planted
    rows = rows_of(np.array([0.0, 1.0]), [1.6, 1.55], HELD_OUT * LENGTH)
    description = dict(architecture="factored", layers=3)
    path = write_run(tmp_path / "diverged", description, rows, seed=5, diverged=150)
    models = list(files["models"])
    models[context["models"].index(["many-body", "n3", 5])] = path
    _, drawn = fig2.draw({**files, "models": models}, block, context)
    (row,) = drawn[drawn["series"] == "n = 3: diverged"].query("panel == 'd'").itertuples()
    assert row.seed == "5"
    assert math.isinf(row.y)
