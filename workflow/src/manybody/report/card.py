"""A clone as a data set that others can read without this package: Parquet, a tokenizer, a card.

The card is the README.md that huggingface.co shows; the YAML at its head tells the library
`datasets` which files there are.
"""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from manybody.data.published import REPOSITORIES
from manybody.data.tokenizer import load
from manybody.io import cards
from manybody.io.atomic import ArtifactError, atomic, sha256
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences, Symbols
from manybody.report.chains import known
from manybody.report.clone_cards import sentence
from manybody.sampling.combinations import TEMPERED

SCORES = {
    "raw": "E(s) = -sum_i h_i(s_i), h_i the logits of position i where it alone is masked",
    "norm": "E(s) = -sum_i h_i(s_i), h_i the log-probabilities of position i, it alone masked",
    "reference": "E*_mu, which counts each interaction once, mu the unigram law of the training "
    "tokens",
    "brook": "the mean over frozen Brook paths from validation sequences, which counts each "
    "interaction once",
}
SAMPLERS = {
    "mh": "Metropolis-Hastings, proposals by the masked logits",
    "heat-bath": "heat bath, each position drawn from the energy's own conditional",
    "gibbs": "each position drawn from the model's masked conditional, whatever the energy",
    "ancestral": "token by token from the next-token law; the score is log p, given the first",
}
TEMPERATURE = "1: a sequence s is drawn with probability proportional to exp(-E(s))"
# As huggingface.co names them, of the repositories that texts are downloaded from.
LICENCES = {"tinystories": ["cdla-sharing-1.0"], "wikitext103": ["cc-by-sa-3.0", "gfdl"]}


def save(manifest: str | Path, folder: str | Path, sequences: str | Path) -> None:
    """Writes the clone of a manifest to `folder`; what is there under the same names is replaced.

    `sweep-{n}.parquet` and `starts.parquet` have the columns `tokens` and, where tokens can be
    read, `text`. sequences: the folder of the clone's source; `ArtifactError` where it no longer
    holds what the chains started from.
    """
    manifest, folder, sequences = Path(manifest), Path(folder), Path(sequences)
    listed = Manifest.read(manifest, "clones")
    about = listed.about
    started = Sequences.open(sequences / f"{about['split']}.parquet")
    words, tokenizer = Symbols(about["alphabet"]), sequences / "tokenizer.json"
    if started.sha256 != about["sequences"]:
        raise _changed(manifest, started.path)
    if about["tokenizer"] is not None:
        words = load(tokenizer)
        if sha256(tokenizer) != about["tokenizer"]:
            raise _changed(manifest, tokenizer)
    readable = about["alphabet"] is not None or about["tokenizer"] is not None
    saved = [f"sweep-{sweep}" for sweep in reversed(about["sweeps"])]
    folder.mkdir(parents=True, exist_ok=True)
    for name in [*saved, "starts"]:
        tokens = Sequences.open(listed.file(f"{name}.parquet")).tokens
        width = pa.list_(pa.from_numpy_dtype(tokens.dtype), tokens.shape[1])
        columns = {"tokens": pa.FixedSizeListArray.from_arrays(tokens.ravel(), type=width)}
        if readable:
            columns["text"] = pa.array([words.decode(row) for row in tokens.tolist()])
        with atomic(folder / f"{name}.parquet") as temporary:
            pq.write_table(pa.table(columns), temporary)
    if about["tokenizer"] is not None:
        with atomic(folder / tokenizer.name) as temporary:
            shutil.copyfile(tokenizer, temporary)
    with atomic(folder / "README.md") as temporary:
        temporary.write_text(_card(manifest, about, started, saved), encoding="utf-8")


def _changed(manifest: Path, path: Path) -> ArtifactError:
    return ArtifactError(
        f"{path} is not the file that the clone {manifest} was drawn with: run snakemake with the "
        "clone's manifest as its target, or name the folder of its own source"
    )


def _card(manifest: Path, about: dict, started: Sequences, saved: list[str]) -> str:
    """The text of README.md; `saved` are the files of sweeps, the last sweep first."""
    (chains,) = known([manifest])
    licence, origin = _origin(started.about)
    head = {
        "pretty_name": f"{chains['name']}, a clone of {about['source']}",
        **({"license": licence} if licence else {}),
        "tags": ["synthetic", "markov-chain-monte-carlo", "language-model", "manybody"],
        "configs": [
            {"config_name": name, "data_files": f"{name}.parquet"}
            | ({"default": True} if name == saved[0] else {})
            for name in [*saved, "starts"]
        ],
    }
    sampler = about.get("sampler", "mh")
    made, order = about["generator"], about["generator"]["order"]
    sizes = ", ".join(f"{key} {value}" for key, value in sorted(made["description"].items()))
    facts = {
        "Generator": f"{chains['generator']} ({sizes}), model {made['model']} of seed "
        f"{made['seed']} at step {made['step']}{' (the last)' if made['last'] else ''}",
        "Order of interaction": order if order is not None else "bounded by L alone",
        "Sampler": SAMPLERS[sampler],
        "Score": f"{about['energy']}: {SCORES[about['energy']]}",
        **({"Temperature": TEMPERATURE} if sampler in TEMPERED else {}),
        "Chains": f"{about['chains']}, one a row; start: {chains['start']}; seed "
        f"{about['chain_seed']}; positions {about['order']}",
        "Sweeps": f"{', '.join(map(str, about['sweeps']))}; a sweep visits each of the L positions",
        f"After {chains['sweeps']} sweeps": f"{chains['accepted']:.0%} of the proposals of another "
        f"token accepted, {chains['kept']:.0%} of the positions as at the start, split R-hat of "
        f"the score {chains['rhat']:.3f}, effective samples {chains['effective']:.0f}: "
        f"{chains['verdict']}",
        "Tokens": f"whole numbers below |V| = {started.vocabulary}, L = {started.length} a row"
        + ("; `tokenizer.json` is their byte-level BPE" if about["tokenizer"] else ""),
        "Source": origin,
        **_measured(manifest, about),
    }
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# {head['pretty_name']}\n\n"
        f"Sequences that a network has made up after it learned `{about['source']}`: they keep its "
        "interactions between tokens up to the order of the network, and no others. `starts` holds "
        "what the chains started from, row by row.\n\n"
        f'```python\nload_dataset("this folder", "{saved[0]}", split="train")\n```\n\n'
        + "".join(f"- **{name}**: {value}\n" for name, value in facts.items())
        + "\nMade with `manybody` by the method of Rende, Gerace, Laio and Goldt "
        "(arXiv 2410.19637).\n"
    )


def _measured(manifest: Path, about: dict) -> dict[str, str]:
    """The clone's card, where it lies beside the clones of its run and is of this clone."""
    stored = manifest.parents[3] / "cards" / f"{about['source']}.json"
    given = cards.read(stored) if stored.is_file() else []
    mine = [card for card in given if card.digest == sha256(manifest)]
    return {"Card": sentence(mine[0])} if mine else {}


def _origin(about: dict) -> tuple[list[str] | str | None, str]:
    """The licence as huggingface.co names it, and in words where sequences come from."""
    if "made" not in about:
        if about.get("alphabet") is not None:
            return "unknown", "an alignment; its licence is not known here: add it before you share"
        return None, f"samples of a Hamiltonian, {about['parameters']}; no text"
    corpus = about["made"]["documents"]["corpus"]
    kind = corpus["kind"]
    if kind in REPOSITORIES:
        return LICENCES[kind], (
            f"[{REPOSITORIES[kind]}](https://huggingface.co/datasets/{REPOSITORIES[kind]}) at "
            f"{corpus['revision']}, {' and '.join(LICENCES[kind])}"
        )
    if kind == "pydocs":
        names = ", ".join(corpus["packages"])
        return "other", f"docstrings of {names}, each under the licence of its package"
    return "unknown", "files of a user; their licence is not known here: add it before you share"
