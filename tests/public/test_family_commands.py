"""`manybody energies`, `mutations` and `generate`: their files, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from planted_pairs import planted

import manybody as mb
from manybody import command
from manybody.data import pair_formats
from manybody.data.pair_model import PairModel

ROWS = ("AC-GU", "ACCGU", "GCAGU", "AUAGC", "GC-AU", "ACAGU")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder `own` as `manybody family` makes it, and the model as a file of adabmDCA."""
    monkeypatch.chdir(tmp_path)
    about = dict(
        alphabet="-ACGU", gap=0, kind="rna", aligned="AC-GU", numbers=[3, 4, None, 5, 6],
        reference="one/3-6", boltzmann=dict(reached=True, settled=8),
    )  # fmt: skip
    model = planted(5, 5, 0.3, 3, about)
    model.save(tmp_path / "own" / "model.safetensors")
    pair_formats.write_adabmdca(tmp_path / "other.dat", model)
    rows = "".join(f">s{n}\n{row}\n" for n, row in enumerate(ROWS))
    (tmp_path / "own" / "family.fasta").write_text(rows)
    (tmp_path / "effects.csv").write_text("mutant,DMS_score\nA1C,1\nC2A,2\nU4C:C2A,3\nG3C,0\n")
    (tmp_path / "new.nex").write_text("#NEXUS\nbegin data;\n")
    (tmp_path / "bare.fasta").write_text(">a\nACCGU\n>b\n>c\n--*--\n")
    return tmp_path


def test_energies_of_a_folder_and_of_a_file_are_the_same(folder, capsys):
    for model in ("own", "other.dat"):
        asked = ["energies", model, "own/family.fasta", "--out", f"{model}-energies"]
        assert command.main(asked) == 0
    assert "6 sequences, 0 of them aligned to the family" in capsys.readouterr().out
    first, second = (pd.read_csv(f"{name}-energies.csv") for name in ("own", "other.dat"))
    pd.testing.assert_frame_equal(first, second)
    tokens = [["-ACGU".index(letter) for letter in row] for row in ROWS]
    expected = -PairModel.load("own/model.safetensors").scores(tokens)
    np.testing.assert_allclose(first["energy"], expected, rtol=1e-6)


def test_sequences_without_gaps_are_said_to_be_taken_as_aligned(folder, capsys):
    (folder / "new.sto").write_text("# STOCKHOLM 1.0\na ACCGU\nb GCNGU\n//\n")
    assert command.main(["energies", "own", "new.sto"]) == 0
    assert "none has a gap, and all have as many letters" in capsys.readouterr().out


REFUSED = {
    "mutations .": "model: found model.safetensors, which does not exist; expected a folder that "
    "`manybody family ALIGNMENT` made",
    "energies own/family.fasta effects.csv": "own/family.fasta cannot be read as a file of "
    "CCMpred: found '>s0\\nAC-GU",
    "energies own bare.fasta": "bare.fasta: without residues are b, c, 2 of 3 sequences; expected",
    "energies own new.nex": "'new.nex.fasta', 'fasta')\", then give new.nex.fasta (where",
    "family new.nex": "then give new.nex.fasta and `--format fasta` (where",
    "generate own/family.fasta": "`manybody family own/family.fasta` makes the folder to give",
    "mutations own --out effects.csv/m": "--out: found effects.csv, which is a file",
    "family own/family.fasta --alphabet rna --out effects.csv": "found effects.csv, which is a",
}


@pytest.mark.parametrize("asked", REFUSED)
def test_what_cannot_be_used_is_refused_with_the_way_out(asked, folder, capsys):
    assert command.main(asked.split()) == 1
    assert REFUSED[asked] in capsys.readouterr().err


def test_what_is_given_is_not_overwritten(folder, capsys):
    table = (folder / "effects.csv").rename("mutations.csv").read_bytes()
    rows = (folder / "own" / "family.fasta").read_bytes()
    assert command.main(["mutations", "own", "--effects", "mutations.csv", "--offset", "2"]) == 1
    asked = ["family", "own/../own/family.fasta", "--alphabet", "rna", "--out", "own"]
    assert command.main(asked) == 1
    given = ["--alignment", "own/family.fasta", "--out", "own/family"]
    assert command.main(["generate", "own", *given]) == 1
    assert capsys.readouterr().err.count("would be overwritten by a result of that name") == 3
    assert (folder / "mutations.csv").read_bytes() == table
    assert (folder / "own" / "family.fasta").read_bytes() == rows


@pytest.mark.long
def test_mutations_are_written_drawn_and_compared_with_effects(folder, capsys):
    asked = ["mutations", "own", "--effects", "effects.csv"]
    assert command.main(asked) == 1
    assert "with --offset 2, 4 of 4 agree" in capsys.readouterr().err
    assert not list(folder.glob("mutations*"))
    assert command.main([*asked, "--offset", "2"]) == 0
    said = capsys.readouterr().out
    assert "100% of the measured mutants could be scored" in said
    assert "frequencies of single sites" in said
    assert len(pd.read_csv("mutations.csv")) == 4 * 3
    assert pd.read_csv("mutations-effects.csv")["change"].notna().all()
    assert (folder / "mutations.png").stat().st_size > 5000
    # A model that has no reference takes the first record of an alignment for it.
    assert command.main(["mutations", "other.dat", "--out", "other"]) == 1
    assert "give the alignment of the family, --alignment" in capsys.readouterr().err
    aligned = ["--alignment", "own/family.fasta", "--out", "other"]
    assert command.main(["mutations", "other.dat", *aligned]) == 0
    changes = [pd.read_csv(f"{name}.csv")["change"] for name in ("mutations", "other")]
    np.testing.assert_allclose(*changes)
    (folder / "short.fasta").write_text(">a\nACG\n>b\nACG\n")
    assert command.main(["mutations", "own", "--alignment", "short.fasta"]) == 1
    assert "short.fasta has 3 columns and the model 5 sites" in capsys.readouterr().err


@pytest.mark.long
def test_new_sequences_are_written_with_what_they_are(folder, capsys):
    assert command.main(["generate", "own", "-n", "40"]) == 0
    assert "c_2: correlation" in capsys.readouterr().out
    lines = (folder / "generated.fasta").read_text().split()
    assert len(lines) == 80
    assert lines[0] == ">generated-1"
    assert set("".join(lines[1::2])) == set("-ACGU")
    assert set(pd.read_csv("generated.csv")["panel"]) == {
        "f", "c_2", "c_3", "components", "distances", "mixing"
    }  # fmt: skip
    assert (folder / "generated.png").stat().st_size > 5000
    # They come from the model of Boltzmann learning, not from that of the fit beside it.
    fit, about = pair_formats.read_model("other.dat"), mb.load_couplings("own").about
    learned = folder / "own" / "boltzmann"
    learned.mkdir()
    (folder / "own" / "model.safetensors").rename(learned / "model.safetensors")
    about = {key: value for key, value in about.items() if key != "boltzmann"}
    PairModel(fit.fields, fit.couplings, about).save(folder / "own" / "model.safetensors")
    assert command.main(["generate", "own", "-n", "40"]) == 0
    for given in (True, False):
        assert ("boltzmann" in mb.load_couplings("own", learned=given).about) == given
    (learned / "model.safetensors").unlink()
    assert command.main(["generate", "own", "-n", "40"]) == 1
    assert "there was no Boltzmann learning" in capsys.readouterr().err
