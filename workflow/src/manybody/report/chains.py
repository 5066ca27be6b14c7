"""What is known of the chains of each clone: how far they have moved, and whether they agree."""

from collections.abc import Iterable
from pathlib import Path

from manybody.claims import labels
from manybody.claims.verdicts import in_words
from manybody.io import tables
from manybody.io.manifest import Manifest

SAMPLES = "samples.md"


def known(manifests: Iterable[str | Path]) -> list[dict]:
    """For each clone what its manifest, trace and samples say.

    `accepted` is the share of proposals of another token that the last sweep took, `kept` the
    share of positions that hold the token they started from; NaN where not known.
    """
    return [_known(Path(path)) for path in manifests]


def _known(path: Path) -> dict:
    about, trace = tables.read_trace(path)
    last = trace.iloc[-1]
    manifest = Manifest.read(path, "clones")
    made = about["generator"]
    kept, rhat = 1 - float(last["changed"]), float(last["rhat"])
    return {
        "name": path.parent.name,
        "source": about["source"],
        "generator": labels.target({"original": False, **about}, rank=True),
        "run": (about["source"], made["model"], made["seed"]),
        "step": made["step"],
        "start": about["chain_init"],
        "sweeps": int(last["sweep"]),
        "accepted": float(last["accepted"]),
        "kept": kept,
        "rhat": rhat,
        "effective": float(last["effective_samples"]),
        "verdict": in_words(rhat, kept),
        "samples": manifest.file(SAMPLES).read_text("utf-8") if SAMPLES in manifest.names() else "",
    }
