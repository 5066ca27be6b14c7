"""Figures of text from small synthetic tables: what is drawn, and that bytes repeat."""

from importlib import import_module

import pandas as pd
import planted_losses as planted
import pytest
from legible import faults
from planted_losses import BLOCK, FIG3, LENGTH, STEPS
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from manybody.claims.saturation import saturations
from manybody.plotting import style
from manybody.plotting.simplicity import fig1, fig3, fig4, table1

PASSAGES = [
    ("test text", "the array is returned as a view if possible, and"),
    ("test text", "raised if the " + "index is out of bounds " * 5),
    ("n = 2, order 3", "the the returned $ value of $ array of the\n name"),
    ("n = 2, order 3", "if if the the"),
    ("n = 6, nominal order 33 > L = 16: any order", "the index is returned as a copy if it is not"),
]


@pytest.mark.long
def test_a_learning_figure_draws_the_means_and_runs_of_its_losses():
    figure, drawn = fig4.figure_of(planted.student())
    assert list(drawn.columns) == style.FIGURE_COLUMNS
    assert set(drawn["panel"]) == {"loss", "accuracy", "saturation", "between", "late"}
    assert faults(figure) == []
    table = planted.losses()
    mine = table[(table["target"] == "n4") & (table["step"] == 600)]
    runs = mine.groupby("seed")["loss_sum"].sum() / mine.groupby("seed")["predictions"].sum()
    here = drawn[(drawn["series"] == "n = 4, order 9") & (drawn["x"] == 600)]
    for panel in ("loss", "late"):
        rows = here[here["panel"] == panel].set_index("seed")
        assert rows.loc[["0", "1", "2"], "y"].tolist() == pytest.approx(runs.tolist())
        assert rows.loc["mean", ["y", "y_err"]].tolist() == pytest.approx([runs.mean(), runs.std()])
    # The line and the band on the page are those of the table.
    left = figure.axes[2]
    place = [line.get_label() for line in left.lines].index("n = 4, order 9")
    mean = drawn[(drawn["panel"] == "loss") & (drawn["seed"] == "mean")]
    mean = mean[mean["series"] == "n = 4, order 9"]
    assert left.lines[place].get_xydata() == pytest.approx(mean[["x", "y"]].to_numpy())
    low, high = mean["y"] - mean["y_err"], mean["y"] + mean["y_err"]
    heights = [band.get_paths()[0].vertices[:, 1] for band in left.collections]
    assert any(
        min(y) == pytest.approx(low.min()) and max(y) == pytest.approx(high.max()) for y in heights
    )
    assert left.get_xscale() == "log"
    assert (drawn["x"] > 0).all()


def test_series_without_their_clones_are_not_drawn():
    block = {key: BLOCK[key] for key in ("evaluation", "ladder", "control", "late_steps")}
    _, drawn = fig4.figure_of(planted.student(block=block))
    assert not drawn["series"].str.contains("stopped|rank").any()


@pytest.mark.long
def test_bars_of_figure_4_lie_between_the_checkpoints_around_saturation():
    """Three seeds that saturate at steps of their own; no two bars share a row."""
    student = planted.student()
    figure, drawn = fig4.figure_of(student)
    times, found = figure.axes[0], drawn[drawn["panel"] == "between"]
    names = [*BLOCK["ladder"], *(BLOCK[role] for role in ("control", "early_stopped", "wide"))]
    for row, (series, ends) in enumerate(found.groupby("series", sort=False)):
        known = saturations(student.curves, names[row])
        assert series.startswith(student.labels[names[row]].partition(", stopped")[0])
        low, high = (known["step"] - known["spacing"]).min(), known["step"].max()
        assert ends["x"].tolist() == [low, high]
        assert times.lines[row].get_ydata().tolist() == [row, row]
        assert times.texts[row].get_text() == f"{low:g} to {high:g}"
    words = figure.legends[0].get_title().get_text()
    assert words.count("times the step of the other (95 %:") == 2


def test_a_loss_that_never_falls_saturates_at_the_left_end_of_figure_4():
    student = planted.student()
    curves = student.curves
    curves.loc[curves["target"] == BLOCK["ladder"][0], "loss"] = 3.0
    figure, _ = fig4.figure_of(student)
    times = figure.axes[0]
    assert times.texts[0].get_text() == "step 0"
    assert times.lines[0].get_xdata().tolist() == [times.get_xlim()[0]] * 2


def test_figure_1_has_a_linear_axis_of_epochs():
    figure, drawn = fig1.figure_of(planted.student())
    assert faults(figure) == []
    assert figure.axes[0].get_xscale() == "linear"
    assert "epoch" in figure.axes[0].get_xlabel()
    assert drawn["x"].max() == pytest.approx(STEPS[-1] / 200)  # steps in an epoch


def test_one_colour_of_the_config_changes_one_series():
    blocks = (BLOCK, BLOCK | {"palette": {"n4": "#123456"}})
    plain, changed = (
        fig1.figure_of(planted.student(block=block))[0].axes[0].lines for block in blocks
    )
    new = [line.get_color() for line in changed]
    differing = [
        one.get_label() for one, two in zip(plain, new, strict=True) if one.get_color() != two
    ]
    assert differing == ["n = 4, order 9"]
    assert "#123456" in new


def test_figure_3_draws_generators_chains_and_sweeps():
    figure, drawn = fig3.figure_of(planted.quality())
    assert list(drawn.columns) == style.FIGURE_COLUMNS
    assert faults(figure) == []
    counts = drawn.groupby("panel")["series"].nunique()
    assert counts.to_dict() == {"a": 4, "b": 3, "c": 4}
    assert len(drawn[drawn["panel"] == "b"]) == 3 * 71
    assert [len(axes.lines) for axes in figure.axes] == [4, 3, 4]
    words = figure.axes[1].get_legend().get_texts()[0].get_text()
    assert "2.8" in words
    assert "30% of the start kept" in words


def test_bands_of_figure_3_lie_a_standard_error_to_either_side():
    figure, drawn = fig3.figure_of(planted.quality())
    bands = figure.axes[0].collections
    quality = drawn[drawn["panel"] == "a"]
    assert len(bands) == quality["series"].nunique()
    for band, (_, curve) in zip(bands, quality.groupby("series", sort=False), strict=True):
        corners = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9)}
        for sign in (-1, 1):
            edge = (curve["y"] + sign * curve["y_err"]).round(9)
            assert set(zip(curve["x"].astype(float), edge, strict=True)) <= corners


def test_table_1_keeps_the_text_as_it_is():
    figure, drawn = table1.table_of(PASSAGES, 20)
    assert drawn.to_numpy().tolist() == [list(passage) for passage in PASSAGES]
    assert faults(figure) == []
    shown = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert "value of $ array" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("raph is planar iff it can be d", "is planar iff it can be"),
        (" words that are whole.", "words that are whole."),
        ("MKV-LLA", "MKV-LLA"),
        ("cut", "cut"),
    ],
)
def test_sequences_are_cut_at_words(text, shown):
    assert table1._at_words(text) == shown


@pytest.mark.long
def test_files_are_the_same_bytes_each_time(tmp_path):
    for folder in ("one", "two"):
        style.save(*fig1.figure_of(planted.student()), tmp_path / folder / "fig1")
    for kind in ("pdf", "png", "csv"):
        one, two = ((tmp_path / folder / f"fig1.{kind}").read_bytes() for folder in ("one", "two"))
        assert one == two
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "fig1.csv",
        "fig1.pdf",
        "fig1.png",
    ]
    assert b"CreationDate" not in (tmp_path / "one" / "fig1.pdf").read_bytes()


# --- From files --------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("figure", ["fig1", "fig4", "fig5", "fig4_paper"])
def test_learning_figures_are_drawn_from_files(tmp_path, figure):
    files, context = planted.written(tmp_path)(BLOCK)
    module = import_module(f"manybody.plotting.simplicity.{figure}")
    _, drawn = module.draw(files, BLOCK, context)
    expected = fig1 if figure == "fig1" else fig4
    pd.testing.assert_frame_equal(drawn, expected.figure_of(planted.student((0, 1)))[1])


def test_figure_3_is_drawn_from_files(tmp_path):
    block = {key: value for key, value in FIG3.items() if key != "wide_generator"} | {"seeds": [1]}
    files, context = planted.written(tmp_path)(block)
    _, drawn = fig3.draw(files, block, context)
    assert set(drawn[drawn["panel"] == "c"]["seed"]) == {"1"}
    assert set(drawn["panel"]) == {"a", "b", "c"}


def test_table_1_is_drawn_from_files(tmp_path):
    tokenizer = Tokenizer(WordLevel({f"w{number}": number for number in range(400)}))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    block = {"clones": ["n2", "bert"], "sweep": 20, "passages": [1, 3]}
    files, context = planted.written(tmp_path)(block)
    files["tokenizer"] = tmp_path / "tokenizer.json"
    _, drawn = table1.draw(files, block, context)
    assert drawn["series"].tolist() == ["test text", "n = 2, order 3", "BERT, any order"]
    first, moved = (
        [[int(word[1:]) for word in part.split()] for part in text.split(" … ")]
        for text in drawn["text"][:2]
    )
    # Two short sequences are one passage; the words at their edges may be parts of words.
    assert [len(part) for part in first] == [LENGTH - 2] * 2
    assert moved == [[(token + 20) % 400 for token in part] for part in first]
    with pytest.raises(ValueError, match=r"passages \[4\]"):
        table1.draw(files, block | {"passages": [1, 4]}, context)
