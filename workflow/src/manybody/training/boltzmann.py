"""Boltzmann learning: the Potts model whose samples have the correlations of a family.

The mean log-likelihood of weighted sequences, less a ridge, is raised along its gradient: two-site
frequencies of the data less those of the model (Ackley, Hinton and Sejnowski 1985), of chains that
go on from update to update (Tieleman 2008). At each update a part of the chains begins anew from
uniform colours: else states that no chain visits could gain any weight unseen.

It ends when the connected correlations c_ij(a, b) = f_ij(a, b) - f_i(a) f_j(b), over all i < j, a,
b, of new chains have the Pearson correlation with the data's that is asked for and a slope near
one, both of chains that begin at the data and of others at uniform colours, which must be as
likely. Where sequences are few, their correlations are largely noise, and a model that has them all
has learned sequences by heart: new chains end at one of them and stay. Then it ends, and says so.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from manybody.data.pair_model import PairModel, of_pairs
from manybody.io.lease import lease
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.io.resume import Resume, digest
from manybody.sampling.pair_chains import Chains, Tables, frequencies, nearest
from manybody.training.boltzmann_loops import step
from manybody.training.pair_fit import Family, Heads

FILE = "model.safetensors"
RENEWED = 32  # updates in which all chains begin anew, a part at each
BURN = 32  # sweeps of chains that begin, before they count
DAMPING = 3.0  # in the mean variance of what a coupling weighs: more steps, and none too long
FIRST, SETTLED = 16, 256  # sweeps of tests, doubled until both starts agree
SCORED = 1024  # chains whose log p are compared
PARTED = 0.05  # in the Pearson correlations of two starts that do not forget where they began
NEAR = 64  # chains of which the nearest sequence of the data is looked for
AGREE = 0.2  # standard deviations of log p by which the means of two starts may differ
PAUSE = 10  # updates to the first test, and from one that failed to the next, times failures
SLOWER = 0.7  # what the rate is multiplied by after a test that failed
LEAST = 1.01  # effective sequences
SLACK = 0.05  # in the slope, when a test is tried: chains that began of late lower it
STALLED, RISE = 50, 1e-3  # updates over which the Pearson correlation must still rise, by how much
SAVED = 20  # updates between two saved states
SMALL = 1e-3  # singular values of A or V, over the largest, that count as zero


class Fitted(NamedTuple):
    """Connected correlations against the data's: Pearson correlation, and slope of the line."""

    pearson: float
    slope: float


def learn(
    model: PairModel,
    tokens: np.ndarray,
    weights: np.ndarray | None,
    out: str | Path,
    *,
    target: float = 0.95,
    slope: tuple[float, float] = (0.95, 1.05),
    ridge: float = 1e-3,
    rate: float = 0.03,
    chains: int = 4096,
    sweeps: int = 2,
    tested: int = 10_000,
    updates: int = 1000,
    heads: int | None = None,
    seed: int = 0,
    threads: int = 1,
    label: str = "Boltzmann learning",
) -> PairModel:
    """The model of tokens (N, L) with weights (N,) or none, from the start `model`, best that of
    pseudo-likelihood with the gap as a colour; also written to `model.safetensors` in `out`.

    Raises the mean log-likelihood (nats a sequence) less ridge / 2 times the squared couplings, by
    at most `updates` steps of `rate`, in each of which `chains` chains move by `sweeps` sweeps. The
    data's frequencies have the pseudocount 1 / sum of weights. The block `boltzmann` of its `about`
    says how it ended: whether it has `reached` the target, a `reason`, the lower `pearson` of the
    two starts, the `slope` farther from 1, both of each in `starts`, found by `tested` chains after
    `settled` sweeps, and the means of log p `apart`, in standard deviations. `nearest` is the share
    of sites in which new chains differ from a sequence of the data, `natural` that in which those
    differ from each other, and `noise` the share of noise in the correlations' variance: the law of
    the family itself would show a correlation of sqrt(1 - noise) and a slope of 1 - noise.

    With `heads` the couplings are those of factored attention, see `pair_fit.Heads`, from those
    nearest to the start's; A and V are moved by the chain rule.

    A run that was killed goes on from `out/resume`; the model depends neither on that nor on
    `threads`. `Refusal` for weights or a number of chains that do not fit.
    """
    settings = dict(
        target=target, slope=list(slope), ridge=ridge, rate=rate, chains=chains, sweeps=sweeps,
        tested=tested, updates=updates, heads=heads, seed=seed,
    )  # fmt: skip
    weights = np.ones(len(tokens)) if weights is None else np.asarray(weights, np.float64)
    # At a sum of 1 the pseudocount leaves nothing of the data.
    if weights.shape != (len(tokens),) or not (weights >= 0).all() or weights.sum() < LEAST:
        raise Refusal(
            f"sequence_weights: {weights.sum():.3g} effective sequences; expected a weight for "
            f"each, none below 0, and their sum at least {LEAST:g}"
        )
    if chains % RENEWED or chains < RENEWED:
        raise Refusal(f"chains: {chains}, expected a multiple of {RENEWED}")
    out = Path(out)
    with lease(out):
        return _Learning(model, np.asarray(tokens), weights, out, settings, threads).run(label)


class _Learning:
    """One run: its data, its model (h (L, q), couplings of pairs i < j) and its chains."""

    def __init__(self, model, tokens, weights, out, settings, threads):
        self.tokens, self.out, self.settings, self.threads = tokens, out, settings, threads
        self.weights, self.about = weights / weights.sum(), model.about
        self.length, self.vocabulary = self.shape = model.fields.shape
        one, two = frequencies(tokens, model.vocabulary, weights, threads)
        few = 1.0 / weights.sum()  # the pseudocount
        self.sites = (1 - few) * one + few / model.vocabulary
        two = (1 - few) * two + few / model.vocabulary**2
        self.pairs = first, second = np.triu_indices(self.length, 1)
        outer = self.sites[first][:, :, None] * self.sites[second][:, None, :]
        self.observed = (two - outer).astype(np.float32)
        # The mean variance of what a coupling weighs, if sites were independent.
        self.variance = (self.sites * (1 - self.sites)).mean() ** 2
        self.noise = min(float(few * self.variance / self.observed.var()), 1.0)
        self.fields = model.fields.astype(np.float64)
        self.couplings = np.ascontiguousarray(model.couplings[self.pairs], np.float32)
        if settings["heads"]:
            self.form = Heads(Family(tokens, model.vocabulary, weights), settings["heads"])
            self.factors = self.form.start(model)
            self._set_couplings(self.couplings.copy())
        self.chains = Chains.begun(settings["chains"], *self.shape, self._stream(0))
        self.done, self.rate, self.next, self.failed = 0, settings["rate"], PAUSE, 0
        self.history = []
        given = dict(tokens=tokens, weights=weights, fields=model.fields, couplings=model.couplings)
        tensors = {
            name: torch.from_numpy(np.require(array, None, "CW")) for name, array in given.items()
        }
        self.resume = Resume(out / "resume", {"settings": settings, "data": digest("", tensors)})

    def _stream(self, *key: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.settings["seed"], spawn_key=key)

    def run(self, label: str) -> PairModel:
        self._take_up()
        total, ended = self.settings["updates"], None
        with Progress(total, "updates", label, done=self.done) as progress:
            while ended is None:
                fitted = self._update()
                progress.update(1, pearson=fitted.pearson, slope=fitted.slope)
                ended = self._ended(fitted)
                if self.done % SAVED == 0:
                    self._save()
        learned = self._model({**self.about, "boltzmann": self.settings | ended})
        learned.save(self.out / FILE)
        self.resume.clear()
        return learned

    def _model(self, about: dict) -> PairModel:
        return PairModel(self.fields, of_pairs(self.couplings, self.length), about)

    def _tables(self) -> Tables:
        return Tables.of(self.fields, of_pairs(self.couplings, self.length))

    def _update(self) -> Fitted:
        """One step; the correlations are those that it found before."""
        size, tables = len(self.chains.tokens) // RENEWED, self._tables()
        begun = Chains.begun(size, *self.shape, self._stream(1, self.done))
        begun.move(tables, BURN, self.threads)
        start = self.done % RENEWED * size
        for array, new in zip(self.chains, begun, strict=True):
            array[start : start + size] = new
        self.chains.move(tables, self.settings["sweeps"], self.threads)
        self.done += 1
        fitted = self._step(self.chains, self.rate)
        self.history.append(fitted.pearson)
        return fitted

    def _step(self, chains: Chains, rate: float) -> Fitted:
        """Moves the model; what chains find before, as if there were as many as in tests."""
        found = frequencies(chains.tokens, self.vocabulary, threads=self.threads)
        factored = self.settings["heads"]
        couplings = self.couplings.copy() if factored else self.couplings
        sums = step(
            couplings, self.fields, self.observed, found[1], self.sites, found[0], rate,
            self.settings["ridge"], DAMPING * self.variance,
        )  # fmt: skip
        if factored and rate:
            self._step_factors(couplings - self.couplings)
        x, y, xx, yy, xy = sums / self.couplings.size
        spread, shared = xx - x * x, xy - x * y
        noise = self.variance / self.settings["tested"] - self.variance / len(chains.tokens)
        # Chains that all hold one state have no correlations.
        both = math.sqrt(spread * max(yy - y * y + noise, 0.0)) or math.inf
        return Fitted(float(shared / both), float(shared / spread))

    def _step_factors(self, moved: np.ndarray) -> None:
        """Moves A and V in turn, where `step` would move J by `moved`.

        As matrices J = A^T V, with a row for each (i, j); G is the gradient by J. A moves by
        s G V^+, so that J moves by s D, D = G V^+ V; s is for each row where the quadratic form
        whose minimum `moved` is, of the weights w, is least: s = G.D / D.wD. V moves likewise. Both
        at once would add a product of two changes, large for small heads.
        """
        wanted, varied = self.couplings + moved, self.sites * (1 - self.sites)
        weights = np.einsum("ia,jb->ijab", varied, varied) + DAMPING * self.variance
        weights = weights.reshape(self.length**2, -1)
        gradient = weights * of_pairs(moved, self.length).reshape(weights.shape)
        part, other = self.form.parts(self.factors)
        if self.done % 2:
            part, other, gradient, weights = other, part, gradient.T, weights.T
        other = other.reshape(len(other), -1)
        change = gradient @ np.linalg.pinv(other, SMALL)
        along = change @ other
        curved = (weights * along**2).sum(axis=1)
        change *= ((gradient * along).sum(axis=1) / np.maximum(curved, 1e-30))[:, None]
        part += change.T.reshape(part.shape)
        self._set_couplings(wanted)

    def _set_couplings(self, wanted: np.ndarray) -> None:
        """Sets J to that of A and V; h takes what it lacks of `wanted` on average."""
        self.couplings[:] = self.form.blocks(self.factors)[self.pairs]
        left = of_pairs(wanted - self.couplings, self.length)
        self.fields += np.einsum("ijab,jb->ia", left, self.sites)

    def _ended(self, fitted: Fitted) -> dict | None:
        """Reason for which the run has ended, or None if it goes on."""
        last = self.done == self.settings["updates"]
        recent, before = self.history[-STALLED:], self.history[-2 * STALLED : -STALLED]
        stalled = len(before) == STALLED and np.mean(recent) - np.mean(before) < RISE
        if not (last or stalled or (self._enough(fitted, SLACK) and self.done >= self.next)):
            return None
        ended = self._tested()
        if ended["reached"]:
            return ended
        one, other = (pearson for pearson, _ in ended["starts"].values())
        if abs(one - other) > PARTED and ended["nearest"] < ended["natural"] / 2:
            why = (
                f"new chains differ from a sequence of the data in {ended['nearest']:.0%} of the "
                f"sites, those from each other in {ended['natural']:.0%}: the model learns them by "
                f"heart, as their correlations are noise to {self.noise:.0%} of the variance. The "
                f"law of the family would show {math.sqrt(1 - self.noise):.2f} and a slope of "
                f"{1 - self.noise:.2f}: take more sequences, or a lower target and slope with a "
                "larger ridge and a lower rate, options of manybody.training.boltzmann.learn"
            )
        elif last:
            why = f"all {self.done} updates are done"
        elif stalled:
            why = (
                f"they no longer rise with the ridge {self.settings['ridge']:g}: lower it, or take "
                "more chains, options of manybody.training.boltzmann.learn"
            )
        else:
            self.failed += 1
            self.next, self.rate = self.done + PAUSE * self.failed, self.rate * SLOWER
            return None
        return ended | {"reason": f"{ended['reason']}; {why}"}

    def _enough(self, fitted: Fitted, slack: float = 0.0) -> bool:
        low, high = self.settings["slope"]
        return (
            fitted.pearson >= self.settings["target"]
            and low - slack <= fitted.slope <= high + slack
        )

    def _tested(self) -> dict:
        """Statistics of new chains from both starts: a few until their log p agree, then all until
        they have what is asked for or those from data fall short."""
        tables, model, sweeps = self._tables(), self._model({}), FIRST
        starts, moved = self._begun(min(SCORED, self.settings["tested"])), 0
        few = True
        while True:
            for chains in starts.values():
                chains.move(tables, sweeps - moved, self.threads)
            if few:
                data, uniform = (model.scores(chains.tokens) for chains in starts.values())
                apart = float(abs(data.mean() - uniform.mean()) / (data.std() or 1.0))
            fitted = {name: self._step(chains, 0.0) for name, chains in starts.items()}
            moved, enough = sweeps, {name: self._enough(each) for name, each in fitted.items()}
            if few and apart <= AGREE:
                starts, moved, few = self._begun(self.settings["tested"]), 0, False
            elif sweeps >= SETTLED or (not few and (all(enough.values()) or not enough["data"])):
                break
            else:
                sweeps *= 2
        some = self.tokens[:: -(-len(self.tokens) // NEAR)]
        new = starts["uniform colours"].tokens[:NEAR]
        low, high = self.settings["slope"]
        pearsons, slopes = zip(*fitted.values(), strict=True)
        found = " and ".join(
            f"{pearson:.3f} (slope {slope:.3f}) from {name}"
            for name, (pearson, slope) in fitted.items()
        )
        return dict(
            reached=not few and all(enough.values()),
            reason=f"after {sweeps} sweeps the Pearson correlations are {found}, and the means of "
            f"log p {apart:.2f} standard deviations apart; a slope from {low:g} to {high:g} is "
            "asked for too",
            pearson=min(pearsons),
            slope=max(slopes, key=lambda slope: abs(slope - 1)),
            starts={name: list(each) for name, each in fitted.items()},
            apart=apart,
            nearest=float(nearest(new, self.tokens).mean()),
            natural=float(nearest(some, self.tokens, itself=True).mean()),
            noise=self.noise,
            settled=sweeps,
            updates=self.done,
        )

    def _begun(self, count: int) -> dict[str, Chains]:
        """New chains from both starts; the first ones are the same for any number of them."""
        rng = np.random.default_rng(self._stream(2, self.done))
        drawn = self.tokens[rng.choice(len(self.tokens), count, p=self.weights)]
        return {
            "data": Chains.begun(count, *self.shape, self._stream(3, self.done), drawn),
            "uniform colours": Chains.begun(count, *self.shape, self._stream(4, self.done)),
        }

    def _save(self) -> None:
        tensors = {name: torch.from_numpy(array) for name, array in self._state().items()}
        progress = dict(rate=self.rate, next=self.next, failed=self.failed, history=self.history)
        self.resume.save(self.done, tensors, progress)

    def _take_up(self) -> None:
        saved = self.resume.load()
        if saved is not None:
            tensors, progress = saved
            for name, array in self._state().items():
                array[:] = tensors[name].numpy()
            self.done = progress.pop("step")
            vars(self).update(progress)

    def _state(self) -> dict[str, np.ndarray]:
        """The arrays that an update changes."""
        states = self.chains.states.view(np.int64)
        model = dict(fields=self.fields, couplings=self.couplings)
        if self.settings["heads"]:
            model["factors"] = self.factors
        return {**model, "tokens": self.chains.tokens, "states": states}
