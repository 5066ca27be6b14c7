"""The time of a job of each stage, from a probe of seconds of the code that it runs.

A probe takes few steps, chains or sequences, with random weights and random tokens or chains of the
source, and counts up to those of the job: in seconds of one core of this machine, or, for a GPU, in
operations of matrix products. It reads nothing that the pipeline makes.
"""

import ast
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from manybody import models
from manybody.data import SPLITS
from manybody.io import sequences
from manybody.io.devices import accelerated, torch_threads
from manybody.io.seeds import run_settings
from manybody.measure import spectra, spectrum
from manybody.measure.maps import mean_maps
from manybody.models import objectives
from manybody.models.linear import PRODUCTS
from manybody.sampling import footprint
from manybody.sampling.backends import open_chains
from manybody.sampling.draws import Draws, unigram
from manybody.sampling.metropolis import advance
from manybody.sampling.redraw import redraw, stationary
from manybody.theory.information import information_by_order
from manybody.training import kept_steps, learning_curves
from manybody.training.batches import Batches
from manybody.training.learner import Learner

SCRIPTS = Path(__file__).parents[3] / "scripts"  # a stage's script has the name of its rule
LEAST = 0.5  # seconds of the larger of the two calls of a probe
# Stages whose sizes are in a file: a corpus, an alignment, somebody else's weights.
OF_FILES = (
    "collect_corpus", "train_tokenizer", "take_tokenizer", "encode_sequences", "measure_overlap",
    "measure_ngrams", "describe_clones", "read_alignment", "read_series", "fit_families",
    "use_families",
)  # fmt: skip
# Mean share of the proposals of trained models, under the raw energy, that are the token itself and
# cost nothing: .30 to .59 in the demo's clones.
SAME = 0.48
MANY = 1000  # sequences, or passes, of which a probe counts the cost


class Unsized(ValueError):
    """Error: a size that only a file knows."""


def seconds(call: Callable) -> float:
    """Seconds of processor time of a call, the mean of as many as take a fifth of `LEAST`."""
    begin, count = time.process_time(), 0
    while not count or time.process_time() - begin < LEAST / 5:
        call()
        count += 1
    return (time.process_time() - begin) / count


def operations(call: Callable) -> float:
    """Multiplications and additions in the matrix products of a call."""
    # torch does not count those of the attention that is fused for a CPU, nor of oneDNN's products,
    # which are known from the shapes of their factors.
    counts = dict.fromkeys(PRODUCTS, lambda rows, weight, *_, **__: 2 * math.prod(rows) * weight[0])
    counter = FlopCounterMode(display=False, custom_mapping=counts)
    with sdpa_kernel(SDPBackend.MATH), counter as counted:
        call()
    return float(counted.get_total_flops())


def up_to(count: int, ready: Callable, cost: Callable = seconds) -> float:
    """The cost of `count` units from that of one and of as many as take about `LEAST` seconds and
    twice as long as one, or of all where they take less: a fixed part, and one in proportion.

    `ready(n)` prepares n of them and returns the call that takes them.
    """

    def measured(units: int) -> float:
        # Others may slow the processor for a while: the less of two measurements counts.
        return min(cost(ready(units)) for _ in range(2 if cost is seconds else 1))

    if cost is seconds:
        ready(1)()  # what is compiled once is not part of it
    first = measured(1)
    many = min(count, max(4, int(LEAST / first)) if cost is seconds else 2)
    if many == 1:
        return first
    second = measured(many)
    while cost is seconds and many < count and second < 2 * first:  # a large fixed part
        many = min(count, 4 * many)
        second = measured(many)
    return second + (count - many) * max(second - first, 0.0) / (many - 1)


class Probe:
    """A model with random weights, whose description has |V| and L, on random tokens.

    Costs are of one core, or with `gpu` the operations on a GPU.
    """

    def __init__(self, description: dict, gpu: bool = False):
        self.description, self.gpu = description, gpu
        self.length, self.vocabulary = description["length"], description["vocabulary"]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.model = models.build(description).eval()
        self.causal = self.model.about.causal

    def tokens(self, count: int) -> np.ndarray:
        return np.random.default_rng(0).integers(self.vocabulary, size=(count, self.length))

    def tensor(self, count: int) -> torch.Tensor:
        return torch.from_numpy(self.tokens(count))

    def up_to(self, count: int, ready: Callable) -> float:
        with torch_threads(1), torch.no_grad():
            return up_to(count, ready, operations if self.gpu else seconds)

    def step(self, recipe: dict) -> float:
        recipe, each = {**recipe, "compile": False}, 1
        if self.gpu:  # without the compiled loops of a CPU, whose operations torch does not see
            masks = recipe.get("masks")
            recipe |= {"precision": "float32", "masks": 1.0 if masks == "all" else masks}
        if recipe["objective"] == "masked":
            each = objectives.copies_per_sequence(self.length, recipe["masks"])
        settings = run_settings({}, self.description, recipe, 0, 0, "")
        with accelerated("cpu", recipe["precision"], 1) as accelerator:
            learner = Learner(settings, self.tokens(recipe["batch"]), 1, accelerator)

            def ready(count):
                part = {**recipe, "batch": count * each}
                return lambda: learner.step(0, Batches(count, self.length, part, 0).at(0))

            return up_to(-(-recipe["batch"] // each), ready, operations if self.gpu else seconds)

    def tested(self, share: float | str) -> float:
        """The losses of a sequence, a share or "all" of its positions masked in turn."""
        share = 1.0 if self.gpu and share == "all" else share

        def ready(count):
            masks = (
                None if self.causal else objectives.masked_positions(count, self.length, share, 0)
            )
            return partial(objectives.sequence_sums, self.model, self.tensor(count), masks)

        return self.up_to(MANY, ready) / MANY

    def solved(self) -> float:
        """The losses of a sequence, all positions masked in turn, in double precision."""
        exact = deepcopy(self.model).double()
        sums = partial(objectives.sequence_sums, exact)
        return self.up_to(MANY, lambda n: partial(sums, self.tensor(n))) / MANY

    def passes(self) -> float:
        """A forward pass: of a masked copy, or of a sequence of a causal model."""

        def ready(count):
            rows = torch.arange(count)
            copies = () if self.causal else (rows, rows % self.length)
            loss = objectives.next_token_loss if self.causal else objectives.masked_loss
            return partial(loss, self.model, self.tensor(count), *copies)

        return self.up_to(MANY, ready) / MANY

    def spectrum(self, entry: dict) -> float:
        """The seconds of the order spectrum of a checkpoint: at most, as draws end sooner where
        their errors are small."""
        tokens = self.tokens(entry["sequences"])
        if entry["kind"] == "enumeration":
            exact = deepcopy(self.model).double()

            def ready(count):  # as many blocks, of which there are two at least
                return partial(spectrum.enumerated, exact, tokens[: 2 * count + 2])

            return self.up_to(entry["sequences"] // 2, ready)
        asked = {"degree" if entry.get("bounded") else "orders": entry["orders"]}
        least = spectrum.CHUNKS[self.causal] * sum(
            spectrum.forwards_of(entry["orders"], asked.get("degree")).values()
        )
        asked |= {"law": entry["law"], "first": 0.0, "higher": 0.0}  # so that all draws are taken

        def drawn(count):
            return partial(spectrum.spectrum, self.model, tokens, **asked, forwards=count * least)

        return self.up_to(entry["forwards"] // least, drawn)

    def of_the_last(self, entry: dict) -> float:
        """The seconds of what is measured of the last checkpoint alone, for each target."""
        tokens = self.tokens(entry["sequences"])

        def ready(count):
            asked = {**entry, "anchored": {**entry["anchored"], "targets": count}}
            return lambda: list(spectra.of_the_last(self.model, tokens, asked, None))

        return self.up_to(entry["anchored"]["targets"], ready)

    def maps(self, count: int) -> float:
        """Attention averaged over so many sequences; nothing where it is a parameter."""
        if self.model.about.maps != "averaged":
            return 0.0
        return self.up_to(count, lambda n: partial(mean_maps, self.model, self.tensor(n)))

    def sampled(self, clone: dict) -> float:
        """A step of all chains of a clone."""
        sampler, energy, count = clone["sampler"] or "mh", clone["energy"], clone["chains"]
        if self.gpu and sampler == "mh" and footprint.incremental(self.model, energy, 4, "cuda"):
            # What a token changes in the squares of factored attention, in double precision, which
            # a GPU multiplies as fast as the float32 of copies.
            sizes = footprint.Sizes.of(self.description)
            products = (footprint.square_products(sizes, k) for k in range(1, sizes.layers - 1))
            return 2.0 * sum(products) * count
        if sampler == "enumerated":
            return (
                seconds(lambda: information_by_order(stationary(self.model).numpy())) / self.length
            )
        mu = unigram(self.tokens(MANY), self.vocabulary) if energy == "reference" else None
        each = 1 if sampler == "mh" else self.length

        def ready(n):
            tokens, precision = self.tensor(n), "float32" if self.gpu else clone["precision"]
            chains = open_chains(self.model, tokens, energy, clone["gauge"], precision, sampler, mu)
            if self.gpu and sampler == "mh":  # of a proposal that is not the token itself

                def propose():
                    which, first = torch.arange(n), chains.tokens[:, 0]
                    chains.logits(which, 0 * which)
                    chains.log_ratio(which, 0 * which, (first + 1) % self.vocabulary)

                return propose
            # Trained models leave most tokens as they are: under raw a call takes the same step
            # again, which then moves nothing. Under norm a step costs as much as a move.
            draws, start = Draws(0, n, self.length, clone["order"]), self.tokens(n)
            steps = (
                [numbers[:, None, place : place + each] for numbers in draws.sweep(sweep)]
                for sweep in itertools.count(1)
                for place in range(0, self.length, each)
            )
            if energy != "norm":
                steps = itertools.repeat(next(steps))
            return lambda: (advance if sampler == "mh" else redraw)(chains, *next(steps), start)

        same = SAME * (energy == "raw" and each == 1 and not self.gpu)
        return self.up_to(count, ready) / each * (1 - same)


class Prices:
    """The cost of each job of a config. sizes: |V| and L of the sources, where they are known;
    modules: those of sources, and of a theory t as `theory/t`, given so that no stage imports all
    kinds; solved: runs (source, model, seed) that equations of a figure are solved for."""

    def __init__(
        self,
        config: dict,
        sizes: dict[str, dict],
        modules: dict[str, str],
        solved: Callable[[str, str], list] | None = None,
    ):
        self.config, self.sizes, self.modules, self.solved = config, sizes, modules, solved
        self.known: dict[str, float] = {}
        self.probe = lru_cache(4)(lambda description, gpu: Probe(json.loads(description), gpu))

    def of(self, rule: str, wildcards: dict, gpu: bool = False) -> float:
        """Seconds of a core, or operations on a GPU, beside a job's start; 0 for stages that take
        seconds. `Unsized` says what only a file knows."""
        if rule in OF_FILES:
            raise Unsized("sizes in a file")
        stage = getattr(self, f"_{rule.removesuffix('_on_cpu')}", None)
        return stage(gpu, **wildcards) if stage else 0.0

    def start(self, rule: str, module: str = "") -> float:
        """Seconds of processor time in which a job imports what its script does, and a module that
        is known by name alone: of all jobs of a rule, that of the first."""

        def cost() -> float:
            tree = ast.parse((SCRIPTS / f"{rule.removesuffix('_on_cpu')}.py").read_bytes())
            kinds = (ast.Import, ast.ImportFrom)
            lines = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, kinds)]
            lines += [f"import {name}" for name in ("snakemake.script", module) if name]
            before = sum(os.times()[2:4])
            subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
            return sum(os.times()[2:4]) - before

        return self.once(cost, "start", rule)

    def once(self, cost: Callable[[], float], *key) -> float:
        """A cost that is measured once for all jobs of this key."""
        name = json.dumps(key, sort_keys=True)
        if name not in self.known:
            self.known[name] = cost()
        return self.known[name]

    def _of(self, source: str) -> dict:
        if len(self.sizes[source]) < 2:
            raise Unsized(f"|V| and L of {source}")
        return self.sizes[source]

    def _cost(self, gpu: bool, source: str, model: str, method: str, *given) -> float:
        """The cost by a method of a model's probe."""
        entry = self.config["models"][model]
        if models.about(entry).read:
            raise Unsized(f"the sizes of {model}")
        description = {k: entry[k] for k in entry.keys() - {"training", "init_seed", "parameters"}}
        text = json.dumps(description | self._of(source), sort_keys=True)
        return self.once(
            lambda: getattr(self.probe(text, gpu), method)(*given), text, gpu, method, given
        )

    def _checkpoints(self, model: str, asked: str | int | list) -> int:
        if isinstance(asked, list):
            return len(asked)
        if isinstance(asked, int):
            return asked
        recipe = self.config["models"][model].get("training", {})
        return len(kept_steps(recipe)) if asked == "all" and "checkpoints" in recipe else 1

    def _train_model(self, gpu: bool, source: str, model: str, seed: str) -> float:
        recipe = self.config["models"][model]["training"]
        kind, cost = recipe["optimizer"]["name"], partial(self._cost, gpu, source, model)
        # A source of no size is said first.
        if self._of(source) and kind == "lbfgs":
            raise Unsized("iterations until a fit is flat")
        same = {k: recipe.get(k) for k in ("objective", "batch", "masks", "precision", "clip")}
        same |= dict(learning_rate=0.0, warmup=0, schedule="constant", steps=1)
        same["together"] = recipe.get("together", False)
        same["optimizer"] = dict(name=kind, weight_decay=0.0, momentum=0.9, betas=[0.9, 0.9])
        share = recipe.get("validation_masks", recipe.get("masks"))
        tested = recipe["validation"] * cost("tested", share)
        return recipe["steps"] * cost("step", same) + self._checkpoints(model, "all") * tested

    def _adopt_weights(self, gpu: bool, source: str, model: str, seed: str) -> float:
        """Every position of each training and validation sequence is masked in turn."""
        counts = self.config["sources"][source]["sequences"]
        tested = self._cost(gpu, source, model, "tested", "all")
        return (counts["train"] + counts["validation"]) * tested

    def _sample_clones(self, gpu: bool, source: str, clone: str) -> float:
        entry = self.config["clones"][clone]
        keys = ("sampler", "energy", "chains", "gauge", "precision", "order")
        same = {key: entry.get(key) for key in keys}
        step = self._cost(gpu, source, entry["model"], "sampled", same)
        return max(entry["sweeps"]) * self._of(source)["length"] * step

    def _evaluate_model(self, gpu: bool, evaluation: str, seed: str) -> float:
        entry, clones = self.config["evaluations"][evaluation], self.config["clones"]
        counts = [
            target["sequences"]
            if "split" in target
            else clones[target.get("clone", target.get("initial"))]["chains"]
            for target in entry["targets"].values()
        ]
        tested = self._cost(gpu, entry["source"], entry["model"], "tested", entry["positions"])
        return self._checkpoints(entry["model"], entry["steps"]) * sum(counts) * tested

    def _evaluate_equations(self, gpu: bool, paper: str, figure: str) -> float:
        """Every position of each validation sequence is masked in turn."""
        runs = self.solved(paper, figure)
        count = self.config["sources"][runs[0][0]]["sequences"]["validation"]
        solved = [run for run in runs if models.about(self.config["models"][run[1]]).equation]
        return sum(count * self._cost(gpu, *run[:2], "solved") for run in solved)

    def _measure_spectrum(self, gpu: bool, spectrum: str, seed: str) -> float:
        """On a GPU of passes alone: the share of its peak is that of whole spectra."""
        entry = self.config["spectra"][spectrum]
        anchored = entry.get("anchored") or {"size": 0, "targets": 0}
        cost = partial(self._cost, gpu, entry["source"], entry["model"])
        checkpoints = self._checkpoints(entry["model"], entry["steps"])
        if gpu:
            each = cost("passes")
            length = self._of(entry["source"])["length"]
            every = length * 2 ** (length - 1) * entry["sequences"] // 2
            passes = checkpoints * entry.get("forwards", every)
            return (passes + anchored["targets"] * 2 ** anchored["size"]) * each
        keys = ("kind", "sequences", "orders", "bounded", "law", "forwards")
        same = {key: entry[key] for key in keys if key in entry}
        last = cost("of_the_last", same | {"anchored": anchored}) if anchored["targets"] else 0.0
        return checkpoints * cost("spectrum", same) + last

    def _measure_clock(self, gpu: bool, source: str, model: str, seed: str) -> float:
        """Every position of each test sequence, or state where these are fewer, is masked alone."""
        sizes, test = self._of(source), self.config["sources"][source]["sequences"]["test"]
        states = min(test, sizes["vocabulary"] ** sizes["length"])
        tested = self._cost(gpu, source, model, "tested", "all")
        return self._checkpoints(model, "all") * states * tested

    def _extract_maps(self, gpu: bool, source: str, model: str, seed: str) -> float:
        sequences = self.config["sources"][source].get("sequences", {}).get("validation", 500)
        maps = self._cost(gpu, source, model, "maps", min(500, sequences))
        return self._checkpoints(model, "all") * maps

    def _sample_hamiltonian(self, gpu: bool, source: str) -> float:
        def cost() -> float:
            return sum(up_to(n, partial(partial, call)) for call, n in self._trial(source)[1])

        return self.once(cost, "chains", source)

    def _draw_sequences(self, gpu: bool, source: str) -> float:
        entry = self.config["sources"][source]
        if "source" in entry:
            raise Unsized(f"the Hamiltonian of {entry['source']}")
        counts, make = entry["sequences"], import_module(self.modules[source]).make

        def cost() -> float:
            with TemporaryDirectory() as folder:
                out = {split: Path(folder, f"{split}.parquet") for split in SPLITS}

                def ready(n):  # of a hundred parts
                    part = {split: -(-every * n // 100) for split, every in counts.items()}
                    return partial(make, {**entry, "sequences": part}, source, [], out)

                return up_to(100, ready)

        return self.once(cost, "draw", source)

    def _trial(self, source: str) -> tuple:
        if not hasattr(module := import_module(self.modules[source]), "trial"):
            raise Unsized(f"sequences of {source} to fit to")
        return module.trial(self.config["sources"][source])

    def _compute_theory(self, gpu: bool, theory: str) -> float:
        """Realisations, or the epochs of all runs, are counted up; the rest is done whole. On the
        job's threads, which slow each other down."""
        entry, counted = dict(self.config["theory"][theory]), "realisations"
        if {"scrambles", "iterations"} & entry.keys():
            raise Unsized("iterations until it converges")
        compute = import_module(self.modules[f"theory/{theory}"]).compute
        runs = entry.get("runs", 1)
        if "epochs" in entry:
            counted = "epochs"
            entry["runs"] = 1

        def ready(count):
            return partial(compute, {**entry, counted: count})

        return self.once(lambda: up_to(runs * entry.get(counted, 1), ready), "theory", theory)

    def _fit_curve(self, gpu: bool, curve: str) -> float:
        """One realisation, times their number."""
        entry = self.config["curves"][curve]
        counts = {"train": max(entry["sizes"]), "validation": entry["test"]}
        about, given = {"source": entry["source"]}, {**entry, "realisations": 1}

        def cost() -> float:
            with TemporaryDirectory() as folder:
                model, ((moved, _), *_) = self._trial(entry["source"])
                paths, resume = {"hamiltonian": Path(folder, "hamiltonian")}, Path(folder, "resume")
                model.save(paths["hamiltonian"], {})
                for split, count in counts.items():
                    paths[split] = Path(folder, f"{split}.parquet")
                    sequences.write(paths[split], moved(count), model.vocabulary, about)
                fit = partial(learning_curves.compute, paths=paths, resume=resume)
                fit({**given, "sizes": entry["sizes"][:1]})  # compiles what is compiled once
                learning_curves.forget(resume)
                return seconds(partial(fit, given))

        return entry["realisations"] * self.once(cost, "curve", curve)
