"""Figure 2 from synthetic runs with planted plateaus, ends and orders of layers."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from manybody.claims.identities import many_body as many_body_identities
from manybody.claims.simplicity import staircase as staircase_claims
from manybody.claims.simplicity import staircase_runs
from manybody.files import atomic, sequences, tables
from manybody.files.checkpoints import write_tensors
from manybody.files.manifest import write_manifest
from manybody.plotting import style
from manybody.plotting.simplicity import fig2, fig2_literal, fig2_seeds
from manybody.sources.hamiltonian import Hamiltonian
from manybody.training.run_files import write_history

LENGTH, VOCABULARY, HELD_OUT = 10, 5, 4096
SOURCE = {
    "kind": "many-body",
    "order": 4,
    "length": LENGTH,
    "vocabulary": VOCABULARY,
    "couplings": {"vectors": 1000, "variables": "signs", "probability": 0.8},
    "colours": "potts",
    "logit_scale": 5.0,
    "sweeps": 15,
    "sequences": {"train": 25600, "validation": HELD_OUT, "test": HELD_OUT},
    "seed": 0,
}
LINES = {2: 1.5220, 3: 1.4455, 4: 1.4133}
TRAIN = {2: 1.5196, 3: 1.4482, 4: 1.4109}
TRUTH = 1.4111
STEPS_PER_EPOCH = 100
EPOCHS = [*range(5), *np.arange(5, 201, 2.5)]
FEW_EPOCHS = [*range(5), *range(20, 201, 20)]
# Epochs of the drops below the 2-body line and below the 3-body line; epochs at which layer 1, 2
# and 3 move. What never happens in 200 epochs is at 10^4.
NEVER = 1e4
SEEDS = {
    0: ((27, 51), (51, 27, 2)),
    1: ((32, NEVER), (32, NEVER, 2)),
    2: ((47, 120), (120, 47, 3)),
    3: ((NEVER, NEVER), (NEVER, NEVER, 2)),
    4: ((90, 195), (195, 90, 2)),
    5: ((60, NEVER), (60, NEVER, 2)),
    6: ((22, 24), (24, 22, 2)),
    7: ((70, 130), (70, 130, 3)),
}
PROTOCOL = {seed: ((20 + 3 * seed, 45 + 6 * seed), (45, 20, 2)) for seed in range(12)}


@pytest.fixture(scope="module", autouse=True)
def unsynced():
    """A thousand small files that need not survive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic.os, "fsync", lambda handle: None)
        yield


def staircase_loss(epochs, drops, truth=1.4125):
    """From ln 5 to the 2-body line at epoch 2, then one line down at each drop."""
    levels = [math.log(VOCABULARY), LINES[2], LINES[3], truth]
    loss = np.full(len(epochs), levels[0])
    for high, low, time in zip(levels, levels[1:], (1.0, *drops), strict=False):
        fallen = 1 / (
            1 + np.minimum(time / np.maximum(epochs, 1e-3), 1e3) ** (6 if time < 2 else 40)
        )
        loss += (low - high) * fallen
    return loss


def rows_of(epochs, loss, tokens):
    return [
        {
            "step": round(epoch * STEPS_PER_EPOCH),
            "epoch": float(epoch),
            "learning_rate": 0.1,
            "split": "validation",
            "loss": float(value),
            "loss_se": 0.0015,
            "accuracy": 0.3,
            "tokens": tokens,
        }
        for epoch, value in zip(epochs, loss, strict=True)
    ]


def write_run(folder, description, rows, weights, train_loss=1.4, seed=0, **about):
    """A run's folder as the training leaves it; `weights`: step -> tensors."""
    folder.mkdir(parents=True)
    write_history(folder / "history.parquet", rows)
    for step, named in weights.items():
        write_tensors(folder / f"step-{step}.safetensors", named, {"step": step})
    final = {"train_loss": train_loss}
    known = dict(description=description, source="many-body", seed=seed, final=final)
    about = {**known, "steps": list(weights), **about}
    names = ["history.parquet", *(f"step-{step}.safetensors" for step in weights)]
    write_manifest(folder / "manifest.json", "model", names, about)
    return folder / "manifest.json"


def write_network(folder, layers, drops=(), moves=None, epochs=EPOCHS, seed=0, held_out=HELD_OUT):
    """A network whose loss falls at `drops` and whose layer m passes MSD 0.1 at `moves[m - 1]`."""
    epochs = np.asarray(epochs, float)
    description = dict(architecture="factored", layers=layers, length=LENGTH, vocabulary=VOCABULARY)
    loss = staircase_loss(epochs, drops)
    draws = np.random.default_rng(seed)
    loss = loss + draws.normal(0, 3e-4, len(epochs)) * np.minimum(epochs, 1)
    moves = moves or (NEVER,) * (layers - 1) + (2,)
    weights = {}
    for epoch in epochs:
        named = {}
        for layer, time in enumerate(moves):
            # sqrt(0.5 x) with x = 1/2 is above 0.1 at the move and not before.
            shift = math.sqrt(0.5 / (1 + (time / max(epoch, 1e-9)) ** 8) * (epoch >= time))
            shift += 1e-4 * epoch**0.5
            named[f"attention.{layer}"] = torch.full((LENGTH, LENGTH), 0.1 + shift)
            named[f"left.{layer}"] = torch.full((VOCABULARY, VOCABULARY), -0.1 + shift)
        weights[round(epoch * STEPS_PER_EPOCH)] = named
    rows = rows_of(epochs, loss, held_out * LENGTH)
    return write_run(folder, description, rows, weights, seed=seed)


def write_line(folder, order, loss, train, held_out=HELD_OUT):
    sizes = dict(order=order, length=LENGTH, vocabulary=VOCABULARY)
    rows = rows_of([0], [loss], held_out * LENGTH)
    return write_run(folder, dict(architecture="energy", **sizes), rows, {0: {}}, train)


def write_source(folder, order=4, held_out=HELD_OUT, truth=TRUTH, difference=0.001):
    """A Hamiltonian with its document, and uniform validation sequences with a self-test."""
    folder.mkdir(parents=True, exist_ok=True)
    couplings = np.zeros((LENGTH,) * order)
    for sites in np.ndindex(*couplings.shape):
        couplings[sites] = float(len(set(sites)) == order)
    colours = np.zeros((VOCABULARY,) * order)
    colours[(np.arange(VOCABULARY),) * order] = 1.0
    made = Hamiltonian(couplings, colours, 0.1)
    made.save(folder / "hamiltonian.safetensors", {"shares": made.shares().tolist()})
    test = dict(cross_entropy=truth, entropy=truth - difference, difference=difference)
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (held_out, LENGTH))
    about = {"self_test": {**test, "standard_error": 0.002}}
    sequences.write(folder / "validation.parquet", tokens, VOCABULARY, about)


BLOCK = {
    "source": "many-body",
    "networks": [
        {"model": "n1", "seeds": [0, 1, 2]},
        {"model": "n2", "seeds": [0, 1, 2]},
        {"model": "n3", "seeds": list(SEEDS)},
    ],
    "lines": ["two", "three", "four"],
    "truth": "true",
}


def make(folder, seeds=SEEDS, protocol=None, source=SOURCE, deep_epochs=EPOCHS, **of_source):
    """Everything that the figure of `BLOCK` needs: (files, block, context)."""
    write_source(folder / "sequences", order=source["order"], **of_source)
    held_out = of_source.get("held_out", HELD_OUT)
    paths = {}
    for seed in range(3):
        for model, layers, drops in (("n1", 1, ()), ("n2", 2, (21 + seed,))):
            moves = None if layers == 1 else (drops[0], 2)
            epochs = FEW_EPOCHS if layers == 1 else EPOCHS
            where = folder / model / f"seed-{seed}"
            paths[model, seed] = write_network(where, layers, drops, moves, epochs, seed, held_out)
    block = dict(BLOCK)
    for model, runs in (("n3", seeds), ("n3-protocol", protocol or {})):
        for seed, (drops, moves) in runs.items():
            where = folder / model / f"seed-{seed}"
            epochs = deep_epochs if model == "n3" else FEW_EPOCHS
            paths[model, seed] = write_network(where, 3, drops, moves, epochs, seed, held_out)
    block["networks"] = [*BLOCK["networks"][:2], {"model": "n3", "seeds": list(seeds)}]
    if protocol:
        block["protocols"] = [{"model": "n3-protocol", "seeds": list(protocol)}]
    for order, name in ((2, "two"), (3, "three"), (4, "four")):
        line = (order, LINES[order], TRAIN[order], held_out)
        paths[name, 0] = write_line(folder / name, *line)
    paths["true", 0] = write_line(folder / "true", source["order"], TRUTH, TRUTH, held_out)
    return files_of(paths, folder, block, source)


def files_of(paths, folder, block, source=SOURCE):
    runs = [["many-body", *run] for run in paths]
    context = {"models": runs, "sources": {"many-body": source}, "theory": []}
    files = {
        "models": list(paths.values()),
        "sequences": [folder / "sequences" / "validation.parquet"],
        "hamiltonians": [folder / "sequences" / "hamiltonian.safetensors"],
    }
    return files, block, context


# --- What is measured ----------------------------------------------------------------------------


def lines(order=4, fits=LINES, truth=TRUTH, marginals=1.6090):
    errors = {name: (loss, 0.0015) for name, loss in fits.items()}
    return staircase_runs.Lines((marginals, 0.001), errors, (truth, 0.0015), order, TRAIN)


def run_of(loss, epochs, moves=None):
    curve = pd.DataFrame({"epoch": epochs, "loss": loss, "loss_se": 0.0015, "tokens": 10})
    moved = pd.DataFrame(moves or {}, index=epochs if moves else None)
    return staircase_runs.Run({"description": {"layers": 3}}, curve, moved)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (TRUTH, "reached"),
        (1.4455 - 0.8001 * (1.4455 - TRUTH), "reached"),
        (1.4455 - 0.7999 * (1.4455 - TRUTH), "between"),
        (1.4000, "reached"),
        (1.4455, "on 3"),
        (1.4494, "on 3"),
        (1.4496, "between"),
        (1.4414, "between"),
        (1.5220, "on 2"),
        (1.5262, "above"),
        (1.6094, "above"),
        (math.inf, "diverged"),
        (math.nan, "diverged"),
    ],
)
def test_an_end_has_the_class_that_the_tolerances_say(end, expected):
    assert staircase_runs.classify(end, lines()) == expected
    assert expected in staircase_runs.classes(lines())


def test_an_end_at_the_very_edge_has_reached():
    unit = lines(fits={2: 2.0, 3: 1.0}, truth=0.0)
    edge = 1.0 - staircase_runs.REACHED
    assert unit.fraction(edge) == staircase_runs.REACHED  # no rounding between them
    assert staircase_runs.classify(edge, unit) == "reached"
    assert staircase_runs.classify(edge + 1e-9, unit) == "between"


def test_on_data_of_order_3_the_true_line_is_the_region_below_the_2_body_line():
    third = lines(order=3, fits={2: 1.52, 3: 1.45}, truth=1.449)
    assert third.below() == 2
    assert staircase_runs.classes(third)[:2] == ["reached", "on 2"]
    assert staircase_runs.classify(1.45, third) == "reached"
    assert staircase_runs.classify(1.47, third) == "between"


def test_without_lines_below_the_way_starts_at_single_sites():
    second = lines(order=2, fits={2: 1.5}, truth=1.5)
    assert second.below() == 1
    assert second.fraction(1.609) == 0
    assert staircase_runs.classify(1.5, second) == "reached"
    assert staircase_runs.classify(1.55, second) == "between"
    assert staircase_runs.classify(1.62, second) == "above"


def test_no_way_below_a_line_that_is_not_above_the_true_one_is_no_region():
    noisy = lines(fits={2: 1.5, 3: 1.41}, truth=1.411)
    assert math.isnan(noisy.fraction(1.40))
    assert staircase_runs.classify(1.411, noisy) == "on 3"


def test_a_plateau_is_as_long_as_the_time_of_its_checkpoints():
    epochs = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    run = run_of([1.6, 1.5, 1.5039, 1.5041, 1.4961, 1.4], epochs)
    # 1 stands for 0.5 to 1.5, 2 for 1.5 to 3, 4 is off the line, 8 for 6 to 12.
    assert run.dwell(1.5) == pytest.approx(1.0 + 1.5 + 6.0)
    assert run.spacing == pytest.approx(16 / 5)
    assert run_of([1.5], [0.0]).dwell(1.5) == 0


def test_the_chosen_seed_is_the_lower_median_of_the_ends():
    def group(*ends):
        runs = {seed: run_of([1.6, end], [0.0, 1.0]) for seed, end in enumerate(ends)}
        return staircase_runs.Group("n3", "n = 3", runs)

    assert group(1.45, 1.41, 1.52).chosen == 0
    assert group(1.45, 1.41, 1.52, 1.43).chosen == 3
    assert group(1.45, math.nan, math.inf).chosen == 1
    assert group(1.41, 1.41).chosen == 0
    assert group(1.5).chosen == 0


def test_a_layer_has_moved_at_the_first_checkpoint_above_the_threshold():
    moves = {1: [0, 0.05, 0.2], 2: [0, 0.1, 0.1], 3: [0, 0.3, 0.05]}
    found = run_of([1.6, 1.5, 1.5], [0.0, 2.0, 4.0], moves).escapes()
    assert found.to_dict() == {1: 4.0, 2: math.inf, 3: 2.0}


def displacement_of(folder, start, later, **description):
    """Displacement of a run of two checkpoints, epochs 0 and 2."""
    rows = rows_of([0, 2], [1.6, 1.5], 10)
    weights = {0: start, 200: later}
    path = write_run(folder, dict(architecture="factored", **description), rows, weights)
    return staircase_runs.read_run(path).displacement


def test_displacements_are_those_of_equation_6(tmp_path):
    # |A(t) - A(0)|^2 / L^2 = 1 and |V(t) - V(0)|^2 / |V|^2 = 4 are added, whatever L and |V|.
    start = {"attention.0": torch.zeros(2, 2), "left.0": torch.zeros(3, 3), "bias": torch.zeros(3)}
    later = {"attention.0": torch.ones(2, 2), "left.0": torch.full((3, 3), 2.0)}
    later["bias"] = torch.full((3,), 9.0)
    found = displacement_of(tmp_path / "run", start, later, layers=1)
    assert found[1].to_dict() == {0.0: 0.0, 2.0: pytest.approx(5.0)}


def test_displacements_are_those_of_the_values_and_maps_that_the_layer_uses(tmp_path):
    # V = P Q goes from [[1], [0]] [[1, 1]] to [[1], [2]] [[1, 1]]; the mean of its change is 2.
    left, right = torch.tensor([[1.0], [0.0]]), torch.ones(1, 2)
    moved = torch.tensor([[1.0], [2.0]])
    still = {"attention.0": torch.zeros(2, 2), "left.0": left, "right.0": right}
    found = displacement_of(tmp_path / "low rank", still, still | {"left.0": moved}, layers=1)
    assert found[1][2.0] == pytest.approx(2.0)
    # A = softmax(W) goes from 1/2, 1/2 to 1/4, 3/4 in one row of two.
    turned = {"attention.0": torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])}
    made = dict(layers=1, attention="softmax")
    found = displacement_of(tmp_path / "softmax", still, still | turned, **made)
    assert found[1][2.0] == pytest.approx(2 * 0.25**2 / 4)
    # Two heads, of which one moves as above, have half its displacement.
    heads = {name: torch.stack([value, value]) for name, value in still.items()}
    one = heads | {"left.0": torch.stack([left, moved])}
    found = displacement_of(tmp_path / "heads", heads, one, layers=1)
    assert found[1][2.0] == pytest.approx(1.0)


def test_single_site_marginals_are_an_entropy():
    tokens = np.array([[0, 1], [0, 0], [1, 1], [1, 0]])
    loss, error = staircase_runs.marginal_loss(tokens, 3)
    assert loss == pytest.approx(math.log(2))
    assert error == pytest.approx(0)
    uneven = np.array([[0], [0], [0], [1]])
    loss, error = staircase_runs.marginal_loss(uneven, 2)
    assert loss == pytest.approx(0.25 * math.log(4) + 0.75 * math.log(4 / 3))
    assert error == pytest.approx(np.std([0.0, 0, 0, math.log(3)], ddof=1) / 2)


# --- The figures ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return make(tmp_path_factory.mktemp("planted"), protocol=PROTOCOL)


@pytest.fixture(scope="module")
def drawn(planted):
    return fig2.draw(*planted)


def holds(found, text):
    """Answers of the claims that contain `text`."""
    mine = found[found["claim"].str.contains(text, regex=False)]
    assert len(mine), text
    return set(mine["holds"])


def value(found, text):
    (row,) = found[found["claim"].str.contains(text, regex=False)].itertuples()
    return row.value


def test_what_was_planted_is_what_the_checks_find(drawn):
    _, _, found = drawn
    for text in ("cross-entropy", "equally many", "line above", "does not beat", "set better"):
        assert holds(found, text) == {"confirmed"}
    for text in ("n = 1 ends", "n = 2 rests", "n = 2 ends"):
        assert holds(found, text) == {"yes"}
    # Seeds 0, 2 and 7 rest on both lines; seed 4 does too, but is still falling at the end.
    assert value(found, "rests on the 2-body and 3-body lines") == 6 / 8
    assert value(found, "80% of the way") == 4 / 8
    # Four of eight are between 16 and 84 %: no evidence for a quarter or more.
    assert holds(found, "80% of the way") == {"undecided"}
    assert holds(found, "last layer moves first") == {"yes"}
    # Seed 3 does not tell; layer 1 is before layer 2 in seeds 1, 5 and 7.
    assert value(found, "from the last to the first") == pytest.approx(4 / 7)
    assert holds(found, "from the last to the first") == {"no"}
    assert value(found, "protocol reaches") == 1 - 4 / 8
    assert holds(found, "protocol reaches") == {"yes"}
    gates = found[found["kind"] != "paper"]
    assert set(gates["holds"]) == {"confirmed"}


def test_the_panels_hold_what_was_read(drawn):
    figure, table, _ = drawn
    assert list(table.columns) == style.FIGURE_COLUMNS
    panels = ["b", "d", "c", "lines", "shares", "classes", "escapes", "plateaus"]
    assert list(dict.fromkeys(table["panel"])) == panels
    ends = table[(table["panel"] == "d") & table["series"].str.startswith("n = 3:")]
    assert ends.groupby("series").size().to_dict() == {
        "n = 3: reached the 4-body region": 4,
        "n = 3: rests on the 3-body line": 2,
        "n = 3: rests on the 2-body line": 1,
        "n = 3: between lines": 1,
    }
    assert set(table[table["panel"] == "c"]["seed"]) == {"2"}
    moved = table[(table["panel"] == "escapes") & (table["series"] == "n = 3")]
    moved = moved[moved["seed"] == "7"].set_index("x")["y"]
    assert moved.to_dict() == {1.0: 70, 2.0: 130, 3.0: 3}
    assert table[table["panel"] == "shares"]["y"].sum() == pytest.approx(1)
    lowest = table[(table["panel"] == "lines") & (table["series"] == "true 4-body")]
    assert lowest["y"].tolist() == [TRUTH]
    words = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert "4 | 12  reached the 4-body region" in words


def test_what_is_planted_wrong_fails(planted, tmp_path):
    files, block, context = planted
    lines = dict(zip(map(tuple, context["models"]), files["models"], strict=True))

    def found(**changed):
        runs = {key[1:]: path for key, path in lines.items()}
        for name, line in changed.items():
            folder = tmp_path / f"{name}-{line[1]}"
            runs[name, 0] = runs[name, 0] if folder.exists() else write_line(folder, *line)
        new = dict(files, models=list(runs.values()))
        return staircase_checks_of(new, block, context)

    poor = found(three=(3, 1.4800, 1.5300))
    assert holds(poor, "3-body line above the true one") == {"confirmed"}
    assert holds(poor, "2-body line above the 3-body one") == {"contradicted"}
    assert holds(poor, "3-body fits the training set better") == {"contradicted"}
    assert holds(poor, "n = 2 ends on the 3-body line") == {"no"}
    assert value(poor, "rests on the 2-body and 3-body lines") == 0
    # None of eight seeds: up to 37 % cannot be excluded.
    assert holds(poor, "rests on the 2-body and 3-body lines") == {"undecided"}
    wrong = found(true=(4, 1.4500, 1.45))
    assert holds(wrong, "as a model have the sampler's cross-entropy") == {"contradicted"}
    assert holds(wrong, "4-body fit does not beat") == {"contradicted"}
    other = found(two=(2, 1.5180, 1.51, HELD_OUT // 2))
    assert holds(other, "equally many held-out tokens") == {"contradicted"}
    assert holds(other, "n = 1 ends on the 2-body line") == {"no"}


def staircase_checks_of(files, block, context):
    (part,) = staircase_runs.read_parts(files, block, context)
    return pd.DataFrame(staircase_claims.all_rows(part, "fig. 2"))


def test_runs_that_stay_on_their_plateau_and_move_the_wrong_layer_are_a_no(tmp_path):
    stuck = {seed: ((NEVER, NEVER), (2, 40, NEVER)) for seed in range(8)}
    late = {seed: ((30, NEVER if seed < 3 else 60), (60, 30, 2)) for seed in range(12)}
    found = staircase_checks_of(*make(tmp_path, stuck, late, SOURCE, FEW_EPOCHS, difference=0.02))
    assert holds(found, "less their mean entropy") == {"contradicted"}
    # None of eight: up to 37 % cannot be excluded.
    assert holds(found, "80% of the way") == {"undecided"}
    # Checkpoints twenty epochs apart cannot show a plateau of five.
    assert holds(found, "rests on the 2-body and 3-body lines") == {"undecided"}
    assert holds(found, "last layer moves first") == {"undecided"}
    assert holds(found, "from the last to the first") == {"no"}
    (row,) = found[found["claim"].str.contains("protocol reaches")].itertuples()
    assert (row.value, row.kind, row.holds) == (9 / 12, "paper", "yes")


def test_a_smoke_run_is_drawn_and_no_gate_fails(tmp_path):
    sizes = {"train": 64, "validation": 16, "test": 16}
    source = {**SOURCE, "sequences": sizes}
    write_source(tmp_path / "sequences", held_out=16)
    runs = {"n1": (1, (0,)), "n3": (3, (0, 1))}
    paths = {}
    for model, (layers, seeds) in runs.items():
        for seed in seeds:
            where = tmp_path / model / f"seed-{seed}"
            paths[model, seed] = write_network(
                where, layers, epochs=[0, 0.5, 1], seed=seed, held_out=16
            )
    paths["two", 0] = write_line(tmp_path / "two", 2, 1.57, 1.3, 16)
    paths["true", 0] = write_line(tmp_path / "true", 4, TRUTH, TRUTH, 16)
    block = {
        "source": "many-body",
        "networks": [{"model": name, "seeds": list(seeds)} for name, (_, seeds) in runs.items()],
        "lines": ["two"],
        "truth": "true",
    }
    made = files_of(paths, tmp_path, block, source)
    for module in (fig2, fig2_seeds):
        _, drawn, found = module.draw(*made)
        assert len(drawn)
        gates = found[found["kind"] != "paper"]
        assert "contradicted" not in set(gates["holds"])
    _, _, found = fig2.draw(*made)
    assert "not-run" not in set(found[found["kind"] != "paper"]["holds"])
    assert not found["claim"].str.contains("by more than", regex=False).any()
    assert holds(found, "80% of the way from the 2-body line") == {"undecided"}
    assert holds(found, "n = 3 rests on the 2-body lines") == {"undecided"}


def test_data_of_another_order_and_size_draw_with_their_own_lines(tmp_path):
    source = {**SOURCE, "order": 3, "logit_scale": 4.0}
    files, block, context = make(tmp_path, dict(list(SEEDS.items())[:3]), source=source)
    figure, drawn, found = fig2.draw(files, block, context)
    assert "true 3-body" in set(drawn["series"])
    assert holds(found, "80% of the way from the 2-body line") <= {"yes", "undecided"}
    # The size of a gap is promised at the default setting only.
    assert holds(found, "2-body line above the true one") == {"yes"}
    assert not found["claim"].str.contains("by more than", regex=False).any()
    shares = figure.axes[0].get_title(loc="left").partition("shares ")[2].split()
    assert len(shares) == 3


def test_the_literal_recipe_has_a_row_of_panels_for_each_part(planted):
    files, block, context = planted
    part = {key: block[key] for key in ("source", "networks", "lines", "truth")}
    figure, drawn, found = fig2_literal.draw(files, {"parts": [part, part]}, context)
    assert len(figure.axes) == 6
    assert drawn["panel"].str.startswith("many-body: ").all()
    assert found["claim"].str.startswith("fig. 2 literal, many-body").all()
    assert not found["claim"].str.contains("beyond the paper").any()


def test_every_seed_of_every_recipe_is_shown(planted):
    figure, drawn, found = fig2_seeds.draw(*planted)
    curves = drawn[drawn["panel"] == "b"].groupby("series")["seed"].nunique()
    assert curves.to_dict() == {"n = 3": 8, "n = 3, protocol": 12}
    assert figure.axes[1].get_title(loc="left").endswith("12 of 12 seeds reach order 4")
    assert holds(found, "protocol reaches") == {"yes"}


def test_a_diverged_run_is_a_class_and_not_an_error(planted, tmp_path):
    files, block, context = planted
    rows = rows_of(np.array([0.0, 1.0]), [1.6, 1.55], HELD_OUT * LENGTH)
    parts = ("attention", "left")
    start = {f"{part}.{layer}": torch.zeros(2, 2) for layer in range(3) for part in parts}
    description = dict(architecture="factored", layers=3)
    path = write_run(tmp_path / "diverged", description, rows, {0: start, 100: start}, diverged=150)
    models = list(files["models"])
    models[context["models"].index(["many-body", "n3", 5])] = path
    _, drawn, _ = fig2.draw({**files, "models": models}, block, context)
    (row,) = drawn[drawn["series"] == "n = 3: diverged"].query("panel == 'd'").itertuples()
    assert row.seed == "5"
    assert math.isinf(row.y)


def test_rows_about_the_same_runs_are_counted_once(planted):
    files, block, context = planted
    _, _, alone = fig2_seeds.draw(files, block, context)
    _, _, beside = fig2_seeds.draw(files, block, {**context, "elsewhere": "fig2"})
    assert set(beside["claim"]) < set(alone["claim"])
    assert beside["claim"].str.contains("protocol reaches").all()


# --- Few seeds -----------------------------------------------------------------------------------


def test_the_interval_of_a_share_is_exact():
    # Clopper and Pearson's tables: 1 of 8 and 16 of 16.
    assert staircase_claims.exact_interval(1, 8) == pytest.approx((0.0032, 0.5265), abs=1e-4)
    assert staircase_claims.exact_interval(16, 16) == pytest.approx((0.7941, 1.0), abs=1e-4)
    assert staircase_claims.exact_interval(0, 8)[0] == 0
    # It holds the share unless 2.5 % or less of the draws lie as far out.
    for count in range(9):
        low, high = staircase_claims.exact_interval(count, 8)
        if count:
            upper = sum(math.comb(8, k) * low**k * (1 - low) ** (8 - k) for k in range(count, 9))
            assert upper == pytest.approx(0.025)
        if count < 8:
            lower = sum(math.comb(8, k) * high**k * (1 - high) ** (8 - k) for k in range(count + 1))
            assert lower == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("count", "seeds", "holds"),
    [(1, 8, "undecided"), (0, 8, "undecided"), (0, 13, "no"), (5, 8, "undecided"), (6, 8, "yes")],
)
def test_a_share_of_few_seeds_decides_by_its_interval(count, seeds, holds):
    assert staircase_claims._share("c", count, seeds, 0.25)["holds"] == holds


def test_fishers_test_has_its_tables_values():
    assert staircase_claims.fisher(4, 4, 1, 8) == pytest.approx(8 / 792)
    assert staircase_claims.fisher(3, 4, 1, 4) == pytest.approx(17 / 70)  # the lady tasting tea
    assert staircase_claims.fisher(0, 5, 0, 5) == 1


@pytest.mark.parametrize(
    ("seen", "holds"),
    [
        ([True] * 5, "undecided"),
        ([True] * 6, "yes"),
        ([True] * 9 + [False], "no"),
        ([], "undecided"),
    ],
)
def test_a_rule_needs_six_seeds_and_no_exception(seen, holds):
    assert staircase_claims._always("c", seen)["holds"] == holds


# --- The exact numbers ---------------------------------------------------------------------------


def theory(**changed):
    numbers = {"degree above": 1e-15, "degree top": 0.3, "masking single": 3e-7}
    numbers |= {"masking double": 1e-16, "gibbs": 1.02} | changed
    rows = [dict(quantity=name, series="n = 3", seed=0, x=0.0, y=y) for name, y in numbers.items()]
    return pd.DataFrame(rows).assign(y_err=0.0)


def test_identities_are_gates():
    rows = pd.DataFrame(staircase_claims.exact_rows(theory(), "fig. 2"))
    assert set(rows["holds"]) == {"confirmed"}
    assert rows["kind"].tolist() == ["exact"] * 4 + ["statistical"]
    wrong = {"degree above": 1e-9, "degree top": 1e-4, "masking single": 2e-5}
    wrong |= {"masking double": 1e-11, "gibbs": 1.31}
    for name, number in wrong.items():
        rows = pd.DataFrame(staircase_claims.exact_rows(theory(**{name: number}), "fig. 2"))
        assert rows["holds"].tolist().count("contradicted") == 1
    missing = theory().query("quantity != 'gibbs'")
    rows = pd.DataFrame(staircase_claims.exact_rows(missing, "fig. 2"))
    assert rows["holds"].tolist() == ["confirmed"] * 4 + ["contradicted"]
    assert rows["claim"].iloc[-1].endswith("[no such row in `exact`]")


def test_the_figure_reads_its_identities(planted, tmp_path):
    files, block, context = planted
    tables.write_theory(tmp_path / "exact.parquet", theory(), {})
    files = {**files, "theory": [tmp_path / "exact.parquet"]}
    for module in (fig2, fig2_seeds):
        _, _, found = module.draw(files, {**block, "exact": "own"}, {**context, "theory": ["own"]})
        assert holds(found, "Gibbs sampling against enumeration") == {"confirmed"}
    assert holds(found, "all masks at once or one by one") == {"confirmed"}


def test_the_identities_hold_and_repeat(monkeypatch):
    monkeypatch.setattr(many_body_identities, "CHAINS", 20_000)
    monkeypatch.setattr(many_body_identities, "SEQUENCES", 16)
    frame, about = many_body_identities.compute({"kind": "many-body-exact", "seed": 3})
    again, _ = many_body_identities.compute({"kind": "many-body-exact", "seed": 3})
    pd.testing.assert_frame_equal(frame, again)
    rows = pd.DataFrame(staircase_claims.exact_rows(frame, "fig. 2"))
    assert set(rows["holds"]) == {"confirmed"}
    assert len(rows) == 4 * 3 + 3
    assert about["seed"] == 3


def test_the_expansion_finds_the_degree_of_a_polynomial():
    class Product(torch.nn.Module):
        """Logits 2 s_1 s_2 + s_3 and zero, of tokens that are 0 or 1."""

        def masked_logits(self, tokens, rows, positions):
            tokens = tokens[rows].double()
            first = 2 * tokens[:, 1] * tokens[:, 2] + tokens[:, 3]
            return torch.stack([first, torch.zeros_like(first)], dim=1)

    pair = torch.tensor([[0] * 5, [1] * 5])
    found = many_body_identities.coefficient_sizes(Product(), pair, torch.arange(1, 5), 0)
    assert found.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 0, 0])


def test_total_variation_is_one_floor_for_exact_samples_and_more_for_others():
    couplings = np.ones((3, 3)) - np.eye(3)
    model = Hamiltonian(couplings, np.eye(2), 0.3)
    states = np.array(list(np.ndindex(2, 2, 2)))
    law = np.exp(-model.beta * model.energies(states))
    law /= law.sum()
    draws = np.random.default_rng(0)
    ratios = [
        many_body_identities.total_variation(model, states[draws.choice(8, 4000, p=law)])[0]
        for _ in range(200)
    ]
    _, spread = many_body_identities.total_variation(model, states)
    assert np.mean(ratios) == pytest.approx(1, abs=0.06)
    assert np.std(ratios) == pytest.approx(spread, rel=0.2)
    uniform = states[draws.choice(8, 4000)]
    assert many_body_identities.total_variation(model, uniform)[0] > 3
