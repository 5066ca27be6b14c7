"""docs/your-alignment.md, as a person follows it, on an RNA family with a planted stem."""

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

pytestmark = pytest.mark.long

PAGE = (ROOT / "docs" / "your-alignment.md").read_text(encoding="utf-8")
LENGTH = 20
STEM = [(i, LENGTH + 1 - i) for i in range(1, 9)]  # columns, from 1
PAIRED = np.array([[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0.5], [1, 0, 0.5, 0]])  # A C G U


def family() -> str:
    """600 sequences whose stem is of Watson-Crick and wobble pairs, with a few gaps, as FASTA."""
    couplings = np.zeros((LENGTH, LENGTH))
    for i, j in STEM:
        couplings[i - 1, j - 1] = couplings[j - 1, i - 1] = 1
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
    words = shlex.split(command)
    assert words[0] == "snakemake"
    where = ["--snakefile", str(ROOT / "Snakefile")]
    where += ["--workflow-profile", str(ROOT / "profiles" / "default")]
    words = ["2" if word == "all" else word for word in words[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *where, *words],
        cwd=folder, env={**os.environ, "COLUMNS": "200"}, text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def test_an_rna_family_without_and_with_a_structure(tmp_path):
    first, structure = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (command,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    assert len(first.splitlines()) <= 5
    (tmp_path / "family.yaml").write_text(first)
    (tmp_path / "family.fasta").write_text(family())
    output = follow(tmp_path, command)
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE))
    assert set(jobs) == {
        "read_alignment", "train_model_on_cpu", "score_contacts", "make_figure", "total",
    }  # fmt: skip
    results = tmp_path / "results" / "family"
    named = re.findall(r"`(results/family/[^`]+\.(?:csv|pdf|parquet))`", PAGE)
    assert len(named) == 3
    assert all((tmp_path / name).is_file() for name in named)
    listed = pd.read_csv(results / "contacts/family/family-map/seed-0.csv")
    assert len(listed) == LENGTH * (LENGTH - 1) // 2
    best = listed[: len(STEM)]
    assert set(zip(best["i"], best["j"], strict=True)) == set(STEM)
    assert set(best.loc[best["i"] == 1, "site_i"] + best.loc[best["i"] == 1, "site_j"]) == {
        "G101C120"
    }
    figure = pd.read_csv(results / "figures/potts/contacts.csv")
    assert (figure["panel"] == "a").sum() == len(listed)
    assert set(figure.loc[figure["panel"] == "b", "series"]) == {"corrected score by rank"}

    hairpin(tmp_path / "family.cif")
    block = re.search(r"contacts: {.*?}", first)[0]
    (tmp_path / "family.yaml").write_text(first.replace(block, structure.strip()))
    output = follow(tmp_path, command)
    assert "train_model" not in output
    figure = pd.read_csv(results / "figures/potts/contacts.csv")
    shares = figure.loc[figure["series"] == "corrected score", "y"]
    assert shares.iloc[len(STEM) - 1] == 1
    assert shares.iloc[-1] == pytest.approx(len(STEM) / len(listed))
