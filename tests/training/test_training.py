"""The training loop against a plain one, and what it refuses."""

import itertools
import json
import math
import re
from types import SimpleNamespace

import explicit
import numpy as np
import pandas as pd
import pytest
import torch

from manybody.io import checkpoints, lease as leases
from manybody.io.atomic import ArtifactError
from manybody.io.lease import lease
from manybody.io.manifest import Manifest
from manybody.io.resume import Resume
from manybody.models import build, stored
from manybody.training import kept_steps, learner, learning_rate, loop
from manybody.training.batches import Batches, validation_set
from manybody.training.loop import train
from manybody.training.run_files import NonFiniteLoss

VOCABULARY, LENGTH = 7, 8
ADAMW = {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.1}
SGD = {"name": "sgd", "momentum": 0.9, "weight_decay": 0.1}
FACTORED = {
    "architecture": "factored",
    "vocabulary": VOCABULARY,
    "length": LENGTH,
    "layers": 2,
    "rank": 3,
}
RECIPE = {
    "objective": "masked",
    "steps": 40,
    "batch": 15,
    "masks": 0.25,
    "optimizer": ADAMW,
    "learning_rate": 0.05,
    "schedule": "cosine",
    "warmup": 5,
    "clip": 1.0,
    "checkpoints": {"logarithmic": 4, "listed": [20]},
    "validation": 20,
    "precision": "float32",
    "compile": False,
    "threads": 1,
}


def sequences(count: int, seed: int = 0, length: int = LENGTH) -> SimpleNamespace:
    """Each token is the last one plus 0 or 1."""
    steps = np.random.default_rng(seed).integers(0, 2, (count, length))
    return SimpleNamespace(tokens=(steps.cumsum(1) % VOCABULARY).astype("uint8"))


DATA = {"train": sequences(50), "validation": sequences(30, 1)}


def run(out, recipe=None, description=FACTORED, seed=3, init_seed=4, data=DATA, **options):
    recipe = {**RECIPE, **(recipe or {})}
    options = {"device": "cpu", "about": {"source": "counting"}, **options}
    return train(description, recipe, data, out, seed, init_seed, **options)


def payload(manifest) -> dict[str, bytes]:
    read = Manifest.read(manifest, "model")
    return {name: read.file(name).read_bytes() for name in read.names()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run(tmp_path_factory.mktemp("finished") / "run")


# --- schedule


def test_rate_warms_up_then_falls_as_a_half_cosine_to_zero():
    recipe = {"learning_rate": 2.0, "warmup": 4, "steps": 24, "schedule": "cosine"}
    assert [learning_rate(step, recipe) for step in range(5)] == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert learning_rate(9, recipe) == pytest.approx(1 + math.cos(math.pi / 4))
    assert learning_rate(14, recipe) == pytest.approx(1.0)
    assert learning_rate(24, recipe) == 0.0
    assert learning_rate(20, {**recipe, "schedule": "constant"}) == 2.0


@pytest.mark.parametrize(
    ("checkpoints", "expected"),
    [
        ({}, [0, 1000]),
        ({"logarithmic": 4, "listed": [600, 10]}, [0, 1, 10, 100, 600, 1000]),
        ({"logarithmic": 0, "listed": [0, 1000]}, [0, 1000]),
        ({"every": 300, "listed": [600, 10]}, [0, 10, 300, 600, 900, 1000]),
        ({"every": 500}, [0, 500, 1000]),
        ({"every": 1001}, [0, 1000]),
    ],
)
def test_first_last_spaced_and_listed_steps_are_kept(checkpoints, expected):
    assert kept_steps({"steps": 1000, "checkpoints": checkpoints}) == expected


# --- batches


def test_every_epoch_is_a_permutation_of_the_data_without_a_gap():
    batches = Batches(10, LENGTH, {**RECIPE, "batch": 8}, seed=5)
    assert batches.sequences == 4  # 8 copies, 2 a sequence
    seen = np.concatenate([batches.at(step).sequences for step in range(5)])
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert list(seen[:10]) != list(seen[10:])
    assert batches.epoch(5) == 2.0


def numbers_of(seed, stream, recipe=RECIPE):
    """Order of the first epoch (50,), and the masks of its steps (6, 15)."""
    batches = [Batches(50, LENGTH, recipe, seed, stream).at(step) for step in range(6)]
    order = np.concatenate([batch.sequences for batch in batches])
    return order, torch.stack([batch.positions for batch in batches])


def test_each_seed_and_stream_has_orders_and_masks_of_its_own():
    """The masks alone tell as well: all runs once had those of seed 0, unnoticed."""
    keys = itertools.product((0, 1, 5), ("", "bert", "bert-generator"))
    runs = {key: numbers_of(*key) for key in keys}
    for one, other in itertools.combinations(runs.values(), 2):
        # Orders agree at one place of 48, masks of 8 positions at one in 8, both by chance.
        assert (one[0] == other[0]).sum() <= 7
        agree = (one[1] == other[1]).double().mean()
        assert abs(agree - 1 / LENGTH) < 5 * math.sqrt(1 / LENGTH / one[1].numel())
    # Another optimiser's run in the same stream is paired with it, batch by batch.
    order, masks = numbers_of(5, "bert", {**RECIPE, "optimizer": SGD, "learning_rate": 1.0})
    assert np.array_equal(order, runs[5, "bert"][0])
    assert torch.equal(masks, runs[5, "bert"][1])


def test_a_stream_has_batches_of_its_own_and_leaves_starts_and_validation_alone(tmp_path):
    """Unless each run draws its own start."""
    recipe = {"steps": 3, "checkpoints": {}}
    runs = {
        (stream, start): run(tmp_path / f"{stream}-{start}", recipe, stream=stream, init_seed=start)
        for stream in ("a", "b")
        for start in (4, "each")
    }
    starts = {key: stored.load_model(manifest, 0).attention[0] for key, manifest in runs.items()}
    assert torch.equal(starts["a", 4], starts["b", 4])
    assert not torch.allclose(starts["a", "each"], starts["b", "each"])
    ends = [stored.load_model(runs[stream, 4]).attention[0] for stream in ("a", "b")]
    assert not torch.allclose(*ends)
    assert [Manifest.read(runs[stream, 4], "model").about["stream"] for stream in "ab"] == [*"ab"]
    tables = [checkpoints.history(runs[stream, 4]) for stream in ("a", "b")]
    first = [table[table["split"] == "validation"].iloc[0] for table in tables]
    assert first[0]["loss"] == first[1]["loss"]  # the same masks of the same sequences


def test_all_positions_are_masked_equally_often_when_the_last_sequence_gives_fewer():
    """15 copies of 8 sequences, 2 each but for one: each position has probability 1 / 8."""
    batches = Batches(50, LENGTH, RECIPE, seed=5)
    counts, trials = np.zeros(LENGTH), 1000
    last = np.zeros(LENGTH)
    for step in range(trials):
        batch = batches.at(step)
        pairs = set(zip(batch.rows.tolist(), batch.positions.tolist(), strict=True))
        assert len(pairs) == len(batch.rows) == 15
        counts += np.bincount(batch.positions, minlength=LENGTH)
        last += np.bincount(batch.positions[batch.rows == 7], minlength=LENGTH)
    for seen, total in [(counts, 15 * trials), (last, trials)]:
        error = math.sqrt(total / LENGTH * (1 - 1 / LENGTH))
        assert np.abs(seen - total / LENGTH).max() < 4 * error


def test_the_parts_of_a_batch_are_the_batch():
    batch = Batches(50, LENGTH, RECIPE, seed=5).at(3)
    parts = [batch.part(number, 3) for number in range(3)]
    assert [len(part.rows) for part in parts] == [4, 6, 5]
    assert np.array_equal(np.concatenate([p.sequences for p in parts]), batch.sequences)
    whole = list(zip(batch.sequences[batch.rows], batch.positions.tolist(), strict=True))
    cut = [
        pair
        for part in parts
        for pair in zip(part.sequences[part.rows], part.positions.tolist(), strict=True)
    ]
    assert cut == whole


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 1}, "found 1 masked copies; expected at least the 2 of one sequence"),
        ({"batch": 7, "masks": "all"}, "found 7 masked copies; expected at least the 8"),
        ({"batch": 20, "masks": "all"}, "found 20; expected a multiple of the length 8.*choose 16"),
        ({"batch": 102}, "found 102, which takes 51 sequences a step; expected at most 100"),
        (
            {"batch": 51, "objective": "next-token"},
            "found 51, which takes 51 sequences a step; expected at most 50,",
        ),
    ],
)
def test_a_batch_that_cannot_be_filled_is_refused(changes, message):
    with pytest.raises(ValueError, match=rf"training\.batch: {message}"):
        Batches(50, LENGTH, {**RECIPE, **changes}, seed=5)


@pytest.mark.parametrize("wanted", [0, 31])
def test_a_validation_set_that_cannot_be_filled_is_refused(wanted):
    with pytest.raises(ValueError, match=r"training\.validation: found \d+; expected 1 to 30"):
        validation_set(30, LENGTH, {**RECIPE, "validation": wanted})


# --- the loop


def plain_loop(recipe: dict) -> torch.nn.Module:
    """The same training written plainly: whole forwards of masked copies, torch's simple forms."""
    batches = Batches(50, LENGTH, recipe, seed=3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(learner.torch_seed(4, "weights"))
        model = build(FACTORED)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    groups = [
        {"params": matrices, "weight_decay": 0.1},
        {"params": [model.bias], "weight_decay": 0.0},
    ]
    if recipe["optimizer"]["name"] == "adamw":
        optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), foreach=False, fused=False)
    else:
        optimizer = torch.optim.SGD(groups, momentum=0.9, foreach=False, fused=False)
    for step in range(recipe["steps"]):
        rate = 0.05 * (step + 1) / 5
        if step >= 5:
            rate = 0.05 * (0.5 + 0.5 * math.cos(math.pi * (step - 5) / 35))
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = batches.at(step)
        copies = torch.from_numpy(DATA["train"].tokens[batch.sequences].astype("int64"))[batch.rows]
        hidden = torch.nn.functional.one_hot(batch.positions, LENGTH).bool()
        loss = torch.nn.functional.cross_entropy(model(copies, hidden)[hidden], copies[hidden])
        optimizer.zero_grad()
        loss.backward()
        norm = torch.stack([p.grad.square().sum() for p in model.parameters()]).sum().sqrt()
        for parameter in model.parameters():
            parameter.grad *= min(1.0, 1.0 / float(norm))
        optimizer.step()
    return model


@pytest.mark.parametrize("optimizer", [ADAMW, SGD], ids=["adamw", "sgd"])
def test_the_loop_equals_a_plain_one(tmp_path, optimizer):
    recipe = {**RECIPE, "optimizer": optimizer}
    ours = stored.load_model(run(tmp_path / "run", recipe))
    plain, start = plain_loop(recipe), plain_loop({**recipe, "steps": 0})
    for name, tensor in plain.named_parameters():
        torch.testing.assert_close(ours.get_parameter(name), tensor, rtol=1e-3, atol=1e-5)
        assert not torch.allclose(tensor, start.get_parameter(name), rtol=1e-2, atol=1e-3)


def test_the_summed_loss_equals_the_mean_at_a_rate_times_the_predictions_of_a_sequence(tmp_path):
    plain = {"optimizer": {**SGD, "weight_decay": 0.0}, "clip": None, "batch": 16}
    summed = run(tmp_path / "sum", {**plain, "loss": "sum", "learning_rate": 0.05})
    mean = run(tmp_path / "mean", {**plain, "loss": "mean", "learning_rate": 0.1})  # 2 of 8 masked
    same = run(tmp_path / "same", {**plain, "learning_rate": 0.1})
    start, one, two = (stored.load_model(*which) for which in [(mean, 0), (summed,), (mean,)])
    for name, tensor in two.named_parameters():
        torch.testing.assert_close(one.get_parameter(name), tensor, rtol=1e-4, atol=1e-6)
        assert not torch.allclose(start.get_parameter(name), tensor, rtol=1e-2, atol=1e-3)
    ours, theirs, default = (checkpoints.history(manifest) for manifest in (summed, mean, same))
    np.testing.assert_allclose(ours["loss"], theirs["loss"], rtol=1e-5)  # nats per token in both
    assert ours["tokens"].equals(theirs["tokens"])
    assert default.equals(theirs)


def test_history_says_what_happened(finished):
    table = checkpoints.history(finished)
    validation = table[table["split"] == "validation"].reset_index(drop=True)
    trained = table[table["split"] == "train"].reset_index(drop=True)
    assert validation["step"].tolist() == [0, 1, 3, 12, 20, 40]
    assert trained["step"].tolist() == [1, 3, 12, 20, 40]
    assert trained["tokens"].tolist() == [15 * step for step in trained["step"]]
    assert set(validation["tokens"]) == {40}  # 20 sequences, 2 masks each
    np.testing.assert_allclose(validation["epoch"], validation["step"] * 8 / 50)
    rates = [learning_rate(step, RECIPE) for step in validation["step"]]
    assert validation["learning_rate"].tolist() == rates
    assert trained["loss_se"].isna().all()
    assert (validation["loss_se"] > 0).all()
    assert validation["loss"].iloc[-1] < validation["loss"].iloc[0] - 0.3


def test_validation_is_the_mean_over_masked_copies_of_evenly_spaced_sequences(finished):
    chosen, masks = validation_set(30, LENGTH, RECIPE)
    model = stored.load_model(finished, 20)
    tokens = torch.from_numpy(DATA["validation"].tokens[chosen].astype("int64"))
    rows = torch.arange(20).repeat_interleave(2)
    losses, hits = explicit.masked(model, tokens, rows, masks.flatten())
    losses = losses.detach().view(20, 2).numpy()
    table = checkpoints.history(finished)
    row = table[(table["split"] == "validation") & (table["step"] == 20)].iloc[0]
    assert row["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert row["loss_se"] == pytest.approx(losses.mean(1).std(ddof=1) / math.sqrt(20), rel=1e-4)
    assert row["accuracy"] == hits.sum() / 40


def test_training_loss_is_the_mean_since_the_last_checkpoint(finished):
    """Between checkpoints 0 and 1 lies one batch, seen with the initial weights."""
    model = stored.load_model(finished, 0)
    batch = Batches(50, LENGTH, RECIPE, seed=3).at(0)
    tokens = torch.from_numpy(DATA["train"].tokens[batch.sequences].astype("int64"))
    logits = model.masked_logits(tokens, batch.rows, batch.positions)
    targets = tokens[batch.rows, batch.positions]
    expected = torch.nn.functional.cross_entropy(logits, targets).item()
    table = checkpoints.history(finished)
    assert table[table["split"] == "train"]["loss"].iloc[0] == pytest.approx(expected)


def test_manifest_says_what_was_run(finished):
    manifest = Manifest.read(finished, "model")
    about = manifest.about
    assert (about["source"], about["seed"], about["init_seed"]) == ("counting", 3, 4)
    assert (about["description"], about["recipe"], about["order"]) == (FACTORED, RECIPE, 3)
    assert about["steps"] == [0, 1, 3, 12, 20, 40]
    assert json.loads(manifest.file("model.json").read_text()) == FACTORED
    assert about["final"]["validation_loss"] == checkpoints.history(finished)["loss"].iloc[-1]
    others = {path.name for path in finished.parent.iterdir()} - set(manifest.names())
    assert others == {"manifest.json", "timing.jsonl"}


def test_same_seeds_same_bytes_other_seeds_other_runs(tmp_path, finished):
    assert payload(run(tmp_path / "same")) == payload(finished)
    other = stored.load_model(run(tmp_path / "seed", seed=9), 0)
    start, end = (stored.load_model(finished, step) for step in (0, "last"))
    assert torch.equal(other.attention[0], start.attention[0])
    ended = stored.load_model(tmp_path / "seed/manifest.json")
    assert not torch.allclose(ended.attention[0], end.attention[0])
    elsewhere = stored.load_model(run(tmp_path / "init", init_seed=9), 0)
    assert not torch.allclose(elsewhere.attention[0], start.attention[0])


def test_each_seed_can_draw_its_own_start(tmp_path):
    """The start is that of a run whose init_seed is that seed, which the manifest names."""
    recipe = {"steps": 3, "checkpoints": {}}
    each = run(tmp_path / "each", recipe, seed=9, init_seed="each")
    assert payload(each) == payload(run(tmp_path / "nine", recipe, seed=9, init_seed=9))
    assert Manifest.read(each, "model").about["init_seed"] == 9


def test_the_initial_matrices_have_a_factor_and_vectors_have_none(tmp_path):
    recipe = {"steps": 3, "checkpoints": {}}
    bert = dict(
        architecture="bert", vocabulary=VOCABULARY, length=LENGTH, layers=1, heads=1, width=4,
        mlp=4,
    )  # fmt: skip
    runs = [
        run(tmp_path / str(number), {**recipe, **more}, bert)
        for number, more in enumerate(({}, {"init_factor": 0.25}, {"together": True}))
    ]
    plain, small, _ = (stored.load_model(one, 0).state_dict() for one in runs)
    for name, value in plain.items():
        assert torch.equal(small[name], 0.25 * value if value.ndim > 1 else value), name
    plain, _, together = (stored.load_model(one, 3).state_dict() for one in runs)
    assert any(not torch.equal(together[name], value) for name, value in plain.items())


def test_the_recipes_threads_are_used_and_the_process_is_left_as_it_was(tmp_path, monkeypatch):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    seen, step = [], learner.Learner.step

    def watched(self, *arguments):
        seen.append((torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()))
        return step(self, *arguments)

    monkeypatch.setattr(learner.Learner, "step", watched)
    run(tmp_path / "run", {"steps": 2, "threads": threads + 1, "checkpoints": {}})
    assert seen == [(threads + 1, True)] * 2
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.get_rng_state(), state)


GPT = dict(architecture="gpt", layers=1, heads=2, width=8, mlp=16)


@pytest.mark.parametrize(
    ("description", "recipe", "of_a_step", "of_a_sequence"),
    [
        (FACTORED, {"masks": "all", "batch": 32}, 32, LENGTH),
        (FACTORED, {"masks": 1.0, "batch": 32}, 32, LENGTH),
        # The first position has no token before it.
        (
            {**GPT, "vocabulary": VOCABULARY, "length": LENGTH},
            {"objective": "next-token", "batch": 8},
            8 * (LENGTH - 1),
            LENGTH - 1,
        ),
    ],
    ids=["all", "the whole share", "next token"],
)
def test_all_positions_can_be_predicted(tmp_path, description, recipe, of_a_step, of_a_sequence):
    table = checkpoints.history(run(tmp_path / "run", recipe, description))
    assert table[table["split"] == "train"]["tokens"].iloc[-1] == 40 * of_a_step
    validation = table[table["split"] == "validation"]
    assert set(validation["tokens"]) == {20 * of_a_sequence}
    assert validation["loss"].iloc[-1] < validation["loss"].iloc[0] - 0.3


def test_bfloat16_changes_the_arithmetic_and_not_the_stored_weights(tmp_path, finished):
    manifest = run(tmp_path / "run", {"precision": "bfloat16"})
    half, full = checkpoints.history(manifest), checkpoints.history(finished)
    assert not np.array_equal(half["loss"], full["loss"])
    np.testing.assert_allclose(half["loss"], full["loss"], atol=0.1)
    assert {p.dtype for p in stored.load_model(manifest).parameters()} == {torch.float32}


# --- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": {**DATA, "train": sequences(50, length=9)}}, "have length 9, the model 8"),
        ({"description": {**FACTORED, "vocabulary": 6}}, "hold the token 6"),
    ],
)
def test_runs_that_do_not_fit_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "run", **options)


def diverge_at_25(monkeypatch):
    step = learner.Learner.step

    def spoil(self, number, batch):
        if number == 25:
            with torch.no_grad():
                self.model.bias.fill_(math.inf)
        return step(self, number, batch)

    monkeypatch.setattr(learner.Learner, "step", spoil)


def test_a_diverging_run_stops_and_names_step_rate_and_last_good_checkpoint(tmp_path, monkeypatch):
    diverge_at_25(monkeypatch)
    rate = f"{learning_rate(25, RECIPE):g}"
    with pytest.raises(NonFiniteLoss) as stopped:
        run(tmp_path / "run", save_every=0.0)
    message = str(stopped.value)
    assert "training loss is nan at step 25" in message
    assert f"learning rate {rate}" in message
    assert "run/step-20.safetensors" in message
    assert not (tmp_path / "run/manifest.json").exists()
    assert pd.read_parquet(tmp_path / "run/resume/history.parquet")["step"].max() == 20
    for path in (tmp_path / "run").glob("**/*.safetensors"):
        assert all(t.double().isfinite().all() for t in checkpoints.read_tensors(path)[0].values())


def test_a_run_may_end_where_it_diverges(tmp_path, monkeypatch):
    whole = Manifest.read(run(tmp_path / "whole"), "model")
    diverge_at_25(monkeypatch)
    cut = Manifest.read(run(tmp_path / "cut", {**RECIPE, "divergence": "keep"}), "model")
    kept = [step for step in whole.about["steps"] if step <= 25]
    assert cut.about["diverged"] == 25
    assert cut.about["steps"] == kept
    assert checkpoints.history(cut)["step"].max() == kept[-1]
    for step in kept:
        name = f"step-{step}.safetensors"
        assert cut.file(name).read_bytes() == whole.file(name).read_bytes()
    assert not (tmp_path / "cut/resume").exists()


def test_a_second_writer_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "WAIT", 0.0)
    with lease(tmp_path / "run"), pytest.raises(ArtifactError, match="is being written by"):
        run(tmp_path / "run")


# --- resuming


class Stop(BaseException):
    """Ends a run as an interrupt would."""


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """The folder of a run stopped after checkpoint 20, with states of 12 and before."""
    written = loop.write_history

    def write(path, rows):
        if rows[-1]["step"] == 20:
            raise Stop
        written(path, rows)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "write_history", write)
        with pytest.raises(Stop):
            run(tmp_path / "run", save_every=0.0)
    return tmp_path / "run"


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(stopped, finished, caplog):
    names = sorted(path.name for path in (stopped / "resume").glob("state-*"))
    assert names == ["state-000000000003.safetensors", "state-000000000012.safetensors"]
    assert not (stopped / "history.parquet").exists()  # it is not whole yet
    assert payload(run(stopped)) == payload(finished)
    lines = (stopped / "timing.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1, 3, 12, 20, 20, 40]
    assert caplog.text == ""
    assert not (stopped / "resume").exists()


def flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 4
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip, "was altered"),
        (truncate, "is not a readable safetensors"),
        (lambda path: path.write_bytes(b""), "is not a readable safetensors"),
    ],
)
def test_a_damaged_state_is_passed_over_for_the_one_before(
    stopped, finished, caplog, damage, message
):
    damage(stopped / "resume/state-000000000012.safetensors")
    assert payload(run(stopped)) == payload(finished)
    assert message in caplog.text
    assert "state-000000000012.safetensors" in caplog.text
    lines = (stopped / "timing.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [0, 1, 3, 12, 20, 12, 20, 40]


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({"seed": 9}, "about.seed"),
        ({"recipe": {"learning_rate": 0.01}}, "about.recipe.learning_rate"),
        ({"code": "edited"}, "code"),
        ({"stream": "b"}, "about.stream"),
        ({"data": {**DATA, "train": sequences(50, 8)}}, "data.train"),
    ],
)
def test_the_state_of_another_run_is_not_used(stopped, tmp_path, caplog, options, changed):
    assert payload(run(stopped, **options)) == payload(run(tmp_path / "fresh", **options))
    assert f"belongs to a run with another {changed}" in caplog.text


@pytest.mark.parametrize("spoil", [flip, lambda path: path.unlink()], ids=["altered", "missing"])
def test_a_run_whose_checkpoints_are_not_whole_starts_again(stopped, finished, caplog, spoil):
    spoil(stopped / "step-3.safetensors")
    assert payload(run(stopped)) == payload(finished)
    assert re.search(r"not resumed: .*step-3\.safetensors is missing or altered", caplog.text)


def test_a_new_run_leaves_nothing_of_an_old_one_behind(tmp_path):
    run(tmp_path / "run", {"checkpoints": {"listed": [17]}})
    manifest = run(tmp_path / "run", {"checkpoints": {}})
    kept = sorted(path.name for path in manifest.parent.glob("step-*"))
    assert kept == ["step-0.safetensors", "step-40.safetensors"]


@pytest.mark.parametrize(("save_every", "states"), [(60.0, 0), (0.0, 7)])
def test_a_checkpoint_after_a_moment_takes_no_state(tmp_path, monkeypatch, save_every, states):
    saved = []
    monkeypatch.setattr(Resume, "save", lambda self, step, *_: saved.append(step))
    run(tmp_path / "run", save_every=save_every)
    assert len(saved) == states
