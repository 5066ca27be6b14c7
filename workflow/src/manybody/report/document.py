"""One HTML file that shows a run: it holds its pictures, and asks nothing of any other file."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from manybody.data import RUN
from manybody.io.atomic import atomic
from manybody.measure import cards as measured
from manybody.measure import chains
from manybody.papers.claims import VERDICTS, Claim
from manybody.report import cards as in_words
from manybody.report import generators, images, provenance, scorecard
from manybody.report.captions import as_html

CHECKOUT = Path(__file__).resolve().parents[4]
TEMPLATE = "page.html"


def write(
    out: str | Path,
    config: dict,
    figures: Sequence[tuple[str, str]],
    claims: Iterable[str | Path],
    clones: Iterable[str | Path],
    cards: Iterable[str | Path] = (),
    states: Mapping[str, Sequence[tuple[str, int | None]]] | None = None,
    losses: Iterable[str | Path] = (),
    ngrams: Iterable[str | Path] = (),
) -> None:
    """Writes the page of a run in its folder of results.

    figures: (paper, figure), made in `figures/` beside `out`, with their captions. claims: their
    records. clones: manifests. cards: of these clones and of those by n-grams. states: of each
    figure, `paper/figure`, the clones that it shows. losses, ngrams: as of `generators.sentences`.
    The default config is that of the checkout.
    Raises `ArtifactError` for a file that is missing, altered or not what it should be.
    """
    out = Path(out)
    report = CHECKOUT / "workflow" / "report"
    default = yaml.safe_load((CHECKOUT / "config" / "config.yaml").read_text("utf-8"))
    judged = scorecard.gathered(claims)
    known = chains.known(clones)
    carded = [card for path in cards for card in measured.read(path)]
    said = in_words.of_figures(states or {}, carded)
    environment = Environment(
        loader=FileSystemLoader(report),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    stems = [out.parent / "figures" / paper / figure for paper, figure in figures]
    pictures = images.inline([stem.with_suffix(".png") for stem in stems])
    shown = [
        {
            "paper": paper,
            "name": figure,
            "id": f"{paper}-{figure}",
            "path": f"{paper}/{figure}",
            "picture": picture,
            "caption": as_html(stem.with_suffix(".caption.rst").read_text("utf-8")),
            "clones": said.get(f"{paper}/{figure}"),
            **_counted(judged.get((paper, figure), [])),
        }
        for (paper, figure), stem, picture in zip(figures, stems, pictures, strict=True)
    ]
    text = environment.get_template(TEMPLATE).render(
        results=config["results"],
        verdicts=VERDICTS,
        figures=shown,
        number=scorecard.number,
        cards=[(card, in_words.drawing(card, carded)) for card in carded],
        rounded=in_words.rounded,
        beside=in_words.beside,
        copies=in_words.copies,
        passages={f"{one['source']}-{one['name']}": one["samples"] for one in known},
        generators=generators.sentences(config, losses, ngrams),
        rhat=chains.RHAT,
        run=RUN,
        changes=list(provenance.differences(default, config)),
        facts={
            "Written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "Commit": provenance.commit(CHECKOUT),
            "Versions": provenance.versions(),
            "Machine": provenance.machine(),
        },
        times=provenance.times(out.parent / "usage"),
    )
    with atomic(out) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _counted(claims: list[Claim]) -> dict:
    """The claims of a figure, and how often each verdict was given."""
    given = [claim.verdict for claim in claims]
    return {"claims": claims, "counts": {verdict: given.count(verdict) for verdict in VERDICTS}}
