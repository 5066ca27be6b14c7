"""Tables of theory, as the smoke config asks for them: what they hold, and on what they depend."""

from importlib import import_module

import pytest
from configs import CONFIG, load

COLUMNS = ["quantity", "series", "seed", "x", "y", "y_err"]
ENTRIES = load("smoke.yaml")["theory"]
QUANTITIES = {
    "gradient-flow": "mode, mode (13), mode with decay, mode with decay (13), deviation, norm, "
    "norm with decay, growth, linear law, fastest mode, loss, best linear, rate, symmetric",
    "replica": "loss, start, curve",
    "state-evolution": "overlap, overlap informed, error plug-in, error posterior mean, "
    "threshold, converged",
    "layer-2-held": "fixed, converged",
    "thresholds": "alpha_1, alpha_2, alpha_1 difference, converged",
    "three-layers": "overlap, error plug-in, threshold, converged",
    "gamp-in-time": "M11, M22, Q11, Q22, cosine 1, cosine 2, error plug-in, "
    "converged, SE M11, SE M22, SE Q11, SE Q22",
    "sgd": "cosine 1, cosine 2, loss",
    "trec": "similarity 1, similarity 2, loss, accuracy",
}


@pytest.mark.long
@pytest.mark.parametrize("name", QUANTITIES)
def test_a_table_depends_on_its_seed_and_not_on_the_number_of_threads(name, monkeypatch):
    monkeypatch.chdir(CONFIG.parent)  # entries name files from there
    entry = ENTRIES[name]
    kind = entry["kind"].replace("-", "_").replace("multi_index_", "multi_index.")
    compute = import_module(f"manybody.theory.{kind}").compute
    frame, about = compute(entry)
    assert list(frame) == COLUMNS
    assert list(frame.select_dtypes(float)) == ["x", "y", "y_err"]
    assert set(frame["quantity"]) == set(QUANTITIES[name].split(", "))
    assert not frame[["x", "y"]].isna().any(axis=None)
    asked = {key: value for key, value in entry.items() if key != "threads"}
    assert about["entry"] == asked
    again, same = compute(asked | ({"threads": 16} if "threads" in entry else {}))
    assert again.equals(frame)
    assert same == about
    if "seed" in entry:
        other, _ = compute(entry | {"seed": 5})
        assert not other.equals(frame)
