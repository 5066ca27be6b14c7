"""How near training and sampling come to what a GPU can do, at the paper's TinyStories size.

`python -m benchmarks.gpu [table.csv]`, with the package's folder on PYTHONPATH. Columns
as in every benchmark; the baseline is the device's own measured rate of large matrix products,
and the unit holds the formula of the operations that are counted, those really executed.
"""

import csv
import statistics
import sys
import time

import numpy as np
import torch

from manybody import models
from manybody.io.devices import accelerated
from manybody.io.seeds import run_settings
from manybody.models.base import Model
from manybody.sampling.backends import open_chains
from manybody.sampling.draws import Draws
from manybody.sampling.metropolis import advance
from manybody.training.batches import Batches
from manybody.training.learner import Learner

VOCABULARY, LENGTH = 10_000, 128
BERT = dict(
    architecture="bert", vocabulary=VOCABULARY, length=LENGTH, layers=4, heads=16, width=768,
    mlp=1536,
)  # fmt: skip
FACTORED = dict(
    architecture="factored", vocabulary=VOCABULARY, length=LENGTH, layers=4, rank=400,
    bias=True, variant="exact",
)  # fmt: skip
RECIPE = dict(
    objective="masked", steps=10_000, batch=1024, masks=0.15, learning_rate=0.03,
    optimizer=dict(name="sgd", momentum=0.9, weight_decay=0.0), schedule="cosine", warmup=0,
    clip=1.0, precision="bfloat16", compile=True, threads=1, validation=2,
    checkpoints=dict(logarithmic=0, listed=[]),
)  # fmt: skip
BERT_FORMULA = (
    "executed FLOP = 2 [3 d^2 (S + 1) L + (n - 1) N L (d^2 + 2 d m + 2 L d) + (n - 2) 3 d^2 N L "
    "+ 2 d^2 N L + N (2 d^2 + 2 d m + 2 L d + d V)]"
)


def bert_forward_flop(description: dict, sequences: int, copies: int) -> float:
    """Operations of the logits of N masked copies of S sequences (BERT_FORMULA), n >= 2 layers.

    The first layer's queries, keys and values are computed once a sequence and once for the mask
    symbols; the last layer reads only the masked rows, and keys and values of all.
    """
    n, d, m = (description[key] for key in ("layers", "width", "mlp"))
    length, vocabulary = description["length"], description["vocabulary"]
    rows = copies * length
    products = 3 * d * d * (sequences + 1) * length
    products += (n - 1) * rows * (d * d + 2 * d * m + 2 * length * d)
    products += (n - 2) * rows * 3 * d * d + rows * 2 * d * d
    products += copies * (2 * d * d + 2 * d * m + 2 * length * d + d * vocabulary)
    return 2.0 * products


def matrix_rate(dtype: torch.dtype, size: int = 8192) -> float:
    """FLOP/s of a (size, size) matrix product of random numbers on the GPU, median of 20."""
    first, second = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    return 2.0 * size**3 / _seconds(lambda: first @ second, 20)


def copy_rate(numbers: int = 2**30) -> float:
    """Bytes/s, read and written, of a copy on the GPU, median of 20."""
    source = torch.randn(numbers, device="cuda")
    target = torch.empty_like(source)
    return 8.0 * numbers / _seconds(lambda: target.copy_(source), 20)


def _seconds(call, repeats: int) -> float:
    times = []
    for _ in range(repeats + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times[3:])


def step_seconds(description: dict, recipe: dict, steps: int = 20, blocks: int = 5) -> float:
    """Seconds of one training step of the loop's own learner, median over blocks of steps."""
    data = np.random.default_rng(7).integers(0, VOCABULARY, (20_000, LENGTH), dtype=np.uint16)
    batches = Batches(len(data), LENGTH, recipe, 7)
    settings = run_settings({}, description, recipe, 7, 7, "")
    with accelerated("cuda", recipe["precision"], recipe["threads"]) as accelerator:
        learner = Learner(settings, data, batches.predictions, accelerator)
        times = []
        for block in range(blocks + 1):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for step in range(block * steps, (block + 1) * steps):
                learner.step(step, batches.at(step))
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) / steps)
    return statistics.median(times[1:])


class Counted:
    """A BERT whose masked forwards are counted in operations."""

    def __init__(self, model: Model):
        self.flop = 0.0
        inner = model.masked_features

        def counting(tokens, rows, positions):
            self.flop += bert_forward_flop(BERT, len(tokens), len(rows))
            # The head is not part of the features; single scored rows count for nothing.
            self.flop -= 2.0 * len(rows) * BERT["width"] * BERT["vocabulary"]
            return inner(tokens, rows, positions)

        model.masked_features = counting


def sampling_rate(precision: str, chains: int = 620, steps: int = 8) -> tuple[float, float]:
    """FLOP/s and chain-steps/s of Metropolis-Hastings from a BERT with random weights."""
    torch.manual_seed(7)
    model = models.build(BERT).eval().cuda()
    counted = Counted(model)
    initial = np.random.default_rng(7).integers(0, VOCABULARY, (chains, LENGTH))
    with torch.no_grad():
        state = open_chains(model, torch.from_numpy(initial).cuda(), precision=precision)
        visits, uniforms = Draws(7, chains, LENGTH, "left-to-right").sweep(1)
        visits, uniforms = visits[:, None], uniforms[:, None]
        advance(state, visits[..., :2], uniforms[:, :, :2], initial)
        torch.cuda.synchronize()
        counted.flop, begin = 0.0, time.perf_counter()
        part = slice(2, 2 + steps)
        advance(state, visits[..., part], uniforms[:, :, part], initial)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
    return counted.flop / seconds, chains * steps / seconds


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` on the GPU that torch sees first."""
    name = torch.cuda.get_device_name()
    half, single = matrix_rate(torch.bfloat16), matrix_rate(torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = True
    tensor_float = matrix_rate(torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = False
    rows = [
        _row(f"matrix products, float32 ({name})", single, half, "FLOP/s, baseline bfloat16"),
        _row(f"matrix products, TF32 ({name})", tensor_float, half, "FLOP/s, baseline bfloat16"),
    ]
    seconds = step_seconds(BERT, RECIPE)
    batches = Batches(20_000, LENGTH, RECIPE, 7)
    flop = 3 * bert_forward_flop(BERT, batches.sequences, batches.predictions)
    unit = f"FLOP/s of a step, 3 x forward; {BERT_FORMULA}; baseline bfloat16 matrix products"
    rows.append(
        _row(f"train bert 4 x 768, batch 1024, bfloat16 ({name})", flop / seconds, half, unit)
    )
    for precision, rate in (("bfloat16", half), ("float32", single)):
        achieved, steps = sampling_rate(precision)
        unit = (
            f"FLOP/s of MH steps ({steps:.3g} chain-steps/s); {BERT_FORMULA} less the head; "
            f"baseline {precision} matrix products"
        )
        what = f"sample bert 4 x 768, 620 chains, {precision} ({name})"
        rows.append(_row(what, achieved, rate, unit))
    rows += factored_rows(name, half)
    return rows


def factored_rows(name: str, half: float) -> list[dict]:
    """Training of factored n = 4, r = 400: masked tokens/s against what products alone allow.

    Layers 2 and 3 take two (|V| x r) products for each row of each copy, the last one product
    with Q for each row and one with P for the masked row; layer 1 comes from the tables.
    """
    seconds = step_seconds(FACTORED, RECIPE | dict(learning_rate=1e-3), steps=3, blocks=3)
    copies, rank = RECIPE["batch"], FACTORED["rank"]
    products = copies * LENGTH * VOCABULARY * rank * (2 * 2 + 1) + copies * VOCABULARY * rank
    unit = "masked tokens/s; baseline: 6 n_products |V| r FLOP a copy at the bfloat16 matrix rate"
    bound = copies / (6.0 * products / half)
    what = f"train factored n=4 r=400, batch 1024, bfloat16 ({name})"
    rows = [_row(what, copies / seconds, bound, unit)]
    # Each of the two squares reads and writes (copies, L, |V|) arrays that no cache holds.
    moved = copies * LENGTH * VOCABULARY * 2 * 12
    unit = (
        "masked tokens/s; baseline: 24 passes over (copies, L, |V|) bfloat16 numbers at copy rate"
    )
    rows.append(
        _row(what + ", memory bound", copies / seconds, copies / (moved * 2 / copy_rate()), unit)
    )
    return rows


def _row(what: str, ours: float, baseline: float, unit: str) -> dict:
    return dict(
        what=what, ours=ours, baseline=baseline, ratio=ours / baseline, unit=unit, threads=1
    )


if __name__ == "__main__":
    found = measure()
    with open(sys.argv[1] if len(sys.argv) > 1 else "/dev/stdout", "w", newline="") as opened:
        writer = csv.DictWriter(opened, found[0].keys())
        writer.writeheader()
        writer.writerows(found)
