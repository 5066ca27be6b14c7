"""config/lab.yaml: a figure on files of one's own, and the memory that its jobs ask for."""

import re
import subprocess
import sys
from pathlib import Path

from configs import CONFIG, load
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
)

from manybody.sampling import footprint

ROOT = Path(__file__).resolve().parents[3]


def test_figure_1_on_files_of_ones_own(tmp_path):
    text = tmp_path / "mine.tokens"
    text.write_text(" = A title = \n\n some words .\n")
    command = [sys.executable, "-m", "snakemake", "-n", "-q", "rules"]
    command += ["--configfile", "config/lab.yaml", "config/lab-wikitext.yaml"]
    command += ["--config", f"results={tmp_path / 'out'}"]
    command += [f"corpora={{wikitext-slice: {{files: [{text}]}}}}", "--", "all"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", ran.stdout, re.MULTILINE))
    plots = {rule for rule in jobs if rule.startswith("plot_")}
    assert plots == {"plot_simplicity_fig1"}
    long = {"train_model": "9", "sample_clones": "4", "evaluate_model": "5"}
    assert jobs.items() >= long.items()


def requested(folder, gpus):
    """Memory (MB) that the job of each clone asks for at its first try."""
    config = {"results": str(folder / "results")}
    config["compute"] = {"device": "auto", "gpus": gpus, "processes": 1}
    with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=[CONFIG / "lab.yaml"], config=config),
            snakefile=ROOT / "Snakefile",
            workdir=folder,
        )
        workflow.dag(DAGSettings(targets={"clones"})).execute_workflow(executor="dryrun")
        jobs = list(workflow._workflow.dag.jobs)
    return {
        job.wildcards.clone: job.resources["mem_mb"]
        for job in jobs
        if job.rule.name == "sample_clones"
    }


def test_the_memory_of_a_clone_s_job_follows_from_its_sizes(tmp_path):
    """The caches of n = 6 alone take 7.5 GB for 310 chains; on a GPU they are not in the job."""
    config = load("lab.yaml")
    found = requested(tmp_path, gpus=0)
    assert len(found) == 7
    for name, megabytes in found.items():
        clone = config["clones"][name]
        sizes = config["models"][clone["model"]], config["sources"][clone["source"]]
        assert megabytes == footprint.job_megabytes(*sizes, clone)
    assert found["lab-n6"] > 7500 + footprint.PROCESS > found["lab-n4"]
    assert set(requested(tmp_path, gpus=1).values()) == {footprint.FIXED}
