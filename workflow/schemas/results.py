"""Fills docs/results.in.md with the claim records in docs/gallery: `make config` writes the page.

A field is `[[run:paper/figure/name]]`, the number of a record with its interval, or
`[[run:paper/figure/name verdict]]`, or `factor` where the number is a log; without a run it is of
the demo. `[[file.csv panel: name]]` is the factor that a panel shows of a series. `[[table paper]]`
is the table of the demo's records of a paper, `[[beyond]]` that of what was found beyond the
papers.

    python workflow/schemas/results.py RESULTS

copies pictures, tables and records of the demo's results to docs/gallery first (`make gallery`).
"""

import math
import re
import shutil
import sys
from pathlib import Path

import pandas as pd

from manybody.papers import claims
from manybody.papers.claims import Claim
from manybody.report.provenance import commit

TEMPLATE, PAGE = Path("docs/results.in.md"), Path("docs/results.md")
GALLERY, RUNS = Path("docs/gallery"), "runs.csv"
ROWS = 3000  # of a table that is packed
RECORDS = {
    "": "claims.csv",
    "lab": "lab/claims.csv",
    "wikitext": "lab/wikitext-claims.csv",
    "paper": "paper/claims.csv",
    "heads": "heads/claims.csv",
    "order": "order/claims.csv",
    "truths": "truths-claims.csv",
}
FIELD = re.compile(r"\[\[(?:(\w+):)?([\w/-]+?)(?: (\w[\w-]*))?\]\]")
FACTOR = re.compile(r"\[\[(\S+\.csv) (\w+): (.+?)\]\]")
HEAD = "| claim | verdict | number | figure |\n| --- | --- | --- | --- |\n"


def filled(text: str, root: Path) -> str:
    """The template's text with its fields filled. `KeyError` names a record that is not there."""
    records = {
        run: {claim.id: claim for claim in claims.read(root / GALLERY / file)}
        for run, file in RECORDS.items()
    }

    def field(match: re.Match) -> str:
        run, name, word = match.groups()
        if name in ("table", "beyond"):
            return table(records[""].values(), word)
        claim = records[run or ""][name]
        if word == "verdict":
            return f"*{claim.verdict}*"
        numbers = claim.value, claim.low, claim.high
        return claims.written(*(map(math.exp, numbers) if word == "factor" else numbers))

    def factor(match: re.Match) -> str:
        file, *place = match.groups()
        # A panel tells its points apart by series, or by the seed of one series.
        rows = pd.read_csv(root / GALLERY / file, dtype=str).melt(
            ["panel", "y", "y_err"], ["series", "seed"], value_name="name"
        )
        row = rows.set_index(["panel", "name"]).loc[[tuple(place)]].iloc[0]
        value, half = float(row["y"]), float(row["y_err"])  # half: of log y
        return claims.written(value, value * math.exp(-half), value * math.exp(half))

    return FIELD.sub(field, FACTOR.sub(factor, text))


def table(found, paper: str | None) -> str:
    """Records of one paper, or those beyond the papers, a row each."""
    if paper is None:
        rows = [one for one in found if not one.reference]
    else:
        rows = [one for one in found if one.reference and one.id.startswith(f"{paper}/")]
    return HEAD + "\n".join(map(_row, rows))


def _row(claim: Claim) -> str:
    paper, figure, _ = claim.id.split("/")
    run = claim.verdict != "not-run"
    number = claims.written(claim.value, claim.low, claim.high) if run else ""
    picture = f"[{figure}](gallery/{_stem(paper, figure)}.png)"
    cells = (claim.cited, f"**{claim.verdict}**" if run else claim.verdict, number, picture)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _stem(paper: str, figure: str) -> str:
    return figure if paper == "simplicity" else f"{paper}-{figure}"


def gather(folder: Path, root: Path) -> None:
    """Copies pictures, tables (to five digits) and claims of the demo in `folder` to docs/gallery,
    and writes beside each picture's name the commit of the checkout."""
    gallery, made_at, found, drawn = root / GALLERY, commit(root), [], []
    # First: a folder without results ends here, before anything is written over.
    shutil.copyfile(folder / "scorecard.md", gallery / "scorecard.md")
    for picture in sorted((folder / "figures").glob("*/*.png")):
        stem = _stem(picture.parent.name, picture.stem)
        shutil.copyfile(picture, gallery / f"{stem}.png")
        table = pd.read_csv(picture.with_suffix(".csv"), dtype={"seed": str})
        packed = ".gz" if len(table) > ROWS else ""
        table.to_csv(gallery / f"{stem}.csv{packed}", index=False, float_format="%.5g")
        found += claims.read(picture.with_suffix(".claims.csv"))
        drawn.append([f"{stem}.png", "config/config.yaml config/seeds.yaml", made_at])
    claims.write(found, gallery / RECORDS[""])
    runs = pd.read_csv(gallery / RUNS)
    others = runs[~runs["picture"].isin([name for name, *_ in drawn])]
    runs = pd.concat([others, pd.DataFrame(drawn, columns=runs.columns)])
    runs.sort_values("picture").to_csv(gallery / RUNS, index=False)


def page(root: Path) -> str:
    """docs/results.md of a repository."""
    return filled((root / TEMPLATE).read_text(encoding="utf-8"), root)


if __name__ == "__main__":
    gather(Path(sys.argv[1]), Path())
