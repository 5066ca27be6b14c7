"""config/lab.yaml: its figures and no others, in pieces of as many jobs as its head says."""

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

from manybody.config.check import check, take_away
from manybody.sampling import footprint

LADDER = ("order-3", "order-9", "order-33")
LONG = ("train_model", "sample_clones", "evaluate_model")
ROOT = Path(__file__).resolve().parents[3]


def laid(*names):
    config = load(*names)
    take_away(config)
    return config


def planned(targets, *configs, **overrides):
    """Jobs of the rules that take time, and of all figures together."""
    command = [sys.executable, "-m", "snakemake", "-n", "-q", "rules"]
    command += ["--configfile", *configs]
    command += ["--config", *(f"{key}={value}" for key, value in overrides.items()), "--", *targets]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    jobs = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", ran.stdout, re.MULTILINE)}
    plots = sum(number for rule, number in jobs.items() if rule.startswith("plot_"))
    found = {rule: jobs[rule] for rule in LONG if rule in jobs}
    return found | ({"plots": plots} if plots else {})


def test_the_lab_draws_its_own_figures_and_no_others():
    config = laid("lab.yaml")
    check(config)
    assert config["figures"].keys() == {"simplicity"}
    assert config["figures"]["simplicity"].keys() == {"fig1", "fig3", "fig4", "fig4_paper", "fig5"}
    slices = laid("lab.yaml", "lab-wikitext.yaml")
    check(slices)
    assert slices["figures"]["simplicity"].keys() == {"fig1"}
    assert slices["results"] != config["results"] != load()["results"]


def test_order_33_is_a_restriction_and_every_generator_of_a_ladder_has_one_recipe():
    config = laid("lab.yaml")
    source = config["sources"]["lab"]
    assert source["length"] >= 33
    clones, targets = config["clones"], config["evaluations"]
    for evaluation, variant in (("lab-bert", "exact"), ("lab-bert-paper", "paper")):
        rungs = [targets[evaluation]["targets"][name]["clone"] for name in LADDER]
        models = [config["models"][clones[rung]["model"]] for rung in rungs]
        assert [model["layers"] for model in models] == [2, 4, 6]
        assert {model["variant"] for model in models} == {variant}
        assert {model["rank"] for model in models} == {64}
        recipes = [{**model["training"], "threads": 1} for model in models]
        assert recipes == [recipes[0]] * 3
        assert {clones[rung]["chains"] for rung in rungs} == {310}
        assert {clones[rung]["energy"] for rung in rungs} == {"raw"}


def test_figure_1_on_files_of_ones_own(tmp_path):
    text = tmp_path / "mine.tokens"
    text.write_text(" = A title = \n\n some words .\n")
    jobs = planned(
        ["all"],
        "config/lab.yaml",
        "config/lab-wikitext.yaml",
        results=tmp_path / "out",
        corpora=f"{{wikitext-slice: {{files: [{text}]}}}}",
    )
    assert jobs == {"train_model": 9, "sample_clones": 4, "evaluate_model": 5, "plots": 1}


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
    config = laid("lab.yaml")
    found = requested(tmp_path, gpus=0)
    assert len(found) == 7
    for name, megabytes in found.items():
        clone = config["clones"][name]
        sizes = config["models"][clone["model"]], config["sources"][clone["source"]]
        assert megabytes == footprint.job_megabytes(*sizes, clone)
    assert found["lab-n6"] > 7500 + footprint.PROCESS > found["lab-n4"]
    assert set(requested(tmp_path, gpus=1).values()) == {footprint.FIXED}
