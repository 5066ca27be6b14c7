"""Figure 5: the overlap of layer 1 at convergence against that of layer 2, which is held fixed."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from manybody.claims import reading
from manybody.claims.reading import Table, channel
from manybody.plotting import style
from manybody.plotting.multi_index import drawing


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    figure = style.new(1, 2.7)
    drawn = draw_fixed(figure.subplots(), reading.read(files, block, context)["fixed_overlap"])
    return figure, drawing.gather({"": drawn})


def draw_fixed(axes: Axes, table: Table) -> list[pd.DataFrame]:
    failed, entry = table.failed("fixed"), table.entry
    looks = dict(failed=failed, marker="o", markersize=3)
    shown = drawing.curve(axes, table.get("fixed", "Q11"), drawing.LAYER[1], "Q11", **looks)
    axes.set(
        xlabel="overlap of layer 2, Q₂₂, held fixed",
        ylabel="overlap of layer 1, Q₁₁",
        ylim=(-0.03, 1.04),
        title=f"α = {entry['alpha']:g}, c = {entry['skip']:g}, {channel(entry)}",
    )
    if len(failed):
        axes.lines[-1].set_label("not converged")
        axes.legend(loc="upper left")
    return shown
