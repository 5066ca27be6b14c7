"""The block `sources`: what yields sequences, each kind as its module declares it."""

from functools import reduce
from operator import or_
from typing import Annotated

from pydantic import Field, create_model

from manybody.data import kinds
from manybody.data.options import SourceOptions


def _entry(kind: str) -> type[SourceOptions]:
    """The options of a kind, under the name that the schema and docs/config.md give them."""
    options = kinds.options(kind)
    name = f"{kind.title().replace('-', '')}Source"
    return create_model(name, __base__=options, __doc__=options.__doc__)


Source = Annotated[reduce(or_, map(_entry, kinds.KINDS)), Field(discriminator="kind")]


def sized(name: str, config) -> SourceOptions:
    """The source that says |V| and L of the one called `name`: its own, or that it is made from."""
    source = config.sources[name]
    return config.sources[source.made_from] if source.made_from else source
