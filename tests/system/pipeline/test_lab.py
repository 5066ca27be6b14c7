"""config/lab.yaml: a figure on files of one's own, and the memory that its jobs ask for."""

import re

from configs import CONFIG, load
from pipelines import ROOT, Pipeline
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
)

from manybody.sampling import footprint


def test_figure_1_and_claim_11_on_files_of_ones_own(tmp_path):
    text = tmp_path / "mine.tokens"
    text.write_text(" = A title = \n\n some words .\n" * 10)
    pipeline = Pipeline(tmp_path, (CONFIG / "lab-wikitext.yaml").read_text(), scale="lab")
    own = f"corpora: {{wikitext-slice: {{files: [{text}]}}}}"
    jobs = pipeline.counted(overlay=own, targets=["all"])
    made = set(re.findall(r"^Job \d+: Making (.*)$", pipeline.output, re.MULTILINE))
    assert made == {"simplicity fig1", "simplicity headline"}
    long = {"train_model": 9, "sample_clones": 4, "evaluate_model": 7, "make_figure": 2}
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
    """Four layers keep caches, six make their copies anew; on a GPU neither is in the job."""
    config = load("lab.yaml")
    found = requested(tmp_path, gpus=0)
    assert len(found) == 6
    for name, megabytes in found.items():
        clone = config["clones"][name]
        sizes = config["models"][clone["model"]], config["sources"][clone["source"]]
        assert megabytes == footprint.job_megabytes(*sizes, clone)
    assert found["lab-n4"] > found["lab-n6"] > footprint.PROCESS
    assert set(requested(tmp_path, gpus=1).values()) == {footprint.FIXED}
