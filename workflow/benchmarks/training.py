"""Masked copies a second of the training loop, against transformers' Trainer.

Both train the same BERT from the same weights on the same batches and masks with the same AdamW,
clipping and constant rate; that they end at the same weights is checked. The Trainer runs the
library's forward with labels -100 off the masked row, as its users do, with nothing else switched
on, and is handed batches that are already put together.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import IterableDataset

from benchmarks.harness import row
from manybody import models
from manybody.io.devices import torch_threads
from manybody.io.seeds import torch_seed
from manybody.models import stored
from manybody.models.linear import Linear
from manybody.training.batches import Batches
from manybody.training.loop import train

BERT = dict(architecture="bert", vocabulary=400, length=16, layers=2, heads=4, width=64, mlp=128)
WARM = 5  # first steps of a block, not timed
RECIPE = dict(
    objective="masked",
    batch=256,
    masks=0.15,
    optimizer=dict(name="adamw", betas=[0.9, 0.98], weight_decay=0.0),
    learning_rate=1e-3,
    schedule="constant",
    warmup=0,
    clip=1.0,
    checkpoints=dict(logarithmic=0, listed=[WARM]),
    validation=8,
    precision="float32",
    compile=False,
)


def measure(blocks: int = 7, steps: int = 40, threads: int = 1) -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads`, medians over alternating blocks.

    Each block trains `steps` steps with one, then with the other, in masked copies a second.
    """
    recipe = {**RECIPE, "steps": steps, "threads": threads}
    draw = np.random.default_rng(0)
    shape = (4096, BERT["length"])
    tokens = draw.integers(0, BERT["vocabulary"], shape, dtype=np.uint16)
    ours, theirs = [], []
    for _ in range(blocks):
        with tempfile.TemporaryDirectory() as folder:
            rate, model = our_rate(recipe, tokens, Path(folder))
            ours.append(rate)
            rate, trained = trainer_rate(recipe, tokens, Path(folder))
            theirs.append(rate)
        for (name, one), two in zip(model.named_parameters(), trained.parameters(), strict=True):
            # Adam divides by the size of the gradient, so where that is rounding (the keys' biases)
            # a weight may end anywhere within steps * rate.
            if "key.bias" not in name and (one - two).abs().mean() > 0.01 * recipe["learning_rate"]:
                raise RuntimeError(f"{name} differs: the two did not do the same training")
    medians = map(statistics.median, (ours, theirs))
    return [row("bert 2 x 64", *medians, "masked copies/s", threads)]


def our_rate(recipe: dict, tokens: np.ndarray, folder: Path) -> tuple[float, nn.Module]:
    """Masked copies a second of our loop, and the trained model."""
    data = {name: SimpleNamespace(tokens=tokens) for name in ("train", "validation")}
    manifest = train(BERT, recipe, data, folder / "run", 0, 0, {}, device="cpu")
    last = json.loads((folder / "run/timing.jsonl").read_text().splitlines()[-1])
    return last["predictions_per_second"], stored.load_model(manifest)


class Labelled(nn.Module):
    """The same weights as the Trainer wants them, in torch's own layers: a loss from ids and
    labels, head on all rows."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        for part in model.modules():
            if type(part) is Linear:
                part.__class__ = nn.Linear

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.model.output(self.model.features(input_ids))
        return {"loss": nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())}


class Copies(IterableDataset):
    """The batches of our loop with every masked copy written out, put together beforehand."""

    def __init__(self, recipe: dict, tokens: np.ndarray):
        batches = Batches(*tokens.shape, recipe, seed=0)
        self.batches = []
        for step in range(recipe["steps"]):
            batch = batches.at(step)
            copies = torch.from_numpy(tokens[batch.sequences].astype("int64"))[batch.rows]
            hidden = torch.arange(tokens.shape[1]) == batch.positions[:, None]
            self.batches.append(
                dict(
                    input_ids=copies.masked_fill(hidden, BERT["vocabulary"]),
                    labels=copies.masked_fill(~hidden, -100),
                )
            )

    def __iter__(self):
        return iter(self.batches)


def trainer_rate(recipe: dict, tokens: np.ndarray, folder: Path) -> tuple[float, nn.Module]:
    """Masked copies a second of transformers' Trainer, and the trained model."""
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    times = {}

    class Clock(TrainerCallback):
        def on_step_end(self, arguments, state, control, **_):
            times[state.global_step] = time.perf_counter()

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(0, "weights"))
        model = models.build(BERT)
        arguments = TrainingArguments(
            output_dir=str(folder / "trainer"),
            max_steps=recipe["steps"],
            per_device_train_batch_size=1,  # one batch of copies
            learning_rate=recipe["learning_rate"],
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            adam_beta1=recipe["optimizer"]["betas"][0],
            adam_beta2=recipe["optimizer"]["betas"][1],
            max_grad_norm=recipe["clip"],
            logging_strategy="no",
            logging_nan_inf_filter=False,
            save_strategy="no",
            eval_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_num_workers=0,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
            use_cpu=True,
        )
        with torch_threads(recipe["threads"]):
            trainer = Trainer(
                Labelled(model),
                arguments,
                train_dataset=Copies(recipe, tokens),
                data_collator=lambda batches: batches[0],
                callbacks=[Clock()],
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
    seconds = times[recipe["steps"]] - times[WARM]
    return (recipe["steps"] - WARM) * recipe["batch"] / seconds, model
