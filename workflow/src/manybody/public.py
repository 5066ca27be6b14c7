"""Functions of `import manybody as mb` for a notebook or a script.

Each function imports what it needs when it is called. Tokens are whole numbers in [0, |V|), one row
a sequence of L; losses and scores are in nats. `read_` and `write_` are for data, `load_` for
models, `save_` for what other libraries read. An argument that cannot be what it is taken for
raises `Refusal`, a `ValueError` that names it, what was found and what was expected. Progress is
shown in a notebook, and not in a script.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manybody.config.arguments import check, checked, optional
from manybody.io.refusal import Refusal

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from manybody.data.pair_model import PairModel
    from manybody.io.sequences import Sequences
    from manybody.models.base import Model
    from manybody.theory.multi_index.thresholds import Thresholds
    from manybody.training.pseudolikelihood import Fit

__all__ = [
    "Refusal",
    "build_model",
    "fit_boltzmann",
    "fit_couplings",
    "load_couplings",
    "load_model",
    "load_pretrained",
    "losses",
    "plot_contacts",
    "plot_spectrum",
    "read_alignment",
    "read_sequences",
    "read_text",
    "replica_loss",
    "sample_clones",
    "sample_potts",
    "sample_sequences",
    "save_dataset",
    "save_pretrained",
    "scan_mutations",
    "score_contacts",
    "sequence_weights",
    "spectrum",
    "train_model",
    "two_layer_thresholds",
    "write_sequences",
]


# --- Sequences -----------------------------------------------------------------------------------


@checked
def read_sequences(path: str | Path) -> Sequences:
    """Sequences in the Parquet file `path`, of the pipeline or of `write_sequences`: `.tokens` (N,
    L), which cannot be written to, `.vocabulary` |V|, `.length` L, and `.about`, what made them.
    `sequences[:10]` reads the first ten alone.

    Raises `Refusal`, which names the file, if it is missing, damaged or holds something else.

    >>> write_sequences("few.parquet", [[0, 1, 2], [2, 1, 0]], vocabulary=3)
    >>> read_sequences("few.parquet").tokens
    array([[0, 1, 2],
           [2, 1, 0]], dtype=uint8)
    """
    from manybody.io.sequences import Sequences

    return Sequences.open(path)


@checked
def read_text(
    path: str | Path, folder: str | Path, length: int, sequences: int = 1000
) -> NDArray[np.int64]:
    """Tokens (N, L) of a text file `path`, or a folder of them, by the tokenizer.json in `folder`:
    the first N blocks of L = `length` tokens, at most `sequences`.

    The special tokens of a model's own tokenizer, such as [CLS], are part of each block. Raises
    `Refusal`, which names `path`, the tokenizer or `length`, for a text or a tokenizer that cannot
    be read, and for a text shorter than a block.

    >>> from tokenizers import Tokenizer, models
    >>> Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[])).save("tokenizer.json")
    >>> _ = Path("letters.txt").write_text("abba" * 3)
    >>> read_text("letters.txt", ".", length=4)
    array([[0, 1, 1, 0],
           [0, 1, 1, 0],
           [0, 1, 1, 0]])
    """
    from tempfile import TemporaryDirectory

    from manybody.data.own_text import encode
    from manybody.io.sequences import Sequences

    with TemporaryDirectory() as made:
        out = Path(made) / "text.parquet"
        encode(path, folder, length, sequences, out)
        return Sequences.open(out)[:sequences].astype(np.int64)


@checked
def write_sequences(
    path: str | Path,
    tokens: ArrayLike,
    vocabulary: int,
    about: Mapping[str, object] | None = None,
) -> None:
    """Writes tokens (N, L) of a vocabulary of |V| = `vocabulary` to the file `path`, as Parquet,
    with `about`, a mapping for JSON that says what they are.

    Raises `Refusal`, which names `tokens`, for a wrong shape, type or token.

    >>> write_sequences("few.parquet", [[0, 1, 3]], vocabulary=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    manybody.io.refusal.Refusal: tokens: found tokens from 0 to 3; expected 0 to 2; ...
    """
    from manybody.io.sequences import write

    write(path, np.asarray(tokens), vocabulary, dict(about or {}))


@checked
def read_alignment(
    path: str | Path,
    format: str | None = None,
    alphabet: str | None = None,
    alphabet_confirmed: bool = False,
) -> tuple[list[str], NDArray[np.uint8]]:
    """Names (N), and tokens (N, L) uint8, of the alignment in the file `path`, gzipped or not.

    format: `fasta`, `a3m` (A2M too), `stockholm`, `clustal` or `lines` of one sequence. The gap
    is 0; residues count from 1 in the order of their letters, by `alphabet`: 20 of `protein`, 4 of
    `rna` (ACGU) and of `dna`. Both are read from the file if they are not given. A letter that
    stands for several is a gap. Letters of DNA are taken as proteins only if that is
    `alphabet_confirmed`. Raises `Refusal`, which names the file and the record, for one that is
    not such an alignment, or whose letters fit several alphabets.

    >>> _ = Path("three.fasta").write_text(">a\\nACGU\\n>b\\nAC-U\\n>c\\nGCNU\\n")
    >>> names, tokens = read_alignment("three.fasta", alphabet="rna")
    >>> names
    ['a', 'b', 'c']
    >>> tokens
    array([[1, 2, 3, 4],
           [1, 2, 0, 4],
           [3, 2, 0, 4]], dtype=uint8)
    """
    from manybody.data import alignment

    path = Path(path)
    form = format or alignment.format_of(path)
    names, rows = alignment.read(path, form)
    tokens, _ = alignment.encode(
        path, names, rows, alphabet or alignment.alphabet_of(path, form), alphabet_confirmed
    )
    return names, tokens


@checked
def sequence_weights(tokens: ArrayLike, identity: float = 0.8) -> NDArray[np.float64]:
    """Weights (N,), above 0 and at most 1, of tokens (N, L): 1 / the number of sequences, itself
    included, that agree with one in a share of at least `identity` of the L columns. Their sum is
    the effective number of sequences. Raises `Refusal`, which names `tokens` or `identity`, for
    tokens above 127 and for a share that is not in (0, 1].

    >>> sequence_weights(np.array([[1, 2, 3, 4, 5], [1, 2, 3, 4, 9], [9, 9, 9, 9, 9]]))
    array([0.5, 0.5, 1. ])
    """
    from manybody.data.sequence_weights import neighbours

    return 1 / neighbours(np.asarray(tokens), identity).counts


@checked
def sample_potts(
    couplings: ArrayLike,
    colours: ArrayLike,
    beta: float,
    sequences: int,
    sweeps: int = 200,
    seed: int = 0,
) -> NDArray[np.integer]:
    """Tokens (N, L) of a generalised Potts model at inverse temperature `beta` > 0, from N =
    `sequences` Gibbs chains that start uniform and take `sweeps` sweeps; `seed` draws all of it.

        p(s) = exp(-beta H) / Z,   H(s) = 2 sum_{i < j} J_ij U_{s_i s_j}

    couplings J (L, L) and colours U (|V|, |V|) are symmetric, J is zero on its diagonal; to sample
    H = -sum_{i < j} J_ij U_{s_i s_j} of (potts, section 1), give -U / 2. beta H is in nats. Raises
    `Refusal`, which names `couplings` or `colours`, where they are not. Whether `sweeps` are enough
    is for the caller to test; the pipeline tests its own samples.

    >>> J, U = np.array([[0.0, 1.0], [1.0, 0.0]]), -np.eye(3)
    >>> tokens = sample_potts(J, U, beta=2.0, sequences=1000)
    >>> equal = (tokens[:, 0] == tokens[:, 1]).mean()  # exp(4) / (exp(4) + 2) = 0.965
    >>> bool(0.93 < equal < 0.99)
    True
    """
    from manybody.data import pair_gibbs
    from manybody.data.hamiltonian import Hamiltonian

    model = Hamiltonian(np.asarray(couplings), np.asarray(colours), beta)
    return pair_gibbs.sample(model, sequences, sweeps, np.random.SeedSequence(seed)).tokens


# --- Models --------------------------------------------------------------------------------------


@checked
def build_model(
    architecture: str, vocabulary: int, length: int, seed: int = 0, **sizes: float | str
) -> Model:
    """A model of L = `length` tokens of a vocabulary of |V| = `vocabulary`, with random weights
    drawn from `seed`: a torch module, in eval mode, from tokens (B, L) to logits (B, L, |V|).

    architecture: `factored` (`sizes` are `layers`, `rank`, `bias`, ...), `bert`, `gpt` (`layers`,
    `heads`, `width`, `mlp`) or another of docs/config.md, whose keys are the `sizes`.
    `.about.order` is the order of interaction that bounds it, None if nothing does. Raises
    `Refusal`, which names the argument, for an architecture or sizes that there are not, that are
    missing or that do not fit together.

    >>> model = build_model("factored", 20, 8, layers=2, rank=4, bias=True)
    >>> model.about.order
    3
    """
    import torch

    from manybody import models

    check(optional(models.options(architecture)), sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Model = models.build(
            dict(architecture=architecture, vocabulary=vocabulary, length=length, **sizes)
        ).eval()
    return model


@checked
def load_model(manifest: str | Path, step: int | str = "last", device: str = "cpu") -> Model:
    """The model of a run, in eval mode, from tokens (B, L) to logits (B, L, |V|).

    manifest: `results/models/{source}/{model}/seed-{n}/manifest.json`, or that in the folder of
    `train_model`. step: a checkpoint that the run kept, by its step of training, or `last`. device:
    that of the weights, `cpu`, `cuda`, `cuda:1`, `mps`, or `auto`, a GPU with CUDA if there is one.
    Raises `Refusal`, which names the file, where there is no such run or step, or where a file was
    altered.

    >>> tokens = np.zeros((4, 8), int)
    >>> sizes = dict(layers=1, rank=2, bias=True)
    >>> _ = train_model("zeros", tokens, tokens, vocabulary=3, steps=1, batch=4, **sizes)
    >>> load_model("zeros/manifest.json").length
    8
    """
    from manybody.models import stored

    model: Model = stored.load_model(manifest, step, device)
    return model


@checked
def train_model(
    folder: str | Path,
    train: ArrayLike,
    validation: ArrayLike,
    vocabulary: int,
    architecture: str = "factored",
    *,
    steps: int = 1000,
    batch: int = 256,
    learning_rate: float = 4e-3,
    seed: int = 0,
    device: str = "cpu",
    recipe: Mapping[str, object] | None = None,
    **sizes: float | str,
) -> Model:
    """Trains a model on the tokens `train` (N, L), validates it on those of `validation` (M, L),
    and returns it in eval mode.

    `architecture`, `vocabulary` |V| and `sizes` are those of `build_model`. It takes `steps` steps
    of AdamW with a cosine schedule that rises to `learning_rate` in `steps` // 25 steps: on 15 % of
    the positions, each masked in a copy of its own, or on all next tokens (`gpt`). A batch has
    `batch` copies, or sequences, at most those of all N. `recipe` changes keys of this, those of
    `training` in docs/config.md. `seed` draws weights, batches and masks. device: `cpu`, `cuda` or
    `auto`.

    `folder` gets weights, the history of the losses (nats a token) and a manifest for `load_model`;
    called again with the same arguments, a killed training goes on. Raises `Refusal`, which names
    the argument or the key of the recipe, for what does not fit and for a `folder` with a run of
    other arguments, and `manybody.training.run_files.NonFiniteLoss` where the loss diverges.

    >>> tokens = np.tile(np.arange(4), (64, 2))  # 0 1 2 3 0 1 2 3
    >>> sizes = dict(layers=1, rank=4, bias=True)
    >>> rates = dict(steps=60, batch=64, learning_rate=0.05)
    >>> model = train_model("run", tokens, tokens[:8], vocabulary=4, **rates, **sizes)
    >>> bool(losses(model, tokens).mean() < 0.3)  # log 4 = 1.39 at the start
    True
    """
    from types import SimpleNamespace

    from manybody import models
    from manybody.config.training import training_of
    from manybody.models.objectives import copies_per_sequence
    from manybody.training.loop import train as run

    check(optional(models.options(architecture)), sizes)
    train, validation = np.asarray(train), np.asarray(validation)
    description = dict(architecture=architecture, vocabulary=vocabulary, length=train.shape[1])
    objective = models.about(description | sizes).objective
    copies = copies_per_sequence(train.shape[1], 0.15) if objective == "masked" else 1
    given: dict[str, Any] = dict(
        objective=objective, steps=steps, batch=min(batch, copies * len(train)), masks=0.15,
        optimizer={"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.0},
        learning_rate=learning_rate, schedule="cosine", warmup=steps // 25, clip=1.0,
        checkpoints={"logarithmic": 0, "listed": []}, validation=len(validation),
        precision="float32", compile=False, threads=1,
    ) | dict(recipe or {})  # fmt: skip
    check({"recipe": (training_of("recipe", "fit"), ...)}, {"recipe": given})
    data = dict(train=SimpleNamespace(tokens=train), validation=SimpleNamespace(tokens=validation))
    manifest: Path = run(
        description | sizes, given, data, folder, seed, "each", {}, device, replace=False
    )
    return load_model(manifest, device=device)


@checked
def losses(model: Model, tokens: ArrayLike) -> NDArray[np.float64]:
    """Mean cross-entropy (N,) of a model on each of tokens (N, L), in nats per predicted token.

    model: of `build_model`, `train_model`, `load_model` or `load_pretrained`. A masked one predicts
    every position from all others, each masked in a copy of its own; a causal one tokens 2 to L
    from those before:

        loss_n = -(1 / L) sum_i log P(s_i | all others)

    Raises `Refusal`, which names `tokens`, for those of another length or beyond the vocabulary.

    >>> model = build_model("factored", 20, 8, layers=2, rank=4, bias=True)
    >>> found = losses(model, np.zeros((3, 8), int))
    >>> found.shape, bool(abs(found.mean() - np.log(20)) < 1)
    ((3,), True)
    """
    import torch

    from manybody.models.objectives import sequence_sums

    sums = sequence_sums(model, torch.from_numpy(np.asarray(tokens, np.int64)))
    found: NDArray[np.float64] = (sums.loss_sum / sums.predictions).numpy()
    return found


@checked
def spectrum(
    model: Model,
    tokens: ArrayLike,
    orders: int = 3,
    law: str = "text",
    forwards: int = 100_000,
    seed: int = 0,
    **options: object,
) -> pd.DataFrame:
    """The orders of interaction that the logits of a model use on tokens (B, L), B >= 4: a table.

    A block s of the tokens and another r are mixed, token by token; M_k is what flips of k tokens
    between the two do together (controls, section 6):

        M_k = sum_T E |2^-k sum_{U in T} (-1)^|U| g(m flipped on U)|^2,   |T| = k

    g: centred logits of a target. M_k is exactly 0 for a model of order k or less. Rows: M of each
    `order` k <= `orders`, `Var g`, `mean degree` = M_1 / Var g, `differing`, the share of positions
    where r is not s, and `M per differing`; columns: `value`, M and Var g in squared nats, its
    standard error `se`, `share` of Var g, `state` (`measured`, or `upper bound`: below 3 se).

    model: as of `losses`. law: where r is from: another block of the `text`, the distribution of
    single tokens (`unigram`), or the `model`. forwards: a cap on the sequences that the model is
    given. seed: of the draws. options: others of `manybody.measure.spectrum.spectrum`, such as
    `first`, the error asked of M_1 as a share of it (0.03). Raises `Refusal`, which says what was
    found and what was expected, for tokens that are too few or do not fit.

    >>> model = build_model("factored", 20, 8, layers=2, rank=4, bias=True).double()
    >>> tokens = np.random.default_rng(0).integers(0, 20, (60, 8))
    >>> found = spectrum(model, tokens, forwards=5000).set_index(["quantity", "order"])["value"]
    >>> bool(found["M", 2] > 0), bool(found["M", 3] < 1e-9 * found["M", 1])  # of order 3
    (True, True)
    """
    from manybody.measure.spectrum import spectrum as measure

    given: dict[str, Any] = {"special": model.special, **options}
    given |= dict(orders=orders, law=law, forwards=forwards, seed=seed)
    found: pd.DataFrame = measure(model, np.asarray(tokens), **given).table
    return found.drop(columns="replicates")


@checked
def plot_spectrum(table: pd.DataFrame, ax: Axes | None = None, **looks: object) -> Axes:
    """Draws the shares M_k / Var g of `table`, one of `spectrum`, by k, with bars of one standard
    error; hollow are upper bounds. Returns the axes `ax`, those of a new figure by default. Another
    table on the same ones is told apart by `looks`, of matplotlib's `errorbar`, such as `color` and
    `label`.

    Raises `Refusal`, which names `table`, for one without the columns of the example.

    >>> import matplotlib.pyplot as plt, pandas as pd
    >>> rows = [("M", 1, 0.7, 0.02, "measured"), ("M", 2, 0.004, 0.001, "upper bound")]
    >>> columns = ["quantity", "order", "share", "share_se", "state"]
    >>> ax = plot_spectrum(pd.DataFrame(rows, columns=columns), plt.figure().subplots())
    >>> ax.get_xticks().tolist(), ax.get_yscale()
    ([1, 2], 'log')
    """
    from matplotlib import pyplot

    from manybody.papers import style

    ax = ax or pyplot.figure().add_subplot()
    found = table[table["quantity"] == "M"]
    given: dict[str, Any] = {"color": style.ORDERS[2], **looks}
    for state, face in (("measured", None), ("upper bound", "white")):
        rows = found[found["state"] == state]
        style.dots(ax, rows["order"], rows["share"], yerr=rows["share_se"], mfc=face, **given)
        given.pop("label", None)
    ax.set(yscale="log", xmargin=0.3, xlabel="k", ylabel="$M_k$ / Var g", xticks=found["order"])
    return ax


@checked
def sample_clones(
    model: Model, initial: ArrayLike, sweeps: int, seed: int = 0, energy: str = "raw"
) -> NDArray[np.int64]:
    """Clones of a masked `model`: tokens (C, L) after `sweeps` Metropolis-Hastings sweeps of C
    chains from tokens `initial` (C, L).

        E(s) = -sum_i h_i(s_i),   h_i the logits of position i where it alone is masked

    A step proposes a token from the conditional of one position; `energy` is `raw`, or `norm`, with
    log-probabilities for logits (nlp-clones, section 6), in nats. The chains' random numbers depend
    on `seed` and on nothing else. Raises `Refusal`, which names `initial` or the architecture, for
    starts that do not fit the model, and for a model of next tokens.

    >>> model = build_model("factored", 20, 8, layers=2, rank=4, bias=True)
    >>> sample_clones(model, np.zeros((5, 8), int), sweeps=2).shape
    (5, 8)
    """
    import torch

    from manybody.sampling.backends import open_chains
    from manybody.sampling.draws import Draws
    from manybody.sampling.metropolis import INTERVAL, advance

    if model.about.causal:
        raise ValueError(
            f"{model.description['architecture']}: it predicts next tokens and has no conditionals "
            "of one masked position; give a masked model"
        )
    initial = np.array(initial, dtype=np.int64)
    draws = Draws(seed, len(initial), model.length, "left-to-right")
    device = next(model.parameters()).device
    with torch.no_grad():
        chains = open_chains(model, torch.from_numpy(initial).to(device), energy)
        for first in range(1, sweeps + 1, INTERVAL):
            advance(chains, *draws.sweeps(range(first, min(first + INTERVAL, sweeps + 1))), initial)
            chains.rebuild()
    found: NDArray[np.int64] = chains.tokens.cpu().numpy()
    return found


@checked
def save_pretrained(model: Model, folder: str | Path, tokenizer: str | Path | None = None) -> None:
    """Saves `model`, a BERT or GPT, for transformers to `folder`: `from_pretrained(folder)` needs
    this package no more.

    A BERT is `AutoModelForTokenClassification`: the logits (B, L, |V|) are those of the token at
    each position; what is masked has the token |V|, `config.mask_token_id`. Its linear head is not
    that of transformers' BERTs for masked tokens, so no `fill-mask` reads it. A GPT is
    `AutoModelForCausalLM`. tokenizer: a tokenizer.json, which `AutoTokenizer` then reads there too.
    Raises `Refusal`, which names the architecture or `tokenizer`, for one that transformers does
    not have and for a file that is not there.

    >>> model = build_model("gpt", 20, 8, layers=1, heads=2, width=8, mlp=16)
    >>> save_pretrained(model, "gpt")
    >>> sorted(path.name for path in Path("gpt").iterdir())
    ['config.json', 'generation_config.json', 'model.safetensors']
    """
    from transformers.utils import logging

    if tokenizer is not None and not Path(tokenizer).is_file():
        raise Refusal(
            f"found {tokenizer}, which is no file; expected a tokenizer.json", "tokenizer"
        )
    library = model.as_transformers()
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # of one file that is written
    library.save_pretrained(folder)
    if shown:
        logging.enable_progress_bar()
    if tokenizer is not None:
        from transformers import PreTrainedTokenizerFast

        masked = {} if model.about.causal else {"mask_token": "[MASK]"}
        PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), **masked).save_pretrained(folder)


@checked
def save_dataset(clone: str | Path, folder: str | Path, sequences: str | Path) -> None:
    """Saves a clone to `folder` for `datasets` and huggingface.co: Parquet with `tokens` (N, L) and
    `text`, the tokenizer, and a card, README.md, that says what the clone is.

    clone: its manifest, `results/clones/{source}/{clone}/manifest.json`; sequences: the folder of
    its source, `results/sequences/{source}`. `load_dataset(folder, "sweep-20", split="train")`
    reads a saved sweep, and `starts` what the chains started from. Raises `Refusal`, which names
    the file, for those that are missing or do not belong to the clone.

    >>> save_dataset("no.json", "folder", "no")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    manybody.io.atomic.ArtifactError: no.json is not a readable JSON document: ...
    """
    from manybody.measure.data_set import save

    save(clone, folder, sequences)


@checked
def load_pretrained(
    folder: str | Path, length: int, objective: str | None = None, device: str = "cpu"
) -> Model:
    """A masked or causal language model of transformers' own classes, from a `folder` in its
    `save_pretrained` layout, in eval mode; for sequences of L = `length` tokens of the tokenizer
    that is there too: tokens (B, L) to logits (B, L, |V|).

    `.special` are the tokens that are no text. Only safetensors are read, and no code of the
    folder is run. `objective`, `masked` or `next-token`, is that of the saved class by default.
    device: as of `load_model`. Raises `Refusal`, which names the folder, where it holds no such
    model, and for a `length` beyond its positions.

    >>> model = build_model("gpt", 20, 8, layers=1, heads=2, width=8, mlp=16)
    >>> save_pretrained(model, "gpt")
    >>> again = load_pretrained("gpt", length=8)
    >>> tokens = np.arange(16).reshape(2, 8)
    >>> bool(np.isclose(losses(again, tokens), losses(model, tokens)).all())
    True
    """
    from manybody.io.devices import pick
    from manybody.models.pretrained.network import Pretrained

    model: Model = Pretrained.open(Path(folder), length, objective).to(pick(device)).eval()
    return model


# --- Couplings -----------------------------------------------------------------------------------


@checked
def fit_couplings(
    tokens: ArrayLike,
    vocabulary: int,
    heads: int = 1,
    ridge: float = 1e-4,
    sequence_weights: ArrayLike | None = None,
    iterations: int = 250,
    seed: int = 0,
) -> Fit:
    """Couplings of tokens (N, L) of |V| = `vocabulary` colours by maximum pseudo-likelihood (potts,
    section 2):

        logits_i(a) = h_i(a) + sum_{j != i} J_ij(a, s_j),   J_ij(a, b) = sum_h A^h_ij V^h_ab

    with H = `heads`, `ridge` / 2 times the squares of A, V and h added to the mean loss. Sequences
    count with sequence_weights (N,), 1 each by default. It ends after `iterations`, or where the
    sum falls no more. `seed` draws the start of one head; several start from a few steps of full
    couplings.

    `.model` has `attention` A (H, L, L), `values` V (H, |V|, |V|), `fields` h (L, |V|) and
    `couplings` J (L, L, |V|, |V|), h and J in nats; `.loss` is the mean loss in nats a site. Raises
    `Refusal`, which names tokens or sequence_weights, for those that do not fit.

    >>> tokens = sample_potts(np.array([[0.0, 1.0], [1.0, 0.0]]), -np.eye(3), 1.0, 2000)
    >>> fit = fit_couplings(tokens, vocabulary=3)
    >>> J = fit.model.couplings[0, 1]
    >>> float(np.round(np.diag(J).mean() - J[~np.eye(3, dtype=bool)].mean()))  # 2 beta J_01
    2.0
    """
    from manybody.training.pseudolikelihood import Counted, fit_heads

    weights = None if sequence_weights is None else np.asarray(sequence_weights)
    counted = Counted(np.asarray(tokens), vocabulary, weights)
    return fit_heads(counted, heads, ridge, fields=True, seed=seed, iterations=iterations)


@checked
def fit_boltzmann(
    folder: str | Path,
    tokens: ArrayLike,
    vocabulary: int,
    sequence_weights: ArrayLike | None = None,
    *,
    target: float = 0.95,
    chains: int = 4096,
    seed: int = 0,
    threads: int = 1,
) -> PairModel:
    """The pair model of tokens (N, L) of |V| = `vocabulary` colours, with sequence_weights (N,), 1
    each by default, whose samples have the tokens' pair correlations, by Boltzmann learning that
    starts from the couplings of pseudo-likelihood: the model that adabmDCA's bmDCA learns.

        d log p / d J_ij(a, b) = f_ij(a, b) of the tokens - that of `chains` Markov chains

    It ends where the Pearson correlation of connected pair correlations c_ij(a, b) of new chains
    with those of the tokens is `target` (0 to 1), or says why not: `.about["boltzmann"]["reached"]`
    and `["reason"]`. The rest is as of `load_couplings`: fields h and couplings J, in nats. The
    number of chains is a multiple of 32, `seed` draws them, and the model does not depend on
    `threads`. Minutes for a family of proteins; `folder` keeps the state, from which a killed call
    goes on. Raises `Refusal`, which names tokens, weights or chains, for what does not fit.

    >>> tokens = sample_potts(np.array([[0.0, 1.0], [1.0, 0.0]]), -np.eye(3), 0.5, 4000)
    >>> model = fit_boltzmann("learned", tokens, vocabulary=3, chains=1024)
    >>> model.about["boltzmann"]["reached"]
    True
    >>> J = model.couplings[0, 1]
    >>> bool(abs(np.diag(J).mean() - J[~np.eye(3, dtype=bool)].mean() - 1) < 0.2)  # 2 beta J_01
    True
    """
    from manybody.training import boltzmann, pair_fit

    given = np.asarray(tokens)
    weights = None if sequence_weights is None else np.asarray(sequence_weights)
    start = pair_fit.fit(given, vocabulary, weights, threads=threads)
    return boltzmann.learn(
        start, given, weights, folder, target=target, chains=chains, seed=seed, threads=threads
    )


@checked
def sample_sequences(
    model: PairModel, sequences: int, sweeps: int | None = None, seed: int = 0
) -> NDArray[np.integer]:
    """Tokens (N, L) of N = `sequences` new sequences: Gibbs chains of a pair model, from uniform
    colours, after `sweeps`, by default as many as they took to settle when the model was learned.

    model: of `fit_boltzmann`, or `load_couplings(folder, learned=True)`. seed: of the chains.
    Raises `Refusal`, which says why, for a model that has not reached its target: its samples would
    not be like the sequences that it is of.

    >>> tokens = sample_potts(np.array([[0.0, 1.0], [1.0, 0.0]]), -np.eye(3), 0.5, 4000)
    >>> model = fit_boltzmann("learned", tokens, vocabulary=3, chains=1024)
    >>> new = sample_sequences(model, 4000)
    >>> new.shape, bool(abs((new[:, 0] == new[:, 1]).mean() - 0.576) < 0.05)  # e / (e + 2)
    ((4000, 2), True)
    """
    from manybody.measure.family_statistics import generate

    return generate(model, sequences, sweeps, seed)[0]


@checked
def load_couplings(path: str | Path, learned: bool = False) -> PairModel:
    """The pair model of `path`, a folder that `manybody family` made or a file of adabmDCA or
    CCMpred (`-r`): `.fields` h (L, q) and `.couplings` J (L, L, q, q) in nats, with the signs of
    log p (potts, section 5).

    `.scores(tokens)` of tokens (N, L) are log p + log Z, (N,) in nats; energies are their negative;
    `.zero_sum()` is the model in that gauge, `.about` what is known of the family. learned: the
    folder's model of Boltzmann learning (`--boltzmann`), where it has one. Raises `Refusal`, which
    names the file, for one that is no such model.

    >>> lines = [f"h {i} {letter} 0.0" for i in range(2) for letter in "-ACGU"]
    >>> _ = Path("pair.dat").write_text("\\n".join(["J 0 1 G C 1.5", *lines]))
    >>> model = load_couplings("pair.dat")
    >>> model.scores(np.array([[3, 2], [2, 3]]))
    array([1.5, 0. ])
    """
    from manybody.measure.mutations import opened

    return opened(Path(path), learned=learned)[0]


@checked
def scan_mutations(model: PairModel, sequence: ArrayLike | None = None) -> NDArray[np.float64]:
    """Changes of log p (L, q), in nats, when one site of a sequence becomes each of q colours:

        h_i(a) - h_i(s_i) + sum_j (J_ij(a, s_j) - J_ij(s_i, s_j))

    model: of `load_couplings` or `fit_boltzmann`. sequence: tokens (L,), by default those of the
    family's reference record. nan for changes to a gap, the colour 0, and where the sequence has
    one. Raises `Refusal`, which names `sequence`, for tokens that do not fit the model.

    >>> lines = [f"h {i} {letter} 0.0" for i in range(2) for letter in "-ACGU"]
    >>> _ = Path("pair.dat").write_text("\\n".join(["J 0 1 G C 1.5", *lines]))
    >>> scan_mutations(load_couplings("pair.dat"), [3, 2])[0]
    array([ nan, -1.5, -1.5,  0. , -1.5])
    """
    from manybody.measure.mutations import scan

    return scan(model, None if sequence is None else np.asarray(sequence))


@checked
def score_contacts(attention: ArrayLike, values: ArrayLike, gap: int | None = None) -> pd.DataFrame:
    """Scores of all pairs of sites from attention A (H, L, L) and values V (H, |V|, |V|), such as
    those of `fit_couplings`: a table, the best first.

    Columns i < j (from 1); `score`, the Frobenius norm of (J_ij(a, b) + J_ji(b, a)) / 2 in the
    zero-sum gauge, without the colour `gap`, if one is given; `apc`, the same less F_i. F_.j / F_..
    (potts, section 5). Both in nats. Raises `Refusal`, which names the argument, for other shapes.

    >>> A = np.zeros((1, 4, 4))
    >>> A[0, 0, 3] = A[0, 3, 0] = 1.0
    >>> score_contacts(A, np.eye(2)[None]).head(1)[["i", "j", "score"]].values.tolist()
    [[1.0, 4.0, 1.0]]
    """
    from manybody.measure import contacts

    frame = contacts.pairs(contacts.frobenius(np.asarray(attention), np.asarray(values), gap))
    return frame.sort_values("apc", ascending=False, kind="stable", ignore_index=True)


@checked
def plot_contacts(
    scores: pd.DataFrame,
    ax: Axes | None = None,
    known: ArrayLike | None = None,
    separation: int = 1,
) -> Axes:
    """Draws the map of corrected `scores` of pairs, a table of `score_contacts`, with a colour bar
    in nats; returns the axes.

    known (L, L, bool): which pairs are contacts, such as D < 8 of distances D; they are drawn below
    the diagonal with as many of the best pairs, of those at least `separation` sites apart. ax:
    those to draw on, of a new figure by default. Pairs that `scores` lacks are blank. Raises
    `Refusal`, which names `scores` or `known`, for a table without `i, j, score, apc`, sites that
    are not integers from 1, or contacts of another L.

    >>> import matplotlib.pyplot as plt
    >>> A = np.random.default_rng(0).normal(size=(1, 6, 6))
    >>> ax = plot_contacts(score_contacts(A, np.eye(3)[None]), plt.figure().subplots())
    >>> ax.get_xlabel(), ax.images[0].get_array().shape
    ('site j', (6, 6))
    """
    from matplotlib import pyplot

    from manybody.measure.contacts import Truth, as_matrix
    from manybody.papers.potts import contacts

    sites = scores[["i", "j"]].to_numpy()
    if sites.dtype.kind not in "iu" or not sites.size or sites.min() < 1:
        raise Refusal(
            f"found i, j of {sites.dtype} from {min(sites.flat, key=str, default='no row')}; "
            f"expected integers from 1, a row a pair",
            "scores",
        )
    length, truth = int(sites.max()), None
    if known is not None:
        near = np.asarray(known)
        if near.shape != (length, length) or not np.isin(near, (0, 1)).all():
            raise Refusal(
                f"found shape {near.shape}, numbers to {near.max(initial=0):g}; expected "
                f"{(length, length)} of 0 and 1 or of bool; of distances D give known=D < 8",
                "known",
            )
        truth = Truth(near + near.T > 0, ~np.eye(length, dtype=bool))
    maps = {
        name: as_matrix(scores, column, length, lacking=np.nan)
        for name, column in {"corrected": "apc", "as it is": "score"}.items()
    }
    ax = ax or pyplot.figure().add_subplot()
    contacts.draw_map(ax.figure, ax, contacts.tables_of(maps, {"seed": 0}, truth, separation))
    ax.set_title("")
    return ax


# --- Theory --------------------------------------------------------------------------------------


@checked
def replica_loss(gamma: float, ridge: float, alphas: ArrayLike) -> NDArray[np.float64]:
    """Loss (...,) of masked prediction by ridge regression on alpha L samples, at L -> infinity.

    Gaussian sites of precision K = gamma - G, G from the GOE, `gamma` > 2; `ridge` >= 0; alphas
    (...,) > 0. It is the mean square error at a site, noise included, in units in which the sites
    have covariance 1 / K: that is 1 / gamma after endless samples (potts, section 3).

        eps = (1 / gamma + B) / (1 - df2 / alpha)

    Raises `Refusal`, which names the argument, for numbers outside these bounds.

    >>> replica_loss(2.5, 0.0, [0.5, 2.0]).round(4)  # alpha / (alpha - 1) / gamma above 1
    array([0.8769, 0.8   ])
    """
    from manybody.theory.replica import closed_form

    found = np.asarray(alphas, float)
    if not (found > 0).all():
        raise Refusal(f"found {found.min():g}; expected numbers above 0", "alphas")
    return closed_form(gamma, ridge, found)


@checked
def two_layer_thresholds(
    skip: float, activation: str = "softmax", points: int = 1024, scrambles: int = 4, seed: int = 0
) -> Thresholds:
    """Samples a dimension, alpha, from which two layers of attention with skip connection c =
    `skip` > 0 and an `activation`, softmax or linear, learn anything, by the Bayes-optimal
    algorithm (multi-index, section 4).

    An iteration multiplies a small overlap of layer k by alpha lambda_k. `.first` is the layer (1
    or 2) that is learned first, at `.alpha_first` = 1 / lambda_k; the other one at `.alpha_second`,
    where alpha lambda_k = 1 along the first one's curve, with its standard error `.error` from
    `scrambles` scramblings, drawn from `seed`, of `points` (a power of 2) samples. A second or two,
    after ten for compiling. Raises `Refusal`, which names the argument, for others.

    >>> found = two_layer_thresholds(1.0, points=512, scrambles=2)
    >>> found.first, round(found.alpha_first, 4), abs(found.alpha_second - 0.7194) < 0.05
    (2, 0.1855, True)
    """
    from manybody.theory.multi_index.thresholds import at_skip

    return at_skip(skip, activation, points, scrambles, seed)
