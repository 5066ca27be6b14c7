"""What of a figure a reader could not make out in print, at its own size."""

import warnings
from itertools import pairwise

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from manybody.papers import style

SMALLEST = 6  # points
LINES = 2  # of a legend inside a panel


def faults(figure):
    """Another width than a column's, small type, labels or legends over others or off the page."""
    found = []
    if figure.get_figwidth() not in style.WIDTHS.values():
        found.append(f"{figure.get_figwidth()} inches wide")
    with warnings.catch_warnings(), rc_context(style.RC):
        warnings.simplefilter("error")  # a layout that does not fit
        FigureCanvasAgg(figure).draw()
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text.get_fontsize() < SMALLEST:
            found.append(f"{text.get_fontsize()} points: {text.get_text()!r}")
    for axes in figure.findobj(Axes):
        labels = [one for one in axes.get_xticklabels() if one.get_visible() and one.get_text()]
        inside = [one for one in labels if axes.bbox.padded(1).containsx(_middle(one))]
        level = [one for one in inside if one.get_rotation() % 90 == 0]
        for one, other in pairwise(sorted(level, key=_middle)):
            if one.get_window_extent().x1 > other.get_window_extent().x0:
                found.append(f"{one.get_text()!r} runs into {other.get_text()!r}")
    for axes in figure.findobj(lambda part: hasattr(part, "get_legend")):
        legend = axes.get_legend()
        if legend is None:
            continue
        box, words = legend.get_window_extent(), legend.get_texts()[0].get_text()
        if len({round(one.get_window_extent().y0) for one in legend.get_texts()}) > LINES:
            found.append(f"the legend of {words!r} has more than {LINES} lines")
        for line in axes.lines:
            path = line.get_transform().transform_path(line.get_path()).cleaned(remove_nans=True)
            if line.get_clip_on() and path.intersects_bbox(box, filled=False):
                found.append(f"a curve runs through the legend of {words!r}")
        page = figure.get_figure(root=True).bbox.padded(2)
        if not (page.fully_containsx(box.x0) and page.fully_containsx(box.x1)):
            found.append(f"the legend of {words!r} is cut off at a side")
        if not (page.fully_containsy(box.y0) and page.fully_containsy(box.y1)):
            found.append(f"the legend of {words!r} is cut off above or below")
    return found


def _middle(label):
    box = label.get_window_extent()
    return (box.x0 + box.x1) / 2
