"""Disks that are full, folders that are read-only, files that go or change, clocks, two calls."""

import os
import subprocess
import sys
import time

import pytest
from pipeline import RESULTS, Tiny
from pipelines import Pipeline
from repository import ROOT

from manybody.io import running
from manybody.io.lease import lease

MODEL = "models/text/tiny/seed-0"
LOSSES = "losses/tiny/seed-0.parquet"
CLONE = "clones/text/tiny/manifest.json"
CURVE = "curves/tiny.parquet"


@pytest.mark.slow
def test_a_full_disk_is_named_and_leaves_nothing_half_written(whole, folder):
    """On a file system of 256 KiB, where root may mount one."""
    (folder / RESULTS).mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder / RESULTS)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small file system here")
    pipeline = Tiny(folder)
    try:
        assert pipeline.run(check=False) != 0
        assert "No space left on device" in pipeline.output
        assert pipeline.artifacts().items() <= whole.artifacts().items()
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder / RESULTS)], check=True)
        pipeline.run()
        assert pipeline.artifacts() == whole.artifacts()
        assert pipeline.leftovers() == []
    finally:
        subprocess.run(["umount", "-l", str(folder / RESULTS)], check=True)


@pytest.mark.slow
def test_a_read_only_folder_is_named_and_nothing_is_lost(copy, whole):
    """By a read-only mount, which holds for root as well."""
    target, expected = copy.folder / RESULTS, whole.artifacts()
    expected.pop(CURVE)
    (copy.results / CURVE).unlink()
    bind = ["mount", "--bind", str(target), str(target)]
    if subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(target)], check=True)
        assert copy.run(check=False) != 0
        assert f"results: found {RESULTS}, but {target} cannot be written" in copy.output
        assert "Job stats" not in copy.output
        assert copy.artifacts() == expected
    finally:
        subprocess.run(["umount", "-l", str(target)], check=True)
    copy.run()
    assert copy.artifacts() == whole.artifacts()


@pytest.mark.slow
def test_a_clock_set_back_is_named_and_nothing_is_lost(copy, whole):
    """All that is there comes from the future, by a day; a part is missing and is made now."""
    (copy.results / CLONE).unlink()
    (copy.results / LOSSES).unlink()
    future = time.time() + 86_400
    for path in copy.folder.rglob("*"):
        os.utime(path, (future, future))
    assert copy.run(check=False) != 0
    assert f"Output {RESULTS / CLONE} has older modification time" in copy.output
    assert f"than input {RESULTS}/" in copy.output
    assert copy.artifacts().items() <= whole.artifacts().items()
    for path in copy.folder.rglob("*"):  # as `find results -exec touch {} +` does
        os.utime(path)
    copy.run()
    assert copy.artifacts() == whole.artifacts()
    copy.run()
    assert "Nothing to be done" in copy.output


@pytest.mark.slow
def test_a_second_snakemake_is_refused_and_the_first_one_finishes(whole, folder):
    first = Tiny(folder)
    call = first.start()
    first.wait_for(call, "corpora/tiny/train.parquet")
    second = Tiny(folder)
    second.printed = folder / "second"
    assert second.run(cores=1, check=False) != 0
    assert f"is locked: snakemake runs in {folder} as process {call.pid}." in second.output
    assert f"`make resume RESULTS={RESULTS}`" in second.output
    resumed = second.resume()
    assert resumed.returncode == 1
    assert f"snakemake runs in {folder} as process {call.pid}" in resumed.stderr
    assert first.finish(call) == 0, first.output[-4000:]
    assert first.artifacts() == whole.artifacts()
    assert first.resume().returncode == 0


@pytest.mark.slow
def test_a_corpus_that_changes_in_mid_run_is_read_again(folder):
    """What was made of the old text, and what is made of the new one, never mix."""
    overlay = (
        "corpora: {mine: {kind: file, files: [text.txt], boundary: blank-line,"
        " seed: 0, split: {train: 0.6, validation: 0.2, test: 0.2}}}\n"
        "sources: {text: {corpus: mine, vocabulary: 260}}\n"
    )
    old = "".join(f"A line of {n} words.\n\n" for n in range(900))
    targets = [f"sequences/text/{split}.parquet" for split in ("train", "validation", "test")]
    changed = Tiny(folder, overlay, targets)
    (folder / "text.txt").write_text(old)
    call = changed.start()
    changed.wait_for(call, "corpora/mine/train.parquet")
    (folder / "text.txt").write_text(old + "And one more line.\n")
    if changed.finish(call):
        assert "text.txt changed while it was read" in changed.output
    changed.run()
    fresh = Tiny(folder.with_name("fresh"), overlay, targets)
    (fresh.folder / "text.txt").write_text(old + "And one more line.\n")
    fresh.run()
    assert changed.artifacts() == fresh.artifacts()


RUN = """
import sys, time
from manybody.io.running import run_into
with run_into(sys.argv[1]):
    print("runs", flush=True)
    time.sleep(1000)
"""


def test_runs_into_several_folders_of_results_are_told_apart_alive_and_dead(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snakemake").write_text(RUN)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "workflow" / "src")}
    places = ("results", "results/smoke")
    calls = [
        subprocess.Popen([sys.executable, "snakemake", name], stdout=subprocess.PIPE, env=env)
        for name in places
    ]
    try:
        assert [call.stdout.readline() for call in calls] == [b"runs\n", b"runs\n"]
        for call, name in zip(calls, places, strict=True):
            line = f"snakemake runs in {tmp_path} as process {call.pid}."
            assert running.alive(name) == [line]
            assert f"locked: {line} Wait for it" in running.explained(name)
        assert running.alive("results/mine") == []
        calls[1].kill()
        calls[1].wait()
        said = running.explained("results/smoke")
        assert f"process {calls[1].pid} on" in said
        assert "That process is dead. `make resume RESULTS=results/smoke`" in said
        with running.run_into("results/smoke"):
            assert "dead" not in running.explained("results/smoke")
        assert not list((tmp_path / "results/smoke").rglob(".lease"))
    finally:
        for call in calls:
            call.kill()
            call.communicate()


def test_unlocking_waits_for_a_lease_and_names_its_holder(tmp_path):
    run, pipeline = tmp_path / RESULTS / MODEL, Pipeline(tmp_path)
    with lease(run):
        asked = pipeline.resume()
        assert asked.returncode == 1
        assert f"{MODEL} is being written by process {os.getpid()} on" in asked.stderr
    assert pipeline.resume().returncode == 0
    assert running.asked("results", ["--config", "results=mine"]) == "mine"
    (run / ".lease").write_text('{"host": "elsewhere", "boot": "", "process": 1, "job": "7"}')
    assert "elsewhere, job 7" in pipeline.resume().stderr
    os.utime(run / ".lease", (0, 0))
    assert pipeline.resume().returncode == 0
