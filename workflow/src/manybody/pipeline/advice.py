"""What to set for a text and what it will take, before anything long is run, with the reasons.

A suggestion says what it rests on: a count of this text, a measurement on the demo's (which says
nothing certain of another text), or a rule of thumb, which was not measured.
"""

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from manybody.data import SHARES, inspection
from manybody.data.documents import Documents
from manybody.data.overlap import shares
from manybody.io.atomic import atomic, read_json
from manybody.io.sequences import Sequences
from manybody.pipeline import costs

# Recipes tried on the demo's text: workflow/benchmarks/recipes.py
RECIPES = Path(__file__).resolve().parents[4] / "docs" / "recipes.csv"
NEAR = 0.05  # nats
COUNT, MEASURED, RULE = "a count of this text", "a measurement on the demo's", "a rule of thumb"
FEWEST = 300  # training tokens for each token of |V|
VOCABULARIES = (300, 400, 500, 700, 1000, 1500, 2000)
VERBATIM = 0.01  # share of test blocks in the training text above which a claim of figure 3 fails
LENGTHS = (1.5, 2, 3)  # of L, that are looked at where it does not
FIGURE = 10  # seconds in which a figure is drawn and judged


class Advice(NamedTuple):
    """A key of the config by its path, what it is now, what is suggested and why."""

    path: tuple[str, ...]
    now: Any
    suggested: Any
    reason: str
    basis: str


class Text(NamedTuple):
    """What was found in the text of a source."""

    words: dict[str, dict]
    tokens: dict
    blocks: dict[str, int]
    vocabulary: int
    length: int
    deduplicated: dict | None
    leaks: dict
    verbatim: dict[int, float]
    ngrams: list[dict]


def read(documents: dict[str, str], sequences: dict[str, str], overlap: str, ngrams: str) -> Text:
    """Counts a text; files by split, the counts of `sources.overlap`, the losses of n-grams."""
    opened = {split: Sequences.open(path) for split, path in sequences.items()}
    train, test = opened["train"], opened["test"]
    leaks = shares(overlap)
    lengths = [train.length]
    if leaks["verbatim"] > VERBATIM:
        lengths += [round(factor * train.length) for factor in LENGTHS]
    return Text(
        words=inspection.words(documents),
        tokens=inspection.tokens(train),
        blocks={split: len(found) for split, found in opened.items()},
        vocabulary=train.vocabulary,
        length=train.length,
        deduplicated=Documents(documents["train"]).about.get("deduplicated"),
        leaks=leaks,
        verbatim={length: inspection.verbatim(train, test, length) for length in lengths},
        ngrams=read_json(ngrams),
    )


def suggestions(text: Text, source: str, config: dict, jobs: list[dict]) -> list[Advice]:
    """Keys for the source of this name, in the order in which they matter."""
    entry, models = config["sources"][source], sorted(_models(config, jobs, source))
    corpus = config["corpora"][entry["corpus"]]
    found = _boundary(text, entry["corpus"], corpus)
    found += _split(text, entry["corpus"], corpus, _needed(config, jobs, source))
    path = ("sources", source)
    found += [_vocabulary(text, (*path, "vocabulary")), _length(text, (*path, "length"))]
    for model in models:
        found += _recipe(text, model, config["models"][model])
    return found


def _vocabulary(text: Text, path: tuple[str, ...]) -> Advice:
    total = text.blocks["train"] * text.length
    fitting = [size for size in VOCABULARIES if total >= FEWEST * size]
    enough = total >= FEWEST * text.vocabulary
    suggested = text.vocabulary if enough else max(fitting, default=VOCABULARIES[0])
    reason = (
        f"{total / text.vocabulary:,.0f} training tokens for each, {FEWEST} are enough; of those "
        f"in use a tenth is seen {text.tokens['rare']:,} times or less"
    )
    return Advice(path, text.vocabulary, suggested, reason, RULE)


def _length(text: Text, path: tuple[str, ...]) -> Advice:
    """The shortest blocks that do not stand in the training text already."""
    new = [length for length, share in text.verbatim.items() if share <= VERBATIM]
    suggested = min(new, default=max(text.verbatim))
    words = text.words["train"]["words"] / max(text.blocks["train"], 1)
    known = ", ".join(f"{share:.2%} at {n}" for n, share in text.verbatim.items())
    reason = (
        f"a block is {words:.1f} words; of the test blocks there stand in the training text "
        f"{known}; up to {VERBATIM:.0%} is well"
    )
    return Advice(path, text.length, suggested, reason, COUNT)


def _models(config: dict, jobs: list[dict], source: str) -> set[str]:
    named = {job["model"] for job in jobs if job["source"] == source}
    return {name for name in named if "steps" in config["models"][name]["training"]}


def _boundary(text: Text, name: str, corpus: dict) -> list[Advice]:
    now = corpus.get("boundary", "blank-line")
    for key, boundary in (("markers", "marker"), ("headings", "heading")):
        count = sum(split[key] for split in text.words.values())
        if corpus["kind"] == "file" and count > 1 and now != boundary:
            reason = f"{count:,} lines inside documents look like the boundary between two"
            return [Advice(("corpora", name, "boundary"), now, boundary, reason, COUNT)]
    return []


def _needed(config: dict, jobs: list[dict], source: str) -> dict[str, int]:
    """The most sequences of the validation and test splits that a job asks for."""
    validation = [
        config["models"][model]["training"]["validation"] for model in _models(config, jobs, source)
    ]
    test = [job["test"] for job in jobs if job["source"] == source]
    return {"validation": max(validation, default=0), "test": max(test, default=0)}


def _split(text: Text, name: str, corpus: dict, needed: dict[str, int]) -> list[Advice]:
    now = corpus.get("split", SHARES)
    short = {split: n for split, n in needed.items() if n > text.blocks[split]}
    if not short or not isinstance(now, dict):
        return []
    said = ", ".join(f"{n} {split} blocks of {text.blocks[split]}" for split, n in short.items())
    # A tenth more than is needed: documents are whole, and hashed to their splits.
    share = max(1.1 * n * now[split] / max(text.blocks[split], 1) for split, n in short.items())
    share = min(-(-share // 0.05) * 0.05, 0.25)
    split = {"train": 1 - 2 * share, "validation": share, "test": share}
    split = {key: round(value, 2) for key, value in split.items()}
    reason = f"jobs ask for {said}"
    return [Advice(("corpora", name, "split"), now, split, reason, COUNT)]


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
        f"{len(tried)} recipes with {layers:g} layers ended at {min(losses):.2f} to "
        f"{max(losses):.2f} nats; this, the cheapest within {NEAR} of the best, at "
        f"{chosen['loss']:.2f}"
    )
    basis = MEASURED if layers == model["layers"] else RULE
    recipe, steps = model["training"], round(chosen["steps"])
    passes = steps * _sequences(recipe, text.length) / text.blocks["train"]
    path, training = ("models", name), ("models", name, "training")
    rate, rank = recipe["learning_rate"], min(round(chosen["rank"]), text.vocabulary)
    found = [
        Advice((*training, "learning_rate"), rate, chosen["learning_rate"], reason, basis),
        Advice(
            (*training, "steps"),
            recipe["steps"],
            steps,
            f"the same; {passes:.0f} passes over the training blocks",
            basis,
        ),
    ]
    if model["rank"]:
        found.append(Advice((*path, "rank"), model["rank"], rank, "the same", basis))
    return found


def recipes() -> list[dict[str, float]]:
    """What was tried: `layers, rank, learning_rate, steps`, nats at the end, processor seconds."""
    with RECIPES.open(encoding="utf-8") as opened:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(opened)]


def _sequences(recipe: dict, length: int) -> float:
    """Sequences in a step."""
    if recipe["objective"] == "next-token":
        return recipe["batch"]
    share = 1 if recipe["masks"] == "all" else recipe["masks"]
    return recipe["batch"] / max(1, round(share * length))


def overlay(found: list[Advice]) -> dict:
    """The suggestions that differ from the config, to be laid over it."""
    made: dict = {}
    for advice in found:
        if advice.suggested != advice.now:
            place = made
            for key in advice.path[:-1]:
                place = place.setdefault(key, {})
            place[advice.path[-1]] = advice.suggested
    return made


def laid_over(config: dict, changes: dict) -> dict:
    """A config with changes, mappings merged, as Snakemake merges them."""
    merged = dict(config)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(config.get(key), dict)
        merged[key] = laid_over(config[key], value) if both else value
    return merged


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def page(source: str, text: Text, config: dict, runs: list, clones: list, figures: int) -> str:
    """The advice as Markdown; `runs` and `clones` as of `costs.jobs`, and how many figures."""
    jobs = costs.jobs(config, runs, clones)
    found = suggestions(text, source, config, jobs)
    changes = overlay(found)
    changed = costs.jobs(laid_over(config, changes), runs, clones) if changes else None
    parts = [_about_text(text), _about_ngrams(text), _about_keys(found, changes)]
    return "\n".join([f"# Advice on {source}\n", *parts, _about_costs(jobs, changed, figures)])


def _about_text(text: Text) -> str:
    rows = []
    for split, count in text.words.items():
        blocks = text.blocks[split]
        numbers = (count["documents"], count["characters"], blocks * text.length, blocks)
        numbers += (count["words"], count["types"])
        rows.append([split, *(f"{number:,}" for number in numbers), f"{count['new']:.1%}"])
    head = ["split", "documents", "characters", "tokens", f"blocks of {text.length}"]
    head += ["words", "different words", "not in train"]
    repeated = text.deduplicated
    said = "Repeated text was not looked for (`deduplicate: false`)."
    if repeated:
        cut = 1 - repeated["kept_characters"] / max(repeated["characters"], 1)
        said = (
            f"Repeated text: {cut:.1%} of the characters were cut, {repeated['common_lines']:,} "
            f"lines stand in more than five documents; near-duplicates make "
            f"{repeated['groups']:,} groups of {repeated['kept_documents']:,} documents, the "
            f"largest of {repeated['largest_group']:,}, each in one split."
        )
    leaks = (
        f"Leaks: {text.leaks['verbatim']:.2%} of the test blocks stand whole in the training text, "
        f"{text.leaks['runs']:.2%} share {text.leaks['run']} tokens in a row with it."
    )
    unseen = text.tokens["unseen"]
    tokens = f"Of |V| = {text.vocabulary} tokens {unseen} are never seen in training."
    return "\n".join(["## The text\n", table(head, rows), said, leaks, tokens, ""])


def _about_ngrams(text: Text) -> str:
    names = {1: "unigrams", 2: "bigrams", 3: "trigrams"}
    rows = [
        [
            names.get(one["order"], one["order"]),
            f"{one['next']:.3f}",
            f"{one['masked']:.3f} ± {one['error']:.3f}",
        ]
        for one in text.ngrams
    ]
    head = ["interpolated Kneser-Ney", "next token", "masked token"]
    said = (
        "Losses in nats per token on test blocks, within the block: a causal model is to be held "
        "against the first column, a masked one against the second (given both sides). A "
        "generator above the bigrams has not learned what pairs of neighbours say; its clones "
        "are not yet the text's."
    )
    return "\n".join(["## n-grams\n", said, "", table(head, rows)])


def _about_keys(found: list[Advice], changes: dict) -> str:
    rows = [
        [f"`{'.'.join(a.path)}`", *map(_shown, (a.now, a.suggested)), a.reason, a.basis]
        for a in found
    ]
    lines = ["## What to set\n", table(["key", "now", "suggested", "reason", "rests on"], rows)]
    if changes:
        written = yaml.safe_dump(changes, sort_keys=False, default_flow_style=None, width=100)
        lines += ["What differs, as lines of a config:\n", f"```yaml\n{written}```\n"]
    return "\n".join(lines)


def _shown(value) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _about_costs(jobs: list[dict], changed: list[dict] | None, figures: int) -> str:
    stages = defaultdict(list)
    for job in jobs:
        stages[job["stage"]].append(costs.estimated(job))
    rows = [
        [stage, len(found), f"{sum(s for s, _ in found) / 60:.1f}", max(mb for _, mb in found)]
        for stage, found in stages.items()
    ]
    rows.append(["figures and claims", 2 * figures, f"{figures * FIGURE / 60:.1f}", 300])
    said = f"About {_minutes(jobs, figures):.0f} minutes on two quiet cores"
    if changed is not None:
        said += f", and {_minutes(changed, figures):.0f} with what is suggested"
    said += (
        ". Seconds and MB are those of the demo's jobs, measured in pairs on two cores and "
        "rescaled: steps, chains and sequences in proportion; other lengths, vocabularies, layers "
        "and sizes by rules of thumb."
    )
    head = ["stage", "jobs", "minutes of a core", "MB of the largest job"]
    return "\n".join(["## What it takes\n", table(head, rows), said, ""])


def _minutes(jobs: list[dict], figures: int) -> float:
    """Minutes on two cores: half of all, but no less than the longest job."""
    seconds = [costs.estimated(job)[0] for job in jobs]
    return max(sum(seconds, figures * FIGURE) / 2, max(seconds, default=0)) / 60


def write(out: str | Path, pages: list[str]) -> None:
    """Writes the pages of all sources as one."""
    with atomic(out) as temporary:
        temporary.write_text("\n".join(pages), encoding="utf-8")
