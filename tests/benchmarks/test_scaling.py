"""How cost grows: fits of exponents, differences from operation counts, and their table."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from repository import ROOT

from benchmarks import harness, scaling, scaling_page
from benchmarks.scaling_stages import STAGES, Stage, two_layer_clones, two_layer_training


def test_exponents_of_powers_are_exact_and_those_of_noise_have_its_error():
    sizes = np.array([3.0, 6, 12, 24])
    assert scaling.exponent(sizes, 5 * sizes**2.5) == pytest.approx((2.5, 0), abs=1e-7)
    slope, error = scaling.exponent(2.0 ** np.arange(4), np.exp([0.1, -0.3, 0.3, -0.1]))
    # Deviations from the line of slope 0 in steps of log 2, by hand: sum x y = 0.
    assert slope == pytest.approx(0, abs=1e-12)
    assert error == pytest.approx(np.sqrt(0.2 / 2 / 5) / np.log(2))


@pytest.mark.parametrize(("reason", "said"), [({"N": "planted"}, "planted"), (None, "unexplained")])
def test_a_planted_loop_of_n_squared_is_one_above_a_count_of_n(monkeypatch, reason, said):
    clock = [0.0]

    def made(N, other):
        def work():
            clock[0] += N**2 * other

        return work, 7 * N * other

    monkeypatch.setattr(harness.time, "process_time", lambda: clock[0])
    stage = Stage(made, dict(N=2, other=1), dict(N=(1, 2, 4, 8), other=(1, 2, 3, 5)), reason)
    rows = pd.DataFrame(scaling.grown("planted", stage))
    of_n, of_other = (rows[rows["grows"] == key] for key in ("N", "other"))
    assert of_n["seconds"].tolist() == [1, 4, 16, 64]
    assert (of_n["exponent"] - of_n["counted"]).tolist() == [1] * 4
    assert set(of_n["because"]) == {said}
    assert of_other["seconds"].tolist() == [4, 8, 12, 20]
    assert (of_other["exponent"] == of_other["counted"]).all()
    assert set(of_other["because"]) == {""}
    assert "N 2.00 ± 0.00 (1.00) [1]" in scaling_page.text(rows)
    assert f"1. {said}" in scaling_page.text(rows)


def test_the_peak_of_memory_is_that_of_the_sizes_and_not_of_larger_ones_before():
    # In a process of its own, as benchmarks run: others free memory in between.
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:
        large, small = alone.submit(peaks, [400, 100]).result()
    assert 250 < large - small < 350


def peaks(sizes: list[int]) -> list[float]:
    """The peaks in MiB of arrays of these sizes, one after the other."""
    stage = Stage(lambda MiB: (lambda: np.ones(MiB * 2**17), MiB), {}, {})
    return [scaling._point(stage, dict(MiB=size))[1] for size in sizes]


def test_tables_of_pairs_are_made_without_all_products_at_once():
    """These would be |V|^3 numbers, 512 MiB."""
    stage = Stage(lambda vocabulary: two_layer_clones(3, vocabulary, 2, "norm", 2), {}, {})
    small, large = (scaling._point(stage, dict(vocabulary=size))[1] for size in (64, 512))
    assert large - small < 200


def test_a_stage_at_toy_sizes_has_its_row_for_every_size(monkeypatch):
    monkeypatch.setattr(scaling, "LEAST", 0.0)
    sizes = dict(length=7, vocabulary=9, rank=2, sequences=3)
    rows = scaling.grown("toy", Stage(two_layer_training, sizes, dict(sequences=(2, 4, 6, 8))))
    assert [row["size"] for row in rows] == [2, 4, 6, 8]
    assert all(row["seconds"] > 0 and row["MiB"] > 10 for row in rows)
    # One copy of 7 positions: L^2 d + L d |V| + 2 L |V| + 3 |V| d.
    assert rows[0]["operations"] == 2 * (98 + 126 + 126 + 54)
    assert rows[0]["counted"] == 1


def test_docs_have_the_page_of_all_stages_in_the_gallery():
    rows = pd.read_csv(ROOT / scaling_page.GALLERY / "scaling.csv", keep_default_na=False)
    assert list(dict.fromkeys(rows["stage"])) == list(STAGES)
    assert "unexplained" not in set(rows["because"])
    assert (ROOT / scaling_page.PAGE).read_text(encoding="utf-8") == scaling_page.text(rows)
