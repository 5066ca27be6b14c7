"""Pair models, and scores of pairs, in the files of other programs.

All of these files have the signs of log p, as `PairModel` has: a large coupling makes two colours
likely together. A model is written and read in the gauge that it has, which changes no probability
and which `PairModel.zero_sum` sets. Numbers have all their digits. CCMpred's `-r` is read only.

| program | what | sites | gauge that the program writes |
| --- | --- | --- | --- |
| adabmDCA | lines `J i j a b value` of i < j, `h i a value` | from 0 | none, or zero-sum |
| CCMpred, `-r` | 20 fields a line; `# i j`, then 21 x 21 | from 0 | of L2; gaps have no field |
| CCMpred | a matrix of scores, L lines of L | | |
| EVcouplings | pairs `i A_i j A_j fn cn` | the reference's numbers | |
| CASP | pairs `i j 0 8 p` (RR), read by `measure.known_contacts` | the reference's, from 1 | |
"""

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.data import SourceError
from manybody.data.alignment import ALPHABETS, GAP, read_text
from manybody.data.given import named_file
from manybody.data.pair_model import PairModel, of_pairs
from manybody.io.atomic import atomic, write_text

COLOURS = {kind: "-" + letters["residues"] for kind, letters in ALPHABETS.items()}
CCMPRED = "ARNDCQEGHILKMFPSTWYV-"  # the order of its colours
ADABMDCA = "lines `J i j a b value` and `h i a value`, with the fields of all colours"
SCORES = ["i", "A_i", "j", "A_j", "fn", "cn"]  # of EVcouplings


def read_model(path: str | Path) -> PairModel:
    """The model in a file of this package, of adabmDCA or of CCMpred (`-r`)."""
    named = named_file(
        str(path),
        "model",
        "a folder that `manybody family ALIGNMENT` made, or a model of adabmDCA or CCMpred",
    )
    with named.open("rb") as file:
        if file.read(9)[8:] == b"{":  # after the length of the header
            return PairModel.load(path)
    of_adabmdca = re.match(r"(\s|#.*\n)*[Jh]\s", read_text(named))
    return (read_adabmdca if of_adabmdca else read_ccmpred)(path)


def write_adabmdca(path: str | Path, model: PairModel) -> None:
    """Writes the parameters as adabmDCA reads them (`load_params`), colours as letters."""
    letters = model.about["alphabet"]
    with atomic(path) as temporary, temporary.open("w") as file:
        for i, j in zip(*np.triu_indices(model.length, 1), strict=True):
            file.writelines(
                f"J {i} {j} {letters[a]} {letters[b]} {float(value)!r}\n"
                for (a, b), value in np.ndenumerate(model.couplings[i, j])
            )
        file.writelines(
            f"h {i} {letters[a]} {float(value)!r}\n"
            for (i, a), value in np.ndenumerate(model.fields)
        )


def read_adabmdca(path: str | Path) -> PairModel:
    """The model of a file of adabmDCA with all fields; couplings that are not there are zero, those
    of a pair that comes in both orders are added, as there. Colours are letters, or numbers as its
    older programs write them: 0 for the gap, then the residues in the order of their letters.
    `SourceError` for a file that is not like this."""
    names = ["what", "i", "j", "a", "b", "value"]
    text = io.StringIO(read_text(Path(path)))
    try:
        rows = pd.read_csv(
            text, sep=r"\s+", names=names, dtype=str, comment="#", keep_default_na=False
        )
        pairs, single = (rows[rows["what"] == what] for what in "Jh")
        kind, number = _colours_of(set(single["j"]))
        i, j = (pairs[name].astype(np.uint32) for name in "ij")
        values, given = pairs["value"].astype(float), single["a"].astype(float)
        site = single["i"].astype(np.uint32)
        fields = np.full((site.max() + 1, len(COLOURS[kind])), np.nan)
        fields[site, single["j"].map(number)] = given
        couplings = np.zeros((len(fields),) * 2 + fields.shape[1:] * 2)
        couplings[i, j, pairs["a"].map(number), pairs["b"].map(number)] = values
    except (ValueError, LookupError, ArithmeticError) as error:
        raise _unlike(path, "adabmDCA", ADABMDCA) from error
    finite = np.isfinite(fields).all() and np.isfinite(values).all()
    if not finite or len(pairs) + len(single) < len(rows) or (i == j).any():
        raise _unlike(path, "adabmDCA", ADABMDCA)
    return PairModel(fields, couplings + couplings.transpose(1, 0, 3, 2), _about(kind))


def read_ccmpred(path: str | Path) -> PairModel:
    """The model of proteins in a file that CCMpred wrote (`-r`); the fields of gaps are zero.
    `SourceError` for a file that is not like this."""
    # CCMgen adds a line of what the model was made of.
    first, *blocks = re.sub("(?m)^#>META>.*", "", read_text(Path(path))).split("#")
    colours = len(CCMPRED)
    place = [CCMPRED.index(letter) for letter in COLOURS["protein"]]
    try:
        fields = np.array(first.split(), float).reshape(-1, colours - 1)
        numbers = np.array(" ".join(blocks).split(), float).reshape(len(blocks), -1)
        couplings = numbers[:, 2:].reshape(-1, colours, colours)
        sites = np.transpose(np.triu_indices(len(fields), 1))
        whole = np.isfinite(fields).all() and np.isfinite(couplings).all()
        if not whole or not np.array_equal(numbers[:, :2], sites):
            raise ValueError
    except ValueError as error:
        wanted = (
            "L lines of 20 fields, then `# i j` and 21 lines of 21 couplings for each i < j (of an "
            f"alignment, `manybody family {path}` makes the folder to give instead)"
        )
        raise _unlike(path, "CCMpred", wanted) from error
    fields = np.pad(fields, ((0, 0), (0, 1)))[:, place]
    couplings = couplings[:, place][..., place]
    return PairModel(fields, of_pairs(couplings, len(fields)), _about("protein"))


def _colours_of(letters: set[str]) -> tuple[str, dict[str, int]]:
    """The kind of sequences whose colours have these names, and the number of each name."""
    for kind, colours in COLOURS.items():
        for names in (list(colours), [*map(str, range(len(colours)))]):
            if letters == set(names):
                return kind, {name: number for number, name in enumerate(names)}
    raise ValueError(f"no alphabet has the letters {''.join(sorted(letters))}")


def _about(kind: str) -> dict:
    return dict(alphabet=COLOURS[kind], gap=GAP, kind=kind)


def _unlike(path: str | Path, program: str, wanted: str) -> SourceError:
    return SourceError(
        f"{path} cannot be read as a file of {program}: found {read_text(Path(path))[:40]!r}, "
        f"expected {wanted}; is it whole, and of aligned sequences?"
    )


def write_matrix(path: str | Path, scores: np.ndarray) -> None:
    """Writes scores (L, L) as CCMpred does, a line a site, with all digits."""
    with atomic(path) as temporary:
        np.savetxt(temporary, scores, "%.17g", "\t")


def write_evcouplings(path: str | Path, pairs: pd.DataFrame, about: dict) -> None:
    """Writes `measure.contacts.pairs` (i, j, score, apc) as EVcouplings' CSV, best first: with
    numbers and residues of the reference record in `about`, without sites where it has a gap."""
    known = np.array([number is not None for number in about["numbers"]])
    ranked = pairs[known[pairs["i"] - 1] & known[pairs["j"] - 1]]
    ranked = ranked.sort_values("apc", ascending=False, kind="stable")
    columns = {"fn": ranked["score"], "cn": ranked["apc"]}
    for name in "ij":
        columns[name] = [about["numbers"][site - 1] for site in ranked[name]]
        columns[f"A_{name}"] = [about["aligned"][site - 1].upper() for site in ranked[name]]
    with atomic(path) as temporary:
        pd.DataFrame(columns)[SCORES].to_csv(temporary, index=False)


def write_casp(path: str | Path, scores: np.ndarray, about: dict, separation: int) -> None:
    """Writes scores (L, L) of pairs at least `separation` apart in CASP's format RR, the best
    first. Its target is the reference record in `about`, whose residues in columns count from 1:
    pairs of columns where it has a gap are left out.

    p = s / (s + s_n), with s_n the n-th best score of n residues, 0 for s < 0: half for that pair,
    as a fold of n residues has about n contacts. It ranks pairs, and is no checked probability.
    """
    sites = [site for site, number in enumerate(about["numbers"]) if number is not None]
    letters = "".join(about["aligned"][site] for site in sites).upper()
    i, j = np.triu_indices(len(sites), separation)
    found = np.fmax(scores[np.ix_(sites, sites)][i, j], 0)  # 0 where there is no score
    order = np.argsort(-found, kind="stable")
    i, j, found = i[order] + 1, j[order] + 1, found[order]
    middle = found[: len(sites)].min(initial=np.inf) or 1.0
    lines = ["PFRMAT RR", "REMARK p ranks the pairs and is not calibrated", "MODEL 1"]
    lines += [letters[start : start + 50] for start in range(0, len(letters), 50)]
    lines += map("{} {} 0 8 {:.6f}".format, i, j, found / (found + middle))
    write_text(path, "\n".join([*lines, "END", ""]))
