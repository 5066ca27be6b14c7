"""Every figure draws the numbers of its CSV, all of them in the panels that it shows whole, and is
legible at the width of a column."""

import planted_flow
import planted_losses
import planted_multi_index
import planted_order
import planted_potts
import planted_spectra
import planted_staircase
import planted_truths
import pytest
from drawn import strangers, undrawn
from legible import faults

from manybody import papers
from manybody.papers.simplicity import fig2, fig2_literal
from manybody.papers.your_model import map as passage_map, spectrum

CHECKPOINTS = [10, 50, 100, 200, 400, 1000]

# By paper and figure: a function that gives planted tables, with several runs and errors above 0.
TABLES = {
    ("simplicity", "fig1"): planted_losses.of_figure_1,
    ("simplicity", "fig2"): lambda: planted_staircase.tables_of(fig2),
    ("simplicity", "fig2_literal"): lambda: planted_staircase.tables_of(fig2_literal, "+-1", "0/1"),
    ("simplicity", "fig3"): planted_losses.of_figure_3,
    ("simplicity", "fig4"): planted_losses.of_figure_4,
    ("simplicity", "fig4_paper"): planted_losses.of_figure_4,
    ("simplicity", "fig5"): planted_losses.of_figure_4,
    ("multi-index", "fig1"): lambda: planted_multi_index.whole("fig1"),
    ("multi-index", "fig2"): lambda: planted_multi_index.whole("fig2"),
    ("multi-index", "fig3"): lambda: planted_multi_index.whole("fig3"),
    ("multi-index", "fig5"): lambda: planted_multi_index.whole("fig5"),
    ("potts", "fig2"): planted_potts.of_figure_2,
    ("potts", "fig3"): planted_potts.of_figure_3,
    ("potts", "recovery"): lambda: planted_potts.of_recovery(6),
    ("potts", "heads"): planted_potts.of_heads,
    ("potts", "contacts"): lambda: planted_potts.contact_tables(truth=planted_potts.TRUTH),
    ("simplicity", "spectrum"): planted_spectra.of_spectrum,
    ("simplicity", "spectrum_truth"): planted_spectra.beside_truth,
    ("simplicity", "truths"): planted_truths.of_figure,
    ("simplicity", "order"): planted_order.of_figure,
    ("your-model", "spectrum"): lambda: spectrum.tables_of(
        # Two models of one kind, of which one has a suspect checkpoint.
        [
            planted_spectra.series(CHECKPOINTS, suspect=100),
            planted_spectra.series(CHECKPOINTS, name="other"),
        ]
    ),
    ("your-model", "map"): lambda: passage_map.tables_of(planted_spectra.passage(16)),
    ("simplicity", "gradient_flow"): planted_flow.tables,
}

# Panels of which a table has more than is drawn: the runs behind a mean, numbers that stand in the
# text or decide a claim, steps before those that are shown.
RUNS = {"loss", "accuracy", "between"}
STAIRS = {"escapes", "gap", "lines", "plateaus", "shares"}
BEYOND = {
    ("simplicity", "fig1"): {"loss"},
    ("simplicity", "fig2"): STAIRS,
    ("simplicity", "fig2_literal"): {f"{part}: {one}" for part in ("+-1", "0/1") for one in STAIRS},
    ("simplicity", "fig3"): {"R-hat", "c"},
    ("simplicity", "fig4"): RUNS,
    ("simplicity", "fig4_paper"): RUNS,
    ("simplicity", "fig5"): RUNS,
    ("simplicity", "order"): {"kappa"},
    ("multi-index", "fig3"): {"c"},
    ("potts", "fig2"): {"c end", "candidates", "loss", "pearson"},
    ("potts", "fig3"): {"right"},
}


@pytest.mark.parametrize(("paper", "figure"), TABLES)
def test_what_is_drawn_stands_in_the_table_and_the_table_is_drawn(paper, figure):
    tables = TABLES[paper, figure]()
    picture = papers.figure_module(paper, figure).draw(tables)
    assert strangers(picture, tables.drawn) == []
    assert undrawn(picture, tables.drawn) == BEYOND.get((paper, figure), set())
    assert faults(picture) == []
