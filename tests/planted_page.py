"""The page of a run that was never made: small pictures, claims, chains and cards of a few rows."""

from pathlib import Path

import pandas as pd
from PIL import Image

from manybody.io.manifest import write_manifest
from manybody.measure import cards
from manybody.papers import claims as records
from manybody.report import document


def clone(folder: Path, rhat=1.01, changed=0.95, samples=True) -> Path:
    """A clone of two sweeps, with passages whose text is markup."""
    folder.mkdir(parents=True)
    trace = {
        "sweep": [0, 2], "score": [1.0, 2.0], "score_se": [0.1, 0.1], "changed": [0, changed],
        "same": [0.5] * 2, "accepted": [0.25] * 2, "autocorrelation": [1.0] * 2,
    }  # fmt: skip
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


def card(name="n2", **changes) -> cards.Card:
    """The card of a clone after 2 and 20 sweeps, whose pair disagrees."""
    state = {"loss": (1.213, 0.025), "unigram": 0.51, "bigram": 0.8, "copied": 0.07}
    measured = {
        "name": name,
        "source": "docs",
        "digest": "0" * 64,
        "label": "n = 2, order 3, rank 8",
        "model": "n2 of seed 0 at step 10",
        "sampler": "Metropolis-Hastings by the raw score, from test sequences",
        "text": {"loss": (2.987, 0.065), "unigram": 0.11, "bigram": 0.55, "copied": 0.19},
        "task": "masked",
        "states": [{**state, "sweep": sweep, "sample": False} for sweep in (2, 20)],
        "agree": "no",
        "rhat": 3.06,
        "effective": 217.0,
        "kept": 0.35,
        "why": "the chains <do> not agree; chains from text and from noise do not agree",
    }
    return cards.Card.model_validate(measured | changes)


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
        stem.with_suffix(".caption.rst").write_text(f"What *{name}* shows.\n")
        if claims:
            rise = records.over_seeds("a < b & c", [5.0, 5.1, 5.2])
            judged = [
                records.judged(
                    f"{paper}/{name}/rise", f"({name}): a < b & c", rise, "3 runs", "up"
                ),
                records.not_run(f"{paper}/{name}/none", "e < f", "no runs"),
            ]
            found.append(stem.with_name(f"{name}.claims.csv"))
            records.write(judged, found[-1])
    made = [clone(folder / "clones" / "docs" / "n2")] if clones else []
    stored = folder / "cards" / "docs.json"
    if clones:
        sample = card().states[1].model_copy(update={"sample": True})
        settled = card("settled", states=[sample], agree="yes", why="both starts agree")
        cards.write(stored, [card(), card("n2-noise"), settled])
    states = {"simplicity/fig4": [["n2", 2], ["settled", 20]]} if clones else {}
    document.write(
        folder / "index.html", config, figures, found, made, [stored] if clones else [], states
    )
    return folder / "index.html"
