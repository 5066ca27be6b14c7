"""Compares what a figure draws with its table: lines, points, error bars, bands, maps; and the
table with what is drawn of it."""

from collections import defaultdict
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.ticker import FixedFormatter

CLOSE = 1e-6  # relative
GUIDE, MOVED = "guide", "moved"


def strangers(figure, table) -> list[str]:
    """What of a figure no row of its table (x, y, y_err; maps: value, or y) has.

    A point is a row's (x, y); on an axis of names, and where its artist has the gid `MOVED`, it has
    a row's number on the other axis. The two ends of an error bar, and of a band at each x, are
    y - y_err and y + y_err of one row, on a logarithmic axis or y exp(- y_err) and y exp(y_err), or
    the y of two rows. A straight line over all of an axes stands at a row's number; one with the
    gid `GUIDE` marks a limit and is left out, as are bars of colours.
    """
    found = []
    for axes in _panels(figure):
        rows, name = _Rows(axes, table), axes.get_title("left") or axes.get_ylabel()
        for artist in _artists(axes):
            if artist.get_gid() != GUIDE:
                found += [f"{name!r}, {type(artist).__name__}: {one}" for one in rows.lack(artist)]
    return found


def undrawn(figure, table) -> set[str]:
    """The panels of a table of which no artist has a row.

    An artist has it at the row's (x, y), if a quarter of the artist lies within the limits of the
    axes. In a map, in a straight line over all of an axes, where the other axis has names and where
    the gid is `MOVED`, it has its y, or value, alone.
    """
    points, alone = [np.empty((0, 2))], [np.empty(0)]
    for axes in _panels(figure):
        names = [_has_names(one) for one in (axes.xaxis, axes.yaxis)]
        straight = (axes.get_xaxis_transform(), axes.get_yaxis_transform())
        for artist in _artists(axes):
            if artist in axes.images:
                alone.append(np.ma.masked_invalid(artist.get_array()).compressed())
            elif artist in axes.lines or isinstance(artist, PathCollection):
                of_line = artist in axes.lines
                places = np.asarray(artist.get_xydata() if of_line else artist.get_offsets(), float)
                if _seen(axes, artist, places):
                    points.append(places)
                if any(names):
                    alone.append(places[:, int(names[0])])
                elif artist.get_gid() == MOVED or artist.get_transform() in straight:
                    alone.append(places.ravel())
    points, alone = np.concatenate(points), np.concatenate(alone)
    y = table["value" if "value" in table else "y"].to_numpy(float)
    x = table["x"].to_numpy(float) if "x" in table else y
    seen = [
        np.isnan(level)
        or _near(level, alone).any()
        or (_near(at, points[:, 0]) & _near(level, points[:, 1])).any()
        for at, level in zip(x, y, strict=True)
    ]
    return set(table["panel"][~np.array(seen)])


def _seen(axes, artist, places: np.ndarray) -> bool:
    """True if a quarter of an artist's places (N, 2) lies within the limits of its axes."""
    of_line = artist in axes.lines
    shift = artist.get_transform() if of_line else artist.get_offset_transform()
    at, window = shift.transform(places), axes.bbox.padded(1.0)
    inside = ((window.min <= at) & (at <= window.max)).all(axis=1)
    return 4 * inside.sum() >= np.isfinite(at).all(axis=1).sum()


def _panels(figure) -> list[Axes]:
    return [axes for axes in figure.findobj(Axes) if axes.get_label() != "<colorbar>"]


def _artists(axes) -> list:
    every = [*axes.lines, *axes.collections, *axes.images]
    return [artist for artist in every if artist.get_visible()]


class _Rows:
    """The rows of a table, as one axes may show them."""

    def __init__(self, axes, table):
        self.axes = axes
        self.names = [_has_names(one) for one in (axes.xaxis, axes.yaxis)]
        self.values = table["value" if "value" in table else "y"].to_numpy(float)
        x, y = (table[name].to_numpy(float) for name in ("x", "y") if name in table)
        error = np.nan_to_num(table["y_err"].to_numpy(float)) if "y_err" in table else 0 * y
        self.x, self.y, self.ends = x, y, [(y - error, y + error)]
        if "log" in (axes.get_xscale(), axes.get_yscale()):
            self.ends.append((y * np.exp(-error), y * np.exp(error)))

    def lack(self, artist) -> list[str]:
        """The first place of an artist that no row has; nothing where there is none."""
        if hasattr(artist, "get_array") and artist in self.axes.images:
            shown = np.ma.masked_invalid(artist.get_array()).compressed()
            wrong = [value for value in shown if not _near(value, self.values).any()]
        elif isinstance(artist, PolyCollection):
            wrong = [one for path in artist.get_paths() for one in self._edges(path.vertices)]
        elif isinstance(artist, LineCollection):
            moved = artist.get_gid() == MOVED
            wrong = [one.tolist() for one in artist.get_segments() if not self._bar(one, moved)]
        elif isinstance(artist, PathCollection):
            wrong = self._points(np.asarray(artist.get_offsets(), float), artist)
        else:
            wrong = self._line(artist)
        return [str(wrong[0])] if wrong else []

    def _line(self, line) -> list:
        for number, straight in enumerate(
            (self.axes.get_xaxis_transform, self.axes.get_yaxis_transform)
        ):
            if line.get_transform() == straight():
                level = float(np.ravel(line.get_xydata()[:, number])[0])
                return [] if self._number(level) else [level]
        return self._points(np.asarray(line.get_xydata(), float), line)

    def _points(self, points: np.ndarray, artist) -> list:
        moved = artist.get_gid() == MOVED
        return [
            one.tolist()
            for one in points[np.isfinite(points).all(axis=1)]
            if not (
                self._number(one[int(self.names[0])])
                if any(self.names)
                else self._number(one[0]) or self._number(one[1])
                if moved
                else (_near(one[0], self.x) & _near(one[1], self.y)).any()
            )
        ]

    def _number(self, value: float) -> bool:
        return bool(_near(value, self.x).any() or _near(value, self.y).any())

    def _pair(self, low: float, high: float, at: np.ndarray) -> bool:
        """True if two numbers are the ends of one row, or y of two rows, of those `at`."""
        own = [_near(low, start[at]) & _near(high, end[at]) for start, end in self.ends]
        return np.any(own) or (_near(low, self.y[at]).any() and _near(high, self.y[at]).any())

    def _bar(self, segment: np.ndarray, moved: bool) -> bool:
        (x, low), (end, high) = segment
        if x == end and not (self.names[0] or moved):
            return self._pair(low, high, _near(x, self.x))
        everywhere = np.ones(len(self.y), bool)
        return self._pair(*((low, high) if x == end else sorted((x, end))), everywhere)

    def _edges(self, vertices: np.ndarray) -> list:
        heights = defaultdict(list)
        for x, y in vertices:
            heights[x].append(y)
        return [
            (x, min(ys), max(ys))
            for x, ys in heights.items()
            if not self._pair(min(ys), max(ys), _near(x, self.x))
        ]


def _has_names(axis) -> bool:
    """True if the ticks have names: `set_ticks` formats places with names by a table."""
    formatter = axis.get_major_formatter()
    named = isinstance(getattr(formatter, "func", None), partial)
    return named or isinstance(formatter, FixedFormatter)


def _near(value: float, numbers: np.ndarray) -> np.ndarray:
    return np.abs(numbers - value) <= CLOSE * np.maximum(abs(value), 1e-9)
