"""What the Potts paper's figures read, with planted answers: runs, and tables."""

import math
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import planted_runs
from scipy.special import log_softmax

from manybody.data import pair_gibbs
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.potts import contact_map, stored_colours
from manybody.io import sequences, tables
from manybody.io.tables import rows
from manybody.measure import truths
from manybody.measure.contacts import Truth, apc, write_known, write_scores
from manybody.papers.inputs import Curve, distinct, with_files
from manybody.papers.potts import contacts, fig2, fig3, heads, recovery
from manybody.theory import replica

LENGTH, VOCABULARY, BETA, HELD_OUT, M = 20, 20, 1.707, 2000, 3000
SOURCE = {
    "kind": "potts",
    "length": LENGTH,
    "vocabulary": VOCABULARY,
    "couplings": "contact-map",
    "colours": "stored",
    "temperature": {"hamming": 0.3},
    "sweeps": 200,
    "sequences": {"train": 20000, "validation": HELD_OUT, "test": 2000},
    "seed": 0,
}
# Noise of A (relative error of J that it makes) and of V (relative) planted in the two layers.
NOISE = {"free": (0.02, 0.05), "softmax": (0.014, 0.1)}
ENCODERS = {"one": (1, (0.034, 0.036, 0.035)), "three": (3, (0.021, 0.022, 0.020))}
EPOCHS = np.linspace(0, 300, 31)
HAMILTONIAN = Hamiltonian(contact_map(LENGTH), -stored_colours() / 2, BETA)


def of_factored(attention, values, tokens):
    """Losses (N,) of eq. 4 of potts as it is written: logits sum_{j != k} A_kj V s_j."""
    others = np.where(np.eye(LENGTH, dtype=bool), 0.0, attention)
    logs = log_softmax(others @ values.T[tokens], axis=-1)
    return -np.take_along_axis(logs, tokens[..., None].astype(int), 2)[..., 0].mean(1)


@cache
def held_out():
    return pair_gibbs.sample(HAMILTONIAN, HELD_OUT, 100, np.random.SeedSequence(3)).tokens


def recipe(rate=1.0, name="sgd", steps=9000, **more):
    rates = {} if rate is None else {"learning_rate": rate}
    return dict(steps=steps, optimizer={"name": name}, subset=M, **rates, **more)


def curve(end):
    """Falls from 2 to `end` in 300 epochs."""
    return end + (2.0 - end) * np.exp(-EPOCHS / 10) * (EPOCHS < 300)


def write_run(folder, description, losses, tokens, of=None, **about):
    """A run's folder; losses at all epochs, or at the last only."""
    rows = planted_runs.rows(EPOCHS[-np.size(losses) :], losses, tokens, 30)
    about |= {"description": description, "steps": [rows[-1]["step"]], "recipe": of}
    return planted_runs.write(folder, rows, **about)


def write_maps(path, steps):
    """steps: step -> {(name, layer): matrix}."""
    frames = []
    for step, named in steps.items():
        for (name, layer), matrix in named.items():
            row, column = map(np.ravel, np.indices(matrix.shape))
            cells = dict(row=row, column=column, value=matrix.ravel())
            frames.append(pd.DataFrame({"name": name, "step": step, "layer": layer, **cells}))
    tables.MAPS.write(path, pd.concat(frames, ignore_index=True), {})
    return path


def noisy(matrix, share, draws):
    """`matrix` and noise of squared size `share` of its own, off the diagonal."""
    noise = draws.standard_normal(matrix.shape)
    np.fill_diagonal(noise, 0)
    return matrix + noise * math.sqrt(share * (matrix**2).sum() / (noise**2).sum())


class Made:
    """Everything that figure 2 needs, written under one folder."""

    def __init__(self, folder, source=SOURCE):
        self.folder, self.hamiltonian, self.source = folder, HAMILTONIAN, source
        self.tokens = tokens = held_out()
        folder.mkdir(parents=True, exist_ok=True)
        each = truths.of_truth(HAMILTONIAN, tokens)
        self.paths, self.maps = {}, {}
        self.losses = [rows("optimum", "", range(len(each)), each)]
        self.optimum = float(each.mean())
        HAMILTONIAN.save(folder / "hamiltonian.safetensors", {})
        sequences.write(folder / "validation.parquet", tokens, VOCABULARY, {"repeated": 0.52})
        self.add("true", 0, dict(architecture="energy", order=2), self.optimum, None)

    def add(
        self, model, seed, description, losses, of, maps=None, sequences=None, each=None, **more
    ):
        where = self.folder / model / f"seed-{seed}"
        counted = (sequences or len(self.tokens)) * LENGTH
        key = ("potts", model, seed)
        self.paths[key] = write_run(where, description, losses, counted, of, **more)
        if each is not None:
            self.losses.append(rows("loss", model, range(len(each)), each, seed=seed))
        if maps is not None:
            self.maps[key] = write_maps(where / "maps.parquet", maps)

    def factored(self, model, kind, noise, seed=0, of=None, sign=-2.0):
        """One layer whose A and V are the true ones with noise, in another gauge."""
        draws = np.random.default_rng([seed, 0])
        attention = noisy(self.hamiltonian.couplings, noise[0], draws)
        truth = -2 * self.hamiltonian.beta * self.hamiltonian.colours
        values = truth + noise[1] * truth.std() * draws.standard_normal(truth.shape)
        each = of_factored(attention, values, self.tokens)
        last = {("A", 1): sign * attention, ("V", 1): values / sign + draws.random(len(truth))}
        early = {("A", 1): draws.standard_normal(attention.shape), ("V", 1): values}
        description = dict(architecture="factored", layers=1, bias=False, attention=kind)
        maps = {0: early, 9000: last}
        self.add(model, seed, description, curve(each.mean()), of or recipe(), maps, each=each)

    def encoder(self, model, layers, excess, seed=0, of=None):
        draws = np.random.default_rng(seed)
        named = {("attention", n): draws.random((LENGTH, LENGTH)) for n in range(1, layers + 1)}
        if layers > 1:
            named["attention", 0] = noisy(self.hamiltonian.couplings, 0.2, draws)
        description = dict(architecture="encoder", layers=layers)
        losses = curve(self.optimum + excess)
        self.add(model, seed, description, losses, of or recipe(), {9000: named})

    def interpolated(self, model, a, noise, seed=0, of=None):
        """A run that loses what the true J and the true V with noise do."""
        draws = np.random.default_rng(seed)
        values = -2 * self.hamiltonian.beta * self.hamiltonian.colours
        values = values + noise * values.std() * draws.standard_normal(values.shape)
        each = of_factored(self.hamiltonian.couplings, values, self.tokens)
        description = dict(architecture="interpolated", a=a)
        of = of or recipe(0.02, "adamw")
        self.add(model, seed, description, curve(each.mean()), of, each=each)

    def tables(self, block):
        """The tables of figure 2 with this block, read from the files."""
        block = fig2.Block(source="potts", optimum="true", **block)
        inputs = fig2.Inputs.of(block, {"sources": {"potts": self.source}})
        mapped = [key for key in inputs.maps if ("potts", key.model, key.seed) in self.maps]
        inputs = inputs.model_copy(update={"maps": mapped})
        tables.write_theory(self.folder / "equations.parquet", pd.concat(self.losses), {})
        beside = {
            "equations": self.folder / "equations.parquet",
            "sequences": self.folder / "validation.parquet",
            "hamiltonians": self.folder / "hamiltonian.safetensors",
        }
        runs = {"models": self.paths, "maps": self.maps}
        files: dict[str, list] = {}
        for key in distinct(inputs):
            (kind,) = key.KINDS
            of = runs[kind]["potts", key.model, key.seed] if kind in runs else beside[kind]
            files.setdefault(kind, []).append(str(of))
        return fig2.tables(with_files(inputs, files), block)


def diverged(folder, candidates=("one-fast", "one")):
    """The tables of figure 2 of an encoder one of whose two learning rates diverges."""
    made = Made(folder)
    description = dict(architecture="encoder", layers=1)
    made.add("one-fast", 0, description, curve(0.7)[:3], recipe(9.0), diverged=90)
    made.encoder("one", 1, 0.03)
    return made.tables({"runs": [dict(label="vanilla", candidates=list(candidates), seeds=[0])]})


BLOCK = {
    "runs": [
        {"label": "free", "candidates": ["free-slow", "free", "free-fast"], "seeds": [0]},
        {"label": "softmax", "candidates": ["softmax"], "seeds": [0, 1]},
        {"label": "vanilla, 1 layer", "candidates": ["one"], "seeds": [0, 1, 2]},
        {"label": "vanilla, 3 layers", "candidates": ["three"], "seeds": [0, 1, 2]},
    ],
    "interpolation": [
        {"a": 0.02, "candidates": ["a0.02"], "seeds": [0]},
        {"a": 0, "candidates": ["a0"], "seeds": [0]},
        {"a": 0.01, "candidates": ["a0.01"], "seeds": [0]},
    ],
}
STRENGTHS = {"a0": (0, 0.06), "a0.01": (0.01, 0.12), "a0.02": (0.02, 0.2)}


def make(folder, noise=NOISE, strengths=STRENGTHS, encoders=ENCODERS):
    made = Made(folder)
    made.factored("free-slow", "free", (0.2, 0.4), of=recipe(0.1))
    made.factored("free", "free", noise["free"], sign=2.0)
    made.factored("free-fast", "free", (0.1, 0.2), of=recipe(3.0))
    for seed in (0, 1):
        made.factored("softmax", "softmax", noise["softmax"], seed, recipe(0.02, "adamw"))
    for model, (layers, excesses) in encoders.items():
        for seed, excess in enumerate(excesses):
            made.encoder(model, layers, excess, seed)
    for model, (a, size) in strengths.items():
        made.interpolated(model, a, size)
    return made


def of_figure_2():
    """The tables of figure 2, everything planted."""
    with TemporaryDirectory() as folder:
        return make(Path(folder)).tables(BLOCK)


REPLICA = {
    "kind": "replica",
    "gamma": 2.5,
    "ridge": 1e-2,
    "length": 60,
    "alphas": [0.1, 0.5, 1.0, 2.0, 4.0],
    "realisations": 24,
    "seed": 4,
    "threads": 1,
}


def curve_of_losses(ridges=(1e-3, 1e-2, 0.1), shift=1.0):
    """Curves of the shape that the specification found, with scatter over realisations."""
    generator = np.random.default_rng(0)
    sizes = np.array([2, 6, 14, 20, 28, 36, 44, 60, 80, 100, 120, 140, 170, 200])
    rows = [("optimum", "", 0, np.nan, 0.69, np.nan)]
    for rank, ridge in enumerate(ridges):
        test = 1 + (30 / 3**rank) * np.exp(-(np.log(sizes / (40 * shift)) ** 2))
        curves = {"test loss": test, "training loss": 0.7 / (1 + (75 * shift / sizes) ** 4)}
        for seed, quantity in product(range(12), curves):
            values = curves[quantity] * np.exp(0.05 * generator.normal(size=len(sizes)))
            points = zip(sizes, values, strict=True)
            rows += [(quantity, f"{ridge:g}", seed, *point, np.nan) for point in points]
    columns = ["quantity", "series", "seed", "x", "y", "y_err"]
    return pd.DataFrame(rows, columns=columns), {"entry": {}, "length": 20}


def of_figure_3():
    """The tables of figure 3."""
    return fig3.tables_of(replica.compute(REPLICA), curve_of_losses())


SIZES = (500, 1000, 2000, 3000, 5000, 10000, 20000)


def recovered(runs: int, slope: float = -0.97, power: float | None = None):
    """A table of recovery: its mean slope, and errors with scatter; power: of errors without."""
    draws = np.random.default_rng(runs)
    rows = [("mean slope", 0, 0, slope, 0.011 / np.sqrt(runs))]
    rows += [("expected excess", 0, size, 19.0 / size, np.nan) for size in SIZES]
    for seed in range(runs):
        for size in SIZES:
            scale, noise = 3000 / size, draws.standard_normal(3)
            error = scale * (0.0546 + 0.0042 * noise[0]) if power is None else 150 * size**power
            rows += [
                ("coupling error", seed, size, error, 0.0),
                ("pearson", seed, size, 1 - scale * (0.0334 + 0.0027 * noise[1]), 0.0),
                ("score correlation", seed, size, 0.99, 0.0),
                ("excess loss", seed, size, scale * (0.0063 + 0.0012 * noise[2]), 4e-4),
            ]
    frame = pd.DataFrame(rows, columns=["quantity", "seed", "x", "y", "y_err"])
    return frame.assign(series=""), dict(entry={}, length=20)


def of_recovery(*given):
    """The tables of recovery of a planted one."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "curve.parquet"
        tables.write_theory(path, *recovered(*given))
        inputs = recovery.Inputs(curve=Curve(curve="c"), entry={}, source={})
        return recovery.tables(with_files(inputs, {"curves": [str(path)]}), None)


TRUTH = Truth(HAMILTONIAN.couplings != 0, ~np.eye(LENGTH, dtype=bool))


def contact_tables(noise=0.1, separation=1, truth=None, couplings=HAMILTONIAN.couplings, **about):
    """Tables of contacts whose scores are |J| with noise of this size."""
    draws = np.random.default_rng(0).standard_normal(couplings.shape)
    scores = np.abs(couplings) + noise * (draws + draws.T)
    np.fill_diagonal(scores, 0)
    document = dict(source="planted", model="one-head", seed=0, heads=1, weighted=False)
    both = {"corrected": apc(scores), "as it is": scores}
    return contacts.tables_of(both, document | {"sequences": 3000} | about, truth, separation)


# By the number of heads: noise of the scores, and nats a site above the loss of full couplings.
FAMILY = {"full": (0.05, 0.0), 2: (0.5, 0.2), 8: (0.4, 0.1), 32: (0.1, 0.02)}
ONE_HEAD = {"full": (0.2, 0.0), 2: (0.05, -0.05), 8: (0.05, -0.04)}


def of_heads(**families):
    """The tables of heads, read from files; `family` and `planted` as `FAMILY`."""
    fits = {"family": FAMILY, "planted": ONE_HEAD} | families
    block = {
        name: dict(
            source=name,
            model=f"{name}-full",
            heads=[f"{name}-{number}" for number in list(of)[1:]],
            separation=2 if name == "family" else 1,
        )
        for name, of in fits.items()
    }
    block = heads.Block(truth="list", seed=0, planted=block["planted"], **block["family"])
    inputs, losses = heads.Inputs.of(block, {}), np.random.default_rng(1).random(50)
    with TemporaryDirectory() as folder:
        folder = Path(folder)
        files = {"known": folder / "known", "hamiltonians": folder / "law"}
        HAMILTONIAN.save(files["hamiltonians"], {})
        write_known(files["known"], TRUTH.contacts, TRUTH.known, np.full(TRUTH.known.shape, 3), {})
        files |= {"models": [], "contacts": []}
        for run in inputs.models:
            number = run.model.rpartition("-")[2]
            number = int(number) if number.isdigit() else number
            noise, excess = fits[run.source][number]
            own, document = losses + excess, dict(heads=number)
            path = folder / run.model
            write_scores(
                path.with_suffix(".scores"), contact_tables(noise).scores["as it is"], document
            )
            files["models"].append(write_run(path, {}, own.mean(), 50, held_out=own.tolist()))
            files["contacts"].append(path.with_suffix(".scores"))
        given = {kind: [str(one) for one in np.atleast_1d(of)] for kind, of in files.items()}
        return heads.tables(with_files(inputs, given), block)
