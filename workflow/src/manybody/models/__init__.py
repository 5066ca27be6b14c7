"""The registry of models. `model.json` (one JSON document) rebuilds any of them.

A plain dict describes a model: `architecture`, `vocabulary` (|V|), `length` (L) and the
architecture's own sizes. An architecture has three parts, so a process imports only what it needs:

    {architecture}/__init__.py   `About`: what the description says of the model (no torch)
    {architecture}/network.py    the model itself (torch), a class of the name `About.network`
    keys.py                      its keys in the config, in a class of the same name (pydantic)

What others may ask is said in `description.About` and in `base.Model`. Packages are imported by
name when asked for, so that a job's numbers depend only on the architecture that it uses.
"""

from importlib import import_module

# architecture -> its package
ARCHITECTURES = {
    "factored": "manybody.models.factored",
    "bert": "manybody.models.bert",
    "gpt": "manybody.models.gpt",
    "energy": "manybody.models.energy",
    "encoder": "manybody.models.encoder",
    "interpolated": "manybody.models.interpolated",
    "pretrained": "manybody.models.pretrained",
}


def build(description: dict):
    """The model that `description` names, with random weights from torch's generator.

    Raises `ValueError` for an architecture that is not in the registry.
    """
    sizes = {key: value for key, value in description.items() if key != "architecture"}
    return network(description)(**sizes)


def network(description: dict):
    """The class of the model that `description` names, a `base.Model`; `ValueError` as `build`."""
    facts = about(description)
    module = import_module(f"{_package(description['architecture'])}.{facts.module}")
    return getattr(module, facts.network)


def about(description: dict):
    """Facts of the model of a `description`, or of a block of the config where they do not depend
    on |V| or L, without torch: a `description.About`. Raises `ValueError` as `build`."""
    return import_module(_package(description["architecture"])).About(description)


def options(architecture: str):
    """The type of an architecture's keys in the config, a `block.Block` (pydantic): those of
    `models: {name}` but for `architecture`, `init_seed` and `training`. `ValueError` as `build`."""
    return getattr(
        import_module("manybody.models.keys"), about({"architecture": architecture}).network
    )


def architectures_with(key: str) -> list[str]:
    """The architectures whose `About` has the attribute `key` set, for a message."""
    said = {name: import_module(package).About for name, package in ARCHITECTURES.items()}
    return [name for name, about in said.items() if getattr(about, key)]


def _package(architecture: str) -> str:
    if architecture not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise ValueError(f"architecture {architecture!r} is unknown; known are {known}")
    return ARCHITECTURES[architecture]
