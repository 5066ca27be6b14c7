"""The many-body source: what it writes, that it depends on its seed alone, what it refuses."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from manybody.files.sequences import Sequences
from manybody.sources import SourceError, enumeration, equilibrium, gibbs
from manybody.sources.hamiltonian import Hamiltonian, read_about
from manybody.sources.many_body import SPLITS, draw, make, refuse_unequal, self_test
from manybody.sources.tuples import colour_bins, site_tuples, sorted_colours

SIGNS = dict(vectors=50, variables="signs", probability=0.8)
SOURCE = dict(
    kind="many-body", order=3, length=6, vocabulary=3, couplings=SIGNS, colours="potts",
    logit_scale=2.0, sweeps=10, sequences=dict(train=600, validation=200, test=100), seed=0,
)  # fmt: skip


def run(source: dict, folder, threads: int = 1) -> dict:
    out = {split: folder / f"{split}.parquet" for split in SPLITS}
    make(source, "toy", folder / "hamiltonian.safetensors", out, threads)
    return {"hamiltonian": folder / "hamiltonian.safetensors", **out}


def bad_file(folder, name: str, tensor: np.ndarray) -> dict:
    path = folder / "own.safetensors"
    save_file({name: tensor}, path)
    return {name: {"file": str(path)}}


def test_writes_the_hamiltonian_and_three_tested_splits(tmp_path):
    files = run(SOURCE, tmp_path)
    hamiltonian = Hamiltonian.load(files["hamiltonian"])
    expected, about = draw(SOURCE)
    np.testing.assert_array_equal(hamiltonian.couplings, expected.couplings)
    np.testing.assert_array_equal(hamiltonian.colours, expected.colours)
    assert hamiltonian.beta == expected.beta
    kept = read_about(files["hamiltonian"])
    assert len(kept.pop("sha256")) == 64
    found = kept.pop("equilibrium")
    assert (found["method"], found["chains"]) == ("exact", 900 + equilibrium.CHECKED)
    assert found["chance"] > 1e-4
    assert kept == {**about, "source": "toy"}
    assert sum(about["shares"]) == pytest.approx(1.0)
    for split in SPLITS:
        sequences = Sequences.open(files[split])
        assert sequences.tokens.shape == (SOURCE["sequences"][split], 6)
        assert sequences.vocabulary == 3
        test = self_test(hamiltonian, sequences.tokens)
        assert sequences.about["self_test"] == pytest.approx(test)
        assert abs(test["difference"]) < 4 * test["standard_error"]
        assert sequences.about["split"] == split


def test_same_seed_same_bytes_for_any_threads(tmp_path):
    first, second = run(SOURCE, tmp_path / "one"), run(SOURCE, tmp_path / "two", threads=3)
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name


def test_a_split_and_j_do_not_depend_on_the_size_of_the_others(tmp_path):
    longer = {**SOURCE, "sequences": dict(train=300, validation=250, test=100)}
    first, second = run(SOURCE, tmp_path / "one"), run(longer, tmp_path / "two")
    tokens = [
        [Sequences.open(files[split]).tokens for split in SPLITS] for files in (first, second)
    ]
    np.testing.assert_array_equal(tokens[0][0][:300], tokens[1][0])
    np.testing.assert_array_equal(tokens[0][1], tokens[1][1][:200])
    np.testing.assert_array_equal(tokens[0][2], tokens[1][2])
    assert (tokens[0][0][:100] != tokens[0][2]).any()
    hamiltonians = [Hamiltonian.load(files["hamiltonian"]) for files in (first, second)]
    np.testing.assert_array_equal(hamiltonians[0].couplings, hamiltonians[1].couplings)
    other, made = draw({**SOURCE, "seed": 1})
    assert made["seed"] == 1
    assert (other.couplings != hamiltonians[0].couplings).any()


@pytest.mark.parametrize("sweeps", [0, 1])
def test_samples_far_from_the_law_are_refused_and_nothing_is_written(tmp_path, sweeps):
    source = {**SOURCE, "sweeps": sweeps, "length": 8, "logit_scale": 4.0}
    source["sequences"] = dict(train=20_000, validation=200, test=100)
    with pytest.raises(SourceError, match=f"sweeps: after {sweeps} sweeps the train split"):
        run(source, tmp_path)
    assert not list(tmp_path.iterdir())


# Random signs of mean zero in J and U: many valleys, which chains do not leave in 15 sweeps.
RUGGED = dict(vectors=20, variables="signs", probability=0.5)
GLASSY = {
    **SOURCE, "order": 4, "couplings": RUGGED, "colours": RUGGED, "sweeps": 15,
    "sequences": dict(train=20_000, validation=200, test=200),
}  # fmt: skip


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(
    # S, seed, and the total variation from the enumerated law that exact samples do not have
    ("scale", "seed", "least"),
    [(2.0, 2, 0.02), (5.0, 1, 0.3)],
)
def test_trapped_chains_obey_every_conditional_and_are_refused(
    tmp_path, monkeypatch, scale, seed, least, counted
):
    source = {**GLASSY, "logit_scale": scale, "seed": seed}
    model, _ = draw(source)
    tokens, _ = gibbs.sample(model, 20_000, 15, np.random.SeedSequence(3))
    refuse_unequal(self_test(model, tokens), "train", source, "")  # says nothing of it
    law = enumeration.probabilities(model)
    counts = np.bincount(enumeration.numbers(tokens, 3), minlength=len(law))
    floor = np.sqrt(2 * law * (1 - law) / np.pi / 20_000).sum() / 2
    assert np.abs(counts / 20_000 - law).sum() / 2 > floor + least
    if not counted:
        monkeypatch.setattr(enumeration, "STATES", 1)
    said = r"trapped near their start: .*lower logit_scale \(S = "
    with pytest.raises(SourceError, match=said) as caught:
        run(source, tmp_path)
    assert ("law of all states" if counted else "from the lowest energy") in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("counted", [True, False])
def test_chains_that_move_between_valleys_pass(tmp_path, monkeypatch, counted):
    """The Hamiltonian of the trapped chains, so warm that they are not."""
    if not counted:
        monkeypatch.setattr(enumeration, "STATES", 1)
    files = run({**GLASSY, "logit_scale": 0.5, "seed": 1, "sweeps": 20}, tmp_path)
    found = read_about(files["hamiltonian"])["equilibrium"]
    assert found["method"] == ("exact" if counted else "starts")
    assert found["chains"] == (20_400 if counted else 0) + equilibrium.CHECKED


def test_valleys_that_a_renaming_of_colours_makes_equal_are_one(monkeypatch):
    """All chains from one of them would keep its colours, and be refused for nothing."""
    strong = dict(vectors=20, variables="signs", probability=0.8)
    source = {**GLASSY, "length": 8, "couplings": strong, "colours": "potts", "logit_scale": 8.0}
    model, _ = draw(source)
    monkeypatch.setattr(enumeration, "STATES", 1)
    found = equilibrium.measure(model, np.empty((0, 8), np.int64), 15, np.random.SeedSequence(0))
    equilibrium.refuse_trapped(found, 15, "")
    assert found["cold"]["hamming"] == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.long
def test_the_sources_of_the_configs_are_in_equilibrium():
    """With the eight sweeps of the smoke test, fewer than the demo's, against all 5^10 states."""
    law = dict(vectors=1000, variables="signs", probability=0.8)
    source = {**GLASSY, "length": 10, "vocabulary": 5, "couplings": law, "colours": "potts"}
    model, _ = draw({**source, "logit_scale": 5.0, "seed": 0})
    none = np.empty((0, 10), np.int64)
    found = equilibrium.measure(model, none, 8, np.random.SeedSequence(0), 2)
    equilibrium.refuse_trapped(found, 8, "")
    assert found["method"] == "exact"


def test_frozen_chains_are_refused_with_a_scale_that_moves(tmp_path):
    # Couplings of both signs between all pairs leave no colour free at a low temperature.
    rng = np.random.default_rng(0)
    couplings = rng.normal(size=(8, 8))
    couplings = couplings + couplings.T
    np.fill_diagonal(couplings, 0.0)
    colours = rng.normal(size=(3, 3))
    save_file(
        {"couplings": couplings, "colours": colours + colours.T}, tmp_path / "own.safetensors"
    )
    own = {"file": str(tmp_path / "own.safetensors")}
    source = {
        **SOURCE, "order": 2, "length": 8, "couplings": own, "colours": own, "logit_scale": 1e6,
    }  # fmt: skip
    out = tmp_path / "out"
    with pytest.raises(SourceError, match=r"logit_scale: at S = 1000000.0 the chains") as caught:
        run(source, out)
    assert not out.exists()
    scale = float(str(caught.value).split("S = ")[-1].split()[0])
    hamiltonian, _ = draw({**source, "logit_scale": scale})
    _, changed = gibbs.sample(hamiltonian, 500, 10, np.random.SeedSequence(3))
    assert changed[5:].mean() > 1e-3


def test_a_hamiltonian_without_variance_is_refused(tmp_path):
    # One vector of bits without two ones makes J zero.
    bits = dict(vectors=1, variables="bits", probability=1e-9)
    with pytest.raises(SourceError, match="zero variance"):
        run({**SOURCE, "couplings": bits}, tmp_path)


def test_own_tensors_are_taken(tmp_path):
    drawn, _ = draw(SOURCE)
    own = bad_file(tmp_path, "couplings", 2.0 * drawn.couplings)
    hamiltonian, about = draw({**SOURCE, **own})
    np.testing.assert_array_equal(hamiltonian.couplings, 2.0 * drawn.couplings)
    assert hamiltonian.beta == pytest.approx(drawn.beta / 2)
    assert about["parameters"]["couplings"] == own["couplings"]


@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("couplings", (0, 1, 2), 0.5, "couplings[0, 1, 2] = "),
        ("couplings", (1, 1, 1), 0.25, "[1, 1, 1] = 0.25: expected 0 where two sites coincide"),
        ("couplings", None, None, "shape (5, 5, 5), expected (6, 6, 6)"),
        ("colours", (0, 1, 1), 0.5, "symmetric"),
        ("colours", (2, 2, 2), np.inf, "colours[2, 2, 2] = inf, expected finite"),
    ],
)
def test_own_tensors_that_do_not_fit_are_refused(tmp_path, name, place, value, said):
    tensor = getattr(draw(SOURCE)[0], name).copy()
    if place is None:
        tensor = np.ascontiguousarray(tensor[:5, :5, :5])
    else:
        tensor[place] += value
    with pytest.raises(SourceError) as caught:
        draw({**SOURCE, **bad_file(tmp_path, name, tensor)})
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{name}.file: {tmp_path}")


def test_files_without_the_tensor_are_refused(tmp_path):
    colours = bad_file(tmp_path, "colours", draw(SOURCE)[0].colours)["colours"]
    with pytest.raises(SourceError, match="holds no tensor 'couplings'"):
        draw({**SOURCE, "couplings": colours})
    with pytest.raises(SourceError, match="not a readable safetensors file"):
        draw({**SOURCE, "couplings": {"file": str(tmp_path / "absent")}})


def test_tables_of_sites_and_colours():
    assert site_tuples(4, 2)[1].tolist() == [[0, 2], [0, 3], [2, 3]]
    assert site_tuples(20, 3).shape == (20, 969, 3)
    bins, rows = colour_bins(4, 3), sorted_colours(4, 3)
    assert len(rows) == 20
    for colours in np.ndindex(4, 4, 4):
        assert tuple(rows[bins[colours]]) == tuple(sorted(colours))
    assert colour_bins(5, 0) == 0
