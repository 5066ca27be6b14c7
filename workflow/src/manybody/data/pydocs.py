"""Real text with no download: the English prose in the docstrings of installed packages.

Files are read with `ast` and never imported. Paragraphs that are mostly words are kept,
deduplicated, sorted and shuffled with a seed. Each package's prose has a sha256 in the config: with
the same pure-source packages the corpus has the same bytes anywhere.

`python -m manybody.data.pydocs sympy networkx` prints the lines for the config.
"""

import ast
import hashlib
import re
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from importlib import metadata
from itertools import groupby

import numpy as np

from manybody.data import SourceError

WORD = re.compile(r"""[("'`]{0,2}[A-Za-z]+(?:['-][A-Za-z]+)*[`"')]{0,2}[.,;:!?]?""")
LEAST_WORDS = 8
SHARE_OF_WORDS = 0.8
LEFT_OUT = {"test", "tests", "testing"}  # folders


def modules(packages: dict[str, str | None]) -> dict[str, str]:
    """The distinct paragraphs of `packages`, {distribution: expected sha256 of its prose, or None},
    each with its first module by name, {distribution}/{file}.

    `SourceError` names a package that is not installed or whose prose is not the expected one.
    """
    found: dict[str, str] = {}
    for name, expected in packages.items():
        located = located_prose(name)
        paragraphs = sorted(located)
        if expected is not None and digest(paragraphs) != expected:
            raise SourceError(
                f"package {name} {metadata.version(name)} has prose with sha256 "
                f"{digest(paragraphs)}, the config expects {expected}. Install the locked version "
                "(make env), or, to use this one, write the new sha256 into the config: "
                f"python -m manybody.data.pydocs {' '.join(packages)}"
            )
        for paragraph, file in located.items():
            found[paragraph] = min(f"{name}/{file}", found.get(paragraph, f"{name}/{file}"))
    return found


def shuffled(found: Iterable[str], seed: int) -> list[str]:
    """Paragraphs in an order that depends on the paragraphs and `seed` only."""
    ordered = sorted(found)
    return [ordered[i] for i in np.random.default_rng(seed).permutation(len(ordered))]


def located_prose(name: str) -> dict[str, str]:
    """The distinct paragraphs of prose of a distribution, each with its first file by name."""
    try:
        files = metadata.distribution(name).files or []
    except metadata.PackageNotFoundError as error:
        raise SourceError(
            f"package {name}, named in the config's corpus, is not installed here: "
            "install the locked environment (make env) or take it off the list"
        ) from error
    sources = [f for f in files if f.suffix == ".py" and not LEFT_OUT.union([".."]) & set(f.parts)]
    found: dict[str, str] = {}
    for source in sorted(sources, key=str):
        path = source.locate()
        try:
            for docstring in docstrings(path.read_bytes()):
                for paragraph in filter(is_prose, paragraphs(docstring)):
                    found.setdefault(paragraph, str(source))
        except (OSError, SyntaxError, ValueError) as error:
            raise SourceError(f"{path} of package {name} cannot be read: {error}") from error
    return found


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings in Python source code, as they are written in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes, by newer Pythons
        waiting = deque([ast.parse(source)])
    while waiting:
        node = waiting.popleft()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node, clean=False)
            if found is not None:
                yield found
        # Not `ast.walk`, which takes most of its time for expressions: they hold no scopes.
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            waiting.extend(getattr(node, part, ()))


def paragraphs(docstring: str) -> Iterator[str]:
    """Runs of lines with one indentation, each as one line of words with single spaces.

    Indentation is removed here, as `inspect` and `ast` differ from one Python to the next.
    """
    first, *rest = docstring.expandtabs(8).split("\n")
    margin = min((_indentation(line) for line in rest if line.strip()), default=0)
    lines = [first.strip(), *(line[margin:] for line in rest)]
    for (blank, _), run in groupby(lines, lambda line: (not line.strip(), _indentation(line))):
        if not blank:
            yield " ".join(" ".join(run).split())


def is_prose(paragraph: str) -> bool:
    """True if a paragraph is English sentences: a capital, mostly words, a full stop."""
    tokens = paragraph.split()
    words = sum(WORD.fullmatch(token) is not None for token in tokens)
    return (
        len(tokens) >= LEAST_WORDS
        and "A" <= paragraph[0] <= "Z"
        and paragraph[-1] in ".:!?"
        and words >= SHARE_OF_WORDS * len(tokens)
    )


def digest(paragraphs: Iterable[str]) -> str:
    """sha256 of paragraphs, each followed by a newline, as UTF-8."""
    return hashlib.sha256("".join(f"{one}\n" for one in paragraphs).encode()).hexdigest()


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def main(names: list[str]) -> None:
    """Prints the config's `packages` and `sha256` (for seed 0) of the distributions `names`."""
    print("    seed: 0\n    packages:")
    found: set[str] = set()
    for name in names:
        paragraphs = sorted(located_prose(name))
        found.update(paragraphs)
        print(f"      {name}: {digest(paragraphs)}", flush=True)
    ordered = shuffled(found, 0)
    print(f"    sha256: {digest(ordered)}")
    size = sum(len(paragraph.encode()) + 1 for paragraph in ordered)
    print(f"    # {len(ordered)} paragraphs, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
