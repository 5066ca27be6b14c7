"""The scorecard gathers what the figures' claims say and nothing else."""

import pytest

from manybody.claims import scorecard, verdicts
from manybody.claims.statements import statement
from manybody.io import tables
from manybody.io.atomic import ArtifactError, read_json


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


def lines(paths, tmp_path):
    """The cells of the first page's lines."""
    scorecard.write(paths, tmp_path / "scorecard.md")
    text = (tmp_path / "scorecard.md").read_text().partition("| --- |")[2]
    return [line.strip("| ").split(" | ") for line in text.splitlines()[1:]]


def test_a_claim_has_one_line_with_the_verdict_of_all_its_rows(paths, tmp_path):
    found = {cells[1]: cells[2:] for cells in lines(paths, tmp_path)}
    assert found["6: \\|V\\| in a name"][0] == "**yes**"
    assert found["11: later"][0] == "**no**"
    (reason,) = [rest for claim, rest in found.items() if claim.startswith("6: order 33")]
    assert reason == ["not run", "n = 6 needs L >= 33, L = 16"]
    assert found["2: n = 4 beats n = 2"] == ["**yes**", "0.500 ± 0.010: 2: n = 4 beats n = 2"]


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ("yes yes", "**yes**"),
        ("yes undecided", "**undecided** (1 yes, 1 undecided, 0 no)"),
        ("yes undecided no", "**no** (1 yes, 1 undecided, 1 no)"),
        ("not-run yes", "**yes**"),
        ("not-run", "not run"),
    ],
)
def test_a_statement_is_as_certain_as_the_least_certain_of_its_rows(answers, verdict, tmp_path):
    """Of rows that all say yes the one nearest to 0, in its errors, is shown."""
    path = tmp_path / "simplicity" / "fig4.csv"
    made = [
        dict(claim=f"6 (fig. 4): {n} saturates before n", kind="paper", value=value)
        | dict(standard_error=1.0, expected="> 0", tolerance=2.0, holds=answer)
        for n, (answer, value) in enumerate(zip(answers.split(), (9.0, 3.0, 5.0), strict=False))
    ]
    tables.write_csv(verdicts.table(made), path)
    ((_, sentence, answer, number),) = lines([path], tmp_path)
    assert sentence == statement("simplicity", "fig4", made[0]["claim"]) != made[0]["claim"]
    assert answer == verdict
    if answers == "yes yes":
        assert number.startswith("3.0 ± 1.0: ")


def test_gates_have_one_line_a_figure(paths, tmp_path):
    found = [cells for cells in lines(paths, tmp_path) if "numbers against" in cells[1]]
    assert [(cells[0], cells[2]) for cells in found] == [
        ("potts fig3", "0 confirmed, 0 consistent, 1 contradicted"),
        ("simplicity fig3", "1 confirmed, 0 consistent, 0 contradicted"),
    ]


def test_figures_of_gates_alone_share_the_last_line_of_their_paper(tmp_path):
    paths = [tmp_path / "potts" / f"{figure}.csv" for figure in ("contacts", "fig2", "recovery")]
    gate = dict(kind="exact", value=1.0, standard_error=0.0, expected="1", tolerance=0.1)
    own = [dict(claim="number", holds="confirmed") | gate]
    claim = dict(claim="higher", kind="paper", value=1.0, standard_error=0.1, expected="> 0")
    tables_of = own * 2, [claim | dict(tolerance=0.2, holds="yes")], own
    for path, rows in zip(paths, tables_of, strict=True):
        tables.write_csv(verdicts.table(rows), path)
    assert [cells[0] for cells in lines(paths, tmp_path)] == [
        "potts fig2",
        "potts contacts, recovery",
    ]
    assert lines(paths, tmp_path)[-1][1].startswith("3 numbers against")


def test_only_exact_and_statistical_rows_are_gates(paths):
    (fault,) = scorecard.gates(paths)
    assert "potts/fig3.csv: 1: slope" in fault
    assert scorecard.gates(paths[:2]) == []


def test_gates_are_answered_in_the_words_of_the_scorecard():
    for kind in scorecard.GATES:
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("panel,series\na,b\n", r"fig1\.csv has the columns"),
        (",".join(verdicts.COLUMNS) + "\nclaim,paper,1,1,1,1,maybe\n", "maybe"),
    ],
)
def test_another_table_or_an_unknown_answer_is_refused(text, said, tmp_path):
    (tmp_path / "fig1.csv").write_text(text)
    with pytest.raises(ArtifactError, match=said):
        scorecard.read_claims(tmp_path / "fig1.csv")
