"""Pages of the site that are made of the repository's own files, by docs/templates.

The gallery has a page for each picture of docs/gallery, with the caption that the config named in
runs.csv gives it, the records of its claims, its table, and the code that draws it. The API has a
section for each name of `manybody.public.__all__`.
"""

import csv
import inspect
import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jinja2
import yaml
from docutils import nodes
from PIL import Image
from snakemake.utils import update_config
from sphinx import addnodes

from manybody import papers, public
from manybody.papers import claims
from manybody.pipeline.check import check, take_away
from manybody.pipeline.figures import Figures
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources

DOCS = Path(__file__).resolve().parent
ROOT, GALLERY, MADE = DOCS.parent, DOCS / "gallery", DOCS / "generated"
ON_TOP = ("README", "CONTRIBUTING", "CHANGELOG")
OTHERS = "Other runs"
SMALL = (480, 480)  # pixels of a picture in the list
FAMILY = ("potts", "contacts")  # what draws the contact maps of `manybody family`
CONTACTS = (
    "Contact map of the family {}, by ``manybody family``.\n\n"
    "**(a)** Above the diagonal corrected scores, below it contacts of the structure and as many "
    "of the best pairs. **(b)** Share of contacts among the best n pairs, with one binomial "
    "standard error.\n"
)
ESCAPED = re.compile(r"([\\`*_|])")


@cache
def figures(*overlays: str) -> Figures:
    """The figures of the default config with other files of config/ laid over it."""
    config: dict = {}
    for name in ("config/config.yaml", *overlays):
        update_config(config, yaml.safe_load((ROOT / name).read_text("utf-8")))
    checked = check(config, take_away(config))
    paths = Paths(config)
    return Figures(paths, Sources(paths, checked), checked)


class Picture(NamedTuple):
    """A row of docs/gallery/runs.csv."""

    picture: str  # relative to docs/gallery
    config: str
    commit: str

    @property
    def path(self) -> Path:
        return GALLERY / self.picture

    @property
    def page(self) -> str:
        return self.picture.removesuffix(".png").replace("/", "-")

    @property
    def overlays(self) -> list[str]:
        return re.findall(r"config/[\w.-]+", self.config)

    @property
    def name(self) -> tuple[str, str]:
        """Paper and figure, by the picture's name."""
        first, _, figure = self.path.stem.rpartition("-")
        known = [(paper, figure) for paper in papers.PAPERS if figure in papers.figures(paper)]
        return next((name for name in known if name[0] == first), (*known, FAMILY)[0])

    @property
    def group(self) -> str:
        return self.name[0] if self.overlays == ["config/config.yaml"] else OTHERS

    @property
    def title(self) -> str:
        run = Path(self.overlays[-1]).stem if self.overlays else f"family {self.path.stem}"
        return "/".join(self.name) + (f" ({run})" if self.group == OTHERS else "")

    @property
    def caption(self) -> str:
        if self.overlays:
            return figures(*self.overlays).caption(*self.name)
        return CONTACTS.format(self.path.stem)

    @property
    def alternative(self) -> str:
        """The caption's first sentence, without markup."""
        return self.caption.partition("\n\n")[0].replace("``", "")

    @property
    def records(self) -> list[Path]:
        """The file of claims beside the picture whose name says that it is of the picture's run."""
        beside = [
            path
            for path in self.path.parent.glob("*claims.csv")
            if f"{self.path.stem}-".startswith(path.name.removesuffix("claims.csv"))
        ]
        return sorted(beside, key=lambda path: len(path.name))[-1:]

    @property
    def claims(self) -> list[claims.Claim]:
        found = [claim for path in self.records for claim in claims.read(path)]
        return [claim for claim in found if claim.id.startswith("/".join(self.name) + "/")]

    @property
    def verdicts(self) -> str:
        counts = Counter(claim.verdict for claim in self.claims)
        return ", ".join(f"{counts[name]} {name}" for name in claims.VERDICTS if counts[name])

    @property
    def files(self) -> list[str]:
        """What can be downloaded, relative to docs: the picture, what is drawn, the claims."""
        tables = sorted(self.path.parent.glob(f"{self.path.stem}.csv*"))
        tables += self.path.parent.glob("precision.csv")
        return [str(path.relative_to(DOCS)) for path in (self.path, *tables, *self.records)]

    @property
    def drawn(self) -> tuple[Path, int, int]:
        """The module with the figure's `draw`, and its first and last line."""
        draw = inspect.unwrap(papers.figure_module(*self.name).draw)
        lines, first = inspect.getsourcelines(draw)
        return Path(inspect.getfile(draw)).relative_to(ROOT), first, first + len(lines) - 1


def pictures() -> list[Picture]:
    """The pictures of docs/gallery, the demo's first, in the order of the papers."""
    with (GALLERY / "runs.csv").open(encoding="utf-8", newline="") as opened:
        found = [Picture(**row) for row in csv.DictReader(opened)]
    return sorted(found, key=lambda one: [*papers.PAPERS, OTHERS].index(one.group))


def write() -> None:
    """Writes docs/generated anew."""
    shown, made = pictures(), MADE / "gallery"
    shutil.rmtree(MADE, ignore_errors=True)
    made.mkdir(parents=True)
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS / "templates"), trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {
        "escaped": lambda text: ESCAPED.sub(r"\\\1", text),
        "number": lambda claim: claims.written(claim.value, claim.low, claim.high),
    }
    pages = {MADE / "api.rst": ("api.rst", {"names": public.__all__})}
    pages[made / "index.rst"] = "gallery.rst", {"pictures": shown}
    for one in shown:
        pages[made / f"{one.page}.rst"] = "picture.rst", {"one": one}
        small = Image.open(one.path)
        small.thumbnail(SMALL)
        small.save(made / f"{one.page}.png")
    on_top = [name for name in ON_TOP if (ROOT / f"{name}.md").exists()]
    pages |= {MADE / f"{name.lower()}.md": ("on_top.md", {"name": name}) for name in on_top}
    decisions = (DOCS / "decisions.md").exists()
    pages[MADE / "development.rst"] = "development.rst", {"names": on_top, "decisions": decisions}
    for path, (template, given) in pages.items():
        path.write_text(templates.get_template(template).render(given), encoding="utf-8")


def as_restructured_text(app, what, name, thing, options, lines: list[str]) -> None:
    """Turns a docstring of `manybody.public` into reStructuredText, but for its examples."""

    def marked(match: re.Match) -> str:
        code, character = match.groups()
        if character:
            return f"\\{character}"
        return f":func:`{code}`" if code in public.__all__ else f"``{code}``"

    parts = "\n".join(lines).split("\n\n")
    for place, part in enumerate(parts):
        if part.startswith(" "):  # an equation
            parts[place] = f"::\n\n{part}"
        elif not part.startswith(">>>"):
            parts[place] = re.sub(r"`([^`]+)`|([*|_])", marked, part)
    lines[:] = "\n\n".join(parts).split("\n")


def lead(app, doctree: nodes.document) -> None:
    """Links to pictures lead to their pages, and those to files outside docs/ into the repository
    that pyproject.toml names; where it names none they are words."""
    pages = {one.path: one.page for one in pictures()}
    for node in list(doctree.findall(addnodes.download_reference)):
        target = Path(app.env.relfn2path(node["reftarget"])[1]).resolve()
        page = f"/generated/gallery/{pages.get(target)}"
        if target in pages and page != f"/{app.env.docname}":
            given = {"refdomain": "std", "reftype": "doc", "refexplicit": True}
            found = addnodes.pending_xref("", *node, refdoc=app.env.docname, reftarget=page, **given)
            node.replace_self(found)
        elif DOCS not in target.parents:
            uri = f"{app.config.repository}/blob/main/{target.relative_to(ROOT)}"
            linked = [nodes.reference("", "", *node, refuri=uri)]
            node.replace_self(linked if app.config.repository else node.children)
