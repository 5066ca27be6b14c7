"""State evolution's fixed points from G without iterating (docs/science/multi-index.md, section 4).

The layer of the larger eigenvalue at Q = 0 is learned first: layer 2, or, of linear attention with
c up to about 1, layer 1. Call it f, the other s. G does not know alpha = N / D: at Q_ss = 0 each
Q_ff is a fixed point at alpha = Q_ff / (V_ff G_ff), V = 1 - Q, and at each Q_ss > 0 Q_ff is such
that both layers ask for one alpha. The curve of Q_ff alone begins at alpha_f = 1 / lambda_f(0),
that of both at alpha_s, where alpha lambda_s(Q_ff) = 1 on the first. Growths lambda_k = E sum_ts
(G_ts)_kk^2 have G_ts = (E[z_kt z_ks | y] / V - delta_ts) / V; none is above T (T + 1) = 6.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import expit, logit

from manybody.theory.multi_index import channel
from manybody.theory.multi_index.samples import Setting, averages, growth_values

# Places of the curves. The eigenvalue at 0 and G beside it are two estimates: the first places are
# close, so that what lies between is read off the second, as an iteration does.
SINGLE_LAYER = (
    0.002, 0.008, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7,
    0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99,
)  # Q of the first layer  # fmt: skip
BOTH = (
    0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9,
    0.93, 0.96, 0.98, 0.99, 0.999,
)  # Q of the second one  # fmt: skip
LEAST = 1e-3  # 1 - Q where the curve of the first layer alone is not followed further
GUESSES = np.concatenate([[0.01, 0.05, 0.15, 0.3, 0.5], 1 - np.geomspace(0.3, 0.003, 14)])
SMALLEST = 1e-4  # Q of the first layer that stands for 0
NEAR_ZERO = 0.1  # Q of the first layer below which the onset of the other is bracketed
FADED = 0.5  # overlaps up to which the noise at Q = 0 says something
STEP = 0.2  # of the sum over x, in asinh of x
SOLVED = 2e-3  # of log alpha, where the last step of a root is linear
ROOT_STEPS = 20
FLATTEST, STEEPEST = 0.02, 3.0  # slopes of a root that are believed
SLOPE = 0.65  # of the two roots below in logit Q, for their first step


@dataclass(frozen=True)
class Weak:
    """The eigenvalues lambda (2,) at Q = 0."""

    eigenvalue: np.ndarray

    @property
    def first(self) -> int:
        """The layer that is learned first, 0 or 1."""
        return int(np.argmax(self.eigenvalue))

    @property
    def alpha(self) -> float:
        return float(1 / self.eigenvalue.max())


def weak_recovery(setting: Setting) -> Weak:
    """Growths at Q = 0 by the trapezoid rule over x, with no noise: a quarter of its plane (a sign,
    and the tokens' exchange), on a lattice in asinh of its sum and difference, whose density is
    narrow as c where the tokens agree."""
    c, variance = setting.skip, 1 + setting.regulariser
    if setting.activation == "softmax":
        scales, reach = (1 + c, min(1, c)), (7 * (2 + c), 7 * (1 + c))
    else:  # z z^T is not bounded
        scales, reach = (1 + c, 1 + c), (280.0, 280.0)
    reach = np.sqrt(variance) * np.array(reach)
    places, weights = [], []
    for scale, end in zip(scales, reach, strict=True):
        t = np.arange(0, math.asinh(end / scale) + STEP, STEP)
        places.append(scale * np.sinh(t))
        weights.append(2 * STEP * scale * np.cosh(t) * np.where(t == 0, 0.5, 1))
    x = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, 2) @ channel.ROTATION
    omega, kind = np.zeros((len(x), 2, 2)), setting.activation
    found = channel.posterior(x, omega, variance * np.eye(2), c, kind, threads=setting.threads)
    density = np.exp(found.log_z) * np.outer(*weights).ravel()
    squares = np.array([growth_values(found, k, variance) ** 2 for k in range(2)])
    growths = (squares.sum(axis=(2, 3)) * density).sum(axis=1)
    return Weak(growths / density.sum() / variance**2)


def onset_guess(setting: Setting, normal: np.ndarray, first: int = 1) -> float:
    """A rough overlap of layer `first` at which the other one starts: the first of GUESSES where
    its alpha lambda > 1."""
    for q in GUESSES:
        here = averages(_overlaps(q, 0, first), setting, normal)
        if q / (1 - q) / here.gain[first, first] * here.eigenvalue[1 - first] > 1:
            break
    return float(q)


def _overlaps(own: float, other: float, first: int) -> np.ndarray:
    """Q (2,) of `own` for layer `first` and of `other`."""
    return np.array([other, own] if first else [own, other])


@dataclass(frozen=True)
class Curve:
    """Fixed points of one scrambling in their order: overlaps (m, 2) and alpha (m,)."""

    overlaps: np.ndarray
    alphas: np.ndarray


def single_layer(
    places: Sequence[float],
    setting: Setting,
    normal: np.ndarray,
    threshold: float,
    top: float,
    first: int = 1,
) -> Curve:
    """Layer `first` with the other one at 0. threshold: alpha at Q = 0. Beyond `places` 1 - Q is
    halved until alpha is above `top` or 1 - Q below LEAST."""
    found = [(np.zeros(2), threshold)]
    waiting = list(places)
    while waiting:
        q = waiting.pop(0)
        Q = _overlaps(q, 0, first)
        found.append((Q, q / (1 - q) / averages(Q, setting, normal).gain[first, first]))
        if not waiting and found[-1][1] < top and (1 - q) / 2 > LEAST:
            waiting = [(1 + q) / 2]
    return Curve(*map(np.array, zip(*found, strict=True)))


def solve(function: Callable, guess: float, slope: float = SLOPE) -> tuple[float, np.ndarray]:
    """Root w of the first of the numbers (k,) of `function(w)`, and all of them there, linear
    between the last two places, which are close."""
    place, values, rises = guess, np.array(function(guess)), None
    for _ in range(ROOT_STEPS):
        step = float(np.clip(-values[0] / slope, -1.5, 1.5))
        if rises is not None and abs(values[0]) < SOLVED:
            return place + step, values + step * rises
        before, last = place, values
        place += math.copysign(max(abs(step), 1e-3), step)
        values = np.array(function(place))
        rises = (values - last) / (place - before)
        slope = rises[0] if FLATTEST < rises[0] < STEEPEST else slope
    raise RuntimeError(
        f"no root found from {guess:.4g}: at {place:.4g} the difference of two log alphas is "
        f"still {values[0]:.2g}; take more points"
    )


@dataclass(frozen=True)
class Noise:
    """Errors of samples at Q = 0, where eigenvalues are known (`weak_recovery`): log alpha of
    the layer that is learned first, and log lambda of the other, exact less sampled.

    They are added close to 0, and less and less up to overlaps of FADED: thresholds of two layers
    that start close to each other differ by less than the noise of either.
    """

    alpha: float
    eigenvalue: float

    def weight(self, *overlaps: float) -> float:
        return max(0.0, 1 - sum(overlaps) / FADED)


def noise_at_zero(setting: Setting, normal: np.ndarray, weak: Weak) -> Noise:
    """The noise at Q = 0 of the samples `normal`."""
    first = weak.first
    here = averages(_overlaps(SMALLEST, 0, first), setting, normal)
    alpha = logit(SMALLEST) - math.log(here.gain[first, first])
    eigenvalue = math.log(here.eigenvalue[1 - first])
    return Noise(math.log(weak.alpha) - alpha, math.log(weak.eigenvalue[1 - first]) - eigenvalue)


def onset(setting: Setting, normal: np.ndarray, guess: float, weak: Weak) -> tuple[float, float]:
    """The overlap of the first layer, near `guess`, and alpha where the other one starts on the
    curve of the first alone: alpha lambda = 1 (self-consistent)."""
    first = weak.first
    noise = noise_at_zero(setting, normal, weak) if guess < FADED else Noise(0.0, 0.0)

    def crossing(w: float) -> list[float]:
        q = float(expit(w))
        here = averages(_overlaps(q, 0, first), setting, normal)
        share = noise.weight(q)
        alpha = w - math.log(here.gain[first, first]) + share * noise.alpha
        eigenvalue = math.log(here.eigenvalue[1 - first]) + share * noise.eigenvalue
        return [alpha + eigenvalue, alpha]

    if guess < NEAR_ZERO:  # F is flat in logit Q: a bracket, whose lower end is below 0 exactly
        w = brentq(lambda w: crossing(w)[0], logit(SMALLEST), logit(FADED), xtol=1e-3)
        _, alpha = crossing(w)
    else:
        w, (_, alpha) = solve(crossing, logit(guess))
    return float(expit(w)), math.exp(alpha)


def both(
    places: Sequence[float],
    setting: Setting,
    normal: np.ndarray,
    onset_point: tuple[float, float],
    top: float,
    weak: Weak,
) -> Curve:
    """Both layers, by the overlap of the one learned second, from the `onset_point` of `onset` on.
    With a regulariser 1 - Q is divided by 1.5 beyond `places`, until alpha is above `top`."""
    own, alpha = onset_point
    first, second = weak.first, 1 - weak.first
    noise = noise_at_zero(setting, normal, weak) if own < FADED else Noise(0.0, 0.0)
    found = [(_overlaps(own, 0, first), alpha)]
    waiting = list(places)
    place, w, slope = 0.0, logit(own), 0.0
    while waiting:
        q = waiting.pop(0)

        def ask(w: float, q=q) -> list[float]:
            p = float(expit(w))
            here = averages(_overlaps(p, q, first), setting, normal)
            share = noise.weight(p, q)
            alpha = w - math.log(here.gain[first, first]) + share * noise.alpha
            other = logit(q) - math.log(here.gain[second, second]) - share * noise.eigenvalue
            return [alpha - other, alpha]

        before, step = w, -math.log1p(-q) - place
        w, (_, alpha) = solve(ask, w + slope * step)
        found.append((_overlaps(expit(w), q, first), math.exp(alpha)))
        slope, place = (w - before) / step, -math.log1p(-q)
        if not waiting and setting.regulariser > 0 and math.exp(alpha) < top and 1 - q > 1e-3:
            waiting = [1 - (1 - q) / 1.5]
    return Curve(*map(np.array, zip(*found, strict=True)))


def read(curve: Curve, layer: int, alphas: Sequence[float]) -> Curve:
    """The curve, along which `layer` (0, 1) rises, at `alphas`; not a number beyond. Where alpha
    falls along it, it is read where state evolution from below stops."""
    t = -np.log1p(-curve.overlaps)  # 0 at 0, and as the logit close to 1
    place = t[:, layer]
    fine = np.unique(np.linspace(place[:-1], place[1:], 65))
    reached = np.maximum.accumulate(PchipInterpolator(place, np.log(curve.alphas))(fine))
    keep = np.diff(reached, prepend=-np.inf) > 0
    at = np.interp(np.log(alphas), reached[keep], fine[keep], left=math.nan, right=math.nan)
    return Curve(-np.expm1(-PchipInterpolator(place, t)(at)), np.asarray(alphas))
