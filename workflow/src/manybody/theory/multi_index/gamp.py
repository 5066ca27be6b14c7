"""Approximate message passing (GAMP) on deep attention of two layers, two tokens, rank one.

A teacher W (2, D) of N(0, 1), a row w_l a layer, is learned from N = alpha D samples of two tokens
each, X_mu (2, D) of N(0, 1), and their outputs. docs/science/multi-index.md, section 2, with the
estimate what (2, D) and the covariance chat (2, 2) of a column of W around it:

    omega_mu = what X_mu / sqrt D - chat g_mu,   g_mu = g_out(y_mu, omega_mu, chat + regulariser),
    A = -1/D sum_mu,t dg_mu,t / domega_mu,t,     b = sum_mu,t g_mu,t X_mu,t / sqrt D + A what,
    chat = ((1 + s) I + A)^-1,                   what = chat (b + sqrt s S),

with side information S = sqrt s W + noise, and g of the iteration before in omega. The Jacobian is
exact. Overlaps are M = what W / D and Q = what what / D.

With Z = W X / sqrt D and omega Gaussian, the same iteration at D -> infinity is a map of three
numbers a layer, M, Q and chat (`predict`). From a posterior's start, where the channel knows the
noise of the data, M = Q = I - chat at all times, and it is state evolution. Where the channel adds
a variance that data do not have (`regulariser` above `noise`), they part.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from manybody.io.progress import Progress
from manybody.io.tables import joined, rows
from manybody.theory.multi_index.channel import denoiser, index, jacobian, outputs, posterior
from manybody.theory.multi_index.samples import controlled, normals as sobol

# A run has converged where no Q_ll and chat_ll has moved by more in as many iterations. Estimates
# themselves need not stand still: a sample can jump between the two signs of its index for ever.
# Where that moves Q and chat to and fro, their means over LONG iterations must stand still instead.
CONVERGED, WINDOW, LONG = 3e-3, 5, 30
TESTS = 2**13  # samples behind a plug-in error
SETS = 8  # of points, over which the iteration at D -> infinity is averaged
STILL = 1e-5  # change of every overlap of `predict` at which it has ended
FIGURES = ("cosine 1", "M11", "Q11", "cosine 2", "M22", "Q22", "error plug-in")
PREDICTED = ("SE M11", "SE Q11", "SE M22", "SE Q22")


@dataclass(frozen=True)
class Data:
    """teacher W (2, D); tokens X (N, 2, D); x (N, 2), the last layer's index up to its sign;
    side (2, D): S, of strength `strength`."""

    teacher: np.ndarray
    tokens: np.ndarray
    x: np.ndarray
    side: np.ndarray
    strength: float


@dataclass(frozen=True)
class State:
    """estimate what (2, D); covariance chat (2, 2); g (N, 2, 2) of the iteration before."""

    estimate: np.ndarray
    covariance: np.ndarray
    g: np.ndarray


def draw(
    size: int,
    alpha: float,
    skip: float,
    generator: np.random.Generator,
    noise: float = 0.0,
    side_information: float = 0.0,
    activation: str = "softmax",
) -> Data:
    """A teacher of D = `size` and round(alpha D) samples; noise: its variance, added to Z;
    activation: softmax or linear, of both layers."""
    count = round(alpha * size)
    teacher = generator.normal(size=(2, size))
    tokens = generator.normal(size=(count, 2, size))
    z = _indices(teacher, tokens) + math.sqrt(noise) * generator.normal(size=(count, 2, 2))
    side = math.sqrt(side_information) * teacher + generator.normal(size=(2, size))
    return Data(teacher, tokens, index(z, skip, activation), side, side_information)


def informed(data: Data, overlaps: tuple[float, float], generator: np.random.Generator) -> State:
    """A start that a posterior could be: what = q W + sqrt(q (1 - q)) noise, chat = 1 - q, where
    q is the layer's of `overlaps`, each in [0, 1)."""
    q = np.array(overlaps, float)[:, None]
    noise = generator.normal(size=data.teacher.shape)
    estimate = q * data.teacher + np.sqrt(q * (1 - q)) * noise
    return State(estimate, np.eye(2) * (1 - q), np.zeros((len(data.x), 2, 2)))


def iterate(
    data: Data,
    state: State,
    skip: float,
    regulariser: float = 0.0,
    damping: float = 1.0,
    threads: int = 1,
    activation: str = "softmax",
) -> State:
    """One iteration; damping: the weight of the new what and chat, in (0, 1]. Raises
    `np.linalg.LinAlgError` where (1 + s) I + A is not positive definite."""
    size = data.teacher.shape[1]
    estimate, covariance = state.estimate, state.covariance
    omega = _indices(estimate, data.tokens) - np.einsum("kl,nlt->nkt", covariance, state.g)
    variance = covariance + regulariser * np.eye(2)
    found = posterior(data.x, omega, variance, skip, activation, threads=threads)
    g = denoiser(found, variance)
    A = -np.einsum("nktlt->kl", jacobian(found, variance)) / size
    s = data.strength
    precision = (1 + s) * np.eye(2) + (A + A.T) / 2
    np.linalg.cholesky(precision)
    by_token = g.transpose(1, 0, 2).reshape(2, -1)
    b = by_token @ data.tokens.reshape(-1, size) / math.sqrt(size) + A @ estimate
    b += math.sqrt(s) * data.side
    new = np.linalg.inv(precision)
    estimate = damping * new @ b + (1 - damping) * estimate
    return State(estimate, damping * new + (1 - damping) * covariance, g)


def _indices(weights: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """weights (2, D) on tokens (N, 2, D): (N, 2, 2), layer and token."""
    size = weights.shape[1]
    found = tokens.reshape(-1, size) @ weights.T / math.sqrt(size)
    return found.reshape(-1, 2, 2).transpose(0, 2, 1)


def overlaps(teacher: np.ndarray, estimate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M_ll = |what_l . w_l| / D (a layer's sign is not in the data) and Q_ll, each (2,)."""
    size = teacher.shape[1]
    return np.abs((teacher * estimate).sum(axis=1)) / size, (estimate**2).sum(axis=1) / size


def plug_in_error(
    teacher: np.ndarray, estimate: np.ndarray, skip: float, normals, activation: str = "softmax"
) -> float:
    """E |g(Z) - g(omega)|_F^2 of a new sample, omega = what X / sqrt D; normals (n, 4, 2).

    Given teacher and estimate, Z and omega are Gaussian with the covariance of their four rows.
    """
    rows = np.concatenate([teacher, estimate])
    eigenvalues, U = np.linalg.eigh(rows @ rows.T / rows.shape[1])
    root = U * np.sqrt(np.maximum(eigenvalues, 0))  # root root' is the covariance
    z = np.einsum("kl,nlt->nkt", root, normals)
    given, found = (
        outputs(index(part, skip, activation), activation) for part in np.split(z, 2, axis=1)
    )
    return float(((given - found) ** 2).sum() / len(z))


# --- At D -> infinity ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Overlaps:
    """M, Q and chat of each layer, each (2,)."""

    m: np.ndarray
    q: np.ndarray
    c: np.ndarray


def predict(
    state: Overlaps,
    alpha: float,
    skip: float,
    normals: np.ndarray,
    regulariser: float = 0.0,
    noise: float = 0.0,
    side_information: float = 0.0,
    threads: int = 1,
    activation: str = "softmax",
) -> Overlaps:
    """The state that one iteration without damping makes of `state` at D -> infinity.

    normals (n, 4, 2): of omega, then of Z given omega. Layers do not mix, as g is even in each.
    With V = 1 + noise - M^2 / Q, the variance of Z given omega, and g* the denoiser that knows it
    (E[Z | y, omega] = M omega / Q + V g*), each a mean over samples and a sum over tokens,

        mhat = alpha E g g*,  qhat = alpha E g^2,  A = -alpha E dg / domega,
        chat = 1 / (1 + s + A),  M = chat (mhat + s),  Q = chat^2 ((mhat + s)^2 + qhat + s).

    By Stein's lemma for omega, E g omega = Q E dg / domega + M E g g*; the difference of the two
    sides, 0 in the mean, is the control variate of all three.
    """
    m, q, s = state.m, state.q, side_information
    slope = np.divide(m, q, out=np.zeros(2), where=q > 0)
    rest = 1 + noise - slope * m
    omega = np.sqrt(q)[:, None] * normals[:, :2]
    mean = slope[:, None] * omega
    x = index(mean + np.sqrt(rest)[:, None] * normals[:, 2:], skip, activation)
    variance, known = np.diag(state.c + regulariser), np.diag(rest)
    kind = skip, activation
    found = posterior(x, omega, variance, *kind, threads=threads)
    g = denoiser(found, variance)
    best = denoiser(posterior(x, mean, known, *kind, threads=threads), known)
    slopes = np.einsum("nktkt->nk", jacobian(found, variance))
    products = (g * best).sum(axis=2)
    zero = q * slopes + m * products - (g * omega).sum(axis=2)
    m_hat = alpha * _controlled(products, zero) + s
    q_hat = alpha * _controlled((g**2).sum(axis=2), zero) + s
    c = 1 / (1 + s - alpha * _controlled(slopes, zero))
    return Overlaps(c * m_hat, c**2 * (m_hat**2 + q_hat), c)


def _controlled(values: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """Means (2,) of values (n, 2), a layer each, less what `zero` (n, 2), of mean 0, explains."""
    return np.array([controlled(values[:, k], zero[:, k : k + 1]) for k in range(2)])


def sobol_normals(count: int, generator: np.random.Generator) -> np.ndarray:
    """Standard normals (count, 4, 2) from scrambled Sobol points; count a power of 2."""
    return sobol(count, 8, generator, 2.0**-40).reshape(count, 4, 2)


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of theory of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.Gamp`. Series alpha, x iteration (0: the start), seed = run:

    - `M11`, `M22`, `Q11`, `Q22`; `cosine 1`, `cosine 2`: M_ll / sqrt(Q_ll |w_l|^2 / D);
      `error plug-in`: E |g(Z) - g(omega)|_F^2;
    - `converged`: x 0, y 1 where `settled`, 0 where iterations ran out or a covariance lost its
      sign first;
    - `SE M11`, `SE M22`, `SE Q11`, `SE Q22`: the same iteration at D -> infinity, the mean over
      sets of points and its standard error; none with 0 points.

    A run ends where it has converged; its last row holds from there on.
    """
    streams = np.random.SeedSequence(entry["seed"]).spawn(len(entry["alphas"]))
    jobs = []
    for alpha, stream in zip(entry["alphas"], streams, strict=True):
        runs, points = stream.spawn(2)
        jobs += [partial(_run, entry, alpha, *job) for job in enumerate(runs.spawn(entry["runs"]))]
        if entry["points"]:
            sets = enumerate(points.spawn(SETS))
            jobs += [partial(_prediction, entry, alpha, *job) for job in sets]
    inner = max(1, entry["threads"] // len(jobs))
    total = len(jobs) * entry["iterations"]
    label = f"GAMP at D = {entry['dimension']}"
    # One thread a run: the order of a library's sums may hang on its number of threads.
    with (
        threadpool_limits(1, "blas"),
        ThreadPoolExecutor(entry["threads"]) as pool,
        Progress(total, "iterations", label) as progress,
    ):
        parts = list(pool.map(lambda job: job(inner, progress.update), jobs))
    return joined([_predictions_averaged(pd.concat(parts, ignore_index=True))], entry)


def settled(seen: np.ndarray, at_the_end: bool = False) -> bool:
    """True if no number `seen` (iterations, numbers) has moved by CONVERGED in WINDOW iterations;
    at the end of a run also if their means over the last LONG are as close to those before."""
    if len(seen) > WINDOW and np.ptp(seen[-WINDOW - 1 :], axis=0).max() < CONVERGED:
        return True
    if not at_the_end or len(seen) < 2 * LONG:
        return False
    apart = seen[-LONG:].mean(axis=0) - seen[-2 * LONG : -LONG].mean(axis=0)
    return bool(np.abs(apart).max() < CONVERGED)


def _run(
    entry: dict, alpha: float, run: int, stream: np.random.SeedSequence, threads: int, report
) -> pd.DataFrame:
    generator = np.random.default_rng(stream)
    skip, noise, side = entry["skip"], entry["noise"], entry["side_information"]
    activation = entry.get("activation", "softmax")
    data = draw(entry["dimension"], alpha, skip, generator, noise, side, activation)
    if entry["init"] == "informed":
        state = informed(data, entry["overlaps"], generator)
    else:
        # Of norm one, as in the paper: no posterior's.
        estimate = generator.normal(size=data.teacher.shape)
        state = State(estimate, np.eye(2), np.zeros((len(data.x), 2, 2)))
    given = skip, sobol_normals(TESTS, generator), activation
    damped = entry["regulariser"], entry["damping"], threads, activation
    found = [_figures(data.teacher, state.estimate, *given)]
    converged, seen = False, []
    while not converged and len(found) <= entry["iterations"]:
        try:
            state = iterate(data, state, skip, *damped)
        except np.linalg.LinAlgError:
            break
        found.append(_figures(data.teacher, state.estimate, *given))
        seen.append([*overlaps(data.teacher, state.estimate)[1], *np.diag(state.covariance)])
        report(1)
        converged = settled(np.array(seen), len(found) > entry["iterations"])
    report(entry["iterations"] - len(found) + 1)
    end = rows("converged", f"{alpha:g}", [0], converged, seed=run)
    return pd.concat([_rows(FIGURES, alpha, run, found), end])


def _figures(
    teacher: np.ndarray, estimate: np.ndarray, skip: float, normals: np.ndarray, activation: str
) -> np.ndarray:
    m, q = overlaps(teacher, estimate)
    # An estimate that is zero has no direction.
    cosines = np.divide(m, np.sqrt(q * (teacher**2).mean(axis=1)), out=np.zeros(2), where=q > 0)
    error = plug_in_error(teacher, estimate, skip, normals, activation)
    return np.append(np.transpose([cosines, m, q]), error)


def _prediction(
    entry: dict, alpha: float, number: int, stream: np.random.SeedSequence, threads: int, report
) -> pd.DataFrame:
    normals = sobol_normals(entry["points"], np.random.default_rng(stream))
    if entry["init"] == "informed":
        q = np.array(entry["overlaps"], float)
        state = Overlaps(q, q, 1 - q)
    else:
        state = Overlaps(np.zeros(2), np.ones(2), np.ones(2))
    given = entry["regulariser"], entry["noise"], entry["side_information"], threads
    activation = entry.get("activation", "softmax")
    found, moved = [np.transpose([state.m, state.q])], math.inf
    for _ in range(entry["iterations"]):
        if not moved < STILL:
            state = predict(state, alpha, entry["skip"], normals, *given, activation)
        found.append(np.transpose([state.m, state.q]))
        moved = np.abs(found[-1] - found[-2]).max()
        report(1)
    return _rows(PREDICTED, alpha, number, found)


def _rows(names: tuple[str, ...], alpha: float, seed: int, found: list[np.ndarray]) -> pd.DataFrame:
    """All `names` of an iteration, then those of the next; found: their values in each."""
    x = np.repeat(range(len(found)), len(names))
    return rows(np.tile(names, len(found)), f"{alpha:g}", x, np.ravel(found), seed=seed)


def _predictions_averaged(frame: pd.DataFrame) -> pd.DataFrame:
    """One row of all sets of points: their mean and its standard error."""
    predicted = frame["quantity"].str.startswith("SE ")
    if not predicted.any():
        return frame
    sets = frame[predicted].groupby(["quantity", "series", "x"], sort=False)["y"]
    means = sets.agg(y="mean", y_err="std").reset_index().assign(seed=0)
    means["y_err"] /= math.sqrt(SETS)
    return pd.concat([frame[~predicted], means], ignore_index=True)
