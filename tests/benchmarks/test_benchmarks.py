"""Benchmarks of tiny cases with a clock of the test's: which time is whose."""

import itertools
from types import SimpleNamespace

import pytest

from benchmarks import clones


def test_rates_of_clones_and_of_naive_chains_are_those_of_their_own_times(monkeypatch):
    sizes = dict(architecture="factored", vocabulary=5, length=4, layers=2, rank=2)
    monkeypatch.setitem(clones.CASES, "tiny", (sizes, 2, 6, 3))
    # A warm block and three that count; the naive sampler of a block goes first.
    naive, ours = [50.0, 4.0, 6.0, 2.0], [40.0, 0.5, 0.25, 1.0]
    pauses = [pause for pair in zip(naive, ours, strict=True) for pause in (*pair, 7.0)]
    clock = itertools.accumulate([0.0, *pauses])
    monkeypatch.setattr(clones, "time", SimpleNamespace(perf_counter=clock.__next__))
    (row,) = clones.measure(["tiny"], ("raw",))
    assert (row["what"], row["unit"], row["threads"]) == ("tiny", "chain-steps/s", 1)
    # Medians of 2 chains x 6 steps over the seconds of a block.
    assert row["baseline"] == pytest.approx(12 / 4)
    assert row["ours"] == pytest.approx(12 / 0.5)
    assert row["ratio"] == pytest.approx(8)
