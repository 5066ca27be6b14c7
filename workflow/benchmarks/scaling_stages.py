"""The stages whose growth `scaling` measures, each beside the count of its operations.

A stage is made of sizes, and is the call that is timed with the number of its operations:
multiplications and additions of one kind, up to a common factor, as the docstrings of the package
have them. L is `length`, |V| `vocabulary`, d the rank or width, n the layers, C the chains, N the
sequences, m the masked copies of a sequence. Weights and tokens are random; what changes a colour
or is accepted is counted where it decides the cost.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from math import comb
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.clones import realistic
from benchmarks.gibbs import SOURCE
from benchmarks.recipes import ADAM
from benchmarks.sequences import paragraphs
from manybody import models
from manybody.data import documents, gibbs, many_body, pair_gibbs, tokenizer
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.potts import contact_map
from manybody.data.vector_loops import LANES
from manybody.io import sequences as files
from manybody.io.devices import accelerated
from manybody.io.seeds import run_settings
from manybody.measure import losses, maps, spectrum as spectra
from manybody.models.objectives import copies_per_sequence
from manybody.sampling import footprint
from manybody.sampling.backends import open_chains
from manybody.sampling.metropolis import advance
from manybody.sampling.redraw import redraw
from manybody.theory.multi_index import gamp
from manybody.theory.multi_index.samples import Setting, averages, draws
from manybody.training import loop, pair_fit
from manybody.training.batches import Batches
from manybody.training.learner import Learner

Work = tuple[Callable[[], object], float]  # what is timed, and its operations
FOLDER = tempfile.TemporaryDirectory()  # of what stages write
SWEEPS = 16  # of the samplers of data
AGREEMENT = 0.02  # of two tokens: nearly all proposals change one


class Stage(NamedTuple):
    """`made(**sizes)` at `sizes`, in which one after another takes the four values of `grown`.

    because: by what grows, why its measured exponent is not that of the count.
    """

    made: Callable[..., Work]
    sizes: dict
    grown: dict[str, tuple]
    because: dict[str, str] | None = None


def tokens_of(sequences: int, length: int, vocabulary: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, vocabulary, (sequences, length))


def tokenisation(megabytes: float) -> Work:
    """Each word is looked up, and its pieces are joined: as many operations as characters."""
    folder = tempfile.mkdtemp(dir=FOLDER.name)
    text, bpe = f"{folder}/text.parquet", f"{folder}/tokenizer.json"
    with documents.writer(text, {}) as writer:
        for paragraph in paragraphs(megabytes, 0):
            writer.add(documents.Piece(paragraph, True))
    tokenizer.train(text, 400, bpe)
    work = partial(tokenizer.encode_split, text, bpe, 16, f"{folder}/sequences.parquet", {})
    return work, documents.Documents(text).characters


def many_body_data(length: int, vocabulary: int, chains: int) -> Work:
    """k = 4. A visit takes |V| exponentials. One that changes the colour takes the difference of
    two rows of U for all bins of two colours, sums J over the pairs of other sites, for L sites
    at once, and applies |V| rows to the bins that hold a pair, as many as random pairs fill."""
    drawn = dict(length=length, vocabulary=vocabulary, logit_scale=1.0, colours=SOURCE["couplings"])
    stream, (hamiltonian, _) = np.random.SeedSequence(1), many_body.draw({**SOURCE, **drawn})
    work = partial(gibbs.sample, hamiltonian, chains, SWEEPS, stream)
    padded, pairs, bins = -(-length // LANES) * LANES, comb(length - 1, 2), comb(vocabulary + 1, 2)
    held = bins * (1 - (1 - 1 / bins) ** pairs)
    change = 2 * padded * (pairs + vocabulary * held) + 2 * vocabulary * bins
    return work, chains * SWEEPS * length * (20 * vocabulary + work()[1].mean() * change)


def potts_data(length: int, vocabulary: int, chains: int) -> Work:
    """A visit draws from |V| weights; one that changes the colour multiplies the weights of its
    neighbours, in rows padded to vectors, by two rows."""
    colours = np.random.default_rng(0).normal(size=(vocabulary, vocabulary))
    hamiltonian = Hamiltonian(contact_map(length), (colours + colours.T) / 2, beta=0.5)
    sweeps, stream = 4 * SWEEPS, np.random.SeedSequence(1)
    work = partial(pair_gibbs.sample, hamiltonian, chains, sweeps, stream)
    width = -(-vocabulary // LANES) * LANES
    change = 2 * width * np.count_nonzero(hamiltonian.couplings) / length
    return work, chains * sweeps * length * (width + work().changed.mean() * change)


def trained(description: dict, sequences: int, masks: float | str, objective: str = "masked"):
    """A step of a batch of `sequences`."""
    copies = copies_per_sequence(description["length"], masks) if objective == "masked" else 1
    recipe = ADAM | dict(
        batch=sequences * copies, masks=masks, objective=objective, steps=1000, learning_rate=1e-3
    )
    tokens = tokens_of(2 * sequences, description["length"], description["vocabulary"])
    with accelerated("cpu", "float32", 1) as accelerator:
        batches = Batches(*tokens.shape, recipe, seed=0)
        settings = run_settings({}, description, recipe, 0, 0, "")
        learner = Learner(settings, tokens, batches.divisor, accelerator)
    return lambda: learner.step(1, batches.at(1))


def factored(layers: int, length: int, vocabulary: int, rank: int | None) -> dict:
    return dict(
        architecture="factored", layers=layers, length=length, vocabulary=vocabulary, rank=rank
    )


def small_training(layers: int, length: int, vocabulary: int, sequences: int) -> Work:
    """Full V, all L masks, compiled: products L^2 |V| and L |V|^2, forward and back, and passes
    over L |V| numbers (exponentials count 20). Two layers: once; three: for each of L copies."""
    mixing, values, passes = (9, 2, 50) if layers == 2 else (3 * length, 3 * length, 15 * length)
    each = mixing * length**2 * vocabulary + (values + 4) * length * vocabulary**2
    work = trained(factored(layers, length, vocabulary, None), sequences, "all")
    return work, sequences * (each + (passes + 30) * length * vocabulary)


def two_layer_training(length: int, vocabulary: int, rank: int, sequences: int) -> Work:
    """Values P Q. Z = A (Q x) P, once; its products with m rows; G, Q and P of m features; and the
    squared gradients of all parameters."""
    m = copies_per_sequence(length, 0.15)
    products = (length**2 + length * vocabulary + 3 * m * vocabulary) * rank
    work = trained(factored(2, length, vocabulary, rank), sequences, 0.15)
    return work, sequences * (products + 2 * m * length * vocabulary)


def deep_training(layers: int, length: int, vocabulary: int, rank: int, sequences: int) -> Work:
    """In each copy the L |V| squares of a layer come from d numbers, twice as they are made again
    on the way back, are passed over 8 times, and are read by each later layer; gradients of a
    product take two. Between them layers mix L x L positions; then Q and P of one feature."""
    squares, later = layers - 1, (layers - 1) * (layers - 2) // 2
    each = length * vocabulary * (squares * (4 * rank + 8) + 3 * later * rank)
    each += 3 * (layers - 2) * length**2 * rank + 6 * vocabulary * rank
    work = trained(factored(layers, length, vocabulary, rank), sequences, 0.15)
    return work, sequences * copies_per_sequence(length, 0.15) * each


def encoder(name: str, layers: int, length: int, vocabulary: int, width: int) -> dict:
    return dict(
        architecture=name, layers=layers, length=length, vocabulary=vocabulary, heads=4,
        width=width, mlp=2 * width,
    )  # fmt: skip


def encoder_layer(rows: int, seen: int, width: int) -> int:
    """Operations of `rows` that see `seen` rows: attention, with the exponentials of 4 heads
    that count 10 each, its output and an MLP of twice the width."""
    return rows * (seen * (2 * width + 40) + 5 * width**2)


def masked_rows(layers: int, length: int, vocabulary: int, width: int) -> tuple[int, int]:
    """Operations of a masked copy, whose last layer has one row beside its keys and values, and
    those of the first layer's queries, keys and values, which the copies of a sequence share."""
    between = (layers - 1) * encoder_layer(length, length, width) + encoder_layer(1, length, width)
    keys = (3 * layers - 4) * length * width**2
    return between + keys + vocabulary * width, 3 * length * width**2


def all_rows(layers: int, length: int, width: int, vocabulary: int = 0) -> int:
    """Operations of a sequence, and of the head on every row."""
    layer = encoder_layer(length, length, width) + 3 * length * width**2
    return layers * layer + length * width * vocabulary


def bert_training(layers: int, length: int, vocabulary: int, width: int, sequences: int) -> Work:
    copy, shared = masked_rows(layers, length, vocabulary, width)
    work = trained(encoder("bert", layers, length, vocabulary, width), sequences, 0.15)
    return work, sequences * (copies_per_sequence(length, 0.15) * copy + shared)


def gpt_training(layers: int, length: int, vocabulary: int, width: int, sequences: int) -> Work:
    work = trained(encoder("gpt", layers, length, vocabulary, width), sequences, 0.15, "causal")
    return work, sequences * all_rows(layers, length, width, vocabulary)


def swept(description: dict, chains: int, energy: str, sampler: str = "mh"):
    """A sweep of all chains, from starts of Zipf's law on, and the share of accepted proposals."""
    model, starts = realistic(description, chains, AGREEMENT)
    opened = open_chains(model, starts, energy, sampler=sampler)
    rng, move = np.random.default_rng(0), advance if sampler == "mh" else redraw

    def work() -> float:
        visits = np.tile(rng.permutation(model.length), (chains, 1, 1))
        uniforms = rng.random((*visits.shape, 2))
        with torch.no_grad():
            return move(opened, visits, uniforms, starts.numpy()).accepted.sum() / visits.size

    return work, (work() + work()) / 2


def two_layer_clones(
    length: int, vocabulary: int, chains: int, energy: str = "raw", rank: int = 32
) -> Work:
    """raw: a proposal reads W once and its ratio W, S and U; an accepted one adds a row to each
    row of the three; logits are products with Q and P. norm: instead the
    head on L rows, and L^2 d for the first square's answer."""
    work, taken = swept(factored(2, length, vocabulary, rank), chains, energy)
    each = (4 + 3 * taken) * length * vocabulary + 2 * vocabulary * rank
    if energy == "norm":
        each = (length + 1) * vocabulary * rank + length**2 * rank
    return work, chains * length * each


def deep_clones(
    layers: int, length: int, vocabulary: int, chains: int, rank: int, energy: str
) -> Work:
    """As `sampling.footprint` counts them: all copies anew where that is less; else the products of
    a proposal with the tables of each square, which count three times; and L^3 d for each layer
    that mixes the positions of all copies. norm: the head on L rows.

    Three layers, raw: L^2 d + L d^2 + d^3, and L^2 d^2 where it is accepted.
    """
    description = factored(layers, length, vocabulary, rank)
    sizes = footprint.Sizes.of(models.about(description).description)
    work, taken = swept(description, chains, energy)
    mixed = (layers - 3) * length**3 * rank
    if footprint.form(sizes, energy) == "three_layers":
        each = length**2 * rank + length * rank**2 + rank**3 + taken * (length * rank) ** 2
    elif not footprint.changes_pay(sizes):
        each = (layers - 2) * (2 * length**2 * vocabulary * rank + length**3 * rank)
    else:
        squares = range(1, layers - 1)
        each = 3 * (sum(footprint.square_products(sizes, n) for n in squares) + mixed)
    head = length * vocabulary * rank if energy == "norm" else 0
    return work, chains * length * (each + head + vocabulary * rank)


def bert_clones(layers: int, length: int, vocabulary: int, width: int, chains: int) -> Work:
    """A proposal takes the L - 1 copies that see it."""
    work, _ = swept(encoder("bert", layers, length, vocabulary, width), chains, "raw")
    copy, shared = masked_rows(layers, length, vocabulary, width)
    return work, chains * length * ((length - 1) * copy + shared)


def heat_bath(length: int, vocabulary: int, chains: int, rank: int = 32) -> Work:
    """A visit sums over L rows of tables and of W and S, then adds the tokens' rows of o and c1,
    through P and Q or as |V| rows; a new token adds a row to each row of W and S."""
    work, taken = swept(factored(2, length, vocabulary, rank), chains, "raw", "heat-bath")
    each = (6 + 2 * taken) * length * vocabulary + 4 * vocabulary * rank
    return work, chains * length * each


def evaluation(
    architecture: str, length: int, vocabulary: int, sequences: int, checkpoints: int
) -> Work:
    """All L masked copies of each sequence at each checkpoint; GPT: each sequence once."""
    description = encoder(architecture, 2, length, vocabulary, 64)
    recipe = ADAM | dict(
        objective="causal" if architecture == "gpt" else "masked", batch=length, validation=8,
        steps=checkpoints - 1, checkpoints=dict(logarithmic=0, listed=[*range(checkpoints)]),
        learning_rate=1e-3,
    )  # fmt: skip
    tokens, folder = tokens_of(sequences, length, vocabulary), tempfile.mkdtemp(dir=FOLDER.name)
    files.write(f"{folder}/test.parquet", tokens, vocabulary, {})
    data = dict.fromkeys(("train", "validation"), SimpleNamespace(tokens=tokens))
    run = loop.train(description, recipe, data, f"{folder}/run", 0, 0, {}, "cpu")
    work = partial(losses.evaluate, run, {"test": (f"{folder}/test.parquet", None)})
    copy, shared = masked_rows(2, length, vocabulary, 64)
    each = length * copy + shared if architecture == "bert" else all_rows(2, length, 64, vocabulary)
    return work, checkpoints * sequences * each


def order_spectrum(length: int, vocabulary: int, forwards: int) -> Work:
    """Forward passes of masked copies."""
    model, _ = realistic(encoder("bert", 2, length, vocabulary, 64), 4, AGREEMENT)
    asked = dict(orders=2, first=0, higher=0, forwards=forwards)
    work = partial(spectra.spectrum, model, tokens_of(200, length, vocabulary), **asked)
    return work, forwards * sum(masked_rows(2, length, vocabulary, 64))


def mean_maps(layers: int, length: int, vocabulary: int, sequences: int) -> Work:
    """A forward pass of all rows for each of L masks; of the last layer its maps alone."""
    model = models.build(encoder("encoder", layers, length, vocabulary, 64)).eval()
    tokens = torch.from_numpy(tokens_of(sequences, length, vocabulary))
    each = all_rows(layers - 1, length, 64) + length * (2 * 64**2 + length * (64 + 40))
    return partial(maps.mean_maps, model, tokens), sequences * length * each


def family_fit(length: int, vocabulary: int, sequences: int) -> Work:
    """A pass reads and adds rows of |V| colours for the words of the other sites, at each site,
    and takes its exponentials; L-BFGS passes some 30 times over the couplings."""
    family = pair_fit.Family(tokens_of(sequences, length, vocabulary), vocabulary)
    strengths = pair_fit.penalty(family), pair_fit.STRENGTH
    work = partial(pair_fit.solve, family, strengths, iterations=6)
    words, width = family.words, -(-vocabulary // LANES) * LANES
    rows = pair_fit._cost(len(words.rows), *words.colours.shape)
    each = (rows + 20 * sequences) * length * width + 30 * (length * vocabulary) ** 2 / 2
    return work, work().passes * each


def state_evolution(points: int) -> Work:
    """Averages over samples."""
    normal = draws(points, np.random.SeedSequence(0))
    return partial(averages, (0.5, 0.7), Setting(1.0), normal), points


def message_passing(size: int, samples: float) -> Work:
    """An iteration: for each sample an integral, some 10^3 points of 10^2 operations, and 8 D for
    omega and b."""
    rng = np.random.default_rng(0)
    data = gamp.draw(size, samples, 1.0, rng)
    state = gamp.informed(data, (0.5, 0.7), rng)
    return partial(gamp.iterate, data, state, 1.0), len(data.x) * (1e5 + 8 * size)


# Why a measured exponent is not that of the operations.
WHY = {
    "wide": "passes over rows and narrow products take longer for an operation than wide products",
    "squares": "passes over the n - 1 squares of a copy take longer for an operation than products",
    "cache": "the arrays that are read again and again outgrow the caches of the processor",
    "bins": "a row of J goes to its bin through memory, and takes some four times as long for an "
    "operation as products with U, whose number alone grows with |V|",
    "pairs": "the look-up of a pair's bin takes as long whatever the row of J that is added",
    "vectors": "the passes of L-BFGS over the couplings, which N does not change, take longer for "
    "an operation than sums of rows",
    "visit": "the random number of a visit and the addresses of neighbours' rows are a fixed part",
    "forms": "two forms of the sampler: tables up to n = 4, then all copies anew, whose wide "
    "products take less time for an operation",
    "calls": "reading the first square's answer from its table and the calls of a step are a "
    "fixed part",
    "changes": "accepted proposals, whose L^2 d^2 grow fastest, are wide products and take less "
    "time for an operation",
    "loading": "building the model of a checkpoint and reading it is a fixed part",
    "rows": "the address of a word's row takes as long as a short row",
}


def doubled(first: float, factor: float = 2) -> tuple:
    """Four sizes, each `factor` times the one before."""
    return tuple(type(first)(first * factor**k) for k in range(4))


STAGES = {
    "tokenisation": Stage(tokenisation, dict(megabytes=1.0), dict(megabytes=doubled(1.0))),
    "many-body data": Stage(
        many_body_data,
        dict(length=32, vocabulary=8, chains=64),
        dict(length=(32, 40, 48, 64), vocabulary=(8, 12, 16, 24), chains=doubled(64)),
        {"length": WHY["pairs"], "vocabulary": WHY["bins"]},
    ),
    "Potts data": Stage(
        potts_data,
        dict(length=20, vocabulary=24, chains=1024),
        dict(length=doubled(20), vocabulary=doubled(16), chains=doubled(512)),
        {"vocabulary": WHY["visit"]},
    ),
    "training, small, n = 2": Stage(
        small_training,
        dict(layers=2, length=8, vocabulary=16, sequences=4096),
        dict(length=doubled(8), vocabulary=doubled(16), sequences=doubled(4096)),
        {"length": WHY["wide"], "vocabulary": WHY["wide"]},
    ),
    "training, small, n = 3": Stage(
        small_training,
        dict(layers=3, length=16, vocabulary=8, sequences=1024),
        dict(length=doubled(16), vocabulary=(16, 24, 32, 64), sequences=doubled(256)),
        {"length": WHY["wide"], "vocabulary": WHY["wide"]},
    ),
    "training, n = 2": Stage(
        two_layer_training,
        dict(length=32, vocabulary=400, rank=64, sequences=256),
        dict(length=doubled(32), vocabulary=doubled(400), sequences=doubled(128)),
        {"vocabulary": WHY["cache"]},
    ),
    "training, n = 3 to 6": Stage(
        deep_training,
        dict(layers=3, length=16, vocabulary=200, rank=32, sequences=256),
        dict(
            layers=(3, 4, 5, 6),
            length=doubled(16),
            vocabulary=doubled(200),
            sequences=doubled(128),
        ),
        {"layers": WHY["squares"]},
    ),
    "training, BERT": Stage(
        bert_training,
        dict(layers=2, length=16, vocabulary=400, width=64, sequences=128),
        dict(
            layers=(2, 4, 6, 8),
            length=doubled(16),
            vocabulary=doubled(1000),
            width=doubled(64),
            sequences=doubled(64),
        ),
        {"width": WHY["wide"]},
    ),
    "training, GPT": Stage(
        gpt_training,
        dict(layers=2, length=32, vocabulary=400, width=64, sequences=64),
        dict(
            layers=(2, 4, 6, 8),
            length=doubled(32),
            vocabulary=doubled(1000),
            width=doubled(64),
            sequences=doubled(32),
        ),
        {"width": WHY["wide"], "length": WHY["cache"]},
    ),
    "MH, raw, n = 2": Stage(
        two_layer_clones,
        dict(length=32, vocabulary=500, chains=32),
        dict(length=doubled(32), vocabulary=doubled(500), chains=doubled(16)),
        {"length": WHY["cache"], "vocabulary": WHY["cache"], "chains": WHY["cache"]},
    ),
    "MH, raw, n = 3": Stage(
        deep_clones,
        dict(layers=3, length=32, vocabulary=400, chains=32, rank=32, energy="raw"),
        dict(length=(32, 48, 64, 96), chains=doubled(16)),
        {"length": WHY["changes"]},
    ),
    "MH, raw, n = 4 to 7": Stage(
        deep_clones,
        dict(layers=4, length=16, vocabulary=400, chains=8, rank=32, energy="raw"),
        dict(layers=(4, 5, 6, 7), length=(16, 24, 32, 48), chains=doubled(8)),
        {"layers": WHY["forms"]},
    ),
    "MH, norm, n = 2": Stage(
        two_layer_clones,
        dict(length=32, vocabulary=500, chains=64, energy="norm"),
        dict(length=doubled(16), vocabulary=doubled(250), chains=doubled(32)),
        {"length": WHY["calls"], "vocabulary": WHY["calls"]},
    ),
    "MH, norm, n = 4 to 7": Stage(
        deep_clones,
        dict(layers=4, length=16, vocabulary=400, chains=8, rank=32, energy="norm"),
        dict(layers=(4, 5, 6, 7), length=(16, 24, 32, 48), chains=doubled(8)),
        {"layers": WHY["forms"]},
    ),
    "MH, raw, BERT": Stage(
        bert_clones,
        dict(layers=2, length=16, vocabulary=400, width=64, chains=8),
        dict(layers=(2, 4, 6, 8), length=(16, 24, 32, 48), chains=doubled(8)),
    ),
    "heat bath": Stage(
        heat_bath,
        dict(length=32, vocabulary=400, chains=32),
        dict(length=doubled(32), vocabulary=doubled(400), chains=doubled(32)),
        {"vocabulary": WHY["cache"]},
    ),
    "evaluation, BERT": Stage(
        evaluation,
        dict(architecture="bert", length=16, vocabulary=400, sequences=256, checkpoints=2),
        dict(length=(16, 24, 32, 48), sequences=doubled(128), checkpoints=doubled(2)),
        {"length": WHY["loading"]},
    ),
    "evaluation, GPT": Stage(
        evaluation,
        dict(architecture="gpt", length=32, vocabulary=400, sequences=256, checkpoints=2),
        dict(
            length=doubled(32),
            vocabulary=doubled(400),
            sequences=doubled(256),
            checkpoints=doubled(2),
        ),
    ),
    "spectrum": Stage(
        order_spectrum,
        dict(length=32, vocabulary=400, forwards=2000),
        dict(length=doubled(32), forwards=doubled(2000)),
        {"length": WHY["wide"]},
    ),
    "maps": Stage(
        mean_maps,
        dict(layers=2, length=16, vocabulary=400, sequences=32),
        dict(layers=(2, 4, 6, 8), length=(16, 24, 32, 64), sequences=doubled(32)),
    ),
    "family fits": Stage(
        family_fit,
        dict(length=40, vocabulary=21, sequences=500),
        dict(length=doubled(20), vocabulary=(5, 10, 20, 40), sequences=doubled(500)),
        {"vocabulary": WHY["rows"], "sequences": WHY["vectors"]},
    ),
    "state evolution": Stage(state_evolution, dict(points=1024), dict(points=doubled(1024))),
    "GAMP": Stage(
        message_passing,
        dict(size=500, samples=1.0),
        dict(size=doubled(500), samples=doubled(0.5)),
        {"size": WHY["cache"]},
    ),
}
