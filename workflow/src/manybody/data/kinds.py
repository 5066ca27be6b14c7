"""The registry of sources: kinds of entries of the config's block `sources`.

A kind is two modules and a line here:

    options/{kind}.py   `Options`: its keys in the config, and what others ask of it (pydantic)
    {kind}.py           what makes its sequences (numpy, numba), named here and imported by name

What others may ask is said in `options.SourceOptions`. A kind whose sequences are drawn exactly has
in its module `make(source, name, given, out)`, which the rule `draw_sequences` calls. No stage's
script imports this module, so that a new kind changes the digest of no other.
"""

from importlib import import_module

# kind -> the module that makes its sequences
KINDS = {
    "text": "manybody.data.tokenizer",
    "many-body": "manybody.data.many_body",
    "potts": "manybody.data.potts",
    "alignment": "manybody.data.alignment",
    "tree": "manybody.data.tree",
    "cut": "manybody.data.cut",
    "n-gram-clone": "manybody.data.n_gram_clone",
    "noisy": "manybody.data.noisy",
}


def options(kind: str):
    """The type of a kind's keys in the config, an `options.SourceOptions`."""
    return import_module(f"manybody.data.options.{kind.replace('-', '_')}").Options
