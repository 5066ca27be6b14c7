"""How fast many-body data are trained on and sampled, each against a competent plain form.

Training: sequences a second, forward and backward of all L masks, on the batches of the training
loop. The baseline masks explicitly: batched torch on all L copies of a sequence at once, whose
last layer computes the masked row only and whose one-hot inputs are gathered, not multiplied, at
the batch size that suits it best. That both give the same gradients is checked.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks import gibbs
from benchmarks.harness import medians, row, timed
from manybody.io.devices import torch_threads
from manybody.models import build

# n, L, |V|, and the sequences that a block times: about a second of the baseline's work
CASES = [(2, 20, 10, 5120), (3, 20, 10, 2560), (2, 10, 5, 25600), (3, 10, 5, 12800)]
BATCH = 256  # of the training recipe
BATCHES = (32, 64, 128, 256)  # of the baseline


def measure(blocks: int = 5, threads: int = 1) -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads`: networks, then `gibbs.measure`.

    Alternating blocks; `ours` and `baseline` are medians in sequences a second.
    """
    with torch_threads(threads):
        rows = [_row(*case, blocks, threads) for case in CASES]
    return [*rows, *gibbs.measure()]


def _row(
    layers: int, length: int, vocabulary: int, sequences: int, blocks: int, threads: int
) -> dict:
    torch.manual_seed(0)
    sizes = dict(vocabulary=vocabulary, length=length, layers=layers)
    model = build(dict(architecture="factored", rank=None, bias=False, init_scale=0.4, **sizes))
    tokens = torch.randint(vocabulary, (sequences, length))
    parameters = list(model.parameters())

    def ours(batch: Tensor) -> None:
        model.set_gradients(batch, 1 / len(batch))  # what a training step calls

    def baseline(batch: Tensor) -> None:
        (explicit_loss(model, batch) / len(batch)).backward()

    found = []
    for form in (ours, baseline):
        form(tokens[:BATCH])
        found.append([weight.grad for weight in parameters])
        model.zero_grad()
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-3 * float(two.abs().max()))
    best = max(BATCHES, key=lambda size: _rate(baseline, parameters, tokens[: 2 * BATCH], size))
    sides = (ours, BATCH), (baseline, best)
    rates = medians(
        [partial(_rate, form, parameters, tokens, size) for form, size in sides], blocks
    )
    return row(f"n={layers}, L={length}, |V|={vocabulary}", *rates, "sequences/s", threads)


def _rate(form, parameters: list[Tensor], tokens: Tensor, size: int) -> float:
    """Sequences a second of the processor that `form` takes forward and back, `size` at a time."""

    def epoch() -> None:
        for batch in tokens.split(size):
            form(batch)
            for weight in parameters:
                weight.grad = None

    return len(tokens) / timed(epoch)[2]


def explicit_loss(model, tokens: Tensor) -> Tensor:
    """Summed loss (nats) of all L masked copies of tokens (B, L), each copy computed by itself.

    Arrays are (L, B, copies, |V|): every product is one product of large matrices.
    """
    seen = ~torch.eye(tokens.shape[1], dtype=torch.bool)[:, None, :, None]
    x = functional.one_hot(tokens.T, model.vocabulary).to(model.attention[0].dtype)
    x = x[:, :, None] * seen
    for layer in range(model.layers - 1):
        if layer == 0:
            values = functional.embedding(tokens.T, model.left[0].T)[:, :, None] * seen
        else:
            values = x @ model.left[layer].T
        mixed = model.attention[layer] @ values.flatten(1)
        x = x + mixed.square().view(x.shape)
    rows = torch.einsum("ij,jbia->bia", model.attention[-1], x)
    logits = rows.flatten(0, 1) @ model.left[-1].T
    return functional.cross_entropy(logits, tokens.flatten(), reduction="sum")
