"""A model, its optimizer and one training step."""

from collections import defaultdict

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from manybody import models
from manybody.io.checkpoints import copy_into, tensors
from manybody.io.quick_start import without_compiler
from manybody.io.seeds import initial_seed, torch_seed
from manybody.models.objectives import masked_loss, next_token_loss
from manybody.training import learning_rate
from manybody.training.batches import Batch


class Objective(nn.Module):
    """Summed loss (nats) and number of correct predictions of a batch, by a `forward`, as data
    parallelism and autocast act on that of the module that they wrap alone."""

    def __init__(self, model: nn.Module, objective: str, compiled: bool, together: bool):
        super().__init__()
        self.model, self.objective, self.together = model, objective, together
        self._call = torch.compile(self._sums) if compiled else self._sums

    def forward(self, tokens: Tensor, *copies: Tensor) -> tuple[Tensor, Tensor]:
        return self._call(tokens, *copies)

    def _sums(self, tokens: Tensor, *copies: Tensor) -> tuple[Tensor, Tensor]:
        if self.objective == "masked":
            losses, correct = masked_loss(self.model, tokens, *copies, together=self.together)
        else:
            losses, correct = next_token_loss(self.model, tokens)
        return losses.sum(), correct.sum()


class Learner:
    """Takes the steps of a run with settings of `seeds.run_settings` on `data` (sequences, L),
    integers; a batch's summed loss, over all processes, is divided by `divisor`."""

    def __init__(self, settings: dict, data, divisor: int, accelerator: Accelerator):
        description, recipe = settings["description"], settings["recipe"]
        self.recipe, self.data, self.accelerator = recipe, data, accelerator
        torch.manual_seed(initial_seed(settings))
        self.model = models.build(description)
        with torch.no_grad():
            for parameter in self.model.parameters():
                if parameter.ndim > 1:
                    parameter *= recipe.get("init_factor", 1.0)
        # Whatever a model may draw in its forward (dropout) follows the order of the data.
        torch.manual_seed(torch_seed(settings["seed"], "forward", stream=settings["stream"]))
        together = recipe.get("together", False)
        objective = Objective(self.model, recipe["objective"], recipe["compile"], together)
        # Without `device_placement` accelerate imports torch's sharded tensors, a second of work.
        self.objective = accelerator.prepare_model(objective, device_placement=True)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = build_optimizer(self.parameters, recipe)
        # Data parallelism averages over processes, whose shares may differ in size: every
        # prediction of the whole batch gets the same weight.
        self.weight = accelerator.num_processes / divisor
        plain = accelerator.num_processes == 1 and recipe["precision"] == "float32"
        self.graphless = plain and recipe["objective"] == "masked" and not recipe["compile"]

    def step(self, step: int, batch: Batch) -> tuple[Tensor, Tensor]:
        """One update on this process's share of a batch: its loss sum and number correct."""
        rate = learning_rate(step, self.recipe)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss, correct = self._gradients(*self._to_device(batch))
        if self.recipe["clip"] is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.recipe["clip"], foreach=True)
        self.optimizer.step()
        for parameter in self.parameters:
            parameter.grad = None
        return loss.detach(), correct

    def _gradients(self, tokens: Tensor, *copies: Tensor) -> tuple[Tensor, Tensor]:
        """The batch's loss sum and number correct, with the gradients of its share in `.grad`."""
        if self.graphless and not copies:
            sums = self.model.set_gradients(tokens, self.weight)
            if sums is not None:
                return sums
        loss, correct = self.objective(tokens, *copies)
        # Not accelerate's backward: what it adds is for losses that half precision would flush to
        # zero, which bfloat16 does not.
        (loss * self.weight).backward()
        return loss, correct

    def state(self) -> dict[str, Tensor]:
        """Weights, optimizer and generator states by name; reading it changes nothing."""
        named = {f"model.{name}": tensor for name, tensor in tensors(self.model).items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            for name, tensor in state.items():
                if tensor is not None:
                    named[f"optimizer.{index}.{name}"] = tensor
        named["generator.cpu"] = torch.get_rng_state()
        if self.accelerator.device.type == "cuda":
            named["generator.cuda"] = torch.cuda.get_rng_state(self.accelerator.device)
        return named

    def restore(self, named: dict[str, Tensor], origin: str) -> None:
        parts, states = defaultdict(dict), defaultdict(dict)
        for name, tensor in named.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        copy_into(self.model, parts["model"], origin)
        for name, tensor in parts["optimizer"].items():
            index, _, rest = name.partition(".")
            states[int(index)][rest] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": states, "param_groups": groups})
        torch.set_rng_state(parts["generator"]["cpu"])
        if self.accelerator.device.type == "cuda":
            torch.cuda.set_rng_state(parts["generator"]["cuda"], self.accelerator.device)

    def _to_device(self, batch: Batch) -> list[Tensor]:
        tokens = torch.from_numpy(np.take(self.data, batch.sequences, axis=0).astype("int64"))
        inputs = [tokens] if batch.rows is None else [tokens, batch.rows, batch.positions]
        if self.accelerator.device.type == "cpu":
            return inputs
        pinned = (tensor.pin_memory() for tensor in inputs)
        return [tensor.to(self.accelerator.device, non_blocking=True) for tensor in pinned]


SGD, AdamW = without_compiler(torch.optim.SGD), without_compiler(torch.optim.AdamW)


def build_optimizer(parameters: list[nn.Parameter], recipe: dict) -> torch.optim.Optimizer:
    """SGD or AdamW in its fused form; weight decay acts on matrices, not on biases and norms."""
    settings = recipe["optimizer"]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings["weight_decay"]},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    rate = recipe["learning_rate"]
    if settings["name"] == "sgd":
        return SGD(groups, lr=rate, momentum=settings["momentum"], fused=True)
    return AdamW(groups, lr=rate, betas=tuple(settings["betas"]), fused=True)
