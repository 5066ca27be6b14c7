"""The order spectrum against exact truth: a network trained on samples of a known Hamiltonian."""

import itertools
from collections.abc import Iterator

import pandas as pd

from manybody import models
from manybody.io.options import key, refers
from manybody.measure.half_times import Spectra
from manybody.papers import claims as records, inputs as needed, readings, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import spectra

BESIDE = 1.25  # factor between the last step and points beside it, and between these
NEAR = 0.01  # nats per token above the true conditionals, at which a model counts as near
SHARES = 0.03  # of the variance

SAME = {"same": ("source", "sequences"), "like": "truth"}


class Block(Figure):
    """The spectrum of known conditionals, what the estimator says of it, and trained models."""

    truth: refers(
        "spectra",
        wanted="of kind enumeration of a model with parameters: source",
        fits=lambda spectrum, config: (
            spectrum.kind == "enumeration" and config.models[spectrum.model].adopts
        ),
    ) = key("Spectrum of the source's own conditionals.")
    estimate: refers("spectra", "draws", **SAME) = key("The same from draws.")
    student: refers("spectra", "enumeration", **SAME) = key(
        "Spectrum of a model trained on the samples."
    )
    pairs: refers("spectra", "enumeration", **SAME) = key("Spectrum of a model of pairs alone.")


class Inputs(needed.Inputs):
    """Spectra of one run each of truth, estimate, student and pairs, and these runs."""

    spectra: list[needed.Spectrum]
    runs: list[needed.Trained]
    source: dict
    student: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        names = [block.truth, block.estimate, block.student, block.pairs]
        entries = [config["spectra"][name] for name in names]
        return cls(
            spectra=needed.spectra_of(names, config),
            runs=[
                needed.Trained(source=one["source"], model=one["model"], seed=one["seeds"][0])
                for one in entries
            ],
            source=config["sources"][entries[0]["source"]],
            student=config["models"][entries[2]["model"]],
        )


def tables(inputs: Inputs, block: Block) -> style.Tables:
    runs = [readings.read_run(run.file())[1] for run in inputs.runs]
    return tables_of(*spectra.read(inputs.spectra), runs)


def tables_of(
    truth: Spectra, estimate: Spectra, student: Spectra, pairs: Spectra, runs: list[pd.DataFrame]
) -> style.Tables:
    """The tables of these spectra, and of the held-out losses of their runs; what was found are the
    student and the degrees of the true conditionals in the context, one less than orders."""
    degrees = range(1, models.about(truth.about["description"]).order)
    rows = _rows(truth, estimate, student, pairs, runs, degrees)
    return style.Tables(style.gathered(rows), (student, degrees))


def _rows(truth, estimate, student, pairs, runs, degrees) -> Iterator[pd.DataFrame]:
    first, short, entropy = student.first, student.short, runs[0]["loss"].iloc[-1]
    kinds = ("a", "W", "share", "order {1}"), ("b", "M", "value", "M_{0}")
    for (panel, quantity, column, said), d in itertools.product(kinds, degrees):
        curve, name = student.curve(first, quantity, d), said.format(d, d + 1)
        curve = curve[curve["step"] > 0]
        last, true = curve["step"].iloc[-1], truth.end(truth.first, quantity, d)[column]
        yield style.points(panel, f"{name}, {short}", first, curve["step"], curve[column])
        yield style.points(panel, f"{name}, truth", 0, last, true)
        if panel == "a":
            drawn, paired = (one.end(one.first, "W", d) for one in (estimate, pairs))
            given = last, drawn["share"], drawn["share_se"]
            yield style.points("a", f"{name}, truth from draws", 0, *given)
            yield style.points("a", f"{name}, pairs", 0, last, paired["share"])
        else:
            half, height = student.half_time(first, d).step, curve["value"].iloc[-1] / 2
            yield style.points("b", f"{name}, half-time", first, half, height)
    seen = runs[2][runs[2]["step"] > 0]
    yield style.points("c", short, first, seen["step"], seen["loss"] - entropy)
    apart = runs[3]["loss"].iloc[-1] - entropy
    yield style.points("c", "pairs", 0, seen["step"].iloc[-1], apart)


def claims(tables: style.Tables) -> list[records.Claim]:
    student, degrees = tables.found

    def end(panel: str, series: str) -> float:
        return style.series(tables.drawn, panel, series)["y"].iloc[-1]

    label = f"{student.short}: loss above the truth's"
    parts, apart = [records.below(label, end("c", student.short), 0.0, NEAR)], []
    for order in (f"order {d + 1}" for d in degrees):
        true, share = end("a", f"{order}, truth"), end("a", f"{order}, {student.short}")
        label = f"share of {order}, {student.short} less truth"
        parts.append(records.near(label, share - true, 0.0, 0.0, SHARES))
        apart.append(abs(end("a", f"{order}, pairs") - true))
    label = "largest difference of a share, model of pairs and truth"
    parts.append(records.above(label, max(apart), 0.0, SHARES))
    given = (
        "A network comes to the order spectrum of the distribution that it learns, a model of "
        "pairs does not",
        parts,
        f"the loss is within {NEAR} nats of the truth's, shares of the variance are within "
        f"{SHARES}, and a share of the model of pairs is not",
    )
    scope = f"{student.label} on {student.about['source']}, one run, all contexts enumerated"
    return records.all_judged("simplicity/spectrum_truth", {"shares": given}, scope)


@style.in_house_style
def draw(tables: style.Tables):
    drawn, (student, degrees) = tables.drawn, tables.found
    figure = style.new(2, 3.0)
    shares, growth, losses = figure.subplots(1, 3)
    for d in degrees:
        name, colour = f"order {d + 1}", spectra.COLOURS[d]
        for axes, panel, said in ((shares, "a", name), (growth, "b", f"M_{d}")):
            style.line(axes, drawn, panel, f"{said}, {student.short}", color=colour)
            true = style.series(drawn, panel, f"{said}, truth")["y"].iloc[0]
            axes.axhline(true, color=colour, linestyle="--", linewidth=0.8, zorder=1)
        estimated = style.series(drawn, "a", f"{name}, truth from draws")
        _beside(shares, estimated, 1, marker="o", yerr=estimated["y_err"], color=colour)
        _beside(shares, style.series(drawn, "a", f"{name}, pairs"), 1 + d, color=colour)
        style.line(growth, drawn, "b", f"M_{d}, half-time", "D", color=colour, markersize=4)
    style.line(losses, drawn, "c", student.short, color="0.3")
    losses.axhline(NEAR, **style.GUIDE)
    _beside(losses, style.series(drawn, "c", "pairs"), 1, color="0.3")
    shares.set(title="(a) share of each order", ylabel="$W_d$ / Var g")
    growth.set(yscale="log", title="(b) $M_k$", ylabel="$M_k$ (logits$^2$)")
    losses.set(yscale="log", title="(c) loss above the truth's", ylabel="nats per token")
    for axes in (shares, growth, losses):
        axes.set(xscale="log", xlabel="training step")
        style.plain_ticks(axes.xaxis, spectra.STEPS)
    marks = [(f"order {d + 1} (b: $M_{d}$)", dict(color=spectra.COLOURS[d])) for d in degrees]
    marks += [
        (student.short, dict(color="0.3")),
        ("truth, enumerated", dict(color="0.3", linestyle="--")),
        ("truth, from draws", dict(color="0.3", linestyle="", marker="o")),
        ("best model of pairs", dict(color="0.3", linestyle="", marker="x")),
        ("half-time", dict(color="0.3", linestyle="", marker="D", markersize=4)),
    ]
    style.legend(figure, marks, 4)
    return figure


def _beside(axes, found: pd.DataFrame, places: float, marker: str = "x", **looks) -> None:
    """Points that belong to no step, to the right of the last step."""
    style.dots(axes, found["x"] * BESIDE**places, found["y"], "moved", marker=marker, **looks)


def caption(inputs: Inputs, block: Block) -> str:
    student = inputs.student
    sampled = (
        "{sequences[train]} samples of a Hamiltonian of order {order}, L = {length}, \\|V\\| = "
        "{vocabulary}"
    ).format(**inputs.source)
    return (
        "The order spectrum where it is known exactly.\n\n"
        r"**(a)** Share W\ :sub:`d` / Var g of each order d + 1 along training; dashed: the "
        "true conditionals; dots at the right: from draws; crosses: a model of pairs. "
        r"**(b)** M\ :sub:`k` and its half-times. **(c)** Loss above "
        f"that of the true conditionals; the grey line is {NEAR} nats.\n\n"
        f"{student['architecture'].upper()} of {student['layers']} layers and width "
        f"{student['width']}, one run of {student['training']['steps']} steps on {sampled}; all "
        "contexts are enumerated.\n"
    )
