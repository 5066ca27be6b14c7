"""The page of results, which is made of a template and the claim records of the gallery."""

import csv

import pytest
from repository import ROOT

from manybody.papers import claims
from schemas import results

RECORD = claims.Claim(
    "potts/fig3/peak",
    "A | b",
    41.52,
    36.8,
    46.3,
    "M is 28 to 60",
    "yes",
    "",
    "",
    "figure 3",
)
OTHER = claims.not_run("potts/fig2/best", "Rates are best", "one seed", reference="figure 2a")
FOUND = claims.judged("potts/fig2/more", "More is found", [], "", "it is so")


@pytest.fixture
def root(tmp_path):
    for file in results.RECORDS.values():
        path = tmp_path / results.GALLERY / file
        path.parent.mkdir(parents=True, exist_ok=True)
        claims.write([RECORD, OTHER, FOUND], path)
    return tmp_path


def test_a_field_is_a_number_with_its_interval_or_a_verdict(root):
    said = results.filled("M = [[potts/fig3/peak]]: [[lab:potts/fig3/peak verdict]]", root)
    assert said == "M = 41.5 (36.8 to 46.3): *yes*"


def test_a_field_is_a_factor_of_a_figures_table(root):
    table = "panel,series,seed,x,y,y_err\na,L = 12,1,2,9.0,\nb,L = 12,all,1,2.6053,0.1942\n"
    (root / results.GALLERY / "order.csv").write_text(table)
    assert results.filled("[[order.csv b: L = 12]] times", root) == "2.61 (2.15 to 3.16) times"
    with pytest.raises(KeyError, match="L = 13"):
        results.filled("[[order.csv b: L = 13]]", root)


def test_a_table_has_a_papers_records_and_links_the_picture(root):
    assert results.filled("[[table potts]]", root).splitlines()[2:] == [
        "| A \\| b (figure 3) | **yes** | 41.5 (36.8 to 46.3) | [fig3](gallery/potts-fig3.png) |",
        "| Rates are best (figure 2a) | not-run |  | [fig2](gallery/potts-fig2.png) |",
    ]
    assert "More is found" in results.filled("[[beyond]]", root)
    assert results.filled("[[table simplicity]]", root) == results.HEAD


def test_a_record_that_is_not_there_stops_the_page(root):
    with pytest.raises(KeyError, match="potts/fig3/peek"):
        results.filled("[[potts/fig3/peek]]", root)


def test_references_of_claims_are_those_of_the_papers():
    with (ROOT / "docs/science/references.csv").open(encoding="utf-8", newline="") as opened:
        known = {(row["paper"], row["reference"]) for row in csv.DictReader(opened)}
    found = {
        (claim.id.partition("/")[0], claim.reference)
        for path in (ROOT / results.GALLERY).rglob("*claims.csv")
        for claim in claims.read(path)
        if claim.reference
    }
    assert found <= known
    assert {paper for paper, _ in found} == {paper for paper, _ in known}


def test_the_gallery_has_pictures_tables_and_records_of_a_run_with_its_commit(root, tmp_path):
    run = tmp_path / "run"
    for paper, figure, claim in (("potts", "fig3", RECORD), ("simplicity", "fig4", FOUND)):
        stem = run / "figures" / paper / figure
        stem.parent.mkdir(parents=True)
        stem.with_suffix(".png").write_bytes(paper.encode())
        stem.with_suffix(".csv").write_text("series,seed,y\na,mean,0.123456789\n")
        claims.write([claim], stem.with_suffix(".claims.csv"))
    (run / "scorecard.md").write_text("# Scorecard\n")
    gallery = root / results.GALLERY
    old = "picture,config,commit\nlab/fig1.png,lab,abc\nfig4.png,old,old\n"
    (gallery / results.RUNS).write_text(old)
    results.gather(run, root)
    assert (gallery / "potts-fig3.png").read_bytes() == b"potts"
    assert (gallery / "fig4.csv").read_text() == "series,seed,y\na,mean,0.12346\n"
    assert [one.id for one in claims.read(gallery / "claims.csv")] == [RECORD.id, FOUND.id]
    rows = [line.split(",")[:2] for line in (gallery / results.RUNS).read_text().splitlines()]
    demo = "config/config.yaml config/seeds.yaml"
    own = ["fig4.png", demo], ["potts-fig3.png", demo]
    assert rows == [["picture", "config"], own[0], ["lab/fig1.png", "lab"], own[1]]


def test_every_picture_of_the_gallery_has_its_commit_and_tables_are_small():
    folder = ROOT / results.GALLERY
    with (folder / results.RUNS).open(encoding="utf-8", newline="") as opened:
        named = {row["picture"] for row in csv.DictReader(opened) if row["commit"]}
    assert named == {str(path.relative_to(folder)) for path in folder.rglob("*.png")}
    assert sum(path.stat().st_size for path in folder.rglob("*.csv*")) < 2**20
