"""One HTML file that shows a run: it holds its pictures, and asks nothing of any other file."""

import base64
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml
from docutils.core import publish_parts
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image

from manybody.io.atomic import write_text
from manybody.measure import cards as measured, chains
from manybody.papers.claims import VERDICTS
from manybody.papers.figure import own_texts
from manybody.report import provenance, scorecard

CHECKOUT = Path(__file__).resolve().parents[4]
TEMPLATE = "page.html"
MOST = 6_900_000  # bytes of all pictures: as text a third more, which leaves a page 0.8 of 10 MB
COLOURS = 256
FIRST, SMALL = 3, 60_000  # pictures at the head of the page, and bytes of each
SMALLER = 0.8  # of the width and height of a picture, as often as it takes
# A name of the user's that is also markup in a caption does not keep the page from being written.
CAPTIONS = {"report_level": 5, "file_insertion_enabled": False, "raw_enabled": False}


def write(
    out: str | Path,
    config: dict,
    figures: Sequence[tuple[str, str]],
    claims: Iterable[str | Path],
    clones: Iterable[str | Path],
    cards: Iterable[str | Path],
    states: Mapping[str, Sequence[tuple[str, int]]],
    losses: Iterable[str | Path] = (),
    ngrams: Iterable[str | Path] = (),
) -> None:
    """Writes the page of a run in its folder of results.

    figures: (paper, figure), made in `figures/` beside `out`, with their captions. claims: their
    records. clones: manifests. cards: of these clones. states: of each figure, `paper/figure`, the
    clones that it shows, [name, sweep]. losses, ngrams: as of `cards.generators`.
    Raises `ArtifactError` for a file that is missing, altered or not what it should be.
    """
    out = Path(out)
    judged = scorecard.gathered(claims)
    carded = [*itertools.chain(*map(measured.read, cards))]
    said = [*itertools.chain(*judged.values())]
    shown = []
    for paper, figure in figures:
        stem = out.parent / "figures" / paper / figure
        caption = stem.with_suffix(".caption.rst").read_text("utf-8")
        found = judged.get((paper, figure), [])
        html = publish_parts(caption, writer="html5", settings_overrides=CAPTIONS)
        shown.append(
            {
                "paper": paper,
                "name": figure,
                "id": f"{paper}-{figure}",
                "path": f"{paper}/{figure}",
                "picture": inline(stem.with_suffix(".png"), MOST // len(figures)),
                "caption": html["body"],
                "clones": states.get(f"{paper}/{figure}"),
                "claims": found,
                "counts": Counter(claim.verdict for claim in found),
            }
        )
    ranks = [claim.id.rpartition("/")[0] for claim in scorecard.ranked(said)]
    first = sorted(shown, key=lambda figure: [*ranks, figure["path"]].index(figure["path"]))[:FIRST]
    texts = [f"{text} ({files})" for text, files in own_texts(config).items()]
    default = yaml.safe_load((CHECKOUT / "config" / "config.yaml").read_text("utf-8"))
    template = templates().get_template(TEMPLATE)
    text = template.render(
        results=", ".join([config["results"], *texts]),
        verdicts=VERDICTS,
        papers=dict.fromkeys(paper for paper, _ in figures),
        figures=shown,
        first=[
            (figure, inline(out.parent / "figures" / f"{figure['path']}.png", SMALL))
            for figure in first
        ],
        number=scorecard.number,
        answers=scorecard.answers(said),
        cards=carded,
        carded={card.name: card for card in carded},
        rounded=measured.rounded,
        beside=measured.beside,
        passages={
            f"{one['source']}-{one['name']}": one["samples"] for one in map(chains.known, clones)
        },
        generators=measured.generators(config, losses, ngrams),
        rhat=chains.RHAT,
        run=measured.RUN,
        changes=provenance.changes(default, config),
        facts=provenance.facts(CHECKOUT),
        times=provenance.times(out.parent / "usage"),
    )
    write_text(out, text)


def templates() -> Environment:
    """The templates of pages, in the checkout, and those that an installed package has too."""
    return Environment(
        loader=FileSystemLoader([CHECKOUT / "workflow" / "report", Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def inline(path: str | Path, share: int) -> dict:
    """A PNG file as `uri` (data:), `width` and `height` in pixels; one of more than `share` bytes
    is drawn in 256 colours, and smaller until it fits."""
    content = Path(path).read_bytes()
    with Image.open(path) as opened:
        size = opened.size
        picture = opened.convert("RGB") if len(content) > share else None
    scale = 1.0
    while len(content) > share:
        smaller = [max(1, round(side * scale)) for side in size]
        reduced = picture.resize(smaller, Image.Resampling.LANCZOS).quantize(COLOURS)
        saved = io.BytesIO()
        reduced.save(saved, "PNG", optimize=True)
        content, scale = saved.getvalue(), scale * SMALLER
    text = base64.b64encode(content).decode("ascii")
    return {"uri": f"data:image/png;base64,{text}", "width": size[0], "height": size[1]}
