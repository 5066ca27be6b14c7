"""What all tests share."""

import os
from pathlib import Path

# Two test processes on two cores: more threads in each would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Arrow's allocator starts a thread on import, with which the helpers that fork would not be safe.
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")

import pytest
from hypothesis import settings

# The same examples each time; `--hypothesis-profile default` looks for others.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with real text that MANYBODY_TEST_DATA names; skips where it names none."""
    name = os.environ.get("MANYBODY_TEST_DATA")
    if not name:
        pytest.skip("no real text: MANYBODY_TEST_DATA is not set to a folder that holds it")
    folder = Path(name)
    if not folder.is_dir():
        pytest.fail(f"MANYBODY_TEST_DATA={name}: no such folder; unset it to skip these tests")
    return folder
