"""Saturation of losses, which is in `manybody.papers.saturation`."""

from manybody.papers.saturation import (
    BOOTSTRAPS,
    SATURATION,
    Kind,
    log_times,
    read_kinds,
    saturation,
    saturations,
)

__all__ = [
    "BOOTSTRAPS",
    "SATURATION",
    "Kind",
    "log_times",
    "read_kinds",
    "saturation",
    "saturations",
]
