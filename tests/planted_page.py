"""The page of a run that was never made: small pictures, claims, chains and cards of a few rows."""

from pathlib import Path

import pandas as pd
from PIL import Image

from manybody.claims import verdicts
from manybody.io import cards, tables
from manybody.io.cards import Lacking
from manybody.io.manifest import write_manifest
from manybody.report import document


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


def card(name="n2", **changes) -> cards.Card:
    """The card of a clone after 2 and 20 sweeps, whose twin disagrees."""
    state = {
        "loss": {"value": 1.213, "error": 0.025},
        "ratio": {"value": 0.406, "error": 0.012},
        "unigram": {"clone": 0.51, "text": 0.11},
        "bigram": {"clone": 0.8, "text": 0.55},
        "copied": {"clone": 0.07, "text": 0.19},
    }
    measured = {
        "name": name,
        "source": "docs",
        "digest": "0" * 64,
        "generator": {
            "model": "n2",
            "seed": 0,
            "step": 10,
            "label": "n = 2, order 3, rank 8",
            "order": 3,
        },
        "sampler": "Metropolis-Hastings by the raw score",
        "start": "test sequences",
        "sequences": 8,
        "loss": {
            "text": {"value": 2.987, "error": 0.065},
            "masked": {"value": 2.987, "error": 0.065},
            "task": "masked",
            "on": "the test sequences <that> its chains started from",
        },
        "states": [
            {**state, "sweep": sweep, "called": f"the state after {sweep} sweeps"}
            for sweep in (2, 20)
        ],
        "energy": "raw",
        "scores": {"sweep": [0, 2, 20], "value": [1.0, 2.0, 3.0], "error": [0.1, 0.1, 0.1]},
        "twins": {
            "name": f"{name}-noise",
            "sweep": 20,
            "score": {"value": -0.4, "error": 0.1},
            "loss": {"value": 0.2, "error": 0.05},
            "agree": "no",
        },
        "rhat": 3.06,
        "effective": 217.0,
        "accepted": 0.25,
        "kept": 0.35,
        "swapped": {"lacking": "its chains have one temperature at a time"},
        "why": "the chains do not agree",
    }
    return cards.Card.model_validate(measured | changes)


def exact_card(name="trigrams") -> cards.Card:
    """The card of a clone that is drawn exactly."""
    exact = Lacking(lacking="it is drawn exactly, without chains")
    state = card().states[0].model_copy(update={"sweep": exact, "called": "a sample"})
    none = ("start", "energy", "scores", "twins", "rhat", "accepted", "kept", "swapped")
    return card(name, states=[state], effective=8, **dict.fromkeys(none, exact))


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
    stored = folder / "cards" / "docs.json"
    if clones:
        twins = card().twins.model_copy(update={"name": "n2"})
        scores = {"sweep": [0, 20], "value": [-3.0, 2.6], "error": [0.1, 0.1]}
        known = [
            card(),
            card("n2-noise", start="unigram noise", scores=scores, twins=twins),
            exact_card(),
        ]
        cards.write(stored, known)
    states = {"simplicity/fig4": [["n2", 2], ["trigrams", None]]} if clones else {}
    document.write(
        folder / "index.html", config, figures, found, made, [stored] if clones else [], states
    )
    return folder / "index.html"
