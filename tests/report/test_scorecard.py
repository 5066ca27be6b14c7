"""The scorecard has a line for each claim, with the number that decides it."""

import pytest

from manybody.papers import claims as records
from manybody.report import scorecard


@pytest.fixture
def paths(tmp_path):
    above, below = records.above("up", 0.5, 0.01), records.above("up | down", -0.5, 0.01)
    rest = {"scope": "3 runs", "rule": "it is up", "reference": "figure 4"}
    made = {
        "simplicity/fig4": [
            records.judged("simplicity/fig4/a", "|V| in a name", above, **rest),
            records.judged("simplicity/fig4/b", "It is up", [above, below], **rest),
            records.not_run("simplicity/fig4/c", "Order 33", "L = 16", reference="figure 4"),
        ],
        "potts/fig3": [records.judged("potts/fig3/a", "Ours", above, "s", "up")],
    }
    found = []
    for name, claims in made.items():
        found.append(tmp_path / f"{name}.claims.csv")
        found[-1].parent.mkdir()
        records.write(claims, found[-1])
    return found


def lines(paths, tmp_path):
    """The cells of the scorecard's lines, by the title above them."""
    scorecard.write(paths, tmp_path / "scorecard.md")
    text = (tmp_path / "scorecard.md").read_text().replace("\\|", "¦")
    return {
        part.partition("\n")[0]: [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in part.splitlines()
            if line.startswith("| ") and not line.startswith(("| figure", "| ---"))
        ]
        for part in text.split("## ")[1:]
    }


def test_a_claim_has_one_line_with_verdict_number_and_reason(paths, tmp_path):
    found = lines(paths, tmp_path)
    number = "0.500 (0.480 to 0.520)"
    assert found["What the papers claim"] == [
        ["simplicity fig4", "¦V¦ in a name (figure 4)", "**yes**", number, f"up: {number}"],
        [
            *("simplicity fig4", "It is up (figure 4)", "**no**", "-0.500 (-0.520 to -0.480)"),
            "1 yes, 1 no; up ¦ down: -0.500 (-0.520 to -0.480)",
        ],
        ["simplicity fig4", "Order 33 (figure 4)", "not-run", "", "L = 16"],
    ]


def test_what_was_found_beyond_the_papers_stands_apart(paths, tmp_path):
    (line,) = lines(paths, tmp_path)["What was found beyond"]
    assert line[:2] == ["potts fig3", "Ours"]


def test_a_run_ends_with_three_sentences_those_of_claims_first(tmp_path):
    def claim(figure, verdict, sentence=""):
        part = records.above("up", {"yes": 0.5, "no": -0.5, "undecided": 0.0}[verdict], 0.01)
        made = records.judged(f"p/{figure}/{len(claims)}", f"It is {verdict}", part, "s", "up")
        return made.says("Found {}.", [sentence] if sentence else [])

    claims = [records.not_run("p/a/none", "Order 33", "L = 16")]
    for given in (
        ("a", "undecided"),
        ("a", "no"),
        ("a", "yes"),
        ("b", "undecided", "1 (0 to 2)"),
        ("b", "yes"),
    ):
        claims.append(claim(*given))
    no = "It is no: no (up: -0.500 (-0.520 to -0.480))."
    yes = "It is yes: yes (up: 0.500 (0.480 to 0.520))."
    # Of what is decided the first of each figure come first.
    assert scorecard.answers(claims) == ["Found 1 (0 to 2).", yes, no]
    assert scorecard.answers(claims[:2]) == [
        "It is undecided: undecided (up: 0.000 (-0.020 to 0.020))."
    ]
    assert scorecard.answers(claims[:1]) == []
    # What a run says is of its own files.
    (tmp_path / "p").mkdir()
    for name, part in (("asked", claims), ("older", [claim("older", "yes", "3 (2 to 4)")])):
        records.write(part, tmp_path / "p" / f"{name}.claims.csv")
    stem = tmp_path / "p" / "asked"
    assert scorecard.found_in([f"{stem}.pdf", f"{stem}.claims.csv"]) == scorecard.answers(claims)
    assert scorecard.found_in([]) == []
