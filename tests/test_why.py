"""Why jobs run, in the words of a person: keys that differ, not two dictionaries."""

import json

import pytest

from why import FOLLOWS, differences, reasons, report

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
        ("Missing output files: results/a.parquet", ["not made yet"]),
        ("Input files updated by another job: results/a.parquet", [FOLLOWS]),
        (
            "Updated input files: a.txt; " + CHANGED + "before: <nothing exclusive> now: 3 ",
            ["nothing -> 3", "files it is made from are newer"],
        ),
    ],
)
def test_reasons_are_differences(reason, expected):
    assert reasons(reason) == expected


def test_inner_keys_are_named_by_their_path():
    before, now = {"training": {"optimizer": {"name": "sgd"}}}, {"training": {"optimizer": "adam"}}
    assert differences([before], [now]) == ["training.optimizer {'name': 'sgd'} -> 'adam'"]


def test_groups_come_with_what_the_jobs_took(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "results/store/models/a/manifest.json/0123/made.json"
    made.parent.mkdir(parents=True)
    made.write_text(json.dumps({"files": {}, "seconds": 90.0}))

    def job(output, rule, reason):
        return dict(output=[output], rule_name=rule, rule_msg=f"Making {output}", reason=reason)

    said = report(
        [
            job("results/losses.parquet", "evaluate_model", "Input files updated by another job"),
            job("results/models/a/manifest.json", "train_model", "Code has changed"),
            job("results/models/b/manifest.json", "train_model", "Code has changed"),
        ]
    ).splitlines()
    assert said[0] == "2 jobs: its rule has changed"
    assert said[1:3] == [
        "    Making results/models/a/manifest.json",
        "    Making results/models/b/manifest.json",
    ]
    assert said[3] == f"1 job: {FOLLOWS}"
    assert said[-1] == "3 jobs; 3.0 minutes of one core for the 2 that ran before"
