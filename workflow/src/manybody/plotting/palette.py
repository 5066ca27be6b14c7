"""The colours of generators and clones: blue to red from low to high order."""

from manybody import models
from manybody.plotting import style


def colour(document: dict) -> str:
    """Blue to red from low to high order, grey for original text and for other sources."""
    if "generator" not in document:
        return style.ORIGINAL
    return generator_colour(document["generator"]["description"])


def generator_colour(description: dict) -> str:
    """The colour of a model: by its depth if that sets its order."""
    depth = models.about(description).depth
    return style.UNBOUNDED if depth is None else style.ORDERS.get(depth, style.ORDERS[6])
