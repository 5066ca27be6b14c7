"""Losses of the generators of clones on their text, against those of bigrams."""

from pathlib import Path

from manybody.io import parquet, tables
from manybody.io.atomic import read_json


def sentences(config: dict, losses: list[str], ngrams: list[str]) -> list[str]:
    """A sentence on each generator.

    losses: tables of the generators' evaluations, each with a target that is the test split.
    ngrams: what `inspection.ngram_losses` found of the sources; generators of others are left out.
    """
    counted = {Path(path).parent.name: read_json(path) for path in ngrams}
    found = []
    for path in losses:
        table, document = parquet.read_table(path, tables.KIND, tables.LOSS_SCHEMA)
        evaluation = config["evaluations"][document["about"]["evaluation"]]
        source, model, targets = (evaluation[key] for key in ("source", "model", "targets"))
        if source not in counted:
            continue
        tested = next(name for name, of in targets.items() if of.get("split") == "test")
        curve = tables.learning_curves(table.to_pandas().assign(seed=document["about"]["seed"]))
        last = curve[curve["target"] == tested].iloc[-1]
        bigrams = next(one["masked"] for one in counted[source] if one["order"] == 2)
        said = (
            f"{model} loses {last['loss']:.2f} ± {last['loss_se']:.2f} nats a masked token of the "
            f"test text, bigrams {bigrams:.2f}."
        )
        if last["loss"] > bigrams:
            said += " Its clones show what it lacks: train it longer, or as `advise` suggests."
        found.append(said)
    return found
