"""What a job's log says of the error that ended it."""

import child
import pytest

RAISE = """
import sys
from manybody.io.atomic import ArtifactError
from manybody.io.logs import log_to
from manybody.io.refusal import Refusal
from manybody.data import SourceError

log_to(sys.argv[1], "models.n2")
print("step 1")
{}
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("Refusal('found 9; expected 8', 'training.batch')", "models.n2.training.batch: found 9;"),
        ("SourceError('a.txt is empty')", "models.n2: a.txt is empty"),
        (
            "OSError(28, 'No space left on device', 'a')",
            "[Errno 28] No space left on device: 'a'; ",
        ),
        ("ArtifactError('b.json was altered')", "models.n2: b.json was altered"),
        ("KeyError('absent')", "KeyError: 'absent'"),
    ],
)
def test_a_refusal_is_its_sentence_after_the_path_of_the_entry_and_another_error_its_traceback(
    tmp_path, error, said
):
    log = tmp_path / "log"
    with child.start("-c", RAISE.format(f"raise {error}"), log) as process:
        printed, errors = process.communicate()
    assert (process.returncode, printed, errors) == (1, "", "")
    first, *between, last = log.read_text().splitlines()
    assert first == "step 1"
    assert last.startswith(said)
    assert between[:1] == ["Traceback (most recent call last):"] * error.startswith("KeyError")
    assert log.read_text().count("Traceback") == len(between[:1])
