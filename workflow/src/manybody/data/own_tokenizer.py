"""A tokenizer that comes with a model: its tokenizer.json, and what its special tokens are.

Only two JSON files are read, so that no code of the model's author runs.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from manybody.data import SourceError, download
from manybody.data.tokenizer import save
from manybody.io.atomic import read_json, to_json, write_json
from manybody.io.lease import lease

FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
ROLES = ("eos_token", "sep_token")  # of tokens that may end a document, in this order


def take(folder: str | Path, origin: str, out: str | Path, special: str | Path) -> None:
    """Writes the tokenizer of a folder in `save_pretrained` layout to `out`, and to `special` what
    `describe` says of it. `origin` is what it is called where it is refused, by a `SourceError`."""
    path = Path(folder) / FILES[0]
    if not path.is_file():
        raise SourceError(
            f"found {origin}, which has no tokenizer.json; expected one; write it, where you trust "
            f"the files: transformers.AutoTokenizer.from_pretrained(...).save_pretrained(folder), "
            f"and name that folder",
            "tokenizer",
        )
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises Exception itself
        raise SourceError(
            f"found {origin}, whose tokenizer.json is no tokenizer ({error}); expected one; save "
            f"it again",
            "tokenizer",
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    write_json(special, describe(tokenizer, _roles(Path(folder))))
    save(tokenizer, out)


def describe(tokenizer: Tokenizer, roles: dict[str, str]) -> dict[str, Any]:
    """|V| and the special tokens of a tokenizer; `roles`: the text of `mask_token` and the like.

    `special` are the numbers of tokens that are no text. `before` and `after` are those that the
    tokenizer puts around a sequence, `mask` and `end` (of a document) one number each, or None.
    `tokens` is the sha256 of all tokens and their numbers.
    """
    numbers = tokenizer.get_vocab(with_added_tokens=True)
    added = tokenizer.get_added_tokens_decoder()
    special = {number for number, token in added.items() if token.special}
    special |= {numbers[text] for text in roles.values() if text in numbers}
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    whole = tokenizer.encode("a", add_special_tokens=True).ids
    start = next(
        (k for k in range(len(whole)) if whole[k : k + len(bare)] == bare and bare), len(whole)
    )
    ends = [numbers[roles[role]] for role in ROLES if roles.get(role) in numbers]
    return {
        "vocabulary": max(numbers.values()) + 1,
        "special": sorted(special),
        "before": whole[:start],
        "after": whole[start + len(bare) :],
        "mask": numbers.get(roles.get("mask_token")),
        "end": ends[0] if ends else None,
        "tokens": hashlib.sha256(to_json(numbers).encode()).hexdigest(),
    }


def described(folder: str | Path) -> dict[str, Any] | None:
    """The description (`describe`) of the tokenizer in a folder; None without a tokenizer.json."""
    path = Path(folder) / FILES[0]
    if not path.is_file():
        return None
    return describe(Tokenizer.from_file(str(path)), _roles(Path(folder)))


def _roles(folder: Path) -> dict[str, str]:
    """The text of each token with a role, such as `mask_token`."""
    found: dict[str, str] = {}
    for name in reversed(FILES[1:]):
        said = read_json(folder / name) if (folder / name).is_file() else {}
        for role, token in said.items() if isinstance(said, dict) else ():
            text = token.get("content") if isinstance(token, dict) else token
            if role.endswith("_token") and isinstance(text, str):
                found[role] = text
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
        digests = {name: there[name].sha256 for name in FILES if name in there}
        download.take(repository, commit, digests, folder, digests)
        yield folder, f"{repository}@{revision}"
