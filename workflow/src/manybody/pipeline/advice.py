"""Advice on the settings for a text, with reasons, and on the time that its jobs will take.

A suggestion rests on a count of this text, on a measurement on the demo's (which says nothing
certain of another text), or on a rule of thumb, which was not measured; its reason says which.
"""

import copy
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from manybody.data import SHARES, inspection
from manybody.data.documents import Documents
from manybody.data.overlap import sentence, shares
from manybody.data.text import passed_over
from manybody.io.atomic import read_json
from manybody.io.sequences import Sequences

# Recipes tried on the demo's text: workflow/benchmarks/recipes.py
RECIPES = Path(__file__).resolve().parents[4] / "docs" / "recipes.csv"
NEAR = 0.05  # nats
FEWEST = 300  # training tokens for each token of |V|
SMALLEST = 300  # |V|
VERBATIM = 0.01  # share of test blocks in the training text above which a claim of figure 3 fails
LENGTHS = (1.5, 2, 3)  # of L, that are looked at where it does not


class Advice(NamedTuple):
    """A key of the config by its path, what it is now, what is suggested and why."""

    path: tuple[str, ...]
    now: Any
    suggested: Any
    reason: str


class Text(NamedTuple):
    """Counts and losses found in the text of a source."""

    words: dict[str, dict]
    tokens: dict
    blocks: dict[str, int]
    vocabulary: int
    length: int
    deduplicated: dict | None
    passed_over: str
    leaks: dict
    verbatim: dict[int, float]
    ngrams: list[dict]


def read(
    documents: dict[str, str], sequences: dict[str, str], overlap: str, ngrams: str, tokenizer: str
) -> Text:
    """Counts a text; files by split, counts of `data.overlap`, n-gram losses, and tokenizer."""
    opened = {split: Sequences.open(path) for split, path in sequences.items()}
    train, test = opened["train"], opened["test"]
    leaks, about = shares(overlap), Documents(documents["train"]).about
    lengths = [train.length]
    if leaks["verbatim"] > VERBATIM:
        lengths += [round(factor * train.length) for factor in LENGTHS]
    return Text(
        words=inspection.words(documents),
        tokens=inspection.tokens(train, tokenizer),
        blocks={split: len(found) for split, found in opened.items()},
        vocabulary=train.vocabulary,
        length=train.length,
        deduplicated=about.get("deduplicated"),
        passed_over=passed_over(about["passed_over"]) if "passed_over" in about else "",
        leaks=leaks,
        verbatim={length: inspection.verbatim(train, test, length) for length in lengths},
        ngrams=read_json(ngrams),
    )


def suggestions(text: Text, source: str, config: dict, runs: list, clones: list) -> list[Advice]:
    """Keys for the source of this name, in the order in which they matter.

    runs: (evaluation, seed); clones: names; those that the figures of the source are made of.
    """
    corpus = config["sources"][source]["corpus"]
    evaluations = [config["evaluations"][name] for name, _ in runs]
    drawn = [config["clones"][name] for name in clones]
    models = {job["model"]: config["models"][job["model"]] for job in evaluations + drawn}
    models = {name: of for name, of in models.items() if "steps" in of.get("training", {})}
    targets = [of for evaluation in evaluations for of in evaluation["targets"].values()]
    tested = [of["sequences"] for of in targets if of.get("split") == "test" and "source" not in of]
    tested += [clone["chains"] for clone in drawn if clone["chain_init"] == "test"]
    held_out = [model["training"]["validation"] for model in models.values()]
    needed = {"validation": max(held_out, default=0), "test": max(tested, default=0)}
    found = _boundary(text, corpus, config["corpora"][corpus])
    found += _split(text, corpus, config["corpora"][corpus], needed)
    found += [_vocabulary(text, source), _length(text, source)]
    for name, model in sorted(models.items()):
        found += _recipe(text, name, model)
    return found


def _vocabulary(text: Text, source: str) -> Advice:
    total = text.blocks["train"] * text.length
    suggested = min(text.vocabulary, max(SMALLEST, total // FEWEST // 100 * 100))
    reason = (
        f"{total / text.vocabulary:,.0f} training tokens for each, {FEWEST} are enough by a rule "
        f"of thumb; a tenth of those in use is seen {text.tokens['rare']:,} times or less"
    )
    return Advice(("sources", source, "vocabulary"), text.vocabulary, suggested, reason)


def _length(text: Text, source: str) -> Advice:
    """The shortest blocks that do not stand in the training text already."""
    new = [length for length, share in text.verbatim.items() if share <= VERBATIM]
    suggested = min(new, default=max(text.verbatim))
    words = text.words["train"]["words"] / max(text.blocks["train"], 1)
    known = ", ".join(f"{share:.2%} at {n}" for n, share in text.verbatim.items())
    reason = f"a block is {words:.1f} words; test blocks that the training text has: {known}"
    return Advice(("sources", source, "length"), text.length, suggested, reason)


def _boundary(text: Text, name: str, corpus: dict) -> list[Advice]:
    now = corpus.get("boundary", "blank-line")
    for key, boundary in (("markers", "marker"), ("headings", "heading")):
        count = sum(split[key] for split in text.words.values())
        if corpus["kind"] == "file" and count > 1 and now != boundary:
            reason = f"{count:,} lines inside documents look like the boundary between two"
            return [Advice(("corpora", name, "boundary"), now, boundary, reason)]
    return []


def _split(text: Text, name: str, corpus: dict, needed: dict[str, int]) -> list[Advice]:
    now = corpus.get("split", SHARES)
    short = {split: n for split, n in needed.items() if n > text.blocks[split]}
    if not short or not isinstance(now, dict):
        return []
    said = ", ".join(f"{n} {split} blocks of {text.blocks[split]}" for split, n in short.items())
    # A tenth more than is needed: documents are whole, and hashed to their splits.
    share = max(1.1 * n * now[split] / max(text.blocks[split], 1) for split, n in short.items())
    share = round(min(-(-share // 0.05) * 0.05, 0.25), 2)
    split = {"train": round(1 - 2 * share, 2), "validation": share, "test": share}
    return [Advice(("corpora", name, "split"), now, split, f"jobs ask for {said}")]


def _recipe(text: Text, name: str, model: dict) -> list[Advice]:
    """The cheapest of the recipes that were tried and ended as low as the best, within `NEAR`."""
    if "rank" not in model:  # what the recipes vary
        return []
    tried = recipes()
    layers = min((one["layers"] for one in tried), key=lambda n: abs(n - model["layers"]))
    tried = [one for one in tried if one["layers"] == layers]
    losses = [one["loss"] for one in tried]
    near = (one for one in tried if one["loss"] <= min(losses) + NEAR)
    # seconds of equal amounts of work differ by what else the machine did
    chosen = min(near, key=lambda one: (one["rank"] * one["steps"], one["loss"]))
    reason = (
        f"of {len(tried)} recipes of {layers:g} layers on the demo's text the cheapest that ended "
        f"within {NEAR} nats of the best, at {chosen['loss']:.2f}"
    )
    recipe, path = model["training"], ("models", name)
    rate, steps = chosen["learning_rate"], round(chosen["steps"])
    rank = min(round(chosen["rank"]), text.vocabulary) if model["rank"] else None
    return [
        Advice((*path, "training", "learning_rate"), recipe["learning_rate"], rate, reason),
        Advice((*path, "training", "steps"), recipe["steps"], steps, "the same"),
        Advice((*path, "rank"), model["rank"], rank, "the same"),
    ]


def recipes() -> list[dict]:
    """Recipes tried: `layers, rank, learning_rate, steps`, nats at the end, CPU seconds."""
    return pd.read_csv(RECIPES).to_dict("records")


def overlay(found: list[Advice], given: dict) -> dict:
    """The suggestions that differ from the config, laid over those that it holds by `given`."""
    made = copy.deepcopy(given)
    for advice in found:
        if advice.suggested != advice.now:
            place = made
            for key in advice.path[:-1]:
                place = place.setdefault(key, {})
            place[advice.path[-1]] = advice.suggested
    return made


def table(head: list[str], rows: list[list]) -> str:
    return "".join(
        f"| {' | '.join(map(str, line))} |\n" for line in (head, ["---"] * len(head), *rows)
    )


def page(source: str, text: Text, found: list[Advice], seconds: dict[str, list[float]]) -> str:
    """The advice as Markdown. found: as of `suggestions`; seconds: as of `price.by_stage`."""
    parts = [_about_text(text), _about_ngrams(text), _about_keys(found), _about_time(seconds)]
    return "\n".join([f"# Advice on {source}\n", *parts])


def _about_text(text: Text) -> str:
    rows = []
    for split, count in text.words.items():
        blocks = text.blocks[split]
        numbers = (
            count["documents"], count["characters"], blocks * text.length, blocks,
            count["words"], count["types"],
        )  # fmt: skip
        rows.append([split, *(f"{number:,}" for number in numbers), f"{count['new']:.1%}"])
    head = [
        "split", "documents", "characters", "tokens", f"blocks of {text.length}", "words",
        "different words", "not in train",
    ]  # fmt: skip
    repeated = text.deduplicated
    said = "Repeated text was not looked for (`deduplicate: false`)."
    if repeated:
        cut = 1 - repeated["kept_characters"] / max(repeated["characters"], 1)
        said = (
            f"Repeated text: {cut:.1%} of the characters were cut, among them "
            f"{repeated['common_lines']:,} lines that more than 5 documents have "
            f"(`deduplicate: false` keeps all); near-duplicates make {repeated['groups']:,} "
            f"groups of {repeated['kept_documents']:,} documents, each in one split."
        )
    larger = ": a larger `vocabulary` has tokens for more" * (text.tokens["fragments"] > 5e-4)
    tokens = (
        f"Of |V| = {text.vocabulary} tokens {text.tokens['unseen']} are not seen in training; "
        f"{text.tokens['fragments']:.1%} of the training tokens are parts of a character{larger}."
    )
    parts = filter(None, [table(head, rows), said, text.passed_over, sentence(text.leaks), tokens])
    return "\n".join(["## The text\n", *parts, ""])


def _about_ngrams(text: Text) -> str:
    rows = [
        [one["order"], f"{one['next']:.3f}", f"{one['masked']:.3f} ± {one['error']:.3f}"]
        for one in text.ngrams
    ]
    head = ["n (interpolated Kneser-Ney)", "next token", "masked token"]
    said = (
        "Losses in nats per token on test blocks: compare a causal model with the first "
        "column, a masked one with the second (given both sides). A generator that loses more "
        "than n = 2 has not learned the pairs of neighbours; its clones say nothing of the text."
    )
    return f"## n-grams\n\n{said}\n\n{table(head, rows)}"


def _about_keys(found: list[Advice]) -> str:
    rows = [[f"`{'.'.join(a.path)}`", a.now, a.suggested, a.reason] for a in found]
    shown = table(["key", "now", "suggested", "reason"], rows)
    said = "What differs is in the config file `advised.yaml` beside this page."
    return f"## What to set\n\n{shown}\n{said}\n"


def _about_time(seconds: dict[str, list[float]]) -> str:
    rows = [[stage, len(jobs), f"{sum(jobs) / 60:.1f}"] for stage, jobs in seconds.items()]
    said = (
        "A rough estimate with what is suggested, by a few steps of each model on this machine and "
        "the steps, chains and sequences of the jobs. Figures take seconds each.\n"
    )
    return f"## What it takes\n\n{table(['stage', 'jobs', 'minutes of a core'], rows)}\n{said}"
