"""Whether generators are good enough for their clones to say something of a text."""

from collections.abc import Iterable
from pathlib import Path

from manybody import models
from manybody.claims.verdicts import DEVIATIONS, FORGOTTEN, MET, RHAT
from manybody.io import parquet, tables
from manybody.io.atomic import read_json

BETTER, ALIKE, WORSE = "better than", "as good as", "worse than"
NAMES = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
Run = tuple[str, str, int]  # source, model, seed


def sentences(
    config: dict, clones: list[dict], losses: Iterable[str | Path], ngrams: Iterable[str | Path]
) -> list[str]:
    """What is known, as sentences: of all clones, then of each generator.

    clones: as of `chains.known`. losses: tables of the generators' evaluations, each with a target
    that is the test split. ngrams: what `inspection.ngram_losses` found of the sources. Generators
    whose losses are not given are left out.
    """
    counted = {Path(path).parent.name: read_json(path) for path in ngrams}
    tested = dict(_tested(config, path) for path in losses)
    standings = {
        run: _standing(curve.iloc[-1], counted[run[0]])
        for run, curve in tested.items()
        if run[0] in counted
    }
    found = [_summary(clones, tested, counted)] if clones else []
    return found + [_sentence(config, run, tested, held) for run, held in standings.items()]


def _tested(config: dict, path: str | Path):
    """A run, and its loss on the test split with its error, by step."""
    table, document = parquet.read_table(path, tables.KIND, tables.LOSS_SCHEMA)
    about = document["about"]
    seed, evaluation = about["seed"], config["evaluations"][about["evaluation"]]
    names = (name for name, of in evaluation["targets"].items() if of.get("split") == "test")
    curves = tables.learning_curves(table.to_pandas().assign(seed=seed))
    curve = curves[curves["target"] == next(names)].set_index("step")
    return (evaluation["source"], evaluation["model"], seed), curve


def _standing(loss, ngrams: list[dict]) -> dict[str, dict[int, float]]:
    """Losses of n-grams by order, by how a loss compares with them, given the errors of both."""
    found: dict[str, dict[int, float]] = {BETTER: {}, ALIKE: {}, WORSE: {}}
    for one in ngrams:
        margin = DEVIATIONS * (one["error"] ** 2 + loss["loss_se"] ** 2) ** 0.5
        away = loss["loss"] - one["masked"]
        word = ALIKE if abs(away) < margin else BETTER if away < 0 else WORSE
        found[word][one["order"]] = one["masked"]
    return found


def _summary(clones: list[dict], tested: dict, ngrams: dict) -> str:
    good = []
    for clone in clones:
        curve = tested.get(clone["run"])
        if curve is None or clone["step"] not in curve.index or clone["source"] not in ngrams:
            continue
        held = _standing(curve.loc[clone["step"]], ngrams[clone["source"]])
        if 2 in held[BETTER] and clone["verdict"] == MET:
            good.append(clone["name"])
    needed = (
        "a generator better than bigrams, and chains that agree (split R-hat below "
        f"{RHAT}) and hold less than {FORGOTTEN:.0%} of their start"
    )
    if not good:
        return f"No clone is good enough yet to say something of the text: that takes {needed}."
    return (
        f"Good enough to say something of the text: {', '.join(good)}, {len(good)} of "
        f"{len(clones)} clones: {needed}."
    )


def _sentence(config: dict, run: Run, tested: dict, held: dict) -> str:
    source, model, _ = run
    last = tested[run].iloc[-1]
    said = [
        f"{word} {' and '.join(f'{NAMES[n]} ({loss:.2f})' for n, loss in sorted(of.items()))}"
        for word, of in held.items()
        if of
    ]
    unbounded = [
        (other["loss"].iloc[-1], name)
        for (place, name, _), other in tested.items()
        if place == source and not _about(config, source, name).bounded
    ]
    if unbounded and min(unbounded)[1] != model:
        loss, best = min(unbounded)
        away = last["loss"] - loss
        said.append(f"{abs(away):.2f} nats {'above' if away > 0 else 'below'} {best} ({loss:.2f})")
    text = (
        f"{model} ({_about(config, source, model).generator}) loses {last['loss']:.2f} ± "
        f"{last['loss_se']:.2f} nats a masked token of the test text: {', '.join(said)}."
    )
    if 2 in held[WORSE]:
        text += (
            " It has not learned what pairs of neighbours say, so that its clones show what the"
            " training lacks, and nothing of the order. `advise` suggests a recipe."
        )
    return text


def _about(config: dict, source: str, model: str):
    sizes = {key: config["sources"][source][key] for key in ("vocabulary", "length")}
    return models.about({**config["models"][model], **sizes})
