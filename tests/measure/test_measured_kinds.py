"""The kinds of the block `spectra` that are measured of a run's checkpoints at once."""

import numpy as np
import planted_runs
import pytest
import torch

from manybody import models
from manybody.data.hamiltonian import Hamiltonian
from manybody.io import checkpoints, sequences, tables
from manybody.measure import divergences, flips, interactions, spectra, spectrum
from manybody.models import stored

LENGTH, VOCABULARY, STEPS = 5, 3, (0, 10)
SIZES = dict(vocabulary=VOCABULARY, length=LENGTH, layers=2, heads=2, width=8, mlp=16)


@pytest.fixture(params=["gpt", "bert"])
def run(request, tmp_path):
    """Manifest of a run with random weights, sequences, and a Hamiltonian's file."""
    description, named = {"architecture": request.param, **SIZES}, {}
    for step in STEPS:
        torch.manual_seed(step)
        named[step] = checkpoints.tensors(models.build(description))
    about = dict(description=description, source="toy", model="one")
    manifest = planted_runs.of_checkpoints(tmp_path / "run", named, **about)
    rng = np.random.default_rng(3)
    tokens = rng.integers(0, VOCABULARY, (20, LENGTH))
    sequences.write(tmp_path / "test.parquet", tokens, VOCABULARY, {})
    couplings = np.triu(rng.normal(size=(LENGTH, LENGTH)), 1)
    colours = rng.normal(size=(VOCABULARY, VOCABULARY))
    law = Hamiltonian(couplings + couplings.T, colours + colours.T, 0.4)
    law.save(tmp_path / "law.safetensors", {})
    return manifest, tmp_path / "test.parquet", tokens, tmp_path / "law.safetensors", law


def measured(run, entry, **given):
    """Values by step, quantity and order, after a round through a file."""
    manifest, test = run[:2]
    entry = dict(steps="all", sequences=16) | entry
    found, about = spectra.measure(
        manifest, test, entry, manifest.parent / ".parts", "job", **given
    )
    tables.write_spectra(manifest.parent / "found.parquet", found, about)
    table, _ = tables.read_spectra(manifest.parent / "found.parquet")
    return table.set_index(["step", "quantity", "order"])["value"]


def model_at(run, step):
    return stored.load_model(run[0], step, "cpu").double()


def truth(run):
    causal = stored.load_model(run[0], 0, "cpu").about.causal
    return flips.of_prefixes(run[4]) if causal else flips.of_law(run[4])


@pytest.mark.parametrize("drawn", [None, dict(pairs=8, contexts=2)])
def test_interactions_of_each_checkpoint_and_of_the_truth(run, drawn):
    entry = dict(kind="interactions", law="text", sizes=[0, 2], drawn=drawn)
    found, tokens = measured(run, entry, law=run[3]), run[2][:16]
    for model, step, name in (
        *((model_at(run, step), step, "J") for step in STEPS),
        (truth(run), 10, "truth J"),
    ):
        if drawn:
            expected = interactions.drawn(model, tokens, [0, 2], **drawn)
        else:
            expected = interactions.enumerated(model, tokens)
        for row in expected.itertuples():
            if row.size in (0, 2):
                assert found[step, name, row.size] == pytest.approx(row.value, rel=1e-4)
    assert len(found) == 2 * 3


def test_the_spectrum_of_the_truth_comes_along(run):
    found = measured(run, dict(kind="enumeration"), law=run[3])
    expected = spectrum.enumerated(truth(run), run[2][:16]).table
    for row in expected.itertuples():
        assert found[10, f"truth {row.quantity}", row.order] == pytest.approx(row.value)
    assert not any("truth" in quantity for step, quantity, _ in found.index if step == 0)


def test_divergences_from_enumerated_and_from_counted_n_grams(run):
    if not truth(run).causal:
        pytest.skip("of causal models alone")
    tokens = run[2][:16]
    found = measured(run, dict(kind="n-grams", orders=2), law=run[3])
    laws = divergences.references(divergences.of_hamiltonian(run[4]), tokens, 2)
    for model, step, name in ((model_at(run, 0), 0, "{}"), (truth(run), 10, "truth {}")):
        for row in divergences.divergences(model, tokens, laws).itertuples():
            expected = pytest.approx(row.value, rel=1e-4, abs=1e-6)
            assert found[step, name.format(row.quantity), row.order] == expected

    train = run[1].with_name("train.parquet")
    stream = np.random.default_rng(5).integers(0, VOCABULARY, (60, LENGTH))
    sequences.write(train, stream, VOCABULARY, {})
    found = measured(run, dict(kind="n-grams", orders=2), train=train)
    law = divergences.of_stream(stream.ravel(), VOCABULARY, 2)
    expected = divergences.divergences(
        model_at(run, 10), tokens, divergences.references(law, tokens, 2)
    )
    for row in expected.itertuples():
        assert found[10, row.quantity, row.order] == pytest.approx(row.value, rel=1e-4)
    assert len(found) == 2 * 4
