"""Figure order: what planted times say, and clones that some students predict for the others."""

import math

import numpy as np
import pandas as pd
import planted_order
import pytest
from claimed import by_name
from configs import load

from manybody.data import code
from manybody.io import sequences, tables as stored
from manybody.io.manifest import write_manifest
from manybody.measure import clone_times, order_times
from manybody.papers import style
from manybody.papers.inputs import with_files
from manybody.papers.simplicity import code_clones, order
from manybody.pipeline.check import check

LAW = {
    "kind": "code",
    "length": 6,
    "groups": [
        {"order": 3, "count": 1, "information": 0.2},
        {"order": 2, "count": 1, "information": 0.1},
    ],
    "seed": 0,
}


@pytest.fixture(scope="module")
def found():
    return by_name(order.claims(planted_order.of_figure(200)))


@pytest.mark.long
def test_planted_times_are_judged_as_they_were_planted(found):
    """An order costs e^1.1, information takes -.6 of its log: with 64 times less pairs are late."""
    verdicts = {name: claim.verdict for name, claim in found.items()}
    assert verdicts["equal-information"] == verdicts["controls"] == verdicts["log-linear"] == "yes"
    assert verdicts["order-alone"] == verdicts["clones"] == "no"
    assert found["equal-information"].low < 1.1 < found["equal-information"].high
    assert found["exchange"].low < 1.1 / 0.6 < found["exchange"].high
    assert found["clones"].value == 0.75
    assert (found["clones-trained"].verdict, found["clones-trained"].value) == ("yes", 1.0)
    (foothold,) = found["foothold"].parts
    assert abs(foothold.value + 0.5) < foothold.half
    # Alone no foothold was planted: the quad is as late beside pairs.
    assert verdicts["beside"] == "undecided"


@pytest.mark.long
def test_of_three_students_at_equal_information_one_claim_is_judged():
    """The demo's: no information to tell from, no control, no clone."""
    times = planted_order.times(3, ["ladder"])
    tables = order.tables_of(times[times["cell"] == "L = 12"], bootstraps=20)
    claims = by_name(order.claims(tables))
    assert claims["exchange"].verdict == "not-run"
    run = [name for name, one in claims.items() if one.verdict != "not-run"]
    assert run == ["equal-information"]
    assert len(claims["equal-information"].parts) == 2  # at half and at a twentieth
    assert set(tables.drawn["panel"]) == {"a", "a, median", "b"}
    order.draw(tables)


@pytest.mark.long
def test_an_order_that_no_student_learns_has_no_factor():
    """Its times stay in the fit of the ladder, which other laws of it make finite."""
    times = planted_order.times(3)
    lost = times["cell"].isin(["SGD", "c = 0.05", "L = 24"]) & (times["order"] == 3)
    lost |= times["nested"] | (times["cell"] == "quads")
    tables = order.tables_of(times.assign(reached=times["reached"] & ~lost), bootstraps=20)
    claims = by_name(order.claims(tables))
    for name in ("controls", "foothold", "beside"):
        assert claims[name].verdict == "undecided"
        assert np.isnan(claims[name].low)
    medians = style.series(tables.drawn, "a, median", "L = 24").set_index("x")["y"]
    assert np.isfinite(medians[2])
    assert np.isnan(medians[3])  # only a bound
    assert claims["order-alone"].verdict == "no"  # by the law whose pairs tell least
    assert "log-linear" not in claims
    assert np.isfinite(claims["exchange"].value)
    assert np.isnan(tables.drawn[tables.drawn["panel"] == "b"].set_index("series")["y"]["SGD"])
    order.draw(tables)


@pytest.mark.long
def test_intervals_that_tell_little_confirm_neither_a_form_nor_clones():
    clones = {"all": clone_times.Saturation(5.0, 2.0, 6.0, False, 2.5)}
    tables = order.tables_of(planted_order.times(2, ["ladder"]), clones, bootstraps=9)
    claims = {one.id.rpartition("/")[2]: one.verdict for one in order.claims(tables)}
    assert claims["log-linear"] == claims["clones"] == "undecided"
    # A time that is seen, and not predicted, counts as a miss.
    assert code_clones.covered([clone_times.Saturation(math.nan, math.inf, 4.0, False, 2.0)], False)


def test_students_that_learn_nothing_leave_all_undecided():
    times = planted_order.times(2, ["ladder"]).assign(reached=False)
    tables = order.tables_of(times[times["cell"] == "L = 12"], bootstraps=2)
    assert [one.verdict for one in order.claims(tables)] == ["undecided", "not-run"]
    order.draw(tables)


@pytest.mark.parametrize("slower", [1.0, 2.0])
def test_a_clone_is_predicted_by_some_students_and_seen_in_the_others(tmp_path, slower):
    """Students whose shares rise at planted steps, tested by the equation and what other logits
    add: half predicts half, but where the others are slower. A part without information has no
    time, predicted or seen."""
    config = load("order.yaml")
    config["sources"]["code-12"] |= LAW | {"length": 6}
    changes = [{"keep": [2]}, {"keep": [3]}, {"scale": 0.25}, {"scale": 0.01}, {"scale": 0.5}]
    names, laws = ["pairs", "triples", "weak", "none", "drawn"], [LAW | one for one in changes]
    # The last is a clone of a generator, which is known by its sequences alone.
    drawn = [tmp_path / f"{name}.parquet" for name in names[:-1]] + [tmp_path / "sweep-7.parquet"]
    for path, entry in zip(drawn, laws, strict=True):
        sequences.write(path, code.of(entry).sample(20_000, np.random.default_rng(3)), 2, {})
    manifest = tmp_path / "manifest.json"
    write_manifest(manifest, "clones", ["sweep-7.parquet"], {"information": {"2": 0.1, "3": 0.3}})

    law, random = code.of(LAW), np.random.default_rng(0)
    steps = np.unique(np.geomspace(1, 3000, 60).round()).astype(int)
    clocks, losses, runs = {}, {}, []
    for seed in range(6):
        late = np.exp(random.normal(0, 0.1)) * np.array([300.0, 80.0])
        late *= slower if seed > 2 else 1.0
        shares = 1 / (1 + (late / steps[:, None]) ** 3)
        beside = 0.001 * np.exp(-steps / 900)
        least, own = (clone_times.clone_losses(law, law.means, a) for a in (shares**0, shares))
        gap = (own - least + beside) * 6 / law.orders.sum()
        frames = [
            pd.DataFrame({"step": steps, "term": term, "order": law.orders[term], "gap": gap,
                          "information": 0.2, "nested": False, "share": 0.0,
                          "own_share": shares[:, term]})
            for term in (0, 1)
        ]  # fmt: skip
        clocks[seed] = tmp_path / f"clock-{seed}.parquet"
        stored.CLOCKS.write(clocks[seed], pd.concat(frames), {})
        start = 0.2 * (steps < 10) + beside  # what random weights and other logits add
        exact = [clone_times.clone_losses(law, code.of(entry).means, shares) for entry in laws]
        rows = [
            pd.DataFrame({"target": name, "step": steps, "sequence": 0, "correct": 0,
                          "loss_sum": 6 * (loss + start), "predictions": 6})
            for name, loss in zip(names, exact, strict=True)
        ]  # fmt: skip
        losses[seed] = tmp_path / f"losses-{seed}.parquet"
        stored.LOSSES.write(losses[seed], pd.concat(rows), {})
        targets = {"drawn": {"clone": "drawn", "sweep": 7}}
        runs.append({"evaluation": "e", "seed": seed, "targets": targets})
    block = order.Block.model_validate(
        {"ladder": [{"label": "L", "source": "code-12", "model": "code-bert", "seeds": [*clocks]}],
         "clones": {"evaluation": "code-clones", "predicted": [0, 1, 2]}}
    )  # fmt: skip
    given = order.Inputs.of(block, config).model_copy(update={"spectra": []})
    plain = given.model_dump() | {
        "runs": runs,
        "laws": {"": LAW, **dict(zip(names[:-1], laws, strict=False))},
        "parts": {name: {"source": name} for name in names[:-1]},
        "clones": [{"clone": "drawn"}],
    }
    files = {
        "clocks": [str(path) for path in clocks.values()],
        "losses": [str(path) for path in losses.values()],
        "runs": [""] * len(runs),
        "clones": str(manifest),
        "drawn": list(map(str, drawn[:-1])),
    }
    inputs = with_files(order.Inputs.model_validate(plain), files)
    found = code_clones.read(inputs, block)
    assert set(found) == set(names)
    assert np.isnan(found.pop("none")[:3:2]).all()
    for one in found.values():
        assert abs(one.seen - one.told - math.log(slower)) <= one.half < math.log(2)
    assert [name for name, one in found.items() if one.trained] == ["drawn"]
    kappa = {name: one.kappa for name, one in found.items()}
    assert 2 < kappa.pop("weak") < 3
    assert kappa == pytest.approx({"pairs": 2, "triples": 3, "drawn": 2.75})
    assert math.isnan(clone_times.kappa({}))
    # Triples are late, and a weak clone of both saturates before either is whole.
    assert found["triples"].told > found["pairs"].told + 1
    assert found["weak"].told < found["drawn"].told < found["triples"].told
    assert order.read_times(inputs)["student"].nunique() == 6
    table = stored.CLOCKS.read(clocks[0])[0]
    for given, value in ((table, "gap"), (table.assign(gap=math.nan), "own_share")):
        stored.CLOCKS.write(clocks[0], given, {})
        times = order.read_times(inputs).query("student == 0")
        assert times["time"].tolist() == order_times.times(given, value)["time"].tolist()
    assert set(times["left"]) == set(order_times.LEFT)


def test_the_shipped_experiment_asks_for_the_runs_of_all_its_cells():
    config = load("order.yaml")
    given = order.Inputs.of(check(config).figures.simplicity.order, config)
    counts = [sum(map(len, cells.values())) for cells in given.clocks.values()]
    assert counts == [40, 15, 10, 20, 45]
    assert (len(given.runs), len(given.laws)) == (10, 13)
