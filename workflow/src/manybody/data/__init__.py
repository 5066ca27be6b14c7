"""Sources of `Sequences`, one module each."""

from collections.abc import Iterable
from pathlib import Path

from manybody.io.refusal import Refusal


class SourceError(Refusal):
    """A corpus cannot be read as the config says: names the file or key, and the way out."""


SPLITS = ("train", "validation", "test")
SHARES = {"train": 0.9, "validation": 0.05, "test": 0.05}  # of a corpus that gives none
STATES = 2**24  # of a Hamiltonian, at most so many are enumerated, in less than 1 GiB
RUN = 8  # tokens in a row that count as copied from the training text
COPIED = 0.05  # share of them there above which a clone is said to be a copy
PACKED = 200  # largest ratio of unpacked to packed size that is accepted; 5 to 60 are common
SMALL = 2**26  # bytes of unpacked data up to which any ratio is accepted


def refuse_bomb(path: Path, packed: int, unpacked: int) -> None:
    """`SourceError` for data that would fill the memory when unpacked; sizes in bytes."""
    if unpacked > max(SMALL, PACKED * packed):
        raise SourceError(
            f"{path} grows from {packed} bytes to {unpacked} or more when it is unpacked, expected "
            f"at most {PACKED} times as many. Unpack it yourself if it is what you want"
        )


class Unchanged:
    """Files of the user, which must not change between now and the call of `check`."""

    def __init__(self, files: Iterable[Path] = ()):
        self._states: dict[Path, tuple | None] = {}
        self.add(files)

    def add(self, files: Iterable[Path]) -> None:
        self._states |= {path: _state(path) for path in files}

    def check(self) -> None:
        """`SourceError` names the first file that has changed, gone or been replaced."""
        for path, before in self._states.items():
            if _state(path) != before:
                raise SourceError(
                    f"{path} changed while it was read, so what was read may be part old and part "
                    "new. Nothing was made of it: let it be, and run the same command again"
                )


def _state(path: Path) -> tuple | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
