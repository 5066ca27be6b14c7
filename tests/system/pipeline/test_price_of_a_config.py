"""The price of a config through Snakemake, before anything of it is there."""

import csv
import json

import repository
from pipelines import Pipeline


def test_every_job_of_smoke_has_a_price_and_nothing_is_made(tmp_path):
    folder = tmp_path / "checkout"
    smoke = Pipeline(repository.copy(folder), scale="smoke", root=folder)
    counted = smoke.counted("--forceall", targets=["all"])
    smoke.run(targets=["price"])
    with (smoke.results / "price.csv").open() as opened:
        rows = {row.pop("stage"): row for row in csv.DictReader(opened)}
    assert f"| all | {rows['all']['jobs']} |" in smoke.output
    assert {stage: int(row["jobs"]) for stage, row in rows.items() if stage != "all"} == {
        rule: count for rule, count in counted.items() if rule in rows
    }
    assert {"train_model", "sample_clones", "evaluate_model", "fit_curve"} <= rows.keys()
    assert float(rows["sample_hamiltonian"]["core_hours"]) > 0
    assert rows["collect_corpus"]["not_priced"] == "sizes in a file"
    seconds = json.loads((smoke.results / "price.json").read_text())
    assert all(0 < one < 3600 for one in seconds.values())
    jobs = rows["all"]["jobs"]
    assert f"price: {jobs}/{jobs} jobs (100%)" in (smoke.results / "logs/price.log").read_text()
    assert not (smoke.results / "sequences").exists()
