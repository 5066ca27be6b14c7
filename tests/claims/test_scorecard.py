"""The scorecard gathers what the figures' checks say and nothing else."""

import pytest

from manybody.claims import scorecard, verdicts
from manybody.files import tables
from manybody.files.atomic import ArtifactError, read_json


@pytest.fixture
def paths(tmp_path):
    rows = {
        "simplicity/fig3.csv": [
            verdicts.identity("3: energies agree", 1e-7, 0.0, 1e-4),
            verdicts.gap("2: n = 4 beats n = 2", 0.5, 0.01),
        ],
        "simplicity/fig4.csv": [
            verdicts.positive("6: |V| in a name", [100.0, 100.0, 100.0], 20.0),
            verdicts.positive("11: later", [-5.0, -5.0, -5.0]),
            verdicts.not_run("6: order 33", "n = 6 needs L >= 33, L = 16"),
        ],
        "potts/fig3.csv": [verdicts.within("1: slope", 2.0, 0.01, 1.0, 0.1, "statistical")],
    }
    found = []
    for name, made in rows.items():
        tables.write_csv(verdicts.table(made), tmp_path / name)
        found.append(tmp_path / name)
    return found


def test_every_row_is_in_the_scorecard_once(paths, tmp_path):
    scorecard.write(paths, tmp_path / "scorecard.md")
    text = (tmp_path / "scorecard.md").read_text()
    for path in paths:
        for row in scorecard.read_claims(path):
            assert text.count(row["claim"].replace("|", "\\|") + " | **") == 1
    assert text.index("## potts") < text.index("## simplicity") < text.index("### fig4")
    assert "| exact | 1 | 0 | 0 |" in text
    assert "| paper | 2 | 1 | 0 | 1 |" in text
    assert "| statistical | 0 | 0 | 1 |" in text
    assert "| 0.5 ± 0.01 | > 0 (by 0.03) | paper |" in text


def test_every_table_is_one_of_markdown(paths, tmp_path):
    """Tables whose lines have different numbers of columns would be shown as text."""
    scorecard.write(paths, tmp_path / "scorecard.md")
    scorecard.write_page(tmp_path / "scorecard.md", tmp_path / "scorecard.html")
    page = (tmp_path / "scorecard.html").read_text()
    assert page.count("<table>") == len(paths) + 2  # a figure each, and the counts of both kinds
    assert "| ---" not in page


def test_only_exact_and_statistical_rows_are_gates(paths):
    (fault,) = scorecard.gates(paths)
    assert "potts/fig3.csv: 1: slope" in fault
    assert scorecard.gates(paths[:2]) == []


def test_columns_are_those_of_the_checks():
    assert scorecard.COLUMNS == verdicts.COLUMNS
    assert scorecard.ANSWERS["paper"] == verdicts.ANSWERS
    assert scorecard.GATES == verdicts.GATES
    for kind in verdicts.GATES:
        assert scorecard.ANSWERS[kind] == tuple(verdicts.GATE_ANSWERS.values())
    assert set(scorecard.ANSWERS) == set(verdicts.KINDS)


def test_contradicted_gates_are_named_and_leave_no_file(paths, tmp_path):
    named = r"1 contradicted.*\n.*potts/fig3\.csv: 1"
    with pytest.raises(scorecard.ContradictedGates, match=named):
        scorecard.judge(paths, tmp_path / "gates.json")
    assert not (tmp_path / "gates.json").exists()
    scorecard.judge(paths[:2], tmp_path / "gates.json")
    counts = read_json(tmp_path / "gates.json")
    assert counts["exact"] == {"confirmed": 1, "consistent": 0, "contradicted": 0}


def test_another_table_is_refused_by_name(tmp_path):
    (tmp_path / "fig1.csv").write_text("panel,series\na,b\n")
    with pytest.raises(ArtifactError, match=r"fig1\.csv has the columns"):
        scorecard.read_claims(tmp_path / "fig1.csv")


def test_an_unknown_answer_is_refused(tmp_path):
    row = ",".join(["claim", "paper", "1", "1", "1", "1", "maybe"])
    (tmp_path / "fig1.csv").write_text(",".join(verdicts.COLUMNS) + f"\n{row}\n")
    with pytest.raises(ArtifactError, match="maybe"):
        scorecard.read_claims(tmp_path / "fig1.csv")


def test_the_page_holds_the_same_tables(paths, tmp_path):
    scorecard.write(paths, tmp_path / "scorecard.md")
    scorecard.write_page(tmp_path / "scorecard.md", tmp_path / "scorecard.html")
    page = (tmp_path / "scorecard.html").read_text()
    rows = sum(len(scorecard.read_claims(path)) for path in paths)
    assert page.count("<td>claim</td>") == 0
    assert page.count("<strong>") >= rows
    assert "<td>6: |V| in a name" in page
