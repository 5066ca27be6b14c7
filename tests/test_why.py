"""Why jobs run, in the words of a person: keys that differ, not two dictionaries."""

import pytest

from manybody.pipeline.time_left import Plan
from why import FOLLOWS, reasons, report, time_needed

CHANGED = "Params have changed since last execution: Union of exclusive params before and now "
CHANGED += "across all output: "


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (
            CHANGED + "before: {'steps': 80, 'rate': 0.004, 'clip': 1} "
            "now: {'steps': 80, 'rate': 0.006, 'masks': 'all'} ",
            ["rate 0.004 -> 0.006", "clip 1 -> '(absent)'", "masks '(absent)' -> 'all'"],
        ),
        (
            CHANGED + "before: 'aaaaaaaaaaaaaaaa','auto' now: 'bbbbbbbbbbbbbbbb','cpu' ",
            ["the code behind its numbers has changed", "'auto' -> 'cpu'"],
        ),
        (
            CHANGED + "before: {'training': {'optimizer': {'name': 'sgd'}}} "
            "now: {'training': {'optimizer': 'adam'}} ",
            ["training.optimizer {'name': 'sgd'} -> 'adam'"],
        ),
        ("Missing output files: results/a.parquet", ["not made yet or gone"]),
        ("Input files updated by another job: results/a.parquet", [FOLLOWS]),
        (
            "Updated input files: a.txt; " + CHANGED + "before: <nothing exclusive> now: 3 ",
            ["nothing -> 3", "files it is made from are newer"],
        ),
    ],
)
def test_reasons_are_differences(reason, expected):
    assert reasons(reason) == expected


def test_jobs_come_in_groups_and_those_with_causes_of_their_own_first():
    def job(output, reason):
        return dict(rule_name="train_model", rule_msg=f"Making {output}", reason=reason)

    said = report(
        [
            job("losses", "Input files updated by another job"),
            job("a", "Code has changed"),
            job("b", "Code has changed"),
        ]
    ).splitlines()
    assert said == [
        "2 jobs: its rule has changed",
        "    Making a",
        "    Making b",
        f"1 job: {FOLLOWS}",
        "    Making losses",
    ]


@pytest.mark.parametrize(
    ("count", "last"), [(14, "Making 13"), (15, "and 2 more"), (99, "and 86 more")]
)
def test_no_group_is_longer_than_a_screen(count, last):
    jobs = [dict(rule_msg=f"Making {n}", reason="Code has changed") for n in range(count)]
    said = report(jobs).splitlines()
    assert len(said) == 15
    assert said[0] == f"{count} jobs: its rule has changed"
    assert said[-1].strip() == last


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, ""),
        (dict(stored={"a"}), "; the results of 1 are in the store"),
        (dict(guessed={"a", "b"}), "; a rough estimate, as 2 of them never ran here"),
    ],
)
def test_the_time_of_all_says_what_it_rests_on(known, words):
    plan = Plan({"a": 60.0, "b": 60.0}, {"a": set(), "b": {"a"}}, dict(a=1, b=1), 2, **known)
    assert time_needed(plan) == f"2 jobs, about 2 min with --cores 2{words}"
