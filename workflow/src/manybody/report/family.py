"""The page of a family: what a pair model says of its sites, in one HTML file."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from manybody.io.atomic import atomic
from manybody.measure.family import Found, answers
from manybody.papers import style
from manybody.papers.potts import contacts
from manybody.report import provenance
from manybody.report.document import CHECKOUT, MOST, inline, templates

PAGE, MAP, SCAN = "index.html", "contacts", "mutations"
MAPPED = "Corrected scores of all pairs of columns, with known contacts, or in falling order."
SCANNED = "What each mutation of the reference record adds to log p; dots are its own residues."
FILES = [
    ("contacts.csv", "the scores of all pairs with the names of the sites, the best first"),
    ("precision.csv", "how many of the best pairs are contacts"),
    ("contacts.rr", "the scores in CASP's format RR"),
    ("mutations.csv", "the change of log p by each mutation of the reference record, in nats"),
    ("mutations-effects.csv", "the same of the measured mutants, with their effects"),
    ("family.fasta", "the sequences and columns that were fitted"),
    ("model.safetensors", "fields and couplings of the pair model, in nats"),
]


def draw(found: Found, folder: str | Path) -> None:
    """Writes the map of the scores of a family to its folder, as PDF and PNG."""
    known = found.truth and contacts.Truth(
        found.truth.contacts, found.truth.known & np.isfinite(found.scores)
    )
    about = found.family.about | dict(heads="full", weighted=True, seed=0)
    scores = {"corrected": found.scores, "as it is": found.raw}
    tables = contacts.tables_of(scores, about, known, found.separation)
    style.save(contacts.draw(tables, upright=True), Path(folder, MAP))


def write(folder: str | Path, record: dict, command: str, parts: Sequence[tuple] = ()) -> Path:
    """Writes the page of a family to its folder, and returns its path.

    record: as of `measure.family.record`; command: what the page is made by. Each of `parts` is a
    section behind the contacts: a title, sentences, and the stem of a PNG file in the folder, None
    without one.
    """

    def picture(stem: str | None):
        return stem and inline(Path(folder, f"{stem}.png"), MOST // (1 + len(parts)))

    sections = [(title, said, stem, picture(stem)) for title, said, stem in parts]
    files = [(name, said) for name, said in FILES if Path(folder, name).is_file()]
    named = dict(family=record, answers=answers(record), map=picture(MAP), mapped=MAPPED)
    return _write(
        Path(folder, PAGE), "family.html", command, sections=sections, files=files, **named
    )


def write_many(path: str | Path, name: str, records: Sequence[dict], command: str) -> Path:
    """Writes the page of many families, each in a folder of its name beside the page."""
    failed = [record for record in records if "failed" in record]
    fitted = [record for record in records if "failed" not in record]
    return _write(Path(path), "families.html", command, name=name, fitted=fitted, failed=failed)


def _write(path: Path, template: str, command: str, **named) -> Path:
    facts = {
        "Command": command,
        "Written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "Commit": provenance.commit(CHECKOUT),
        "Versions": provenance.versions(),
        "Machine": provenance.machine(),
    }
    text = templates().get_template(template).render(facts=facts, **named)
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path
