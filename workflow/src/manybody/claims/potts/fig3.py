"""What figure 3 says of its two tables: generalisation loss against the number of samples."""

import math

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr, stdtrit

from manybody.claims import verdicts
from manybody.claims.potts.curves import SMALL, Logistic, read, window
from manybody.claims.reading import Table, matrix, mean

EQUAL = 1e-10  # six equations against one unknown, relative
PEAK = (1.0, 0.02)  # alpha, without a ridge
SAME_PEAK = 0.02  # relative difference of place and height between closed form and equations
DECAY = (1.0, 0.02)
HEIGHT = (0.5, 0.02)  # exponent of the peak's height in 1 / ridge
SIZES = (-0.5, 0.1)  # exponent of the rms difference from the limit in L
FEWEST = 50  # realisations for a statement on finite sizes
# Spreads over realisations as measured at gamma from 2.5 to 10, ridges from 1e-4 to 0.3: that of
# the simulated loss at alpha <= SMALL times sqrt(L) over the loss, and that of the squared
# difference from the limit over its mean. What errors will be follows from them and the config.
LOSS_SPREAD = 0.9
SQUARE_SPREAD = 1.4
RIDGE = 1e-2  # up to which it must
LEFT_ZERO = 0.1  # share of the optimal loss at which the training loss counts as above 0
RESAMPLES = 1000  # of the realisations, for errors of places


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from the files of the figure's rule."""
    square, logistic = read(files)
    return verdicts.table([*square_claims(square), *logistic_claims(logistic)])


# --- Square loss ---------------------------------------------------------------------------------


def square_claims(square: Table) -> list[dict]:
    """Section 6 of the specification, left panel, and what section 3 says of it."""
    return [
        *_theory_claims(square),
        *_simulation_claims(square),
        *_size_claims(square),
    ]


def _theory_claims(square: Table) -> list[dict]:
    entry = square.entry
    one, six = (_of(square, "loss", name) for name in ("finite L", "six equations"))
    weak = [(float(name), square.get("weak peak", name)) for name in square.series("weak peak")]
    (strong_ridge, strong), (ridge, weakest) = weak
    slope, threshold = square.y("slope")[0], square.y("rising")[0]
    rises = entry["gamma"] > threshold
    return [
        verdicts.identity(
            f"fig. 3 left: six saddle-point equations = one-unknown form (largest relative "
            f"difference, {one.size} fixed points)",
            float((six / one - 1).abs().to_numpy().max()),
            0.0,
            EQUAL,
        ),
        *_peak_claims(square),
        verdicts.identity(
            f"fig. 3 left: L -> infinity, ridge -> 0 ({ridge:.2g}): alpha of the peak",
            float(weakest["x"].iloc[0]),
            *PEAK,
        ),
        verdicts.identity(
            f"fig. 3 left: L -> infinity, ridge -> 0: the peak's height grows like ridge^-1/2 "
            f"(ridge {strong_ridge:.2g} to {ridge:.2g})",
            math.log(weakest["y"].iloc[0] / strong["y"].iloc[0]) / math.log(strong_ridge / ridge),
            *HEIGHT,
        ),
        *(
            verdicts.identity(
                f"fig. 3 left: L -> infinity, ridge -> 0: exponent of the decay of eps - 1/gamma, "
                f"alpha {series}",
                square.y("exponent", series)[0],
                *DECAY,
            )
            for series in square.series("exponent")
        ),
        verdicts.row(
            f"fig. 3 left: L -> infinity: the loss {'rises' if rises else 'first falls'} from "
            f"alpha = 0, as gamma = {entry['gamma']:g} is {'above' if rises else 'not above'} "
            f"{threshold:.4f}",
            "exact",
            "yes" if (slope > 0) == rises else "no",
            slope,
            0.0,
            "> 0" if rises else "<= 0",
            0.0,
        ),
    ]


def _peak_claims(square: Table) -> list[dict]:
    """The maximum at the entry's own ridge, by two ways; no rows where neither way has one."""
    closed, equations = (square.get("peak", name).iloc[0] for name in ("closed form", "equations"))
    if math.isnan(closed["x"]) and math.isnan(equations["x"]):
        return []
    where = f"fig. 3 left: L -> infinity, ridge {square.entry['ridge']:g}:"
    return [
        verdicts.identity(
            f"{where} {words} of the peak, closed form over the equations at large L, less 1",
            float(closed[axis] / equations[axis] - 1),
            0.0,
            SAME_PEAK,
        )
        for axis, words in (("x", "alpha"), ("y", "height"))
    ]


def _simulation_claims(square: Table) -> list[dict]:
    simulated = _of(square, "loss", "simulation")
    start = square.get("start", "").set_index("seed")["y"]
    first = simulated.columns[0]
    other = _of(square, "loss", "independent teacher")
    means = simulated.mean()
    highest = min(range(len(means)), key=lambda place: abs(means.index[place] - 1))
    beside = [place for place in (highest - 1, highest + 1) if 0 <= place < len(means)]
    next_best = max(beside, key=lambda place: means.iloc[place])
    lengths, runs = f"L = {square.entry['length']}", len(simulated)
    rows = [
        _agree(
            f"fig. 3 left: simulated loss - theory of the same G, {lengths}",
            simulated - _of(square, "loss", "finite L"),
        ),
        _agree(
            f"fig. 3 left: simulated minimum of the objective - free energy, {lengths}",
            _of(square, "objective", "simulation") - _of(square, "objective", "free energy"),
        ),
        _agree(
            f"fig. 3 left: simulated training error - theory, {lengths}",
            _of(square, "residual", "simulation") - _of(square, "residual", "theory"),
        ),
        verdicts.gap(
            f"fig. 3 left: ridge {square.entry['ridge']:g}: the loss peaks at alpha = "
            f"{means.index[highest]:g}: above that at {means.index[next_best]:g}",
            *mean(simulated.iloc[:, highest] - simulated.iloc[:, next_best])[:2],
            runs=runs,
        ),
        verdicts.gap(
            f"fig. 3 left: no decay at first: loss at alpha = {first:g} above that at 0",
            *mean(simulated[first] - start)[:2],
            runs=runs,
        ),
    ]
    if _teachers_differ(square, first):
        rows.append(
            verdicts.gap(
                f"fig. 3 left: loss at alpha = {first:g} above that of a teacher independent of "
                f"the inputs",
                *mean(simulated[first] - other[first])[:2],
                kind="statistical",
                runs=runs,
            )
        )
    return rows


def _of(square: Table, quantity: str, series: str) -> pd.DataFrame:
    """Realisations x alphas."""
    return matrix(square.get(quantity, series))


def _teachers_differ(square: Table, alpha: float) -> bool:
    """At this alpha so many realisations of this size will tell the two teachers' losses apart."""
    entry = square.entry
    true, independent = (
        float(square.get("limit", name).set_index("x")["y"].loc[alpha])
        for name in ("conditional", "independent teacher")
    )
    runs = entry["realisations"]
    error = LOSS_SPREAD * true / math.sqrt(entry["length"] * runs)
    return alpha <= SMALL and true - independent > verdicts.margin(error, runs, verdicts.DEVIATIONS)


def _agree(claim: str, differences: pd.DataFrame) -> dict:
    """The mean difference is within 3 standard errors of 0 at every alpha (column).

    The row has the largest of them, in standard errors. Of several, one may pass 3 by chance: it
    is undecided up to where the largest of all comes as rarely as 3 standard errors do for one.
    """
    runs, count = differences.shape
    errors = differences.std(ddof=1) / math.sqrt(runs)
    largest = float((differences.mean() / errors).abs().max(skipna=False))
    chance = -math.expm1(count * math.log1p(-2 * stdtr(runs - 1, -verdicts.DEVIATIONS)))
    rare = -stdtrit(runs - 1, ndtr(-verdicts.DEVIATIONS) / count)
    below, surely_above = largest < verdicts.DEVIATIONS, largest > rare
    claim += f" (largest of {count} in standard errors over {runs} realisations"
    claim += f"; by chance above 3 in {chance:.2g} of all cases)" if count > 1 else ")"
    holds = "yes" if below else "no" if surely_above else "undecided"
    return verdicts.row(claim, "statistical", holds, largest, 1.0, 0, verdicts.DEVIATIONS)


def _size_claims(square: Table) -> list[dict]:
    """Finite L against the limit, relative differences."""
    sizes = sorted(square.series("size"), key=int)
    found = {}
    for size in sizes:
        limit = square.get("size limit", size).set_index("x")["y"]
        found[int(size)] = _of(square, "size", size) / limit - 1
    runs, largest = len(found[int(sizes[0])]), int(sizes[-1])
    if runs < FEWEST:
        return []
    limit = "from L -> infinity at M / (L - 1)"
    text = f"fig. 3 left: mean difference of L = {largest} {limit}"
    rows = [
        _agree(f"{text}, all alphas together", found[largest].mean(axis=1).to_frame()),
        _agree(f"{text}, at each alpha", found[largest]),
    ]
    logs = np.log([int(size) for size in sizes])
    error = SQUARE_SPREAD / 2 / math.sqrt(runs * ((logs - logs.mean()) ** 2).sum())
    if verdicts.margin(error, runs) < SIZES[1]:
        claim = (
            f"fig. 3 left: rms difference of finite L {limit} falls like L^slope, L = "
            f"{', '.join(sizes)}, {runs} realisations"
        )
        rows.insert(0, verdicts.within(claim, *_fall(found), *SIZES, "statistical", runs))
    return rows


def _fall(differences: dict[int, pd.DataFrame]) -> tuple[float, float]:
    """Exponent of the rms over realisations and alphas in L, and its standard error."""
    logs, errors = [], []
    for found in differences.values():
        squares = (found**2).mean(axis=1)
        value, error, _ = mean(squares)
        logs.append(0.5 * math.log(value))
        errors.append(0.5 * error / value)
    x, weights = np.log(list(differences)), np.array(errors) ** -2.0
    centred = x - weights @ x / weights.sum()
    spread = weights @ centred**2
    return float((weights * centred) @ logs / spread), float(spread**-0.5)


# --- Logistic loss -------------------------------------------------------------------------------


def logistic_claims(logistic: Logistic) -> list[dict]:
    """Where the test loss peaks and the training loss leaves 0, and how the height falls."""
    low, high = window(logistic)
    middle, half = (low + high) / 2, (high - low) / 2
    weak = [fits for fits in logistic.fits if fits.ridge <= RIDGE]
    between = f"at M between {low:g} and {high:g}"
    if not weak:
        return []
    rows = []
    for fits in weak:
        name = f"ridge {fits.ridge:g}"
        claim = f"fig. 3 right: interior maximum of the test loss {between}, {name}"
        rows.append(_placed(claim, fits.test, _peak, middle, half))
        at = fits.test.columns[fits.test.mean().argmax()]
        for text, end in (("rises from", 0), ("falls to", -1)):
            edge = fits.test.columns[end]
            claim = f"fig. 3 right: {name}: the test loss {text} M = {edge:g}: peak minus that"
            apart = fits.test[at] - fits.test[edge]
            rows.append(verdicts.gap(claim, *mean(apart)[:2], runs=len(apart)))
    lowest = weak[0]
    threshold = LEFT_ZERO * logistic.optimum
    claim = (
        f"fig. 3 right: the training loss leaves 0 (passes {LEFT_ZERO:.0%} of the optimum) "
        f"{between}, ridge {lowest.ridge:g}"
    )
    rows.append(
        _placed(claim, lowest.train, lambda *curve: _crossing(*curve, threshold), middle, half)
    )
    for fits, stronger in zip(logistic.fits[:-1], logistic.fits[1:], strict=True):
        claim = (
            f"fig. 3 right: the peak's height falls from ridge {fits.ridge:g} to {stronger.ridge:g}"
        )
        heights = [
            found.test[found.test.columns[found.test.mean().argmax()]] for found in (fits, stronger)
        ]
        rows.append(verdicts.gap(claim, *mean(heights[0] - heights[1])[:2], runs=len(heights[0])))
    return rows


def _placed(claim: str, losses: pd.DataFrame, place, middle: float, half: float) -> dict:
    """A place on the curve of mean losses is within `half` of `middle`; "no" if there is none."""
    found, error = _resampled(losses, place)
    if math.isnan(found):
        return verdicts.row(claim, "paper", "no", found, error, middle, half)
    return verdicts.within(claim, found, error, middle, half, runs=len(losses))


def _peak(sizes: np.ndarray, mean: np.ndarray) -> float:
    """M of the highest mean loss; NaN at either end of the grid.

    That of the parabola, in logarithms, through the highest point and its neighbours.
    """
    place = int(mean.argmax())
    if not 0 < place < len(mean) - 1:
        return math.nan
    near = slice(place - 1, place + 2)
    centre = math.log(sizes[place])
    bend, slope, _ = np.polyfit(np.log(sizes[near]) - centre, np.log(mean[near]), 2)
    return math.exp(centre - slope / (2 * bend))


def _crossing(sizes: np.ndarray, mean: np.ndarray, threshold: float) -> float:
    """M from which the mean loss stays above a threshold, between points linear in log M."""
    below = np.flatnonzero(mean <= threshold)
    if not len(below) or below[-1] == len(mean) - 1:
        return math.nan
    pair = slice(below[-1], below[-1] + 2)
    return math.exp(np.interp(threshold, mean[pair], np.log(sizes[pair])))


def _resampled(losses: pd.DataFrame, place) -> tuple[float, float]:
    """A place on the curve of mean losses, and its error: realisations drawn with repetition."""
    generator = np.random.default_rng(0)
    sizes, values = losses.columns.to_numpy(float), losses.to_numpy()
    found = place(sizes, values.mean(axis=0))
    if math.isnan(found):
        return found, math.nan
    draws = generator.integers(len(values), size=(RESAMPLES, len(values)))
    places = [place(sizes, mean) for mean in values[draws].mean(axis=1)]
    return found, float(np.std(places, ddof=1))
