"""The page docs/scaling.md and its picture, made of the rows of `scaling`.

    PYTHONPATH=workflow/src:workflow python -m benchmarks.scaling_page ROWS

copies the file of rows ROWS, results/benchmarks/scaling.csv, to docs/scaling.csv, draws
docs/scaling.png and writes the page.
"""

import sys
from pathlib import Path

import pandas as pd

from manybody.papers import style

PAGE, GALLERY = Path("docs/scaling.md"), Path("docs")
HEAD = """# How cost grows

![Time of each stage against size: points, measured; lines, counted](scaling.png)

Each stage at four sizes, on one thread: the exponent of its processor time with the error of the
fit, in brackets that of the operations counted in
[`scaling_stages.py`](../workflow/benchmarks/scaling_stages.py), and the peak memory of its process.
L length, |V| vocabulary, n layers, C chains, N sequences or a batch of them, d width; clones take a
sweep, which adds one to the exponent of L; GAMP has D inputs and α D samples. A note explains each
difference above 0.2. All points: [`scaling.csv`](scaling.csv).

`benchmarks/scaling_page.py` in `workflow` writes this page.

| stage | exponents: measured (counted) | GiB |
| --- | --- | --- |
"""
SIGNS = {
    "length": "L", "vocabulary": "|V|", "layers": "n", "chains": "C", "sequences": "N",
    "width": "d", "size": "D", "samples": "α",
}  # fmt: skip
COLUMNS, COLOURS = 4, [*style.ORDERS.values(), style.UNBOUNDED]


def text(rows: pd.DataFrame) -> str:
    """The page: a row a stage, with the memory of its largest process, and the reasons below."""
    lines, reasons = [], {}
    for stage, points in rows.groupby("stage", sort=False):
        found = []
        for grows, part in points.groupby("grows", sort=False):
            one, why = part.iloc[0], part["because"].iloc[0]
            note = f" [{reasons.setdefault(why, len(reasons) + 1)}]" if why else ""
            size = f"{one['exponent']:.2f} ± {one['error']:.2f} ({one['counted']:.2f})"
            found.append(f"{SIGNS.get(grows, grows)} {size}{note}")
        cells = stage, "; ".join(found), f"{points['MiB'].max() / 1024:.1f}"
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    notes = "\n".join(f"{number}. {reason}" for reason, number in reasons.items())
    return HEAD + "\n".join(lines) + "\n\n" + notes + "\n"


@style.in_house_style
def draw(rows: pd.DataFrame):
    """A panel a stage: points, and lines of the operation count at the rate of their mean."""
    stages = list(rows.groupby("stage", sort=False))
    lines = -(-len(stages) // COLUMNS)
    figure = style.new(2, 1.35 * lines + 0.4)
    panels = figure.subplots(lines, COLUMNS, squeeze=False).ravel()
    looks = {key: (COLOURS[k % 6], "os^D"[k // 6]) for k, key in enumerate(rows["grows"].unique())}
    for axes, (stage, points) in zip(panels, stages, strict=False):
        for grows, part in points.groupby("grows", sort=False):
            colour, marker = looks[grows]
            x = part["size"] / part["size"].iloc[0]
            rate = (part["seconds"] / part["operations"]).prod() ** (1 / len(part))
            axes.plot(x, rate * part["operations"], color=colour, linewidth=0.8)
            axes.plot(x, part["seconds"], marker, color=colour, markersize=3)
        axes.set(xscale="log", yscale="log", title=stage)
        style.plain_ticks(axes.xaxis, (1, 2, 4, 8))
        axes.yaxis.set_minor_formatter("")
    for axes in panels[len(stages) :]:
        axes.axis("off")
    marks = [
        style.mark(SIGNS.get(key, key), color=colour, marker=marker, linestyle="")
        for key, (colour, marker) in looks.items()
    ]
    figure.legend(handles=marks, loc="outside upper center", ncols=len(marks) // 2 + 1)
    figure.supxlabel("size, in units of the smallest", fontsize=8)
    figure.supylabel("seconds of processor time", fontsize=8)
    return figure


def write(source: str | Path, root: Path) -> None:
    """Copies, draws and writes in a repository what follows from the rows in `source`."""
    gallery = root / GALLERY
    (gallery / "scaling.csv").write_bytes(Path(source).read_bytes())
    rows = pd.read_csv(source, keep_default_na=False)
    draw(rows).savefig(gallery / "scaling.png", dpi=200, metadata={"Software": None})
    (root / PAGE).write_text(text(rows), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1], Path())
