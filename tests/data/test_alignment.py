"""Alignments: the formats, what is refused, weights and splits, and fits that use them."""

import gzip
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from manybody.data import SourceError, alignment, sequence_weights
from manybody.data.alignment import SPLITS, encode, make, read, records, reference
from manybody.io.atomic import ArtifactError
from manybody.io.seeds import run_settings
from manybody.io.sequences import Sequences
from manybody.training import lbfgs
from manybody.training.loop import train_files

SHARES = dict(train=0.6, validation=0.2, test=0.2)
SOURCE = dict(
    kind="alignment", format="fasta", alphabet="protein", identity=0.8, split=SHARES, seed=0
)
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
RECIPE = dict(
    objective="masked", masks="all", steps=10, restarts=1, validation=4, precision="float64",
    threads=1, optimizer=dict(name="lbfgs", history=20, ridge=1e-3),
)  # fmt: skip


def family(sequences: int = 120, length: int = 70, seed: int = 0) -> np.ndarray:
    """Tokens (N, L) of residues in groups of three that share most columns."""
    rng = np.random.default_rng(seed)
    tokens = np.repeat(rng.integers(1, 21, (sequences // 3, length)), 3, axis=0)
    changed = rng.random(tokens.shape) < 0.12
    tokens[changed] = rng.integers(0, 21, changed.sum())
    return tokens


def fasta(tokens: np.ndarray) -> str:
    letters = np.array(list("-" + RESIDUES))
    return "".join(f">s{n} made up\n{''.join(letters[row])}\n" for n, row in enumerate(tokens))


def run(folder, text: str, **changes) -> dict:
    folder.mkdir(exist_ok=True)
    path = folder / "given"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    out = {split: folder / f"{split}.parquet" for split in SPLITS}
    source = {**SOURCE, "file": str(path), **changes}
    make(source, "toy", out, folder / "weights.parquet", source.pop("threads", 1))
    return {**out, "sequence_weights": folder / "weights.parquet"}


def agreement(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Numbers of equal columns of all pairs of rows."""
    return (first[:, None].astype(int) == second[None]).sum(-1)


# --- Reading -------------------------------------------------------------------------------------

FORMATS = {
    "fasta": "# a comment\n>a one\nAC-D\nE\n\n>b\nac.de\n>b\nWCXDE\n",
    "a3m": "#5\t3\n>ss_pred\nHHHHH\n>a one\nAC-DE\n>b\nAC-ghiDE..\n>b\n.WCX.DEkl\n",
    "stockholm": (
        "# STOCKHOLM 1.0\n#=GF ID toy\na/1-5 AC-\nb     ac.\nc     WCX\n#=GC RF xxx\n\n"
        "a/1-5 DE\nb     de\nc     DE\n#=GC RF xx\n//\n"
    ),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("packed", [False, True])
def test_all_formats_give_the_same_tokens(form, packed, tmp_path):
    path = tmp_path / "given"
    text = FORMATS[form].encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    names, rows = read(path, form)
    tokens, ambiguous = encode(path, names, rows, "protein")
    assert tokens.tolist() == [[1, 2, 0, 3, 4], [1, 2, 0, 3, 4], [19, 2, 0, 3, 4]]
    assert ambiguous == {"X": 1}
    assert names[0] == ("a/1-5" if form == "stockholm" else "a")


@pytest.mark.parametrize(
    ("kind", "letters", "expected"),
    [
        ("protein", "-" + RESIDUES, list(range(21))),
        ("rna", "-ACGUTacgu.", [0, 1, 2, 3, 4, 4, 1, 2, 3, 4, 0]),
        ("dna", "~_ACGTUn", [0, 0, 1, 2, 3, 4, 4, 0]),
    ],
)
def test_colours_of_the_letters(kind, letters, expected, tmp_path):
    tokens, _ = encode(tmp_path, ["a"], [letters], kind)
    assert tokens[0].tolist() == expected


def test_writes_splits_without_near_copies_weights_and_what_they_are_of(tmp_path):
    tokens = family()
    files = run(tmp_path, fasta(tokens))
    train = Sequences.open(files["train"])
    assert (train.vocabulary, train.length) == (21, 70)
    about = train.about
    said = dict(alphabet="-" + RESIDUES, gap=0, identity=0.8, split_by="clusters", source="toy")
    assert about.items() >= {**said, "split": "train", "records": 120}.items()
    parts = {split: Sequences.open(files[split]).tokens for split in SPLITS}
    assert {split: len(part) for split, part in parts.items()} == about["sequences"]
    given = sorted(map(bytes, tokens.astype(np.uint8)))
    assert sorted(map(bytes, np.concatenate(list(parts.values())))) == given
    weights = sequence_weights.read(files["sequence_weights"], train)
    alike = (agreement(train.tokens, train.tokens) >= 56).sum(1)  # 0.8 * 70, which rounds up
    np.testing.assert_array_equal(weights, 1 / alike)
    assert about["effective"] == weights.sum() < len(train)
    assert about["sequences"] == {"train": 72, "validation": 24, "test": 24}
    for first, second in itertools.combinations(SPLITS, 2):
        assert agreement(parts[first], parts[second]).max() < 56
    with pytest.raises(ArtifactError, match=r"weights.parquet .*not those of .*test.parquet"):
        sequence_weights.read(files["sequence_weights"], Sequences.open(files["test"]))


@pytest.mark.parametrize(
    ("form", "text", "name", "expected"),
    [
        ("fasta", "", None, ("a/1-5", "AC-DE", [1, 2, None, 3, 4])),  # 4 residues are not 5
        ("fasta", "", "X/24-27", ("X/24-27", "A.cDE", [24, None, 25, 26, 27])),
        ("fasta", "", "r/9-6", ("r/9-6", "-ACDE", [None, 9, 8, 7, 6])),
        ("fasta", ">c:7-8\nC-D\n>b\nCCD\n", None, ("c:7-8", "C-D", [7, None, 8])),
        ("fasta", ">c/7..8\nC-D\n>b\nCCD\n", None, ("c/7..8", "C-D", [7, None, 8])),
        # Insertions of an A3M are no columns, but residues.
        ("a3m", ">a\nACDE\n>b/3-8\n.A.CghDE\n", "b/3-8", ("b/3-8", "ACDE", [3, 4, 7, 8])),
    ],
)
def test_the_reference_names_columns(form, text, name, expected, tmp_path):
    text = text or ">a/1-5\nAC-DE\n>X/24-27 title\nA.cDE\n>r/9-6\n-ACDE\n"
    (tmp_path / "given").write_text(text)
    names, letters, _ = records(tmp_path / "given", form)
    assert reference(tmp_path / "given", names, letters, form, name)[:3] == expected


def test_which_of_two_records_is_the_reference_is_said(tmp_path):
    assert reference(tmp_path, ["a", "b", "b"], ["AC", "AD", "AE"], "fasta", "b")[1::2] == (
        "AD",
        "sites are numbered by the residues of b, from 1; the first of 2 records of that name",
    )


ROWS = [("a/7-8", "ACEF"), ("b", "AC*F")]
WRITTEN = {  # format, text, rows, and what is said
    "marks, NULs and line ends": (
        "fasta", "\ufeff>a/7-8 x\r\nAC\r\nEF\r\n\0>b\r\nAC*F\r\n>\r\n".encode("utf-16"), ROWS,
        r"NUL bytes passed over: 1; records passed over .*: without a name \(1\)",
    ),
    "marks where files were put together": (
        "fasta", "\ufeff>a/7-8\nACEF\n\ufeff>b\nAC*F\n", ROWS, "^$"
    ),
    "old ends of lines": ("fasta", ">a/7-8\rACEF\r>b\rAC*F\r", ROWS, "^$"),
    "a2m": ("a3m", ">a/7-8\nACx..EF\n>b\nAC.ghEF\n", [ROWS[0], ("b", "ACEF")], "inserts .*: 3"),
    "annotation": ("a3m", ">ss_pred\nHHHH\n>a/7-8\nACEF\n>b\nAC*F\n", ROWS, r": ss_pred \(1\)"),
    "annotation of rows without inserts": (
        "fasta", ">ss_pred\nHHHH\n>aa_dssp\nACEF\n>a/7-8\nACEF\n>b\nAC*F\n", ROWS,
        r": ss_pred \(1\), aa_dssp \(1\)",
    ),
    "spaces and tabs in rows": ("fasta", ">a/7-8\nAC\tE F\n>b\nA C\t*F\n", ROWS, "^$"),
    "an empty record": ("fasta", ">a/7-8\nACEF\n>c\n\n>b\nAC*F\n", ROWS, r"empty.*: c \(1\)"),
    "rows of gaps": (
        "a3m", ">c\n----\n>a/7-8\nACEF\n>d\nX_.ac-X\n>b\nAC*F\n", ROWS,
        r"have no residue.*: c \(1\), d \(1\)",
    ),
    "clustal": (
        "clustal", "MUSCLE (3.8) multiple sequence alignment\n\n\na/7-8  ACE 3\nb      AC* 3\n"
        "       **\n\na/7-8  F 4\nb      F 4\n       *\n", ROWS, "^$",
    ),
    "names with spaces": (
        "clustal", "CLUSTAL W\n\nseq A  ACE 3\nseq B  AC* 3\n\nseq A  FAC EF 8\nseq B  FAC EF 8\n",
        [("seq A", "ACEFACEF"), ("seq B", "AC*FACEF")], "^$",
    ),
    "lines": ("lines", "ACEF\n\nAC*F\n", [("line-1", "ACEF"), ("line-2", "AC*F")], "^$"),
    "blocks without empty lines": (
        "stockholm", "\n# STOCKHOLM 1.0\na/7-8 AC\nb AC\na/7-8 EF\nb *F\n//\n\n", ROWS, "^$"
    ),
    "twice in a block": (
        "stockholm", "# STOCKHOLM 1.0\r\na AC\r\na AD\r\nb AC\r\n\r\na EF\r\na EG\r\nb EF\r\n//",
        [("a", "ACEF"), ("a", "ADEG"), ("b", "ACEF")], r"come more than once.*: a \(2\)",
    ),
    "empty lines in a block": (
        "stockholm", "# STOCKHOLM 1.0\n\na/7-8 ACEF\n\nb AC*F\n", ROWS, "^$"
    ),
    "remarks and numbers of positions": (
        "fasta", "; old\n>a/7-8 9\n1 AC 2\n# of mine\n 3 EF\n>b\nAC\n*F 4\n", ROWS,
        "passed over: 5",
    ),
    "lengths after an empty line": ("a3m", "\n#4\t1\n>a/7-8\nACEF\n>b\nAC*F\n", ROWS, "over: 1"),
    "a remark between records": ("a3m", ">a/7-8\nACEF\n#2\tx\n>b\nAC*F\n", ROWS, "over: 1"),
    "NUL bytes between records and at the end": (
        "a3m", ">a/7-8\nACEF\n>b\nAC*F\n\0>c\nAC-F\n>d\nACEF\n\0",
        [*ROWS, ("c", "AC-F"), ("d", "ACEF")], "one alignment .*: 2; NUL bytes passed over: 2",
    ),
    "two searches of one query": (
        "a3m", "#4\t1\n>a\nACEF\n>b\nACcEF\n\0#4\t1\n>a\nACEF\n",
        [("a", "ACEF"), ("b", "ACEF"), ("a", "ACEF")], r"NUL bytes passed over: 1; .*: a \(2\)",
    ),
    "dashes of a word processor": (
        "fasta", ">a/7-8 a\u2013b\nACEF\n>b\nAC\u2013F\n>c\n\u2212CEF\n",
        [ROWS[0], ("b", "AC-F"), ("c", "-CEF")], "no '-', read as gaps: 2",
    ),
    "indented": ("fasta", "  >a/7-8\n  ACEF\n\t>b\n  AC*F\n", ROWS, "^$"),
    "a structure among the rows, and the end of a file of DOS": (
        "fasta", ">a/7-8\nACEF\n>b\nAC*F\n>SS_cons\n(())\n\x1a", ROWS, r": SS_cons \(1\)",
    ),
    "stops at the end": ("fasta", ">a/7-8\nACEF*\n>b\nAC*F\n", ROWS, "stop codons .*: 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRITTEN)
def test_files_as_programs_write_them(case, tmp_path):
    form, text, rows, said = WRITTEN[case]
    (tmp_path / "given").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert read(tmp_path / "given", form) == tuple(map(list, zip(*rows, strict=True)))
    assert re.search(said, "; ".join(records(tmp_path / "given", form)[2]))


def test_says_what_was_read_and_passed_over(tmp_path):
    rows = fasta(family()).replace(">s0 made up\n", ">s1/101-103\n").splitlines()
    rows[3] = "*X" + rows[3][2:]
    rows = [row + (".-", "gg")[n % 3 == 1] if n % 2 else row for n, row in enumerate(rows)]
    out = run(tmp_path, "\n".join(rows), alphabet_confirmed=None)
    said = Sequences.open(out["test"]).about["said"]
    assert "120 sequences of 72 columns (fasta, protein)" in said
    assert any(re.match(r"letters read as gaps: (\* \(1\), X \(1\)|X .*)", one) for one in said)
    assert any(re.match("2 columns, the first of them 71, hold lower-case", one) for one in said)
    numbers = "from 1: its range 101-103 has 3 numbers and does not fit its "
    assert any(numbers in one for one in said)


def test_letters_of_dna_are_proteins_only_if_that_is_confirmed(tmp_path):
    rows = ["ACGT-", "ACGTN"]
    assert encode(tmp_path, ["a", "b"], rows, "protein", True)[0][0].tolist() == [1, 2, 6, 17, 0]
    with pytest.raises(SourceError, match=r"`alphabet: dna`; .*`alphabet_confirmed: true`"):
        encode(tmp_path, ["a", "b"], rows, "protein")
    with pytest.raises(SourceError, match=r"`alphabet: rna`$"):
        encode(tmp_path, ["a", "b"], ["ACGU-", "ACGUN"], "protein", True)
    # nine of ten letters are bases, and DNA does not explain E and F
    assert encode(tmp_path, ["a", "b"], ["ACGTACGTE", "ACGTACGTF"], "protein")[1] == {}
    for kind in ("dna", "rna"):
        assert encode(tmp_path, ["a", "b"], [*rows[:1], "NNNNN"], kind)[1] == {"N": 5}


REFUSED = {
    "empty": ("", {}, "expected a line that starts with '>', found ''"),
    "no fasta": ("hello\n", {}, "starts with '>'"),
    "comments only": ("# nothing\n", {}, "starts with '>'"),
    "no stockholm": (">a\nAC\n>b\nAC\n", dict(format="stockholm"), "STOCKHOLM"),
    "one sequence": (">a\nACD\n", {}, "1 sequences"),
    "no letters": (">a\n\n>b\n\n", {}, "holds 0 sequences"),
    "row beside its name": (">a ACEF\n>b ACEF\n", {}, "row begin in a line of its own"),
    "lines of grep": (">a\nACE\n--\n>b\nACE\n", {}, "b has 3 columns, the first .* 5;.*grep -v"),
    "ensemble": ("<none.0\n>a\nACE\n>b\nACE\n", {}, "several alignments .*-efa_explode"),
    "brackets": (">a\nACE\n>b\n(.)\n", {}, r"record b, column 1: '\(' .*a line of brackets"),
    "ragged": (">a\nACD\n>b\nACD\n>c\nAC\n", {}, "record c has 2 columns.*column 3"),
    **{
        f"{name} in a row": (f">a #\nACD\n#5\n>b\nA\n{row}\n>c\nACD\n", {}, message)
        for name, row, message in (
            ("mark of a title", "CD>x\nACD", r"line 6, column 3: '>' is no .*zcat -f '.*given' \|"),
            ("mark of a remark", "#C", "line 6, column 1: '#' is no letter .*over as a remark"),
            ("space of no width", "C\u200bD", r"line 6, column 2: '\\u200b' is no letter or gap"),
        )
    },
    "insertions": (">a\nACD\n>b\nAcCD\n", {}, "record b has 4 columns.*format: a3m"),
    "uneven in either": (">a\nACD\n>b\nAcC\n>c\nAC\n", {}, "c has 2 columns.*have all columns"),
    "ragged a3m": (">a\nACD\n>b\nAcC\n", dict(format="a3m"), "record b has 2 columns"),
    "ragged stockholm": (
        "# STOCKHOLM 1.0\na ACD\nb ACD\nc AC\n//\n", dict(format="stockholm"),
        "record c has 2 columns.*column 3",
    ),
    **{
        f"two alignments{end!r}": (
            f"# STOCKHOLM 1.0\na AC\nb AC\n{end}" * 2, dict(format="stockholm"), "2 alignments"
        )
        for end in ("//\n", "")
    },
    "several queries": (
        ">a\nACD\n>b\nACE\n\0>c\nAF\n>d\nAE\n\0", dict(format="a3m"),
        "holds 2 alignments, whose first records differ;",
    ),
    "several queries of ColabFold": (
        "#3\t1\n>a\nACD\n>b\nACE\n#3\t1\n>c\nACF\n>d\nACF\n", dict(format="a3m"), "2 alignments",
    ),
    "several queries of one length": (
        ">101\nACD\n>b\nACE\n\0>102\nWCF\n>d\nWCE\n\0", dict(format="a3m"), r"2 alignments.*tr -d",
    ),
    "letter": (">a\nACD\n>b\nAC8\n", {}, "record b, column 3: '8' .*alphabet protein"),
    "foreign letter": (
        ">a\nACG\n>b\nAEG\n", dict(alphabet="rna"), "record b, column 2: 'E'.*`alphabet: protein`"
    ),
    "a line each": ("AC_F\nACEF\n", {}, "found 'AC_F'.*`format: lines`"),
    "clustal": ("CLUSTAL W\n\na AC\nb AC\n", {}, "`format: clustal`"),
    **{
        f"table of {of!r}": (
            f"name{of}sequence\na{of}ACEF\nb{of}ACEF\n", {}, "a table: .*line of names, awk -F "
        )
        for of in ",;\t"
    },
    "json": ('{"name":"a","sequence":"ACEF"}\n', {}, "format, with nothing before it"),
    "marks of the first record's residues": (
        ">a\nACD-EFGHIKL\n" + ">b\nCA.--GFIHLK\n" * 7, {}, "none of 56 residues .*14 dots",
    ),
    "selex": ("# SELEX\n#=AU me\na ACDE_ACDEF\n", {}, "a name and a row in each line.*STOCKHOLM"),
    "profile": ("HMMER3/f [3.3.2]\nNAME  x\n", {}, "a profile .*the alignment that it was made of"),
    "phylip": (" 2 4\na ACEF\nb ACEF\n", {}, "AlignIO.convert.*'phylip-relaxed'"),
    "phylip of lines": (" 2 4\na AC\n EF\nb AC\n EF\n", {}, "one record behind the other.*awk"),
    "pir": (">P1;a\nACE F\nACD*\n", {}, "AlignIO.convert.*'pir'"),
    "nexus": ("#nexus\nbegin data;\n", {}, "AlignIO.convert.*'nexus'.*datatype=standard"),
    "msf": ("my.msf  MSF: 24 Type: P\n", {}, "sed .*`format: clustal`"),
    "page": ("<!DOCTYPE html><html>", {}, "is an HTML document; .*an error page. Fetch it again"),
    "error": ("<Error><Code>NoSuchKey", {}, "an XML document; .*an error page. Fetch it again"),
    "bzip2": ("BZh91AY", {}, "a bzip2 archive.*unpack it"),
    "tar": (gzip.compress(f"{'a' * 257}ustar".encode()), {}, "a tar archive.*unpack it"),
    "not ascii": (">a\nACD\n>b\nAC\u00c4\n", {}, "record b, column 3: '\u00c4'"),
    "gaps": (">a\nA-D\n>b\nAXD\n", {}, "1 of 3 columns.*column 2.*Delete"),
    "cut gzip": (gzip.compress(FORMATS["fasta"].encode())[:-9], {}, "cannot be read"),
    "reference": (
        ">a1\nACD\n>b1\nACE\n" * 9, dict(reference="b"), "reference: found b, .*did you mean b1"
    ),
    "no file": ("", dict(file="nowhere.fasta"), r"no such file: nowhere\.fasta"),
    "one cluster": (">a\nACDEF\n" * 30, {}, "1 clusters.*Raise `identity`.*by: random"),
    "too few": (">a\nACD\n>b\nACE\n>c\nACE\n", {}, "3 sequences, expected 2 for test, 2 for val"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_by_name_and_writes_nothing(case, tmp_path):
    text, changes, message = REFUSED[case]
    with pytest.raises(SourceError, match=message) as caught:
        run(tmp_path, text, **changes)
    assert str(tmp_path / "given") in str(caught.value) or message.startswith(
        ("1 clu", "3 seq", "no such")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


STRICT = [f"SEQUENCE{n}XACDEFGHIKLMNPQRSTVWY" for n in "ABCD"]
WRAPPED = {  # text, and what the command makes of it
    "wrapped": (
        " 2 12\n\none  ACEF\n  ACEF AC\nEF\ntwo\nACEFACEF\nAC-F\n",
        ">oneACEFACEFACEF>twoACEFACEFAC-F",
    ),
    # Of names of ten columns
    "strict": ("\n".join([" 4 20", *STRICT, ""]), "".join(f">{row}" for row in STRICT)),
    "strict, of which one has a space": (
        " 2 10\none       ACEFG HIKLM\nS. purpur2ACEFG HIKLN\n",
        ">oneACEFGHIKLM>S.purpur2S.purpur2ACEFGHIKLN",
    ),
    "strict, of which one has no space behind it": (
        " 2 12\none       ACEFGHIKLM AC\nHesperorniACEFGHIKLN AC\n",
        ">oneACEFGHIKLMAC>HesperorniACEFGHIKLNAC",
    ),
}


@pytest.mark.parametrize("case", WRAPPED)
def test_the_command_for_phylip_makes_fasta_of_it_alone(case, tmp_path):
    (path := tmp_path / "a family.phy").write_text(WRAPPED[case][0])
    with pytest.raises(SourceError, match=r"It looks like (PHYLIP|phylip:)") as caught:
        alignment.format_of(path)
    way = re.search("(?:awk|python) .*(?=, then `file)", str(caught.value))[0]
    subprocess.run(["bash", "-c", way.replace("python", sys.executable, 1)], check=True, timeout=60)
    assert "".join(Path(f"{path}.fasta").read_text().split()) == WRAPPED[case][1]


def test_dots_that_may_be_the_letters_of_the_first_record_are_named(tmp_path):
    path = tmp_path / "mega.fasta"
    for rows, count in (
        (("ACDE", ".K..", "..-."), 1),
        (("ACDE", ".K..", "...."), 0),
        (("ACDE.", ".K..D", "..-.."), 0),
        (("ac-e", "akde", "ak-e"), 0),  # nor are those of lower case inserts
    ):
        path.write_text("".join(f">{n}\n{row}\n" for n, row in enumerate(rows)))
        said = alignment.load(path, "fasta", "protein")[2]["said"]
        assert sum(": 6, read as gaps" in one or "lower-case" in one for one in said) == count


def test_a_pipe_is_refused_since_it_is_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="pipe is a pipe, which can be read once"):
        alignment.format_of(tmp_path / "pipe")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    def changing(path, form):
        found = records(path, form)
        path.write_text(fasta(family(seed=1)))
        return found

    monkeypatch.setattr(alignment, "records", changing)
    with pytest.raises(SourceError, match="changed while it was read") as caught:
        run(tmp_path, gzip.compress(fasta(family()).encode()))
    assert str(tmp_path / "given") in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


# --- Weights and splits --------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 8, 63, 64, 65, 200])
@pytest.mark.parametrize("identity", [0.35, 0.8, 1.0])
def test_neighbours_are_those_of_all_pairs_compared(length, identity):
    rng = np.random.default_rng(length)
    tokens = np.repeat(rng.integers(0, 128, (40, length)), 2, axis=0)
    tokens[rng.random(tokens.shape) < 0.25 * (rng.random((80, 1)) < 0.7)] = 5
    alike = agreement(tokens, tokens) >= identity * length - 1e-9
    found = sequence_weights.neighbours(tokens, identity)
    np.testing.assert_array_equal(found.counts, alike.sum(1))
    reached = np.linalg.matrix_power(alike.astype(float), 80) > 0
    np.testing.assert_array_equal(found.clusters, reached.argmax(1))
    again = sequence_weights.neighbours(tokens, identity, threads=3)
    np.testing.assert_array_equal(again.counts, found.counts)
    np.testing.assert_array_equal(again.clusters, found.clusters)


@pytest.mark.parametrize(
    ("identity", "length", "least"),
    [
        (0.8, 10, 8),
        (0.7, 10, 7),  # 0.7 * 10 is 7.000000000000001 or 7
        (0.29, 100, 29),  # 28.999999999999996
        (0.07, 100, 7),  # 7.000000000000001
        (0.81, 10, 9),
    ],
)
def test_the_threshold_is_reached_by_a_product_that_rounds(identity, length, least):
    tokens = np.zeros((3, length), int)
    tokens[1, least:] = 1
    tokens[2, least - 1 :] = 2
    assert sequence_weights.neighbours(tokens, identity).counts.tolist() == [2, 2, 1]


def test_a_random_split_takes_its_shares_of_one_cluster(tmp_path):
    files = run(tmp_path, fasta(np.full((50, 5), 3)), split={**SHARES, "by": "random"})
    assert [len(Sequences.open(files[split])) for split in SPLITS] == [30, 10, 10]
    train = Sequences.open(files["train"])
    assert train.about["split_by"] == "random"
    assert train.about["effective"] == pytest.approx(1)


def test_same_seed_same_bytes_for_any_threads(tmp_path):
    text = fasta(family())
    first = run(tmp_path / "one", text)
    second = run(tmp_path / "one", text, threads=3)  # the path is in the documents
    other = run(tmp_path / "two", text, seed=1)
    kept = {name: path.read_bytes() for name, path in first.items()}
    assert kept == {name: path.read_bytes() for name, path in second.items()}
    assert not np.array_equal(*(Sequences.open(f["test"]).tokens for f in (first, other)))


# --- Fits ----------------------------------------------------------------------------------------


def fit_of(tokens, description: dict, folder, recipe: dict = RECIPE, **more) -> lbfgs.Fit:
    data = {name: SimpleNamespace(tokens=tokens) for name in ("train", "validation")}
    settings = run_settings({}, description, recipe, seed=0, init_seed=0, stream="m")
    return lbfgs.Fit(settings, {**data, **more}, folder, torch.device("cpu"), "")


def evaluate(fit: lbfgs.Fit, seed: int = 0) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    size = sum(parameter.numel() for parameter in fit.parameters)
    vector = torch.randn(size, generator=generator, dtype=torch.float64).requires_grad_()
    objective, loss, _ = fit._evaluate(vector)
    return objective, loss, vector.grad


def describe(**sizes) -> dict:
    usual = dict(vocabulary=4, length=6, layers=1, rank=None, bias=True, variant="exact", heads=1)
    return {"architecture": "factored", **usual, **sizes}


ONE_LAYER = [
    dict(),
    dict(bias=False, heads=3),
    dict(bias="site", heads=2),
    dict(bias="site", rank=2),
    dict(bias="site", attention="softmax"),
]


@pytest.mark.long
@pytest.mark.parametrize("sizes", ONE_LAYER)
def test_the_compiled_loss_of_one_layer_is_that_of_masked_copies(sizes, tmp_path):
    rng = np.random.default_rng(0)
    tokens, sequence_weights = rng.integers(0, 4, (40, 6)), rng.random(40) + 0.1
    fit = fit_of(tokens, describe(**sizes), tmp_path, sequence_weights=sequence_weights)
    assert fit.counted is not None
    objective, loss, slopes = evaluate(fit)
    fit.counted = None
    by_copies = evaluate(fit)
    assert (objective, loss) == pytest.approx(by_copies[:2], rel=1e-12)
    torch.testing.assert_close(slopes, by_copies[2], rtol=1e-9, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    "description",
    [describe(bias="site", heads=2), describe(layers=2), describe(layers=2, heads=2)],
)
def test_a_weight_counts_like_repeats_of_the_sequence(description, tmp_path):
    rng = np.random.default_rng(1)
    tokens, repeats = rng.integers(0, 4, (20, 6)), rng.integers(1, 4, 20)
    weighted = evaluate(
        fit_of(tokens, description, tmp_path, sequence_weights=repeats.astype(float))
    )
    repeated = evaluate(fit_of(np.repeat(tokens, repeats, 0), description, tmp_path))
    assert weighted[:2] == pytest.approx(repeated[:2], rel=1e-12)
    torch.testing.assert_close(weighted[2], repeated[2], rtol=1e-9, atol=1e-12)


def test_a_recipe_with_weights_is_fitted_with_them(tmp_path):
    repeats = np.random.default_rng(0).integers(1, 6, 60)
    files = run(tmp_path, fasta(np.repeat(family(60, 12), repeats, axis=0)), identity=0.9)
    kept = {}
    for name, changes in {"with": dict(sequence_weights="identity"), "without": {}}.items():
        manifest = train_files(
            describe(bias="site"), files, recipe={**RECIPE, **changes}, out=tmp_path / name,
            seed=0, init_seed=0, about={},
        )  # fmt: skip
        kept[name] = manifest.parent / "step-10.safetensors"
    assert kept["with"].read_bytes() != kept["without"].read_bytes()
