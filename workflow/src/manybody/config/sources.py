"""The block `sources`: what yields sequences, of the kinds in the registry."""

from functools import reduce
from operator import or_
from typing import Annotated

from pydantic import Field

from manybody.data.kinds import KINDS
from manybody.data.options import SourceOptions

Source = Annotated[reduce(or_, KINDS.values()), Field(discriminator="kind")]


def sized(name: str, config) -> SourceOptions:
    """The source that says |V| and L of the one called `name`: its own, or that it is made from."""
    source = config.sources[name]
    return config.sources[source.made_from] if source.made_from else source
