"""Which orders matter: planted laws whose loss by order is enumerated, and what is said."""

import math
from itertools import permutations, product

import enumerated
import numpy as np
import pandas as pd
import planted_runs
import pytest
import spin_sources
import tabulated
from configs import load
from planted_spectra import BERT, rows
from scipy.linalg import hadamard
from scipy.special import log_softmax

from manybody.data.hamiltonian import Hamiltonian
from manybody.io import tables
from manybody.io.atomic import write_json
from manybody.measure import spectrum
from manybody.report import orders

LENGTH, SIZE = 5, 3  # L and |V| of the planted laws


def three_body() -> Hamiltonian:
    rng = np.random.default_rng(1)
    tensors = []
    for size in (LENGTH, SIZE):
        drawn = rng.normal(size=(size,) * 3)
        tensors.append(sum(drawn.transpose(axes) for axes in permutations(range(3))) / 6)
    places = np.indices(tensors[0].shape)
    equal = (places[0] == places[1]) | (places[1] == places[2]) | (places[0] == places[2])
    return Hamiltonian(np.where(equal, 0, tensors[0]), tensors[1], 0.8)


def samples(law: Hamiltonian, count: int) -> np.ndarray:
    states = enumerated.all_states(SIZE, LENGTH)
    drawn = np.random.default_rng(2).choice(len(states), count, p=enumerated.boltzmann(law, states))
    return states[drawn]


def measured(law: Hamiltonian, tokens: np.ndarray) -> pd.DataFrame:
    """The rows of the anchored loss of a law's conditionals, as a spectrum has them."""
    found = spectrum.anchored_loss(
        tabulated.of_hamiltonian(law), tokens, size=LENGTH - 1, targets=len(tokens) // 2
    )
    named = (("loss", "se"), ("excess", "excess_se"))
    return pd.DataFrame(
        [
            rows(1, f"anchored {name}", row["degree"], row[name], row[error])
            for _, row in found.iterrows()
            for name, error in named
        ]
    ).astype({"order": int})


def enumerated_losses(law: Hamiltonian, tokens: np.ndarray) -> np.ndarray:
    """Loss of the logits cut at each degree: all targets of all blocks, all their contexts."""
    draws = spectrum.Draws(tabulated.of_hamiltonian(law), tokens, None, "text", (), 1, 0)
    bits = np.array(list(product((0, 1), repeat=LENGTH)))
    transform, losses = hadamard(2**LENGTH) / 2**LENGTH, []
    for s, r in zip(draws.s, draws.r, strict=True):
        logs = law.log_conditionals(np.where(bits, r, s))
        for target in range(LENGTH):
            parts = transform @ logs[:, target]
            cuts = [parts[bits.sum(1) <= degree].sum(0) for degree in range(LENGTH)]
            losses.append([-log_softmax(cut)[s[target]] for cut in cuts])
    return np.mean(losses, axis=0)


def test_a_source_of_pairs_has_no_orders_above_2():
    law = spin_sources.pair_law(LENGTH, SIZE, 0.8)
    runs = [measured(law, samples(law, 400))] * 3
    above = orders.gain(runs, 2, None, visible=0.001)
    assert above.value == pytest.approx(0, abs=1e-9)
    assert above.answer == "no"
    # and pairs matter
    assert orders.gain(runs, 1, 2, visible=0.001).answer == "yes"


def test_three_bodies_matter_as_much_as_by_enumeration():
    law = three_body()
    tokens = samples(law, 4000)
    exact, runs = enumerated_losses(law, tokens[:800]), [measured(law, tokens)] * 3
    expected = exact[1] - exact[2]
    found = orders.gain(runs, 2, 3, visible=0.01)
    assert abs(found.value - expected) < 2 * found.width
    assert found.answer == "yes"
    assert found.width < expected / 3
    assert orders.gain(runs, 2, 3, visible=2 * expected).answer == "no"
    assert orders.gain(runs, 2, 3, visible=found.value).answer == "undecided"
    assert orders.gain(runs, 3, None, visible=0.001).answer == "no"


def trial(excess, se=0.005, level=2.0) -> pd.DataFrame:
    found = [rows(2000, "anchored loss", d, level + e, 0.1) for d, e in enumerate(excess)]
    errors = [se if value else 0.0 for value in excess]
    pairs = enumerate(zip(excess, errors, strict=True))
    found += [rows(2000, "anchored excess", d, e, s) for d, (e, s) in pairs]
    return pd.DataFrame(found)[tables.SPECTRA_SCHEMA.names]


def test_seeds_that_disagree_and_one_seed_decide_nothing():
    alike = [trial((1.5, 0.4, 0.0)) for _ in range(3)]
    assert orders.gain(alike, 2, None, 0.1).answer == "yes"
    assert orders.gain(alike[:1], 2, None, 0.1).answer == "undecided"
    apart = [trial((1.5, value, 0.0)) for value in (0.25, 0.4, 0.55)]  # se .09, of three
    assert orders.gain(apart, 2, None, 0.1).answer == "undecided"
    found = orders.gain(alike, 2, None, 0.1)
    assert (found.value, found.width) == (pytest.approx(0.4), pytest.approx(2 * 0.005))


def test_orders_that_the_cut_positions_cannot_tell_apart_are_undecided():
    """Three positions: interactions of order 4 and above are all alike there."""
    runs = [trial((1.5, 0.4, 0.1, 0.0)) for _ in range(3)]
    assert math.isnan(orders.gain(runs, 9, None, 0.1).value)
    assert orders.gain(runs, 9, None, 0.1).answer == "undecided"
    assert orders.gain(runs, 3, 9, 0.01).value == pytest.approx(0.1)


def test_the_smallest_difference_is_of_sequences_and_seeds():
    ngrams = [{"order": 1, "error": 9.0, "sequences": 4}]
    ngrams += [{"order": 2, "error": 0.05, "sequences": 400}]  # a sequence: 1 nat
    same = [trial((1.0, 0.0))] * 3
    assert orders.smallest(same, ngrams, 200) == pytest.approx(2 * math.sqrt(2 / 200))
    apart = [trial((1.0, 0.0), level=level) for level in (1.9, 2.0, 2.1)]
    assert orders.smallest(apart, ngrams, 200) == pytest.approx(
        2 * math.hypot(0.1, 0.1 / math.sqrt(3))
    )


NGRAMS = [
    {"order": order, "masked": loss, "error": 0.02, "sequences": 400}
    for order, loss in ((1, 5.0), (2, 2.4), (3, 0.8))
]


@pytest.fixture
def said(tmp_path):
    def page(excess, loss=2.0, clones=("n2", "n4", "bert")):
        spectra, manifests = [], []
        entry = {"anchored": {"size": len(excess) - 1, "targets": 256}}
        for seed in range(3):
            spectra.append(tmp_path / f"seed-{seed}.parquet")
            about = {"description": BERT, "source": "docs", "model": "trial", "entry": entry}
            tables.write_spectra(spectra[-1], trial(excess), about)
            history = planted_runs.rows([1], [loss], 1200, 2000)
            folder = tmp_path / f"run-{seed}"
            manifests.append(planted_runs.write(folder, history))
        write_json(tmp_path / "ngrams.json", NGRAMS)
        ngrams = [tmp_path / "ngrams.json"]
        return orders.page(load("own-text.yaml"), spectra, manifests, ngrams, clones)

    return page


NOTHING = (1.5, 0.15, 0.004, 0.002, 0, 0, 0, 0, 0, 0, 0)


def test_orders_that_do_not_matter(said):
    page = said(NOTHING)
    assert "| 2 | 2.150 ± 0.100 | 0.150 ± 0.005 |" in page
    assert "| all | 2.000 ± 0.100 | 0.000 ± 0.000 |" in page
    assert "| 9 |" not in page
    assert "BERT 2 × 64, 3 trainings of 2000 steps" in page
    assert "Less lose trigrams (0.80): there is more in the text" in page
    assert "can see differences of 0.089 nats" in page
    first, second = [line for line in page.splitlines() if line.startswith("- ")]
    assert "order 3 (n2) and order 9 (n4) could not be seen to differ by their order" in first
    assert "worth 0.004 ± 0.010 nats" in first
    assert "order 9 (n4) and any order (bert) could not be seen to differ" in second


def test_orders_that_matter(said):
    page = said((1.5, 0.6, 0.5, 0.3, 0.1, 0, 0, 0, 0, 0, 0))
    first, second = [line for line in page.splitlines() if line.startswith("- ")]
    assert "order 3 (n2) and order 9 (n4) could differ by their order. The orders" in first
    assert "could not be seen" in second


def test_a_trial_that_has_not_learned_pairs_does_not_say_no(said):
    page = said(NOTHING, loss=2.7)
    first, _ = [line for line in page.splitlines() if line.startswith("- ")]
    assert "undecided, as the trials have not even learned what bigrams say" in first


def test_what_such_a_trial_sees_it_sees(said):
    page = said((1.5, 0.6, 0.5, 0, 0, 0, 0, 0, 0, 0, 0), loss=2.7, clones=("n2", "n4"))
    (line,) = [line for line in page.splitlines() if line.startswith("- ")]
    assert "could differ by their order. " in line


def test_without_clones_of_two_orders_there_is_the_table_alone(said):
    assert "Clones of two orders are not among the figures" in said(NOTHING, clones=("n2",))
