"""Which orders of interaction between tokens has a sequence model learned, and when?

The package under the `manybody` pipeline. It imports nothing of Snakemake: every function can be
called from a notebook or a plain script. `import manybody as mb` has those of `manybody.public`,
which `help` and docs/python.md describe.

Docstrings cite the specifications in docs/science: "(potts, section 2)" is section 2 of
docs/science/potts.md; many-body, nlp-clones, controls and multi-index are the other pages. A bare
"section 5" of a module about multi-index models is that of docs/science/multi-index.md.
"""


def __getattr__(name: str):
    """A function of `manybody.public`, which is imported when the first one is asked for."""
    from importlib import import_module
    from importlib.util import find_spec

    # `from manybody import models` asks here before it looks for the room of that name.
    if name.startswith("_") or find_spec(f"manybody.{name}"):
        raise AttributeError(f"module 'manybody' has no attribute {name!r}")
    public = import_module("manybody.public")
    if name not in public.__all__:
        known = ", ".join(public.__all__)
        raise AttributeError(f"module 'manybody' has no attribute {name!r}; it has {known}")
    return getattr(public, name)


def __dir__() -> list[str]:
    from importlib import import_module

    return [*globals(), *import_module("manybody.public").__all__]
