"""Section 3.1: gradient flow of two layers, by equations and by their closed form.

The numbers are those of `theory.gradient_flow.compute`, whose docstring names the quantities.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from manybody.io.options import key, refers
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.readings import Table

# Okabe and Ito's colours, one a case: what the target gains. The sampled control, which lies on the
# exact one, is dashed.
LOOKS = {
    "product": ("#D55E00", "s x₁x₂", "-"),
    "product, decay": ("#E69F00", "the same, weight decay", "-"),
    "squares": ("#009E73", "s |x|²/L", "-"),
    "minus squares": ("#56B4E9", "−s |x|²/L", "-"),
    "Gaussian": ("#444444", "nothing", "-"),
    "Gaussian, sampled": ("#BBBBBB", "nothing, sampled", (0, (3, 3))),
}
TIME = "time (1 / learning rate)"
DOTTED = dict(linestyle=":", linewidth=1.0)
DOTS = dict(linestyle="", marker="o", markersize=2.5, markevery=0.1)
OF_PAPER = dict(marker="D", markerfacecolor="white", linestyle="")
# By panel the quantities of each series: their names in the table and in the legend, their looks.
DRAWN = {
    "a": {
        "mode (13)": ("mode {}, closed form", "closed form (13)", {}),
        "mode": ("mode {}, ODE", "ODE", DOTS),
    },
    "b": {"deviation": ("largest deviation from the closed form", "ODE", {"marker": "o"})},
    "c": {
        "norm": ("scale {}, no decay", "no decay", {}),
        "norm with decay": ("scale {}, with decay", "weight decay", {"linestyle": "--"}),
    },
    "d": {
        "growth": ("{}: |B|", "", {}),
        "linear law": ("{}: linear law (14)", "linear law (14)", DOTTED),
    },
    "e": {
        "loss": ("{}: loss", "", {}),
        "best linear": ("{}: best linear loss", "best linear", DOTTED),
    },
    "f": {
        "rate": ("{}: rates (14)", "2 a*ₖ τₘ (14)", {}),
        "symmetric": ("{}: eigenvalues of sym(G)", "sym(G)", OF_PAPER),
    },
}
LOG_LOG = dict(xscale="log", yscale="log", ylabel="deviation from (13)")
AXES = {
    "a": dict(title="(a) Gaussian data, B = 0", xlabel=TIME, ylabel="a on eigenvectors of C"),
    "b": dict(title="(b) Gaussian data, B(0) small", xlabel="scale of B(0)", **LOG_LOG),
    "c": dict(title="(c) Gaussian data", xlabel=TIME, ylabel="|B|", yscale="log"),
    "d": dict(title="(d) skewed data", xlabel=TIME, ylabel="|B|", yscale="log"),
    "e": dict(title="(e) the same flows", xlabel=TIME, ylabel="loss (units of x₀²)"),
    "f": dict(title="(f) B near 0", xlabel="relative rank", ylabel="growth rate (learning rate)"),
}
NO_CASE = "black"  # colour of what is not one of the cases
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
    theory: needed.Theory
    entry: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(theory=needed.Theory(theory=block.theory), entry=config["theory"][block.theory])


def tables(inputs: Inputs, block: Block) -> style.Tables:
    return tables_of(Table.read(inputs.theory.file()))


def tables_of(flow: Table) -> style.Tables:
    parts = [
        rows.assign(panel=panel, series=DRAWN[panel][quantity][0].format(one))
        for panel, one, quantity, rows in _curves(flow)
    ]
    return style.Tables(style.gathered(parts), flow)


def _curves(flow: Table) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Panel, series, quantity and rows; x of rates is the rank, from 0 for the lowest to 1."""
    series = {"a": flow.series("mode"), "b": [""], "c": flow.series("norm"), "d": LOOKS, "e": LOOKS}
    series["f"] = [case for case in LOOKS if not flow.about["decays"][case]]
    for panel, quantities in DRAWN.items():
        for one in series[panel]:
            for quantity in quantities:
                rows = flow.get(quantity, one)
                ranks = (rows["x"] - 1) / max(len(rows) - 1, 1)
                yield panel, one, quantity, rows.assign(x=ranks) if panel == "f" else rows


def claims(tables: style.Tables) -> list[records.Claim]:
    flow = tables.found
    scope = f"L = {flow.entry['length']}, moments of the data, seed {flow.entry['seed']}"
    given = {
        "closed-form": (
            "Without B the modes of a follow their closed form, equation 13",
            _modes(flow),
            f"the largest difference is below {CLOSED_FORM:g}",
        ),
        "gaussian": (
            "Gaussian data leave only the linear solution: B never grows",
            _rises(flow),
            "the largest relative step of |B|, less that of the weight decay, is not above 0",
        ),
        "growth": (
            "Skewed data let B grow at the rate of equation 14, where it is positive",
            _growth(flow),
            f"the measured rate of the fastest mode is that of (14) within {RATE:g}",
        ),
        "loss": (
            "Where B grows, the loss falls below the best linear one, and nowhere else",
            _falls(flow),
            "the loss ends below the best linear one where B has grown, and stays elsewhere",
        ),
    }
    return records.all_judged("simplicity/gradient_flow", given, scope, "section 3.1")


def _modes(flow: Table) -> Iterator[records.Comparison]:
    for name, words in (("mode", "without"), ("mode with decay", "with")):
        modes = flow.series(name)
        apart = [flow.y(name, mode) - flow.y(f"{name} (13)", mode) for mode in modes]
        label = f"difference from the closed form, {words} weight decay"
        yield records.below(label, np.abs(apart).max(), 0.0, CLOSED_FORM)


def _rises(flow: Table) -> Iterator[records.Comparison]:
    """Largest relative steps of |B|, with decay those of |B| exp(decay t)."""
    for name, words, decay in (
        ("norm", "no weight decay", 0.0),
        ("norm with decay", "with weight decay", flow.entry["decay"]),
    ):
        steps = [0.0]
        for scale in flow.series(name):
            curve = flow.get(name, scale)
            curve = curve[curve["y"] > LEFT * curve["y"].iloc[0]]
            steps.append((np.diff(np.log(curve["y"])) + decay * np.diff(curve["x"])).max())
        yield records.below(f"largest relative step of |B|, {words}", max(steps), 0.0, RISE)


def _growth(flow: Table) -> Iterator[records.Comparison]:
    for case in flow.series("growth"):
        top, curve = flow.y("rate", case).max(), flow.get("fastest mode", case)
        (begin, end), (first, last) = (curve[axis].iloc[[0, -1]] for axis in "xy")
        rate = math.log(last / first) / (end - begin)
        yield records.near(f"{case}: rate, {top:.3g} by (14)", rate, 0.0, top, RATE)


def _falls(flow: Table) -> Iterator[records.Comparison]:
    """The ends of the loss: below the best linear one where B grows enough to be seen."""
    for case in flow.series("growth"):
        losses = flow.y("loss", case)
        if flow.y("rate", case).max() <= QUIET:
            change = losses[-1] - losses[0]
            yield records.near(f"{case}: change of the loss", change, 0.0, 0.0, QUIET)
        elif flow.y("linear law", case)[-1] > SEEN:
            fall = losses[-1] - flow.y("best linear", case)[0]
            yield records.below(f"{case}: last loss less the best linear one", fall, 0.0, -QUIET)


@style.in_house_style
def draw(tables: style.Tables):
    flow, figure = tables.found, style.new(2, 5.0)
    panels = dict(zip("abcdef", figure.subplots(2, 3).flat, strict=True))
    for panel, one, quantity, rows in _curves(flow):
        axes, (_, _, looks) = panels[panel], DRAWN[panel][quantity]
        colour, _, line = LOOKS.get(one, (NO_CASE, "", "-"))
        looks = dict(color=colour, linestyle=line) | looks
        if quantity == "best linear":
            axes.axhline(rows["y"].iloc[0], **looks)
        else:
            axes.plot(rows["x"], rows["y"], **looks)
    found = flow.get("deviation")
    power = found["y"].iloc[0] * (found["x"] / found["x"].iloc[0]) ** 4
    panels["b"].plot(found["x"], power, color=NO_CASE, gid="guide", **DOTTED)
    panels["f"].axhline(0, **style.GUIDE)
    for panel, axes in panels.items():
        axes.set(**AXES[panel])
        named = [(label, looks) for _, label, looks in DRAWN[panel].values() if label]
        named += [("∝ scale⁴", DOTTED)] if panel == "b" else []
        handles = [style.mark(label, **({"color": NO_CASE} | looks)) for label, looks in named]
        style.legend_below(axes, len(handles), handles=handles)
    panels["d"].set_ylim(top=3 * max(flow.y("growth", case).max() for case in LOOKS))
    panels["e"].set_ylim(0, None)
    eigenvalues = np.linalg.eigvalsh(flow.about["covariance"])  # in the order of the modes
    modes = zip(eigenvalues, flow.series("mode"), strict=True)
    ends = [(f"{one:.2f}", flow.y("mode (13)", mode)[-1], NO_CASE) for one, mode in modes]
    _label(panels["a"], "eigen-\nvalue", ends)
    ends = [(scale, flow.y("norm", scale)[-1], NO_CASE) for scale in flow.series("norm")]
    _label(panels["c"], "scale\nof B(0)", ends)
    marks = [(label, dict(color=one, linestyle=line)) for one, label, line in LOOKS.values()]
    title = "(d) to (f): what is added to the target x₀ = a*·x + noise"
    style.legend(figure, marks, title=title)
    return figure


def _label(axes, what: str, ends: list[tuple[str, float, str]]) -> None:
    """Numbers at the right ends of curves, and above them what they are."""
    style.label_right(axes, ends, 0.08)
    axes.text(1.06, 1.0, what, transform=axes.transAxes, va="bottom", fontsize=style.SMALL)


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Gradient flow of two layers of factored attention, by equations (section 3.1).\n\n"
        "**(a)** Modes of a follow their closed form, faster for larger eigenvalues of C. "
        r"**(b)** Their largest deviation from it is of fourth order in B(0). **(c)** \|B\| never "
        "grows; without weight decay it does not go to zero either. **(d)** On skewed data B grows "
        "at the rate of equation 14 (dotted) where it is positive. **(e)** The loss then falls "
        "below the best linear one (dotted). **(f)** The rates, and the eigenvalues from which the "
        "paper reads stability.\n\n"
        "L = {length}, exact moments but for one control of {samples} samples; weight decay "
        "{decay:g}, skewness s = {skewness:g}. Scale of B(0): standard deviation of its entries.\n"
    ).format(**inputs.entry)
