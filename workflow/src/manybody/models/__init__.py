"""The registry of models. `model.json` (one JSON document) rebuilds any of them.

A model is described by a plain dict: `architecture`, `vocabulary` (|V|), `length` (L) and the
architecture's own sizes. Modules are imported by name when asked for, so that a job's numbers
depend only on the architecture that it uses.
"""

from importlib import import_module

# architecture -> (module, class)
ARCHITECTURES = {
    "factored": ("manybody.models.factored", "Factored"),
    "bert": ("manybody.models.bert", "Bert"),
    "gpt": ("manybody.models.gpt", "Gpt"),
    "energy": ("manybody.models.energy", "Energy"),
    "encoder": ("manybody.models.encoder", "Encoder"),
    "interpolated": ("manybody.models.interpolated", "Interpolated"),
}


def build(description: dict):
    """The model that `description` names, with random weights from torch's generator.

    Raises `ValueError` for an architecture that is not in the registry.
    """
    sizes = dict(description)
    architecture = sizes.pop("architecture")
    if architecture not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise ValueError(f"architecture {architecture!r} is unknown; known are {known}")
    module, name = ARCHITECTURES[architecture]
    return getattr(import_module(module), name)(**sizes)
