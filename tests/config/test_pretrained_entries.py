"""Entries of models that were trained elsewhere, and of sources with their tokenizers."""

import pytest
from configs import load, refusal

from manybody.pipeline.check import check

TEXT = {"kind": "text", "corpus": "tiny", "length": 16, "end_of_document": "dropped"}
MASKED = {"architecture": "pretrained", "objective": "masked", "weights": "mine"}
CAUSAL = {**MASKED, "objective": "next-token", "weights": {"hub": "a/b", "revisions": "step"}}


def config(model=MASKED, source=None, **clone):
    """The tiny config with a model that was trained elsewhere, its clones and its losses."""
    made = load("tiny.yaml")
    made["sources"]["theirs"] = {**TEXT, "tokenizer": "mine"} if source is None else source
    made["models"]["theirs"] = model
    settings = {"source": "theirs", "model": "theirs"}
    if model["objective"] != "next-token":
        made["clones"]["theirs"] = {**made["clones"]["tiny"], **settings, **clone}
    test = {"test": {"split": "test", "sequences": 10}}
    made["evaluations"]["theirs"] = {**made["evaluations"]["tiny"], **settings, "targets": test}
    return made


@pytest.mark.parametrize(
    "model",
    [
        MASKED,
        {**MASKED, "weights": ["a-1", "a-2"], "steps": [5, 10]},
        CAUSAL,
        {**CAUSAL, "audit": False},
        {**CAUSAL, "weights": {"hub": "a/b", "revisions": ["main"]}, "steps": [143000]},
    ],
)
def test_entries_that_can_be_used(model):
    checked = check(config(model, step=5))
    assert checked.models["theirs"].about.causal == (model["objective"] == "next-token")
    assert checked.models["theirs"].evaluated


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({**MASKED, "init_seed": 1}, "models.theirs.init_seed: found a value beside weights mine"),
        ({**MASKED, "steps": [1, 2]}, "models.theirs.steps: found 2 of them; expected one for"),
        ({**MASKED, "weights": ["a", "b"], "steps": [2, 1]}, "found [2, 1]; expected steps that"),
        ({**MASKED, "weights": {"hub": "a"}}, "models.theirs.weights.hub: found 'a'; expected"),
        ({**MASKED, "weights": {"hub": "a/b", "revision": "x"}}, "did you mean revisions?"),
        ({**MASKED, "objective": "both"}, "models.theirs.objective: found 'both'; expected one"),
        ({**MASKED, "audit": "none"}, "models.theirs.audit: found 'none'; expected true or false"),
    ],
)
def test_entries_that_contradict_themselves_are_refused(model, said):
    assert said in refusal(config(model))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (TEXT, "sources.theirs.vocabulary: found neither of vocabulary and tokenizer; expected"),
        ({**TEXT, "tokenizer": "mine", "vocabulary": 400}, "found both of vocabulary and token"),
        ({**TEXT, "tokenizer": {"hub": "mine"}}, "sources.theirs.tokenizer.hub: found 'mine'"),
    ],
)
def test_a_text_has_one_tokenizer(source, said):
    assert said in refusal(config(source=source))


def test_a_causal_model_is_asked_no_masked_question():
    made = config(CAUSAL)
    made["clones"]["theirs"] = {**made["clones"]["tiny"], "source": "theirs", "model": "theirs"}
    made["evaluations"]["theirs"]["positions"] = 0.15
    said = refusal(made)
    assert (
        "clones.theirs.model: found theirs, a causal model; expected a trained model with" in said
    )
    assert "evaluations.theirs.positions: found 0.15 for theirs, which predicts the next" in said
