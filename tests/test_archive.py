"""The archive of runs: what it holds, its checksums, the same bytes, and what it refuses."""

import csv
import os
import subprocess
import zipfile

import planted_page
import pytest
import yaml

import archive
from manybody.io.atomic import ArtifactError, write_json
from manybody.report import scorecard

CONFIG = {"results": "results", "figures": {"simplicity": {"fig4": {}}, "potts": {"fig2": {}}}}


@pytest.fixture
def run(tmp_path):
    """A run with two figures, a clone and, in its folder, another run."""
    folder = tmp_path / "results"
    planted_page.run(folder, CONFIG)
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    scorecard.write(folder.glob("figures/*/*.claims.csv"), folder / "scorecard.md")
    (folder / "models" / "step-1.safetensors").parent.mkdir()
    (folder / "models" / "step-1.safetensors").touch()
    write_json(folder / "order" / "models" / "manifest.json", {})
    return folder


def test_it_holds_what_is_found_and_sha256sum_agrees(run, tmp_path):
    archive.write(tmp_path / "found.zip", [run])
    with zipfile.ZipFile(tmp_path / "found.zip") as packed:
        packed.extractall(tmp_path)
        assert {member.date_time for member in packed.infolist()} == {archive.FIRST}
    folder = tmp_path / "found"
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    stems = ("figures/potts/fig2", "figures/simplicity/fig4")
    endings = ("pdf", "png", "csv", "claims.csv", "caption.rst")
    inside = {f"{stem}.{ending}" for stem in stems for ending in endings}
    inside |= {"config.yaml", "index.html", "scorecard.md", "clones/docs/n2/manifest.json"}
    above = {"README.md", "SHA256SUMS", "LICENSE", "CITATION.cff"}
    assert names == {f"results/{name}" for name in inside} | above
    for name in inside:
        assert (folder / "results" / name).read_bytes() == (run / name).read_bytes()
    assert "| results | 2 | 1 |" in (folder / "README.md").read_text()

    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    said = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=True).stdout
    assert {line.removesuffix(": OK") for line in said.splitlines()} == names - {"SHA256SUMS"}
    (folder / "results" / stems[0]).with_suffix(".csv").write_text("x")
    assert subprocess.run(check, cwd=folder, capture_output=True).returncode == 1


def test_the_same_results_give_the_same_bytes(run, tmp_path):
    archive.write(tmp_path / "found.zip", [run])
    first = (tmp_path / "found.zip").read_bytes()
    for path in run.rglob("*"):
        os.utime(path, (10**9, 10**9))
        path.chmod(0o700)
    archive.write(tmp_path / "found.zip", [run])
    assert (tmp_path / "found.zip").read_bytes() == first


@pytest.mark.parametrize("name", ["config.yaml", "index.html", "figures/potts/fig2.claims.csv"])
def test_what_is_missing_is_named(run, tmp_path, name):
    (run / name).unlink()
    with pytest.raises(ArtifactError, match=f"found no .*results/{name}"):
        archive.write(tmp_path / "found.zip", [run])
    assert not (tmp_path / "found.zip").exists()


def test_a_scorecard_of_earlier_claims_is_refused(run):
    table = run / "figures/potts/fig2.claims.csv"
    rows = list(csv.reader(table.read_text().splitlines()))
    table.write_text(table.read_text().replace(rows[1][1], "(fig2): a > b"))
    with pytest.raises(ArtifactError, match=r"scorecard\.md of other claims"):
        archive.run_files(run)


def test_a_figure_that_is_not_the_last_made_is_refused(run):
    made = run / "store/figures/potts/fig2.pdf"
    write_json(made / "old" / "made.json", {"files": {"fig2.png": "0"}})
    digest = archive.sha256(run / "figures/potts/fig2.png")
    write_json(made / "new" / "made.json", {"files": {"fig2.png": digest}})
    os.utime(made / "old" / "made.json", (10**9, 10**9))
    assert len(archive.run_files(run)) == 14
    os.utime(made / "old" / "made.json")
    with pytest.raises(ArtifactError, match=r"found another .*fig2\.png than"):
        archive.run_files(run)


def test_two_runs_of_one_name_are_refused(run, tmp_path):
    with pytest.raises(ArtifactError, match="two runs with the name results"):
        archive.write(tmp_path / "found.zip", [run, run / ".." / "results"])
