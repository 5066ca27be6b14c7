"""Multiple alignments of proteins, RNA or DNA: FASTA, A3M, Stockholm, Clustal, a sequence a line.

The gap is a colour, number 0. Letters that stand for several residues, and the `*` of stop codons,
become gaps and are counted; any other letter is refused. What is passed over is said in the card,
`card.md` beside the sequences. Sequences are weighted by how many are similar (`sequence_weights`)
and cut into three splits: by clusters of similar sequences, so that what is held out has no near
copy among the training sequences, or at random.
"""

import gzip
import io
import itertools
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from Bio.SeqIO.FastaIO import SimpleFastaParser

from manybody.data import (
    PACKED,
    SMALL,
    SPLITS,
    SourceError,
    Unchanged,
    given,
    refuse_bomb,
    sequence_weights,
)
from manybody.io import sequences
from manybody.io.atomic import sha256

GAP = 0
GAPS = "-.~_"
MARKED = 50  # residues that all differ from the first record's by no chance
# What word processors and web pages make of '-', from the hyphen to the minus.
DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63, 0xFF0D], "-")
DASHED = re.compile(rf"^(?![>#;]).*[{''.join(map(chr, DASHES))}].*", re.MULTILINE)  # not of titles
# Residues in the order of their colours, from 1, and the other letters that are understood.
ALPHABETS = {
    "protein": dict(residues="ACDEFGHIKLMNPQRSTVWY", ambiguous="BJOUXZ?*", read_as={}),
    "rna": dict(residues="ACGU", ambiguous="BDHKMNRSVWXY?*", read_as={"T": "U"}),
    "dna": dict(residues="ACGT", ambiguous="BDHKMNRSVWXY?*", read_as={"U": "T"}),
}
AMBIGUOUS, UNKNOWN = 254, 255
# Records of HH-suite, and of a consensus structure
ANNOTATION = ("ss_pred", "ss_conf", "ss_dssp", "sa_dssp", "aa_dssp", "aa_pred", "SS_cons")
BLANK = "\ufeff\n\t \x1a"  # around the text of a file, and the mark of DOS for its end
# Lines of remarks, and numbers of positions before and behind letters, which are group 1.
REMARKS = re.compile(
    r"^(?:[#;].*|(?!>)(?:[ \t]*\d+[ \t]+)?(.*[A-Za-z*.~_-])[ \t]+\d+[ \t]*$|[ \t]*\d+[ \t]+)",
    re.MULTILINE,
)
# Before another alignment of the same file: MMseqs2 writes NUL bytes, ColabFold lengths and counts.
ANOTHER = re.compile(r"\0(?=\s*[>#][^\0])|\n(?=#\d[\d,]*\t\d[\d,]*\n)")
QUERY = re.compile(r"\s*(#\d|>1\d\d\s)")  # how ColabFold begins that of each query
INSERTIONS = dict.fromkeys(map(ord, "abcdefghijklmnopqrstuvwxyz."))
# How a file of each format begins, and what to do where another one is expected.
BEGINS = {
    "stockholm": r"# STOCKHOLM",
    "genbank": r"LOCUS[ ]+\S+[ ]+\d+ (bp|aa)\b",
    "pdb-atom": r"(HEADER|TITLE|COMPND|REMARK|SEQRES|CRYST1|MODEL|ATOM|HETATM)[ ]+\S.*\n"
    r"([A-Z]+\d?[ ]+\S.*\n)*((ATOM  |HETATM)[ ]*\d+[ ])",
    "nexus": r"(?i)#NEXUS",
    "pir": r">[A-Z][A-Z0-9];.*\n.*\n[^>]*\*",
    "fasta": r"([#;].*\n\s*)*>",
    "clustal": r"(?i).*(clustal|multiple sequence alignment|MUSCLE \()",
    # Names of ten columns, of which one has a space inside or none behind it
    "phylip": r"\d+[ \t]+\d+[ \t]*\n\s*(\S{10}[A-Z*?.~-]{10,}\s|(.*\n)*?((?=\S{0,9}[a-z\d|])"
    r"\S{10}[A-Z*?.~-]{10,}\s|(?=.{10}[A-Z*?.~-])\S+[ \t]+[A-Za-z.]*[\d|]))",
    "wrapped": r"\d+[ \t]+\d+\s*\n.*\S.*\n([ \t]+\S|\S+[ \t]*\n)",
    "phylip-relaxed": r"\d+[ \t]+\d+[ \t]*\n\s*.*[A-Za-z]",
    "msf": r"(!!|PileUp|.*\bMSF:)",
    "lines": r"([A-Za-z*.~_-]+[ \t]*\n\s*)+\Z",
    "mega": r"(?i)#mega",
    "named": r"(#.*\n\s*)*\S+([ \t]+\d+)?[ \t]+[A-Za-z*.~_-]{10,}([ \t]+\d+)?[ \t]*\n",
    "fastq": r"@.*\n[A-Za-z.*-]+[ \t]*\n\+",
    "table": r"(?![({[])[^\s,;]+([,;\t][^\s,;]*)+[ \t]*\n",
    "profile": r"(HMMER\d|HHsearch |INFERNAL\d)",
    "ensemble": r"<\w+\.\d+[ \t]*\n>",
}
CONVERT = (
    "It looks like {0}: convert it by python -c \"from Bio import AlignIO; AlignIO.convert('{1}', "
    "'{0}', '{1}.fasta', 'fasta')\", then `file: {1}.fasta` and `format: fasta`"
)
WAYS = {
    None: "Is it an alignment in that format, with nothing before it?",
    "fasta": "It looks like FASTA: `format: fasta`, or `a3m` if lower-case letters are inserts",
    "clustal": "It looks like Clustal: `format: clustal`",
    "stockholm": "It looks like Stockholm: `format: stockholm`",
    "lines": "It looks like one sequence a line, as of PSICOV and CCMpred: `format: lines`",
    "mega": "It looks like MEGA: export it there as FASTA, every residue written out",
    "named": "It looks like a name and a row in each line: give it the first line of Stockholm by "
    "(echo '# STOCKHOLM 1.0'; zcat -f '{1}') > '{1}.sto', then `file: {1}.sto` and "
    "`format: stockholm`",
    "table": "It looks like a table: of names and aligned rows in its first two columns, below a "
    """line of names, awk -F '[,;\\t]' 'NR > 1 {{gsub(/["\\r]/, ""); print ">" $1; print $2}}' """
    "'{1}' > '{1}.fasta' makes FASTA; then `file: {1}.fasta` and `format: fasta`",
    "profile": "It looks like a profile (of HMMER, HH-suite or Infernal), which has no sequences: "
    "give the alignment that it was made of",
    "ensemble": "It looks like several alignments (EFA of MUSCLE): muscle -efa_explode '{1}' "
    "writes a file of each; give one",
    "fastq": "It looks like FASTQ: awk 'NR % 4 == 1 {{print \">\" substr($0, 2)}} NR % 4 == 2' "
    "'{1}' > '{1}.fasta' makes FASTA; then `file: {1}.fasta` and `format: fasta`",
    "msf": "It looks like MSF: convert it by (echo CLUSTAL; sed '1,/^ *\\/\\//d' '{1}') > "
    "'{1}.aln', then `file: {1}.aln` and `format: clustal`",
    "wrapped": "It looks like PHYLIP, one record behind the other: convert it by "
    """awk '!L {{L = $2; next}} NF {{if (!n) {{print ">" $1; $1 = ""; n = L}} """
    """gsub(/[ \\t\\r]/, ""); print; n -= length}}' '{1}' > '{1}.fasta', """
    "then `file: {1}.fasta` and `format: fasta` (by Bio.AlignIO from 'phylip' or "
    "'phylip-sequential' where names take ten columns)",
    **dict.fromkeys(("genbank", "pdb-atom"), CONVERT.replace("Align", "Seq")),
    "nexus": f"{CONVERT} (where it says datatype=standard, write protein or dna there first)",
    "phylip-relaxed": f"{CONVERT} (with 'phylip' where names take ten columns)",
    "phylip": f"{CONVERT} (with 'phylip-sequential' where a record takes several lines in a row)",
}
EXPECTED = {
    **dict.fromkeys(("fasta", "a3m"), "a line that starts with '>'"),
    "stockholm": "the line '# STOCKHOLM 1.0'",
    "clustal": "a line that starts with 'CLUSTAL'",
    "lines": "a sequence in each line and nothing else",
}
# What may be wrong with rows of different lengths.
UNEVEN = {
    "a3m": "in A3M, upper-case letters and '-' are the columns",
    "fasta": "without lower-case letters all are of one length, as in A3M: give `format: a3m`",
}
# The first character that is no letter, gap, number or space in a line of no title or remark.
ODD = re.compile(r"(?m)^(?![ \t]*[>;]|#.*[^A-Za-z*.~_\n-]).*?([^\sA-Za-z0-9*?.~_\0\x1a-])")
MENDS = {
    ">": "were files joined without a line end? zcat -f '{0}' | sed '/^>/!s/>/\\n>/' > "
    "'{0}.fasta' writes them there",
    "#": "a line that it begins is passed over as a remark: write a letter or a gap instead",
}
EXPLAINED = 0.95  # least share of the letters that an alphabet must explain
BASES = 0.8  # share of A, C, G, T and U from which letters that RNA explains are no protein's
ENOUGH = 0.5  # least part of its share that clusters must give a held-out split


def make(
    source: dict, name: str, out: dict[str, str | Path], weights_file: str | Path, threads: int = 1
) -> list[str]:
    """Writes the splits of the source (its entry in the config) called `name`, and the weights of
    the training sequences; returns sentences on what was read and what was passed over.
    `SourceError` names what cannot be read; nothing is written then."""
    path = Path(source["file"]).expanduser()
    _, tokens, about = load(
        path,
        source["format"],
        source["alphabet"],
        source.get("alphabet_confirmed") or False,
        source.get("reference"),
    )
    empty = np.flatnonzero((tokens == GAP).all(axis=0)) + 1
    if len(empty):
        shown = ", ".join(map(str, empty[:5])) + ", ..." * (len(empty) > 5)
        raise SourceError(
            f"{path}: {len(empty)} of {tokens.shape[1]} columns hold gaps only, and nothing can be "
            f"learnt there: column {shown}. Delete them from the alignment (for example with "
            "esl-alimask --gapthresh 0.99, or trimal -noallgaps)"
        )
    parts, clusters = split(tokens, source, threads)
    train = tokens[parts["train"]]
    each = 1.0 / sequence_weights.neighbours(train, source["identity"], threads).counts
    about |= dict(
        source=name, seed=source["seed"], identity=source["identity"],
        split_by=source["split"].get("by", "clusters"),
        sequences={key: len(part) for key, part in parts.items()},
        effective=float(each.sum()), clusters=clusters,
    )  # fmt: skip
    about["said"].append(
        f"{len(train)} are for training and count as {each.sum():.1f} (`identity`)"
    )
    for key, part in parts.items():
        sequences.write(out[key], tokens[part], len(about["alphabet"]), {**about, "split": key})
    sequence_weights.write(weights_file, each, out["train"], about)
    return about["said"]


def load(
    path: Path, form: str, kind: str, confirmed: bool = False, record: str | None = None
) -> tuple[list[str], np.ndarray, dict]:
    """Names (N) and tokens (N, L) of all records of a file, and their document. kind: an alphabet;
    confirmed: as of `encode`; record: the reference, the first by default."""
    stays = Unchanged([path])
    names, letters, said = records(path, form)
    digest = sha256(path)
    stays.check()
    rows = columns(letters, form)
    tokens, as_gaps = encode(path, names, rows, kind, confirmed)
    _refuse_marks(path, tokens)
    named, aligned, numbers, numbered = reference(path, names, letters, form, record)
    said = [
        f"{len(tokens)} sequences of {tokens.shape[1]} columns ({form}, {kind})",
        *said,
        "letters read as gaps: " + (listed(as_gaps) or "none"),
        *_doubtful_columns(rows, form),
        numbered,
    ]
    about = dict(
        alphabet="-" + ALPHABETS[kind]["residues"], gap=GAP, kind=kind, format=form,
        file=str(path), file_sha256=digest, ambiguous=sum(as_gaps.values()), records=len(tokens),
        reference=named, aligned=aligned, numbers=numbers, said=said,
    )  # fmt: skip
    return names, tokens, about


def format_of(path: Path) -> str:
    """The format of a file by how it begins. FASTA is A3M where it says so (`#A3M#`), or has
    lower-case letters without which all rows are of one length, or more than with them.
    `SourceError` for a file that is no alignment, or has to be converted."""
    text = read_text(path).replace("\0", "")
    looks = looks_like(text)
    read = parsed(text, looks if looks in EXPECTED else "fasta", path)
    if looks != "fasta":
        return looks
    rows = [row.rstrip("*") for name, row in read if not name.startswith(ANNOTATION)]
    alike = [
        max(Counter(len(row) for row in part if row).values(), default=0)
        for part in (columns(rows, "a3m"), rows)
    ]
    fits = alike[0] > alike[1] or 0 < alike[0] == len(rows)
    inserts = fits and any(row != row.upper() for row in rows)
    return "a3m" if inserts or text.lstrip().startswith("#A3M#") else "fasta"


def alphabet_of(path: Path, form: str) -> str:
    """The alphabet that the letters of a file are of. `SourceError` where several fit, or none."""
    _, letters, _ = records(path, form)
    shares, bases = _explained(_bytes(columns(letters, form)))
    fits = [kind for kind, share in shares.items() if share >= EXPLAINED]
    if not fits:
        raise SourceError(f"{path}: {_no_alphabet(shares)}")
    if len(fits) == 1:
        return fits[0]
    if bases["U"]:
        return "rna"
    raise SourceError(
        f"{path}: alphabet: its letters, {listed(bases)}, are those of {', '.join(fits)}; say "
        "which it is: give `alphabet: protein`, `alphabet: dna` or `alphabet: rna` (T is read as U)"
    )


def consensus_structure(path: Path) -> str | None:
    """The line `#=GC SS_cons` of a Stockholm file, one sign a column; None without one."""
    return "".join(re.findall(r"^#=GC[ \t]+SS_cons[ \t]+(\S+)", read_text(path), re.M)) or None


def listed(counts: dict[str, int]) -> str:
    """Names and how often each comes, the five most frequent first."""
    names = ", ".join(f"{name} ({count})" for name, count in Counter(counts).most_common(5))
    return names + f" and {len(counts) - 5} more" * (len(counts) > 5)


def read(path: Path, form: str) -> tuple[list[str], list[str]]:
    """Names and aligned letters of a file, gzipped or not; `SourceError` if uneven or under two."""
    names, letters, _ = records(path, form)
    return names, columns(letters, form)


def columns(letters: list[str], form: str) -> list[str]:
    """Letters of records without the inserts of A3M, which are no columns."""
    return [row.translate(INSERTIONS) for row in letters] if form == "a3m" else letters


def records(path: Path, form: str) -> tuple[list[str], list[str], list[str]]:
    """Names and letters, those of A3M with the inserts, and sentences on what is passed over."""
    text = read_text(path)
    texts = [part.replace("\0", "") for part in ANOTHER.split(text) if part.strip("\0" + BLANK)]
    parts = [parsed(part, form, path) for part in texts or [""]]
    firsts = {*columns([part[0][1] for part in parts if part], form)}
    differ = firsts if all(map(QUERY.match, texts)) else {*map(len, firsts)}
    if max(sum(bool(row) for _, row in part) for part in parts) > 1 and len(differ) > 1:
        raise SourceError(
            f"{path} holds {len(parts)} alignments, whose first records differ; expected one; give "
            "a file with the one you mean, or, if they are of one query, without NUL bytes "
            "(tr -d '\\000') and lines of #"
        )
    read = [record for part in parts for record in part]
    # Without residues are a '>' that nothing follows, rows of gaps, which trimming of columns
    # leaves, and in A3M those of inserts alone. Dots may stand for those of the first record.
    found = [
        (name, row)
        for name, row in read
        if columns([row], form)[0].strip("-~_Xx?*")
        and not (form in ("a3m", "fasta") and name.startswith(ANNOTATION))
    ]
    if len(found) < 2:
        raise SourceError(
            f"{path} holds {len(found)} sequences in {form} format, expected at least two (is that "
            "its format, and does each row begin in a line of its own?)"
        )
    names, letters = map(list, zip(*found, strict=True))
    # A translation ends in the `*` of its stop codon, beyond the last column or in one more.
    ends, stops = [row.rstrip("*") for row in letters], 0
    if len(set(map(len, columns(ends, form)))) == 1:
        stops, letters = sum(map(len, letters)) - sum(map(len, ends)), ends
    rows = columns(letters, form)
    length = len(rows[0])
    for name, row in zip(names, rows, strict=True):
        if len(row) != length:
            if form in ("a3m", "fasta") and (odd := ODD.search(text.translate(DASHES))):
                line, place = text.count("\n", 0, odd.end()) + 1, odd.end() - odd.start()
                raise SourceError(
                    f"{path}, line {line}, column {place}: {odd[1]!r} is no letter or gap, and the "
                    "rows are not of one length; "
                    + MENDS.get(
                        odd[1], "delete it, or write a letter instead (X for several)"
                    ).format(path)
                )
            inserts = form == "a3m" or len(set(map(len, columns(ends, "a3m")))) == 1
            raise SourceError(
                f"{path}: record {name} has {len(row)} columns, the first record has {length}; "
                f"they part at column {min(len(row), length) + 1}. Align it to the others or leave "
                f"it out ({UNEVEN.get(inserts and form, 'every row must have all columns')})"
                + "; lines of '--', which grep -A writes, are no gaps: take them out (grep -v "
                "'^--$')" * ("\n--\n>" in text)
            )
    passed = {
        "parts that NUL bytes divide, read as one alignment (if each is of a query of its own, "
        "give a file with one)": len(parts) if len(firsts) > 1 else 0,
        "NUL bytes passed over": text.count("\0"),
        "records passed over that are empty, have no residue, or are annotation": listed(
            Counter(name for name, _ in read) - Counter(names)
        ),
        **remarks(text, form),
        "* of stop codons left out at the ends of rows": stops,
        "letters of inserts (lower case in A3M) dropped, which are no columns": max(
            sum(len(row) - row.count(".") for row in letters) - sum(map(len, rows)), 0
        ),
        "names that come more than once, all their records kept": listed(
            {name: count for name, count in Counter(names).items() if count > 1}
        ),
    }
    return names, letters, [f"{what}: {count}" for what, count in passed.items() if count]


def remarks(text: str, form: str) -> dict[str, int]:
    """What is passed over in a text beside its records, or read as a gap, and how often."""
    return {
        "lines with dashes that are no '-', read as gaps": len(DASHED.findall(text)),
        "remarks (lines of # or ;) and numbers beside letters passed over": len(
            REMARKS.findall(text) if form in ("a3m", "fasta") else []
        ),
    }


def reference(
    path: Path, names: list[str], letters: list[str], form: str, name: str | None
) -> tuple[str, str, list[int | None], str]:
    """Name and aligned letters (L) of one record, the first by default, the number of its residue
    in each column, None at gaps, and how they are numbered in words: from 1, or as the end of the
    name says (`X/24-140`) where it has that many, and in A3M with the insertions, which are no
    columns. `SourceError` for a name that is not there."""
    name = names[0] if name is None else name
    if name not in names:
        near = get_close_matches(name, names, 1)
        raise SourceError(
            f"reference: found {name}, but {path} has no record of that name; expected one of its "
            f"{len(names)} names, the first words of their titles; "
            + (f"did you mean {near[0]}?" if near else f"the first is {names[0]}")
        )
    row = letters[names.index(name)]
    first, step, numbered = _counts_from(name, len(row) - sum(map(row.count, GAPS)))
    number = itertools.count(first, step)
    numbers = [None if letter in GAPS else next(number) for letter in row]
    kept = columns(list(row), form)  # '' for an insertion
    several = f"; the first of {names.count(name)} records of that name" * (names.count(name) > 1)
    return name, "".join(kept), list(itertools.compress(numbers, kept)), numbered + several


def _counts_from(name: str, residues: int) -> tuple[int, int, str]:
    """The number of the first residue, 1 or -1, as names of Pfam and Rfam end, and a sentence."""
    ends = re.search(r"[/:](\d+)(?:-|\.\.)(\d+)$", name)
    first, last = map(int, ends.groups()) if ends else (1, residues)
    numbers, said = abs(last - first) + 1, f"sites are numbered by the residues of {name}, from"
    if numbers == residues:
        return first, 1 if last >= first else -1, f"{said} {first}"
    why = f"has {numbers} numbers and does not fit its {residues} residues (were columns trimmed?)"
    return 1, 1, f"{said} 1: its range {first}-{last} {why}"


def _refuse_marks(path: Path, tokens: np.ndarray) -> None:
    """Refuses tokens (N, L) of rows that write a mark where they have the first record's residue,
    as MEGA and IMGT do: as many residues of a family never differ from it all."""
    columns = tokens[:, tokens[0] != GAP]
    count, gaps = (columns[1:] != GAP).sum(), (columns[1:] == GAP).sum()
    if gaps and count >= MARKED and not (columns[1:] == columns[0]).any():
        raise SourceError(
            f"{path}: none of {count} residues is that of the first record in its column; expected "
            f"some that are. If the {gaps} dots or dashes below its residues mean the same "
            "residue, write every residue out in the program that made the file"
        )


def _doubtful_columns(rows: list[str], form: str) -> list[str]:
    """Sentences on columns that look like inserts of A2M or CDD, and on dots that may stand for the
    residues of the first record, as MEGA writes them."""
    every = ["".join(letters) for letters in zip(*rows, strict=True)]
    insert = re.compile(r"[a-z]*\.[a-z.]*|(?=.*-)-*[a-z][a-z-]*")
    looks = [place for place, letters in enumerate(every, 1) if insert.fullmatch(letters)]
    dots = sum(letters.count(".") for letters in every if letters[0].isupper())
    said = []
    if dots and "." not in rows[0] and any("-" in row for row in rows):
        said.append(
            f"dots where the first record has a residue: {dots}, read as gaps, as '-' is; if they "
            "mean the same residue, write it out in the program that made the file"
        )
    if looks and form != "a3m" and any(row != row.lower() for row in rows):
        said.append(
            f"{len(looks)} columns, the first of them {looks[0]}, hold lower-case letters and gaps "
            "alone, as the inserts of A2M and CDD, and are read as columns; if they are inserts, "
            "delete them, or, where their gaps are dots, give the format a3m, of FASTA files alone "
            "(esl-reformat a2m makes one)"
        )
    return said


def read_text(path: Path) -> str:
    """The text of a file of the user's, gzipped or not, with line ends of Unix and without a mark
    of byte order. Bytes that are no UTF-8 are replaced: names and remarks may hold any."""
    if path.is_fifo():
        raise SourceError(
            f"{path} is a pipe, which can be read once; write it to a file and give that"
        )
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                unpacked = packed.read(max(SMALL, PACKED * len(raw)) + 1)
            refuse_bomb(path, len(raw), len(unpacked))
            raw = unpacked
    except FileNotFoundError as error:
        raise SourceError(
            f"no such file: {path} (relative paths start at {Path.cwd()})", "file"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(
            f"{path} cannot be read: {error}; expected a text file, packed by gzip or not"
        ) from error
    what, fix = ("a Parquet table", "write it as CSV") if raw[:4] == b"PAR1" else given.binary(raw)
    if what:
        raise SourceError(
            f"{path} is {what}; expected text, plain or gzip; "
            + ("an error page? Fetch it again" if what.endswith("ML document") else fix)
        )
    return decoded(raw)


def decoded(raw: bytes) -> str:
    """The text of bytes, as `read_text` has it."""
    text = raw.decode(given.encoding(raw), errors="replace").replace("\ufeff", "")
    return text.replace("\r\r\n", "\n").replace("\r\n", "\n").replace("\r", "\n")


def looks_like(text: str) -> str | None:
    """The format of a file by how it begins, A3M as FASTA; None where it is none of `BEGINS`."""
    text = text.strip(BLANK) + "\n"
    return next((name for name, begins in BEGINS.items() if re.match(begins, text)), None)


def parsed(text: str, form: str, path: Path) -> list[tuple[str, str]]:
    """Names and letters, those of an A3M with the insertions, of rows of any lengths. Dashes of any
    kind are gaps. `SourceError` where the text of the file `path` begins as another format."""
    text = DASHED.sub(lambda line: line[0].translate(DASHES), text.strip(BLANK)) + "\n"
    looks = looks_like(text)
    if looks != ("fasta" if form == "a3m" else form):
        raise SourceError(
            f"{path} is not an alignment in {form} format: expected "
            f"{EXPECTED[form]}, found {text.splitlines()[0][:40]!r}. "
            + WAYS.get(looks, CONVERT).format(looks, path)
        )
    if looks == "fasta":
        # Names are the first words of titles. The library's other parsers of FASTA accept less
        # before the first record, or lose names.
        flush = re.sub(r"^[ \t]+(?=>)", "", text, flags=re.MULTILINE)
        parsed = SimpleFastaParser(io.StringIO(REMARKS.sub(r"\1", flush)))
        return [
            ((title.split() or ["without a name"])[0], "".join(row.split()))
            for title, row in parsed
        ]
    if looks == "lines":
        return [(f"line-{number}", row) for number, row in enumerate(text.split(), 1)]
    return _blocks(text, looks, path)


def _blocks(text: str, form: str, path: Path) -> list[tuple[str, str]]:
    """Records of a file with a name and letters in each line, in one block or more. A name found
    twice in a block, which ends with an empty line or marks of conservation, is of two records."""
    parts = [
        part
        for part in re.split(r"(?m)^(?://|# STOCKHOLM).*$", text)
        if any(line.strip() and line[0] != "#" for line in part.splitlines())
    ]
    if len(parts) > 1:
        raise SourceError(
            f"{path} holds {len(parts)} alignments; give a file with the one you mean"
        )
    found, block = [], Counter()
    for line in "".join(parts).splitlines()[form == "clustal" :]:
        if not line.strip("*:. \t"):
            block.clear()
        elif line[0] != "#":
            name, *pieces = line.split()
            pieces = [part for part in pieces if not part.isdigit()]
            # Letters come in pieces of one length: what is shorter is of a name with spaces.
            while len(pieces) > 1 and len(pieces[0]) < len(pieces[1]):
                name = f"{name} {pieces.pop(0)}"
            found.append((name, block[name], "".join(pieces)))
            block[name] += 1
    # Blocks may follow each other without an empty line: the same names in the same order.
    order = [name for name, *_ in found]
    distinct = list(dict.fromkeys(order))
    joined = len(distinct) > 1 and order == distinct * (len(order) // len(distinct))
    rows = defaultdict(str)
    for name, number, letters in found:
        rows[name, 0 if joined else number] += letters
    return [(name, letters) for (name, _), letters in rows.items()]


def encode(
    path: Path, names: list[str], rows: list[str], kind: str, confirmed: bool = False
) -> tuple[np.ndarray, dict[str, int]]:
    """Tokens (N, L) uint8, and how many of which letters were ambiguous and became gaps. confirmed:
    whether rows of A, C, G and T are proteins, if `kind` says so. `SourceError` names record and
    column of a letter that the alphabet does not know, and the alphabet that fits."""
    length = len(rows[0])
    raw = _bytes(rows)
    tokens = _colours(kind)[raw].reshape(-1, length)
    fits = _fitting(rows, kind, confirmed)
    unknown = np.argwhere(tokens == UNKNOWN)
    if len(unknown):
        row, column = unknown[0]
        others = f" ({len(unknown)} letters like this)" if len(unknown) > 1 else ""
        raise SourceError(
            f"{path}: record {names[row]}, column {column + 1}: {rows[row][column]!r} is no letter "
            f"of the alphabet {kind}{others}. Expected {ALPHABETS[kind]['residues']}, "
            f"{ALPHABETS[kind]['ambiguous']} (read as gaps) or a gap ({' '.join(GAPS)}); "
            + (
                fits
                or "correct the letter, leave out what is no row, as a line of brackets (it may be "
                "given as the known contacts), or save the file as UTF-8"
            )
        )
    if fits:
        raise SourceError(f"{path}: alphabet: found {kind}; {fits}")
    doubtful = tokens == AMBIGUOUS
    tokens[doubtful] = GAP
    letters, counts = np.unique(raw[doubtful.ravel()], return_counts=True)
    return tokens, dict(zip(map(chr, letters.tolist()), counts.tolist(), strict=True))


def likely(rows: Sequence[str], kind: str, confirmed: bool = False) -> str:
    """The alphabet that explains more of the letters than `kind`, or that of nucleic acids where
    they are read as proteins; `kind` if it fits. confirmed: as of `encode`."""
    raw = _bytes(rows)
    shares, bases = _explained(raw)
    nucleic = bases.total() >= BASES * max(_residues(raw).sum(), 1) and shares["rna"] >= EXPLAINED
    if nucleic:
        best = "rna" if bases["U"] > bases["T"] else "dna"
        fits = kind != "protein" or (confirmed and not bases["U"])
    else:
        best = max(shares, key=shares.get)
        fits = shares[best] <= shares[kind]
    return kind if fits else best


def _fitting(rows: Sequence[str], kind: str, confirmed: bool) -> str:
    """A sentence that names the alphabet that is `likely`; '' if `kind` is."""
    best = likely(rows, kind, confirmed)
    if best == kind:
        return ""
    shares, bases = _explained(_bytes(rows))
    if shares[best] < EXPLAINED:
        return _no_alphabet(shares)
    nucleic = kind == "protein"
    why = (
        f"{BASES:.0%} or more are A, C, G, T or U" if nucleic else f"explained: {_percent(shares)}"
    )
    proteins = "; if they are proteins, give `alphabet_confirmed: true` as well"
    return f"the letters are those of {best} ({why}): give `alphabet: {best}`" + proteins * bool(
        nucleic and not bases["U"]
    )


def _bytes(rows: Sequence[str]) -> np.ndarray:
    """The letters of all rows in upper case, a byte each; 0 is no letter of any alphabet."""
    joined = re.sub(r"[^\x00-\x7f]", "\0", "".join(rows))
    return np.frombuffer(joined.upper().encode(), np.uint8)


def _residues(raw: np.ndarray) -> np.ndarray:
    """Counts of each byte, gaps left out."""
    counts = np.bincount(raw, minlength=256)
    counts[list(GAPS.encode())] = 0
    return counts


def _explained(raw: np.ndarray) -> tuple[dict[str, float], Counter]:
    """The share of the letters that each alphabet knows, and how often the bases come."""
    counts = _residues(raw)
    total = max(counts.sum(), 1)
    shares = {name: counts[_colours(name) != UNKNOWN].sum() / total for name in ALPHABETS}
    return shares, Counter({letter: int(counts[ord(letter)]) for letter in "ACGTU"})


def _percent(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in shares.items())


def _no_alphabet(shares: dict[str, float]) -> str:
    return (
        f"no alphabet explains the letters ({_percent(shares)}): is it an alignment, and without "
        "lines of brackets?"
    )


def _colours(kind: str) -> np.ndarray:
    """The colour of each byte, letters in upper case."""
    alphabet, colours = ALPHABETS[kind], np.full(256, UNKNOWN, np.uint8)
    for number, letter in enumerate(alphabet["residues"], 1):
        colours[ord(letter)] = number
    for letter, same in alphabet["read_as"].items():
        colours[ord(letter)] = colours[ord(same)]
    colours[list(alphabet["ambiguous"].encode())] = AMBIGUOUS
    colours[list(GAPS.encode())] = GAP
    return colours


def split(
    tokens: np.ndarray, source: dict, threads: int, labels: np.ndarray | None = None
) -> tuple[dict, int | None]:
    """The rows of each split, ascending, and the number of clusters (None for a random split).

    Clusters in random order fill the test split and then the validation split as long as they fit.
    All others are for training. labels: the cluster (N,) of each of tokens (N, L), where known.
    """
    wanted = {
        key: max(2, round(source["split"][key] * len(tokens))) for key in ("test", "validation")
    }
    if len(tokens) - sum(wanted.values()) < 2:
        raise SourceError(
            f"split: found {len(tokens)} sequences, expected {wanted['test']} for test, "
            f"{wanted['validation']} for validation and 2 to train on; give more sequences"
        )
    generator = np.random.default_rng(source["seed"])
    if source["split"].get("by") == "random":
        groups, clusters = generator.permutation(len(tokens))[:, None], None
    else:
        if labels is None:
            labels = sequence_weights.neighbours(tokens, source["identity"], threads).clusters
        _, members = np.unique(labels, return_inverse=True)
        groups = np.split(np.argsort(members, kind="stable"), np.cumsum(np.bincount(members))[:-1])
        clusters = len(groups)
        groups = [groups[number] for number in generator.permutation(clusters)]
    parts = {key: [] for key in SPLITS}
    sizes = dict.fromkeys(SPLITS, 0)
    for group in groups:
        key = next((k for k, most in wanted.items() if sizes[k] + len(group) <= most), "train")
        parts[key].append(group)
        sizes[key] += len(group)
    for key in SPLITS:
        least = max(2, math.ceil(ENOUGH * wanted.get(key, 2)))
        if sizes[key] < least:
            raise SourceError(
                f"split: at identity {source['identity']} the {len(tokens)} sequences make "
                f"{clusters} clusters, the largest of {max(map(len, groups))}; the {key} split "
                f"comes out with {sizes[key]} sequences, expected at least {least}. Raise "
                "`identity`, or give `split` the key `by: random` (held-out sequences then have "
                "near copies among the training ones)"
            )
    return {key: np.sort(np.concatenate(part)) for key, part in parts.items()}, clusters
