"""One file of what runs have found, for an archive that gives a DOI: the same bytes each time.

    python workflow/archive.py OUT RESULTS [RESULTS...]

It packs figures, tables, claims, pages, configs and manifests, but no weights and no sequences.
"""

import hashlib
import sys
import tomllib
import zipfile
from pathlib import Path
from tempfile import NamedTemporaryFile

import yaml

from manybody.io import store
from manybody.io.atomic import ArtifactError, atomic, read_json, sha256
from manybody.report import scorecard

ROOT = Path(__file__).resolve().parents[1]
ENDINGS = (".pdf", ".png", ".csv", scorecard.ENDING, ".caption.rst")
PAGES = ("config.yaml", "index.html", "scorecard.md")
FIRST = 1980, 1, 1, 0, 0, 0  # the earliest time that a zip file can hold
README = """# Results of manybody {version}

Each folder is a run; open its `index.html`, which says what was found, with which code and on which
machine. `figures/` has the pictures (PDF, PNG), what is drawn (`.csv`: panel, series, seed, x, y,
y_err), what is judged (`.claims.csv`) and captions; `scorecard.md` gathers the claims. The
`manifest.json` list trained models and clones with their settings and the SHA-256 of their files,
which are not here.

    sha256sum -c SHA256SUMS

compares what is here. In a clone of manybody, at the commit that `index.html` names,

    snakemake --cores all --replace-workflow-config --configfile RUN/config.yaml

makes a run again. Licence: `LICENSE`. To cite it: `CITATION.cff`.

| run | figures | manifests |
| --- | --- | --- |
{rows}
"""


def run_files(run: Path) -> list[Path]:
    """The files of a run that are packed, sorted.

    Raises `ArtifactError` where one is missing, where a figure is not the last that was made, and
    where the scorecard is that of other claims.
    """
    again = f"make the run again (snakemake --cores all --configfile ...), then archive {run}"
    pages = [run / name for name in PAGES]
    config = yaml.safe_load(pages[0].read_text("utf-8")) if pages[0].is_file() else {}
    named = config.get("figures", {})
    stems = sorted(run / "figures" / paper / name for paper in named for name in named[paper])
    figures = [stem.with_name(stem.name + ending) for stem in stems for ending in ENDINGS]
    if absent := [str(path) for path in [*pages, *figures] if not path.is_file()]:
        raise ArtifactError(f"found no {', '.join(absent)}; expected all of the config; {again}")
    for stem in stems:
        folder = store.artifact(run, stem.with_name(f"{stem.name}.pdf"))
        for made in store.versions(folder)[:1]:
            for name, digest in read_json(made / store.MADE)["files"].items():
                if sha256(stem.with_name(name)) != digest:
                    raise ArtifactError(
                        f"found another {stem.with_name(name)} than that which was made last; "
                        f"expected no edits; delete it and {again}"
                    )
    with NamedTemporaryFile() as expected:
        scorecard.write([path for path in figures if path.match("*.claims.csv")], expected.name)
        if sha256(expected.name) != sha256(run / "scorecard.md"):
            raise ArtifactError(
                f"found {run / 'scorecard.md'} of other claims than those of {run / 'figures'}; "
                f"expected it to be newer; {again}"
            )
    manifests = [
        path for part in ("models", "clones") for path in run.glob(f"{part}/**/manifest.json")
    ]
    return sorted([*pages, *figures, *manifests])


def write(out: Path, runs: list[Path]) -> None:
    """Writes the archive `out` (zip) of folders of results. Errors as of `run_files`."""
    packed = {name: (ROOT / name).read_bytes() for name in ("LICENSE", "CITATION.cff")}
    rows = {}
    for run in runs:
        files, name = run_files(run), run.resolve().name
        if name in rows:
            raise ArtifactError(f"found two runs with the name {name}; expected one of each name")
        packed |= {f"{name}/{path.relative_to(run)}": path.read_bytes() for path in files}
        counts = [sum(file.match(kind) for file in files) for kind in ("*.pdf", "manifest.json")]
        rows[name] = "| {} | {} | {} |".format(name, *counts)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    packed["README.md"] = README.format(**project, rows="\n".join(rows.values())).encode()
    sums = [f"{hashlib.sha256(packed[name]).hexdigest()}  {name}\n" for name in sorted(packed)]
    packed["SHA256SUMS"] = "".join(sums).encode()
    with atomic(out) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(packed):
            member = zipfile.ZipInfo(f"{out.stem}/{name}", FIRST)
            member.external_attr = 0o644 << 16
            archive.writestr(member, packed[name], zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    out, *runs = map(Path, sys.argv[1:])
    try:
        write(out, runs)
    except ArtifactError as error:
        sys.exit(f"make archive: {error}")
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB of {', '.join(map(str, runs))}")
