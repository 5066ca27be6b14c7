"""Tables of theory, as the smoke config asks for them, depend on their entries alone.

Kinds whose tables take longer have such a test with their own, at smaller sizes.
"""

import pytest
from configs import CONFIG, load

from manybody.theory import gradient_flow, replica
from manybody.theory.multi_index import fixed_overlap, gamp, sgd, trec

COLUMNS = ["quantity", "series", "seed", "x", "y", "y_err"]
ENTRIES = load("smoke.yaml")["theory"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "theory"),
    [
        ("gradient-flow", gradient_flow),
        ("replica", replica),
        ("layer-2-held", fixed_overlap),
        ("gamp-in-time", gamp),
        ("sgd", sgd),
        ("trec", trec),
    ],
)
def test_a_table_depends_on_its_seed_and_not_on_the_number_of_threads(name, theory, monkeypatch):
    monkeypatch.chdir(CONFIG.parent)  # entries name files from there
    frame, about = theory.compute(ENTRIES[name])
    assert list(frame) == COLUMNS
    assert not frame[["x", "y"]].isna().any(axis=None)
    asked = {key: value for key, value in ENTRIES[name].items() if key != "threads"}
    assert about["entry"] == asked
    threads = {"threads": 16} if "threads" in ENTRIES[name] else {}
    again, same = theory.compute(asked | threads)
    assert again.equals(frame)
    assert same == about
    other, _ = theory.compute(ENTRIES[name] | {"seed": 5})
    assert not other.equals(frame)
