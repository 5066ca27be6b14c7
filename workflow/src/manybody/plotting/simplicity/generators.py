"""Figure 3: the generators' quality, and whether their chains have forgotten where they started."""

from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from manybody.claims import labels, verdicts
from manybody.files import tables
from manybody.plotting import colours, style

A_SAMPLE = "a clone is a sample of its model, not the state that sweeps have left"


class Run(NamedTuple):
    """An evaluated run: its manifest's `about`, its losses, what is behind its targets."""

    about: dict
    losses: pd.DataFrame
    targets: dict


class Chains(NamedTuple):
    """A clone: its manifest's `about` and its trace."""

    about: dict
    trace: pd.DataFrame


@style.styled(style.RC)
def fig3(generators: dict[str, Run], chains: dict[str, Chains], student: Run, block: dict) -> tuple:
    """(a) test losses of the generators, (b) mean scores of their chains, (c) two sweeps compared.

    generators: evaluation -> run, each tested on the target `block["test"]`; those of
    `block["generators"]` from low to high order, and `block["wide_generator"]` if it is there.
    chains: clone -> chains; those of `block["chains"]` are drawn. student: one run, tested on the
    pairs of targets `block["pairs"]`, each the same chains at two sweeps, and on
    `block["control"]`. `block["twins"]`, if there are any: an evaluation of a generator and its
    targets `text` and `noise`, its own clones from either start. Returns the figure, the numbers
    drawn and the checks. Bands are one standard error, over sequences in (a) and chains in (b).
    """
    figure = style.new(10.5, 3.9)
    quality, scores, sweeps = figure.subplots(1, 3)
    drawn = [
        _draw_quality(quality, generators, block),
        _draw_scores(scores, chains, block),
        _draw_sweeps(sweeps, student, block),
    ]
    found = [
        *_quality_checks(generators, block),
        *_energy_checks(generators, chains),
        *_overlap_checks(chains),
        *_settled_checks(chains, block),
        *_chain_checks(chains, block),
        *_twin_checks(generators, chains, block),
        *_sweep_checks(student, block),
    ]
    return figure, pd.concat(drawn)[style.FIGURE_COLUMNS], verdicts.table(found)


def _draw_quality(axes, generators: dict[str, Run], block: dict) -> pd.DataFrame:
    rows = []
    for name in _tested(block):
        run = generators[name]
        curve = tables.learning_curves(run.losses)
        curve = curve[(curve["target"] == block["test"]) & (curve["step"] > 0)]
        wide = name == block.get("wide_generator")
        label = _label(run, rank=wide)
        colour = colours.generator_colour(run.about["description"])
        line, marker = ("--", "s") if wide else ("-", "o")
        axes.plot(curve["step"], curve["loss"], line, marker=marker, markersize=3, color=colour)
        axes.lines[-1].set(label=label, markerfacecolor="white" if wide else colour)
        low, high = curve["loss"] - curve["loss_se"], curve["loss"] + curve["loss_se"]
        axes.fill_between(curve["step"], low, high, color=colour, alpha=0.2, linewidth=0)
        points = curve["step"], curve["loss"], curve["loss_se"]
        rows.append(_table("a", label, run.about["seed"], *points))
    axes.set_xscale("log")
    axes.set(xlabel="training step", ylabel="test loss (nats per token)")
    axes.set_title("(a) the generators on test text")
    axes.legend()
    return pd.concat(rows)


def _draw_scores(axes, chains: dict[str, Chains], block: dict) -> pd.DataFrame:
    rows = []
    for name in block["chains"]:
        about, trace = chains[name]
        description = about["generator"]["description"]
        colour, label = colours.generator_colour(description), labels.generator(description)
        kept, rhat = 1 - trace["changed"].iloc[-1], trace["rhat"].iloc[-1]
        state = f"{label}\n$\\hat R$ = {rhat:.2g}, {kept:.0%} of the start kept"
        axes.plot(trace["sweep"], trace["score"], color=colour, label=state)
        low, high = trace["score"] - trace["score_se"], trace["score"] + trace["score_se"]
        axes.fill_between(trace["sweep"], low, high, color=colour, alpha=0.2, linewidth=0)
        points = trace["sweep"], trace["score"], trace["score_se"]
        rows.append(_table("b", label, about["chain_seed"], *points))
    energy = chains[block["chains"][0]].about["energy"]
    axes.set(xlabel="sweep", ylabel=r"mean score $-E/L$ (nats per position)")
    axes.set_title(f"(b) the chains, {energy} score")
    axes.legend()
    return pd.concat(rows)


def _draw_sweeps(axes, student: Run, block: dict) -> pd.DataFrame:
    rows = []
    curves = tables.learning_curves(student.losses)
    for pair in block["pairs"]:
        for target, line, marker in zip(pair, ("-", "--"), ("o", "D"), strict=True):
            document = student.targets[target]
            colour = colours.colour(document)
            label = f"{labels.target(document)}, {document['sweep']} sweeps"
            curve = curves[(curves["target"] == target) & (curves["step"] > 0)]
            face = colour if line == "-" else "white"
            looks = dict(marker=marker, markersize=3, markerfacecolor=face, color=colour)
            axes.plot(curve["step"], curve["loss"], line, label=label, **looks)
            points = curve["step"], curve["loss"], curve["loss_se"]
            rows.append(_table("c", label, student.about["seed"], *points))
    axes.set_xscale("log")
    axes.set(xlabel="training step", ylabel="test loss (nats per token)")
    axes.set_title(f"(c) a student ({labels.network(student.about['description'])})")
    axes.legend()
    return pd.concat(rows)


def _table(panel: str, series: str, seed: int, x, y, errors) -> pd.DataFrame:
    return pd.DataFrame(
        {"panel": panel, "series": series, "seed": seed, "x": x, "y": y, "y_err": errors}
    )


def _tested(block: dict) -> list[str]:
    return [*block["generators"], *([block["wide_generator"]] if "wide_generator" in block else [])]


def _label(run: Run, rank: bool = False) -> str:
    description = run.about["description"]
    text = labels.generator(description)
    return f"{text}, rank {description.get('rank') or 'full'}" if rank else text


# --- The checks ----------------------------------------------------------------------------------


def _quality_checks(generators: dict[str, Run], block: dict) -> list[dict]:
    """Claim 2: the generators, from low to high order, are better models of the text."""
    test, rows = block["test"], []
    for low, high in pairwise(block["generators"]):
        better, worse = generators[high], generators[low]
        value, error = tables.paired_difference(_last(better, test), _last(worse, test))
        rows.append(
            verdicts.gap(f"2 (fig. 3a): {_label(better)} beats {_label(worse)}", value, error)
        )
    six = [generators[name].about["description"].get("layers") == 6 for name in block["generators"]]
    if not any(six):
        length = generators[block["generators"][0]].about["description"]["length"]
        reason = "n = 6 was not trained" if length >= 33 else f"n = 6 needs L >= 33, L = {length}"
        rows.append(verdicts.not_run("2 (fig. 3a): n = 6 lies between n = 4 and BERT", reason))
    return rows


def _last(run: Run, target: str) -> pd.DataFrame:
    return tables.select(run.losses, target, tables.last_step(run.losses, target))


def _energy_checks(generators: dict[str, Run], chains: dict[str, Chains]) -> list[dict]:
    """Claim 3, on the chains of this figure: by the norm score, E / L is the generator's own loss.

    The sampler's incremental energy and the evaluation's masked forward passes share no code.
    """
    rows = []
    for run in generators.values():
        for target, document in run.targets.items():
            if document["original"] or document["energy"] != "norm":
                continue
            made = document["generator"]
            if made["description"] != run.about["description"] or not made["last"]:
                continue
            sums = _last(run, target)
            if (sums["predictions"] != document["length"]).any():
                continue  # only all L positions make up E
            loss, _ = tables.ratio(sums["loss_sum"].to_numpy(), sums["predictions"].to_numpy())
            trace = chains[document["clone"]].trace.set_index("sweep")
            score = trace["score"].loc[document["sweep"]]
            rows.append(
                verdicts.identity(
                    f"3 (fig. 3): {_label(run)}: E / L of its chains is its loss on them",
                    loss + score,
                    0.0,
                    verdicts.IDENTITY,
                )
            )
    return rows


VERBATIM = 0.01  # share of test blocks that may stand in the training text


def _overlap_checks(chains: dict[str, Chains]) -> list[dict]:
    """What is tested is new: an exact count, for the text sources that the chains start from."""
    shares = {
        about["source"]: about["overlap"]["verbatim"]
        for about, _ in chains.values()
        if "overlap" in about
    }
    text = "corpus (fig. 3): share of the test blocks that stand verbatim in the training text"
    return [verdicts.identity(f"{text}: {s}", x, 0.0, VERBATIM) for s, x in shares.items()]


def _settled_checks(chains: dict[str, Chains], block: dict) -> list[dict]:
    rows = []
    for name in block["chains"]:
        about, trace = chains[name]
        label = labels.generator(about["generator"]["description"])
        last = int(trace["sweep"].max())
        for sweep in sorted({min(20, last), last}):
            text = (
                f"4 (fig. 3b): {label}: the score drifts by < 1 % over the last quarter of {sweep}"
            )
            rows.append(verdicts.settled(f"{text} sweeps", trace, sweep))
    return rows


def _chain_checks(chains: dict[str, Chains], block: dict) -> list[dict]:
    """What the sampler's own diagnostics say: R-hat, and how much of the start is still there."""
    rows = []
    for name in block["chains"]:
        about, trace = chains[name]
        label = labels.generator(about["generator"]["description"])
        last = int(trace["sweep"].max())
        text = f"chains (fig. 3b): {label}: split R-hat of the score, second half of {last} sweeps"
        rows.append(verdicts.mixed(text, trace))
        for sweep in sorted({min(20, last), last}):
            text = f"chains (fig. 3b): {label}: share of the start's tokens after {sweep} sweeps"
            rows.append(verdicts.forgotten(text, trace, sweep, about["chains"]))
    return rows


def _twin_checks(generators: dict[str, Run], chains: dict[str, Chains], block: dict) -> list[dict]:
    """Whether a clone is a sample of its model: do chains from text and from noise agree?"""
    rows = []
    for twins in block.get("twins", []):
        run = generators[twins["evaluation"]]
        names = (twins["text"], twins["noise"])
        documents = [run.targets[name] for name in names]
        made = [chains[document["clone"]] for document in documents]
        sweep = documents[0]["sweep"]
        text = (
            f"chains (fig. 3b): {_label(run)}, {documents[0]['energy']} score: after {sweep} "
            f"sweeps {A_SAMPLE}"
        )
        losses = tuple(_last(run, name) for name in names)
        count = min(one.about["chains"] for one in made)
        rows.append(verdicts.sample(text, tuple(one.trace for one in made), losses, sweep, count))
    return rows or [
        verdicts.not_run(
            f"chains (fig. 3b): {A_SAMPLE}",
            "no generator is tested on twins from text and from noise",
        )
    ]


def _sweep_checks(student: Run, block: dict) -> list[dict]:
    curves = tables.learning_curves(student.losses)
    rows = []
    for first, second in block["pairs"]:
        one, two = (student.targets[target] for target in (first, second))
        text = (
            f"5 (fig. 3c): {labels.target(one)}: after {one['sweep']} and {two['sweep']} sweeps "
            f"the losses are the same"
        )
        differences = verdicts.loss_differences(
            student.losses, curves, first, second, block["control"], paired=True
        )
        rows.append(verdicts.same_losses(text, differences))
    if not block["pairs"]:
        rows.append(
            verdicts.not_run("5 (fig. 3c): losses after 20 and 70 sweeps are the same", "no pair")
        )
    return rows
