"""Section 3.1: gradient flow of two layers, by equations and by their closed form.

The numbers are those of `theory.gradient_flow.compute`, whose docstring names the quantities.
"""

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from manybody.claims.reading import Table
from manybody.io import tables
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn

# Okabe and Ito's colours, one a case, and the looks of what the cases are compared with.
LOOKS = {
    "product": ("#D55E00", "x₀ += s x₁x₂"),
    "product, decay": ("#E69F00", "the same, with decay"),
    "squares": ("#009E73", "x₀ += s |x|²/L"),
    "minus squares": ("#56B4E9", "x₀ −= s |x|²/L"),
    "Gaussian": ("#444444", "Gaussian"),
    "Gaussian, sampled": ("#BBBBBB", "Gaussian, sampled"),
}
POINTS = 12  # of a flow, drawn on the line of its closed form


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(Table(*tables.read_theory(files["theory"][0])))


@style.styled(style.RC)
def figure_of(flow: Table) -> Drawing:
    """Panels (a) to (f), each of one consequence of the equations."""
    view = _View(flow)
    figure = style.new(2, 5.4)
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
        for case, (colour, label) in LOOKS.items()
    ]
    title = "d, e, f: what the target x₀ = a*·x + noise gains (its mean is taken off)"
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), title=title)
    return figure, drawn(view.drawn)


class _View:
    """A flow, and what has been drawn of it."""

    def __init__(self, flow: Table):
        self.flow = flow
        self.drawn: list[pd.DataFrame] = []

    def draw(self, panel: str, quantity: str, series: str, name: str) -> pd.DataFrame:
        """The numbers of a series, noted as drawn in a panel under a name."""
        found = self.flow.get(quantity, series)
        self.drawn.append(found.assign(panel=panel, series=name))
        return found


# --- Panels --------------------------------------------------------------------------------------


def _modes(axes: Axes, view: _View, letter: str) -> None:
    last = len(view.flow.get("mode", "1")) - 1
    # Densest at the start, where the modes move.
    places = np.unique(np.round(last * np.linspace(0, 1, POINTS) ** 2).astype(int))
    modes = view.flow.series("mode")
    eigenvalues = np.linalg.eigvalsh(view.flow.about["covariance"])  # in the order of the modes
    names = []
    for place, (mode, eigenvalue) in enumerate(zip(modes, eigenvalues, strict=True)):
        colour = colormaps["viridis"](0.9 * place / max(len(modes) - 1, 1))
        line = view.draw(letter, "mode (13)", mode, f"mode {mode}, closed form")
        points = view.draw(letter, "mode", mode, f"mode {mode}, ODE").iloc[places]
        axes.plot(line["x"], line["y"], color=colour)
        axes.plot(points["x"], points["y"], color=colour, linestyle="", marker="o")
        names.append((f"{eigenvalue:.2f}", float(line["y"].iloc[-1]), colour))
    axes.set(
        xlabel="time (1 / learning rate)",
        ylabel="a on eigenvectors of C",
        title="Gaussian data, B = 0",
    )
    style.label_right(axes, names, 0.08)
    axes.annotate(
        "eigen-\nvalue", (1.06, 1.0), xycoords="axes fraction", va="bottom", fontsize=style.SMALL
    )
    axes.plot([], [], color="0.3", label="closed form")
    axes.plot([], [], color="0.3", linestyle="", marker="o", label="ODE")
    style.legend_below(axes, 2)


def _deviation(axes: Axes, view: _View, letter: str) -> None:
    found = view.draw(letter, "deviation", "", "largest deviation from the closed form")
    axes.plot(found["x"], found["y"], marker="o", color=style.ORDERS[2], label="ODE")
    scales = found["x"].to_numpy()
    law = found["y"].iloc[0] * (scales / scales[0]) ** 4
    axes.plot(scales, law, color="0.5", linestyle=":", label="∝ scale⁴")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="scale of B(0): sd of its entries",
        ylabel="largest deviation of a mode",
        title="deviation from the closed form",
    )
    style.legend_below(axes, 2)


def _norms(axes: Axes, view: _View, letter: str) -> None:
    scales = view.flow.series("norm")
    for index, scale in enumerate(scales):
        colour = style.TIMES[index * len(style.TIMES) // len(scales)]
        free = view.draw(letter, "norm", scale, f"scale {scale}, no decay")
        decaying = view.draw(letter, "norm with decay", scale, f"scale {scale}, with decay")
        axes.plot(free["x"], free["y"], color=colour, label=scale)
        axes.plot(decaying["x"], decaying["y"], color=colour, linestyle="--")
        axes.plot(
            free["x"],
            free["y"].iloc[0] * np.exp(-view.flow.entry["decay"] * free["x"]),
            color="0.5",
            linestyle=":",
            linewidth=1.0,
        )
    axes.plot([], [], color="0.3", linestyle="--", label=f"ε = {view.flow.entry['decay']:g}")
    axes.plot([], [], color="0.5", linestyle=":", label="exp(−εt)")
    axes.set(yscale="log", xlabel="time (1 / learning rate)", ylabel="|B|")
    axes.set_title("Gaussian data: B only shrinks")
    style.legend_below(axes, 3, title="scale of B(0); dashed: weight decay ε", alignment="left")


def _growth(axes: Axes, view: _View, letter: str) -> None:
    highest = max(view.flow.y("growth", case).max() for case in LOOKS)
    for case, (colour, _) in LOOKS.items():
        found = view.draw(letter, "growth", case, f"{case}: |B|")
        law = view.draw(letter, "linear law", case, f"{case}: linear law (14)")
        law = law[law["y"] < 3 * highest]
        axes.plot(law["x"], law["y"], color=colour, linestyle=":", linewidth=1.0)
        axes.plot(found["x"], found["y"], color=colour, linestyle=_line(case))
    law = axes.plot([], [], color="0.3", linestyle=":", label="linear law (14)")
    axes.set(
        yscale="log",
        xlabel="time (1 / learning rate)",
        ylabel="|B|",
        title=f"small B, skewed, s = {view.flow.entry['skewness']:g}",
    )
    style.legend_below(axes, handles=law)


def _line(case: str):
    """Dashes for the sampled control, which lies on the exact one."""
    return (0, (3, 3)) if case.endswith("sampled") else "-"


def _losses(axes: Axes, view: _View, letter: str) -> None:
    for case, (colour, _) in LOOKS.items():
        found = view.draw(letter, "loss", case, f"{case}: loss")
        best = view.draw(letter, "best linear", case, f"{case}: best linear loss")
        axes.plot(found["x"], found["y"], color=colour, linestyle=_line(case))
        axes.axhline(best["y"].iloc[0], color=colour, linestyle=":", linewidth=1.0)
    axes.plot([], [], color="0.3", linestyle=":", label="best linear")
    axes.set(
        xlabel="time (1 / learning rate)",
        ylabel="loss ½E(x₀−y₀)² (+ decay)",
        ylim=(0, None),
        title="the loss of the same flows",
    )
    style.legend_below(axes)


def _spectrum(axes: Axes, view: _View, letter: str) -> None:
    cases = [case for case in LOOKS if not view.flow.about["decays"][case]]
    for case in cases:
        colour, _ = LOOKS[case]
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
    axes.set(
        xlabel="relative rank, lowest to highest",
        ylabel="rate (learning rate)",
        title="stability of B = 0",
    )
    style.legend_below(axes)
