"""Sentences on generators, against bigrams."""

import pandas as pd
import pytest
from configs import load

from manybody.io import tables
from manybody.io.atomic import write_json
from manybody.measure import cards

NGRAMS = [
    {"order": order, "masked": loss, "error": 0.01}
    for order, loss in ((1, 5.0), (2, 2.4), (3, 1.1))
]


def evaluated(path, evaluation: str, loss: float, steps=(10, 20)):
    """Four sequences of which each token has about this loss."""
    rows = [
        {"target": "test", "step": step, "sequence": number, "loss_sum": 16 * (loss + away)}
        for step in steps
        for number, away in enumerate((-0.01, 0.01, -0.01, 0.01))
    ]
    path = path / evaluation / "seed-0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows).assign(correct=3, predictions=16)
    tables.LOSSES.write(path, table, {"evaluation": evaluation, "seed": 0})
    return path


@pytest.fixture
def said(tmp_path):
    def sentences(**losses):
        ngrams = tmp_path / "docs" / "ngrams.json"
        ngrams.parent.mkdir(exist_ok=True)
        write_json(ngrams, NGRAMS)
        paths = [evaluated(tmp_path, name.replace("_", "-"), loss) for name, loss in losses.items()]
        return cards.generators(load(), paths, [ngrams])

    return sentences


def test_a_generator_worse_than_bigrams_is_to_be_trained_longer(said):
    n2, bert = said(n2=3.1, bert_generator=1.9)
    assert n2.startswith("n2 loses 3.10 ± 0.01 nats a masked token of the test text, bigrams 2.40")
    assert n2.endswith("train it longer, or as `advise` suggests.")
    assert bert.endswith("bigrams 2.40.")


def test_generators_of_sources_without_n_grams_are_left_out(tmp_path):
    assert cards.generators(load(), [evaluated(tmp_path, "n2", 3.0)], []) == []
