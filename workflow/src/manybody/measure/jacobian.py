"""The categorical Jacobian of a masked language model: which sites of a sequence act on which.

    J_ij(a, b) = logit of b at site j where site i is exchanged for a

of the q residues a and b alone, less its means over i, a, j and b. The form of Zhang et al. (2024,
*Protein language models learn evolutionary statistics of interacting sequence motifs*) masks
nothing, so that the logits at j see the residue there, and takes q L forward passes. `masked` hides
the target j, as a pair model's conditionals do, and takes L times as many. The score of a pair is
the norm of (J_ij(a, b) + J_ji(b, a)) / 2, with the average product correction of `contacts`.

The Jacobian sees one context, the sequence, and pairs alone; `beyond_pairs` measures the rest.
"""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer

from manybody.data import alignment, given, own_text, own_tokenizer
from manybody.data.pair_model import PairModel
from manybody.io.atomic import atomic, read_json, to_json
from manybody.io.code_digest import code_digest
from manybody.io.devices import pick
from manybody.io.lease import lease
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.measure import contacts, flips, known_contacts, own_model
from manybody.measure.spectrum import spectrum
from manybody.models.base import Model
from manybody.models.pretrained import layout
from manybody.models.pretrained.network import Pretrained

FORMS = {
    "unmasked": "categorical Jacobian, nothing masked (Zhang et al. 2024)",
    "masked": "Jacobian with the target masked",
}
FEW = 20_000  # forward passes that the masked form may take unasked
BLOCKS, LEAST = 64, 2000  # random contexts of a sequence, and the fewest forward passes on them
ALIKE = 0.9  # least share of a family's reference that must be residues of the sequence


class Question(NamedTuple):
    """A model, and a sequence of its tokens (T,), of which those at `sites` (L,) are letters.

    residues (q,): the tokens that letters are exchanged for. about: the `document` of the sequence,
    which has under `said` what was read. job: what names all of it.
    """

    network: Pretrained
    tokens: np.ndarray
    sites: np.ndarray
    residues: np.ndarray
    about: dict
    job: str


def opened(model: str, asked: str) -> Question:
    """Question to the model in a folder, or to its last checkpoint: a sequence of letters, or the
    first of a file of sequences. `Refusal` says what of the two cannot be used."""
    folders, own = own_model.checkpoints(model)
    last = folders[-1]
    if layout.objective(read_json(last / layout.CONFIG), str(last)) != "masked":
        raise Refusal(
            f"found {last}, a causal model, whose logits see one side only; expected a masked "
            f"one; take it, or ask this one by manybody spectrum",
            "weights",
        )
    bpe, special = own_tokenizer.read(own, str(own)), own_tokenizer.described(own)
    about = document(asked, bpe)
    letters = about["aligned"]
    (tokens, *residues), unknown = own_text.numbered([letters, *about["alphabet"][1:]], bpe)
    if len(tokens) != len(letters) or len(set(map(tuple, residues))) == 1:  # of unknown letters
        raise Refusal(
            f"found one that makes {len(tokens)} tokens of {len(letters)} residues"
            f"{''.join(f' ({one})' for one in unknown)}; expected a token each, of which residues "
            f"have their own; take a model of single residues, in capitals, or leave out letters "
            f"that it does not know",
            "tokenizer",
        )
    about["said"] += unknown
    whole = np.array([*special["before"], *tokens, *special["after"]])
    sites = len(special["before"]) + np.arange(len(tokens))
    network = Pretrained.open(last, len(whole), "masked", own).to(pick("auto"))
    files = [(path.name, path.stat().st_mtime_ns) for path in sorted(last.iterdir())]
    job = to_json([str(last.resolve()), files, whole.tolist(), code_digest(Path(__file__))])
    return Question(network, whole, sites, np.ravel(residues), about, job)


def measured(asked: Question, masked: bool, parts: Path) -> tuple[dict[str, np.ndarray], pd.Series]:
    """Scores (L, L) by form, and the row of `beyond_pairs`.

    masked: whether to measure that form as well, as is done where it takes few passes. `parts`
    keeps what was measured, from which the same job goes on, for the caller to remove.
    """
    kept = parts / hashlib.sha256(asked.job.encode()).hexdigest()[:32]
    given, passes = asked[:4], len(asked.sites) * len(asked.residues)
    forwards, masked = max(LEAST, passes), masked or passes * len(asked.sites) <= FEW
    total, scores = passes * (1 + masked * len(asked.sites)) + forwards, {}
    label = f"Jacobian of {asked.network.about.label} on {asked.about['reference']}"
    with lease(parts), Progress(total, "forwards", label) as progress:
        for form in FORMS if masked else ["unmasked"]:
            scores[form] = norms(categorical(*given, form, kept, progress))
        return scores, beyond_pairs(*given, forwards, progress)


def document(asked: str, bpe: Tokenizer) -> dict:
    """Document of a sequence, as of an alignment's reference record (`reference`, `aligned`
    letters, `numbers`), with the `kind` and the `alphabet` of residues that the tokenizer has."""
    rows, passed = [("the sequence", asked.upper())], []
    if os.path.exists(asked) or not asked.isalpha():
        expected = "the letters of a sequence, or a file of sequences such as FASTA"
        path = given.named_file(asked, "sequence", expected)
        table = path.suffix.lower() in given.WRITTEN  # for which `text_files` has a way to texts
        files = [path] if table else list(given.text_files([asked], "sequence"))
        rows, passed = own_text.records(files, bpe)
        if not rows:
            raise Refusal(f"found {path}; expected {expected}; name one", "sequence")
    name, letters = rows[0]
    if len(letters) < 2:
        raise Refusal(f"found {name}, {letters}; expected two residues or more", "sequence")
    record = alignment.reference(Path(asked), [name], [letters], "fasta", None)
    about = dict(zip(("reference", "aligned", "numbers"), record, strict=False))
    kind = own_text.kind_of(bpe)
    about |= {"kind": kind, "alphabet": "-" + alignment.ALPHABETS[kind]["residues"]}
    first = [f"{name} is the first of {len(rows)} sequences"] * (len(rows) > 1)
    return about | {"said": [*first, *passed, record[-1], *own_text.doubtful([letters], bpe)]}


@torch.no_grad()
def categorical(
    model: Model,
    tokens: np.ndarray,
    sites: np.ndarray,
    residues: np.ndarray,
    form: str = "unmasked",
    kept: Path | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """J (L, q, L, q), indexed i, a, j, b, less its means over each of the four, of residues (q,)
    at the sites (L,) of tokens (T,): 4 (q L)^2 bytes in single precision.

    kept: a folder where what was measured stays, from which the same call goes on.
    """
    asked, count, parts = flips.of_model(model), len(residues), []
    size = max(1, asked.batch // count)
    for first in range(0, len(sites), size):
        here = sites[first : first + size]
        path = kept and kept / f"{form}-{first}-{len(here)}.npy"
        if there := bool(path and path.is_file()):
            parts.append(np.load(path))
        else:
            changed = np.tile(tokens, (len(here), count, 1))
            changed[np.arange(len(here)), :, here] = residues
            logits = _logits(model, asked, changed.reshape(-1, len(tokens)), sites, form)
            shape = len(here), count, len(sites), count
            parts.append(logits[..., residues].cpu().numpy().reshape(shape))
            if path:
                with atomic(path) as temporary, temporary.open("wb") as opened:
                    np.save(opened, parts[-1])
        if progress is not None:
            each = len(sites) if form == "masked" else 1
            progress.update(len(here) * count * each, before=there)
    found = np.concatenate(parts)
    if not np.isfinite(found).all():
        raise Refusal("the model gave logits that are not finite; take another checkpoint")
    for axis in range(4):
        found -= found.mean(axis, dtype=np.float64, keepdims=True)
    return found


def _logits(
    model: Model, asked: flips.Conditionals, changed: np.ndarray, sites: np.ndarray, form: str
) -> torch.Tensor:
    """Logits (n, L, |V|) at sites (L,) of sequences changed (n, T)."""
    of, parts = next(model.parameters()), []
    for part in np.split(changed, range(asked.batch, len(changed), asked.batch)):
        if form == "masked":
            each = [flips.ask(asked, part, np.full((len(part), 1), site)) for site in sites]
            parts.append(torch.cat(each, dim=1).to(of.dtype))
        else:
            parts.append(model(torch.from_numpy(part).to(of.device))[:, sites])
    return torch.cat(parts)


def norms(jacobian: np.ndarray) -> np.ndarray:
    """Scores (L, L) of a Jacobian (L, q, L, q): norms of (J_ij(a, b) + J_ji(b, a)) / 2, i != j."""
    found = np.zeros((len(jacobian), len(jacobian)))
    for site, of_site in enumerate(jacobian):  # of_site (a, j, b), and (j, b, a) of the others
        both = of_site.transpose(1, 0, 2) + jacobian[:, :, site].transpose(0, 2, 1)
        found[site] = np.sqrt(np.square(both / 2, dtype=np.float64).sum((1, 2)))
    np.fill_diagonal(found, 0)
    return found


def beyond_pairs(
    model: Model,
    tokens: np.ndarray,
    sites: np.ndarray,
    residues: np.ndarray,
    forwards: int,
    progress: Progress | None = None,
) -> pd.Series:
    """The row of M_2 of `spectrum` where residues of one sequence (T,) are exchanged for others,
    drawn by their shares in it. At most a share M_2 / Var g of the variance of the logits needs
    three residues or more, the target among them."""
    mu = np.zeros(model.vocabulary)
    mu[residues] = np.bincount(tokens[sites], minlength=model.vocabulary)[residues] + 0.5
    found = spectrum(
        model,
        np.tile(tokens, (2 * BLOCKS, 1)),
        mu=mu / mu.sum(),
        orders=2,
        law="unigram",
        special=tuple(np.flatnonzero(mu == 0).tolist()),
        forwards=forwards,
        progress=progress,
    ).table
    return found[(found["quantity"] == "M") & (found["order"] == 2)].iloc[0]


def compared(
    maps: dict[str, np.ndarray], real: np.ndarray, known: np.ndarray, kind: str
) -> list[str]:
    """Sentences on how many of the best L/5, L/2 and L pairs of each of the maps (L, L) are `real`
    contacts, of those `known` (both (L, L), bool), 6 apart or more in proteins, else 4."""
    said, least = [], 6 if kind == "protein" else 4
    for name, scores in maps.items():
        shares = contacts.precision(scores, real, least, known & np.isfinite(scores))
        ends = [shares[: max(len(real) // part, 1)][-1:] for part in (5, 2, 1)]
        shown = ", ".join(f"{share:.2f}" for end in ends for share in end) or "no pairs"
        said.append(
            f"contacts of the best L/5, L/2, L pairs {least} apart: {shown} "
            f"({FORMS.get(name, name)})"
        )
    return said


def of_family(path: Path, about: dict) -> np.ndarray:
    """Corrected scores (L, L) of a family's model (`PairModel`) between the residues of a sequence
    (`document`), nan where the family has no column of them. The family's reference record is
    aligned with the sequence; `Refusal` where less than 90 % of its residues are the same."""
    model = PairModel.load(path / "model.safetensors" if path.is_dir() else path)
    columns = np.flatnonzero([number is not None for number in model.about["numbers"]])
    record = "".join(model.about["aligned"][place] for place in columns)
    (ours, theirs), same = known_contacts.aligned(about["aligned"], record, about["kind"])
    if same < ALIKE * len(record):
        raise Refusal(
            f"found {path}, of whose reference {model.about['reference']} {same} of "
            f"{len(record)} residues are in {about['reference']}; expected {ALIKE:.0%}; give "
            f"the family of this sequence",
            "--family",
        )
    found, columns = np.full((len(about["aligned"]),) * 2, np.nan), columns[theirs]
    scores = contacts.apc(model.norms(model.about.get("gap")))
    found[np.ix_(ours, ours)] = scores[np.ix_(columns, columns)]
    return found
