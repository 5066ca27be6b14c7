"""What the tests of faults share: one undisturbed run of the tiny pipeline."""

import shutil
import time

import pytest
from pipeline import Tiny
from pipelines import end


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """An undisturbed run on one core, compiled loops included, and the seconds that it took."""
    folder = tmp_path_factory.mktemp("whole")
    pipeline = Tiny(folder / "run", NUMBA_CACHE_DIR=str(folder / "compiled"))
    begin = time.monotonic()
    pipeline.run(cores=1)
    pipeline.seconds = time.monotonic() - begin
    print(f"\ntiny pipeline, undisturbed, nothing compiled before: {pipeline.seconds:.0f} s")
    return pipeline


@pytest.fixture
def folder(tmp_path):
    """A folder for one pipeline; nothing that works in it outlives the test."""
    yield tmp_path / "run"
    end(tmp_path / "run")


@pytest.fixture
def copy(whole, folder):
    """A finished run with its store and Snakemake's own records, times kept."""
    shutil.copytree(whole.folder, folder, symlinks=True)
    return Tiny(folder, NUMBA_CACHE_DIR=whole.environment["NUMBA_CACHE_DIR"])
