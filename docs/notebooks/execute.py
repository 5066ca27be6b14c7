"""Executes a notebook as Jupyter does, with no more than Python and matplotlib.

    python docs/notebooks/execute.py NOTEBOOK [OUT]

runs its cells in order, keeps what they print and the figures that they draw, and writes it in
place, or as OUT. An error ends it with the cell's own traceback, and nothing is written.
"""

import base64
import io
import json
import linecache
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"

import matplotlib.pyplot as plt

DPI = 72


def outputs(source: str, name: str, names: dict) -> list[dict]:
    """What a cell prints, and its figures, in nbformat 4; its variables are put into `names`."""
    said = io.StringIO()
    # By which a traceback shows the line.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with redirect_stdout(said):
        exec(compile(source, name, "exec"), names)
    printed = said.getvalue().splitlines(keepends=True)
    found = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    for number in plt.get_fignums():
        picture = io.BytesIO()
        figure = plt.figure(number)
        figure.savefig(picture, dpi=DPI, bbox_inches="tight", metadata={"Software": None})
        plt.close(figure)
        text = base64.b64encode(picture.getvalue()).decode("ascii")
        found.append({"output_type": "display_data", "metadata": {}, "data": {"image/png": text}})
    return found


def main(path: str, out: str | None = None) -> None:
    notebook = json.loads(Path(path).read_text("utf-8"))
    names = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        cell["execution_count"] = count
        cell["outputs"] = outputs("".join(cell["source"]), f"{path}, code cell {count}", names)
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    Path(out or path).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
