"""The functions of `import manybody`: their examples run, and nothing is imported before."""

import doctest
import inspect
import re
import subprocess
import sys

import explicit
import numpy as np
import pytest
from repository import ROOT

import manybody as mb
from manybody import public
from manybody.io.refusal import Refusal

LONG = {
    "load_model", "load_pretrained", "sample_clones", "save_dataset", "save_pretrained",
    "train_model", "two_layer_thresholds",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long) if n in LONG else n for n in public.__all__],
)
def test_the_example_of_a_function_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (found,) = doctest.DocTestFinder(recurse=False).find(
        getattr(mb, name), name, globs=vars(public).copy()
    )
    assert found.examples
    said = []
    failed, _ = doctest.DocTestRunner().run(found, out=said.append)
    assert not failed, "".join(said)


def test_all_public_functions_are_offered_and_listed():
    own = {
        name
        for name, value in vars(public).items()
        if inspect.isfunction(value) and value.__module__ == public.__name__
    }
    assert own == set(public.__all__) <= set(dir(mb))
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)\(", page, re.MULTILINE) == public.__all__
    with pytest.raises(AttributeError, match="no attribute 'lossses'; it has build_model"):
        mb.lossses  # noqa: B018


def test_importing_the_package_imports_nothing_else():
    program = (
        "import sys; before = set(sys.modules); import manybody; "
        "assert set(sys.modules) - before == {'manybody'}, set(sys.modules) - before"
    )
    source = str(ROOT / "workflow" / "src")
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": source}, check=True)


def test_clones_are_those_of_the_pipeline(tmp_path):
    from manybody.io.manifest import Manifest
    from manybody.sampling import metropolis

    model = mb.build_model("factored", 12, 6, layers=2, rank=4, bias=True, seed=3)
    initial = np.random.default_rng(0).integers(0, 12, (7, 6))
    manifest = metropolis.sample(
        model, initial, tmp_path, energy="raw", gauge="none", sweeps=[7], order="left-to-right",
        seed=5, about={},
    )  # fmt: skip
    expected = mb.read_sequences(Manifest.read(manifest, "clones").file("sweep-7.parquet")).tokens
    np.testing.assert_array_equal(mb.sample_clones(model, initial, 7, seed=5), expected)
    assert (initial != expected).any()


def test_losses_are_those_of_explicit_masks():
    import torch

    model = mb.build_model("bert", 9, 5, layers=1, heads=2, width=8, mlp=8, seed=1)
    tokens = np.random.default_rng(0).integers(0, 9, (4, 5))
    with torch.no_grad():
        each, _ = explicit.masked(model, torch.from_numpy(tokens))
    np.testing.assert_allclose(mb.losses(model, tokens), each.view(4, 5).mean(1), rtol=1e-5)


def test_what_is_not_possible_is_refused():
    gpt = mb.build_model("gpt", 9, 5, layers=1, heads=2, width=8, mlp=8)
    with pytest.raises(ValueError, match="gpt: it predicts next tokens"):
        mb.sample_clones(gpt, np.zeros((2, 5), int), 1)
    factored = mb.build_model("factored", 9, 5, layers=1, rank=2, bias=True)
    with pytest.raises(ValueError, match="factored: transformers has no class"):
        mb.save_pretrained(factored, "nowhere")


GOOD = np.arange(10).reshape(2, 5) % 9
BAD_TOKENS = [
    (GOOD + 0.5, "found float64; expected integers"),
    (GOOD > 3, "found bool; expected integers"),
    (GOOD + 1, "found tokens from 1 to 9; expected 0 to 8"),
    (GOOD - 1, "found tokens from -1 to 7; expected 0 to 8"),
    (GOOD[0], r"found shape \(5,\); expected \(N, L\)"),
    ([[1, 2], [3]], "found rows of different lengths"),
]
LENGTHS = [
    (GOOD[:0], "found no sequence"),
    (GOOD[:, :4], "found sequences of length 4; expected 5"),
    (np.hstack([GOOD, GOOD]), "found sequences of length 10; expected 5"),
]
MASKED = mb.build_model("factored", 9, 5, layers=1, rank=2, bias=True)
SIZES = dict(steps=1, batch=4, layers=1, rank=2, bias=True)
TAKEN = {  # by name of the argument and function
    "tokens of losses": (lambda given: mb.losses(MASKED, given), LENGTHS),
    "tokens of spectrum": (lambda given: mb.spectrum(MASKED, given), LENGTHS),
    "initial of sample_clones": (lambda given: mb.sample_clones(MASKED, given, 1), LENGTHS),
    "train of train_model": (lambda given: mb.train_model("no", given, GOOD, 9, **SIZES), []),
    "validation of train_model": (
        lambda given: mb.train_model("no", GOOD, given, 9, **SIZES),
        LENGTHS,
    ),
    "tokens of fit_couplings": (lambda given: mb.fit_couplings(given, 9), LENGTHS[:1]),
    "tokens of write_sequences": (lambda given: mb.write_sequences("no", given, 9), []),
}


@pytest.mark.parametrize("taken", TAKEN)
def test_tokens_that_do_not_fit_are_refused_alike(taken, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, further = TAKEN[taken]
    for tokens, said in BAD_TOKENS + further:
        with pytest.raises(Refusal, match=f"^{taken.split()[0]}: {said}"):
            call(tokens)
    assert not list(tmp_path.iterdir())


def test_a_causal_model_takes_shorter_sequences_but_no_longer_ones():
    gpt = mb.build_model("gpt", 9, 5, layers=1, heads=2, width=8, mlp=8)
    assert mb.losses(gpt, GOOD[:, :4]).shape == (2,)
    with pytest.raises(Refusal, match=r"^tokens: found sequences of length 10; expected at most 5"):
        mb.losses(gpt, np.hstack([GOOD, GOOD]))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mb.sample_clones(MASKED, GOOD, 1.5), "sweeps: found 1.5; expected an integer of"),
        (lambda: mb.sample_clones(MASKED, GOOD, -1), "sweeps: found -1; .*example sweeps=0"),
        (
            lambda: mb.sample_clones(MASKED, GOOD, 1, energy="row"),
            "energy: found 'row'; .*raw, norm",
        ),
        (lambda: mb.sequence_weights(GOOD, identity=80), "identity: found 80; .*of at most 1"),
        (lambda: mb.replica_loss(2, 0.0, 1.0), "gamma: found 2; expected a number above 2"),
        (lambda: mb.build_model("bert", 9, 5.0), "length: found 5.0; expected an integer"),
        (
            lambda: mb.build_model("factored", 9, 5, layers=1, rnk=2, bias=True),
            "rnk: this key is not known; .*did you mean rank",
        ),
        (
            lambda: mb.train_model("no", GOOD, GOOD, 9, recipe={"warm_up": 1}, **SIZES),
            "recipe.warm_up: this key is not known; .*did you mean warmup",
        ),
        (
            lambda: mb.train_model("no", GOOD, GOOD, 9, recipe={"hold": 5}, **SIZES),
            "recipe.hold: found 5; expected at most 1",
        ),
    ],
)
def test_arguments_are_refused_as_keys_of_the_config_are(call, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=f"^{said}"):
        call()
    assert not list(tmp_path.iterdir())


RELOADED = """
import sys, numpy as np, torch, transformers
sys.modules["manybody"] = None  # which refuses its import
folder, kind = sys.argv[1:]
model = getattr(transformers, kind).from_pretrained(folder)
tokens = torch.from_numpy(np.load(folder + "/tokens.npy"))
assert not model.training
np.save(folder + "/logits.npy", model(input_ids=tokens).logits.detach().numpy())
"""


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["bert", "gpt"])
def test_saved_models_are_reloaded_without_this_package(architecture, tmp_path):
    import torch
    from tokenizers import Tokenizer, models
    from transformers import AutoTokenizer

    model = mb.build_model(architecture, 30, 12, layers=2, heads=4, width=16, mlp=32)
    draws = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2, generator=draws)
    tokens = torch.randint(0, 30, (6, 12), generator=draws)
    masks = torch.rand(6, 12, generator=draws) < 0.3
    letters = {chr(97 + n): n for n in range(26)} | {str(n): 26 + n for n in range(4)}
    Tokenizer(models.BPE(vocab=letters, merges=[])).save(str(tmp_path / "given.json"))
    mb.save_pretrained(model, tmp_path / "saved", tmp_path / "given.json")
    if architecture == "bert":
        kind, given = "AutoModelForTokenClassification", tokens.masked_fill(masks, 30)
        expected = model(tokens, masks)
        assert AutoTokenizer.from_pretrained(tmp_path / "saved").mask_token_id == 30
    else:
        kind, given, expected = "AutoModelForCausalLM", tokens, model(tokens)
        assert AutoTokenizer.from_pretrained(tmp_path / "saved")("a3")["input_ids"] == [0, 29]
    np.save(tmp_path / "saved" / "tokens.npy", given.numpy())
    subprocess.run(
        [sys.executable, "-I", "-c", RELOADED, str(tmp_path / "saved"), kind],
        check=True, cwd=tmp_path,
    )  # fmt: skip
    found = np.load(tmp_path / "saved" / "logits.npy")
    assert np.ptp(found) > 1
    np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-6)
