"""docs/your-alignment.md, as a person follows it, on an RNA family with a planted stem."""

import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from Bio.PDB import MMCIFIO
from Bio.PDB.StructureBuilder import StructureBuilder
from repository import ROOT

from manybody.data import pair_gibbs
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.pair_model import PairModel
from manybody.measure.known_contacts import of_brackets

pytestmark = pytest.mark.long

PAGE = (ROOT / "docs" / "your-alignment.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```bash\n(.*?)\n```", PAGE, re.DOTALL)
PACKAGE = str(ROOT / "workflow" / "src")
LENGTH = 20
STEM = [(i, LENGTH + 1 - i) for i in range(1, 9)]  # columns, from 1
PAIRED = np.array([[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0.5], [1, 0, 0.5, 0]])  # A C G U


def family() -> str:
    """600 sequences whose stem is of Watson-Crick and wobble pairs, with a few gaps, as FASTA."""
    couplings = of_brackets("stem", "((((((((....))))))))", LENGTH).astype(float)
    law = Hamiltonian(couplings, -PAIRED, 1.2)
    tokens = pair_gibbs.sample(law, 600, 60, np.random.SeedSequence(5)).tokens
    letters = np.array(list("ACGU"))[tokens]
    letters[np.random.default_rng(0).random(letters.shape) < 0.02] = "-"
    letters[0] = list("GGCUACGUAAUUACGUAGCC")  # has a residue in each column
    rows = ["".join(row) for row in letters]
    return "".join(f">rna-{n}/101-120\n{row}\n" for n, row in enumerate(rows))


def hairpin(path):
    """A structure of the first record whose stem is in contact and nothing else."""
    builder = StructureBuilder()
    builder.init_structure("hairpin")
    builder.init_model(0)
    builder.init_seg(" ")
    builder.init_chain("Q")
    for site, letter in enumerate("GGCUACGUAAUUACGUAGCC", start=1):
        builder.init_residue(letter, " ", site, " ")
        x, y = (30.0 * site, 0.0) if site <= LENGTH / 2 else (30.0 * (LENGTH + 1 - site), 5.0)
        y *= 1 if min(site, LENGTH + 1 - site) <= len(STEM) else 10
        builder.init_atom("N1", np.array([x, y, 0.0]), 0.0, 1.0, " ", " N1 ", element="N")
    io = MMCIFIO()
    io.set_structure(builder.get_structure())
    io.save(str(path))


def follow(folder, command: str) -> str:
    """What a command of the page prints, in a folder of its own."""
    name, *words = shlex.split(command)
    if name == "manybody":
        words = ["-c", "import sys; from manybody.command import main; sys.exit(main())", *words]
    else:
        where = [
            "--snakefile", str(ROOT / "Snakefile"),
            "--workflow-profile", str(ROOT / "profiles" / "default"),
        ]  # fmt: skip
        words = ["-m", "snakemake", *where, *("2" if word == "all" else word for word in words)]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder, env={**os.environ, "COLUMNS": "200", "PYTHONPATH": PACKAGE}, text=True,
        check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def pairs_of(signs: str) -> set[tuple[int, int]]:
    found = np.argwhere(np.triu(of_brackets("printed", signs, len(signs))))
    return {(i + 1, j + 1) for i, j in found.tolist()}


def test_an_rna_family_without_and_with_a_structure(tmp_path):
    assert len(PAGE.split()) <= 700
    (tmp_path / "family.fasta").write_text(family())
    output = follow(tmp_path, COMMANDS[0])
    results = tmp_path / "family-family"
    named = re.findall(r"`(\w+\.\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)))
    assert len(named) == 8
    assert all((results / name).is_file() for name in named)
    listed = pd.read_csv(results / "contacts.csv")
    assert len(listed) == LENGTH * (LENGTH - 1) // 2
    best = listed[: len(STEM)]
    assert set(zip(best["i"], best["j"], strict=True)) == set(STEM)
    assert set(best.loc[best["i"] == 1, "site_i"] + best.loc[best["i"] == 1, "site_j"]) == {
        "G101C120"
    }
    record, signs = output.splitlines()[-2:]
    assert record == "GGCUACGUAAUUACGUAGCC"
    assert {(i, j) for i, j in STEM if j - i >= 4} <= pairs_of(signs)
    held = PairModel.load(results / "model.safetensors").about["held_out"]
    assert held["loss"] + 3 * held["error"] < held["single"]

    hairpin(tmp_path / "family.cif")
    output = follow(tmp_path, COMMANDS[1])
    assert "Fitting" not in output
    shares = pd.read_csv(results / "precision.csv").set_index(["separation", "part"])["share"]
    assert shares[4, "L/5"] == 1
    page = (results / "index.html").read_text()
    assert "100 ± 20 % of 4" in page
    assert page.count("data:image/png;base64,") == 2


def test_new_sequences_and_three_body_terms_of_a_family(tmp_path):
    (tmp_path / "family.fasta").write_text(family())
    output = follow(tmp_path, f"{COMMANDS[0]} --boltzmann --three-body --formats")
    assert (tmp_path / "family-family" / "evcouplings.csv").is_file()
    assert "Boltzmann learning has reached its target" in output
    # The law has pairs alone.
    assert re.search(r"do they matter \(at least \.01\)\? (No|Undecided)\.", output)
    page = (tmp_path / "family-family" / "index.html").read_text()
    assert "Boltzmann learning has reached its target" in page
    assert "held-out sequences is -" in page
    assert "Three-body terms add" in page
    assert "Learning" not in follow(tmp_path, COMMANDS[0] + " --boltzmann")
    follow(tmp_path, "manybody generate family-family -n 10000 --out new")
    rows = (tmp_path / "new.fasta").read_text().split()[1::2]
    paired = [{row[i - 1] + row[j - 1] for row in rows} for i, j in STEM]
    assert len(rows) == 10_000
    assert all({"GC", "CG", "AU", "UA"} <= pairs for pairs in paired)
    table = pd.read_csv(tmp_path / "new-statistics.csv").set_index("statistic")
    # As many sequences as the target was tested with, other ones.
    assert table.loc["c_2", "correlation"] > 0.94


def test_many_families_one_of_which_is_not_there(tmp_path):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    text = text.replace("chunk: 50", "chunk: 50, generate: 60")
    (tmp_path / "families.yaml").write_text(text)
    (tmp_path / "first.fasta").write_text(family())
    hairpin(tmp_path / "first.cif")
    (tmp_path / "new.fasta").write_text(">new\nGGCUACGUAAUUACGUAGCC\n")
    (tmp_path / "effects.csv").write_text("mutant,DMS_score\nG101A,0\nG102A,1\n")
    lines = "first.fasta\tfirst.cif\teffects.csv\tnew.fasta\ngone.fasta\t\teffects.csv\n"
    (tmp_path / "families.txt").write_text(lines)
    follow(tmp_path, COMMANDS[2])
    folder = tmp_path / "results" / "families" / "families" / "mine"
    page = (folder / "index.html").read_text()
    assert "1 families are fitted, 1 are not" in page
    assert re.search(r"<td>gone</td><td>.*no such file: gone.fasta", page)
    assert pd.read_csv(folder / "first" / "precision.csv")["share"][0] == 1
    model, row = PairModel.load(folder / "first" / "model.safetensors"), "GGCUACGUAAUUACGUAGCC"
    tokens = [["-ACGU".index(letter) for letter in one] for one in (row, f"A{row[1:]}")]
    energy, mutant = -model.scores(tokens)
    assert pd.read_csv(folder / "first" / "energies.csv")["energy"][0] == pytest.approx(energy)
    effects = pd.read_csv(folder / "first" / "mutations-effects.csv")
    assert effects["change"][0] == pytest.approx(energy - mutant, abs=1e-5)
    assert (folder / "first" / "generated.fasta").read_text().count(">") == 60
    assert "1 sequences, 0 of them aligned to the family" in page
    assert "Boltzmann learning has reached its target" in page
    assert "100% of the measured mutants could be scored" in page
    # What was fitted before a kill is not fitted again.
    made = (folder / "first" / "family.json").stat().st_mtime_ns
    (tmp_path / "results/families/family_chunks/mine/1.json").unlink()
    follow(tmp_path, COMMANDS[2])
    assert (folder / "first" / "family.json").stat().st_mtime_ns == made
    assert (folder / "index.html").read_text().count("gone") == page.count("gone")


def test_a_family_as_a_source_of_the_pipeline(tmp_path):
    split = dict(train=0.8, validation=0.1, test=0.1)
    source = dict(
        kind="alignment", file="family.fasta", format="fasta", alphabet="rna", identity=0.8,
        split=split, seed=0,
    )  # fmt: skip
    block = dict(source="family", model="family-map", seed=0, truth="family.cif")
    config = dict(
        results="results/family", sources=dict(family=source),
        figures=dict(potts=dict(contacts=block)),
    )  # fmt: skip
    (tmp_path / "family.yaml").write_text(json.dumps(config))
    (tmp_path / "family.fasta").write_text(family())
    hairpin(tmp_path / "family.cif")
    target = "results/family/figures/potts/contacts.csv"
    follow(tmp_path, f"snakemake --cores all --configfile family.yaml -- {target}")
    figure = pd.read_csv(tmp_path / target)
    shares = figure.loc[figure["series"] == "corrected score", "y"]
    assert shares.iloc[len(STEM) - 1] == 1
    assert shares.iloc[-1] == pytest.approx(2 * len(STEM) / LENGTH / (LENGTH - 1))
