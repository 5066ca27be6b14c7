"""Sequences of any length in the columns of a family, by its profile hidden Markov model (HMMER).

pyhmmer is needed here alone, and imported where it is used.
"""

import re

from manybody.data.alignment import INSERTIONS
from manybody.io.refusal import Refusal

ENDS = 20  # columns at an end, at most, that residues beyond the local alignment fill
FLANK = re.compile(r"[-.a-z]*")  # of an aligned row, before its first residue in a column
INSTALL = "python -m pip install 'pyhmmer>=0.12.3,<1'"


def align(names: list[str], letters: list[str], family: list[str], kind: str) -> list[str]:
    """The residues of each sequence in the columns of the family, `-` where it has none: rows of
    L letters. What lies between columns or beyond them is dropped.

    letters: of the alphabet `kind`, gaps do not count; family: its aligned rows, each column a
    state of the profile. HMMER aligns the part that is alike; residues beyond it fill the columns
    left at an end, if the sequence ends there as well. `Refusal` says how to install pyhmmer.
    """
    try:
        from pyhmmer import easel, hmmer, plan7
    except ImportError as error:
        raise Refusal(
            f"{len(names)} sequences, the first of them {names[0]}, are to be aligned to the "
            f"family, for which pyhmmer is needed: {INSTALL}; or give them aligned to its columns"
        ) from error
    alphabet = {"rna": easel.Alphabet.rna, "dna": easel.Alphabet.dna}.get(
        kind, easel.Alphabet.amino
    )()
    rows = [easel.TextSequence(name=f"{n}", sequence=row) for n, row in enumerate(family)]
    alignment = easel.TextMSA(name="family", sequences=rows)
    alignment.reference = "x" * len(family[0])
    builder = plan7.Builder(alphabet, architecture="hand")
    profile, _, _ = builder.build_msa(alignment.digitize(alphabet), plan7.Background(alphabet))
    plain = [re.sub(r"[-.~*]", "", row).replace("?", "X") for row in letters]
    numbered = (easel.TextSequence(name=f"{n}", sequence=row) for n, row in enumerate(plain))
    sequences = [one.digitize(alphabet) for one in numbered]
    found = hmmer.hmmalign(profile, sequences, all_consensus_cols=True, cpus=1)
    return [_filled(_filled(row)[::-1])[::-1].translate(INSERTIONS) for row in found.alignment]


def _filled(row: str) -> str:
    """An aligned row, with the residues before its first column in the columns that are free."""
    flank = FLANK.match(row)[0]
    free, before = flank.count("-"), re.sub("[-.]", "", flank).upper()
    if not len(before) <= free <= ENDS:
        return row  # of a longer sequence, whose other residues need not be the family's
    return before.rjust(free, "-") + row[len(flank) :]
