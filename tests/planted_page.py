"""The page of a run that was never made: small pictures, and claims and chains of a few rows."""

from pathlib import Path

import pandas as pd
from PIL import Image

from manybody.claims import verdicts
from manybody.files import tables
from manybody.files.manifest import write_manifest
from manybody.page import document


def clone(folder: Path, rhat=1.01, changed=0.95, samples=True) -> Path:
    """A clone of two sweeps, with passages whose text is markup."""
    folder.mkdir(parents=True)
    trace = {"sweep": [0, 2], "score": [1.0, 2.0], "score_se": [0.1, 0.1], "changed": [0, changed]}
    trace |= {"same": [0.5] * 2, "accepted": [0.25] * 2, "autocorrelation": [1.0] * 2}
    pd.DataFrame(trace | {"effective_samples": [64.0] * 2, "rhat": [rhat] * 2}).to_parquet(
        folder / "trace.parquet"
    )
    (folder / "samples.md").write_text("> a <b> c & d\n")
    description = {"architecture": "factored", "layers": 2, "rank": 8, "variant": "exact"}
    generator = {
        "description": description | {"length": 16, "vocabulary": 20, "bias": True},
        "step": 10,
        "last": False,
        "model": "n2",
        "seed": 0,
    }
    about = {"source": "docs", "chain_init": "test", "energy": "raw", "chains": 8}
    names = ["trace.parquet", "samples.md"] if samples else ["trace.parquet"]
    write_manifest(folder / "manifest.json", "clones", names, about | {"generator": generator})
    return folder / "manifest.json"


def run(folder: Path, config: dict, claims=True, clones=True) -> Path:
    """The page of a run of a config's figures, each a small picture."""
    figures = [(paper, name) for paper, named in config["figures"].items() for name in named]
    found = []
    for paper, name in figures:
        stem = folder / "figures" / paper / name
        stem.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (400, 300), "white").save(stem.with_suffix(".png"))
        for ending in (".pdf", ".csv"):
            stem.with_suffix(ending).touch()
        if claims:
            rows = [
                verdicts.positive(f"6 ({name}): a < b & c", [5.0, 5.0, 5.0]),
                verdicts.identity("3: energies agree", 1e-7, 0.0, 1e-4),
            ]
            found.append(folder / "claims" / paper / f"{name}.csv")
            tables.write_csv(verdicts.table(rows), found[-1])
    made = [clone(folder / "clones" / "docs" / "n2")] if clones else []
    document.write(folder / "index.html", config, figures, found, made)
    return folder / "index.html"
