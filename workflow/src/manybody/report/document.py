"""One HTML file that shows a run: it holds its pictures, and asks nothing of any other file."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from manybody.claims import scorecard
from manybody.data import RUN
from manybody.io.atomic import atomic
from manybody.measure import cards as measured
from manybody.measure import chains
from manybody.report import cards as said_of
from manybody.report import generators, images, provenance
from manybody.report.captions import caption

CHECKOUT = Path(__file__).resolve().parents[4]
TEMPLATE = "page.html"
ANSWERS = ("yes", "undecided", "no", scorecard.NOT_RUN)


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

    figures: (paper, figure), drawn in `figures/` beside `out`. claims: tables of those that are
    judged. clones: manifests. cards: of these clones and of those by n-grams. states: of each
    figure, `paper/figure`, the clones that it shows. losses, ngrams: as of `generators.sentences`.
    Captions and the default config are those of the checkout.
    Raises `ArtifactError` for a file that is missing, altered or not what it should be.
    """
    out = Path(out)
    report = CHECKOUT / "workflow" / "report"
    default = yaml.safe_load((CHECKOUT / "config" / "config.yaml").read_text("utf-8"))
    judged = scorecard.read(claims)
    known = chains.known(clones)
    carded = [card for path in cards for card in measured.read(path)]
    said = said_of.of_figures(states or {}, carded)
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
            "caption": caption(
                report / paper / f"{figure}.rst", config, config["figures"][paper][figure]
            ),
            "clones": said.get(f"{paper}/{figure}"),
            **_judged(paper, figure, judged.get((paper, figure), [])),
        }
        for (paper, figure), picture in zip(figures, pictures, strict=True)
    ]
    text = environment.get_template(TEMPLATE).render(
        results=config["results"],
        intro=caption(report / "workflow.rst", config),
        reading=caption(report / "scorecard.rst", config),
        answers=ANSWERS,
        figures=shown,
        measured=scorecard.measured,
        expected=scorecard.expected,
        cards=[(card, said_of.drawing(card, carded)) for card in carded],
        number=said_of.number,
        beside=said_of.beside,
        copies=said_of.copies,
        passages={f"{one['source']}-{one['name']}": one["samples"] for one in known},
        generators=generators.sentences(config, known, losses, ngrams),
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


def _judged(paper: str, figure: str, rows: list[dict]) -> dict:
    """The rows of a figure's claims, the verdicts they come to, and how often each was given."""
    verdicts = scorecard.verdicts(paper, figure, rows)
    given = [verdict.answer for verdict in verdicts]
    counts = {answer: given.count(answer) for answer in ANSWERS}
    return {
        "rows": rows,
        "verdicts": verdicts,
        "counts": counts,
        "gates": scorecard.gate_counts(rows),
    }
