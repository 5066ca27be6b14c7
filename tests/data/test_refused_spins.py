"""Refusals of sources of spins, many-body and Potts: by the key, and nothing is written."""

from pathlib import Path

import numpy as np
import pytest
from spin_sources import MANY_BODY, POTTS, own_files, run, tensors

from manybody.data import SourceError, gibbs, pair_gibbs
from manybody.data.many_body import draw, refuse_unequal

SHORT = {
    **MANY_BODY, "length": 8, "logit_scale": 4.0,
    "sequences": dict(train=20_000, validation=200, test=100),
}  # fmt: skip
ALL = draw(MANY_BODY)[0]
COUPLINGS, COLOURS = tensors(6, 3)


def moved(tensor: np.ndarray, place: tuple, by: float) -> np.ndarray:
    changed = tensor.copy()
    changed[place] += by
    return changed


# The source, the user's own tensors, what the refusal begins with, and what it says.
REFUSED = {
    "J of three is not symmetric": (
        MANY_BODY, dict(couplings=moved(ALL.couplings, (0, 1, 2), 0.5)),
        "couplings.file: couplings.safetensors", ["couplings[0, 1, 2] = "],
    ),
    "J of three on one site": (
        MANY_BODY, dict(couplings=moved(ALL.couplings, (1, 1, 1), 0.25)),
        "couplings.file: couplings.safetensors",
        ["[1, 1, 1] = 0.25: expected 0 where two sites coincide"],
    ),
    "J of three for fewer sites": (
        MANY_BODY, dict(couplings=ALL.couplings[:5, :5, :5]),
        "couplings.file: couplings.safetensors", ["shape (5, 5, 5), expected (6, 6, 6)"],
    ),
    "U of three is not symmetric": (
        MANY_BODY, dict(colours=moved(ALL.colours, (0, 1, 1), 0.5)),
        "colours.file: colours.safetensors", ["symmetric"],
    ),
    "U of three is infinite": (
        MANY_BODY, dict(colours=moved(ALL.colours, (2, 2, 2), np.inf)),
        "colours.file: colours.safetensors", ["colours[2, 2, 2] = inf, expected finite"],
    ),
    "a file of another tensor": (
        MANY_BODY | {"couplings": {"file": "colours.safetensors"}}, dict(colours=ALL.colours),
        "couplings.file: colours.safetensors", ["holds no tensor 'couplings'"],
    ),
    "no file": (
        MANY_BODY | {"couplings": {"file": "absent"}}, {},
        "couplings.file: absent", ["not a readable safetensors file"],
    ),
    "no two ones in a vector": (
        MANY_BODY | {"couplings": dict(vectors=1, variables="bits", probability=1e-9)}, {},
        "couplings, colours: ", ["zero variance"],
    ),
    "uniform chains": (
        SHORT | {"sweeps": 0}, {}, "sweeps: ", ["after 0 sweeps the train split"]
    ),
    "chains of one sweep": (
        SHORT | {"sweeps": 1}, {}, "sweeps: ", ["after 1 sweeps the train split"]
    ),
    "few sites": (
        POTTS | {"length": 3}, {}, "length: ", ["found 3; expected at least 4 sites for a"]
    ),
    "other colours": (
        POTTS | {"colours": "stored"}, {},
        "colours: ", ["the stored U is that of 20 colours, but vocabulary is 3"],
    ),
    "J of two is not symmetric": (
        POTTS, dict(couplings=COUPLINGS + np.eye(6, k=1) / 2),
        "couplings.file: couplings.safetensors", ["expected a tensor that is symmetric"],
    ),
    "J of two on one site": (
        POTTS, dict(couplings=moved(COUPLINGS, (2, 2), 0.25)),
        "couplings.file: couplings.safetensors",
        ["couplings[2, 2] = 0.25: expected 0 where two sites coincide"],
    ),
    "J of two for fewer sites": (
        POTTS, dict(couplings=COUPLINGS[:5, :5]),
        "couplings.file: couplings.safetensors", ["shape (5, 5), expected (6, 6)"],
    ),
    "no J": (
        POTTS, dict(couplings=np.zeros((6, 6))),
        "couplings, colours: ", ["H is the same for all sequences"],
    ),
    "U of two is not symmetric": (
        POTTS, dict(colours=COLOURS + np.eye(3, k=1) / 2),
        "colours.file: colours.safetensors", ["symmetric"],
    ),
    "U of two for more colours": (
        POTTS, dict(colours=np.eye(4)),
        "colours.file: colours.safetensors", ["shape (4, 4), expected (3, 3)"],
    ),
    # The colours of the standard model are alike: two samples order in different ones.
    "a distance that no beta reaches": (
        POTTS | {"colours": "standard", "temperature": {"hamming": 0.3}}, {},
        "temperature.hamming: ", [
            "hamming: no beta gives a mean Hamming", "from 0.667 at beta = 0 to 0.6",
        ],
    ),
    "chains that remember their start": (
        POTTS | {"length": 12, "temperature": {"beta": 40.0}}, {},
        "couplings, colours: ", [
            "J = contact-map and U = {'gaussian': 5} have no equilibrium",
            "no equilibrium that chains find at beta = 40",
            "from uniform starts and 0.0000 from ordered ones",
        ],
    ),
}  # fmt: skip


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("case", REFUSED)
def test_refuses_by_key_and_file_and_writes_nothing(case, tmp_path, monkeypatch):
    source, own, begins, words = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError) as caught:
        run({**source, **own_files(Path(), **own)}, Path("out"))
    assert str(caught.value).startswith(begins)
    for said in words:
        assert said in str(caught.value)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("source", "sampler", "warmer"),
    [
        (MANY_BODY, gibbs, r"lower logit_scale \(S = 2.0\)"),
        (POTTS, pair_gibbs, "choose a higher temperature"),
    ],
    ids=["many-body", "potts"],
)
def test_splits_of_another_distribution_are_refused(tmp_path, monkeypatch, source, sampler, warmer):
    """A sampler that draws uniform tokens for the split of validation alone."""
    drawn = sampler.sample

    def wrong(model, count, *arguments, **settings):
        found = drawn(model, count, *arguments, **settings)
        if count != source["sequences"]["validation"]:
            return found
        uniform = np.random.default_rng(0).integers(model.vocabulary, size=(count, model.length))
        return (uniform, found[1]) if sampler is gibbs else found._replace(tokens=uniform)

    monkeypatch.setattr(sampler, "sample", wrong)
    said = (
        rf"^sweeps: after {source['sweeps']} sweeps the validation split is not a sample of .*"
        rf"true conditionals is \d.*, their mean entropy \d.*; they differ by \d.*, expected 0 "
        rf"within 4 x the standard error .*\. Give the chains more sweeps, or {warmer}"
    )
    with pytest.raises(SourceError, match=said):
        run(source, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("errors", "refused"), [(3.9, False), (-3.9, False), (4.1, True), (-4.1, True)]
)
def test_a_difference_of_four_standard_errors_is_refused(errors, refused):
    """The error of the sequences, and a colour so rare that it is expected at no site."""
    sites = MANY_BODY["sequences"]["train"] * MANY_BODY["length"]
    error = np.hypot(0.003, np.log(sites) / sites)
    test = dict(
        cross_entropy=1.0, entropy=1.0 - errors * error, standard_error=0.003,
        difference=errors * error,
    )  # fmt: skip
    if not refused:
        refuse_unequal(test, "train", MANY_BODY, "")
        return
    with pytest.raises(SourceError, match="the train split is not a sample"):
        refuse_unequal(test, "train", MANY_BODY, "")
