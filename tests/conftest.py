"""What all tests share."""

import gc
import hashlib
import os
from itertools import groupby
from pathlib import Path

# Two test processes on two cores: more threads in each would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Arrow's allocator starts a thread on import, with which the helpers that fork would not be safe.
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")

import pytest
from hypothesis import settings

gc.disable()  # until all modules are imported

# The same examples each time; `--hypothesis-profile default` looks for others.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")


CASES = 2  # of a parametrized test that `make test` takes
SYSTEM = Path(__file__).with_name("system")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=("everyday", "system"),
        help="everyday: what `make test` runs, quick tests with a sample of their cases; "
        "system: what it leaves to `make test-system`; by default all",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--part") == "everyday" and collection_path == SYSTEM else None


def pytest_collection_finish() -> None:
    """Leaves what was imported out of Python's search for garbage, which else looks at all of it
    again and again."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests of the part that is asked for; the two parts share none."""
    part = config.getoption("--part")
    if part is None:
        return
    everyday = set()
    for _, cases in groupby(items, lambda item: (item.path, getattr(item, "originalname", ""))):
        quick = [case for case in cases if case.get_closest_marker("long") is None]
        quick = [case for case in quick if SYSTEM not in case.path.parents]
        everyday |= set(sorted(quick, key=_rank)[:CASES])
    left = [item for item in items if (item in everyday) != (part == "everyday")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]


def _rank(item: pytest.Item) -> str:
    """An order of cases that depends on their names only."""
    return hashlib.sha256(item.name.encode()).hexdigest()


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
