"""Pages of the site that are made of the repository's own files, by docs/templates.

The gallery has a page for each picture of docs/gallery, with the caption that the config named in
runs.csv gives it, the records of its claims, its table, and the code that draws it. The API has a
section for each name of `manybody.public.__all__`.
"""

import csv
import inspect
import re
import shutil
from functools import cache
from pathlib import Path

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
OTHERS = "Other runs"
CONTACTS = (
    "Contact map of the family {}, by ``manybody family``.\n\n"
    "**(a)** Above the diagonal corrected scores, below it contacts of the structure and as many "
    "of the best pairs. **(b)** Share of contacts among the best n pairs, with one binomial "
    "standard error.\n"
)


@cache
def figures(*overlays: str) -> Figures:
    """The figures of the default config with other files of config/ laid over it."""
    config: dict = {}
    for name in ("config/config.yaml", *overlays):
        update_config(config, yaml.safe_load((ROOT / name).read_text("utf-8")))
    checked = check(config, take_away(config))
    return Figures(paths := Paths(config), Sources(paths, checked), checked)


def page_of(picture: Path) -> str:
    """The name of a picture's page."""
    return str(picture.relative_to(GALLERY).with_suffix("")).replace("/", "-")


def described(row: dict[str, str]) -> dict:
    """What a picture's page says, by a row of runs.csv."""
    path = GALLERY / row["picture"]
    overlays = re.findall(r"config/[\w.-]+", row["config"])
    prefix, _, figure = path.stem.rpartition("-")
    known = [(paper, figure) for paper in papers.PAPERS if figure in papers.figures(paper)]
    # the maps of `manybody family` are drawn as those of contacts
    name = next((one for one in known if one[0] == prefix), (*known, ("potts", "contacts"))[0])
    demo = overlays[:1] == ["config/config.yaml"]
    run = Path(overlays[-1]).stem if overlays else f"family {path.stem}"
    caption = figures(*overlays).caption(*name) if overlays else CONTACTS.format(path.stem)
    # of several files of claims in a folder the one whose name begins as the picture's
    records = [
        file
        for file in sorted(path.parent.glob("*claims.csv"), key=lambda file: len(file.name))
        if f"{path.stem}-".startswith(file.name.removesuffix("claims.csv"))
    ][-1:]
    tables = [*path.parent.glob(f"{path.stem}.csv*"), *path.parent.glob("precision.csv")]
    found = [claim for file in records for claim in claims.read(file)]
    draw = inspect.unwrap(papers.figure_module(*name).draw)
    lines, first = inspect.getsourcelines(draw)
    return row | {
        "page": page_of(path),
        "group": name[0] if demo else OTHERS,
        "title": "/".join(name) + ("" if demo else f" ({run})"),
        "caption": caption,
        "alternative": caption.partition("\n\n")[0].replace("``", ""),
        "claims": [claim for claim in found if claim.id.startswith("/".join(name) + "/")],
        "tables": tables,
        "files": [str(file.relative_to(DOCS)) for file in (path, *tables, *records)],
        "module": Path(inspect.getfile(draw)).relative_to(ROOT),
        "lines": f"{first}-{first + len(lines) - 1}",
    }


def write(app) -> None:
    """Writes docs/generated anew. Links out of docs/ are treated as `lead` does."""
    made = MADE / "gallery"
    shutil.rmtree(MADE, ignore_errors=True)
    made.mkdir(parents=True)
    with (GALLERY / "runs.csv").open(encoding="utf-8", newline="") as opened:
        shown = [described(row) for row in csv.DictReader(opened)]
    shown.sort(key=lambda one: [*papers.PAPERS, OTHERS].index(one["group"]))
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS / "templates"), trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["escaped"] = lambda text: re.sub(r"([\\`*_|])", r"\\\1", text)
    kinds = {name: inspect.isclass(getattr(public, name)) for name in public.__all__}
    pages = {MADE / "api.rst": ("api.rst", {"kinds": kinds})}
    pages[made / "index.rst"] = "gallery.rst", {"pictures": shown}
    for one in shown:
        pages[made / f"{one['page']}.rst"] = "picture.rst", {"one": one}
        small = Image.open(GALLERY / one["picture"])
        small.thumbnail((480, 480))
        small.save(made / f"{one['page']}.png")
    on_top = [path.stem for path in sorted(ROOT.glob("*.md"), reverse=True)]
    pages[MADE / "development.rst"] = (
        "development.rst",
        {"on_top": on_top, "decisions": (DOCS / "decisions.md").exists()},
    )
    blob = app.config.html_context["blob"]
    for name in on_top:
        text = re.sub(
            r"\[([^\]]*)\]\((?![a-z]+:|#|\.\./)([^)]*)\)",
            f"[\\1]({blob}\\2)" if blob else "\\1",
            (ROOT / f"{name}.md").read_text("utf-8").replace("](docs/", "](../"),
        )
        (MADE / f"{name.lower()}.md").write_text(text, encoding="utf-8")
    for path, (template, given) in pages.items():
        path.write_text(templates.get_template(template).render(given), encoding="utf-8")


def as_restructured_text(app, what, name, thing, options, lines: list[str]) -> None:
    """Turns a docstring of `manybody.public` into reStructuredText, but for its examples."""

    def marked(match: re.Match) -> str:
        code, character = match.groups()
        if character:
            return f"\\{character}"
        return f":obj:`{code}`" if code in public.__all__ else f"``{code}``"

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
    blob = app.config.html_context["blob"]
    for node in list(doctree.findall(addnodes.download_reference)):
        target = Path(app.env.relfn2path(node["reftarget"])[1]).resolve()
        if target.suffix == ".png" and not app.env.docname.startswith("generated/gallery/"):
            given = {
                "refdoc": app.env.docname,
                "refdomain": "std",
                "reftype": "doc",
                "reftarget": f"/generated/gallery/{page_of(target)}",
                "refexplicit": True,
            }
            node.replace_self(addnodes.pending_xref("", *node, **given))
        elif DOCS not in target.parents:
            uri = f"{blob}{target.relative_to(ROOT)}"
            linked = [nodes.reference("", "", *node, refuri=uri)]
            node.replace_self(linked if blob else node.children)


def setup(app) -> None:
    """Hands Sphinx what this module makes, before it reads a page."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", as_restructured_text)
    # before Sphinx collects the files that pages offer
    app.connect("doctree-read", lead, priority=100)
