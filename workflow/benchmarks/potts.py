"""Speed of sampling and inferring Potts models, each against a competent other form."""

from benchmarks import inverse_potts, potts_sampling


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` of both parts."""
    return [*potts_sampling.measure(), *inverse_potts.measure()]
