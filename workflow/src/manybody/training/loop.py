"""The one training loop: any model, any sequences, on any device.

A run leaves weights at its checkpoints, a history and, last of all, the manifest that lists them.
A run that was killed goes on from the state in `resume/` and ends with the same bytes on a CPU.
"""

import json
import logging
import math
import time
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from manybody.data import SPLITS, sequence_weights
from manybody.io.atomic import sha256, write_json
from manybody.io.devices import accelerated
from manybody.io.lease import lease
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.io.seeds import run_settings
from manybody.io.sequences import Sequences
from manybody.models.objectives import sequence_sums
from manybody.training import kept_steps, learning_rate
from manybody.training.batches import Batches
from manybody.training.learner import Learner
from manybody.training.run_files import (
    NonFiniteLoss,
    clear,
    opened,
    remove_leftovers,
    save_checkpoint,
    write_history,
    write_run,
)

log = logging.getLogger(__name__)
CHECK = 16  # steps between two looks at the losses: on a GPU each look waits for the device
SOON = 0.1  # of the seconds between two states, from which on a checkpoint has one as well


def train(
    description: dict,
    recipe: dict,
    data: dict,
    out: str | Path,
    seed: int,
    init_seed: int | str,
    about: dict,
    device: str = "auto",
    code: str = "",
    save_every: float = 60.0,
    stream: str = "",
    replace: bool = True,
) -> Path:
    """Trains the model of `description` on `data["train"]` and returns the path of its manifest.

    `data` has two splits, `train` and `validation`, with `tokens` (sequences, L). `recipe` is the
    config's `training` block. `init_seed` sets the initial weights alone; `seed` and the name
    `stream` set the order of the data, the masks and what a forward draws, and with `init_seed` =
    "each" the initial weights too, by a number in the manifest. Runs of one seed and stream see the
    same batches, those of two streams unrelated ones. `about` (JSON) is kept in the manifest. Every
    `save_every` seconds, or at a checkpoint after a tenth of that, `out/resume/` gets the state;
    only a run with the same arguments, data, `code` (a digest of it) and torch takes it up.

    `device` is auto, cpu or cuda. Of several processes, started by accelerate, each takes its share
    of every batch; the result is that of one to rounding.

    With `divergence: keep` in the recipe a run that diverges ends with the checkpoints it has, and
    its manifest says at which step (`diverged`).

    Raises `ValueError` for a recipe that does not fit and, if it may not `replace` that, for a run
    of other arguments in `out`; `NonFiniteLoss` when training diverges.
    """
    out = Path(out)
    settings = run_settings(about, description, recipe, seed, init_seed, stream)
    with (
        torch.random.fork_rng(devices=[]),
        accelerated(device, recipe["precision"], recipe.get("threads", 1)) as accelerator,
        lease(out) if accelerator.is_main_process else nullcontext(),
    ):
        run = TrainingRun(settings, data, out, accelerator, code, save_every)
        run.take_up(replace)
        try:
            run.advance()
        except NonFiniteLoss as error:
            if recipe.get("divergence") != "keep" or not run.kept:
                raise
            log.warning("kept as diverged: %s", error)
            run.about |= {"steps": sorted(run.kept), "diverged": error.step}
        if accelerator.is_main_process:
            write_run(out, {**run.about, "data": run.fingerprints}, run.rows)
            run.resume.clear()
        accelerator.wait_for_everyone()
    return out / "manifest.json"


def train_files(description: dict, paths: dict, **settings) -> Path:
    """`train`, or `lbfgs.fit` if that is the optimizer, on the Sequences files in `paths`, which
    give the model its |V| and L, with `sequence_weights` from there where the recipe has them."""
    data = {split: Sequences.open(paths[split]) for split in SPLITS if split in paths}
    sizes = {"vocabulary": data["train"].vocabulary, "length": data["train"].length}
    if settings["recipe"].get("sequence_weights"):
        data["sequence_weights"] = sequence_weights.read(paths["sequence_weights"], data["train"])
    fitted = settings["recipe"]["optimizer"]["name"] == "lbfgs"
    call = import_module("manybody.training.lbfgs").fit if fitted else train
    return call({**description, **sizes}, data=data, **settings)


class TrainingRun:
    def __init__(self, settings: dict, data: dict, out: Path, accelerator, code, save_every):
        tokens, self.validation, self.masks, self.fingerprints, self.resume = opened(
            settings, data, out, accelerator.device, code
        )
        (count, length), recipe = tokens.shape, settings["recipe"]
        self.recipe, self.out, self.accelerator = recipe, out, accelerator
        self.save_every = save_every
        self.batches = Batches(count, length, recipe, settings["seed"], settings["stream"])
        if self.batches.sequences < accelerator.num_processes:
            raise Refusal(
                f"found {self.batches.sequences} sequences a step; expected at least "
                f"{accelerator.num_processes}, one for each process; raise it or use fewer "
                f"(compute.processes)",
                "training.batch",
            )
        self.checkpoints = kept_steps(recipe)
        self.learner = Learner(settings, tokens, self.batches.divisor, accelerator)
        self.about = settings | {
            "order": self.learner.model.about.order,
            "steps": self.checkpoints,
        }
        self.taken = 0  # steps so far
        self.rows = []  # of the history
        self.kept = {}  # sha256 of the weights of each checkpoint so far
        self.sums = [0.0, 0.0, 0]  # loss, correct, predictions since the last checkpoint
        # Loss and correct of each step that nobody looked at yet.
        self.pending = []

    def take_up(self, replace: bool) -> None:
        """Takes up the newest state of this run, or begins with an empty folder (`clear`)."""
        if self.accelerator.is_main_process:
            remove_leftovers(self.out)
        saved = self.resume.load()
        if saved is not None and not self._same_checkpoints(saved[1]):
            saved = None
        self.accelerator.wait_for_everyone()  # nobody may still be reading what is removed next
        if saved is not None:
            tensors, progress = saved
            self.learner.restore(tensors, str(self.resume.folder))
            self.taken, self.rows, self.sums = (progress[key] for key in ("step", "rows", "sums"))
            self.kept = {int(step): digest for step, digest in progress["kept"].items()}
        elif self.accelerator.is_main_process:
            clear(self.out, self.resume, replace)
            write_json(self.out / "model.json", self.about["description"])

    def advance(self) -> None:
        steps = self.recipe["steps"]
        label = f"train {self.out.parent.name or self.out.name} seed {self.about['seed']}"
        self.clock = self.saved = time.monotonic()
        self.since, self.checkpointing = self.taken, []
        with Progress(steps, "steps", label, done=self.taken) as self.progress:
            self.shown = self.taken
            if self.taken in self.checkpoints and self.taken not in self.kept:
                self._checkpoint()
            while self.taken < steps:
                self._step()
                if self.taken in self.checkpoints:
                    self._look()
                    self._checkpoint()
                elif len(self.pending) == CHECK and self._look():
                    self._save()

    def _step(self) -> None:
        batch = self.batches.at(self.taken)
        if self.accelerator.num_processes > 1:
            batch = batch.part(self.accelerator.process_index, self.accelerator.num_processes)
        self.pending.append(self.learner.step(self.taken, batch))
        self.taken += 1

    def _look(self) -> bool:
        """Adds up the losses of the pending steps; says whether it is time to save.

        Raises `NonFiniteLoss` before anything that followed such a loss can be written.
        """
        due = time.monotonic() - self.saved >= self.save_every
        sums = [torch.stack(part).double() for part in zip(*self.pending, strict=True)]
        sums = functional.pad(torch.stack(sums, dim=1), (0, 0, 1, 0), value=float(due))
        seen = self.accelerator.reduce(sums).tolist()
        for step, (loss, correct) in enumerate(seen[1:], self.taken - len(self.pending)):
            if not math.isfinite(loss):
                self._refuse("training loss", loss, step)
            self.sums[0] += loss
            self.sums[1] += correct
            self.sums[2] += self.batches.predictions
        rate = (self.taken - self.since) / (time.monotonic() - self.clock)
        figures = {
            "loss": seen[-1][0] / self.batches.predictions,
            "tokens/s": rate * self.batches.predictions,
        }
        if self.accelerator.is_main_process:
            left = (self.recipe["steps"] - self.taken) / rate
            # The checkpoints to come take as long as those that this process made.
            to_come = len(self.checkpoints) - len(self.kept)
            left += to_come * float(np.mean(self.checkpointing or [0.0]))
            self.progress.update(self.taken - self.shown, left, **figures)
        self.shown = self.taken
        self.pending.clear()
        return seen[0][0] > 0

    def _checkpoint(self) -> None:
        """Validates, then keeps the weights, and the state unless it was saved a moment ago."""
        if self.accelerator.device.type == "cuda":
            torch.cuda.synchronize(self.accelerator.device)
        seconds = time.monotonic() - self.clock
        validation = self._validate()
        if not math.isfinite(validation["loss"]):
            self._refuse("validation loss", validation["loss"], self.taken)
        common = {
            "step": self.taken,
            "epoch": self.batches.epoch(self.taken),
            "learning_rate": learning_rate(self.taken, self.recipe),
        }
        loss, correct, predictions = self.sums
        if predictions:
            means = {"loss": loss / predictions, "accuracy": correct / predictions}
            total = self.taken * self.batches.predictions
            self.rows.append(
                {**common, "split": "train", "loss_se": None, **means, "tokens": total}
            )
        self.rows.append({**common, "split": "validation", **validation})
        self.sums = [0.0, 0.0, 0]
        if self.accelerator.is_main_process:
            path = save_checkpoint(self.out, self.learner.model, self.taken, self.about)
            self.kept[self.taken] = sha256(path)
            self._write_timing(seconds)
        self.kept.setdefault(self.taken, "")
        # The disk takes as long for a state as a small model for a hundred steps.
        if time.monotonic() - self.saved >= SOON * self.save_every:
            self._save()
        now = time.monotonic()
        self.checkpointing.append(now - self.clock - seconds)
        self.clock, self.since = now, self.taken

    def _validate(self) -> dict:
        """Loss per predicted token, its standard error over sequences, accuracy, tokens."""
        size = len(self.validation)
        parts, rank = self.accelerator.num_processes, self.accelerator.process_index
        mine = slice(size * rank // parts, size * (rank + 1) // parts)
        masks = None if self.masks is None else self.masks[mine]
        sums = torch.zeros(3, size, dtype=torch.float64)
        if mine.stop > mine.start:
            with self.accelerator.autocast():
                part = sequence_sums(self.learner.model, self.validation[mine], masks)
            for row, values in zip(sums, part, strict=True):
                row[mine] = values
        sums = self.accelerator.reduce(sums.to(self.accelerator.device)).cpu().numpy()
        loss, correct, predictions = sums
        means, total = loss / predictions, predictions.sum()
        error = means.std(ddof=1) / math.sqrt(size) if size > 1 else math.nan
        return {
            "loss": float(loss.sum() / total),
            "loss_se": float(error) if math.isfinite(error) else None,
            "accuracy": float(correct.sum() / total),
            "tokens": int(total),
        }

    def _save(self) -> None:
        if self.accelerator.is_main_process:
            write_history(self.resume.folder / "history.parquet", self.rows)
            progress = {"rows": self.rows, "sums": self.sums, "kept": self.kept}
            self.resume.save(self.taken, self.learner.state(), progress)
        self.saved = time.monotonic()

    def _refuse(self, what: str, value: float, step: int) -> None:
        if self.accelerator.is_main_process:
            write_history(self.resume.folder / "history.parquet", self.rows)
        good = [kept for kept in self.kept if kept <= step]
        kept = f"{self.out}/step-{max(good)}.safetensors" if good else "none was reached"
        error = NonFiniteLoss(
            f"{what} is {value} at step {step}, learning rate "
            f"{learning_rate(step, self.recipe):g}; the last good checkpoint is {kept}. Lower "
            "training.learning_rate, lengthen training.warmup or set training.clip; training."
            "divergence: keep takes a run that diverges for a result."
        )
        error.step = step
        raise error

    def _same_checkpoints(self, progress: dict) -> bool:
        """True if the weights that the saved state counts on are still what was written."""
        for step, digest in progress["kept"].items():
            path = self.out / f"step-{step}.safetensors"
            if not path.is_file() or sha256(path) != digest:
                log.warning("not resumed: %s is missing or altered", path)
                return False
        return True

    def _write_timing(self, seconds: float) -> None:
        steps = self.taken - self.since
        line = {
            "step": self.taken,
            "steps": steps,
            "seconds": seconds,
            "validation_seconds": time.monotonic() - self.clock - seconds,
            "predictions_per_second": steps * self.batches.predictions / seconds if steps else None,
            "device": self.accelerator.device.type,
            "processes": self.accelerator.num_processes,
        }
        with (self.out / "timing.jsonl").open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(line) + "\n")
