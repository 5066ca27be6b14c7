"""Wrong weights in a series are named; a series as it was trained is not doubted."""

from itertools import combinations

import numpy as np
import pytest
import torch
import trained_series
from trained_series import linear, spaced

from manybody.models.pretrained import audit, layout

# Optimizer, rate, schedule, steps, steps of warm-up, weight decay
CLEAN = [
    ("adamw", 1e-3, "cosine", spaced(250, 1.5), 0, 0.0),
    ("adamw", 3e-3, "cosine", linear(250), 20, 0.1),
    ("adamw", 1e-2, "constant", linear(250), 0, 0.0),
    ("adamw", 1e-2, "constant", linear(250), 0, 0.3),
    ("adamw", 3e-3, "constant", spaced(400), 0, 0.1),
    ("adamw", 3e-2, "cosine", linear(250), 30, 0.1),
    ("adamw", 3e-4, "linear", spaced(250), 0, 0.0),
    ("adamw", 1e-3, "stable-decay", linear(250), 20, 0.0),
    ("adamw", 1e-2, "stable-decay", linear(250), 0, 0.1),
    ("adamw", 3e-3, "to-a-tenth", spaced(400, 1.5), 40, 0.1),
    ("adamw", 1e-3, "cosine", linear(400), 40, 0.01),
    ("adamw", 1e-4, "constant", linear(250), 0, 0.0),
    ("adamw", 3e-2, "constant", linear(250), 0, 0.1),
    ("adamw", 1e-3, "linear", linear(400), 0, 1.0),
    ("adamw", 1e-2, "cosine", linear(600), 60, 0.1),
    ("sgd", 0.1, "cosine", linear(250), 0, 0.0),
    ("sgd", 0.5, "constant", linear(250), 0, 1e-3),
    ("sgd", 0.03, "linear", spaced(250, 1.5), 0, 0.0),
    ("sgd", 0.3, "cosine", spaced(250, 1.5), 30, 0.0),
    ("sgd", 1.0, "linear", linear(250), 10, 0.0),
]
FACTOR = 1.5  # by which steps differ that change places


def trained(number):
    *settings, warmup, decay = CLEAN[number]
    return trained_series.weights(*settings, seed=number, warmup=warmup, decay=decay)


def taken(weights, folder):
    """Marks and losses of weights by step, by way of their files."""
    found = {}
    for step, (tensors, _) in weights.items():
        place = folder / f"step-{step}"
        trained_series.save(place, tensors)
        read = layout.read(place, place.name)
        found[step] = audit.take(place, read, read.config, {"origin": str(place)}, folder / "marks")
    return found, {step: (loss, 0.01) for step, (_, loss) in weights.items()}


OTHERS = [pytest.param(number, marks=pytest.mark.long) for number in (5, 9)]


@pytest.fixture(
    scope="module", params=[0, *OTHERS], ids=lambda number: "-".join(CLEAN[number][:3:2])
)
def series(request, tmp_path_factory):
    return taken(trained(request.param), tmp_path_factory.mktemp("series"))


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(CLEAN)))
def test_a_series_as_it_was_trained_is_not_doubted(number, tmp_path):
    assert audit.suspects(*taken(trained(number), tmp_path)) == {}


def exchanged(found, one, other):
    """Marks or losses with what two steps hold exchanged."""
    return {**found, one: found[other], other: found[one]}


def test_two_steps_that_changed_places_are_named(series):
    found, losses = series
    pairs = [
        (one, other)
        for one, other in combinations(found, 2)
        if other >= max(FACTOR * one, 1) and (one, other) != (0, max(found))
    ]
    assert len(pairs) > 30
    for pair in pairs[:: max(1, len(pairs) // 12)]:
        named = audit.suspects(exchanged(found, *pair), exchanged(losses, *pair))
        assert set(pair) <= named.keys()
        assert len(named) <= 3


def test_a_later_checkpoint_under_an_earlier_name_is_named(series):
    found, losses = series
    steps = list(found)
    for early, late in ((2, 6), (4, 8), (1, len(steps) - 2)):
        wrong, right = steps[early], steps[late]
        # To the last bit: the later step keeps its own weights.
        named = audit.suspects({**found, wrong: found[right]}, losses)
        assert list(named) == [wrong]
        assert f"those of step {right}, to the last bit" in " ".join(named[wrong])
        # And where the later step itself is not in the series.
        others = {step: mark for step, mark in found.items() if step != right}
        named = audit.suspects({**others, wrong: found[right]}, {})
        assert list(named) == [wrong]


def test_equal_weights_of_neighbours_are_both_doubted(series):
    found, losses = series
    one, other = list(found)[3:5]
    assert {one, other} == audit.suspects({**found, one: found[other]}, losses).keys()


def test_three_checkpoints_of_which_any_may_be_out_of_place_are_all_doubted():
    places = np.array([1.0, 9.0, 5.0])
    assert audit.out_of_order(abs(places[:, None] - places)) == {0, 1, 2}


def test_one_file_of_another_step_is_named(tmp_path):
    steps = trained(7)
    found = {}
    for step, (tensors, _) in steps.items():
        if step == 100:
            later = steps[225][0]
            tensors = {**tensors, **{name: later[name] for name in sorted(tensors)[1::2]}}
        place = tmp_path / f"step-{step}"
        trained_series.save(place, tensors, shards=2)
        read = layout.read(place, place.name)
        found[step] = audit.take(place, read, read.config, {"at": step}, tmp_path / "marks")
    named = audit.suspects(found, {})
    assert 100 in named
    assert "model-00002-of-00002.safetensors" in " ".join(named[100])


def test_other_shapes_and_another_config_are_named(series):
    found, losses = series
    one, other = list(found)[2], list(found)[5]
    wider = {**found[one].tensors, "head.bias": ("F32", [41], "model.safetensors")}
    changed = {one: found[one]._replace(tensors=wider)}
    changed[other] = found[other]._replace(config={**found[other].config, "n_head": 3})
    named = audit.suspects({**found, **changed}, losses)
    assert set(named) == {one, other}
    assert "tensors differ" in named[one][0]
    assert "n_head" in named[other][0]


def test_a_loss_that_jumps_is_named(series):
    found, losses = series
    step = list(found)[5]
    spoilt = {**losses, step: (losses[0][0] + 1, 0.01)}
    assert "jumps from" in audit.suspects(found, spoilt)[step][0]
    assert "not finite" in audit.suspects(found, {**losses, step: (np.nan, 0.0)})[step][0]


def test_numbers_that_are_not_finite_are_named_and_hide_no_other_fault(series):
    found, losses = series
    one, early, late = (list(found)[k] for k in (3, 5, 8))
    spoilt = {**found[one].projections, "head.bias": np.full(40, np.nan)}
    wrong = {one: found[one]._replace(projections=spoilt), early: found[late]}
    named = audit.suspects({**found, **wrong}, losses)
    assert "head.bias holds numbers that are not finite" in named[one][0]
    assert set(named) == {one, early}


def test_few_checkpoints_are_not_doubted(series):
    found, losses = series
    for count in (0, 1, 2, 3):
        few = dict(list(found.items())[::4][:count])
        assert audit.suspects(few, {step: losses[step] for step in few}) == {}


def test_projections_keep_distances():
    generator = torch.Generator().manual_seed(0)
    ratios = []
    for number in range(20):
        apart = torch.randn(300, 1000, generator=generator) * torch.rand(1000, generator=generator)
        one = torch.randn(300, 1000, generator=generator)
        pair = [audit.projection(part, f"tensor {number}") for part in (one, one + apart)]
        ratios.append(((pair[1] - pair[0]) ** 2).sum() / float((apart**2).sum()))
    assert np.mean(ratios) == pytest.approx(1, abs=0.02)  # sd of one: (2 / 4096)^1/2
    assert np.std(ratios) == pytest.approx((2 / audit.SIZE) ** 0.5, rel=0.5)


def test_distances_do_not_depend_on_the_units_of_a_tensor(series):
    found = list(series[0].values())
    scaled = [
        mark._replace(
            projections={**mark.projections, "up.weight": 50 * mark.projections["up.weight"]}
        )
        for mark in found
    ]
    np.testing.assert_allclose(
        audit.distances(scaled), audit.distances(found), rtol=1e-4, atol=1e-6
    )
