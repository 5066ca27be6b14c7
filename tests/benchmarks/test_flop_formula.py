"""The operations that utilisation is quoted in are those that torch executes."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu import bert_forward_flop
from manybody import models


@pytest.mark.parametrize("layers", [2, 4])
def test_bert_formula_counts_what_is_executed(layers):
    description = dict(
        architecture="bert", vocabulary=50, length=12, layers=layers, heads=4, width=32, mlp=48
    )
    model = models.build(description)
    tokens = torch.randint(50, (3, 12))
    rows, positions = torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 5, 3, 1, 11])
    # The counter does not know the fused attention of CPUs.
    fused = sdpa_kernel(SDPBackend.MATH)
    with torch.no_grad(), fused, FlopCounterMode(display=False) as counter:
        model.masked_logits(tokens, rows, positions)
    assert counter.get_total_flops() == bert_forward_flop(description, 3, 5)
