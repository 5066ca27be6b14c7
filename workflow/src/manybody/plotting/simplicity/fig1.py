"""Figure 1, right: a student's losses on the clones against the training epoch."""

from manybody.claims import labels
from manybody.claims.simplicity.learning import Student, read
from manybody.io import tables
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn
from manybody.plotting.simplicity.learning import band, draw_curve, ladder


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read(files, block, context))


@style.styled(style.RC)
def figure_of(student: Student) -> Drawing:
    """The losses on a linear axis."""
    figure = style.new(1, 3.1)
    axes = figure.subplots()
    curves, unit = [], 1 / tables.steps_per_epoch(student.history)
    for series in ladder(student):
        curves.append(series.curve("loss", "loss", unit))
        draw_curve(axes, curves[-1], series)
    axes.set(
        xlabel="training epoch",
        ylabel="test loss (nats per token)",
        xlim=(0, None),
        title=labels.scale(student.about, student.seeds),
    )
    style.legend_below(axes, 2, title=band(student.seeds), alignment="left")
    return figure, drawn(curves)
