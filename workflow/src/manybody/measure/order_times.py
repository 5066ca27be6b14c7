"""Times at which students learn terms of known order and information, some of them never reached.

A student s, a run on one law, learns the term e at step t_e:

    log t_e = alpha_s + sum_j beta_j x_ej + rest,   rest ~ N(0, sigma^2)

with columns x such as |e| - 2 and log(c_e / .2). alpha_s is the mean alpha of all students of one
cell (a law with a recipe) plus a draw of N(0, tau^2): terms of one student are not independent. A
time that is not reached is censored at the last step. The likelihood of a student is

    integral dz N(z; 0, 1) prod_reached N(log t_e; m_e + tau z, sigma) prod_censored P(> log t_e)

by Gauss-Hermite quadrature. Intervals come from a bootstrap that draws whole students of each cell.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.measure.intervals import margin

HALF = 0.5  # of what there is to learn, at the times that are fitted
LEFT = (HALF, 0.05)  # the same, at the two times of a term
NODES = 32  # of the quadrature over alpha_s
BOOTSTRAPS = 200
SEED = 0
REFERENCE = 0.2  # nats: the information at which log(c / .2) is 0
LEAST = -4.0  # of log sigma and log tau, which keeps a likelihood of few times finite


class Fit(NamedTuple):
    """Maximum of the likelihood.

    beta: by column. sigma, tau: standard deviations within and between students. draws: by column
    beta of the bootstraps (B,). students: the fewest of a cell.
    """

    beta: dict[str, float]
    sigma: float
    tau: float
    draws: dict[str, np.ndarray]
    students: int

    def interval(self, value: float, draws: np.ndarray) -> tuple[float, float, float]:
        """A function of beta, its standard error, and half of its 95 % interval, Student's. draws:
        the same function of the bootstraps, which of n students give the error with n in place of
        n - 1."""
        known = draws[np.isfinite(draws)]
        if self.students < 2 or 2 * len(known) < len(draws):
            return value, math.nan, math.inf
        error = float(known.std(ddof=1)) * math.sqrt(self.students / (self.students - 1))
        return value, error, margin(error, self.students)

    def of(self, column: str) -> tuple[float, float, float]:
        """A coefficient with its error and half width."""
        return self.interval(self.beta[column], self.draws[column])

    def exchange(self) -> tuple[float, float, float]:
        """log r* = -b / g, by how much more information makes up for one order, with its error and
        half width. NaN where more information makes a term no earlier."""
        g = self.beta["information"]
        ratio = -self.beta["order"] / g if g < 0 else math.nan
        return self.interval(ratio, -self.draws["order"] / self.draws["information"])


def times(table: pd.DataFrame, clock: str = "gap") -> pd.DataFrame:
    """Steps at which each term is learned, of one run's table, by its gap, share or own_share.

    The time is the first at which K_e / c_e, or 1 less the share, is at most `left`, a half or a
    twentieth, interpolated in log step (step 0 counts as 1). A term that gets there at no
    checkpoint has the last step as its time, a bound, and is not `reached`.
    """
    rows, facts = [], ["term", "order", "information", "nested"]
    for of_term, own in table.sort_values("step").groupby(facts, dropna=False):
        missing = own["gap"] / own["information"] if clock == "gap" else 1 - own[clock]
        steps, missing = np.log(own["step"].clip(lower=1)).to_numpy(), missing.to_numpy()
        for left in LEFT:
            there = missing <= left
            place = there.argmax() if there.any() else -1
            at = steps[place]
            if place > 0:
                way = (missing[place - 1] - left) / (missing[place - 1] - missing[place])
                at = steps[place - 1] + way * (steps[place] - steps[place - 1])
            rows.append((*of_term, left, np.exp(at), place >= 0))
    return pd.DataFrame(rows, columns=[*facts, "left", "time", "reached"])


def kinds(times: pd.DataFrame) -> np.ndarray:
    """Numbers (N,) of the kinds of terms: of one cell, order and information, nested or not."""
    # The values of terms of one law that tell as much differ by rounding.
    alike = times.assign(information=times["information"].map("{:.3g}".format))
    return alike.groupby(["cell", "order", "information", "nested"]).ngroup().to_numpy()


def columns_of(times: pd.DataFrame) -> dict[str, np.ndarray]:
    """The columns |e| - 2, log(c_e / .2) and nested, those that vary within a cell."""
    given = {
        "order": times["order"].to_numpy(float) - 2,
        "information": np.log(times["information"].to_numpy(float) / REFERENCE),
        "nested": times["nested"].to_numpy(float),
    }
    frame = pd.DataFrame(given)
    centred = frame - frame.groupby(times["cell"].to_numpy()).transform("mean")
    kept = {}
    for name, column in given.items():
        if np.linalg.matrix_rank(centred[[*kept, name]], tol=1e-6) > len(kept):
            kept[name] = column
    return kept


def fitted(
    times: pd.DataFrame, columns: Mapping[str, np.ndarray], bootstraps: int = BOOTSTRAPS
) -> Fit:
    """Fits the columns to times, rows of `cell`, `student`, `time` (steps) and `reached`.

    A student's name need be unique in its cell only. All is NaN where no time is reached.
    """
    if not times["reached"].any():
        nothing = np.full(bootstraps, math.nan)
        beta = dict.fromkeys(columns, math.nan)
        return Fit(beta, math.nan, math.nan, dict.fromkeys(columns, nothing), 0)
    cells, cell_of = np.unique(times["cell"].astype(str), return_inverse=True)
    names = times["cell"].astype(str) + "\0" + times["student"].astype(str)
    _, first, student = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(student, kind="stable")
    cell_of_student, student = cell_of[first], student[order]
    design = np.column_stack([np.eye(len(cells))[cell_of], *columns.values()])[order]
    y = np.log(times["time"].to_numpy(float))[order]
    likelihood = _Likelihood(design, y, ~times["reached"].to_numpy(bool)[order], student)
    best = likelihood.maximum(np.ones(len(first)), None)
    random, draws = np.random.default_rng(SEED), []
    members = [np.flatnonzero(cell_of_student == place) for place in range(len(cells))]
    for _ in range(bootstraps):
        drawn = np.concatenate([random.choice(mine, len(mine)) for mine in members])
        draws.append(likelihood.maximum(np.bincount(drawn, minlength=len(first)), best))
    found = np.array([best, *draws])[:, len(cells) : -2]
    return Fit(
        dict(zip(columns, found[0].tolist(), strict=True)),
        *np.exp(best[-2:]).tolist(),
        dict(zip(columns, found[1:].T, strict=True)),
        min(map(len, members)),
    )


def form(times: pd.DataFrame, bootstraps: int = BOOTSTRAPS) -> tuple[float, int]:
    """The chance of contrasts so far from the log-linear form, if it holds, and how many it leaves.

    Within each cell every kind of term has its own contrast with the first kind; the columns that
    fit them best, by the covariance of the bootstrap over students, leave Hotelling's T^2. NaN
    where a cell has too few students.
    """
    from scipy.special import fdtrc

    kind_of, cells = kinds(times), times["cell"].to_numpy()
    line = np.column_stack([*columns_of(times).values()])
    free, rows = {}, []
    for cell in pd.unique(times["cell"]):
        first, *others = np.unique(kind_of[cells == cell])
        for kind in others:
            free[str(kind)] = (kind_of == kind).astype(float)
            rows.append(line[kind_of == kind][0] - line[kind_of == first][0])
    fit = fitted(times, free, bootstraps)
    degrees, students = len(rows) - line.shape[1], times.groupby("cell")["student"].nunique()
    covariance = np.atleast_2d(np.cov(list(fit.draws.values())))
    known = fit.students > 1 and np.isfinite(covariance).all()
    if not known or np.linalg.matrix_rank(covariance) < len(rows):
        return math.nan, degrees
    root = np.linalg.cholesky(covariance * fit.students / (fit.students - 1))
    whole, given = np.linalg.solve(root, [*fit.beta.values()]), np.linalg.solve(root, rows)
    left = whole - given @ np.linalg.lstsq(given, whole, rcond=None)[0]
    n = int((students - 1).sum()) + 1
    chance = fdtrc(degrees, n - degrees, left @ left * (n - degrees) / (degrees * (n - 1)))
    return float(chance), degrees


class Estimate(NamedTuple):
    """The log of a ratio of times, its error and half width, by cell and group.

    what: `order`, what one order costs; `foothold`, a term with a lower one inside over one
    without; `beside`, lower ones beside it over none. x: information, lowest order over highest.
    """

    label: str
    group: str
    what: str
    left: float
    x: float
    value: float
    error: float
    half: float

    @property
    def name(self) -> str:
        """The label, with what else tells it from the other estimates of its cell."""
        note = f", {self.what}" if self.what == "foothold" else ""
        return self.label + note + ("" if self.left == HALF else f", {self.left:.0%} left")

    @property
    def equal(self) -> bool:
        """True of what an order costs at equal information."""
        return self.what == "order" and math.isclose(self.x, 1.0, rel_tol=1e-3)


def told(rows: pd.DataFrame) -> bool:
    """True if some time of each kind of term is reached; else it has no finite contrast."""
    return bool(rows["reached"].groupby(kinds(rows)).any().all())


def _finite(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows; as if no time were reached, so that a fit is NaN, where they tell no contrast."""
    return rows.assign(reached=rows["reached"] & told(rows))


def of_ladder(
    times: pd.DataFrame, bootstraps: int = BOOTSTRAPS
) -> tuple[Fit, tuple[float, int] | None]:
    """The fit to the laws of a ladder, and the log-linear `form`, None where nothing tells it."""
    several, columns = times["cell"].nunique() > 2, columns_of(times)
    # Cells without a finite contrast bound the coefficients; the others have to tell them all.
    finite = columns_of(times.groupby("cell").filter(told))
    reached = times["reached"] & (finite.keys() == columns.keys())
    fit = fitted(times.assign(reached=reached), columns, bootstraps)
    return fit, form(times, bootstraps) if several and told(times) else None


def estimates(times: pd.DataFrame, bootstraps: int) -> Iterator[Estimate]:
    """The cost of an order in each cell, at half, and at equal information later too; footholds.

    times: rows of all cells, as of `fitted`, with the `group` of their cell and what is `left`.
    """
    for (group, cell, left), rows in times.groupby(["group", "cell", "left"], sort=False):
        if group == "alone" or (left != HALF and group not in ("ladder", "lengths")):
            continue
        # In one law of the ladder order and information go together: x says which.
        columns = columns_of(rows.assign(information=REFERENCE))
        information = rows.sort_values("order")["information"]
        fit = fitted(_finite(rows), columns, bootstraps)
        for column in columns:
            what = "foothold" if column == "nested" else column
            x = information.iloc[0] / information.iloc[-1]
            yield Estimate(cell, group, what, left, x, *fit.of(column))
    high = times[(times["group"] == "alone") & (times["left"] == HALF)]
    high = high[high["order"] == high["order"].max()]
    alone, *others = dict.fromkeys(high["cell"]) or [None]
    for other in others:
        pair = high[high["cell"].isin([alone, other])]
        students = pair["cell"] + pair["student"].astype(str)
        columns = {"beside": (pair["cell"] == other).to_numpy(float)}
        pair = _finite(pair).assign(cell="", student=students)
        fit = fitted(pair, columns, bootstraps)
        yield Estimate(f"{other} / {alone}", "alone", "beside", HALF, 1.0, *fit.of("beside"))


class _Likelihood:
    """log of the likelihood and its gradient, by weights of students.

    design (N, P), y (N,) the logs of times, censored (N,), student (N,) ascending from 0.
    """

    def __init__(self, design, y, censored, student):
        from numpy.polynomial.hermite_e import hermegauss

        self.design, self.y, self.censored, self.student = design, y, censored, student
        self.nodes, weights = hermegauss(NODES)
        self.log_weights = np.log(weights / weights.sum())
        self.starts = np.flatnonzero(np.diff(student, prepend=-1))

    def maximum(self, weights: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        """Parameters (P + 2,): beta, log sigma and log tau."""
        from scipy.optimize import minimize

        if start is None:
            beta = np.linalg.lstsq(self.design, self.y, rcond=None)[0]
            start = np.append(beta, [math.log(0.5), math.log(0.3)])
        bounds = [(None, None)] * self.design.shape[1] + [(LEAST, 3.0)] * 2
        return minimize(
            self._negative, start, (weights,), jac=True, method="L-BFGS-B", bounds=bounds
        ).x

    def _negative(self, parameters: np.ndarray, weights: Sequence[float]):
        from scipy.special import log_ndtr

        beta, (sigma, tau) = parameters[:-2], np.exp(parameters[-2:])
        u = ((self.y - self.design @ beta)[:, None] - tau * self.nodes) / sigma
        late = self.censored
        logs = -0.5 * u**2 - math.log(sigma) - 0.5 * math.log(2 * math.pi)
        logs[late] = log_ndtr(-u[late])
        slope = u.copy()  # of the log density by the mean, in units of sigma
        slope[late] = np.exp(-0.5 * u[late] ** 2 - 0.5 * math.log(2 * math.pi) - logs[late])
        width = slope * u
        width[~late] -= 1
        joint = np.add.reduceat(logs, self.starts) + self.log_weights
        total = np.logaddexp.reduce(joint, axis=1)
        share = (np.exp(joint - total[:, None]) * weights[:, None])[self.student]
        by_mean = (share * slope).sum(axis=1) / sigma
        gradient = np.append(
            self.design.T @ by_mean,
            [(share * width).sum(), (share * slope * self.nodes).sum() * tau / sigma],
        )
        return -float(weights @ total), -gradient
