"""`manybody spectrum`: what it refuses, and that a stopped run goes on."""

import os
import sys

import own_models
import pytest
from safetensors.torch import load_file, save_file

from manybody import command
from manybody.io.progress import Progress
from manybody.measure import flips, spectra
from manybody.papers import style

WEIGHTS = "bert/model.safetensors"
FEW = ["--length", "12", "--orders", "2", "--forwards", "1500"]


@pytest.fixture
def masked(tmp_path, monkeypatch):
    """A masked model with its tokenizer in the folder `bert`, and a text."""
    monkeypatch.chdir(tmp_path)
    tokenizer = own_models.word_piece()
    tokenizer.save_pretrained("bert")
    own_models.model(vocabulary=len(tokenizer)).save_pretrained("bert")
    (tmp_path / "letters.txt").write_text("\n\n".join(own_models.TEXT))
    return tmp_path


CASES = {
    "no such folder": (lambda f: (f / "bert").rename(f / "brt"), "found bert, which is no folder"),
    "code": (
        lambda f: own_models.edit(f / "bert", auto_map={"AutoModelForMaskedLM": "m.M"}),
        "asks for code of its own",
    ),
    "no tokenizer": (lambda f: (f / "bert/tokenizer.json").unlink(), "no tokenizer.json"),
    "another tokenizer": (
        lambda f: own_models.byte_level(300).save_pretrained(f / "bert"),
        "expected sequences of the model's own tokenizer",
    ),
    "short text": (
        lambda f: (f / "letters.txt").write_text("the spin turns the field again " * 4),
        "sequences of 12 tokens; expected at least 4; give a longer text",
    ),
    "one sequence again and again": (
        lambda f: (f / "letters.txt").write_text("the " * 3000),
        "makes 1 different sequences of 12 tokens; expected at least 4; give a longer text",
    ),
    "a config that is a list": (
        lambda f: (f / "bert/config.json").write_text("[1, 2]"),
        "config.json has no keys, but [1, 2]; expected it as save_pretrained writes it",
    ),
    "weights of zeros": (
        lambda f: save_file(
            {name: 0 * part for name, part in load_file(f / WEIGHTS).items()}, f / WEIGHTS
        ),
        "found bert, whose logits are the same whatever the context",
    ),
    "no text": (lambda f: (f / "letters.txt").unlink(), "--text[0]: found letters.txt"),
    "HTML": (
        lambda f: (f / "letters.txt").write_text("\ufeff\n<!DOCTYPE HTML PUBLIC 'x'>\n<p>a\n" * 99),
        "an HTML document",
    ),
}


def test_the_example_does_not_write_over_a_folder(tmp_path, capsys):
    assert command.main(["example", str(tmp_path)]) == 1
    said = f"FOLDER: found {tmp_path}, which is there already; expected a new folder"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_used_is_refused_by_name(case, masked, capsys):
    spoil, said = CASES[case]
    spoil(masked)
    assert command.main(["spectrum", "bert", "--text", "letters.txt", *FEW]) == 1
    assert said in capsys.readouterr().err
    assert not list(masked.glob("spectrum.*"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["~nobody-here"], "found ~nobody-here, which is no folder"),
        (["bert", "--text", "~nobody-here/a.txt"], "--text[0]: found ~nobody-here/a.txt"),
        (
            ["bert", "--length", "3", "--orders", "3"],
            "orders: found 3, expected 1 to L - 1 = 2; lower it",
        ),
        (["bert", "--length", "33"], "at most 32 positions, but the sequences have length 33"),
        (["bert", "--forwards", "20"], "forwards: found 20; expected at least"),
        (["bert", "--out", "."], "own tokenizer"),  # a stem of its own in the folder
    ],
)
def test_arguments_that_cannot_be_used_are_refused_by_name(given, said, masked, capsys):
    CASES["another tokenizer"][0](masked) if "--out" in given else None
    assert command.main(["spectrum", "--text", "letters.txt", *FEW, *given]) == 1
    assert said in capsys.readouterr().err
    assert ("--out" in given) == (masked / ".spectrum.parts").exists()  # no work before that


def test_the_step_that_is_named_is_the_last_that_was_measured(masked, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "module://none")  # as of a notebook elsewhere
    own_models.word_piece().save_pretrained("runs")
    for step in (100, 200):
        made = own_models.model(vocabulary=120, seed=step, layer_norm_eps=1e-12 * step)
        made.save_pretrained(f"runs/checkpoint-{step}")
    few = ["--length", "12", "--orders", "1", "--forwards", "200"]
    assert command.main(["spectrum", "runs", "--text", "letters.txt", *few]) == 0
    printed, progress = capsys.readouterr()
    assert "\ntokenise letters.txt: " in f"\n{progress}"  # as it was named, by no inner path
    assert "step 200 is left out: its config.json" in printed
    assert printed.count("left out") == 1
    assert "step 100, on letters.txt" in printed
    assert "MPLBACKEND" not in os.environ
    assert command.main(["spectrum", "runs/checkpoint-100", "--text", "letters.txt", *few]) == 0


@pytest.mark.long
def test_a_stopped_run_goes_on_and_ends_with_the_same_numbers(masked, monkeypatch, capsys):
    asked = []
    ask, update = flips.ask, Progress.update

    def counted(model, tokens, targets):
        asked.append(len(tokens))
        return ask(model, tokens, targets)

    def stopped(bar, done, *rest, **figures):
        update(bar, done, *rest, **figures)
        if bar._unit == "forwards" and bar._done > 900:
            raise KeyboardInterrupt

    arguments = ["spectrum", "bert", "--text", "letters.txt", *FEW, "--out", "out/mine"]
    monkeypatch.setattr(flips, "ask", counted)
    assert command.main(arguments) == 0
    whole = (masked / "out/mine.csv").read_bytes(), sum(asked)
    monkeypatch.setattr(spectra, "SAVED", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "update", stopped)
        assert command.main(arguments) == 130
    assert "the same command goes on from here" in capsys.readouterr().err
    asked.clear()
    with monkeypatch.context() as patch:
        patch.setattr(style, "save", lambda *_: sys.exit("killed while it draws"))
        with pytest.raises(SystemExit):
            command.main(arguments)
    assert 0 < sum(asked) < 0.8 * whole[1]
    asked.clear()
    assert command.main(arguments) == 0
    assert (masked / "out/mine.csv").read_bytes() == whole[0]
    assert asked == []
    assert {path.name for path in (masked / "out").iterdir()} == {
        f"{stem}.{ending}" for stem in ("mine", "mine-map") for ending in ("csv", "pdf", "png")
    }


def test_an_alignment_of_two_alphabets_is_refused_with_the_option_that_decides(tmp_path, capsys):
    path = tmp_path / "family.fasta"
    path.write_text(">a\nGGCAT\n>b\nGGCTT\n")
    assert command.main(["family", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "give `--alphabet protein`, `--alphabet dna` or" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    shares = (
        ("occupancy", "70", "from 0"),
        ("coverage", "most", "from 0"),
        ("identity", "0", "above"),
    )
    for option, value, bounds in shares:
        with pytest.raises(SystemExit):
            command.main(["family", str(path), f"--{option}", value])
        assert f"found {value}, expected a share {bounds}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", *(n[4:] for n in vars(command) if n.startswith("add_"))])
def test_help_fits_a_screen(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        command.main([*filter(None, [name]), "--help"])
    assert not ended.value.code
    lines = capsys.readouterr().out.splitlines()
    assert 5 < len(lines) <= 40
    assert max(map(len, lines)) <= 80
