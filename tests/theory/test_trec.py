"""Questions in the TREC label format, and the attention classifier that is trained on them."""

import math

import numpy as np
import pytest
import torch
from tokenizers import BertWordPieceTokenizer

from manybody.theory.multi_index import questions, trec

WRITTEN = """\
DESC:manner How did serfdom develop in and then leave Russia ?
ENTY:cremat What films featured the character Popeye Doyle ?
ABBR:exp What is the full form of .com ?
HUM:ind Who was the caf\xe9 owner 's brother ?

LOC:city What city had a world fair in 1900 ?
NUM:date When did Hawaii become a state ?
"""
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "what", "how", "did", "?", "hawaii"]
ENTRY = {
    "kind": "multi-index-trec",
    "questions": "",
    "tokenizer": None,
    "vocabulary": 270,
    "length": 10,
    "width": 12,
    "hidden": 5,
    "init_scale": 0.1,
    "held_out": 0.2,
    "batch": 4,
    "learning_rate": 1e-3,
    "epsilon": 1e-8,
    "epochs": 3,
    "runs": 2,
    "seed": 3,
    "threads": 1,
}


@pytest.fixture
def written(tmp_path):
    """A file of 30 questions."""
    path = tmp_path / "questions.label"
    path.write_text(5 * WRITTEN, encoding="latin-1")
    return path


@pytest.fixture
def entry(written):
    return ENTRY | {"questions": str(written)}


@pytest.fixture
def prose(monkeypatch):
    """Two packages whose docstrings hold these paragraphs."""
    found = {
        "graphs": ["A graph has many nodes. Some of them meet.", "Both packages say this much."],
        "numbers": [
            "A number is not a node. It has many digits. No.",
            "Both packages say this much.",
        ],
    }
    monkeypatch.setattr(questions.pydocs, "located_prose", lambda name: dict.fromkeys(found[name]))
    return found


def test_sentences_have_their_package_as_class(prose):
    found = questions.of_packages(dict.fromkeys(prose), 2, seed=0)
    assert found.classes == ("graphs", "numbers")
    assert sorted(found.texts[:2]) == ["A graph has many nodes.", "Some of them meet."]
    assert sorted(found.texts[2:]) == ["A number is not a node.", "It has many digits."]
    assert found.labels.tolist() == [0, 0, 1, 1]
    drawn = {tuple(questions.of_packages(dict.fromkeys(prose), 1, seed).texts) for seed in range(9)}
    assert len(drawn) > 1


def test_too_few_sentences_and_other_prose_are_refused(prose):
    with pytest.raises(ValueError, match=r"of_each: found 3; expected at most 2, .*graphs has"):
        questions.of_packages(dict.fromkeys(prose), 3, seed=0)


def test_a_classifier_of_packages_learns_as_many_classes(entry, prose):
    frame, about = trec.compute(
        entry
        | {
            "questions": {"packages": dict.fromkeys(prose), "of_each": 2},
            "held_out": 0.5,
            "vocabulary": 260,
        }
    )
    assert about["questions"] == {"all": 4, "held out": 2}
    assert set(frame["quantity"]) == {"similarity 1", "similarity 2", "loss", "accuracy"}


# --- Questions -----------------------------------------------------------------------------------


def test_questions_are_read_with_their_coarse_classes(written):
    found = questions.read(written)
    assert found.texts[:2] == [
        "How did serfdom develop in and then leave Russia ?",
        "What films featured the character Popeye Doyle ?",
    ]
    assert found.texts[3] == "Who was the café owner 's brother ?"
    assert [questions.CLASSES[label] for label in found.labels[:6]] == [
        *("DESC", "ENTY", "ABBR", "HUM", "LOC", "NUM")
    ]
    assert len(found.texts) == len(found.labels) == 30


THIRD = "bad.label, line 3: (?=.*expected)found .*"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        *(
            (f"NUM:date When ?\n\n{line}\n", THIRD + named)
            for line, named in (
                ("DESK:manner How ?", "'DESK:manner'.*ABBR, DESC, ENTY, HUM, LOC, NUM"),
                ("desc:manner How ?", "'desc:manner'"),
                ("How did it go ?", "'How'"),
                ("DESC How did it go ?", "'DESC How did it go \\?'"),
                ("DESC: How did it go ?", "'DESC: How"),
                ("DESC:manner", "'DESC:manner'"),
            )
        ),
        ("\n\n", r"questions: .*bad\.label.*no question"),
    ],
)
def test_a_bad_line_and_a_file_without_questions_are_refused(tmp_path, lines, said):
    path = tmp_path / "bad.label"
    path.write_text(lines)
    with pytest.raises(ValueError, match=said):
        questions.read(path)


def test_a_vocabulary_of_bert_marks_cuts_and_pads_and_so_does_a_saved_tokenizer(tmp_path):
    texts = ["What did HAWAII ?", "how how how how how how", "serfdom"]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    found = questions.tokenise(texts, 6, path, None)
    assert found.ids.tolist() == [
        [2, 5, 7, 9, 8, 3],
        [2, 6, 6, 6, 6, 3],
        [2, 1, 3, 0, 0, 0],
    ]
    assert found.about["vocabulary"] == len(VOCABULARY)
    assert found.about["from"] == "file"
    assert found.about["file"] == "vocab.txt"
    saved = BertWordPieceTokenizer(str(path), lowercase=True)
    saved.enable_truncation(4)  # what a file asks for gives way to the entry
    saved.enable_padding(length=9)
    saved.save(str(tmp_path / "tokenizer.json"))
    again = questions.tokenise(texts, 6, tmp_path / "tokenizer.json", None)
    np.testing.assert_array_equal(again.ids, found.ids)


def test_a_trained_tokenizer_keeps_the_text_and_ends_and_pads_with_its_marker(written):
    texts = questions.read(written).texts
    found = questions.tokenise(texts, 60, None, 270)
    assert found.about["from"] == "questions"
    assert found.about["vocabulary"] == 270
    for row, text in zip(found.ids, texts, strict=True):
        inside = row[row != 0]
        assert len(inside) <= len(text.encode())
        np.testing.assert_array_equal(row, np.pad(inside, (0, 60 - len(inside))))
        assert (row == 0).any()
    short = questions.tokenise(texts, 8, None, 270)
    np.testing.assert_array_equal(short.ids[:, :7], found.ids[:, :7])
    assert (short.ids[:, 7] == 0).all()
    again = questions.tokenise([text.upper() for text in texts], 60, None, 270)
    np.testing.assert_array_equal(again.ids, found.ids)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "vocab.txt").write_text("what\nhow\n")
    for name in ("tokenizer.json", "vocab.txt", "none.json", "weights.bin"):
        with pytest.raises(ValueError, match=f"tokenizer: .*{name}"):
            questions.tokenise(["what"], 6, tmp_path / name, None)


# --- Classifier ----------------------------------------------------------------------------------


def plain_scores(model, ids):
    """The classifier as section 6 writes it, one question and one place at a time."""
    found = []
    for question in ids:
        x = [model.embedding[token] for token in question]
        for weight, bias in zip(model.weights, model.biases, strict=True):
            keys = [weight @ place + bias for place in x]
            mixed = []
            for key in keys:
                scores = torch.stack([key @ other for other in keys]) / len(bias) ** 0.5
                shares = scores.exp() / scores.exp().sum()
                mixed.append(sum(share * place for share, place in zip(shares, x, strict=True)))
            x = mixed
        found.append(model.readout @ (sum(x) / len(x)) + model.offset)
    return torch.stack(found)


def classifier(seed=0, rows=20, width=12, hidden=5, init_scale=0.5):
    return trec.Classifier(np.random.default_rng(seed), rows, width, hidden, init_scale, classes=6)


def test_scores_are_those_of_the_formula():
    model = classifier()
    ids = torch.from_numpy(np.random.default_rng(1).integers(20, size=(3, 7)))
    torch.testing.assert_close(model.scores(model.embedding[ids]), plain_scores(model, ids))


def test_gradients_are_those_of_the_whole_graph_also_where_a_token_comes_twice():
    model = classifier()
    ids = torch.tensor([[1, 2, 1, 3], [3, 3, 3, 19]])
    labels = torch.tensor([0, 5])
    for _ in range(2):  # the kept gradient starts from zero each time
        loss = model.gradients(ids, labels)
    whole = torch.nn.functional.cross_entropy(plain_scores(model, ids), labels)
    assert loss == pytest.approx(whole.item(), abs=1e-6)
    expected = torch.autograd.grad(whole, model.parameters())
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-7)


def test_starts_have_the_scales_that_are_asked():
    model = classifier(rows=500, width=128, hidden=64, init_scale=0.1)
    assert model.embedding.std().item() == pytest.approx(1, rel=0.02)
    for weight, bias in zip(model.weights, model.biases, strict=True):
        assert weight.std().item() == pytest.approx(0.1, rel=0.05)
        assert not bias.any()
    assert model.readout.abs().max().item() == pytest.approx(128**-0.5, rel=0.02)


def test_tokens_in_use_learn_as_they_do_in_the_whole_vocabulary():
    """Rows of tokens that never occur are left out; torch's plain AdamW moves the rest the same."""
    used = np.array([2, 3, 11, 17, 40, 41, 59])
    small = classifier(rows=len(used))
    large = classifier(seed=1, rows=60)
    with torch.no_grad():
        large.embedding[used] = small.embedding
        for mine, other in zip(large.parameters()[1:], small.parameters()[1:], strict=True):
            mine.copy_(other)
    plain = torch.optim.AdamW(large.parameters(), lr=1e-3)
    fused = torch.optim.AdamW(small.parameters(), lr=1e-3, fused=True)
    generator = np.random.default_rng(2)
    for _ in range(30):
        ids = generator.integers(len(used), size=(4, 6))
        labels = torch.from_numpy(generator.integers(6, size=4))
        small.gradients(torch.from_numpy(ids), labels)
        fused.step()
        plain.zero_grad()
        x = large.embedding[torch.from_numpy(used[ids])]
        torch.nn.functional.cross_entropy(large.scores(x), labels).backward()
        plain.step()
    assert (small.embedding - classifier(rows=len(used)).embedding).abs().max() > 5e-3
    torch.testing.assert_close(small.embedding, large.embedding[used], rtol=1e-5, atol=1e-6)
    for mine, other in zip(small.parameters()[1:], large.parameters()[1:], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def test_similarity_is_the_cosine_of_the_gram_matrices():
    W = np.random.default_rng(0).normal(size=(4, 3, 7))
    grams = W @ W.transpose(0, 2, 1)
    last = grams[-1]
    expected = [
        np.trace(gram @ last) / np.linalg.norm(gram) / np.linalg.norm(last) for gram in grams
    ]
    np.testing.assert_allclose(trec.similarity(grams), expected)


def test_held_out_loss_and_accuracy_are_means_with_their_errors():
    model = classifier()
    generator = np.random.default_rng(1)
    ids = torch.from_numpy(generator.integers(20, size=(150, 7)))
    labels = torch.from_numpy(generator.integers(6, size=150))
    loss, loss_error, accuracy, accuracy_error = trec.evaluate(model, ids, labels)
    scores = model.scores(model.embedding[ids]).double().detach()
    losses = torch.logsumexp(scores, 1) - scores[torch.arange(150), labels]
    assert loss == pytest.approx(losses.mean().item(), abs=1e-6)
    assert loss_error == pytest.approx(losses.std().item() / math.sqrt(150), abs=1e-6)
    assert accuracy == pytest.approx((scores.argmax(1) == labels).double().mean().item())
    assert accuracy_error == pytest.approx(math.sqrt(accuracy * (1 - accuracy) / 149))


# --- Table ---------------------------------------------------------------------------------------


def test_the_table_holds_each_run_over_its_steps(entry):
    frame, about = trec.compute(entry)
    # 24 questions to train on are 6 batches, 3 epochs are 18 steps.
    assert about["steps"] == 18
    assert about["questions"] == {"all": 30, "held out": 6}
    assert about["tokenizer"]["from"] == "questions"
    for run in range(2):
        mine = frame[frame["seed"] == run].groupby("quantity")
        for layer in (1, 2):
            S = mine.get_group(f"similarity {layer}")
            assert S["x"].tolist()[:13] == list(range(13))
            assert S["x"].is_monotonic_increasing
            assert S["x"].iloc[-1] == 18
            assert S["y"].between(-1, 1 + 1e-12).all()
            assert S["y"].iloc[-1] == pytest.approx(1)
        loss = mine.get_group("loss")
        assert loss["x"].tolist() == [0, 2, 3, 4, 6, 8, 9, 10, 12, 18]
        assert (loss["y_err"] > 0).all()
    first, second = (frame.loc[frame["seed"] == run, "y"].to_numpy() for run in range(2))
    assert not np.array_equal(first, second)


def test_a_classifier_learns_what_a_word_tells(tmp_path, entry):
    path = tmp_path / "told.label"
    words = {"NUM:date": "when", "LOC:city": "where", "HUM:ind": "who"}
    lines = [f"{label} {word} is it ?" for label, word in words.items()]
    path.write_text("\n".join(40 * lines) + "\n")
    change = {"questions": str(path), "vocabulary": 258, "learning_rate": 0.02, "epochs": 8}
    frame, _ = trec.compute(entry | change)
    accuracy = frame[frame["quantity"] == "accuracy"]
    assert (accuracy.loc[accuracy["x"] == accuracy["x"].max(), "y"] == 1).all()


def test_no_questions_give_no_rows():
    frame, about = trec.compute(ENTRY | {"questions": None})
    assert frame.empty
    assert list(frame) == ["quantity", "series", "seed", "x", "y", "y_err"]
    assert about["questions"] is None


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("questions", "none.label", "none.label.*cannot be read"),
        ("held_out", 0.99, "0.99.*expected"),
        ("vocabulary", 200, "200.*(expected|give)"),
        ("tokenizer", "none.txt", "none.txt.*expected"),
        ("learning_rate", 1e30, r"1e\+30.*run 0.*smaller"),
    ],
)
def test_a_bad_entry_is_refused_by_key_and_value(entry, key, value, said):
    with pytest.raises(ValueError, match=f"^{key}: .*{said}"):
        trec.compute(entry | {key: value})


# --- The published questions ---------------------------------------------------------------------


def test_the_published_files_are_read_whole(data_folder):
    for name, counts in (
        ("train_5500.label", [86, 1162, 1250, 1223, 835, 896]),
        ("TREC_10.label", [9, 138, 94, 65, 81, 113]),
    ):
        found = questions.read(data_folder / "trec" / name)
        assert np.bincount(found.labels, minlength=6).tolist() == counts


@pytest.mark.slow
def test_the_shallow_layer_settles_first_on_the_published_questions(data_folder):
    path = str(data_folder / "trec" / "train_5500.label")
    shape = {"vocabulary": 4096, "length": 32, "width": 128, "hidden": 64, "batch": 16}
    change = {
        "init_scale": 3e-4,
        "learning_rate": 5e-5,
        "epsilon": 1e-6,
        "epochs": 2,
        "runs": 2,
        "threads": 2,
    }
    frame, about = trec.compute(ENTRY | shape | change | {"questions": path})
    assert about["steps"] == 546
    assert about["questions"] == {"all": 5452, "held out": 1091}
    S = [frame[frame["quantity"] == f"similarity {layer}"] for layer in (1, 2)]
    first, second = (found[found["y"] >= 0.5].groupby("seed")["x"].min() for found in S)
    assert (first > 0).all()
    assert (first + 10 < second).all()


def test_no_question_that_is_held_out_is_trained_on(tmp_path, monkeypatch):
    """Each question has a word of its own, by which it is known in the batches."""
    path = tmp_path / "questions.label"
    words = [f"{a}{b}" for a in "abcdef" for b in "ghijk"]
    path.write_text("".join(f"NUM:date {word} {word}\n" for word in words))
    trained, measured = set(), set()
    gradients, evaluate = trec.Classifier.gradients, trec.evaluate

    def seen_gradients(model, ids, labels):
        trained.update(map(tuple, ids.tolist()))
        return gradients(model, ids, labels)

    def seen_evaluate(model, ids, labels):
        measured.update(map(tuple, ids.tolist()))
        return evaluate(model, ids, labels)

    monkeypatch.setattr(trec.Classifier, "gradients", seen_gradients)
    monkeypatch.setattr(trec, "evaluate", seen_evaluate)
    trec.compute(ENTRY | {"questions": str(path), "vocabulary": 260, "epochs": 1, "runs": 1})
    assert len(measured) == 6
    assert len(trained) == 24
    assert not trained & measured
