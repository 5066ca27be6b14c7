"""What single mutations of a sequence change, as a map of sites and residues."""

import numpy as np

from manybody.papers import style

STRIP = 60  # sites in a row of the figure
EXTREME = 99  # percentile of the sizes of changes from which colours are full


@style.in_house_style
def draw(changes: np.ndarray, own: np.ndarray, sites: list[str], letters: str):
    """Changes of log p (L, q) of `measure.mutations.scan`, with a dot at the residue that the
    sequence `own` (L,) has, grey where that is a gap. sites: their names; letters: the alphabet,
    whose gap is left out."""
    from matplotlib import colormaps

    rows = -(-len(sites) // STRIP)
    figure = style.new(2, 0.6 + 0.11 * len(letters) * rows)
    most = np.nanpercentile(abs(changes), EXTREME)
    colours = colormaps["RdBu"].with_extremes(bad="0.85")
    looks = dict(cmap=colours, vmin=-most, vmax=most, aspect="auto", interpolation="none")
    for row, axes in enumerate(figure.subplots(rows, 1, squeeze=False).flat):
        first, last = STRIP * row, min(STRIP * (row + 1), len(sites))
        drawn = axes.imshow(changes[first:last, 1:].T, **looks)
        with_residue = np.flatnonzero(own[first:last])
        axes.plot(with_residue, own[first:last][with_residue] - 1, "k.", markersize=2)
        axes.set_xlim(-0.5, STRIP - 0.5)
        ticks = np.arange(0, last - first, 5)
        axes.set_xticks(ticks, [sites[first + tick] for tick in ticks])
        axes.set_yticks(range(len(letters) - 1), letters[1:])
        axes.tick_params(labelsize=6, length=0)
        axes.spines["bottom"].set_bounds(-0.5, last - first - 0.5)
    figure.colorbar(drawn, ax=figure.axes, label="change of log p (nats)", aspect=40)
    return figure
