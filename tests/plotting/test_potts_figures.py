"""The Potts paper's figures drawn from runs and tables with planted numbers."""

import math
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from legible import faults
from manybody.claims.potts.recovery import MEASURED
from manybody.plotting.potts import contacts, fig2, fig3, recovery
from matplotlib.figure import Figure
from planted_potts import (
    BLOCK,
    LAW,
    LENGTH,
    REPLICA,
    curve_of_losses,
    diverged,
    make,
    recovered,
    write_contacts,
)

from manybody.claims.reading import Table
from manybody.io import tables
from manybody.measure.contacts import as_matrix, precision, read_scores
from manybody.plotting import style
from manybody.theory import replica


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return fig2.draw(*make(tmp_path_factory.mktemp("planted")).given(BLOCK))


def test_the_panels_hold_what_was_read(drawn):
    figure, table = drawn
    assert faults(figure) == []
    assert list(table.columns) == style.FIGURE_COLUMNS
    assert set(table["panel"]) == {
        *("a", "loss", "b", "c", "c end", "d", "candidates", "pearson", "mean square", "values")
    }
    rows = table[(table["panel"] == "b") & (table["series"] == "J, row 3")]
    np.testing.assert_allclose(np.delete(rows["y"], 2), np.delete(LAW.couplings[2], 2))
    assert math.isnan(rows["y"].iloc[2])
    # The planted gauge is -2 and its scale is undone, so that maps can be compared by eye.
    mine = table[(table["panel"] == "b") & table["series"].str.startswith("softmax, row")]
    found = mine["y"].to_numpy().reshape(LENGTH, LENGTH)
    apart = ~np.eye(LENGTH, dtype=bool)
    assert np.corrcoef(found[apart], LAW.couplings[apart])[0, 1] > 0.985
    excess = table[(table["panel"] == "a") & (table["series"] == "softmax")]
    assert excess["y_err"].notna().all()
    assert excess["y"].iloc[-1] == pytest.approx(0.0065, abs=0.0025)
    alone = table[(table["panel"] == "a") & (table["series"] == "free")]
    assert alone["y_err"].isna().all()
    strengths = table[(table["panel"] == "d") & (table["seed"] == "mean")]
    assert strengths["x"].tolist() == [0, 0.01, 0.02]
    assert (strengths["y_err"] > 0).all()
    ends = table[(table["panel"] == "c end") & (table["series"] == "vanilla, 3 layers")]
    assert ends["y"].dropna().between(0.1, 0.25).all()
    tried = table[(table["panel"] == "candidates") & table["series"].str.startswith("free:")]
    assert tried["x"].tolist() == [0.1, 1.0, 3.0]
    assert tried["y"].idxmin() == tried[tried["x"] == 1.0].index[0]
    assert figure.axes[0].get_title(loc="left").startswith("(a) β = 1.707, optimum 0.6")


def test_names_of_six_architectures_do_not_run_into_each_other(tmp_path):
    more = [
        {**run, "label": run["label"].replace("vanilla", "tutorial")} for run in BLOCK["runs"][2:]
    ]
    block = {"runs": [*BLOCK["runs"], *more]}
    figure, _ = fig2.draw(*make(tmp_path, strengths={}).given(block))
    assert faults(figure) == []


def test_a_diverged_recipe_is_no_error(tmp_path):
    _, table = fig2.draw(*diverged(tmp_path / "one of two"))
    tried = table[table["panel"] == "candidates"]
    assert tried["y"].tolist() == [math.inf, pytest.approx(0.03)]
    fig2.draw(*diverged(tmp_path / "the only one", ["one-fast"]))


def test_figure_3_has_both_panels(tmp_path):
    few = {"realisations": 3, "size_realisations": 3}
    files = {"theory": [tmp_path / "replica.parquet"], "curves": [tmp_path / "curve.parquet"]}
    tables.write_theory(files["theory"][0], *replica.compute(REPLICA | few))
    tables.write_theory(files["curves"][0], *curve_of_losses())
    figure, table = fig3.draw(files, {}, {})
    assert faults(figure) == []
    assert set(table["panel"]) == {"left", "right"}
    assert list(table.columns) == style.FIGURE_COLUMNS


def test_the_frame_of_the_figure_holds_the_curve_up_to_its_edges():
    """Losses at alpha 1 to 4, so the frame goes from 2/3 to 6; the curve has points at both."""
    edges, outside = [1 / 1.5, 6.0], [0.5, 7.0]
    points = {
        ("loss", "simulation"): ([1.0, 4.0], [0.5, 0.5]),
        ("loss", "finite L"): ([1.0, 4.0], [0.5, 0.5]),
        ("curve", "conditional"): ([*edges, 2.0, *outside], [2.0, 0.125, 0.5, 9.0, 1e-3]),
        ("curve", "independent teacher"): ([1.0, 4.0], [0.5, 0.5]),
    }
    frame = pd.concat(
        pd.DataFrame({"quantity": kind, "series": series, "seed": 0, "x": x, "y": y})
        for (kind, series), (x, y) in points.items()
    )
    axes = Figure().subplots()
    fig3.draw_square(axes, Table(frame, {"entry": REPLICA}))
    assert axes.get_xlim() == pytest.approx(tuple(edges))
    assert axes.get_ylim() == pytest.approx((0.8 * 0.125, 1.4 * 2.0))


def test_recovery_has_its_panels(tmp_path):
    tables.write_theory(tmp_path / "curve.parquet", *recovered(3))
    figure, table = recovery.draw({"curves": [tmp_path / "curve.parquet"]}, {}, {})
    assert faults(figure) == []
    assert list(table["panel"].unique()) == list("abc")


def test_the_line_of_the_fit_runs_through_errors_that_are_a_power_of_m(tmp_path):
    frame, about = recovered(3)
    slope = frame.loc[frame["quantity"] == "mean slope", "y"].item()
    errors = frame["quantity"] == "coupling error"
    frame.loc[errors, "y"] = 150 * frame.loc[errors, "x"] ** slope
    tables.write_theory(tmp_path / "curve.parquet", frame, about)
    _, drawn = recovery.draw({"curves": [tmp_path / "curve.parquet"]}, {}, {})
    fit = drawn[drawn["series"] == "fit"]
    assert fit["x"].tolist() == list(MEASURED)
    np.testing.assert_allclose(fit["y"], 150 * fit["x"] ** slope, rtol=1e-12)


def test_contacts_are_drawn_with_and_without_what_is_true(tmp_path):
    scores = write_contacts(tmp_path, LAW.couplings, 0.1)
    frame, _ = read_scores(scores)
    LAW.save(tmp_path / "law.safetensors", {})
    files = {"contacts": [scores], "hamiltonians": [tmp_path / "law.safetensors"]}
    block = {"separation": 2}
    figure, table = contacts.draw(files, block, {})
    assert faults(figure) == []
    assert len(figure.axes) == 3
    assert set(table["panel"]) == {"a", "b"}
    np.testing.assert_allclose(table.loc[table["panel"] == "a", "y"], frame["apc"])
    shares = precision(as_matrix(frame, "apc", LENGTH), LAW.couplings != 0, 2)
    np.testing.assert_array_equal(table.loc[table["series"] == "corrected score", "y"], shares)
    _, table = contacts.draw({"contacts": [scores]}, {}, {})
    assert (np.diff(table.loc[table["panel"] == "b", "y"]) <= 0).all()


def test_no_single_pair_sets_the_colours_of_the_map(tmp_path):
    couplings = LAW.couplings.copy()
    highest = [contacts.draw({"contacts": [write_contacts(tmp_path, couplings, 0.1)]}, {}, {})]
    couplings[3, 9] = couplings[9, 3] = 100.0
    highest.append(contacts.draw({"contacts": [write_contacts(tmp_path, couplings, 0.1)]}, {}, {}))
    ends = [figure.axes[0].images[0].get_clim()[1] for figure, _ in highest]
    assert ends[1] < 2 * ends[0]


@pytest.mark.long
def test_figures_need_no_torch_and_claims_no_matplotlib():
    program = (
        "import sys; from manybody.claims.potts import contacts, fig2, fig3, recovery; "
        "assert 'matplotlib' not in sys.modules; "
        "from manybody.plotting.potts import contacts, fig2, fig3, recovery; "
        "sys.exit('torch' in sys.modules or 'numba' in sys.modules)"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=paths, check=False).returncode == 0
