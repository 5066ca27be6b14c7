"""Families: format and alphabet found in the file, and what is too sparse left out."""

import numpy as np
import pytest

from manybody.data import SourceError
from manybody.data.alignment import alphabet_of, consensus_structure, format_of
from manybody.data.family import depth, ranges, read
from manybody.measure.mutations import letters_of

PROTEIN = ">a/11-18\nMKL-VWYFH\n>b\nMKLEVWYFH\n>c\nMRLEVWYFH\n>d\nMRLEVW-FH\n"
FORMATS = {
    "fasta": PROTEIN,
    "a3m": ">a\nMKLVW\n>b\nMKgeLVW\n>c\nM-LVWee\n",
    "a3m, all columns in all rows": ">a\nMK..LVW\n>b\nMKgeLVW\n>c\nM-..LVW\n",
    "a3m, by its first line": "#A3M#\n>a\nMKLVW\n>b\nMKLVF\n",
    "a3m, of ColabFold": "#5\t1\n>a\nMKLVW\n>b\nMKgeLVW\n",
    "a3m, of which a row is too long": ">a\nMKLVW\n>b\nMKgeLVW\n>c\nMKLVWF\n>d\nMgKLVW\n",
    "fasta, in lower case": ">a\nmklvw\n>b\nmk-vw\n",
    "fasta, masked in lower case": ">a\nMKLvw\n>b\nMklVw\n",
    "fasta, with counts in names, and not PIR": ">S1;size=33\nACDEF\n>S2;size=2\nACDEY\n",
    "fasta, not aligned": ">a\nMKLvw\n>b\nMkl\n>c\nMKLVWF\n",
    "fasta, with words behind it": ">a\nMKLVF\n>b\nMKLVW\n>c\nMKLVW\nThree rows\n",
    "fasta, with dots": ">a\nMK.VW\n>b\nM.LVW\n",
    "stockholm": "# STOCKHOLM 1.0\na MKLVW\nb MKLVF\n//\n",
    "clustal": "CLUSTAL W\n\na MKLVW\nb MKLVF\n",
    "lines": "MKLVW\nMKLVF\n",
}


@pytest.mark.parametrize("case", FORMATS)
def test_the_format_is_found(case, tmp_path):
    path = tmp_path / "given"
    path.write_text(FORMATS[case])
    assert format_of(path) == case.partition(",")[0]


ALPHABETS = {
    "protein": ("MKLVW", "MULVW"),
    "rna": ("GGCUACGNAA", "GGCUACGUAA"),
    "alphabet: its letters, ": ("GGCTACGNAA", "GGCTACGTAA"),
    "give `alphabet: protein`, `alphabet: dna` or": ("GGCATCGNAA", "GGCATCGTAA"),
    "no alphabet explains the letters": ("M1234", "M5678"),
}


@pytest.mark.parametrize("expected", ALPHABETS)
def test_the_alphabet_is_found_or_refused_with_what_decides(expected, tmp_path):
    path = tmp_path / "given"
    path.write_text("".join(f">{row}\n{row}\n" for row in ALPHABETS[expected]))
    try:
        found = alphabet_of(path, "fasta")
    except SourceError as error:
        found = str(error)
    assert (found == expected) if " " not in expected else (expected in found)


def sparse(tmp_path, gaps=(4, 9), rows=14):
    """40 proteins of 12 columns; in the columns `gaps` half of them have none, the last `rows` have
    residues in five columns alone, so that other columns have less than 70 % of all sequences. The
    reference has a gap in column 7, which others fill."""
    letters = np.random.default_rng(1).choice(list("ACDEFGHIKLMNPQRSTVWY"), (40, 12))
    for column in gaps:
        letters[1:21, column - 1] = "-"
    letters[len(letters) - rows :, 5:] = "-"
    letters[0, 6] = "-"
    path = tmp_path / "sparse.fasta"
    names = ["ref/101-111", *(f"s{n}" for n in range(39))]
    path.write_text(
        "".join(f">{name}\n{''.join(row)}\n" for name, row in zip(names, letters, strict=True))
    )
    return path, letters


def test_a_reference_without_residues_in_the_columns_is_refused(tmp_path):
    (tmp_path / "one.fasta").write_text(">one\nMK---\n" + ">other\n--LVW\n" * 9)
    with pytest.raises(SourceError, match="and a residue of one in one of these columns; lower"):
        read(tmp_path / "one.fasta", coverage=0)


def test_sparse_columns_and_sequences_are_left_out_and_said_and_sites_keep_their_numbers(tmp_path):
    path, letters = sparse(tmp_path)
    found = read(path)
    assert found.about["left_out"] == dict(columns=2, sequences=14)
    assert found.about["columns"] == [1, 2, 3, 5, 6, 7, 8, 10, 11, 12]
    assert found.tokens.shape == (26, 10)
    assert letters_of(found.tokens, found.about)[5] == "".join(np.delete(letters[5], [3, 8]))
    said = "\n".join(found.about["said"])
    assert "14 sequences left out" in said
    assert (
        "2 columns left out, in which less than 70% of the sequences have a residue: 4, 9" in said
    )
    assert found.weights.sum() == found.about["effective"]
    # facebookresearch/esm#240: positions that were shifted by gaps and by columns left out
    assert found.about["numbers"] == [101, 102, 103, 105, 106, None, 107, 109, 110, 111]
    assert found.about["aligned"] == "".join(np.delete(letters[0], [3, 8]))


def test_the_shares_can_be_changed(tmp_path):
    path, _ = sparse(tmp_path)
    assert read(path, occupancy=0, coverage=0).tokens.shape == (40, 12)
    assert read(path, coverage=0.4).about["left_out"]["sequences"] == 0
    with pytest.raises(SourceError, match=r"1 of 12 columns.*lower `coverage` or `occupancy`"):
        read(sparse(tmp_path, range(1, 12), 0)[0], coverage=0, occupancy=0.9)


def test_few_effective_sequences_are_warned_of():
    about = dict(columns=list(range(1, 101)))
    said = [depth(about | dict(effective=count))[1] for count in (99.0, 499.0, 500.0)]
    assert "too few, below 1" in said[0]
    assert "few, below 5" in said[1]
    assert said[2] == ""


def test_consensus_structure_and_ranges(tmp_path):
    path = tmp_path / "given"
    blocks = "# STOCKHOLM 1.0\na GGCA\nb GGCU\n#=GC SS_cons <<AA\n\na GGCC\nb GCCC\n"
    path.write_text(f"{blocks}#=GC SS_cons >>aa\n#=GC RF xxxx\n//\n")
    assert consensus_structure(path) == "<<AA>>aa"
    assert read(path).structure == "<<AA>>aa"
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
