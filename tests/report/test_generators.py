"""What is said of generators, against n-grams and the unbounded one, and of clones."""

import pandas as pd
import planted_page
import pytest
from configs import load

from manybody.io import tables
from manybody.io.atomic import write_json
from manybody.measure import chains
from manybody.report import generators

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
    tables.write_losses(path, table, {"evaluation": evaluation, "seed": 0})
    return path


@pytest.fixture
def said(tmp_path):
    def sentences(clone=None, **losses):
        ngrams = tmp_path / "docs" / "ngrams.json"
        ngrams.parent.mkdir(exist_ok=True)
        write_json(ngrams, NGRAMS)
        made = planted_page.clone(tmp_path / "clones" / "n2", **(clone or {}))
        paths = [evaluated(tmp_path, name.replace("_", "-"), loss) for name, loss in losses.items()]
        return generators.sentences(load(), chains.known([made]), paths, [ngrams])

    return sentences


def test_a_generator_worse_than_bigrams_says_nothing_of_the_text(said):
    summary, n2, bert = said(n2=3.1, bert_generator=1.9)
    assert summary.startswith("No clone is good enough")
    assert "n2 (n = 2, order 3) loses 3.10 ± 0.01" in n2
    assert "better than unigrams (5.00), worse than bigrams (2.40) and trigrams (1.10)" in n2
    assert "1.20 nats above bert-generator (1.90)" in n2
    assert "has not learned what pairs of neighbours say" in n2
    assert "better than unigrams (5.00) and bigrams (2.40), worse than trigrams (1.10)." in bert
    assert "has not learned" not in bert


def test_within_the_errors_it_is_as_good(said):
    _, n2 = said(n2=2.41)
    assert "better than unigrams (5.00), as good as bigrams (2.40), worse than" in n2
    assert "has not learned" not in n2


@pytest.mark.parametrize(
    ("loss", "clone", "good"),
    [
        (1.9, {}, True),
        (3.1, {}, False),
        (1.9, {"rhat": 1.2}, False),
        (1.9, {"changed": 0.8}, False),
        (1.9, {"rhat": float("nan")}, False),
    ],
)
def test_a_clone_is_good_by_its_generator_and_its_chains(said, loss, clone, good):
    summary = said(clone, n2=loss)[0]
    assert summary.startswith(
        "Good enough to say something of the text: n2, 1 of 1" if good else "No"
    )


def test_without_losses_no_generator_is_judged(said):
    (summary,) = said()
    assert summary.startswith("No clone is good enough")
