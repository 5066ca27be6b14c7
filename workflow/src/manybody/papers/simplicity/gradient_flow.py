"""Section 3.1: gradient flow of two layers, by equations and by their closed form.

The numbers are those of `theory.gradient_flow.compute`, whose docstring names the quantities.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.inputs import Theory
from manybody.papers.readings import Table

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
RISE = 1e-8  # relative step of |B| that the integrator leaves undecided
LEFT = 1e-4  # of |B(0)|: where less is left, |B| is not known so well
CLOSED_FORM = 1e-8  # largest difference of a mode from the closed form (13)
RATE = 1e-4  # measured rate of growth against (14), per unit time
QUIET = 1e-6  # change of the loss that counts as none
SEEN = 0.1  # |B| at the end by (14) from which its growth must show in the loss


class Block(Figure):
    """Section 3.1, the flow of two layers on Gaussian and on skewed data."""

    theory: refers("theory", "gradient-flow") = key("Theory of kind gradient-flow.")


class Inputs(needed.Inputs):
    """The table, and its entry of the config."""

    theory: Theory
    entry: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(theory=Theory(theory=block.theory), entry=config["theory"][block.theory])


@dataclass(frozen=True)
class Tables:
    """The flows, and what is drawn."""

    drawn: pd.DataFrame
    flow: Table


def tables(inputs: Inputs, block: Block) -> Tables:
    """Modes, deviations, norms, growth, losses and rates, each under its name in a panel."""
    return tables_of(Table.read(inputs.theory.file()))


def tables_of(flow: Table) -> Tables:
    """The tables of a flow."""
    parts: list[pd.DataFrame] = []

    def add(panel: str, quantity: str, series: str, name: str) -> None:
        parts.append(flow.get(quantity, series).assign(panel=panel, series=name))

    for mode in flow.series("mode"):
        add("a", "mode (13)", mode, f"mode {mode}, closed form")
        add("a", "mode", mode, f"mode {mode}, ODE")
    add("b", "deviation", "", "largest deviation from the closed form")
    for scale in flow.series("norm"):
        add("c", "norm", scale, f"scale {scale}, no decay")
        add("c", "norm with decay", scale, f"scale {scale}, with decay")
    for case in LOOKS:
        add("d", "growth", case, f"{case}: |B|")
        add("d", "linear law", case, f"{case}: linear law (14)")
    for case in LOOKS:
        add("e", "loss", case, f"{case}: loss")
        add("e", "best linear", case, f"{case}: best linear loss")
    for case in _without_decay(flow):
        add("f", "rate", case, f"{case}: rates (14)")
        add("f", "symmetric", case, f"{case}: eigenvalues of sym(G)")
    return Tables(style.gathered(parts), flow)


def _without_decay(flow: Table) -> list[str]:
    return [case for case in LOOKS if not flow.about["decays"][case]]


def claims(tables: Tables) -> list[records.Claim]:
    """Gaussian data leave only the linear solution; skewed data let B grow as (14) says."""
    flow, id_ = tables.flow, "simplicity/gradient_flow"
    scope = f"L = {flow.entry['length']}, moments of the data, seed {flow.entry['seed']}"
    return [
        records.judged(
            f"{id_}/closed-form",
            "Without B the modes of a follow their closed form (section 3.1, equation 13)",
            _modes(flow),
            scope,
            f"the largest difference is below {CLOSED_FORM:g}",
        ),
        records.judged(
            f"{id_}/gaussian",
            "Gaussian data leave only the linear solution: B never grows (section 3.1)",
            _rises(flow),
            scope,
            "the largest relative step of |B|, less that of the weight decay, is not above 0",
        ),
        records.judged(
            f"{id_}/growth",
            "Skewed data let B grow at the rate of equation 14, where it is positive (section 3.1)",
            [_growth(flow, case) for case in flow.series("growth")],
            scope,
            f"the measured rate of the fastest mode is that of (14) within {RATE:g}",
        ),
        records.judged(
            f"{id_}/loss",
            "Where B grows, the loss falls below the best linear one, and nowhere else",
            [part for case in flow.series("growth") for part in _falls(flow, case)],
            scope,
            "the loss ends below the best linear one where B has grown, and stays elsewhere",
        ),
    ]


def _modes(flow: Table) -> list[records.Comparison]:
    found = []
    for name, words in (("mode", "without"), ("mode with decay", "with")):
        apart = max(
            np.abs(flow.y(name, mode) - flow.y(f"{name} (13)", mode)).max()
            for mode in flow.series(name)
        )
        label = f"difference from the closed form, {words} weight decay"
        found.append(records.below(label, float(apart), 0.0, CLOSED_FORM))
    return found


def _rises(flow: Table) -> list[records.Comparison]:
    """Largest relative steps of |B|, with decay those of |B| exp(decay t)."""
    found, decay = [], flow.entry["decay"]
    for name, words in (("norm", "no weight decay"), ("norm with decay", "with weight decay")):
        steps = []
        for scale in flow.series(name):
            curve = flow.get(name, scale)
            curve = curve[curve["y"] > LEFT * curve["y"].iloc[0]]
            rises = np.diff(np.log(curve["y"]))
            steps.append((rises + decay * np.diff(curve["x"]) * (name != "norm")).max())
        label = f"largest relative step of |B|, {words}"
        found.append(records.below(label, max(0.0, *steps), 0.0, RISE))
    return found


def _rate(flow: Table, case: str) -> float:
    """The measured rate of the fastest mode of B."""
    curve = flow.get("fastest mode", case)
    (begin, end), (first, last) = (curve[axis].iloc[[0, -1]] for axis in "xy")
    return math.log(last / first) / (end - begin)


def _growth(flow: Table, case: str) -> records.Comparison:
    top, rate = flow.y("rate", case).max(), _rate(flow, case)
    return records.near(f"{case}: rate, {top:.3g} by (14)", rate, 0.0, top, RATE)


def _falls(flow: Table, case: str) -> list[records.Comparison]:
    """The end of the loss: below the best linear one where B grows enough to be seen."""
    losses, seen = flow.y("loss", case), flow.y("linear law", case)[-1] > SEEN
    if flow.y("rate", case).max() <= QUIET:
        label = f"{case}: change of the loss"
        return [records.near(label, losses[-1] - losses[0], 0.0, 0.0, QUIET)]
    if not seen:  # (14) keeps |B| below SEEN to the end
        return []
    fall = losses[-1] - flow.y("best linear", case)[0]
    return [records.below(f"{case}: last loss less the best linear one", fall, 0.0, -QUIET)]


@style.in_house_style
def draw(tables: Tables):
    """Panels (a) to (f), each of one consequence of the equations."""
    from matplotlib.lines import Line2D

    figure = style.new(2, 5.4)
    drawers = (_draw_modes, _draw_deviation, _draw_norms, _draw_growth, _draw_losses, _draw_rates)
    panels = figure.subplots(2, 3).flat
    for letter, axes, drawer in zip("abcdef", panels, drawers, strict=True):
        drawer(axes, letter, tables)
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
    handles = [
        Line2D([], [], color=colour, linestyle=_line(case), label=label)
        for case, (colour, label) in LOOKS.items()
    ]
    title = "d, e, f: what the target x₀ = a*·x + noise gains (its mean is taken off)"
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), title=title)
    return figure


def _line(case: str):
    """Dashes for the sampled control, which lies on the exact one."""
    return (0, (3, 3)) if case.endswith("sampled") else "-"


def _draw_modes(axes, panel: str, tables: Tables) -> None:
    from matplotlib import colormaps

    flow, names = tables.flow, []
    modes = flow.series("mode")
    eigenvalues = np.linalg.eigvalsh(flow.about["covariance"])  # in the order of the modes
    for place, (mode, eigenvalue) in enumerate(zip(modes, eigenvalues, strict=True)):
        colour = colormaps["viridis"](0.9 * place / max(len(modes) - 1, 1))
        line, ode = (
            style.series(tables.drawn, panel, f"mode {mode}, {name}")
            for name in ("closed form", "ODE")
        )
        # Densest at the start, where the modes move.
        last = len(ode) - 1
        seen = np.unique(np.round(last * np.linspace(0, 1, POINTS) ** 2).astype(int))
        axes.plot(line["x"], line["y"], color=colour)
        axes.plot(ode["x"].iloc[seen], ode["y"].iloc[seen], "o", color=colour)
        names.append((f"{eigenvalue:.2f}", float(line["y"].iloc[-1]), colour))
    axes.set(xlabel="time (1 / learning rate)", ylabel="a on eigenvectors of C")
    axes.set_title("Gaussian data, B = 0")
    style.label_right(axes, names, 0.08)
    looks = dict(xycoords="axes fraction", va="bottom", fontsize=style.SMALL)
    axes.annotate("eigen-\nvalue", (1.06, 1.0), **looks)
    axes.plot([], [], color="0.3", label="closed form")
    axes.plot([], [], color="0.3", linestyle="", marker="o", label="ODE")
    style.legend_below(axes, 2)


def _draw_deviation(axes, panel: str, tables: Tables) -> None:
    found = style.series(tables.drawn, panel, "largest deviation from the closed form")
    axes.plot(found["x"], found["y"], marker="o", color=style.ORDERS[2], label="ODE")
    scales = found["x"].to_numpy()
    power = found["y"].iloc[0] * (scales / scales[0]) ** 4
    axes.plot(scales, power, color="0.5", linestyle=":", label="∝ scale⁴")
    axes.set(xscale="log", yscale="log", xlabel="scale of B(0): sd of its entries")
    axes.set(ylabel="largest deviation of a mode", title="deviation from the closed form")
    style.legend_below(axes, 2)


def _draw_norms(axes, panel: str, tables: Tables) -> None:
    scales, decay = tables.flow.series("norm"), tables.flow.entry["decay"]
    for index, scale in enumerate(scales):
        colour = style.TIMES[index * len(style.TIMES) // len(scales)]
        free, decaying = (
            style.series(tables.drawn, panel, f"scale {scale}, {name}")
            for name in ("no decay", "with decay")
        )
        axes.plot(free["x"], free["y"], color=colour, label=scale)
        axes.plot(decaying["x"], decaying["y"], color=colour, linestyle="--")
        bound = free["y"].iloc[0] * np.exp(-decay * free["x"])
        axes.plot(free["x"], bound, color="0.5", linestyle=":", linewidth=1.0)
    axes.plot([], [], color="0.3", linestyle="--", label=f"ε = {decay:g}")
    axes.plot([], [], color="0.5", linestyle=":", label="exp(−εt)")
    axes.set(yscale="log", xlabel="time (1 / learning rate)", ylabel="|B|")
    axes.set_title("Gaussian data: B only shrinks")
    style.legend_below(axes, 3, title="scale of B(0); dashed: weight decay ε", alignment="left")


def _draw_growth(axes, panel: str, tables: Tables) -> None:
    found = {case: style.series(tables.drawn, panel, f"{case}: |B|") for case in LOOKS}
    highest = max(curve["y"].max() for curve in found.values())
    for case, (colour, _) in LOOKS.items():
        linear = style.series(tables.drawn, panel, f"{case}: linear law (14)")
        linear = linear[linear["y"] < 3 * highest]
        axes.plot(linear["x"], linear["y"], color=colour, linestyle=":", linewidth=1.0)
        axes.plot(found[case]["x"], found[case]["y"], color=colour, linestyle=_line(case))
    handles = axes.plot([], [], color="0.3", linestyle=":", label="linear law (14)")
    axes.set(yscale="log", xlabel="time (1 / learning rate)", ylabel="|B|")
    axes.set_title(f"small B, skewed, s = {tables.flow.entry['skewness']:g}")
    style.legend_below(axes, handles=handles)


def _draw_losses(axes, panel: str, tables: Tables) -> None:
    for case, (colour, _) in LOOKS.items():
        found, best = (
            style.series(tables.drawn, panel, f"{case}: {name}")
            for name in ("loss", "best linear loss")
        )
        axes.plot(found["x"], found["y"], color=colour, linestyle=_line(case))
        axes.axhline(best["y"].iloc[0], color=colour, linestyle=":", linewidth=1.0)
    axes.plot([], [], color="0.3", linestyle=":", label="best linear")
    axes.set(xlabel="time (1 / learning rate)", ylabel="loss ½E(x₀−y₀)² (+ decay)")
    axes.set(ylim=(0, None), title="the loss of the same flows")
    style.legend_below(axes)


def _draw_rates(axes, panel: str, tables: Tables) -> None:
    paper = {"marker": "D", "markerfacecolor": "white", "linestyle": "--"}
    for case in _without_decay(tables.flow):
        for name, looks in (("rates (14)", {"marker": "o"}), ("eigenvalues of sym(G)", paper)):
            found = style.series(tables.drawn, panel, f"{case}: {name}")
            ranks = (found["x"] - 1) / max(len(found) - 1, 1)
            axes.plot(ranks, found["y"], color=LOOKS[case][0], markersize=3, **looks)
    axes.plot([], [], color="0.3", marker="o", label="rates 2 a*ₖ τₘ of (14)")
    axes.plot([], [], color="0.3", label="eigenvalues of sym(G)", **paper)
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel="relative rank, lowest to highest", ylabel="rate (learning rate)")
    axes.set_title("stability of B = 0")
    style.legend_below(axes)


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    entry = inputs.entry
    return (
        "Gradient flow of two layers of factored attention, by equations (section 3.1).\n\n"
        "**(a)** Gaussian data, B = 0: modes of a follow their closed form, the larger the "
        "eigenvalue of C the faster. **(b)** Their deviation from it when B starts small, of "
        r"fourth order. **(c)** \|B\| never grows; without weight decay it does not go to zero "
        "either. **(d)** Skewed data: B grows at the rate of equation 14 (dotted) where it is "
        "positive. **(e)** The loss then falls below the best linear one (dotted). **(f)** Rates, "
        "and the eigenvalues that the paper reads stability off.\n\n"
        f"L = {entry['length']} tokens predict one; moments are exact but for one control of "
        f"{entry['samples']} samples.\n"
    )
