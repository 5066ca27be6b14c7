"""Key by key, what differs between two mappings such as two states of a config."""

from collections.abc import Iterator
from typing import Any


def differences(
    before: dict, now: dict, absent: Any = None, path: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Paths of the keys whose values differ, in their order, each with both values, `absent` for
    none. A mapping that only one of the two has is one row."""
    for key in dict.fromkeys([*before, *now]):
        values = [part.get(key, absent) for part in (before, now)]
        if all(isinstance(value, dict) for value in values):
            yield from differences(*values, absent, f"{path}{key}.")
        elif values[0] != values[1]:
            yield (f"{path}{key}", *values)
