"""The functions of `import manybody`: their examples run, and nothing is imported before."""

import doctest
import inspect
import re
import subprocess
import sys
from types import SimpleNamespace

import child
import explicit
import numpy as np
import pandas as pd
import pytest
from repository import ROOT

import manybody as mb
from manybody import command, public
from manybody.data.pair_model import PairModel
from manybody.io.refusal import Refusal

LONG = {
    "fit_boltzmann", "load_model", "load_pretrained", "sample_clones", "sample_sequences",
    "save_dataset", "save_pretrained", "train_model", "two_layer_thresholds",
}  # fmt: skip
FUNCTIONS = public.__all__[1:]


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
    assert "Refusal" in found.docstring
    said = []
    failed, _ = doctest.DocTestRunner().run(found, out=said.append)
    assert not failed, "".join(said)


def test_all_public_functions_are_offered_and_listed():
    own = {
        name
        for name, value in vars(public).items()
        if inspect.isfunction(value) and value.__module__ == public.__name__
    }
    assert own == set(FUNCTIONS) <= set(dir(mb))
    assert mb.Refusal is Refusal
    assert len(public.__all__) <= 26
    with pytest.raises(AttributeError, match="no attribute 'lossses'; it has Refusal, build_model"):
        mb.lossses  # noqa: B018


def test_public_signatures_are_typed_and_docstrings_say_what_each_argument_is():
    """The checker of `make test` sees that bodies agree; `Any` would hide what a caller passes.
    An argument is described in backticks, before a colon, or before its shape as in `fields h (L,`.
    """
    for name in FUNCTIONS:
        parameters = inspect.signature(getattr(mb, name))
        kinds = [parameters.return_annotation]
        kinds += [one.annotation for one in parameters.parameters.values()]
        assert all(isinstance(kind, str) and "Any" not in kind for kind in kinds), name
        prose = getattr(mb, name).__doc__.split(">>>")[0]
        for one in parameters.parameters:
            assert re.search(rf"`{one}\b|\b{one}(:|\s+(\w\s+)?\()", prose), (name, one)


@pytest.mark.long
def test_what_the_page_shows_runs(tmp_path, monkeypatch):
    import matplotlib

    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    found = re.findall(r"^```pycon\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(found) == 3
    assert command.main(["example"]) == 0
    said = []
    shown = doctest.DocTestParser().get_doctest("\n".join(found), {}, "python.md", None, 0)
    failed, tried = doctest.DocTestRunner().run(shown, out=said.append)
    assert tried > 7
    assert not failed, "".join(said)


@pytest.mark.parametrize(("kernel", "shown"), [(None, False), (object(), True)])
def test_progress_is_shown_in_a_notebook_alone(kernel, shown, tmp_path, monkeypatch, capsys):
    """A kernel has a shell of IPython with an attribute of that name."""
    shell = SimpleNamespace(**{} if kernel is None else {"kernel": kernel})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setenv("HOME", str(tmp_path))
    rows, recipe = np.tile(GOOD, (2, 1)), {"clip": np.float32(1)}
    mb.train_model("~/run", rows, rows, 9, device="auto", recipe=recipe, **SIZES)
    assert [
        "1/1" in capsys.readouterr().err.replace("1.00/1.00", "1/1"),
        (tmp_path / "run").is_dir(),
    ] == [shown, True]


def test_importing_the_package_imports_nothing_else():
    program = (
        "import sys; before = set(sys.modules); import manybody; "
        "assert set(sys.modules) - before == {'manybody'}, set(sys.modules) - before"
    )
    child.run("-c", program)


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
SIZES = dict(steps=1, layers=1, rank=np.int64(2), bias=True)
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


GPT = mb.build_model("gpt", 9, 5, layers=1, heads=2, width=8, mlp=8)


def test_a_causal_model_takes_shorter_sequences_but_no_longer_ones():
    assert mb.losses(GPT, GOOD[:, :4]).shape == (2,)
    with pytest.raises(Refusal, match=r"^tokens: found sequences of length 10; expected at most 5"):
        mb.losses(GPT, np.hstack([GOOD, GOOD]))


PAIRS = PairModel(np.zeros((2, 3)), np.zeros((2, 2, 3, 3)), {})
HEADS = np.zeros((1, 2, 2)), np.eye(3)[None]
WHOLE = {  # arguments that fit, but for those with a default
    "build_model": ("factored", 9, 5),
    "fit_boltzmann": ("no", GOOD, 9),
    "fit_couplings": (GOOD, 9),
    "load_couplings": ("no",),
    "load_model": ("no",),
    "load_pretrained": ("no", 5),
    "losses": (MASKED, GOOD),
    "plot_contacts": (mb.score_contacts(*HEADS),),
    "plot_spectrum": (pd.DataFrame(columns=["quantity", "order", "share", "share_se", "state"]),),
    "read_alignment": ("no",),
    "read_sequences": ("no",),
    "read_text": ("no", "no", 5),
    "replica_loss": (2.5, 0.1, [1.0]),
    "sample_clones": (MASKED, GOOD, 1),
    "sample_potts": (HEADS[0][0], HEADS[1][0], 1.0, 1),
    "sample_sequences": (PAIRS, 1),
    "save_dataset": ("no", "no", "no"),
    "save_pretrained": (MASKED, "no"),
    "scan_mutations": (PAIRS, [0, 1]),
    "score_contacts": HEADS,
    "sequence_weights": (GOOD,),
    "spectrum": (MASKED, GOOD),
    "train_model": ("no", GOOD, GOOD, 9),
    "two_layer_thresholds": (1.0,),
    "write_sequences": ("no", GOOD, 9),
}


def test_format_and_alphabet_are_those_of_the_file(tmp_path):
    file = tmp_path / "family.a3m"
    file.write_text(">a\nACGU\n>b\nAcgC-U\n")
    names, tokens = mb.read_alignment(file)
    assert (names, tokens.tolist()) == (["a", "b"], [[1, 2, 3, 4], [1, 2, 0, 4]])
    with pytest.raises(mb.Refusal, match="alphabet: found protein"):
        mb.read_alignment(file, alphabet="protein")


@pytest.mark.parametrize("name", WHOLE)
def test_each_argument_of_each_function_is_refused_by_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(WHOLE) == set(FUNCTIONS)
    function = getattr(mb, name)
    parameters = inspect.signature(function).parameters.values()
    names = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    given = dict(zip(names, WHOLE[name], strict=False))
    for wrong in names:
        for value in (object(), np.full((2, 2, 2, 2), np.nan)):
            with pytest.raises(Refusal, match=rf"^`?{wrong}\b.*(found|expected)"):
                function(**given | {wrong: value})
    assert not list(tmp_path.iterdir())


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
        (
            lambda: mb.build_model("bert", 9, 5.0),
            "length: found 5.0; expected an integer.*length=5$",
        ),
        (lambda: mb.build_model("brt", 9, 5), "architecture: found 'brt'.*bert"),
        (lambda: mb.sample_potts([[0, 1]], np.eye(3), 1.0, 1), r"couplings: found shape \(1, 2\)"),
        (lambda: mb.sample_potts([[0, 1], [2, 0]], np.eye(3), 1.0, 1), "couplings"),
        (lambda: mb.sample_potts([[0, np.nan], [1, 0]], np.eye(3), 1.0, 1), "couplings: .*finite"),
        (
            lambda: mb.replica_loss(2.5, 0.0, np.ma.array([1, 2], mask=[0, 1])),
            "alphas: found numbers that are masked",
        ),
        (
            lambda: mb.sample_clones(
                mb.build_model("factored", 9, 5, layers=1, rank=2, bias=True)._apply(
                    lambda w: w / 0
                ),
                GOOD,
                1,
            ),
            "model: found weights that are not finite",
        ),
        (lambda: mb.replica_loss(2.5, 0.0, [1.0, -1.0]), "alphas: found -1; expected .* above 0"),
        (lambda: mb.score_contacts(*HEADS, gap=3), "gap: found 3; expected a colour, 0 to 2"),
        (lambda: mb.scan_mutations(PAIRS, [0, 1, 2]), "sequence: found sequences of length 3"),
        (
            lambda: mb.fit_couplings(GOOD, 9, sequence_weights=np.ones(3)),
            r"sequence_weights: found shape \(3,\); expected \(2\)",
        ),
        (
            lambda: mb.plot_contacts(mb.score_contacts(*HEADS), known=np.eye(3)),
            r"known: found shape \(3, 3\), numbers to 1; expected \(2, 2\)",
        ),
        (
            lambda: mb.plot_contacts(mb.score_contacts(*HEADS), known=np.full((2, 2), 5.5)),
            r"known: found shape \(2, 2\), numbers to 5.5; .* give known=D < 8",
        ),
        (
            lambda: mb.plot_contacts(mb.score_contacts(*HEADS) - 1),
            "scores: found i, j of int64 from 0; expected integers from 1",
        ),
        (
            lambda: mb.plot_contacts(mb.score_contacts(*HEADS).astype({"j": str})),
            "scores: found i, j of object from 1; expected integers from 1",
        ),
        (
            lambda: mb.plot_contacts(mb.score_contacts(*HEADS)[:0]),
            "scores: found i, j of int64 from no row; expected integers from 1",
        ),
        (lambda: mb.save_pretrained(MASKED, "no", "no.json"), "tokenizer: found no.json"),
        (lambda: mb.save_pretrained(MASKED, "no"), ".*factored: transformers has no class"),
        (lambda: mb.sample_clones(GPT, GOOD, 1), ".*gpt: it predicts next tokens"),
        (
            lambda: mb.build_model("factored", 9, 5, layers=1, rnk=2, bias=True),
            "rnk: this key is not known; .*did you mean rank",
        ),
        (lambda: mb.build_model("factored", 9, 5), ".*missing 1 required .*'layers'"),
        (lambda: mb.spectrum(MASKED, GOOD, draws=9), ".*unexpected keyword argument 'draws'"),
        (lambda: mb.read_sequences(__file__), ".*not a whole Parquet.*Give .*mb.write_sequences; "),
        (
            lambda: [mb.train_model("../run", GOOD, GOOD, 9, **SIZES), mb.load_model("../run")],
            r".*\.\./run is not a readable .*; give \.\./run/manifest.json",
        ),
        (
            lambda: [
                mb.train_model("../run", GOOD, GOOD, 9, **SIZES),
                mb.load_model("../run/model.json"),
            ],
            ".*is not a manifest: .*; give manifest.json of its folder",
        ),
        (lambda: mb.load_model("no", device="gpu"), "device: found 'gpu'; .*example device=cpu"),
        (
            lambda: mb.train_model("no", GOOD, GOOD, 9, device="cuda:99", **SIZES),
            "device is cuda:99, but torch .*choose device auto",
        ),
        (
            lambda: mb.train_model("no", GOOD, GOOD, 9, recipe={"warm_up": 1}, **SIZES),
            "recipe.warm_up: this key is not known; .*did you mean warmup",
        ),
        (
            lambda: [
                mb.train_model("../made", GOOD, GOOD, 9, seed=seed, **SIZES) for seed in (0, 1)
            ],
            "folder: found .*manifest.json, of a run with other arguments",
        ),
        (
            lambda: mb.fit_couplings(GOOD, 9, sequence_weights=[-1.0, 2.0]),
            "sequence_weights: found -1 to 2; expected none below 0 and not all 0",
        ),
        (
            lambda: mb.train_model("no", GOOD, GOOD, 9, recipe={"warmup": 5000}, **SIZES),
            "recipe.warmup: found 5000; expected less than the",
        ),
    ],
)
def test_arguments_are_refused_as_keys_of_the_config_are(call, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal, match=f"^{said}"):
        call()
    assert not list(tmp_path.iterdir())


def test_plots_draw_what_is_in_the_tables():
    from matplotlib.figure import Figure

    left, right = Figure().subfigures().subplots(1, 2)
    scores = mb.score_contacts(MASKED.attention[0][None].bfloat16(), [np.eye(3)])[:9]
    known = np.eye(5, k=-1, dtype=bool)
    assert mb.plot_contacts(scores, left, known) is left
    upper, marks = (image.get_array() for image in left.images)
    i, j = scores["i"] - 1, scores["j"] - 1
    np.testing.assert_allclose([*upper[i, j], upper.count()], [*scores["apc"], 9])
    np.testing.assert_array_equal(marks.filled(-1) == 1, known)
    rows = [
        ("Var g", 0, 1.0, 0.1, "measured"), ("M", 1, 0.5, 0.1, "measured"),
        ("M", 2, 0.01, 0.005, "upper bound"),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["quantity", "order", "share", "share_se", "state"])
    assert mb.plot_spectrum(table, right, color="k", label="a model") is right
    drawn = {tuple(line.get_xydata()[0]): line.get_mfc() for line in right.lines}
    assert drawn == {(1.0, 0.5): "k", (2.0, 0.01): "white"}
    bars = [bar.get_segments()[0][:, 1] for bar in right.collections]
    np.testing.assert_allclose(bars, [[0.4, 0.6], [0.005, 0.015]])
    assert right.get_legend_handles_labels()[1] == ["a model"]


def test_boltzmann_learning_takes_weights_into_both_fits(monkeypatch):
    from manybody.training import boltzmann, pair_fit

    monkeypatch.setattr(boltzmann, "learn", lambda *given, **settings: (given, settings))
    tokens, weights = np.array([[0, 0], [1, 1], [2, 2], [0, 1]]), np.array([1, 2, 0.5, 0])
    given, settings = mb.fit_boltzmann("folder", tokens, 3, weights, seed=5, chains=64)
    np.testing.assert_array_equal(given[0].couplings, pair_fit.fit(tokens, 3, weights).couplings)
    np.testing.assert_array_equal(given[2], weights)
    assert (given[3], settings["seed"], settings["chains"]) == ("folder", 5, 64)


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
