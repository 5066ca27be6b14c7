"""Gradient flow of two layers of factored attention on real tokens
(docs/science/many-body.md, section 5).

A token x_0 is predicted from L others, x_1..x_L, all of mean zero; times are in units of the
learning rate, and a, B have the units that make a.x and a (B x)^2 those of x_0:

    y_0 = a.phi,   phi_j = x_j + lambda_j^2,   lambda = B x,   r = x_0 - y_0
    loss = 1/2 E r^2                                                                          (8)
    da/dt = E[r phi],   dB/dt = 2 diag(a) B K,   K = E[r x x^T]                               (9)

a (L,) is the second layer's row of the predicted token and B (L, L) the first layer's matrix.
Weight decay adds decay/2 (|a|^2 + |B|^2) to the loss. The flow needs moments of the data up to
order four (`Moments`): those of Gaussian data are exact, as are those of a skewed x_0, a polynomial
of Gaussians, so that no sampling noise enters.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from manybody.io.tables import joined, rows

# At these tolerances the flow is within 1e-12 of (13). DOP853 is off by 3e-10 between its steps.
METHOD, RELATIVE, ABSOLUTE = "LSODA", 1e-12, 1e-14

POINTS = 240  # intervals of time at which flows are recorded
NOISE = 0.3  # sd of what no function of the other tokens predicts
SMALL = 1e-5  # sd of the entries of B(0) where the linear flow (14) is followed
LINEAR = 1e-3  # |B| up to which the flow is compared with it
FADED = 5.0  # lifetimes of a mode that returns to 0, over which its rate is measured
CHUNK = 10_000  # samples whose products are held at once


# --- Data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moments:
    """Moments of the data that the flow depends on: of x_0 and of the tokens x (indices 1..L).

    variance: E x_0^2. correlation h: (L,), E[x_0 x_l]. covariance C: (L, L), E[x_l x_m]. target:
    (L, L), E[x_0 x_l x_m]. third: (L, L, L) and fourth: (L, L, L, L), of the tokens alone; None for
    Gaussian ones, whose third moments vanish and whose fourth follow from C.
    """

    variance: float
    correlation: np.ndarray
    covariance: np.ndarray
    target: np.ndarray
    third: np.ndarray | None = None
    fourth: np.ndarray | None = None

    @property
    def length(self) -> int:
        return len(self.correlation)

    def features(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E[x_0 phi] (L,) and E[phi phi^T] (L, L); for Gaussian data h and C + g g^T + 2 G o G.

        G = B C B^T and g = diag G: the terms of (10) and (12).
        """
        with_target = self.correlation + np.sum((B @ self.target) * B, axis=1)
        if self.fourth is None:
            G = B @ self.covariance @ B.T
            g = np.diag(G)
            return with_target, self.covariance + np.outer(g, g) + 2 * G * G
        outer = (B[:, :, None] * B[:, None, :]).reshape(self.length, -1)
        mixed = self.third.reshape(self.length, -1) @ outer.T  # E[x_j lambda_k^2]
        squares = outer @ self.fourth.reshape(outer.shape[1], -1) @ outer.T
        return with_target, self.covariance + mixed + mixed.T + squares

    def residual(self, a: np.ndarray, B: np.ndarray) -> np.ndarray:
        """K = E[r x x^T] (L, L), symmetric; at B = 0 it is T of (14).

        For Gaussian data K = -(a.g) C - 2 (B C)^T diag(a) B C, which makes (9) equation (11).
        """
        if self.fourth is None:
            BC = B @ self.covariance
            g = np.sum(BC * B, axis=1)
            return self.target - (a @ g) * self.covariance - 2 * (BC.T * a) @ BC
        K = self.target - np.tensordot(a, self.third, 1)
        return K - np.tensordot((B.T * a) @ B, self.fourth, 2)


def gaussian(joint: np.ndarray, quadratic: np.ndarray | None = None) -> Moments:
    """Exact moments of Gaussian tokens, and of an x_0 that is Gaussian or skewed by a square.

    joint: (L+1, L+1), covariance of (x_0, x_1..x_L) before x_0 gains x.Q x - E[x.Q x]. quadratic:
    Q, (L, L), symmetric; the example x_0 += s (x_1 x_2 - E x_1 x_2) has Q_12 = Q_21 = s/2. By
    Isserlis' theorem E[x_0 x_l x_m] = 2 (C Q C)_lm, E x_0^2 gains 2 tr(C Q C Q), h nothing.
    """
    C = joint[1:, 1:]
    Q = np.zeros_like(C) if quadratic is None else quadratic
    gained = 2 * np.trace(C @ Q @ C @ Q)
    return Moments(float(joint[0, 0] + gained), joint[0, 1:], C, 2 * C @ Q @ C)


def sampled(tokens: np.ndarray) -> Moments:
    """Moments of samples (N, L+1) of (x_0, x_1..x_L) of any distribution, each token's mean taken
    off first; each carries the sampling error sd / sqrt(N) of its products."""
    tokens = tokens - tokens.mean(axis=0)
    first, x = tokens[:, 0], tokens[:, 1:]
    count, length = x.shape
    target, third, fourth = 0.0, 0.0, 0.0
    for begin in range(0, count, CHUNK):
        some = slice(begin, begin + CHUNK)
        pairs = (x[some, :, None] * x[some, None, :]).reshape(-1, length**2)
        target += first[some] @ pairs
        third += x[some].T @ pairs
        fourth += pairs.T @ pairs
    shape = (length,) * 4
    return Moments(
        variance=float(first @ first / count),
        correlation=first @ x / count,
        covariance=x.T @ x / count,
        target=target.reshape(shape[:2]) / count,
        third=third.reshape(shape[:3]) / count,
        fourth=fourth.reshape(shape) / count,
    )


# --- Loss, flow and its closed form --------------------------------------------------------------


def loss(data: Moments, a: np.ndarray, B: np.ndarray, decay: float = 0.0) -> float:
    """1/2 E (x_0 - y_0)^2 + decay/2 (|a|^2 + |B|^2); (12) for Gaussian data without decay."""
    with_target, among = data.features(B)
    misfit = data.variance - 2 * with_target @ a + a @ among @ a
    return 0.5 * (misfit + decay * (a @ a + np.sum(B * B)))


def velocity(
    data: Moments, a: np.ndarray, B: np.ndarray, decay: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """da/dt (L,) and dB/dt (L, L): equation (9), with the moments of (10) and (11) if Gaussian."""
    with_target, among = data.features(B)
    da = with_target - among @ a - decay * a
    return da, 2 * a[:, None] * (B @ data.residual(a, B)) - decay * B


def linear_optimum(data: Moments, decay: float = 0.0) -> np.ndarray:
    """a* = (C + decay)^-1 h, (L,), where a ends at B = 0: without decay the best linear y_0."""
    return np.linalg.solve(data.covariance + decay * np.eye(data.length), data.correlation)


def closed_form(
    data: Moments, initial: np.ndarray, times: np.ndarray, decay: float = 0.0
) -> np.ndarray:
    """a(t) at B = 0, (times, L), from a(0) = `initial` (L,): (13), with C + decay for C."""
    rates, U = np.linalg.eigh(data.covariance)
    end = linear_optimum(data, decay)
    amplitudes = np.exp(-np.outer(times, rates + decay)) * ((initial - end) @ U)
    return end + amplitudes @ U.T


def modes(data: Moments, a: np.ndarray) -> np.ndarray:
    """a (..., L) on the eigenvectors of C, slowest mode first; signs make each a*_j positive."""
    _, U = np.linalg.eigh(data.covariance)
    return a @ (U * np.sign(linear_optimum(data) @ U))


@dataclass(frozen=True)
class Path:
    """A solution: times (T,), a (T, L), B (T, L, L)."""

    times: np.ndarray
    a: np.ndarray
    B: np.ndarray

    @property
    def norms(self) -> np.ndarray:
        """|B| (T,), Frobenius."""
        return np.linalg.norm(self.B, axis=(1, 2))

    def losses(self, data: Moments, decay: float = 0.0) -> np.ndarray:
        """The loss (T,), which never rises under the flow with the same decay."""
        return np.array([loss(data, a, B, decay) for a, B in zip(self.a, self.B, strict=True)])


def flow(
    data: Moments, a: np.ndarray, B: np.ndarray, times: np.ndarray, decay: float = 0.0
) -> Path:
    """Solves (9) from a (L,) and B (L, L) at times[0], recorded at rising `times` (T,). Raises
    `RuntimeError` if the integrator gives up."""
    length = data.length

    def move(_, state):
        da, dB = velocity(data, state[:length], state[length:].reshape(length, length), decay)
        return np.concatenate([da, dB.ravel()])

    # The absolute tolerance of B is relative to the size of B(0), which may be very small.
    scale = min(1.0, np.abs(B).max()) or 1.0
    solved = solve_ivp(
        move,
        (times[0], times[-1]),
        np.concatenate([a, B.ravel()]),
        method=METHOD,
        t_eval=times,
        rtol=RELATIVE,
        atol=ABSOLUTE * np.repeat([1.0, scale], [length, length**2]),
    )
    if not solved.success:
        raise RuntimeError(f"gradient flow stopped at t = {solved.t[-1]:.4g}: {solved.message}")
    return Path(times, solved.y[:length].T, solved.y[length:].T.reshape(-1, length, length))


# --- Growth of B around the linear optimum -------------------------------------------------------


def growth_rates(data: Moments, decay: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Rates (L, L) at which B leaves 0, if positive, or returns to it at a*; directions U (L, L).

    rates[k, m] = 2 a*_k tau_m - decay is that of B's row k along column m of U, an eigenvector of
    T = E[r x x^T] with eigenvalue tau_m, ascending: equation (14).
    """
    a = linear_optimum(data, decay)
    tau, U = np.linalg.eigh(data.residual(a, np.zeros_like(data.covariance)))
    return 2 * np.outer(a, tau) - decay, U


def linear_growth(
    data: Moments, B: np.ndarray, times: np.ndarray, decay: float = 0.0
) -> np.ndarray:
    """|B|(t) (T,) by the linear law (14), from B (L, L) at t = 0."""
    rates, U = growth_rates(data, decay)
    return np.linalg.norm((B @ U) * np.exp(times[:, None, None] * rates), axis=(1, 2))


def symmetric_spectrum(data: Moments) -> np.ndarray:
    """Eigenvalues (L,) of sym(G), G_lk = a*_k T_lk, ascending: the paper's test of stability, which
    perturbs the diagonal of B and reads the sign of G. What decides are the rates (14)."""
    a = linear_optimum(data)
    G = data.residual(a, np.zeros_like(data.covariance)) * a
    return np.linalg.eigvalsh((G + G.T) / 2)


# --- The numbers of the figure -------------------------------------------------------------------


def example(length: int, generator: np.random.Generator) -> np.ndarray:
    """A covariance (L+1, L+1) of (x_0, x_1..x_L): unit variances of the tokens, x_0 = a*.x + noise,
    every a*_k positive, so that growth hangs on the signs of T alone."""
    W = generator.normal(size=(length, 2 * length))
    C = W @ W.T
    scale = np.sqrt(np.diag(C))
    C = C / np.outer(scale, scale)
    a = generator.uniform(0.2, 1.0, size=length) / np.sqrt(length)
    h = C @ a
    return np.block([[a @ h + NOISE**2, h], [h[:, None], C]])


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of theory of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.GradientFlow`. Quantities, by series:

    - `mode`, `mode (13)`: mode; x the time, y a on an eigenvector of C, from a = B = 0;
    - `mode with decay`, `mode with decay (13)`: the same with weight decay;
    - `deviation`: x the scale of B(0), y the largest distance of a mode from (13);
    - `norm`, `norm with decay`: scale; x the time, y |B|, Gaussian data;
    - `growth`, `linear law`, `loss`: case; x the time, y |B| of the flow and of (14), and the
      loss (with its weight decay), from a* and small B;
    - `fastest mode`: case; x the time while (14) holds, y the flow's part in that mode;
    - `best linear`: case; y the loss of a* at B = 0;
    - `rate`, `symmetric`: case; x the rank, y the rates (14) and the eigenvalues of sym(G).
    """
    length, seed, decay = entry["length"], entry["seed"], entry["decay"]
    streams = np.random.SeedSequence(seed).spawn(3)
    covariance, start, samples = (np.random.default_rng(stream) for stream in streams)
    joint = example(length, covariance)
    data = gaussian(joint)
    direction = start.normal(size=(length, length))
    times = np.linspace(0.0, entry["time"], POINTS + 1)
    drawn = samples.multivariate_normal(
        np.zeros(length + 1), joint, size=entry["samples"], method="cholesky"
    )
    # x_0 gains s (x.Q x - E x.Q x).
    product = np.zeros((length, length))
    product[0, 1] = product[1, 0] = 0.5 * entry["skewness"]
    squares = entry["skewness"] * (np.eye(length) / length)
    cases = {
        "product": gaussian(joint, product),
        "product, decay": gaussian(joint, product),
        "squares": gaussian(joint, squares),
        "minus squares": gaussian(joint, -squares),
        "Gaussian": data,
        "Gaussian, sampled": sampled(drawn),
    }
    decays = dict.fromkeys(cases, 0.0) | {"product, decay": decay}
    parts = _gaussian_flows(data, direction, times, entry["scales"], decay)
    for name, moments in cases.items():
        parts += _case(name, moments, SMALL * direction, times, decays[name])
    frame, made = joined(parts, entry)
    return frame.assign(seed=seed), made | {
        "covariance": joint[1:, 1:].tolist(),
        "correlation": joint[0, 1:].tolist(),
        "variance": float(joint[0, 0]),
        "decays": decays,
    }


def _gaussian_flows(
    data: Moments, direction: np.ndarray, times: np.ndarray, scales: list[float], decay: float
) -> list[pd.DataFrame]:
    start = np.zeros(data.length)
    parts = []
    for name, rate in (("mode", 0.0), ("mode with decay", decay)):
        exact = modes(data, closed_form(data, start, times, rate)).T
        found = modes(data, flow(data, start, 0 * direction, times, rate).a).T
        for mode, (a, expected) in enumerate(zip(found, exact, strict=True), 1):
            parts.append(rows(name, str(mode), times, a))
            parts.append(rows(f"{name} (13)", str(mode), times, expected))
    exact = closed_form(data, start, times)
    for scale in sorted(scales):
        path = flow(data, start, scale * direction, times)
        decaying = flow(data, start, scale * direction, times, decay)
        apart = np.abs(modes(data, path.a - exact)).max()
        parts.append(rows("deviation", "", [scale], apart))
        parts.append(rows("norm", f"{scale:g}", times, path.norms))
        parts.append(rows("norm with decay", f"{scale:g}", times, decaying.norms))
    return parts


def _case(
    name: str, data: Moments, B: np.ndarray, times: np.ndarray, decay: float
) -> list[pd.DataFrame]:
    """Growth of B (L, L) from the linear optimum, beside the linear law (14)."""
    a = linear_optimum(data, decay)
    path = flow(data, a, B, times, decay)
    rates, U = growth_rates(data, decay)
    row, mode = np.unravel_index(rates.argmax(), rates.shape)
    # The same flow once more, only while |B| is small enough for (14) and large enough to measure.
    top = rates[row, mode]
    room = np.log(LINEAR / np.linalg.norm(B)) if top > 0 else FADED
    early = np.linspace(0.0, times[-1] if top == 0 else min(times[-1], room / abs(top)), 11)
    linear = np.abs(flow(data, a, B, early, decay).B[:, row] @ U[:, mode])
    return [
        rows("growth", name, times, path.norms),
        rows("linear law", name, times, linear_growth(data, B, times, decay)),
        rows("fastest mode", name, early, linear),
        rows("loss", name, times, path.losses(data, decay)),
        rows("best linear", name, [0], [loss(data, a, 0 * B, decay)]),
        rows("rate", name, range(1, rates.size + 1), np.sort(rates.ravel())),
        rows("symmetric", name, range(1, data.length + 1), symmetric_spectrum(data)),
    ]
