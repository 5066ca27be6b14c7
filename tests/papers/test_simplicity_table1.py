"""Table 1: passages of test text, and what chains have made of them."""

import warnings
from functools import partial

import pandas as pd
import planted_losses as planted
import pytest
from configs import load, refusal
from legible import faults
from matplotlib import rc_context
from planted_losses import LENGTH
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from manybody.papers import style
from manybody.papers.simplicity import table1

PASSAGES = {
    table1.START: ["the array is returned as a view if possible", "raised if " + "the index " * 9],
    "n = 2, order 3": ["the the returned $ value of $ array of the\n", "if if the the"],
    "n = 6, nominal order 33 > L = 16: any order": ["the index is returned as a copy", "a\tb"],
}


def test_the_text_is_drawn_as_it_is():
    rows = [(name, texts[row]) for row in (0, 1) for name, texts in PASSAGES.items()]
    drawn = pd.DataFrame(rows, columns=["series", "text"])
    with rc_context({"text.usetex": True}):  # as a matplotlibrc of the user's may have it
        figure = table1.draw(style.Tables(drawn, 20))
    assert not any(text.get_usetex() for text in figure.axes[0].texts)
    assert faults(figure) == []
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert len(shown) == 3 * 3
    assert "returned $ value of $ array of the ⏎" in shown[4].replace("\n", " ")


@pytest.fixture
def read(tmp_path):
    """A function from passages to the inputs and the block of a table of two clones."""
    tokenizer = Tokenizer(WordLevel({f"w{number}": number for number in range(400)}))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    inputs = planted.written(tmp_path)
    return lambda chains: inputs(
        table1, {"clones": ["n2", "bert"], "sweep": 20, "passages": chains}
    )


def test_passages_are_read_from_files(read):
    inputs, block = read([1, 3])
    tables = table1.tables(inputs, block)
    assert tables.drawn["series"].tolist() == 2 * [
        table1.START, "n = 2, order 3", "BERT, any order"
    ]  # fmt: skip
    first, moved = ([int(word[1:]) for word in text.split()] for text in tables.drawn["text"][:2])
    assert len(first) == LENGTH
    assert moved == [(token + 20) % 400 for token in first]
    (claim,) = table1.claims(tables)
    assert (claim.verdict, claim.because) == ("not-run", "a reader has to judge it")


def test_passages_that_clones_do_not_have_are_refused(read):
    with pytest.raises(ValueError, match=r"passages \[4\]"):
        table1.tables(*read([1, 4]))


@pytest.mark.parametrize("change", [{"chains": 20}, {"chain_init": "unigram"}, {"chain_seed": 4}])
def test_clones_that_start_from_other_passages_are_refused(change):
    config = load()
    config["clones"]["bert"] |= change
    ((name, value),) = change.items()
    assert f"table1.clones[2]: found bert, of {name} {value}; expected" in refusal(config)


@pytest.mark.long
def test_characters_that_the_font_lacks_are_told_once(tmp_path, caplog):
    figure = style.new(1, 1.0)
    figure.text(0, 0, "可 привет 读可")
    warned = partial(warnings.warn, "of another kind", stacklevel=2)
    figure.canvas.mpl_connect("draw_event", lambda event: warned())
    style.save(figure, tmp_path / "words")
    messages = [record.getMessage() for record in caplog.records]
    (told,) = [message for message in messages if "boxes" in message]
    assert told.startswith("words: 2 characters (可读) are drawn as boxes")
    assert sorted(set(messages) - {told}) == ["of another kind"]
