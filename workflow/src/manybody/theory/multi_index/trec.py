"""A two-layer attention classifier of questions: which layer settles first (figure 3 right).

Embeddings X (length, width) of the tokens, trained from scratch, go through two tied layers
without skip connection, each with its own W (hidden, width) and bias,

    X <- softmax(K K^T / sqrt(hidden)) X,   K = X W^T + bias,

a mean over all places, padding included (there is no attention mask), and a linear readout to the
six classes (docs/science/multi-index.md, section 6). AdamW minimises the cross-entropy. With
G = W W^T of a layer, its similarity to the last iterate is S(t) = tr(G_t G_T) / (|G_t| |G_T|).

Where W starts and AdamW's epsilon decide when S rises. An AdamW step moves an entry by about the
learning rate, so weights of the stated start 0.1 cannot turn in tens of steps at 5e-5: over 40
epochs S_1 is 0.96 from the first step, and S_2 creeps up from 0.5. The published, faster curves
want a start near 1e-4, and the late second layer, whose gradient is as small as W, epsilon 1e-6.

AdamW acts on each entry alone, so embeddings of tokens that no question holds are left out: the
others are what they would be among all |V|.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import cross_entropy, linear

from manybody.io.devices import torch_threads
from manybody.io.progress import Progress
from manybody.io.quick_start import without_compiler
from manybody.io.tables import THEORY, document_of, joined, rows
from manybody.theory.multi_index.questions import Questions, Tokens, of_packages, read, tokenise

LAYERS = 2
FINE = 2  # epochs at the start in which weights are kept after every step
THINNED = 100  # times a decade of steps that they are kept after these
EVALUATIONS = 4  # an epoch, in the fine ones; later one
QUESTIONS = 64  # held-out questions in one pass
AdamW = without_compiler(torch.optim.AdamW)


class Classifier:
    """Drawn from the numpy `generator`: embeddings (rows, width), N(0, 1); of each layer W (hidden,
    width), N(0, init_scale^2), and a bias, 0; the readout, uniform in +- 1/sqrt(width). All but W
    start as in torch."""

    def __init__(
        self, generator, rows: int, width: int, hidden: int, init_scale: float, classes: int
    ):
        def normal(*shape: int) -> torch.Tensor:
            return torch.from_numpy(generator.standard_normal(shape, np.float32))

        def uniform(*shape: int) -> torch.Tensor:
            drawn = generator.uniform(-1, 1, shape) / math.sqrt(width)
            return torch.from_numpy(drawn.astype(np.float32))

        self.embedding = normal(rows, width)
        self.weights = [init_scale * normal(hidden, width) for _ in range(LAYERS)]
        self.biases = [torch.zeros(hidden) for _ in range(LAYERS)]
        self.readout, self.offset = uniform(classes, width), uniform(classes)
        for parameter in self.parameters():
            parameter.requires_grad_()

    def parameters(self) -> list[torch.Tensor]:
        return [self.embedding, *self.weights, *self.biases, self.readout, self.offset]

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        """Logits (n, classes) of embedded questions x (n, length, width)."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            keys = linear(x, weight, bias)
            x = torch.softmax(keys @ keys.mT / math.sqrt(len(weight)), -1) @ x
        return linear(x.mean(1), self.readout, self.offset)

    def gradients(self, ids: torch.Tensor, labels: torch.Tensor) -> float:
        """The mean cross-entropy of a batch of ids (n, length), nats; sets each `.grad`."""
        x = self.embedding.detach()[ids].requires_grad_()
        loss = cross_entropy(self.scores(x), labels)
        sides = self.parameters()[1:]
        first, *others = torch.autograd.grad(loss, [x, *sides])
        # One dense gradient is kept and filled, not made anew at each step.
        if self.embedding.grad is None:
            self.embedding.grad = torch.zeros_like(self.embedding)
        self.embedding.grad.zero_().index_add_(0, ids.flatten(), first.flatten(0, 1))
        for parameter, gradient in zip(sides, others, strict=True):
            parameter.grad = gradient
        return loss.item()


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of theory of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.Trec`; without questions there are no rows. AdamW's other
    numbers are torch's. Quantities, seed = run, x = steps of the optimizer:

    - `similarity 1`, `similarity 2`: S of the layer to the last iterate;
    - `loss` (nats), `accuracy`: on the held-out questions, with standard errors over them.

    Raises `ValueError` for a bad entry, question or tokenizer, naming key or file and value.
    """
    if entry["questions"] is None:
        return pd.DataFrame(columns=THEORY.schema.names), document_of(entry) | {"questions": None}
    given = entry["questions"]
    if isinstance(given, dict):
        questions = of_packages(given["packages"], given["of_each"], entry["seed"])
    else:
        questions = read(given)
    tokens = tokenise(questions.texts, entry["length"], entry["tokenizer"], entry.get("vocabulary"))
    count = len(questions.texts)
    held_out = math.ceil(entry["held_out"] * count)
    if not 1 <= held_out < count:
        raise ValueError(
            f"held_out: found {entry['held_out']}, which of {count} questions holds out "
            f"{held_out}; expected a share that leaves some on both sides"
        )
    streams = np.random.SeedSequence(entry["seed"]).spawn(entry["runs"])
    label = f"classifier, {entry['runs']} runs"
    per_epoch = math.ceil((count - held_out) / entry["batch"])
    steps = entry["epochs"] * per_epoch
    with (
        Progress(entry["runs"] * steps, "steps", label) as progress,
        torch_threads(1),
        ThreadPoolExecutor(entry["threads"]) as pool,
    ):
        run = partial(_run, entry, questions, tokens, held_out, per_epoch, progress.update)
        parts = list(pool.map(run, range(len(streams)), streams))
    frame, made = joined([found for part in parts for found in part], entry)
    return frame, made | {
        "questions": {"all": count, "held out": held_out},
        "tokenizer": {**tokens.about, "in use": len(np.unique(tokens.ids))},
        "steps": steps,
        "versions": {name: version(name) for name in ("numpy", "torch")},
    }


def _run(
    entry: dict,
    questions: Questions,
    tokens: Tokens,
    held_out: int,
    per_epoch: int,
    report: Callable[..., None],
    number: int,
    stream: np.random.SeedSequence,
) -> list[pd.DataFrame]:
    torch.set_num_threads(1)  # of the calling thread
    generator = np.random.default_rng(stream)
    used, ids = np.unique(tokens.ids, return_inverse=True)
    ids = torch.from_numpy(ids.reshape(tokens.ids.shape))
    labels = torch.from_numpy(questions.labels)
    split = generator.permutation(len(labels))
    test, train = split[:held_out], split[held_out:]
    shape = len(used), entry["width"], entry["hidden"]
    model = Classifier(generator, *shape, entry["init_scale"], len(questions.classes))
    rate, epsilon = entry["learning_rate"], entry["epsilon"]
    optimizer = AdamW(model.parameters(), lr=rate, eps=epsilon, fused=True)

    looks, evaluations = _looks(entry["epochs"] * per_epoch, per_epoch)
    grams, measured = [], []

    def look(step: int) -> None:
        if step in looks:
            grams.append([(weight @ weight.mT).detach() for weight in model.weights])
        if step in evaluations:
            measured.append((step, *evaluate(model, ids[test], labels[test])))

    look(0)
    step = 0
    for _ in range(entry["epochs"]):
        for chosen in np.array_split(
            generator.permutation(train), range(entry["batch"], len(train), entry["batch"])
        ):
            loss = model.gradients(ids[chosen], labels[chosen])
            if not math.isfinite(loss):
                raise ValueError(
                    f"learning_rate: found {rate:g}, with which the loss of run {number} is {loss} "
                    f"at step {step}; expected a smaller one"
                )
            optimizer.step()
            step += 1
            look(step)
        report(per_epoch, loss=measured[-1][1], accuracy=measured[-1][3])
    steps, losses, loss_errors, accuracies, accuracy_errors = np.transpose(measured)
    parts = []
    for k, layer in enumerate(zip(*grams, strict=True), 1):
        S = similarity(torch.stack(layer).numpy())
        parts.append(rows(f"similarity {k}", "", looks, S, seed=number))
    parts.append(rows("loss", "", steps, losses, loss_errors, number))
    parts.append(rows("accuracy", "", steps, accuracies, accuracy_errors, number))
    return parts


def evaluate(model: Classifier, ids: torch.Tensor, labels: torch.Tensor) -> tuple[float, ...]:
    """Loss (nats) and accuracy on questions ids (n, length), each with its standard error."""
    losses, hits = [], []
    with torch.no_grad():
        for rows, truth in zip(ids.split(QUESTIONS), labels.split(QUESTIONS), strict=True):
            scores = model.scores(model.embedding[rows])
            losses.append(cross_entropy(scores, truth, reduction="none"))
            hits.append(scores.argmax(1) == truth)
    numbers = []
    for parts in (losses, hits):
        values = torch.cat(parts).double().numpy()
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        numbers += [float(values.mean()), float(error)]
    return tuple(numbers)


def similarity(grams: np.ndarray) -> np.ndarray:
    """S(t) = tr(G_t G_T) / (|G_t| |G_T|) of grams (times, hidden, hidden) to the last of them."""
    grams = np.asarray(grams, float)
    flat = grams.reshape(len(grams), -1)
    norms = np.sqrt((flat**2).sum(1))
    return (flat * flat[-1]).sum(1) / (norms * norms[-1])


def _looks(last: int, per_epoch: int) -> tuple[list[int], set[int]]:
    """Steps after which weights are kept, and those after which the held-out loss is taken."""
    fine = min(FINE * per_epoch, last)
    decades = math.log10(last / fine)
    coarse = np.geomspace(fine, last, 1 + math.ceil(THINNED * decades)).round().astype(int)
    looks = sorted({*range(fine), *coarse.tolist(), last})
    often = np.linspace(0, fine, 1 + EVALUATIONS * (fine // per_epoch)).round().astype(int)
    return looks, {*often.tolist(), *range(fine, last + 1, per_epoch)}
