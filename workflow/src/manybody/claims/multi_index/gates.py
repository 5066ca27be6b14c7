"""Gates of this paper's figures: which an entry of the config carries, and what a table says.

A gate compares a number of a table with an expectation, within a tolerance. Whether it can be
confirmed is known before anything is run: its standard error falls as the root of the number of
points and scramblings, or of runs, and what one of them scatters by was measured once and is kept
beside the gate. A gate whose predicted margin is not below its tolerance is not carried: it is
never decided by the error that the run itself found, or a broken run could drop its own gates.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from manybody.claims import reading, verdicts
from manybody.claims.reading import Table, Value

POINTS = 1024  # at which the spread of a scrambling was measured


@dataclass(frozen=True)
class Gate:
    """claim; find: the value of a table, or the cause why there is none; expected: a number, or
    found in the table like the value; tolerance; error: the predicted standard error of their
    difference; runs: how many values it is estimated from; kind: statistical or exact."""

    claim: str
    find: Callable[[Table], Value | str]
    expected: float | Callable[[Table], Value | str]
    tolerance: float
    error: float
    runs: float | None
    kind: str = "statistical"

    def confirmable(self) -> bool:
        """Whether a value that is as expected would be confirmed, at the predicted error."""
        return verdicts.margin(self.error, self.runs) < self.tolerance


def spread(share: float, entry: dict) -> float:
    """Predicted standard error of a mean over the entry's scramblings, of which one of POINTS
    points scatters by `share`."""
    return share * math.sqrt(POINTS / entry["points"] / entry["scrambles"])


def combined(*parts: tuple[float, int | None]) -> tuple[float, float | None]:
    """Standard error of a sum of independent parts (error, runs), and how many values stand behind
    it: Welch's and Satterthwaite's count, None for very many."""
    squares = [error**2 for error, _ in parts]
    lost = [
        error**4 / (runs - 1) if runs > 1 else math.inf
        for error, runs in parts
        if runs is not None and error > 0
    ]
    total, noise = sum(squares), sum(lost)
    if noise == 0 or math.isnan(total):
        return math.sqrt(total), None
    return math.sqrt(total), 1 + (total**2 / noise if math.isfinite(noise) else 0.0)


def relative(
    claim: str, find: Callable, expected: Callable, share: float, *errors: tuple[float, int | None]
) -> Gate:
    """A gate on the value over its expectation, found in the same table: 1 within a share.

    errors: relative ones and their runs, of the value and of the expectation.
    """

    def ratio(table: Table) -> Value | str:
        ours, theirs = find(table), expected(table)
        for part, what in ((ours, ""), (theirs, "expectation: ")):
            if isinstance(part, str):
                return what + part
        found = ours.value / theirs.value if theirs.value else math.nan
        parts = [(part.error / part.value, part.runs) for part in (ours, theirs) if part.value]
        return Value(found, *combined(*parts))

    return Gate(claim, ratio, 1.0, share, *combined(*errors))


def carried(gates: Iterable[Gate]) -> list[Gate]:
    """Those that can be confirmed."""
    return [gate for gate in gates if gate.kind == "exact" or gate.confirmable()]


def claims(gates: Iterable[Gate], table: Table) -> list[dict]:
    """A row for each gate that is carried; contradicted where the table has no usable value."""
    return [_claim(gate, table) for gate in carried(gates)]


def _claim(gate: Gate, table: Table) -> dict:
    known = isinstance(gate.expected, float | int)
    expected = Value(gate.expected, 0.0) if known else gate.expected(table)
    found = gate.find(table)
    for part, what in ((found, ""), (expected, "expectation: ")):
        if isinstance(part, str):
            return verdicts.failed(gate.claim, gate.kind, what + part, tolerance=gate.tolerance)
    if not math.isfinite(expected.value):
        cause = f"the expectation is {expected.value}"
        return verdicts.failed(gate.claim, gate.kind, cause, tolerance=gate.tolerance)
    if gate.kind == "exact":
        return verdicts.identity(gate.claim, found.value, expected.value, gate.tolerance)
    return verdicts.within(
        gate.claim, found.value, found.error, expected.value, gate.tolerance, gate.kind, found.runs
    )


@dataclass(frozen=True)
class Public:
    """Stored public overlaps, by name and alpha: where the entry is at their parameters `needed`,
    those of the table are as near; `converged` is the series of its flags."""

    claim: str
    needed: dict
    stored: dict[str, dict[float, float]]
    tolerance: float
    converged: str


def public_claims(table: Table, public: Public) -> list[dict]:
    """A row for each overlap; none where the entry is at other parameters."""
    if reading.departure(table.entry, **public.needed):
        return []
    failed, rows = table.failed(public.converged), []
    for name, stored in public.stored.items():
        found = {alpha: table.between("overlap", name, alpha) for alpha in stored}
        given = f"{public.claim}: {name}", found, stored, public.tolerance
        rows.append(largest_difference(*given, failed=failed))
    return rows


SCRAMBLES = -1  # the runs of a value whose error is over the entry's scramblings


def place(
    quantity: str,
    series: str,
    x: float,
    converged: str | None = None,
    runs: int | None = SCRAMBLES,
) -> Callable[[Table], Value | str]:
    """Finds the value at x; `converged` is the series of its flags, if it has some."""

    def find(table: Table) -> Value | str:
        if converged is not None and any(math.isclose(x, at) for at in table.failed(converged)):
            return "not converged"
        found = table.at(quantity, series, x)
        if found is None:
            return "missing in the table"
        return found if runs == SCRAMBLES else found._replace(runs=runs)

    return find


def near(claim: str, found: Value, expected: float, tolerance: float) -> dict:
    """A claim of the paper: a value within the tolerance of the expected one."""
    return verdicts.within(claim, found.value, found.error, expected, tolerance, runs=found.runs)


def largest_difference(
    claim: str,
    found: Mapping[float, Value | None],
    expected: Mapping[float, float],
    tolerance: float,
    name: str = "alpha",
    failed: Iterable[float] = (),
) -> dict:
    """A claim of the paper: where values are furthest from the expected ones, within tolerance.

    Places without a value, and those in `failed`, where an iteration did not converge, are left
    out; the row was not run if no place is left.
    """
    failed = list(failed)
    known = {
        x: value
        for x, value in found.items()
        if value is not None
        and x in expected
        and not any(map(math.isclose, failed, [x] * len(failed)))
    }
    if not known:
        return verdicts.not_run(claim, "no common points")
    apart = {x: known[x].value - expected[x] for x in known}
    worst = max(apart, key=lambda x: abs(apart[x]))
    claim += f" (largest difference at {len(known)} points, here at {name} = {worst:g})"
    return near(claim, known[worst]._replace(value=apart[worst]), 0.0, tolerance)
