"""The pipeline on a real SLURM of one node, through profiles/slurm."""

import json
import os
import re
import signal
import time

import pytest

MODEL = "results/tiny/models/spins/tiny/seed-0/manifest.json"
LONG = "results/tiny/models/spins/long/seed-0/manifest.json"
LONGER = "results/tiny/models/spins/longer/seed-0/manifest.json"
LOSSES = "results/tiny/losses/tiny/seed-0.parquet"
EVERYTHING = (
    LOSSES,
    "results/tiny/curves/tiny.parquet",
    "results/tiny/figures/simplicity/gradient_flow.pdf",
)
PATIENCE = 15 * 60  # seconds that a step may take on a busy machine


def gpus(job: dict[str, str]) -> str:
    return job.get("TresPerJob", "none")


def test_artifacts_gpus_and_errors(checkout):
    """The local run's bits, a GPU for the model alone, and a failing job's own words."""
    checkout.run(targets=[MODEL])
    assert checkout.artifacts() == checkout.undisturbed(MODEL)
    (sampling,) = checkout.jobs("sample_hamiltonian")
    (training,) = checkout.jobs("train_model")
    assert (training["Partition"], gpus(training)) == ("gpu", "gres:gpu:1")
    assert (sampling["Partition"], gpus(sampling)) == ("cpu", "none")
    assert sampling["CPUs/Task"] == "1"  # few sequences; two for two processes below
    assert "mem=3000M" in training["TRES"]
    assert training["TimeLimit"] == "01:00:00"

    # A corpus damaged on disk: what the job itself says is what the user sees.
    train = checkout.results / "sequences" / "spins" / "train.parquet"
    train.write_bytes(train.read_bytes()[:-100])
    assert checkout.run("--retries", "0", targets=[LONG], check=False) != 0
    assert "spins/train.parquet is refused: not a whole Parquet file" in checkout.output


@pytest.mark.slow
def test_everything_equals_the_local_run(checkout):
    checkout.run(targets=EVERYTHING)
    assert checkout.artifacts() == checkout.undisturbed(*EVERYTHING)
    # Figures are made where snakemake runs.
    assert checkout.jobs("make_figure") == []
    (sampling,) = checkout.jobs("sample_clones")
    assert (sampling["Partition"], gpus(sampling)) == ("gpu", "gres:gpu:1")
    asked = [job["Partition"] for job in checkout.all_jobs() if gpus(job) != "none"]
    assert asked == ["gpu"] * 2  # the training and the sampling


@pytest.mark.slow
def test_the_smoke_pipeline_equals_the_local_run(checkout):
    """Every figure, through every rule."""
    checkout.scale = "smoke"
    # So many at a time that a small machine's memory is not asked for more than it has.
    checkout.run("--jobs", "4", targets=["all"])
    found = checkout.artifacts()
    assert {"scorecard.md", "figures/simplicity/fig4.pdf"} <= found.keys()
    assert {job["Partition"] for job in checkout.all_jobs() if gpus(job) != "none"} == {"gpu"}
    assert found == checkout.undisturbed("all")


@pytest.mark.slow
def test_short_evaluations_go_in_one_job_that_asks_for_no_more_than_one(checkout):
    """And for no GPU, which then have to do without one."""
    seeds = [LOSSES.replace("seed-0", f"seed-{seed}") for seed in range(3)]
    overlay = "evaluations: {tiny: {seeds: [0, 1, 2]}}"
    checkout.run(targets=seeds, overlay=overlay)
    (group,) = [job for job in checkout.all_jobs() if "evaluations" in job["Comment"]]
    assert (group["Partition"], gpus(group)) == ("cpu", "none")
    assert "cpu=1,mem=3000M" in group["TRES"]
    assert group["TimeLimit"] == "03:00:00"
    # What trains and samples on GPUs alone is evaluated here all the same.
    found = [checkout.folder / seed for seed in seeds]
    expected = [path.read_bytes() for path in found]
    again = ["--forcerun", "evaluate_model", "--rerun-triggers", "mtime"]
    overlay += "\ncompute: {device: cuda, gpus: 1}"
    checkout.run(*again, targets=seeds, overlay=overlay)
    assert len([job for job in checkout.all_jobs() if "evaluations" in job["Comment"]]) == 2
    assert [path.read_bytes() for path in found] == expected


@pytest.mark.slow
def test_without_gpus_none_is_asked_for(checkout):
    checkout.sampled()
    checkout.run(targets=[MODEL], overlay="compute: {gpus: 0}")
    (training,) = checkout.jobs("train_model")
    assert gpus(training) == "none"


@pytest.mark.slow
def test_several_gpus_are_in_one_job_that_trains_with_a_process_for_each(checkout):
    checkout.sampled()
    checkout.run(targets=[MODEL], overlay="compute: {gpus: 2, processes: 2}")
    (training,) = checkout.jobs("train_model")
    assert gpus(training) == "gres:gpu:2"
    assert (training["NumNodes"], training["NumCPUs"]) == ("1", "2")
    # The second process's output stands in a log of its own.
    logs = (checkout.results / "logs/train_model/spins/tiny").iterdir()
    assert {path.name for path in logs} == {"seed-0.log", "seed-0.log.process-1"}


@pytest.mark.slow
def test_a_job_over_its_memory_comes_back_with_more(checkout):
    checkout.sampled()
    memory = "train_model:mem_mb=350 + 1500 * (attempt - 1)"
    checkout.run("--set-resources", memory, targets=[MODEL])
    killed, done = checkout.jobs("train_model")
    assert "mem=350M" in killed["TRES"]
    assert killed["JobState"] != "COMPLETED"
    assert "mem=1850M" in done["TRES"]
    assert done["JobState"] == "COMPLETED"
    assert checkout.artifacts() == checkout.undisturbed(MODEL)


@pytest.mark.slow
def test_a_job_over_its_time_comes_back_with_more_and_goes_on_where_it_was(checkout):
    checkout.sampled()
    times = "train_model:runtime=1 + 29 * (attempt - 1)"
    running = checkout.start("--set-resources", times, targets=[LONGER])
    checkout.cluster.wait(lambda: checkout.jobs("train_model", "TIMEOUT"), PATIENCE)
    before = rates(checkout, "longer")
    assert checkout.finish(running) == 0, checkout.output[-6000:]
    killed, done = checkout.jobs("train_model")
    assert (killed["JobState"], killed["TimeLimit"]) == ("TIMEOUT", "00:01:00")
    assert (done["JobState"], done["TimeLimit"]) == ("COMPLETED", "00:30:00")
    assert rates(checkout, "longer").startswith(before)
    assert checkout.artifacts() == checkout.undisturbed(LONGER)


def rates(checkout, model) -> str:
    """What a training says of its speed, which one that begins anew begins anew."""
    text = (checkout.results / f"models/spins/{model}/seed-0/timing.jsonl").read_text()
    assert text
    return text


def in_the_middle(checkout):
    """A call whose long training has saved a state."""
    checkout.sampled()
    running = checkout.start(targets=[LONG])
    folder = checkout.results / "models/spins/long/seed-0/resume"
    checkout.cluster.wait(lambda: list(folder.glob("state-*.safetensors")), PATIENCE)
    return running


@pytest.mark.slow
def test_a_node_that_fails_in_the_middle_loses_nothing(checkout):
    running = in_the_middle(checkout)
    node = f"nodename={checkout.cluster.host}"
    checkout.cluster.call("scontrol", "update", node, "state=down", "reason=test")
    time.sleep(2)
    checkout.cluster.call("scontrol", "update", node, "state=resume")
    # SLURM itself holds the job back for two minutes now.
    assert checkout.finish(running) == 0, checkout.output[-6000:]
    assert sum(int(job["Restarts"]) for job in checkout.jobs("train_model")) >= 1
    # What is told meanwhile: the whole run, and what the job says of itself on its node.
    told = r"of \d+ jobs done, about .+ left, until .+: \d+/12000 steps"
    assert re.search(told, checkout.output), checkout.output[-6000:]
    assert checkout.artifacts() == checkout.undisturbed(LONG)


@pytest.mark.slow
def test_an_interrupt_cancels_the_jobs_and_the_next_call_goes_on(checkout):
    running = in_the_middle(checkout)
    running.send_signal(signal.SIGINT)
    assert checkout.finish(running) != 0
    (job,) = checkout.jobs("train_model")
    assert job["JobState"] in ("CANCELLED", "COMPLETING")
    before = rates(checkout, "long")
    checkout.run(targets=[LONG])
    assert rates(checkout, "long").startswith(before)
    assert checkout.artifacts() == checkout.undisturbed(LONG)


@pytest.mark.slow
def test_no_artifact_has_two_writers_after_snakemake_was_killed(checkout):
    running = in_the_middle(checkout)
    running.kill()
    running.wait()
    (first,) = checkout.jobs("train_model", "RUNNING")
    lease = checkout.results / "models/spins/long/seed-0/.lease"
    writer = json.loads(lease.read_text())["process"]
    # It must hold its lease for longer than another writer waits for it.
    os.kill(writer, signal.SIGSTOP)
    named = rf"is being written by process {writer} on \S+, job {first['JobId']} \(.*ago\)"
    assert re.search(named, checkout.resume().stderr)
    checkout.run("--unlock")
    assert checkout.run("--retries", "0", targets=[LONG], check=False) != 0
    assert re.search(f"models.long: .*{named}", checkout.output), checkout.output[-6000:]
    assert re.search(f"{named}. Waiting up to", checkout.output), checkout.output[-6000:]
    os.kill(writer, signal.SIGCONT)
    checkout.cluster.wait(lambda: not checkout.jobs("train_model", "RUNNING"), PATIENCE)
    assert [job["JobState"] for job in checkout.jobs("train_model")] == ["COMPLETED", "FAILED"]
    assert checkout.resume().stderr == ""
    checkout.run(targets=[LONG])
    assert checkout.artifacts() == checkout.undisturbed(LONG)
