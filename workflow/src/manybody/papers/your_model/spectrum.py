"""Orders of interaction that a model uses along its checkpoints, and how far they reach."""

from dataclasses import dataclass

import pandas as pd

from manybody.io.options import key, refers
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.claims import Claim
from manybody.papers.figure import Figure
from manybody.papers.simplicity import answers, spectra
from manybody.papers.simplicity.spectra import Spectra

PANELS = "abcd"


class Block(Figure):
    """Orders of interaction that models use along their checkpoints."""

    spectra: list[refers("spectra", "draws", same=("orders",), like="spectra")] = key(
        "Spectra of up to seven models.", min_length=1
    )


class Inputs(needed.Inputs):
    """The spectra, the first one's entry, and its source."""

    spectra: list[needed.Spectrum]
    entry: dict
    source: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        entry = config["spectra"][block.spectra[0]]
        source = config["sources"][entry["source"]]
        return cls(spectra=needed.spectra_of(block.spectra, config), entry=entry, source=source)


@dataclass(frozen=True)
class Tables:
    """The models, and what is drawn, by `panels`: the letter of each panel of growth, shares, reach
    and losses that there is."""

    drawn: pd.DataFrame
    models: list[Spectra]
    panels: dict[str, str]


def tables(inputs: Inputs, block: Block) -> Tables:
    """M_k along the checkpoints, if there are several; at the last one shares, reach and loss."""
    return tables_of(spectra.read(inputs.spectra))


def tables_of(models: list[Spectra]) -> Tables:
    """The tables of these models."""
    followed = [one for one in models if one.followed]
    measured = [one for one in models if len(one.at_end(one.first, "anchored excess"))]
    there = {"growth": followed, "shares": models, "reach": models, "losses": measured}
    panels = dict(zip((kind for kind, found in there.items() if found), PANELS, strict=False))
    parts = [part for one in followed for part in spectra.growth(panels["growth"], one)]
    parts += [*spectra.shares(panels["shares"], models), *_reach(panels["reach"], models)]
    parts += spectra.excesses(panels.get("losses", ""), models)
    return Tables(style.gathered(parts), models, panels)


def _reach(panel: str, models: list[Spectra]) -> list[pd.DataFrame]:
    """Share of M_k by the distance of its first position from its last, target included."""
    found = []
    for one in models:
        for k in one.orders:
            spans = one.at_end(one.first, f"span {k}")
            spans = spans[spans["value"] > 0]
            name = f"{one.about['model']}: M_{k}"
            found.append(
                style.points(panel, name, one.first, spans["order"], spans["value"], spans["se"])
            )
    return found


def claims(tables: Tables) -> list[Claim]:
    """What the spectra bound, and which order grows first: no paper says anything of the models."""
    return answers.of_models("your-model/spectrum", tables.models)


@style.in_house_style
def draw(tables: Tables):
    """Up to four panels: growth, shares, reach, losses."""
    rows = -(-len(tables.panels) // 2)
    figure = style.new(2, 0.6 + 2.4 * rows)
    places = list(figure.subplots(rows, 2, squeeze=False).flat)
    for axes, (kind, panel) in zip(places, tables.panels.items(), strict=False):
        DRAWN[kind](axes, tables.drawn, panel, tables.models)
    for axes in places[len(tables.panels) :]:
        axes.axis("off")
    spectra.legend(figure, tables.models)
    return figure


def _draw_growth(axes, drawn: pd.DataFrame, panel: str, models: list[Spectra]) -> None:
    followed = [one for one in models if one.followed]
    for number, one in enumerate(followed):
        spectra.draw_growth(axes, drawn, panel, one, number)
    doubted = any(one.about.get("suspects") for one in followed)
    axes.set_title(f"({panel}) along training{'; hollow: suspect' if doubted else ''}")


def _draw_reach(axes, drawn: pd.DataFrame, panel: str, models: list[Spectra]) -> None:
    for number, one in enumerate(models):
        line = spectra.LINES[number % len(spectra.LINES)]
        for k in one.orders:
            found = style.series(drawn, panel, f"{one.about['model']}: M_{k}")
            axes.plot(found["x"], found["y"], line, color=style.ORDERS[k + 1], linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="distance, first to last", ylabel="share of $M_k$")
    axes.set_title(f"({panel}) how far it reaches, last step")


DRAWN = {
    "growth": _draw_growth,
    "shares": spectra.draw_shares,
    "reach": _draw_reach,
    "losses": spectra.draw_excesses,
}


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    entry, source = inputs.entry, inputs.source
    size = entry["anchored"]["size"] if entry.get("anchored") else "a few"
    return (
        f"Orders of interaction that {', '.join(block.spectra)} use.\n\n"
        r"M\ :sub:`k` is the change of a token's logits that needs k other tokens to be exchanged "
        "together. **Along training**, if there are several checkpoints: a dot is half of the last "
        "value; hollow squares are checkpoints that the audit doubts. **Shares**: over the "
        "variance at the last step; hollow: upper bounds. **Reach**: by the distance from the "
        "first to the last token. **Loss**: of logits cut at an order, above that of all, where "
        f"{size} tokens are exchanged.\n\n"
        f"Contexts: {entry['sequences']} test sequences of "
        f"{needed.sized(entry['source'], source)}; tokens are exchanged for those of the "
        f"distribution *{entry['law']}*, which makes contexts that are no text.\n"
    )
