"""The block `families`: alignments that a pair model is fitted to, many in one list."""

from manybody.data.kinds import Alphabet, Format
from manybody.io.options import Block, Count, Text, key, number


class Families(Block):
    """Alignments of one list, each fitted on its own; chunks of them are a job."""

    listed: Text = key(
        "A text file with a line for each family: the file of its alignment and, behind tabs, a "
        "structure or a list of its contacts, a table of measured effects, and sequences to score. "
        "Each of the three may be left out. A family is called as its file, without the ending."
    )
    chunk: Count = key("Families a job.", 50)
    format: Format = key("Of all files; found in each by default.", None)
    alphabet: Alphabet = key("Of all files; found in each by default.", None)
    occupancy: number(ge=0, le=1) = key(
        "Share of the sequences with a residue below which a column is left out.", 0.7
    )
    coverage: number(ge=0, le=1) = key(
        "Share of the first record's columns below which a sequence is left out.", 0.5
    )
    identity: number(gt=0, le=1) = key(
        "Share of equal columns, gaps included, from which sequences share their weight.", 0.8
    )
    separation: Count = key(
        "Columns that a pair is apart at least; 6 for proteins and 4 for RNA and DNA by default.",
        None,
    )
    held_out: bool = key(
        "true: a second fit, to four fifths, says what couplings are worth for the others.", False
    )
    models: bool = key("true: the model of each family is kept too.", False)
    formats: bool = key(
        "true: models and scores also in the formats of adabmDCA, CCMpred and EVcouplings.", False
    )
    generate: Count = key(
        "New sequences of each family, from Boltzmann learning (minutes each); none by default.",
        None,
    )

    @property
    def options(self) -> dict:
        """The options of `measure.family.fit_many`."""
        keys = ("alphabet", "occupancy", "coverage", "identity")
        reading = {key: getattr(self, key) for key in keys} | {"form": self.format}
        own = {key: getattr(self, key) for key in ("separation", "held_out", "formats")}
        return own | dict(models=self.models or self.generate is not None, reading=reading)
