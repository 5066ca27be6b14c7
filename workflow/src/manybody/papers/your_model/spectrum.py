"""Orders of interaction that a model uses along its checkpoints, and how far they reach."""

import itertools
from typing import NamedTuple

import pandas as pd

from manybody.io.options import key, refers
from manybody.measure.half_times import Spectra
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import answers, spectra

PANELS = "abcd"


class Block(Figure):
    """Orders of interaction that models use along their checkpoints."""

    spectra: list[refers("spectra", "draws", same=("orders",), like="spectra")] = key(
        "Spectra of up to seven models.", min_length=1
    )


class Inputs(needed.Inputs):
    spectra: list[needed.Spectrum]
    entry: dict
    source: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        entry = config["spectra"][block.spectra[0]]
        source = config["sources"][entry["source"]]
        return cls(spectra=needed.spectra_of(block.spectra, config), entry=entry, source=source)


class Tables(NamedTuple):
    """The rows that are drawn; the models by name; the letter of each panel that there is: growth
    along the checkpoints, shares, reach, losses."""

    drawn: pd.DataFrame
    models: dict[str, Spectra]
    panels: dict[str, str]


def tables(inputs: Inputs, block: Block) -> Tables:
    return tables_of(spectra.read(inputs.spectra))


def tables_of(found: list[Spectra]) -> Tables:
    models = spectra.named(found)
    growing = {name: one for name, one in models.items() if one.followed}
    cut = any(len(one.at_end("anchored excess")) for one in found)
    there = {"growth": growing, "shares": True, "reach": True, "losses": cut}
    panels = dict(zip(filter(there.get, there), PANELS, strict=False))
    parts = []
    for name, one in growing.items():
        parts += spectra.growth(panels["growth"], name, one)
    parts += spectra.shares(panels["shares"], models)
    for name, one in models.items():
        for k in one.orders:
            spans = one.at_end(f"span {k}")
            spans = spans[spans["value"] > 0]
            given = one.first, spans["order"], spans["value"], spans["se"]
            parts.append(style.points(panels["reach"], f"{name}: M_{k}", *given))
    parts += spectra.excesses(panels.get("losses", ""), models)
    return Tables(style.gathered(parts), models, panels)


def claims(tables: Tables) -> list[records.Claim]:
    models = [*tables.models.values()]
    given = {
        "half-times": (
            "M_2 comes to half of its end later than M_1",
            [part for _, part in answers.growth(models)],
            "the logarithm of the ratio of their half-times is above 0",
        ),
        "pairs": (
            "Pairs of tokens alone miss some of the loss of all orders",
            [part for _, part in answers.cut(models, 1, "pairs alone")],
            "their loss is above that of all orders",
        ),
    }
    return answers.claims("your-model/spectrum", models, given)


@style.in_house_style
def draw(tables: Tables):
    drawn, panels, models = tables.drawn, tables.panels, tables.models
    rows = -(-len(panels) // 2)
    figure = style.new(2, 0.6 + 2.4 * rows)
    places = list(figure.subplots(rows, 2, squeeze=False).flat)
    lines = dict(zip(models, itertools.cycle(spectra.LINES), strict=False))
    for axes, (kind, panel) in zip(places, panels.items(), strict=False):
        if kind == "shares":
            spectra.draw_shares(axes, drawn, panel, [*models])
        elif kind == "losses":
            spectra.draw_excesses(axes, drawn, panel, [*models])
        for name, line in lines.items():
            if kind == "growth":
                spectra.draw_growth(axes, drawn, panel, name, line)
                axes.set_title(f"({panel}) along training")
            elif kind == "reach":
                for k, colour in spectra.COLOURS.items():
                    looks = dict(linestyle=line, color=colour, linewidth=1.0)
                    style.line(axes, drawn, panel, f"{name}: M_{k}", **looks)
                axes.set(xscale="log", yscale="log", xlabel="distance, first to last")
                axes.set(ylabel="share of $M_k$", title=f"({panel}) how far it reaches, last step")
    for axes in places[len(panels) :]:
        axes.axis("off")
    first, *others = models.values()
    spectra.legend(figure, first.orders, panels.get("losses", ""), lines if others else [])
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    entry, source = inputs.entry, inputs.source
    size = entry["anchored"]["size"] if entry.get("anchored") else "a few"
    return (
        f"Orders of interaction that {', '.join(block.spectra)} use.\n\n"
        r"M\ :sub:`k` is the mean squared change of a token's logits that needs k other tokens to "
        "be exchanged together. **Along training**, if there are several checkpoints: dots mark "
        "half of the last value, hollow squares suspect checkpoints. **Sizes**: over the "
        "variance of the logits; hollow: upper bounds. **Reach**: by the distance from the first "
        "to the last token, target included. **Loss**: of logits cut at an order, less that of "
        f"all orders; {size} tokens are exchanged.\n\n"
        f"Contexts: {entry['sequences']} test sequences of "
        f"{needed.sized(entry['source'], source)}; tokens are exchanged for those of the "
        f"distribution *{entry['law']}*, so contexts are unlike text.\n"
    )
