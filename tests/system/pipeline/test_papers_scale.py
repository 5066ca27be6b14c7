"""The jobs of the papers' scale are as many as `docs/cluster.md` plans for."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_plan_of_the_page_is_what_would_run(tmp_path):
    command = [sys.executable, "-m", "snakemake", "-n", "-q", "rules"]
    command += ["--configfile", "config/paper.yaml", "--config", f"results={tmp_path}"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", ran.stdout, re.MULTILINE))
    jobs = {rule: int(count) for rule, count in jobs.items()}
    starts = {
        "figures": "plot_",
        "claims": ("judge_simplicity", "judge_potts", "judge_multi_index"),
    }
    made = {
        name: sum(count for rule, count in jobs.items() if rule.startswith(start))
        for name, start in starts.items()
    }

    page = (ROOT / "docs" / "cluster.md").read_text().split("## The papers' scale")[1]
    diagram = page.split("```")[1]
    planned = {rule: int(count) for rule, count in re.findall(r"(\w+) (\d+)", diagram)}
    assert planned == {rule: jobs[rule] for rule in planned if rule in jobs} | made
    total, gpu, evaluations, maps = map(int, re.findall(r"(\d+) ", page.split("```")[0]))
    assert (total, gpu) == (jobs["total"], jobs["train_model"] + jobs["sample_clones"])
    assert (evaluations, maps) == (jobs["evaluate_model"], jobs["extract_maps"])
    left_out = jobs.keys() - planned - {"total", "all", "write_scorecard", "judge_gates"}
    assert all(rule.startswith(("plot_", "judge_")) for rule in left_out), left_out
