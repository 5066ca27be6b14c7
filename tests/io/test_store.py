"""The store: what was made before is found by what it was made from, whole or not at all."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from manybody.io import store
from manybody.io.atomic import read_json, sha256
from manybody.io.manifest import Manifest, write_manifest
from manybody.io.store import MADE, VERSIONS, Job, main, unused, versions


class Named(dict):
    """As Snakemake's lists of inputs and outputs: names to paths, iterated as paths."""

    def __iter__(self):
        return iter(self.values())


@pytest.fixture
def results(tmp_path):
    (tmp_path / "input.txt").write_text("input")
    return tmp_path / "results"


def table(results, **params):
    return job(results, Named(table=str(results / "theory/flow.parquet")), params)


def job(results, outputs, params):
    Path(next(iter(outputs))).parent.mkdir(parents=True, exist_ok=True)
    return Job(
        SimpleNamespace(
            output=outputs,
            input=Named(one=str(results.parent / "input.txt")),
            params=params,
            log=[str(results / "logs/compute_theory/flow.log")],
            config={"results": str(results)},
        )
    )


def make(results, **params):
    """Runs a job as its script does; returns what it wrote, or None if it was taken."""
    made = table(results, **params)
    if made.fetch():
        return None
    made.outputs[0].unlink(missing_ok=True)  # as Snakemake does before a job
    made.outputs[0].write_text(text := f"{params} {(results.parent / 'input.txt').read_text()}")
    made.keep()
    return text


def test_going_back_to_earlier_settings_finds_what_they_made(results):
    path = results / "theory/flow.parquet"
    first, second = make(results, rate=1), make(results, rate=2)
    assert path.read_text() == second != first
    old = path.stat().st_mtime
    os.utime(path, (old - 100, old - 100))
    assert make(results, rate=1) is None
    assert path.read_text() == first
    assert path.stat().st_mtime > old - 50  # newer than what it was made from


def test_a_version_says_how_long_its_job_took(results):
    begin = time.monotonic()
    make(results, rate=1)
    (said,) = (results / "store").rglob(MADE)
    # rounded to a tenth
    assert 0 <= read_json(said)["seconds"] <= time.monotonic() - begin + 0.05


def test_another_input_or_parameter_is_another_version(results):
    make(results, rate=1)
    (results.parent / "input.txt").write_text("other")
    assert make(results, rate=1) is not None
    (results.parent / "input.txt").write_text("input")
    assert make(results, rate=1) is None
    assert make(results, rate=1, code="a") is not None


def test_an_altered_version_is_not_taken_and_made_anew(results):
    first = make(results, rate=1)
    path = results / "theory/flow.parquet"
    assert path.samefile(next((results / "store").rglob("flow.parquet/*/flow.parquet")))
    path.write_text("altered in its place")  # and with it the file in the store
    path.unlink()
    assert make(results, rate=1) == first
    assert make(results, rate=1) is None


def test_the_latest_versions_stay(results):
    for rate in range(VERSIONS + 2):
        make(results, rate=rate)
        make(results, rate=0)  # taken again and again: never the oldest
    artifact = results / "store/theory/flow.parquet"
    assert len(versions(artifact)) == VERSIONS == len(list(artifact.iterdir()))
    assert make(results, rate=0) is None
    assert make(results, rate=1) is not None


def run(results, rate, steps):
    """A job that writes a manifest and lists the files beside it."""
    made = job(results, Named(manifest=str(results / "models/n2/manifest.json")), {"rate": rate})
    if made.fetch():
        return False
    folder = made.outputs[0].parent
    for step in steps:
        (folder / f"step-{step}").write_text(f"{rate} {step}")
    write_manifest(folder / "manifest.json", "model", [f"step-{step}" for step in steps], {})
    made.keep()
    return True


def test_a_manifest_comes_back_with_its_files_and_no_others(results):
    folder = results / "models/n2"
    assert run(results, 1, [1, 2])
    before = {path.name: sha256(path) for path in folder.iterdir()}
    for path in folder.iterdir():
        path.unlink()  # as training does before it begins
    assert run(results, 2, [1, 5])
    (folder / "resume").mkdir()
    assert not run(results, 1, [1, 2])
    assert {path.name: sha256(path) for path in folder.iterdir() if path.is_file()} == before
    assert (folder / "resume").is_dir()
    manifest = Manifest.read(folder / "manifest.json", "model")
    assert [manifest.file(name).read_text() for name in manifest.names()] == ["1 1", "1 2"]


def test_the_manifest_is_put_back_last(results, monkeypatch):
    run(results, 1, [1, 2])
    order, link = [], store._link

    def killed(stored, path):
        order.append(path.name)
        if len(order) == 2:
            raise KeyboardInterrupt
        link(stored, path)

    monkeypatch.setattr(store, "_link", killed)
    with pytest.raises(KeyboardInterrupt):
        run(results, 1, [1, 2])
    assert not (results / "models/n2/manifest.json").exists()
    monkeypatch.undo()
    assert not run(results, 1, [1, 2])


def test_a_killed_keep_leaves_no_version(results, monkeypatch):
    made = table(results, rate=1)
    made.outputs[0].write_text("whole")
    monkeypatch.setattr(store, "write_json", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made.keep()
    monkeypatch.undo()
    assert not table(results, rate=1).fetch()
    made.keep()
    assert table(results, rate=1).fetch()


def test_without_links_files_are_copied(results, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links here")))
    first = make(results, rate=1)
    (results / "theory/flow.parquet").unlink()
    assert make(results, rate=1) is None
    assert (results / "theory/flow.parquet").read_text() == first


def test_a_count_that_several_entries_of_a_job_have_is_their_product():
    entries = {"clone": {"sweeps": [50, 20], "chains": 8}, "law": {"sweeps": 3}, "part": "b"}
    assert store.counts(entries) == {"sweeps": 150, "chains": 8}


def test_what_is_not_used_now_is_listed_and_removed_when_told(results, capsys):
    make(results, rate=1)
    make(results, rate=2)
    (old,) = unused(results)
    main(str(results))
    said = capsys.readouterr().out
    assert str(old) in said
    assert "--remove" in said
    main(str(results), "--remove")
    assert unused(results) == []
    assert not old.exists()
    assert make(results, rate=2) is None
    (results / "theory/flow.parquet").unlink()
    assert len(unused(results)) == 1
