"""docs/your-model.md, as a person follows it, on a series of a tiny causal model."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import own_models
import pandas as pd
import pytest
import repository
import torch
from configs import load

from manybody.data import pydocs

pytestmark = pytest.mark.long

PAGE = (repository.ROOT / "docs" / "your-model.md").read_text(encoding="utf-8")
STEPS = (1, 10, 100, 500, 1000)
COMMAND = "import sys; from manybody.command import main; sys.exit(main())"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A checkout in which the page was followed, and what its parts printed."""
    folder = repository.copy(tmp_path_factory.mktemp("your-model"))
    sizes = dict(max_position_embeddings=64, hidden_size=32)
    first, last = (own_models.model("gpt_neox", 320, seed=seed, **sizes) for seed in (0, 1))
    for part, step in zip((0, 0.2, 0.4, 0.7, 1), STEPS, strict=True):
        place = folder / f"runs/checkpoint-{step}"
        model = own_models.model("gpt_neox", 320, **sizes)
        pairs = zip(first.parameters(), last.parameters(), strict=True)
        for own, (begin, end) in zip(model.parameters(), pairs, strict=True):
            own.data = torch.lerp(begin.data, end.data, part)
        model.save_pretrained(place)
    own_models.byte_level(320).save_pretrained(place)
    shutil.copy2(place / "model.safetensors", folder / "runs/checkpoint-10")
    packages = load("tiny.yaml")["corpora"]["tiny"]["packages"]
    (folder / "letters.txt").write_text("\n\n".join(pydocs.modules(packages)), encoding="utf-8")
    (mine,) = blocks("yaml")
    for long, short in (("20000", "600"), ("targets: 64", "targets: 4"), (": 200,", ": 20,")):
        assert long in mine
        mine = mine.replace(long, short)
    (folder / "mine.yaml").write_text(mine)
    program = folder / "bin" / "manybody"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{COMMAND}\n")
    program.chmod(0o755)
    path = [str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    source = str(folder / "workflow" / "src")
    environment = {**os.environ, "PATH": os.pathsep.join(path), "PYTHONPATH": source}
    command, snakemake = blocks("bash")
    calls = [["bash", "-c", command.replace("2000", "600")]]
    calls += [
        [sys.executable, "-c", program.replace("2000", "600")] for program in blocks("python")
    ]
    calls += [["bash", "-c", snakemake]]
    said = []
    for call in calls:
        done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
        said.append(done.stdout + done.stderr)
        assert done.returncode == 0, said[-1][-8000:]
    return folder, said


def test_the_command_names_suspects_and_leaves_the_figure_alone(followed):
    folder, (said, *_) = followed
    assert "step 10 is left out: its weights" in said
    assert "M_1 / Var g = " in said
    assert re.search(r"^  The share of .* is at least \d+ % for GPTNeoX; ", said, re.MULTILINE)
    assert (folder / "spectrum.pdf").stat().st_size > 5000
    assert (folder / "spectrum-map.pdf").stat().st_size > 5000
    assert not (folder / ".spectrum.parts").exists()
    drawn = pd.read_csv(folder / "spectrum.csv")
    curve = drawn[drawn["series"].str.fullmatch(r".*: M_1") & (drawn["panel"] == "a")]
    doubted = drawn[drawn["series"].str.fullmatch(r".*: M_1, suspect")]
    assert 10 in set(doubted["x"])
    assert set(curve["x"]).isdisjoint(doubted["x"])
    assert set(curve["x"]) | set(doubted["x"]) == set(STEPS)


def test_the_pipeline_draws_the_same_panels(followed):
    folder, _ = followed
    drawn = pd.read_csv(folder / "results/mine/figures/your-model/spectrum.csv")
    assert set(pd.read_csv(folder / "spectrum.csv")["panel"]) < set(drawn["panel"]) == set("abcd")
    drawn = pd.read_csv(folder / "results/mine/figures/your-model/map.csv")
    assert drawn["series"].nunique() == 63  # a causal model is asked for every token but the first


def test_python_prints_the_table(followed):
    _, (_, said, _) = followed
    assert "mean degree" in said
