"""A clone as a data set that others can read without this package: Parquet, a tokenizer, a card.

The YAML at the head of README.md, the card, tells the library `datasets` which files there are.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from manybody.data.published import REPOSITORIES
from manybody.data.tokenizer import load
from manybody.io.atomic import ArtifactError, atomic, sha256, write_text
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences, Symbols
from manybody.measure import cards, chains

# As huggingface.co names them, of the repositories that texts are downloaded from.
LICENCES = {"tinystories": ["cdla-sharing-1.0"], "wikitext103": ["cc-by-sa-3.0", "gfdl"]}


def save(manifest: str | Path, folder: str | Path, sequences: str | Path) -> None:
    """Writes the clone of a manifest to `folder`; what is there under the same names is replaced.

    `sweep-{n}.parquet` and `starts.parquet` have the columns `tokens` and, if these can be read,
    `text`. sequences: folder of the clone's source; `ArtifactError` if it lacks the chains' starts.
    """
    manifest, folder, sequences = Path(manifest), Path(folder), Path(sequences)
    listed = Manifest.read(manifest, "clones")
    about = listed.about
    started = Sequences.open(sequences / f"{about['split']}.parquet")
    words, tokenizer = Symbols(about["alphabet"]), sequences / "tokenizer.json"
    drawn_with = [(started.path, started.sha256, about["sequences"])]
    if about["tokenizer"] is not None:
        words = load(tokenizer)
        drawn_with.append((tokenizer, sha256(tokenizer), about["tokenizer"]))
    for path, found, expected in drawn_with:
        if found != expected:
            raise ArtifactError(
                f"{path} is not the file that the clone {manifest} was drawn with: run snakemake "
                "with the clone's manifest as its target, or name the folder of its own source"
            )
    readable = about["alphabet"] is not None or about["tokenizer"] is not None
    names = [*(f"sweep-{sweep}" for sweep in reversed(about["sweeps"])), "starts"]
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        tokens = Sequences.open(listed.file(f"{name}.parquet")).tokens
        columns = {"tokens": pa.FixedSizeListArray.from_arrays(tokens.ravel(), tokens.shape[1])}
        if readable:
            columns["text"] = pa.array([words.decode(row) for row in tokens.tolist()])
        with atomic(folder / f"{name}.parquet") as temporary:
            pq.write_table(pa.table(columns), temporary)
    if about["tokenizer"] is not None:
        with atomic(folder / tokenizer.name) as temporary:
            shutil.copyfile(tokenizer, temporary)
    write_text(folder / "README.md", _readme(manifest, about, started, names))


def _readme(manifest: Path, about: dict, started: Sequences, names: list[str]) -> str:
    """The text of README.md; `names` are those of the files, the last sweep first."""
    known = chains.known(manifest)
    licence, origin = _origin(started.about)
    head = {
        "pretty_name": f"{known['name']}, a clone of {about['source']}",
        **({"license": licence} if licence else {}),
        "tags": ["synthetic", "markov-chain-monte-carlo", "language-model", "manybody"],
        "configs": [
            {"config_name": name, "data_files": f"{name}.parquet", "default": name == names[0]}
            for name in names
        ],
    }
    stored = manifest.parents[3] / "cards" / f"{about['source']}.json"
    found = cards.read(stored) if stored.is_file() else []
    said = [card.sentence() for card in found if card.digest == sha256(manifest)] or [
        f"{known['generator']}: the state after {known['sweeps']} sweeps; R-hat "
        f"{known['rhat']:.2f} and {known['effective']:.0f} effective samples; {known['verdict']}."
    ]
    settings = {key: value for key, value in about.items() if key != "rows"}
    settings |= {"vocabulary": started.vocabulary, "length": started.length}
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# {head['pretty_name']}\n\n"
        f"Sequences that a network has made up after it learned `{about['source']}`: they keep its "
        f"interactions between tokens up to the order of the network, and no others. {said[0]}\n\n"
        "Each file holds the chains, one a row, after so many sweeps, `starts` what they started "
        f"from. The text learned: {origin}.\n\n"
        f'```python\nload_dataset("this folder", "{names[0]}", split="train")\n```\n\n'
        "Scores and samplers are those of Rende, Gerace, Laio and Goldt (arXiv 2410.19637), at "
        f"temperature 1; made with `manybody` by these settings:\n\n"
        f"```yaml\n{yaml.safe_dump(settings)}```\n"
    )


def _origin(about: dict) -> tuple[list[str] | str | None, str]:
    """The licence as huggingface.co names it, and in words where sequences come from."""
    add = "the licence is not known here, add it before you share"
    if "made" not in about:
        if about.get("alphabet") is not None:
            return "unknown", "; ".join(["an alignment", *about.get("said", []), add])
        said = f"samples of a known distribution, {about.get('parameters', about.get('source'))}"
        return None, f"{said}; no text"
    corpus = about["made"]["documents"]["corpus"]
    kind = corpus["kind"]
    if kind in REPOSITORIES:
        link = f"[{REPOSITORIES[kind]}](https://huggingface.co/datasets/{REPOSITORIES[kind]})"
        return LICENCES[kind], f"{link} at {corpus['revision']}, {' and '.join(LICENCES[kind])}"
    if kind == "pydocs":
        return (
            "other",
            f"docstrings of {', '.join(corpus['packages'])}, each under the licence of its package",
        )
    return "unknown", f"files of a user; {add}"
