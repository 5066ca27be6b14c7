"""Share of a GPU's peak that training and sampling reach, at the papers' TinyStories size.

`python -m benchmarks.gpu [table.csv]`, with `workflow` and `workflow/src` on PYTHONPATH. The
baseline is the device's own rate of large matrix products, measured in the same run; ours counts
the operations that are executed:

    2 [3 d^2 (S + 1) L + (n - 1) N L (d^2 + 2 d m + 2 L d) + (n - 2) 3 d^2 N L + 2 d^2 N L
       + N (2 d^2 + 2 d m + 2 L d + d |V|)]

of the logits of N masked copies of S sequences; sampling leaves out the head, d |V|; a training
step takes three times as many.
"""

import statistics
import sys
from itertools import count

import numpy as np
import pandas as pd
import torch

from benchmarks.harness import row, seconds
from manybody import models
from manybody.io.devices import accelerated, tensor_cores
from manybody.io.seeds import run_settings
from manybody.models.objectives import sequence_sums
from manybody.sampling.backends import open_chains
from manybody.sampling.draws import Draws
from manybody.sampling.metropolis import advance
from manybody.training.batches import Batches
from manybody.training.learner import Learner

VOCABULARY, LENGTH, CHAINS = 10_000, 128, 620
BERT = dict(
    architecture="bert", vocabulary=VOCABULARY, length=LENGTH, layers=4, heads=16, width=768,
    mlp=1536,
)  # fmt: skip
RECIPE = dict(
    objective="masked", steps=10_000, batch=1024, masks=0.15, learning_rate=0.03,
    optimizer=dict(name="sgd", momentum=0.9, weight_decay=0.0), schedule="cosine", warmup=0,
    clip=1.0, precision="bfloat16", compile=True, threads=1, validation=2,
    checkpoints=dict(logarithmic=0, listed=[]),
)  # fmt: skip


def operations(sequences: int, copies: int, head: bool = True) -> float:
    """Operations of the logits, or without `head` the features, of masked copies of a BERT."""
    n, d, m, heads = (BERT[key] for key in ("layers", "width", "mlp", "heads"))
    rows = copies * LENGTH
    row_products = (n - 1) * (d * d + 2 * d * m + 2 * LENGTH * d) + 3 * (n - 2) * d * d
    asked = 4 * d * d + 2 * d * m + 2 * heads * LENGTH * d + head * d * VOCABULARY
    return 2.0 * (3 * d * d * (sequences + 1) * LENGTH + rows * row_products + copies * asked)


def median_seconds(call, repeats: int = 10) -> float:
    """Seconds of a call on the GPU, the median of its repeats after two that do not count."""

    def waited():
        call()
        torch.cuda.synchronize()

    return statistics.median([seconds(waited) for _ in range(repeats + 2)][2:])


def matrix_rate(dtype: torch.dtype, size: int = 8192, repeats: int = 10) -> float:
    """Operations a second of a product of (size, size) random numbers.

    A few products are over before the device is at its limit of power; a thousand are not.
    """
    first, second = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    return 2.0 * size**3 / median_seconds(lambda: first @ second, repeats)


def train_step(steps: int = 20) -> float:
    """Seconds of a step of the training loop's own learner."""
    data = np.random.default_rng(7).integers(0, VOCABULARY, (20_000, LENGTH), dtype=np.uint16)
    batches = Batches(len(data), LENGTH, RECIPE, 7)
    settings = run_settings({}, BERT, RECIPE, 7, 7, "")
    with accelerated("cuda", RECIPE["precision"], RECIPE["threads"]) as accelerator:
        learner = Learner(settings, data, batches.predictions, accelerator)
        blocks = count()

        def several():
            first = steps * next(blocks)
            for step in range(first, first + steps):
                learner.step(step, batches.at(step))

        return median_seconds(several, 5) / steps


@torch.no_grad()
def sample_rate(steps: int = 6) -> tuple[float, float]:
    """Steps of chains a second of Metropolis-Hastings in float16, and operations a second."""
    torch.manual_seed(7)
    model = models.build(BERT).eval().cuda()
    done = [0.0]

    def counted(call):
        def counting(tokens, rows, positions):
            done[0] += operations(len(tokens), len(rows), head=False)
            return call(tokens, rows, positions)

        return counting

    initial = np.random.default_rng(7).integers(0, VOCABULARY, (CHAINS, LENGTH))
    state = open_chains(model, torch.from_numpy(initial).cuda(), precision="float16")
    state.fast_features = counted(state.fast_features)
    visits, uniforms = Draws(7, CHAINS, LENGTH, "left-to-right").sweeps(range(1, 2))
    # Each call begins with the energies of all chains, which belong to a sweep and not to a step.
    spent = []
    for part in (slice(0, 2), slice(2, 4), slice(4, 6 + steps)):
        done[0] = 0.0
        took = seconds(advance, state, visits[..., part], uniforms[:, :, part], initial)
        spent.append((took, done[0]))
    took, operated = (more - less for less, more in zip(*spent[1:], strict=True))
    return CHAINS * steps / took, operated / took


@torch.no_grad()
def test_rate(masks: int | None, sequences: int) -> tuple[float, float]:
    """Masked tokens a second of the test losses of a BERT, and operations a second."""
    model = models.build(BERT).eval().cuda()
    tokens = torch.randint(VOCABULARY, (sequences, LENGTH))
    copies = masks or LENGTH
    positions = masks and torch.rand(sequences, LENGTH).argsort(1)[:, :masks].sort(1).values
    with tensor_cores():
        took = median_seconds(lambda: sequence_sums(model, tokens, positions), 1)
    return sequences * copies / took, operations(sequences, sequences * copies) / took


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` on the GPU that torch sees first."""
    name, half = torch.cuda.get_device_name(), torch.bfloat16
    burst, sustained = matrix_rate(half), matrix_rate(half, repeats=1500)
    rows = [row(f"products under full load ({name})", sustained, burst, "operations/s")]
    step = train_step()
    needed = 3 * operations(Batches(20_000, LENGTH, RECIPE, 7).sequences, RECIPE["batch"])
    found = {f"train, bfloat16, {step * 1e3:.3g} ms a step": needed / step}
    steps, rate = sample_rate()
    found[f"sample {CHAINS} chains, float16, {steps:.4g} chain-steps/s"] = rate
    for masks in (None, 16):
        tokens, rate = test_rate(masks, 62)
        found[f"test, {masks or 'all'} positions, TF32, {tokens:.4g} tokens/s"] = rate
    return rows + [row(what, rate, burst, "operations/s") for what, rate in found.items()]


if __name__ == "__main__":
    pd.DataFrame(measure()).to_csv(sys.argv[1] if len(sys.argv) > 1 else sys.stdout, index=False)
