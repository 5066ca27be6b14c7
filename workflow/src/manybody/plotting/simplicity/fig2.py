"""Figure 2: networks of one, two and three layers climb down the orders of interaction."""

from manybody.claims.simplicity.staircase_runs import read_parts
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn
from manybody.plotting.simplicity import staircase


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> Drawing:
    """(b) losses, (c) displacements below, (d) all ends beside, on the same axis of losses."""
    (part,) = read_parts(files, block, context)
    figure = style.new(2, 4.9)
    panels = [["b", "d"], ["c", "words"]]
    axes = figure.subplot_mosaic(panels, width_ratios=(2.1, 1), height_ratios=(1.4, 1))
    axes["c"].sharex(axes["b"])
    axes["d"].sharey(axes["b"])
    parts = [
        staircase.draw_losses(axes["b"], part.networks, part.lines),
        staircase.draw_ends(axes["d"], part.groups, part.lines),
        staircase.draw_displacements(axes["c"], part.deepest),
        *staircase.numbers(part),
    ]
    axes["b"].set_title(f"(b) {staircase.data(part)}")
    axes["b"].tick_params(labelbottom=False)
    axes["b"].set_ylabel("held-out loss (nats per token)")
    staircase.depth_legend(axes["b"], part.networks, columns=3)
    axes["c"].set(
        title=f"(c) n = {part.deepest.layers}, seed {part.deepest.chosen}", xlabel="training epoch"
    )
    axes["d"].set(title="(d) every run at the end")
    axes["d"].tick_params(labelleft=False)
    axes["words"].axis("off")
    staircase.class_legend(axes["words"], [part.deepest, *part.protocols], part.lines)
    return figure, drawn(parts)
