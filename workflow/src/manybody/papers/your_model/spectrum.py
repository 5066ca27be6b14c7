"""Which orders of interaction a model uses along its checkpoints, and how far they reach."""

from dataclasses import dataclass

import pandas as pd

from manybody.io.options import key, refers
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.claims import Claim
from manybody.papers.figure import Figure
from manybody.papers.inputs import spectra_of
from manybody.papers.simplicity import spectra
from manybody.papers.simplicity.spectra import HalfTime, Spectra
from manybody.papers.style import points

PANELS = "abcd"


class Block(Figure):
    """Which orders of interaction models use along their checkpoints."""

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
        return cls(spectra=spectra_of(block.spectra, config), entry=entry, source=source)


@dataclass(frozen=True)
class Tables:
    """The models, half-times of those with several checkpoints, and what is drawn, by `panels`:
    the letter of each panel of growth, shares, reach and losses that there is."""

    drawn: pd.DataFrame
    models: list[Spectra]
    halves: dict[tuple[int, int, int], HalfTime]
    panels: dict[str, str]

    @property
    def followed(self) -> list[Spectra]:
        """Models with several checkpoints."""
        return [one for one in self.models if one.followed]


def tables(inputs: Inputs, block: Block) -> Tables:
    """M_k along the checkpoints, if there are several; at the last one shares, reach and loss."""
    return tables_of(spectra.read(inputs.spectra))


def tables_of(models: list[Spectra]) -> Tables:
    """The tables of these models."""
    followed = [one for one in models if one.followed]
    kinds = (["growth"] if followed else []) + ["shares", "reach"]
    if any(len(one.excess(seed)) for one in models for seed in one.runs):
        kinds.append("losses")
    panels = dict(zip(kinds, PANELS, strict=False))
    parts = [part for one in followed for part in spectra.growth(panels["growth"], one)]
    parts += spectra.shares(panels["shares"], models) + _reach(panels["reach"], models)
    if "losses" in panels:
        parts += spectra.excesses(panels["losses"], models)
    return Tables(style.gathered(parts), models, spectra.half_times(followed), panels)


def _reach(panel: str, models: list[Spectra]) -> list[pd.DataFrame]:
    """Share of M_k by the distance of its first position from its last, target included."""
    found = []
    for one in models:
        for k in one.orders:
            spans = one.spans(one.first, k)
            spans = spans[spans["value"] > 0]
            name = f"{one.about['model']}: M_{k}"
            found.append(
                points(panel, name, one.first, spans["order"], spans["value"], spans["se"])
            )
    return found


def claims(tables: Tables) -> list[Claim]:
    """No paper says anything of these models."""
    return []


@style.in_house_style
def draw(tables: Tables):
    """Up to four panels: growth, shares, reach, losses."""
    rows = -(-len(tables.panels) // 2)
    figure = style.new(2, 0.6 + 2.4 * rows)
    places = list(figure.subplots(rows, 2, squeeze=False).flat)
    for axes, (kind, panel) in zip(places, tables.panels.items(), strict=False):
        _PANELS[kind](axes, panel, tables)
    for axes in places[len(tables.panels) :]:
        axes.axis("off")
    spectra.legend(figure, tables.models)
    return figure


def _draw_series(axes, panel: str, tables: Tables) -> None:
    for number, one in enumerate(tables.followed):
        spectra.draw_growth(axes, tables.drawn, panel, one, tables.halves, number)
    doubted = any(one.about.get("suspects") for one in tables.followed)
    axes.set_title(f"({panel}) along training{'; hollow: suspect' if doubted else ''}")


def _draw_shares(axes, panel: str, tables: Tables) -> None:
    spectra.draw_shares(axes, tables.drawn, panel, tables.models)


def _draw_reach(axes, panel: str, tables: Tables) -> None:
    for number, one in enumerate(tables.models):
        line = spectra.LINES[number % len(spectra.LINES)]
        for k in one.orders:
            found = style.series(tables.drawn, panel, f"{one.about['model']}: M_{k}")
            axes.plot(found["x"], found["y"], line, color=style.ORDERS[k + 1], linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="distance, first to last", ylabel="share of $M_k$")
    axes.set_title(f"({panel}) how far it reaches, last step")


def _draw_losses(axes, panel: str, tables: Tables) -> None:
    spectra.draw_excesses(axes, tables.drawn, panel, tables.models)


_PANELS = {
    "growth": _draw_series,
    "shares": _draw_shares,
    "reach": _draw_reach,
    "losses": _draw_losses,
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
