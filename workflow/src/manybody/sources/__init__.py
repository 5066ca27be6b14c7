"""What makes `Sequences`; each source is one module."""

from pathlib import Path


class SourceError(ValueError):
    """A corpus cannot be read as the config says: names the file or key, and the way out."""


PACKED = 200  # times that text is smaller when it is packed, at most; 5 to 60 are common
SMALL = 2**26  # bytes up to which it does not matter


def refuse_bomb(path: Path, packed: int, unpacked: int) -> None:
    """`SourceError` for data that would fill the memory when unpacked; sizes in bytes."""
    if unpacked > max(SMALL, PACKED * packed):
        raise SourceError(
            f"{path} grows from {packed} bytes to {unpacked} or more when it is unpacked, expected "
            f"at most {PACKED} times as many. Unpack it yourself if it is what you want"
        )
