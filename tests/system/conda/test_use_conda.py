"""`snakemake --cores all --use-conda` from a bare Snakemake: each rule where its `conda:` says.

Scripts see Snakemake's own packages behind those of their environment, so what an environment
lacks may come from there unnoticed: here Snakemake has none but what it needs itself.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from pipeline import TARGETS, Tiny
from pipelines import ROOT
from test_environment import lock, names_imported, reached, scripts_of_rules

pytestmark = pytest.mark.slow

NAMES = ("figures", "learning", "numerics")
# Rules that config/tiny.yaml leaves out, at its size: a family's contacts, many-body samples.
OVERLAY = f"""
sources:
  many-body: {{sweeps: 4, sequences: {{train: 400, validation: 64, test: 64}}}}
  family:
    kind: alignment
    file: {ROOT}/tests/data/planted.fasta
    format: fasta
    alphabet: protein
    identity: 0.8
    split: {{train: 0.8, validation: 0.1, test: 0.1}}
    seed: 0
models:
  family-map:
    architecture: factored
    layers: 1
    heads: 2
    rank: null
    bias: site
    variant: exact
    init_seed: 1
    training:
      objective: masked
      masks: all
      optimizer: {{name: lbfgs, history: 20, ridge: 1.0e-2, couplings: null}}
      sequence_weights: identity
      steps: 20
      restarts: 1
      validation: 20
      precision: float64
      threads: 1
figures:
  potts:
    contacts:
      source: family
      model: family-map
      truth: {ROOT}/tests/data/planted-contacts.tsv
"""
MORE = (
    "maps/text/tiny/seed-0.parquet",
    "contacts/family/family-map/seed-0.parquet",
    "known_contacts/potts/contacts.parquet",
    "models/many-body/many-body-true/seed-0/manifest.json",
)
SPINS = ("sequences/spins/train.parquet",)
# The scorecard waits for every figure, a benchmark for a quiet machine; no figure here follows the
# layers of a model, asks for losses by equations or of a known law, for a clock, or shows clones.
NOT_RUN = {
    "write_scorecard", "write_page", "benchmark_part", "measure_displacements",
    "evaluate_equations", "evaluate_truth", "describe_clones", "measure_clock",
}  # fmt: skip


def pins(path: Path) -> dict[str, str]:
    """Releases of the packages of an environment file, by name."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]
    return dict(pin.split("==") for pin in entries[-1]["pip"])


def installed(python: Path) -> dict[str, str]:
    """Releases of all packages that an interpreter has, but for pip, by name."""
    listing = subprocess.run(
        [python, "-I", "-m", "pip", "list", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = {}
    for entry in json.loads(listing.stdout):
        name = entry["name"].lower().replace("_", "-").replace(".", "-")
        found[name] = entry["version"].partition("+")[0]  # less the build of torch
    del found["pip"]
    return found


def unlike(path: Path, prefix: Path) -> dict[str, tuple]:
    """Packages that differ between an environment's file and the environment: both releases.

    What the CUDA build of torch brings along is no pin.
    """
    asked, there = pins(path), installed(prefix / "bin" / "python")
    names = sorted(asked.keys() | there.keys())
    differ = {name: (asked.get(name), there.get(name)) for name in names}
    return {
        name: pair
        for name, pair in differ.items()
        if pair[0] != pair[1] and not lock.ACCELERATOR.fullmatch(name)
    }


class UsingConda(Tiny):
    """The pipeline as some Snakemake runs it with --use-conda, and the records of its jobs."""

    def __init__(self, folder, python, variables, prefix, root=ROOT, **options):
        super().__init__(folder, root=root, **options)
        self.python, self.prefix, self.records = str(python), prefix, folder / "records"
        self.records.mkdir()
        record = {"MANYBODY_TEST_RECORD": str(self.records)}
        self.environment = {**variables, **record, "COLUMNS": "200"}

    def where(self, cores):
        return [*super().where(cores), "--use-conda", "--conda-prefix", str(self.prefix)]

    def create(self) -> None:
        """Makes the environments, and has each write down what its jobs load."""
        self.run("--conda-create-envs-only", cores="all")
        for there in environments(self.prefix).values():
            (packages,) = there.glob("lib/python3*/site-packages")
            lines = (str(Path(__file__).parent / "record"), "import job_record")
            (packages / "job_record.pth").write_text("\n".join(lines) + "\n")

    def recorded(self) -> list[dict]:
        return [json.loads(path.read_text()) for path in sorted(self.records.iterdir())]


def foreign(job: dict) -> set[str]:
    """Modules, by first name, that a job had from outside its environment and this package."""
    inside = (job["prefix"] + "/", str(ROOT / "workflow" / "src"))
    return {name for name, file in job["loaded"].items() if not file.startswith(inside)}


def imported_by(script: str) -> set[str]:
    """Modules of other packages, by first name, that a script or what it reaches imports."""
    return {name for file in reached(script) for name in names_imported(file)}


def environments(prefix: Path) -> dict[str, Path]:
    """Folders of the environments under a --conda-prefix, by what their files call them."""
    found = {}
    for path in prefix.glob("*.yaml"):
        name = yaml.safe_load(path.read_text(encoding="utf-8"))["name"].removeprefix("manybody-")
        found[name] = path.with_suffix("")
    return found


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the environments lie: over 3 GB, which do not outlive the tests."""
    folder = tmp_path_factory.mktemp("environments")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory, bare, environment, prefix):
    """A whole run with --use-conda."""
    folder = tmp_path_factory.mktemp("conda-run") / "run"
    pipeline = UsingConda(
        folder, bare, environment, prefix, overlay=OVERLAY, targets=(*TARGETS, *MORE)
    )
    begin = time.monotonic()
    pipeline.create()
    made = time.monotonic()
    pipeline.run(cores="all")
    print(f"\nenvironments: {made - begin:.0f} s; jobs: {time.monotonic() - made:.0f} s")
    return pipeline


def test_files_are_those_of_a_run_in_one_environment(run, tmp_path):
    ordinary = Tiny(tmp_path / "run", overlay=OVERLAY, targets=(*TARGETS, *MORE))
    ordinary.run()
    expected = ordinary.artifacts()
    assert len(expected) > 30
    assert run.artifacts() == expected
    assert run.leftovers() == []


def test_every_job_ran_in_the_environment_of_its_rule(run, prefix):
    places = environments(prefix)
    assert set(places) == set(NAMES)
    declared = {script: str(places[name]) for script, name in scripts_of_rules()}
    assert {(job["script"], job["prefix"]) for job in run.recorded()} == {
        pair for pair in declared.items() if pair[0] not in NOT_RUN
    }


def test_no_job_took_a_package_of_ours_from_snakemake(run):
    for job in run.recorded():
        outside = foreign(job)
        assert "snakemake" in outside  # so what comes from there is seen
        assert not outside & imported_by(job["script"]), job["script"]


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_holds_its_pins_and_no_more(run, prefix, name):
    there = environments(prefix)[name]
    assert unlike(ROOT / "envs" / f"{name}.yaml", there) == {}
    python = there / "bin" / "python"
    check = subprocess.run([python, "-I", "-m", "pip", "check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout


def test_a_package_that_an_environment_lacks_fails(bare, environment, tmp_path):
    """safetensors, which nothing else there needs; scipy, which pip brings along unpinned."""
    copy, prefix = tmp_path / "copy", tmp_path / "environments"
    copy.mkdir()
    shutil.copy(ROOT / "Snakefile", copy)
    for name in ("config", "envs", "profiles", "workflow"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / "envs" / "numerics.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [x for x in lines if not x.strip().startswith(("- safetensors==", "- scipy=="))]
    assert len(kept) == len(lines) - 2
    path.write_text("".join(kept), encoding="utf-8")
    calls = {
        name: UsingConda(tmp_path / name, python, environment, prefix, copy, targets=SPINS)
        for name, python in (("bare", bare), ("full", sys.executable))
    }
    try:
        calls["bare"].create()
        assert calls["bare"].run(cores="all", check=False) == 1
        said = calls["bare"].output
        assert "Error in rule sample_hamiltonian" in said
        assert "ModuleNotFoundError: No module named 'safetensors'" in said
        assert not calls["bare"].artifacts()
        (there,) = environments(prefix).values()
        assert set(unlike(path, there)) == {"scipy"}
        # A Snakemake that has the package lets it pass; what was loaded shows it all the same.
        calls["full"].run(cores="all")
        (job,) = calls["full"].recorded()
        assert foreign(job) & imported_by("sample_hamiltonian") == {"safetensors"}
    finally:
        shutil.rmtree(prefix, ignore_errors=True)
