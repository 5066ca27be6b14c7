"""A tokenizer that comes with a model: its tokenizer.json, and what its special tokens are.

Only JSON and a list of tokens are read, so that no code of the model's author runs.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from manybody.data import SourceError, download
from manybody.data.tokenizer import load, save
from manybody.io.atomic import read_json, to_json, write_json
from manybody.io.lease import lease

FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
LIST, LETTERS = "vocab.txt", re.compile(r"[A-Z*.-]+|[a-z]|<.*>|\[.*\]")
ESM = "EsmTokenizer"  # the class of transformers whose vocab.txt is always such a list
ROLES = ("eos_token", "sep_token")  # of tokens that may end a document, in this order


def take(folder: str | Path, origin: str, out: str | Path, special: str | Path) -> None:
    """Writes the tokenizer of a folder in `save_pretrained` layout to `out`, and to `special` what
    `describe` says of it. `origin` is what it is called where it is refused, by a `SourceError`."""
    tokenizer = read(folder, origin)
    write_json(special, describe(tokenizer, _roles(Path(folder))))
    save(tokenizer, out)


def describe(tokenizer: Tokenizer, roles: dict[str, str | None]) -> dict[str, Any]:
    """|V| and the special tokens of a tokenizer; `roles`: the text of `mask_token` and the like.

    `special` are the numbers of tokens that are no text. `before` and `after` are those that the
    tokenizer puts around a sequence, `mask` and `end` (of a document) one number each, or None; a
    token called [MASK] or <mask> needs no role. `tokens` is the sha256 of all and their numbers.
    """
    numbers = tokenizer.get_vocab(with_added_tokens=True)
    special = {n for n, one in tokenizer.get_added_tokens_decoder().items() if one.special}
    special |= {numbers[text] for text in roles.values() if text in numbers}
    # Of a letter that it does not have, a tokenizer without an unknown token makes nothing.
    text = min(
        (one for one, number in numbers.items() if number not in special),
        key=lambda one: (one != "a", not one.isalpha(), len(one), one),
        default="a",
    )
    bare, whole = (tokenizer.encode(text, add_special_tokens=more).ids for more in (False, True))
    starts = (k for k in range(len(whole)) if whole[k : k + len(bare)] == bare and bare)
    start = next(starts, len(whole))
    return {
        "vocabulary": max(numbers.values()) + 1,
        "special": sorted(special),
        "before": whole[:start],
        "after": whole[start + len(bare) :],
        "mask": numbers.get(roles.get("mask_token"), numbers.get("[MASK]", numbers.get("<mask>"))),
        "end": next((numbers[roles[one]] for one in ROLES if roles.get(one) in numbers), None),
        "tokens": hashlib.sha256(to_json(numbers).encode()).hexdigest(),
    }


def described(folder: str | Path) -> dict[str, Any] | None:
    """The description (`describe`) of the tokenizer in a folder; None without one."""
    tokenizer = _read(Path(folder))
    return None if tokenizer is None else describe(tokenizer, _roles(Path(folder)))


def read(folder: str | Path, origin: str) -> Tokenizer:
    """The tokenizer in a folder; `SourceError` without one, where the folder is called `origin`."""
    tokenizer = _read(Path(folder))
    if tokenizer is None:
        ways = [
            f"write it, where you trust the files (sentencepiece is needed for a tokenizer.model): "
            f"transformers.AutoTokenizer.from_pretrained({origin!r}).save_pretrained({origin!r}); "
            f"a tokenizer that writes none, as BioGPT's, cannot be read",
            f"save that of the model from which training started: transformers.AutoTokenizer"
            f".from_pretrained(BASE).save_pretrained({origin!r})",
        ]
        made = any(any(Path(folder).glob(name)) for name in ("vocab*", "merges.txt", "*.model"))
        way = f"name {Path(origin).parent}, which has one, if it is of this model"
        raise SourceError(
            f"found {origin}, which has no tokenizer.json; expected one beside the weights, or "
            f"above them; {way if described(Path(origin).parent) else ways[not made]}",
            "tokenizer",
        )
    return tokenizer


def _read(folder: Path) -> Tokenizer | None:
    """The tokenizer in a folder, of its tokenizer.json or its list of letters; None without. It
    neither cuts nor fills up what it reads, nor leaves out merges by chance, as in training."""
    path = folder / FILES[0]
    if not path.is_file():
        return _of_letters(folder / LIST, _roles(folder))
    way = "expected a tokenizer.json of the library tokenizers; save or copy it again"
    tokenizer = load(path, way)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if isinstance(tokenizer.model, models.BPE):
        tokenizer.model.dropout = None
    return tokenizer


def _of_letters(path: Path, roles: dict[str, str | None]) -> Tokenizer | None:
    """The tokenizer of a list of letters, one a line, as transformers' EsmTokenizer reads it: the
    longest token first, nothing for white space, and around a sequence what the list has of <cls>
    and <eos>, or [CLS] and [SEP], but for what its config has null. None for (pieces of) words."""
    given = path.read_text(encoding="utf-8", errors="replace").split() if path.is_file() else []
    marks = ("[UNK]", "[CLS]", "[SEP]") if "[CLS]" in given else ("<unk>", "<cls>", "<eos>")
    unknown, first = roles.get("unk_token") or marks[0], roles.get("cls_token", marks[1])
    last = roles.get("sep_token") or roles.get("eos_token", marks[2])
    letters = roles.get("tokenizer_class") == ESM or all(map(LETTERS.fullmatch, given))
    if unknown not in given or not letters:
        return None
    made = Tokenizer(models.WordLevel({t: n for n, t in enumerate(given)}, unknown))
    made.pre_tokenizer, made.decoder = pre_tokenizers.WhitespaceSplit(), decoders.Fuse()
    # Words of several letters, as DNABERT's, stand between white space alone.
    words = [unknown == "[UNK]" and len(token) > 1 and token.isalpha() for token in given]
    made.add_tokens(
        [
            AddedToken(token, normalized=False, special=token[0] in "<[", single_word=word)
            for token, word in zip(given, words, strict=True)
        ]
    )
    around = [first] * (first in given) + ["$A"] + [last] * (last in given)
    named = [(token, given.index(token)) for token in around if token in given]
    made.post_processor = processors.TemplateProcessing(single=around, special_tokens=named)
    return made


def _roles(folder: Path) -> dict[str, str | None]:
    """Text of each token with a role, as `mask_token`, None if null, and the `tokenizer_class`."""
    found: dict[str, str | None] = {}
    for name in reversed(FILES[1:]):
        said = read_json(folder / name) if (folder / name).is_file() else {}
        for role, token in said.items() if isinstance(said, dict) else ():
            text = token.get("content") if isinstance(token, dict) else token
            if role.endswith(("_token", "_class")) and isinstance(text, str | None):
                found[role] = text or found.get(role)
    return found


@contextmanager
def fetched(given: str | dict, downloads: Path) -> Iterator[tuple[Path, str]]:
    """The folder of a source's key `tokenizer` and what it is called, downloaded from the hub if it
    names a repository. The commit of a branch is that of the first download."""
    if isinstance(given, str):
        yield Path(given).expanduser(), given
        return
    repository, revision = given["hub"], given.get("revision", "main")
    place = downloads / repository.replace("/", "--")
    with lease(place):
        known = place / f"tokenizer-{revision}.json"
        if known.is_file():
            commit = read_json(known)["commit"]
        else:
            commit = download.references(repository).get(revision, revision)
            write_json(known, {"commit": commit})
        there = download.listing(repository, commit)
        folder = place / f"tokenizer-{commit}"
        names = FILES if FILES[0] in there else (*FILES, LIST)
        digests = {name: there[name].sha256 for name in names if name in there}
        download.take(repository, commit, digests, folder, digests)
        yield folder, f"{repository}@{revision}"
