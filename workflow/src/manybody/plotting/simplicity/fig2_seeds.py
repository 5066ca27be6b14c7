"""Figure 2, seed by seed: how often the deepest network gets there, by each training recipe."""

from manybody.claims.simplicity.staircase_runs import read_parts
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn
from manybody.plotting.simplicity import staircase


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> Drawing:
    """A panel of losses for the deepest network by each recipe, each seed coloured by its end."""
    (part,) = read_parts(files, block, context)
    groups, order = [part.deepest, *part.protocols], part.lines.order
    columns = min(len(groups), 3)
    rows = -(-len(groups) // columns)
    figure = style.new(2, 2.3 * rows + 1.0)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    parts = []
    for axes, group in zip(panels, groups, strict=False):
        parts.append(staircase.draw_losses(axes, [group], part.lines, by_end=True))
        reached = group.counts(part.lines)["reached"]
        axes.set(
            title=f"{group.label}: {reached} of {len(group.runs)} seeds reach order {order}",
            xlabel="training epoch",
        )
    for axes in panels[len(groups) :]:
        axes.axis("off")
    for axes in panels[::columns]:
        axes.set_ylabel("held-out loss (nats per token)")
    staircase.label_lines(panels[len(groups) - 1], part.lines)
    figure.legend(
        handles=staircase.class_handles(groups, part.lines),
        title=staircase.class_title(groups),
        alignment="left",
        loc="outside lower center",
        ncols=3,
    )
    return figure, drawn(
        [*parts, staircase.ends_table(groups, part.lines), *staircase.numbers(part)]
    )
