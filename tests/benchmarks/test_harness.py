"""Measurements in processes of their own."""

from benchmarks import harness


def test_a_process_of_its_own_finds_the_modules_of_this_one(tmp_path, monkeypatch):
    """Rules start it where neither the folder nor the environment names the benchmarks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert harness.said("benchmarks.recipes") == ""
