"""Section 3.1: gradient flow of two layers, by equations and by their closed form.

The numbers are those of `theory.gradient_flow.compute`, whose docstring names the quantities.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from manybody.claims import verdicts
from manybody.files import tables
from manybody.plotting import style

Drawing = tuple[Figure, pd.DataFrame, pd.DataFrame]

# Okabe and Ito's colours, one a case, and the looks of what the cases are compared with.
CASES = {
    "product": ("#D55E00", "x₀ += s x₁x₂"),
    "product, decay": ("#E69F00", "the same, with decay"),
    "squares": ("#009E73", "x₀ += s |x|²/L"),
    "minus squares": ("#56B4E9", "x₀ −= s |x|²/L"),
    "Gaussian": ("#444444", "Gaussian"),
    "Gaussian, sampled": ("#BBBBBB", "Gaussian, sampled"),
}
SCALES = ("#C9B3DA", "#8E63AE", "#4B1D6B", "#1F0A30")  # of B(0), of falling lightness
POINTS = 12  # of a flow, drawn on the line of its closed form

GRADIENTS = 1e-8  # per unit time: flow against numerical derivatives
CLOSED_FORM = 1e-8  # ODE against (13)
RISE = 1e-8  # relative step of |B| that the integrator leaves undecided
LEFT = 1e-4  # of |B(0)|: where less is left, |B| is not known so well
DECAY = 1e-3  # of |B|'s rate, relative to the weight decay
LIMIT = 1e-6  # of a against (C + decay)^-1 h
RATE = 1e-4  # measured rate of growth against (14), per unit time
QUIET = 1e-6  # rate up to which (14) predicts no growth; change of loss that counts as none
SEEN = 0.1  # |B| at the end by (14) from which its growth must show in the loss
GROWN = 10  # |B| / |B(0)| that counts as growth
NOISE = 4.0  # standard errors
ORDER = (4.0, 0.2)  # of the deviation from (13) in the scale of B(0), and its tolerance


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    (path,) = files["theory"]
    frame, about = tables.read_theory(path)
    return gradient_flow(frame, about)


@style.styled(style.RC)
def gradient_flow(frame: pd.DataFrame, about: dict) -> Drawing:
    """The figure, from the table and document of `theory.gradient_flow.compute`."""
    view = _View(frame, about)
    figure = style.new(10.2, 6.2)
    panels = figure.subplots(2, 3)
    for letter, axes, panel in zip(
        "abcdef",
        panels.flat,
        (_modes, _deviation, _norms, _growth, _losses, _spectrum),
        strict=True,
    ):
        panel(axes, view, letter)
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
    handles = [
        Line2D([], [], color=colour, linestyle=_line(case), label=label)
        for case, (colour, label) in CASES.items()
    ]
    title = "d, e, f: what the target x₀ = a*·x + noise gains (its mean is taken off)"
    figure.legend(handles=handles, loc="outside lower right", ncols=len(handles), title=title)
    return figure, pd.concat(view.drawn, ignore_index=True), claims(frame, about)


class _View:
    """A table of theory by quantity and series, and what has been drawn of it."""

    def __init__(self, frame: pd.DataFrame, about: dict):
        self.entry, self.decays = about["entry"], about["decays"]
        self._frames = dict(tuple(frame.groupby(["quantity", "series"], sort=False)))
        self.drawn: list[pd.DataFrame] = []

    def series(self, quantity: str) -> list[str]:
        return [series for found, series in self._frames if found == quantity]

    def get(self, quantity: str, series: str) -> pd.DataFrame:
        return self._frames[quantity, series]

    def y(self, quantity: str, series: str) -> np.ndarray:
        return self.get(quantity, series)["y"].to_numpy()

    def draw(self, panel: str, quantity: str, series: str, name: str) -> pd.DataFrame:
        """The numbers of a series, noted as drawn in a panel under a name."""
        found = self.get(quantity, series)
        self.drawn.append(found.assign(panel=panel, series=name)[style.FIGURE_COLUMNS])
        return found


# --- Panels --------------------------------------------------------------------------------------


def _modes(axes: Axes, view: _View, letter: str) -> None:
    last = len(view.get("mode", "1")) - 1
    # Densest at the start, where the modes move.
    places = np.unique(np.round(last * np.linspace(0, 1, POINTS) ** 2).astype(int))
    colours = style.ORDERS.values()
    modes = view.series("mode")
    for mode, colour in zip(modes, [*colours, style.UNBOUNDED] * len(modes), strict=False):
        line = view.draw(letter, "mode (13)", mode, f"mode {mode}, closed form")
        points = view.draw(letter, "mode", mode, f"mode {mode}, ODE").iloc[places]
        axes.plot(line["x"], line["y"], color=colour, label="closed form" if mode == "1" else None)
        axes.plot(
            points["x"],
            points["y"],
            color=colour,
            linestyle="",
            marker="o",
            label="ODE" if mode == "1" else None,
        )
    axes.set(xlabel="time (1 / learning rate)", ylabel="a on eigenvectors of C")
    axes.set_title("Gaussian data, B = 0: linear modes")
    axes.set_ylim(top=1.2 * axes.get_ylim()[1])  # room for the legend
    axes.legend(loc="upper right", ncols=2)


def _deviation(axes: Axes, view: _View, letter: str) -> None:
    found = view.draw(letter, "deviation", "", "largest deviation from the closed form")
    axes.plot(found["x"], found["y"], marker="o", color=style.ORDERS[2], label="ODE")
    scales = found["x"].to_numpy()
    law = found["y"].iloc[0] * (scales / scales[0]) ** ORDER[0]
    axes.plot(scales, law, color="0.5", linestyle=":", label="∝ scale⁴")
    axes.set(xscale="log", yscale="log", xlabel="scale of B(0): sd of its entries")
    axes.set_ylabel("largest deviation of a mode")
    axes.set_title("deviation from the closed form")
    axes.legend(loc="upper left")


def _norms(axes: Axes, view: _View, letter: str) -> None:
    scales = view.series("norm")
    for index, scale in enumerate(scales):
        colour = SCALES[index * len(SCALES) // len(scales)]
        free = view.draw(letter, "norm", scale, f"scale {scale}, no decay")
        decaying = view.draw(letter, "norm with decay", scale, f"scale {scale}, with decay")
        axes.plot(free["x"], free["y"], color=colour, label=scale)
        axes.plot(decaying["x"], decaying["y"], color=colour, linestyle="--")
        axes.plot(
            free["x"],
            free["y"].iloc[0] * np.exp(-view.entry["decay"] * free["x"]),
            color="0.5",
            linestyle=":",
            linewidth=1.0,
        )
    axes.plot([], [], color="0.3", linestyle="--", label=f"ε = {view.entry['decay']:g}")
    axes.plot([], [], color="0.5", linestyle=":", label="exp(−εt)")
    axes.set(yscale="log", xlabel="time (1 / learning rate)", ylabel="|B|")
    axes.set_ylim(top=40 * view.y("norm", scales[-1]).max())  # room for the legend
    axes.set_title("Gaussian data: B only shrinks")
    title = "scale of B(0); dashed: weight decay ε"
    axes.legend(ncols=3, loc="upper right", columnspacing=1.0, title=title, alignment="left")


def _growth(axes: Axes, view: _View, letter: str) -> None:
    highest = max(view.y("growth", case).max() for case in CASES)
    for case, (colour, _) in CASES.items():
        found = view.draw(letter, "growth", case, f"{case}: |B|")
        law = view.draw(letter, "linear law", case, f"{case}: linear law (14)")
        law = law[law["y"] < 3 * highest]
        axes.plot(law["x"], law["y"], color=colour, linestyle=":", linewidth=1.0)
        axes.plot(found["x"], found["y"], color=colour, linestyle=_line(case))
    law = axes.plot([], [], color="0.3", linestyle=":", label="linear law (14)")
    axes.set(yscale="log", xlabel="time (1 / learning rate)", ylabel="|B|")
    axes.set_title(f"small B, skewed data, s = {view.entry['skewness']:g}")
    axes.legend(handles=law, loc="center right")


def _line(case: str):
    """Dashes for the sampled control, which lies on the exact one."""
    return (0, (3, 3)) if case.endswith("sampled") else "-"


def _losses(axes: Axes, view: _View, letter: str) -> None:
    for case, (colour, _) in CASES.items():
        found = view.draw(letter, "loss", case, f"{case}: loss")
        best = view.draw(letter, "best linear", case, f"{case}: best linear loss")
        axes.plot(found["x"], found["y"], color=colour, linestyle=_line(case))
        axes.axhline(best["y"].iloc[0], color=colour, linestyle=":", linewidth=1.0)
    axes.plot([], [], color="0.3", linestyle=":", label="best linear")
    axes.set(
        xlabel="time (1 / learning rate)", ylabel="loss ½ E (x₀ − y₀)² (+ decay)", ylim=(0, None)
    )
    axes.set_title("the loss of the same flows")
    axes.legend(loc="lower right")


def _spectrum(axes: Axes, view: _View, letter: str) -> None:
    cases = [case for case in CASES if not view.decays[case]]
    for case in cases:
        colour, _ = CASES[case]
        rates = view.draw(letter, "rate", case, f"{case}: rates (14)")
        paper = view.draw(letter, "symmetric", case, f"{case}: eigenvalues of sym(G)")
        for found, marker in ((rates, "o"), (paper, "D")):
            ranks = (found["x"] - 1) / max(len(found) - 1, 1)
            filled = {} if marker == "o" else {"markerfacecolor": "white", "linestyle": "--"}
            axes.plot(ranks, found["y"], color=colour, marker=marker, markersize=3, **filled)
    axes.plot([], [], color="0.3", marker="o", label="rates 2 a*ₖ τₘ of (14)")
    paper = {"marker": "D", "markerfacecolor": "white", "linestyle": "--"}
    axes.plot([], [], color="0.3", label="eigenvalues of sym(G)", **paper)
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel="relative rank, lowest to highest", ylabel="rate (learning rate)")
    axes.set_title("stability of B = 0")
    axes.legend(loc="upper left")


# --- The checks ----------------------------------------------------------------------------------


def claims(frame: pd.DataFrame, about: dict) -> pd.DataFrame:
    """The checks, from the same table and document; each follows what (14) predicts there."""
    view = _View(frame, about)
    rows = [
        *_gradient_checks(view),
        *_closed_form_checks(view),
        *_norm_checks(view),
        *_control_checks(view),
        *(row for case in CASES for row in _growth_checks(view, case)),
    ]
    return verdicts.table(rows)


def _gradient_checks(view: _View) -> list[dict]:
    return [
        verdicts.identity(
            f"3.1: the flow (9) of {kind.lower()} moments is minus the numerical derivative of the "
            f"loss (8)",
            view.y("gradient error", kind).max(),
            0.0,
            GRADIENTS,
        )
        for kind in view.series("gradient error")
    ]


def _closed_form_checks(view: _View) -> list[dict]:
    rows = []
    for name, text in (("mode", ""), ("mode with decay", ", with weight decay")):
        apart = max(
            np.abs(view.y(name, mode) - view.y(f"{name} (13)", mode)).max()
            for mode in view.series(name)
        )
        claim = f"3.1: B = 0 stays, and a follows the closed form (13){text}"
        rows.append(verdicts.identity(claim, apart, 0.0, CLOSED_FORM))
    apart = view.y("limit", "flow") - view.y("limit", "(C + decay)^-1 h")
    claim = "3.1: with weight decay a ends at (C + decay)^-1 h, from the largest B(0)"
    rows.append(verdicts.identity(claim, np.abs(apart).max(), 0.0, LIMIT))
    found = np.log(view.get("small deviation", "")[["x", "y"]].to_numpy())
    slope = (found[-1, 1] - found[0, 1]) / (found[-1, 0] - found[0, 0])
    claim = "3.1: the deviation from (13) grows like the fourth power of a small B(0)"
    return [*rows, verdicts.identity(claim, slope, *ORDER)]


def _norm_checks(view: _View) -> list[dict]:
    """The loss that B adds for Gaussian data is never negative, so that |B| exp(decay t) falls."""
    decay, rises = view.entry["decay"], {"norm": [], "norm with decay": []}
    for name, found in rises.items():
        for scale in view.series(name):
            curve = view.get(name, scale)
            curve = curve[curve["y"] > LEFT * curve["y"].iloc[0]]
            steps = np.diff(np.log(curve["y"]))
            if name == "norm with decay":
                steps = steps + decay * np.diff(curve["x"])
            found.append(steps.max())
    late = view.get("late norm", view.series("late norm")[0])
    (first, last), (start, end) = late["x"].iloc[[0, -1]], late["y"].iloc[[0, -1]]
    slope = math.log(end / start) / (last - first)
    return [
        verdicts.identity(
            "3.1: Gaussian data, no weight decay: |B| never grows (largest relative step)",
            max(0.0, *rises["norm"]),
            0.0,
            RISE,
        ),
        verdicts.identity(
            "3.1: Gaussian data, with weight decay: |B| falls at least as fast as exp(-decay t)",
            max(0.0, *rises["norm with decay"]),
            0.0,
            RISE,
        ),
        verdicts.identity(
            "3.1: Gaussian data, with weight decay: late rate of log |B| is minus the decay",
            slope,
            -decay,
            DECAY * decay,
        ),
    ]


def _control_checks(view: _View) -> list[dict]:
    exact = np.abs(view.y("rate", "Gaussian")).max()
    found = view.get("noise", "Gaussian, sampled")
    worst = (found["y"] / found["y_err"]).abs().max()
    rates = np.abs(view.y("rate", "Gaussian, sampled")).max()
    holds = "yes" if worst < NOISE else "no"
    return [
        verdicts.identity(
            "3.1: Gaussian control: largest |rate| of (14), exact moments", exact, 0.0, QUIET
        ),
        verdicts.row(
            f"3.1: Gaussian control, {view.entry['samples']} samples: largest |entry of T| in "
            f"standard errors (largest |rate| {rates:.2g})",
            "statistical",
            holds,
            worst,
            1.0,
            0,
            NOISE,
        ),
    ]


def _growth_checks(view: _View, case: str) -> list[dict]:
    """Rate, direction and loss as the sign of the top rate (14) says, whatever it is."""
    top = view.y("rate", case).max()
    (begin, end), (first, last) = (
        view.get("fastest mode", case)[axis].iloc[[0, -1]] for axis in "xy"
    )
    rate = math.log(last / first) / (end - begin)
    grows = top > QUIET
    found = [
        verdicts.row(
            f"3.1, {case}: the top rate (14) is {top:.3g}, and the fastest mode of B "
            f"{'grows' if grows else 'does not grow'}",
            "exact",
            "yes" if (rate > QUIET) == grows else "no",
            rate,
            0.0,
            "> 0" if grows else "<= 0",
            QUIET,
        ),
        verdicts.identity(f"3.1, {case}: measured rate of the fastest mode", rate, top, RATE),
    ]
    norms, losses = view.y("growth", case), view.y("loss", case)
    ratio, seen = norms.max() / norms[0], view.y("linear law", case)[-1] > SEEN
    if not grows:
        text = f"3.1, {case}: |B| and the loss stay where they were"
        return [
            *found,
            verdicts.identity(f"{text}: largest |B| / |B(0)|", ratio, 1.0, RISE),
            verdicts.identity(f"{text}: change of the loss", losses[-1] - losses[0], 0.0, QUIET),
        ]
    if not seen:  # (14) keeps |B| below SEEN to the end
        return found
    text = f"3.1, {case}: B leaves 0 and the loss falls below the best linear one"
    fall = losses[-1] - view.y("best linear", case)[0]
    answers = ("yes" if ratio > GROWN else "no", "yes" if fall < -QUIET else "no")
    return [
        *found,
        verdicts.row(f"{text}: |B| / |B(0)|", "exact", answers[0], ratio, 0.0, f"> {GROWN}", 0.0),
        verdicts.row(f"{text}: difference", "exact", answers[1], fall, 0.0, "< 0", QUIET),
    ]
