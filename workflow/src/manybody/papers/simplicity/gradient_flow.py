"""Section 3.1: gradient flow of two layers, by equations and by their closed form.

The numbers are those of `theory.gradient_flow.compute`, whose docstring names the quantities.
"""

import math
from collections.abc import Iterator

import numpy as np

from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.readings import Table

# Okabe and Ito's colours, one a case; the sampled control, which lies on the exact one, is dashed.
LOOKS = {
    "product": ("#D55E00", "x₀ += s x₁x₂", "-"),
    "product, decay": ("#E69F00", "the same, with decay", "-"),
    "squares": ("#009E73", "x₀ += s |x|²/L", "-"),
    "minus squares": ("#56B4E9", "x₀ −= s |x|²/L", "-"),
    "Gaussian": ("#444444", "Gaussian", "-"),
    "Gaussian, sampled": ("#BBBBBB", "Gaussian, sampled", (0, (3, 3))),
}
DRAWN = {  # by panel the quantities of each series, and the names of their curves
    "a": {"mode (13)": "mode {}, closed form", "mode": "mode {}, ODE"},
    "b": {"deviation": "largest deviation from the closed form"},
    "c": {"norm": "scale {}, no decay", "norm with decay": "scale {}, with decay"},
    "d": {"growth": "{}: |B|", "linear law": "{}: linear law (14)"},
    "e": {"loss": "{}: loss", "best linear": "{}: best linear loss"},
    "f": {"rate": "{}: rates (14)", "symmetric": "{}: eigenvalues of sym(G)"},
}
APART = 0.1  # of the axes' diagonal between points of a flow on the line of its closed form
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

    theory: needed.Theory
    entry: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(theory=needed.Theory(theory=block.theory), entry=config["theory"][block.theory])


def tables(inputs: Inputs, block: Block) -> style.Tables:
    """Modes, deviations, norms, growth, losses and rates, each under its name in a panel."""
    return tables_of(Table.read(inputs.theory.file()))


def tables_of(flow: Table) -> style.Tables:
    """The tables of a flow, which is what was found."""
    series = {"a": flow.series("mode"), "b": [""], "c": flow.series("norm"), "d": LOOKS, "e": LOOKS}
    series["f"] = [case for case in LOOKS if not flow.about["decays"][case]]
    parts = [
        flow.get(quantity, one).assign(panel=panel, series=name.format(one))
        for panel, names in DRAWN.items()
        for one in series[panel]
        for quantity, name in names.items()
    ]
    return style.Tables(style.gathered(parts), flow)


def claims(tables: style.Tables) -> list[records.Claim]:
    """Gaussian data leave only the linear solution; skewed data let B grow as (14) says."""
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
        apart = max(
            np.abs(flow.y(name, mode) - flow.y(f"{name} (13)", mode)).max()
            for mode in flow.series(name)
        )
        label = f"difference from the closed form, {words} weight decay"
        yield records.below(label, float(apart), 0.0, CLOSED_FORM)


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
    """Measured rates of the fastest mode of B."""
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
            label = f"{case}: last loss less the best linear one"
            yield records.below(label, fall, 0.0, -QUIET)


# --- The picture ----------------------------------------------------------------------------------

TIME = "time (1 / learning rate)"
ODE = {"linestyle": "", "marker": "o"}
DOTTED = {"linestyle": ":"}
OF_PAPER = {"marker": "D", "markerfacecolor": "white", "linestyle": "--"}


@style.in_house_style
def draw(tables: style.Tables):
    """Panels (a) to (f), each of one consequence of the equations."""
    flow, figure = tables.found, style.new(2, 5.4)
    panels = dict(zip("abcdef", figure.subplots(2, 3).flat, strict=True))
    _draw_modes(panels["a"], flow)
    _draw_deviation(panels["b"], flow)
    _draw_norms(panels["c"], flow)
    _draw_cases(panels["d"], panels["e"], panels["f"], flow)
    for letter, axes in panels.items():
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
    handles = [
        style.mark(label, color=colour, linestyle=line) for colour, label, line in LOOKS.values()
    ]
    title = "d, e, f: what the target x₀ = a*·x + noise gains (its mean is taken off)"
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), title=title)
    return figure


def _legend(axes, named: dict[str, dict], columns: int = 1, **looks) -> None:
    """A legend of lines by their looks, and of those that have labels."""
    for label, line in named.items():
        axes.plot([], [], label=label, **({"color": "0.3"} | line))
    style.legend_below(axes, columns, **looks)


def _draw_modes(axes, flow: Table) -> None:
    from matplotlib import colormaps

    names, modes = [], flow.series("mode")
    eigenvalues = np.linalg.eigvalsh(flow.about["covariance"])  # in the order of the modes
    for place, (mode, eigenvalue) in enumerate(zip(modes, eigenvalues, strict=True)):
        colour = colormaps["viridis"](0.9 * place / max(len(modes) - 1, 1))
        line, ode = flow.get("mode (13)", mode), flow.get("mode", mode)
        axes.plot(line["x"], line["y"], color=colour)
        axes.plot(ode["x"], ode["y"], color=colour, markevery=APART, **ODE)
        names.append((f"{eigenvalue:.2f}", float(line["y"].iloc[-1]), colour))
    axes.set(xlabel=TIME, ylabel="a on eigenvectors of C", title="Gaussian data, B = 0")
    style.label_right(axes, names, 0.08)
    axes.text(
        1.06, 1.0, "eigen-\nvalue", transform=axes.transAxes, va="bottom", fontsize=style.SMALL
    )
    _legend(axes, {"closed form": {}, "ODE": ODE}, 2)


def _draw_deviation(axes, flow: Table) -> None:
    scales, apart = flow.get("deviation")["x"].to_numpy(), flow.y("deviation")
    axes.plot(scales, apart, marker="o", color=style.ORDERS[2], label="ODE")
    power = apart[0] * (scales / scales[0]) ** 4
    axes.plot(scales, power, color="0.5", label="∝ scale⁴", **DOTTED)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="scale of B(0): sd of its entries",
        ylabel="largest deviation of a mode",
        title="deviation from the closed form",
    )
    style.legend_below(axes, 2)


def _draw_norms(axes, flow: Table) -> None:
    scales, decay = flow.series("norm"), flow.entry["decay"]
    for index, scale in enumerate(scales):
        colour = style.TIMES[index * len(style.TIMES) // len(scales)]
        free, decaying = flow.get("norm", scale), flow.get("norm with decay", scale)
        axes.plot(free["x"], free["y"], color=colour, label=scale)
        axes.plot(decaying["x"], decaying["y"], color=colour, linestyle="--")
        bound = free["y"].iloc[0] * np.exp(-decay * free["x"])
        axes.plot(free["x"], bound, color="0.5", linewidth=1.0, **DOTTED)
    axes.set(yscale="log", xlabel=TIME, ylabel="|B|", title="Gaussian data: B only shrinks")
    lines = {f"ε = {decay:g}": {"linestyle": "--"}, "exp(−εt)": DOTTED | {"color": "0.5"}}
    title = "scale of B(0); dashed: weight decay ε"
    _legend(axes, lines, 3, title=title, alignment="left")


def _draw_cases(growth, losses, rates, flow: Table) -> None:
    """Panels (d) to (f): |B|, the loss, and the rates of each case."""
    highest = max(flow.y("growth", case).max() for case in LOOKS)
    for case, (colour, _, line) in LOOKS.items():
        norms, linear = flow.get("growth", case), flow.get("linear law", case)
        linear = linear[linear["y"] < 3 * highest]
        growth.plot(linear["x"], linear["y"], color=colour, linewidth=1.0, **DOTTED)
        growth.plot(norms["x"], norms["y"], color=colour, linestyle=line)
        loss, best = flow.get("loss", case), flow.y("best linear", case)[0]
        losses.plot(loss["x"], loss["y"], color=colour, linestyle=line)
        losses.axhline(best, color=colour, linewidth=1.0, **DOTTED)
        for name, looks in (("rate", {"marker": "o"}), ("symmetric", OF_PAPER)):
            found = flow.get(name, case)
            ranks = (found["x"] - 1) / max(len(found) - 1, 1)
            if not flow.about["decays"][case]:
                rates.plot(ranks, found["y"], color=colour, markersize=3, **looks)
    skewness = f"small B, skewed, s = {flow.entry['skewness']:g}"
    growth.set(yscale="log", xlabel=TIME, ylabel="|B|", title=skewness)
    losses.set(
        xlabel=TIME,
        ylabel="loss ½E(x₀−y₀)² (+ decay)",
        ylim=(0, None),
        title="the loss of the same flows",
    )
    rates.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    rates.set(
        xlabel="relative rank, lowest to highest",
        ylabel="rate (learning rate)",
        title="stability of B = 0",
    )
    _legend(growth, {"linear law (14)": DOTTED})
    _legend(losses, {"best linear": DOTTED})
    _legend(rates, {"rates 2 a*ₖ τₘ of (14)": {"marker": "o"}, "eigenvalues of sym(G)": OF_PAPER})


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
