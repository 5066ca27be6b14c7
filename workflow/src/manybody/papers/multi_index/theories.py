"""Tables of theory as this paper's figures read them, and comparisons that figures share."""

import math
from collections.abc import Iterable, Mapping

from manybody.papers import inputs as needed
from manybody.papers.claims import ALL, Claim, Comparison, judged, near, not_run, over_seeds
from manybody.papers.inputs import Theory
from manybody.papers.readings import Table, Value, crossings

KIND = "multi-index-"
LAYERS = (1, 2)
BOUND = 1 / 6  # no threshold of linear stability is below (specification, section 4)
LEARNED = (
    0.5  # cosine with the teacher, or similarity to the last state, of a layer that is learned
)


class Inputs(needed.Inputs):
    """The tables of theory that a figure's block names by their roles, and their entries."""

    theory: dict[str, Theory]
    entries: dict[str, dict]

    @classmethod
    def of(cls, block, config: dict) -> "Inputs":
        names = {role: str(name) for role, name in block.theory}
        return cls(
            theory={role: Theory(theory=name) for role, name in names.items()},
            entries={role: config["theory"][name] for role, name in names.items()},
        )

    def read(self) -> dict[str, Table]:
        """The tables by role; `ArtifactError` names a file that is not such a table."""
        return {role: Table.read(key.file()) for role, key in self.theory.items()}


def channel(entry: dict) -> str:
    """The channel in words: V + 1e-3, or no regulariser."""
    regulariser = entry["regulariser"]
    return f"V + {regulariser:g}" if regulariser else "no regulariser"


def runs_of(entry: dict) -> str:
    """The number of runs of an entry, in words."""
    return f"{entry['runs']} run{'s' if entry['runs'] > 1 else ''}"


def sampled(entry: dict) -> str:
    """The points of an entry in words."""
    return f"{entry['points']} Sobol points, {entry['scrambles']} scramblings"


def largest_difference(
    label: str,
    found: Mapping[float, Value | None],
    expected: Mapping[float, float],
    tolerance: float,
    name: str = "alpha",
    failed: Iterable[float] = (),
) -> Comparison:
    """The difference from expected values where it is largest, which must be below the tolerance.

    Places without a value, and those in `failed`, where an iteration did not converge, are left
    out.
    """
    failed = list(failed)
    known = {
        x: value
        for x, value in found.items()
        if value is not None and not any(math.isclose(place, x) for place in failed)
    }
    if not known:
        return Comparison(label, math.nan, unusable="no common points")
    apart = {x: value.value - expected[x] for x, value in known.items()}
    worst = max(apart, key=lambda x: abs(apart[x]))
    label += f", largest difference at {len(known)} points, at {name} = {worst:g}"
    _, error, runs = known[worst]
    return near(label, apart[worst], error, 0.0, tolerance, runs=runs)


def from_stored(
    table: Table, stored: Mapping[str, Mapping[float, float]], tolerance: float, converged: str
) -> list[Comparison]:
    """Overlaps of a table less the stored ones, where they differ most, one comparison a name.

    converged: the series of the flags of the table's iterations.
    """
    return [
        largest_difference(
            f"state evolution, {name}",
            {alpha: table.between("overlap", name, alpha) for alpha in values},
            values,
            tolerance,
            failed=table.failed(converged),
        )
        for name, values in stored.items()
    ]


def later(label: str, table: Table, early: str, late: str, series: str = "") -> Comparison:
    """How much later, run by run, one quantity passes `LEARNED` than another; above 0."""
    times = {name: crossings(table.get(name, series), LEARNED) for name in (early, late)}
    differences = (times[late] - times[early]).dropna()
    if not len(differences):
        return Comparison(label, math.nan, unusable="no run learned both layers")
    label += f", {len(differences)} of {len(times[late])} runs learned both"
    return over_seeds(label, differences)


def claim(
    id: str,
    statement: str,
    parts: list[Comparison] | str,
    scope: str,
    rule: str,
    share: float | str = ALL,
    beyond: bool = False,
) -> Claim:
    """The claim that comparisons decide; not run where none of them can be judged, or where `parts`
    is the cause why there are none."""
    if not isinstance(parts, str) and all(part.unusable for part in parts):
        parts = "; ".join(map(str, parts))
    if isinstance(parts, str):
        return not_run(id, statement, parts, scope, beyond)
    return judged(id, statement, parts, scope, rule, share, beyond)
