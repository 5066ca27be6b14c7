"""An experiment destroys nothing: going back to earlier settings computes nothing again."""

from repository import ROOT


def taken(pipeline) -> set[str]:
    """The jobs whose last run was found in the store, by their logs."""
    folder = pipeline.results / "logs"
    logs = [log for log in folder.rglob("*.log") if "taken from" in log.read_text()]
    return {log.relative_to(folder).parts[0] for log in logs}


def test_what_is_said_twice_asks_for_no_job(copy):
    assert copy.counted(overlay=(ROOT / "config" / "tiny.yaml").read_text()) == {}


def test_settings_changed_and_changed_back_compute_nothing_again(copy, whole):
    copy.run(overlay="models: {tiny: {training: {learning_rate: 0.005}}}")
    assert copy.artifacts() != whole.artifacts()
    assert copy.run(overlay="clones: {tiny: {chains: 100000}}", check=False) != 0
    copy.run()
    assert copy.artifacts() == whole.artifacts()
    assert taken(copy) == {"train_model", "sample_clones", "evaluate_model"}
    copy.run()
    assert "Nothing to be done" in copy.output
