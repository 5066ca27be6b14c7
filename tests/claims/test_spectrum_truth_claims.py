"""Claims about order spectra beside the truth, from shares that agree with it and that do not."""

import pandas as pd
from planted_spectra import BERT, FACTORED, rows

from manybody.claims import verdicts
from manybody.claims.simplicity.spectra import Spectra
from manybody.claims.simplicity.spectrum_truth import claims
from manybody.claims.simplicity.spectrum_truth_runs import Truth

TRUE = dict(architecture="energy", length=8, order=4, vocabulary=4)
SHARES = (0.66, 0.27, 0.07, 0, 0, 0, 0)


def spectra(shares=SHARES, description=TRUE, se=0.0) -> Spectra:
    found = [rows(3000, "W", d, 4 * share, se) for d, share in enumerate(shares, 1)]
    about = {"description": description, "entry": {}}
    return Spectra({0: (pd.DataFrame(found), about)})


def verdict_of(word, **changed):
    """What holds of the claims with this word in them."""
    given = dict(
        truth=spectra(),
        estimate=spectra(se=0.1),
        student=spectra(description=BERT),
        pairs=spectra((1, 0, 0, 0, 0, 0, 0), FACTORED),
        losses=pd.DataFrame({"step": [100, 3000], "excess": [0.1, 0.005]}),
        pairs_excess=0.1,
    )
    table = verdicts.table(claims(Truth(**given | changed)))
    return table["holds"][table["claim"].str.contains(word)].tolist()


def test_shares_near_the_truth_are_confirmed():
    assert verdict_of("above it") == ["confirmed"]
    assert verdict_of("draws give") == ["confirmed"] * 3
    assert verdict_of("loss of BERT") == ["yes"]
    assert verdict_of("share of order") == ["yes"] * 3
    assert verdict_of("model of pairs") == ["yes"]


def test_shares_off_the_truth_are_not():
    assert verdict_of("above it", truth=spectra((*SHARES[:3], 1e-6, 0, 0, 0))) != ["confirmed"]
    off = spectra((0.66, 0.37, 0.07, 0, 0, 0, 0), se=0.1)  # by four standard errors
    assert verdict_of("draws give", estimate=off) == ["confirmed", "contradicted", "confirmed"]
    student = spectra((0.70, 0.245, 0.055, 0, 0, 0, 0), BERT)
    assert verdict_of("share of order", student=student) == ["no", "yes", "yes"]
    late = pd.DataFrame({"step": [100, 3000], "excess": [0.001, 0.02]})
    assert verdict_of("loss of BERT", losses=late) == ["no"]
    assert verdict_of("model of pairs", pairs=spectra()) == ["no"]
