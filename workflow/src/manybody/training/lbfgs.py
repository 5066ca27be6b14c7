"""Models fitted to all their sequences at once by L-BFGS, or given weights that are known.

For the reference lines of many-body data (docs/science/many-body.md, section 4): small models with
the masked objective, whose best training loss is wanted rather than a path that leads there. They
are products of parameters and have local minima and saddles: several random starts are followed
until they are nearly flat, and the best of them to the end. A run leaves what training leaves.

Sequences may have weights; the training loss is then their weighted mean. One layer of factored
attention is fitted on a CPU by the compiled `pseudolikelihood`, whose cost does not grow with the
number of heads. Its couplings J_ij(a, b) = sum_h A^h_ij V^h_ab are a matrix of L^2 rows and |V|^2
columns of rank H, the full model at |V|^2 heads. Half the squared A and V, which the ridge costs,
is at its least the sum of its singular values: the ridge keeps the couplings' patterns few.
"""

import hashlib
import logging
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from manybody import models
from manybody.data import SPLITS
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.sequence_weights import neighbours
from manybody.io.atomic import write_json
from manybody.io.devices import accelerated
from manybody.io.lease import lease
from manybody.io.progress import Progress
from manybody.io.resume import Resume
from manybody.io.seeds import initial_seed, run_settings
from manybody.io.sequences import Sequences
from manybody.models.objectives import masked_loss, sequence_sums
from manybody.training import pair_fit
from manybody.training.pseudolikelihood import Counted, Heads, loss_and_gradients
from manybody.training.run_files import (
    NonFiniteLoss,
    clear,
    fingerprint,
    history_row,
    opened,
    remove_leftovers,
    save_checkpoint,
    write_run,
)

log = logging.getLogger(__name__)
LOOK = 10  # iterations between two looks at the loss
ROUGH, FINE = 1e-4, 1e-5  # relative fall of the loss from look to look below which it is flat
BLOCK = {"cpu": 2**22, "cuda": 2**26}  # numbers in the widest array of sequences done together


def fit(
    description: dict,
    recipe: dict,
    data: dict,
    out: str | Path,
    seed: int,
    init_seed: int | str,
    about: dict,
    device: str = "auto",
    code: str = "",
    stream: str = "",
) -> Path:
    """Fits the model of `description` to `data["train"]` and returns the path of its manifest.

    Arguments as in `training.train`; of the `recipe`, `steps` are iterations at most,
    `optimizer.ridge` times half the squared weights is added to the mean loss (nats per masked
    token), `restarts` are drawn one after the other from `init_seed`, or from `seed` in `stream`
    where that is "each". The weights after n iterations of the best one are kept as step n. In the
    history an epoch is one evaluation of loss and gradient. The manifest's `restarts` has, for
    each, the objective (None if it diverged at once) and the iterations when it was nearly flat.
    `data["sequence_weights"]` (N,), optional, are the weights of the N training sequences.

    With `optimizer.couplings` the model has full couplings, see `FullFit`. Every finished restart
    is saved in `out/resume/` and taken up as `training.train` does.

    Raises `ValueError` for a recipe that does not fit, `NonFiniteLoss` when all diverge.
    """
    out = Path(out)
    settings = run_settings(about, description, recipe, seed, init_seed, stream)
    with (
        torch.random.fork_rng(devices=[]),
        accelerated(device, "float32", recipe["threads"]) as accelerator,
    ):
        if accelerator.is_main_process:
            with lease(out):
                run = FullFit if recipe["optimizer"].get("couplings") else Fit
                run(settings, data, out, accelerator.device, code).run()
        accelerator.wait_for_everyone()
    return out / "manifest.json"


class FullFit:
    """Full couplings by `pair_fit`: those of a fit to the training sequences, of which the history
    has the held-out loss, and those of a fit to all sequences, which are kept. The manifest's
    `held_out` has the held-out loss of each sequence."""

    def __init__(self, settings: dict, data: dict, out: Path, device: torch.device, code: str):
        self.settings, self.data, self.out = settings, data, out
        train, self.validation, _, self.fingerprints, self.resume = opened(
            settings, data, out, device, code
        )
        self.train = np.asarray(train[:])

    def run(self) -> None:
        clear(self.out, self.resume)
        together, weights, every = self.train, self.data.get("sequence_weights"), None
        if "subset" not in self.settings["recipe"]:
            together = np.concatenate([self.data[s].tokens[:] for s in SPLITS if s in self.data])
        if weights is not None:
            identity = self.data["train"].about["identity"]
            every = 1.0 / neighbours(together, identity, self.settings["recipe"]["threads"]).counts
        model, found = self._fitted(self.train, weights, "held out")
        weighted = None if weights is None else torch.tensor(weights)
        rows = _rows(
            model, _tensor(self.train), self.validation, found.iterations, found.passes, weighted
        )
        sums = sequence_sums(model, self.validation)
        about = {
            "data": self.fingerprints,
            "sequences": len(together),
            "held_out": (sums.loss_sum / sums.predictions).tolist(),
        }
        model, _ = self._fitted(together, every, "all sequences")
        about["effective"] = float(len(together) if every is None else every.sum())
        _write_run(self.out, model, self.settings | about, rows)
        self.resume.clear()

    def _fitted(self, tokens: np.ndarray, weights: np.ndarray | None, what: str):
        """The network of the couplings, and the fit."""
        recipe, description = self.settings["recipe"], self.settings["description"]
        family = pair_fit.Family(tokens, description["vocabulary"], weights)
        strengths = pair_fit.penalty(family, recipe["optimizer"]["couplings"]), pair_fit.STRENGTH
        found = pair_fit.solve(
            family,
            strengths,
            recipe["threads"],
            recipe["steps"],
            label=f"fit, {what}",
            heads=recipe["optimizer"].get("heads"),
            kind=np.dtype(recipe["precision"]).type,
        )
        model = models.build(description)
        model.take(found.model)
        return model, found


class Fit:
    def __init__(self, settings: dict, data: dict, out: Path, device: torch.device, code: str):
        description, recipe = settings["description"], settings["recipe"]
        self.settings, self.recipe, self.out, self.device = settings, recipe, out, device
        given = data.get("sequence_weights")
        digest = None if given is None else hashlib.sha256(np.asarray(given).tobytes()).hexdigest()
        tokens, self.validation, _, self.fingerprints, self.resume = opened(
            settings, data, out, device, code, sequence_weights=digest
        )
        self.train = _tensor(tokens).to(device)
        self.weighted = given is not None
        weights = given if self.weighted else np.ones(len(self.train))
        self.sequence_weights = torch.tensor(weights, dtype=torch.float64, device=device)
        self.total = float(self.sequence_weights.sum()) * description["length"]
        self.model = models.build(description).to(device, getattr(torch, recipe["precision"]))
        self.parameters = list(self.model.parameters())
        self.counted = None
        if device.type == "cpu" and self.model.pair_parts() is not None:
            self.counted = Counted(
                self.train.numpy(), description["vocabulary"], self.sequence_weights.numpy()
            )
        self.restarts = []  # what became of each
        self.best = {}  # restart, vector, rows, iterations and evaluations so far

    def run(self) -> None:
        remove_leftovers(self.out)
        self._take_up()
        steps, restarts = self.recipe["steps"], self.recipe["restarts"]
        label = f"fit {self.out.parent.name or self.out.name} seed {self.settings['seed']}"
        done = len(self.restarts) * steps
        with Progress((restarts + 1) * steps, "iterations", label, done=done) as self.progress:
            for restart in range(len(self.restarts), restarts):
                self._first(restart)
                self._save()
            if not self.best:
                raise NonFiniteLoss(
                    f"the loss of each of {restarts} restarts became infinite or not a number; "
                    "raise training.restarts, set training.optimizer.ridge or use precision float64"
                )
            self._descend(self.best, FINE)
        self._write()

    def _first(self, restart: int) -> None:
        """Follows a restart until it is nearly flat, and keeps it if it is the best so far."""
        torch.manual_seed(initial_seed(self.settings, restart))
        self.model.load_state_dict(models.build(self.settings["description"]).state_dict())
        vector = parameters_to_vector(self.parameters).detach().cpu().double()
        path = {
            "restart": restart, "vector": vector, "rows": [], "iterations": 0, "evaluations": 0,
            "objective": None,
        }  # fmt: skip
        self._descend(path, ROUGH)
        self.restarts.append({key: path[key] for key in ("objective", "iterations")})
        if path["objective"] is not None and (
            not self.best or path["objective"] < self.best["objective"]
        ):
            self.best = path

    def _descend(self, path: dict, flat: float) -> None:
        """Moves `path["vector"]` until the objective is flat, or to where it was last finite.

        `path["objective"]` is the one at the last look but one: None if not even that is finite.
        """
        vector = path["vector"].clone().requires_grad_()
        optimizer = torch.optim.LBFGS(
            [vector],
            max_eval=100 * LOOK,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            history_size=self.recipe["optimizer"]["history"],
            line_search_fn="strong_wolfe",
        )
        before, origin, allowed = math.inf, path["iterations"], self.recipe["steps"]
        while path["iterations"] < allowed:
            seen = []

            def closure(seen=seen):
                objective, *sums = self._evaluate(vector)
                path["evaluations"] += 1
                seen.append((objective, *sums, path["evaluations"]))
                return objective

            optimizer.param_groups[0]["max_iter"] = min(LOOK, allowed - path["iterations"])
            try:
                optimizer.step(closure)
            except NonFiniteLoss as error:
                log.warning("restart %d goes no further: %s", path["restart"], error)
                break
            objective, *sums = seen[0]  # at the weights that the last look left
            path["rows"].append([path["iterations"], *sums])
            taken = origin + optimizer.state[vector]["n_iter"] - path["iterations"]
            path["iterations"] += taken
            path["vector"], path["objective"] = vector.detach().clone(), objective
            self.progress.update(taken, loss=sums[0])
            if before - objective <= flat * abs(objective) or not taken:
                break
            before = objective
        self.progress.update(allowed - path["iterations"])

    def _evaluate(self, vector: Tensor) -> tuple[float, float, float | None]:
        """Objective (its gradient is left in `vector.grad`), mean loss and accuracy or None."""
        self._put(vector.detach())
        self.model.zero_grad()
        total, correct = self._batches() if self.counted is None else self._site_by_site()
        if not math.isfinite(total):
            raise NonFiniteLoss(f"the training loss is {total / self.total}")
        mean, ridge = total / self.total, self.recipe["optimizer"]["ridge"]
        gradients = torch.cat([p.grad.flatten() for p in self.parameters]).cpu().double()
        here = vector.detach()
        vector.grad = gradients.div_(self.total).add_(here, alpha=ridge)
        return mean + 0.5 * ridge * here.square().sum().item(), mean, correct

    def _batches(self) -> tuple[float, float]:
        """Summed loss, its gradients left in the parameters, and accuracy, from masked copies."""
        total, correct = 0.0, 0.0
        numbers = BLOCK.get(self.device.type, BLOCK["cpu"])
        size = max(1, numbers // (self.model.length * self.model.activation_size))
        parts = zip(self.train.split(size), self.sequence_weights.split(size), strict=True)
        for part, own in parts:
            losses, right = masked_loss(self.model, part)
            each = own.to(losses).repeat_interleave(self.model.length)
            # A plain sum where weights are one: some models make its gradients with the losses.
            (losses * each if self.weighted else losses).sum().backward()
            total += (losses.detach() * each).double().sum().item()
            correct += float((right * each).double().sum())
        return total, correct / self.total

    def _site_by_site(self) -> tuple[float, None]:
        """The same of one layer, compiled; without the accuracy."""
        parts = self.model.pair_parts()
        numbers = Heads(*(np.ascontiguousarray(part.detach().double().numpy()) for part in parts))
        total, gradients = loss_and_gradients(self.counted, numbers, self.recipe["threads"])
        pairs = [
            (part, torch.from_numpy(np.ascontiguousarray(gradient)).to(part))
            for part, gradient in zip(parts, gradients, strict=True)
            if part.requires_grad
        ]
        torch.autograd.backward(*map(list, zip(*pairs, strict=True)))
        return total, None

    @torch.no_grad()
    def _put(self, vector: Tensor) -> None:
        parts = vector.split([parameter.numel() for parameter in self.parameters])
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.copy_(part.view_as(parameter))

    def _save(self) -> None:
        best = dict(self.best)
        tensors = {"vector": best.pop("vector")} if best else {}
        self.resume.save(len(self.restarts), tensors, {"restarts": self.restarts, "best": best})

    def _take_up(self) -> None:
        saved = self.resume.load()
        if saved is None:
            clear(self.out, self.resume)
            return
        tensors, progress = saved
        self.restarts, self.best = progress["restarts"], progress["best"] | tensors

    def _write(self) -> None:
        best, size = self.best, self.train.numel()
        self._put(best["vector"])
        model = self.model.float().cpu()
        rows = [
            history_row("train", step, evaluations, loss, accuracy, evaluations * size)
            for step, loss, accuracy, evaluations in best["rows"]
            if step < best["iterations"]
        ]
        weights = self.sequence_weights.cpu() if self.weighted else None
        rows += _rows(
            model,
            self.train.cpu(),
            self.validation,
            best["iterations"],
            best["evaluations"],
            weights,
        )
        about = {"data": self.fingerprints, "restarts": self.restarts, "kept": best["restart"]}
        _write_run(self.out, model, self.settings | about, rows)
        self.resume.clear()


def adopt(
    description: dict, hamiltonian: str | Path, paths: dict, out: str | Path, seed: int, about: dict
) -> Path:
    """Writes the conditionals of a Hamiltonian (eq. 3) as a run of a model that can express them.

    `description` has the config's keys of the model; `paths` the Sequences of `train` and
    `validation`, all for the history's one step, 0. Returns the path of the manifest. `ValueError`
    if the model or the sequences are not the Hamiltonian's.
    """
    out, loaded = Path(out), Hamiltonian.load(hamiltonian)
    try:
        model = models.about(description).from_hamiltonian(loaded)
    except ValueError as error:
        raise ValueError(f"{hamiltonian}: {error}") from error
    description = model.description
    data = {split: Sequences.open(path).tokens for split, path in paths.items()}
    for tokens in data.values():
        fingerprint(tokens, description)
    rows = _rows(model, _tensor(data["train"]), _tensor(data["validation"]), 0, 1)
    with lease(out):
        clear(out, Resume(out / "resume", {}))
        _write_run(out, model, {**about, "description": description, "seed": seed}, rows)
    return out / "manifest.json"


def _tensor(tokens) -> Tensor:
    return torch.from_numpy(np.asarray(tokens[:]).astype("int64"))


def _rows(
    model, train: Tensor, validation: Tensor, step: int, evaluations: int, sequence_weights=None
) -> list[dict]:
    """The history's rows of the finished model: all masks of both sets.

    The training loss is weighted as in the fit; held-out sequences count equally."""
    rows = []
    for split, tokens in {"train": train, "validation": validation}.items():
        sums, error = sequence_sums(model, tokens), None
        total = int(sums.predictions.sum())
        loss, accuracy = float(sums.loss_sum.sum()) / total, int(sums.correct.sum()) / total
        means = sums.loss_sum / sums.predictions
        if split == "validation" and len(means) > 1:
            error = float(means.numpy().std(ddof=1)) / math.sqrt(len(means))
        if split == "train" and sequence_weights is not None:
            each = means, sums.correct.double() / sums.predictions
            loss, accuracy = (
                float(part @ sequence_weights / sequence_weights.sum()) for part in each
            )
        count = evaluations * total if split == "train" else total
        rows.append(history_row(split, step, evaluations, loss, accuracy, count, error))
    return rows


def _write_run(out: Path, model, about: dict, rows: list[dict]) -> None:
    """Writes the files that training leaves, with the one checkpoint that the last rows are of."""
    step = rows[-1]["step"]
    write_json(out / "model.json", about["description"])
    save_checkpoint(out, model, step, about)
    write_run(out, {**about, "order": model.about.order, "steps": [step]}, rows)
