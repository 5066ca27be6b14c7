"""The many-body source: what it writes, that it depends on its seed alone, what it refuses."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from manybody.artifacts import ArtifactError
from manybody.hamiltonian import Hamiltonian, read_about
from manybody.sampling import gibbs
from manybody.sequences import Sequences
from manybody.sources import SourceError
from manybody.sources.many_body import SPLITS, draw, make, self_test
from manybody.tuples import colour_bins, multiplicities, site_tuples, sorted_colours

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
    other, _ = draw({**SOURCE, "seed": 1})
    assert (other.couplings != hamiltonians[0].couplings).any()


@pytest.mark.parametrize("sweeps", [0, 1])
def test_samples_far_from_the_law_are_refused_and_nothing_is_written(tmp_path, sweeps):
    source = {**SOURCE, "sweeps": sweeps, "length": 8, "logit_scale": 4.0}
    source["sequences"] = dict(train=20_000, validation=200, test=100)
    with pytest.raises(SourceError, match=f"sweeps: after {sweeps} sweeps the train split"):
        run(source, tmp_path)
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"order": 1}, "order: 1, expected k = 2, 3 or 4"),
        ({"order": 5}, "order: 5, expected k = 2, 3 or 4"),
        ({"length": 2}, "length: 2, expected at least order = 3"),
        ({"vocabulary": 1}, "vocabulary: 1, expected at least 2"),
        ({"couplings": {**SIGNS, "vectors": 0}}, "couplings.vectors: P = 0"),
        ({"colours": {**SIGNS, "vectors": 0}}, "colours.vectors: P = 0"),
        ({"couplings": {**SIGNS, "probability": 0.0}}, "couplings.probability: 0.0"),
        ({"colours": {**SIGNS, "probability": 1.0}}, "colours.probability: 1.0"),
        ({"couplings": {**SIGNS, "variables": "spins"}}, "couplings.variables: 'spins'"),
        ({"couplings": "potts"}, "couplings: 'potts'"),
        ({"colours": "clock"}, "colours: 'clock'"),
        ({"logit_scale": 0.0}, "logit_scale: S = 0.0"),
        ({"logit_scale": -1.0}, "logit_scale: S = -1.0"),
        ({"sweeps": -1}, "sweeps: -1"),
        ({"sequences": dict(train=10, validation=1, test=10)}, "sequences.validation: 1"),
    ],
)
def test_bad_input_is_refused_by_name(tmp_path, change, said):
    with pytest.raises(SourceError) as caught:
        run({**SOURCE, **change}, tmp_path)
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


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


def test_own_tensors_that_do_not_fit_are_refused(tmp_path):
    drawn, _ = draw(SOURCE)
    skew = drawn.couplings.copy()
    skew[0, 1, 2] += 0.5
    repeated = drawn.couplings.copy()
    repeated[1, 1, 1] = 0.25
    lopsided = drawn.colours.copy()
    lopsided[0, 1, 1] = 0.5
    endless = drawn.colours.copy()
    endless[2, 2, 2] = np.inf
    cases = [
        ("couplings", skew, "couplings[0, 1, 2] = "),
        ("couplings", repeated, "couplings[1, 1, 1] = 0.25: expected 0 where two sites coincide"),
        ("couplings", drawn.couplings[:5, :5, :5], "shape (5, 5, 5), expected (6, 6, 6)"),
        ("colours", lopsided, "symmetric"),
        ("colours", endless, "colours[2, 2, 2] = inf, expected finite"),
    ]
    for name, tensor, said in cases:
        own = bad_file(tmp_path, name, np.ascontiguousarray(tensor))
        with pytest.raises(SourceError) as caught:
            draw({**SOURCE, **own})
        assert said in str(caught.value)
        assert str(caught.value).startswith(f"{name}.file: {tmp_path}")
    with pytest.raises(SourceError, match="holds no tensor 'couplings'"):
        draw({**SOURCE, "couplings": bad_file(tmp_path, "colours", drawn.colours)["colours"]})
    with pytest.raises(SourceError, match="not a readable safetensors file"):
        draw({**SOURCE, "couplings": {"file": str(tmp_path / "absent")}})


def test_a_damaged_hamiltonian_is_refused_by_file(tmp_path):
    path = tmp_path / "h.safetensors"
    hamiltonian, about = draw(SOURCE)
    hamiltonian.save(path, about)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ArtifactError, match=r"h\.safetensors is not a readable"):
        Hamiltonian.load(path)
    save_file(
        dict(couplings=np.ones((3, 3)), colours=np.eye(3), beta=np.ones(1)),
        path,
    )
    with pytest.raises(
        ArtifactError, match=r"h\.safetensors is refused: its tensors are not the ones"
    ):
        Hamiltonian.load(path)


def test_tables_of_sites_and_colours():
    assert site_tuples(4, 2)[1].tolist() == [[0, 2], [0, 3], [2, 3]]
    assert site_tuples(20, 3).shape == (20, 969, 3)
    bins, rows = colour_bins(4, 3), sorted_colours(4, 3)
    assert len(rows) == 20
    for colours in np.ndindex(4, 4, 4):
        assert tuple(rows[bins[colours]]) == tuple(sorted(colours))
    assert multiplicities(4, 3).sum() == 64
    assert colour_bins(5, 0) == 0
