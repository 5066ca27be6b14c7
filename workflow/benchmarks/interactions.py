"""Forwards that the interactions of one target in one context take: ours against shapiq's.

A BERT of 2 layers and width 64 is trained on the demo's text at L = 128. A triple is a target i in
a block s of held-out text with 16 free positions, the 8 on either side, which hold the tokens of s
or those of another block r; all others are text, i is masked. The truth of each of 20 triples
are all 2^16 contexts, in single precision. Asked are, with ĝ(T) the Walsh coefficients of the
centred logits g and |.| their norm under mu (docs/science/controls.md, section 6),

    M_1 = sum_T |T| |ĝ(T)|^2,  M_2 = sum_T C(|T|, 2) |ĝ(T)|^2,  and |ĝ({j, k})|^2 of 120 pairs.

The error is the relative L2 distance from the truth over all triples (and pairs), the root mean
square over `REPEATS` repetitions; beside it stands that of the mean of M_k over the triples, which
is what a spectrum of a text is. A budget counts the forwards of one triple.

**Ours.** M_k: the draws of `evaluation.spectrum`, with importance by distance from the target, 3
forwards a draw of M_1 (one of them is for Var g) and 4 of M_2. Pairs: `flips.alternating` of each
pair in the same number n of random contexts; of the n vectors D, whose mean is ĝ up to a sign,
|ĝ|^2 = (|sum D|^2 - sum |D|^2) / (n (n - 1)) without bias.

**Theirs** are games v of 16 players with one number as payoff. The norm is a sum of squares of
coordinates c of g in a basis that is orthonormal under mu; each of those that hold all but
`DROPPED` of the variance of a triple is a game, and all games share the coalitions, so that a
forward is counted once. From their indices: a player is present where m_j = 1, and with
v(m) = sum_{S within m} a(S), the Moebius coefficients,

    ĝ(T) = (-1)^|T| sum_{S contains T} 2^-|S| a(S).

`RegressionFBII`, faithful Banzhaf interactions up to order k, gives a(S), |S| <= k, of the
polynomial of degree k that is nearest to v over uniform coalitions. `ProxySPEX` gives the FBII of
all orders, which are a(S) themselves, of a sparse Walsh transform that is found by boosted trees.
`SVARMIQ` estimates the Banzhaf interaction index BII({j, k}) = 4 ĝ({j, k}) and has nothing beyond
its largest order, so only pairs are asked of it. It documents no other way to uniform coalitions
than `sampling_weights`, which are binomial here.

shapiq runs in a process of its own with the packages of `envs/shapiq.txt`.
"""

import json
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.nn import functional
from transformers import get_cosine_schedule_with_warmup

from benchmarks.harness import said, timed
from manybody import models
from manybody.io.progress import Progress
from manybody.io.sequences import Sequences
from manybody.measure import flips, spectrum
from manybody.measure.flips import Conditionals

LENGTH, FREE, TRIPLES = 128, 16, 20
SIZES = dict(architecture="bert", layers=2, heads=4, width=64, mlp=128, length=LENGTH)
STEPS, BATCH, RATE, MASKS = 4000, 32, 3e-3, 0.15
PAIRS = list(combinations(range(FREE), 2))
DROPPED = 1e-4
REPEATS, CHUNKS, CONTEXTS = 8, (20, 80), (8, 32)  # of ours: chunks of 64 draws, contexts of a pair
# Method, order, forwards, repetitions, triples. A fit of ProxySPEX takes up to a minute a game.
LADDERS = [
    *(("RegressionFBII", 2, budget, 1, TRIPLES) for budget in (256, 1024, 4096)),
    *(("RegressionFBII", 3, budget, 1, TRIPLES) for budget in (1024, 2048, 4096, 8192)),
    *(("SVARMIQ", 2, budget, 1, TRIPLES) for budget in (1024, 4096)),
    *(("ProxySPEX", 4, budget, 1, 1) for budget in (1024, 4096)),
]


def trained(tokens: np.ndarray, vocabulary: int, steps: int = STEPS, progress=None):
    """A BERT of tokens (N, L), 15 % of them masked at once.

    With one mask a copy, as the pipeline trains, L = 128 would take nineteen times as many
    forwards. The embedding of positions starts as waves, so that what one position learns of its
    neighbours serves the others.
    """
    torch.manual_seed(0)
    model = models.build({**SIZES, "vocabulary": vocabulary})
    rates = LENGTH ** -(torch.arange(SIZES["width"] // 2) / (SIZES["width"] // 2))
    waves = torch.arange(LENGTH)[:, None] * rates
    places = model.encoder.embeddings.position_embeddings.weight
    places.data = torch.cat([waves.sin(), waves.cos()], dim=1) * places.std() * 2**0.5
    optimizer = torch.optim.AdamW(model.parameters(), RATE, (0.9, 0.98), weight_decay=0.0)
    schedule = get_cosine_schedule_with_warmup(optimizer, 100, steps)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        batch = torch.from_numpy(tokens[rng.integers(0, len(tokens), BATCH)].astype(np.int64))
        mask = torch.from_numpy(rng.random(batch.shape) < MASKS)
        features = model.features(batch, mask)[mask]
        loss = functional.cross_entropy(model.head(features), batch[mask])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if progress is not None:
            progress.update(1, loss=loss.item())
    return model.eval()


def contexts(model, s: np.ndarray, r: np.ndarray, target: int, metric) -> torch.Tensor:
    """Coordinates (2^16, d) of g, whose squares add up to |g|^2, but for a constant vector: bit a
    of a row says whether the a-th free position, by distance from the target, holds r's token."""
    inner, root = metric
    parts = flips.cube(inner, s, r, free(target), np.array([target]))
    return torch.cat([(features[:, 0] @ root).float() for _, features in parts])


def free(target: int) -> np.ndarray:
    """The 16 positions next to a target, the nearest first."""
    steps = np.arange(1, FREE // 2 + 1)
    return np.stack([target - steps, target + steps], axis=1).ravel()


def transformed(values: np.ndarray) -> np.ndarray:
    """The Walsh coefficients (2^16, d) of `values`, by the subset in binary."""
    shape = values.shape
    for bit in range(FREE):
        pairs = values.reshape(-1, 2, 2**bit, shape[1])
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
    return values.reshape(shape) / len(values.reshape(shape))


def answers(squares: np.ndarray) -> dict:
    """M_1, M_2 and the squares of all pairs, of those of all coefficients (2^16,)."""
    size = np.array([subset.bit_count() for subset in range(2**FREE)])
    pairs = [squares[2**j + 2**k] for j, k in PAIRS]
    return {"M_1": size @ squares, "M_2": (size * (size - 1) // 2) @ squares, "pairs": pairs}


class Ours:
    """The draws of the package on triples whose contexts are in a table (triples, 2^16, d).

    A triple is a sequence of 17 tokens: the target, then the free positions by distance. Token
    2 t + b is that of triple t, from its s (b = 0) or its r (b = 1).
    """

    def __init__(self, table: torch.Tensor, seed: int):
        self.table, count = table, len(table)
        asked = Conditionals(self._rows, table.shape[2], batch=4096)
        s = np.tile(2 * np.arange(count)[:, None], FREE + 1)
        made = Conditionals(self._rows, 2 * count)
        self.draws = spectrum.Draws(made, np.vstack([s, s + 1]), None, "text", (), 1, seed)
        self.draws.s, self.draws.r, self.draws.targets = s, s + 1, np.array([0])
        self.draws.blocks, self.draws.free = np.arange(count), np.ones(s.shape, bool)
        self.draws.inner = asked
        self.draws.metric = torch.eye(table.shape[2], dtype=torch.float64)
        self.draws.learn_profile()

    def _rows(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        places = (tokens[:, 1:] & 1) @ 2 ** torch.arange(FREE)
        return self.table[tokens[:, 0] // 2, places]

    def orders(self, order: int, chunks: int) -> np.ndarray:
        """M_k of every triple from `chunks` times 64 draws."""
        rows = pd.concat([self.draws.sets(order, number) for number in range(chunks)])
        rows = rows[rows["order"] == order]
        sums = (rows["weight"] * rows["value"]).groupby(rows["block"]).sum()
        draws = rows.groupby("block")["draw"].nunique()
        return (sums / draws).to_numpy()

    def pairs(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Squares (triples, 120) of pairs, from `number` contexts of each."""
        found = np.empty((len(self.table), len(PAIRS)))
        targets = np.zeros((number, 1), int)
        for triple in range(len(self.table)):
            for place, pair in enumerate(PAIRS):
                bits = rng.integers(0, 2, (number, FREE + 1))
                start, chosen = 2 * triple + bits, np.tile(np.array(pair) + 1, (number, 1))
                given = start, 2 * triple + 1 - bits, chosen, targets
                d = flips.alternating(self.draws.inner, *given)[0][:, 0]
                d *= torch.from_numpy((-1.0) ** bits[:, chosen[0]].sum(1))[:, None]
                both = float((d.sum(0) ** 2).sum() - (d**2).sum())
                found[triple, place] = both / (number * (number - 1))
        return found


def measure(train: str, validation: str, peers: str) -> list[dict]:
    """Rows `method, order, asked, budget, each, mean, seconds`: relative errors, and seconds of a
    triple beside its forwards. The log says how long a forward takes.

    train, validation: files of sequences of the demo's text, whose blocks follow one another;
    peers: the folder with shapiq's packages.
    """
    with Progress(STEPS, "steps", "BERT") as progress:
        model = trained(_joined(train), Sequences.open(train).vocabulary, progress=progress)
    with torch.no_grad():
        table, forward = tabulated(model, _joined(validation))
    truth = [answers((transformed(each.double().numpy()) ** 2).sum(1)) for each in table]
    truth = {name: np.array([each[name] for each in truth]) for name in truth[0]}
    print(f"{forward:.3g} s a forward; M_2 / M_1 = {truth['M_2'].sum() / truth['M_1'].sum():.3f}")
    return pd.concat([_ours(table, truth), _theirs(table, truth, peers)]).to_dict("records")


def tabulated(model, text: np.ndarray) -> tuple[torch.Tensor, float]:
    """The contexts of all triples (triples, 2^16, d) of blocks (N, 128) of held-out text, and
    seconds of processor time of a forward."""
    mu = flips.unigram(text, model.vocabulary)
    metric = flips.without_head(flips.of_model(model), mu)
    rng, tables, spent = np.random.default_rng(1), [], 0.0
    blocks = text[rng.permutation(len(text))[: 2 * TRIPLES]].astype(np.int64)
    with Progress(TRIPLES, "triples", "all contexts") as progress:
        for s, r in zip(blocks[:TRIPLES], blocks[TRIPLES:], strict=True):
            target = int(rng.integers(FREE // 2, LENGTH - FREE // 2))
            found, _, busy = timed(contexts, model, s, r, target, metric)
            tables.append(found)
            spent += busy
            progress.update(1)
    return torch.stack(tables), spent / TRIPLES / 2**FREE


def _joined(path: str) -> np.ndarray:
    """Consecutive blocks of a text, joined to L = 128."""
    data = Sequences.open(path)
    count = LENGTH // data.length
    return np.asarray(data[: len(data) // count * count]).reshape(-1, LENGTH)


def _errors(name: str, found: list[np.ndarray], truth: np.ndarray) -> dict:
    """Relative errors over all triples, and of their mean, root mean squares over repetitions."""
    each = [np.linalg.norm(one - truth) / np.linalg.norm(truth) for one in found]
    mean = [one.mean() / truth.mean() - 1 for one in found]
    each, mean = (float(np.sqrt(np.mean(np.square(found)))) for found in (each, mean))
    return {"asked": name, "each": each, "mean": mean}


def _ours(table: torch.Tensor, truth: dict) -> pd.DataFrame:
    """Errors at budgets (forwards a triple), and seconds beside the forwards."""
    rows, count = [], len(table)
    for name, order in (("M_1", 1), ("M_2", 2)):
        for chunks in CHUNKS:
            begin = time.process_time()
            found = [Ours(table, seed).orders(order, chunks) for seed in range(REPEATS)]
            spent = (time.process_time() - begin) / REPEATS / count
            budget = (64 * chunks * (2**order + (order == 1)) + 3 * spectrum.PILOT) / count
            rows.append(_errors(name, found, truth[name]) | dict(budget=budget, seconds=spent))
    for number in CONTEXTS:
        rng = np.random.default_rng(number)
        found, _, spent = timed(lambda given: Ours(table, 0).pairs(*given), (number, rng))
        errors = _errors("pairs", [found], truth["pairs"])
        rows.append(errors | dict(budget=4 * number * len(PAIRS), seconds=spent / count))
    return pd.DataFrame(rows).assign(method="ours", order=0)


def _theirs(table: torch.Tensor, truth: dict, peers: str) -> pd.DataFrame:
    """The same of each of shapiq's ways."""
    games, kept = {"asked": json.dumps(LADDERS)}, []
    for number, values in enumerate(table.double().numpy()):
        values -= values.mean(0)
        squares, axes = np.linalg.eigh(values.T @ values / len(values))
        left = np.cumsum(squares) > DROPPED * squares.sum()
        games[f"triple{number}"] = values @ axes[:, left]
        kept.append(int(left.sum()))
    print(f"games a triple: {np.mean(kept):.1f}", flush=True)
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "games.npz"
        np.savez(path, **games)
        found = said("benchmarks.shapiq_peer", str(path), first=(peers,))
    every, rows = pd.DataFrame([json.loads(line) for line in found.splitlines()]), []
    for (method, order, budget), part in every.groupby(["method", "order", "budget"]):
        same = dict(method=method, order=order, budget=budget, seconds=part["seconds"].mean())
        for name in ("pairs",) if method == "SVARMIQ" else ("M_1", "M_2", "pairs"):
            runs = [run.sort_values("triple") for _, run in part.groupby("repeat")]
            found = [np.array(run[name].to_list()) for run in runs]
            rows.append(_errors(name, found, truth[name][: len(found[0])]) | same)
    return pd.DataFrame(rows)
