"""Seconds that the jobs of a text take, from a probe of a few seconds for each of its models.

On this machine a model with random weights takes some training steps, is tested on some sequences
and moves some chains; a job is that, times its counted work.
"""

import time
from collections import defaultdict

import numpy as np
import torch

from manybody.io.devices import accelerated, torch_threads
from manybody.io.seeds import run_settings
from manybody.io.sequences import Sequences
from manybody.models.objectives import sequence_sums
from manybody.sampling.backends import open_chains
from manybody.sampling.metropolis import advance
from manybody.training import kept_steps
from manybody.training.batches import Batches
from manybody.training.learner import Learner

START = 2.5  # seconds in which a job of torch starts
LEAST = 0.3  # seconds for which a call is repeated
COPIES = 512  # masked copies of sequences in a test, about
CHAINS = 16


def seconds(config: dict, train: Sequences, runs: list, clones: list) -> dict[str, list[float]]:
    """Seconds of each job, by stage, behind some runs (evaluation, seed) and clones of a source.

    Models that are trained elsewhere, or fitted without steps, are left out.
    """
    tests = [config["evaluations"][name] for name, _ in runs]
    drawn = [config["clones"][name] for name in clones]
    seeds = [seed for _, seed in runs] + [clone["seed"] for clone in drawn]
    trained = dict.fromkeys(zip((job["model"] for job in tests + drawn), seeds, strict=True))
    probes = {
        name: Probe(config["models"][name], train)
        for name in dict.fromkeys(name for name, _ in trained)
        if "steps" in config["models"][name].get("training", {})
    }
    found = defaultdict(list)
    for name, _ in trained:
        if probe := probes.get(name):
            found["train_model"].append(START + probe.training())
    for clone in drawn:
        if probe := probes.get(clone["model"]):
            found["sample_clones"].append(START + probe.sampling(clone))
    for test in tests:
        if probe := probes.get(test["model"]):
            count = sum(_sequences(target, config["clones"]) for target in test["targets"].values())
            found["evaluate_model"].append(START + probe.testing(count, test["steps"]))
    return found


def _sequences(target: dict, clones: dict) -> int:
    made = target.get("clone", target.get("initial"))
    return clones[made]["chains"] if made else target["sequences"]


class Probe:
    """A model of the config on the training sequences of a text; `step` are the seconds of a
    training step, `sequence` those of the loss of a sequence, each position masked in turn."""

    def __init__(self, entry: dict, train: Sequences):
        self.recipe = {**entry["training"], "compile": False}
        self.checkpoints = len(kept_steps(self.recipe))
        description = {key: entry[key] for key in entry.keys() - {"training", "init_seed"}}
        description |= {"vocabulary": train.vocabulary, "length": train.length}
        precision, threads = self.recipe["precision"], self.recipe.get("threads", 1)
        with accelerated("cpu", precision, threads) as accelerator:
            batches = Batches(len(train), train.length, self.recipe, seed=0)
            settings = run_settings({}, description, self.recipe, 0, 0, "")
            learner = Learner(settings, train.tokens, batches.divisor, accelerator)
            self.step = _timed(lambda step: learner.step(step, batches.at(step)))
            rows = np.asarray(train.tokens[: max(CHAINS, COPIES // train.length)], dtype=np.int64)
            self.tokens, self.model = torch.from_numpy(rows), learner.model.eval()
            with torch.no_grad():
                tested = _timed(lambda _: sequence_sums(self.model, self.tokens))
            self.sequence = tested / len(rows)

    def training(self) -> float:
        """Seconds of a training, with the validation at its checkpoints."""
        return self.recipe["steps"] * self.step + self.testing(self.recipe["validation"], "all")

    def testing(self, sequences: int, steps: str) -> float:
        """Seconds of the losses of so many sequences at the checkpoints, "all" or the "last"."""
        return (self.checkpoints if steps == "all" else 1) * sequences * self.sequence

    def sampling(self, clone: dict) -> float:
        """Seconds of the chains of a clone: those of "mh" under the raw or norm score are timed,
        a sweep of others is counted as one test of a sequence, or of its paths."""
        sweeps = clone["chains"] * max(clone["sweeps"])
        if clone.get("sampler", "mh") != "mh" or clone["energy"] not in ("raw", "norm"):
            return sweeps * self.sequence * (clone.get("paths") or 1)
        tokens, length, draw = self.tokens[:CHAINS], self.model.length, np.random.default_rng(0)
        with torch_threads(clone["threads"]), torch.no_grad():
            chains = open_chains(self.model, tokens, clone["energy"], clone["gauge"])

            def step(_):
                visits = draw.integers(length, size=(len(tokens), 1, 1))
                advance(chains, visits, draw.random((len(tokens), 1, 1, 2)), tokens.numpy())

            return sweeps * length * _timed(step) / len(tokens)


def _timed(call) -> float:
    """Seconds of a call, which is given the number of the repetition; the first warms up."""
    call(0)
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < LEAST:
        count += 1
        call(count)
    return (time.perf_counter() - begin) / count
