"""Figure 2 by the paper's literal recipe for the Hamiltonian, in each of its readings."""

from manybody.claims.simplicity.staircase_runs import read_parts
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn
from manybody.plotting.simplicity import staircase


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> Drawing:
    """A row of panels (b), (d), (c) for each part: as it comes out."""
    parts = read_parts(files, block, context)
    figure = style.new(2, 2.45 * len(parts))
    rows = figure.subplots(len(parts), 3, width_ratios=(2.0, 1.0, 1.5), squeeze=False)
    found = []
    for part, (losses, ends, moves) in zip(parts, rows, strict=True):
        ends.sharey(losses)
        tables = [
            staircase.draw_losses(losses, part.networks, part.lines),
            staircase.draw_ends(ends, part.groups, part.lines),
            staircase.draw_displacements(moves, part.deepest),
            *staircase.numbers(part),
        ]
        losses.set_title(f"(b) {part.name}: {staircase.data(part)}", fontsize=8)
        losses.set(xlabel="training epoch", ylabel="held-out loss\n(nats per token)")
        staircase.depth_legend(losses, part.networks, columns=1)
        ends.tick_params(labelleft=False)
        ends.set_xlabel("(d) layers n")
        moves.set_title(f"(c) n = {part.deepest.layers}, seed {part.deepest.chosen}", fontsize=8)
        moves.set_xlabel("training epoch")
        found += [table.assign(panel=f"{part.name}: " + table["panel"]) for table in tables]
    return figure, drawn(found)
