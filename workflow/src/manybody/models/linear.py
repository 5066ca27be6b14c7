"""Linear maps in single precision: on a CPU by MKL or oneDNN, on a GPU if asked by tensor cores.

MKL, torch's own choice, uses half of the width of the vectors of some AMD processors; on others, as
an EPYC of the fourth generation, both take the same time. By oneDNN, whose products of long columns
are slow, a training step of BERT or GPT takes 15 % longer on a Xeon with AMX and 12 % longer on an
EPYC of the third generation, without AVX-512.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from manybody.io import devices

SMALL = 2**20  # multiplications, for which a call takes as long as the product
TF32 = -(2**13)  # the bits of a float32 that TF32 keeps
# Not part of torch's interface, so that a version may lack it.
PRODUCTS = (
    [torch.ops.mkldnn._linear_pointwise]
    if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    else []
)


def _suits_mkl() -> bool:
    """True if torch has MKL, on Linux, and the processor is Intel's or has no AVX-512."""
    try:
        with open("/proc/cpuinfo", "rb") as opened:
            intel = b"GenuineIntel" in opened.read(200)
    except OSError:
        return False
    narrow = "AVX512" not in torch.backends.cpu.get_cpu_capability()
    return torch.backends.mkl.is_available() and (intel or narrow)


by_onednn = bool(PRODUCTS) and not _suits_mkl()


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows (..., d) @ weight (m, d).T + bias (m,)."""
    if devices.splitting and rows.is_cuda and rows.dtype == weight.dtype == torch.float32:
        return split_product(rows, weight, bias)
    if (
        not by_onednn
        or rows.numel() * len(weight) < SMALL
        or not rows.dtype == weight.dtype == torch.float32
        or rows.device.type != "cpu"
        or torch.is_autocast_enabled("cpu")
        or torch.compiler.is_compiling()
    ):
        return functional.linear(rows, weight, bias)
    given = (rows, weight, bias)
    if torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in given):
        return _Linear.apply(*given)
    return _product(*given)


def split_product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear` by products of numbers that TF32 holds.

    With x = x' + x'' and w = w' + w'', where x' and w' have 11 bits, x w = x' w' + x'' w' + x' w''
    to 2^-22: one product of rows three times as long. An H200 takes half of the time of float32,
    with a relative error of its sums of 6e-6 instead of 4e-7.
    """
    high, of_weight = [
        (part.view(torch.int32) & TF32).view(torch.float32) for part in (rows, weight)
    ]
    left, right = (high, rows - high, high), (of_weight, of_weight, weight - of_weight)
    return functional.linear(torch.cat(left, dim=-1), torch.cat(right, dim=-1), bias)


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return PRODUCTS[0](rows, weight, bias, "none", [], "")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, bias):
        ctx.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        rows, weight = ctx.saved_tensors
        flat = gradient.flatten(0, -2)
        asked, of_rows, of_weight, of_bias = ctx.needs_input_grad, None, None, None
        if asked[0]:
            of_rows = _product(gradient, weight.T.contiguous())
        if asked[1]:
            # oneDNN copies the left matrix slowly: the narrow one goes first, in either order.
            columns = flat.T, rows.flatten(0, -2).T
            narrow = flat.shape[-1] <= rows.shape[-1]
            of_weight = _product(*columns) if narrow else _product(*columns[::-1]).T
        if asked[2]:
            of_bias = flat.sum(0)
        return of_rows, of_weight, of_bias


class Linear(nn.Linear):
    """torch's layer, computed by `linear`."""

    def forward(self, rows: Tensor) -> Tensor:
        return linear(rows, self.weight, self.bias)


def accelerate_layers(module: nn.Module) -> None:
    """Lets all linear layers inside `module` compute by `linear`; their weights stay."""
    for part in module.modules():
        if type(part) is nn.Linear:
            part.__class__ = Linear
