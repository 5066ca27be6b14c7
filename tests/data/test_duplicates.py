"""Repeated text: lines and passages kept once, near-duplicates in one group, memory."""

import itertools
import tracemalloc

import numpy as np
import pytest
from corpora import collected, lines_corpus

from manybody.data import duplicates
from manybody.data.documents import Piece
from manybody.data.duplicates import COMMON, WORD, Shingles, deduplicated, lines
from manybody.data.sequence_weights_loops import join, root

WORDS = np.array([f"w{i}" for i in range(20_000)])


def sentence(random, count=30):
    return " ".join(random.choice(WORDS, count))


def changed(random, original, share):
    """`original` with a share of its words replaced."""
    words = np.array(original.split(), dtype=object)
    places = random.choice(len(words), round(share * len(words)), replace=False)
    words[places] = random.choice(WORDS, len(places))
    return " ".join(words)


def pieces(texts):
    return (Piece(document, True) for document in texts)


def kept_of(folder, texts, **options):
    folder.mkdir(parents=True, exist_ok=True)
    found, counts = deduplicated(pieces(texts), folder, **options)
    return counts, [(key, "".join(p.text for p in document)) for key, document in found]


def jaccard(one, other):
    sets = []
    for document in (one, other):
        words = document.lower().split()
        sets.append({tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_a_line_of_more_than_five_documents_stays_in_the_first(tmp_path):
    random = np.random.default_rng(0)
    own = [sentence(random) for _ in range(12)]
    common, rare = "All rights reserved.", "Some rights reserved."
    texts = [
        f"{line}\n{common}\n{rare}\nend {i}" if i < COMMON else f"{line}\n  {common}\nend {i}"
        for i, line in enumerate(own)
    ]
    found, kept = kept_of(tmp_path, texts)
    assert found["common_lines"] == 1
    assert kept[0][1] == texts[0]
    for i, (_, document) in enumerate(kept[1:], 1):
        assert common not in document
        assert document == texts[i].replace(f"{common}\n", "").replace("  ", "")
    assert sum(rare in document for _, document in kept) == COMMON


def test_a_line_twice_in_one_document_is_one_document(tmp_path):
    texts = [f"{i} first\nagain\nagain\nagain\nlast {i}" for i in range(COMMON)]
    assert [kept for _, kept in kept_of(tmp_path, texts)[1]] == texts


def test_a_document_of_common_lines_alone_is_dropped(tmp_path):
    random = np.random.default_rng(0)
    texts = [f"{sentence(random)}\nthe same words" for _ in range(COMMON)] + ["the same words"]
    assert len(kept_of(tmp_path, texts)[1]) == COMMON


@pytest.mark.long
def test_near_duplicates_are_of_one_group_and_no_others(tmp_path):
    """Groups are the connected parts of the graph of pairs with Jaccard >= .5, by brute force."""
    random = np.random.default_rng(1)
    texts = []
    for _ in range(60):
        first = sentence(random, 60)
        texts.append(first)
        for share in (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15):
            texts.append(changed(random, first, share) + (" the end" if not share else ""))
    texts = [texts[i] for i in random.permutation(len(texts))]
    forest = np.arange(len(texts))
    pairs = [
        pair
        for pair in itertools.combinations(range(len(texts)), 2)
        if jaccard(texts[pair[0]], texts[pair[1]]) >= 0.5
    ]
    for pair in pairs:
        join(forest, *pair)
    expected = np.array([root(forest, i) for i in range(len(texts))])
    found = [key for key, _ in kept_of(tmp_path, texts)[1]]
    for i, j in itertools.combinations(range(len(texts)), 2):
        assert (found[i] == found[j]) == (expected[i] == expected[j]), jaccard(texts[i], texts[j])
    assert 60 < len(set(found)) < 300


@pytest.mark.parametrize(("count", "common", "groups"), [(104, 70, 2), (104, 71, 1), (79, 54, 1)])
def test_a_candidate_below_half_is_no_near_duplicate(tmp_path, monkeypatch, count, common, groups):
    """Whatever the signatures say: every pair is a candidate, and the exact index decides.

    100 shingles each: 66 in common give 66/134 < .5, 67 give 67/133 > .5. 50 of 75: just .5.
    """
    monkeypatch.setattr(duplicates, "_buckets", lambda rows: iter([np.arange(len(rows))]))
    words = [f"word{i}" for i in range(count)]
    changed = words[:common] + [f"other{i}" for i in range(common, count)]
    _, found = kept_of(tmp_path, [" ".join(words), " ".join(changed)])
    assert len({key for key, _ in found}) == groups


def test_documents_without_words_are_of_one_group_only_where_they_are_equal(tmp_path):
    texts = ["(()) ()", "()(())", "→ ↑ →", "(()) ()", "✦✦"]
    found = [key for key, _ in kept_of(tmp_path, texts)[1]]
    assert len(set(found)) == 4
    assert found[0] == found[3]


def test_the_report_counts_groups_and_the_documents_of_the_largest(tmp_path):
    random = np.random.default_rng(9)
    texts = [sentence(random) for _ in range(4)]
    texts += [f"{texts[place]} {end}" for place in (0, 1, 1) for end in ("once", "more")]
    found, _ = kept_of(tmp_path, texts)
    assert (found["groups"], found["largest_group"]) == (4, 5)


def test_the_key_of_a_group_depends_neither_on_order_nor_on_other_documents(tmp_path):
    random = np.random.default_rng(2)
    texts = [sentence(random) for _ in range(20)]
    texts += [changed(random, document, 0.03) for document in texts[:10]]
    keys = dict((document, key) for key, document in kept_of(tmp_path / "a", texts)[1])
    more = [*texts[::-1], *(sentence(random) for _ in range(20))]
    again = dict((document, key) for key, document in kept_of(tmp_path / "b", more)[1])
    assert {document: again[document] for document in texts} == keys


def test_documents_of_one_origin_are_of_one_group(tmp_path):
    random = np.random.default_rng(3)
    texts = [sentence(random) for _ in range(40)]
    origins = [f"module {i % 7}" for i in range(40)]
    keys = [key for key, _ in kept_of(tmp_path, texts, origins=origins)[1]]
    assert len(set(keys)) == 7
    assert all((keys[i] == keys[j]) == (i % 7 == j % 7) for i in range(40) for j in range(40))


def test_passages_of_another_origin_are_cut_and_the_rest_stays(tmp_path):
    shared = "some words that stand together"
    texts = [
        f"Here we begin, {shared} in the first.",
        f"There they end ({shared}) for the second one.",
        f"Inside the first again {shared} may stand twice.",
    ]
    kept = kept_of(tmp_path, texts, origins=["a", "b", "a"])[1]
    assert [document for _, document in kept] == [
        texts[0],
        "There they end ( for the second one.",
        texts[2],
    ]


def test_lines_are_joined_across_pieces():
    document = "first line\nsecond line\n\nthird" + "x" * 50 + "\n"
    for size in range(1, 12):
        cut = [document[i : i + size] for i in range(0, len(document), size)]
        given = [Piece(part, i == len(cut) - 1) for i, part in enumerate(cut)]
        assert "".join(lines(given)) == document
        assert list(lines(given)) == document.splitlines(keepends=True)


def test_shingles_are_joined_across_pieces(tmp_path):
    document = sentence(np.random.default_rng(4), 400)
    spaces = [i for i, character in enumerate(document) if character == " "]
    # The last piece has one word, which ends one shingle.
    cut = [0, *spaces[40::90], spaces[-1] + 1, len(document)]
    parts = [document[a:b] for a, b in itertools.pairwise(cut)]
    files = tmp_path / "shingles", tmp_path / "signatures"
    with files[0].open("wb") as sets, files[1].open("wb") as signatures:
        shingles = Shingles(sets, signatures)
        shingles.add([Piece(document, True)])
        shingles.add([Piece(part, part == parts[-1]) for part in parts])
    stored = np.fromfile(tmp_path / "shingles", np.uint64)
    assert (stored[: len(stored) // 2] == stored[len(stored) // 2 :]).all()


HALF = {"train": 0.5, "validation": 0.25, "test": 0.25}


def test_near_duplicates_never_straddle_unless_the_config_says_so(tmp_path):
    random = np.random.default_rng(5)
    first = [sentence(random, 60) for _ in range(80)]
    texts = [d for one in first for d in (one, changed(random, one, 0.02))]

    def straddling(found):
        splits = {d: name for name, documents in found.items() for d in documents}
        return sum(splits[a] != splits[b] for a, b in zip(texts[::2], texts[1::2], strict=True))

    assert straddling(collected(tmp_path / "on", lines_corpus(tmp_path, texts, split=HALF))) == 0
    off = lines_corpus(tmp_path, texts, split=HALF, deduplicate=False)
    assert straddling(collected(tmp_path / "off", off)) > 20  # 50 are expected, +- 4.3


def test_groups_keep_the_shares(tmp_path):
    """Large groups have no liking for a split: the key of a group is not the least uniform."""
    random = np.random.default_rng(6)
    texts = []
    for _ in range(300):
        one = sentence(random, 40)
        texts += [f"{one} {i}" for i in range(6)]
    found = collected(tmp_path, lines_corpus(tmp_path, texts, split=HALF))
    # 300 groups: the standard deviation of the share of one split is .029
    assert abs(len(found["train"]) / len(texts) - 0.5) < 0.1


@pytest.mark.long
def test_memory_does_not_grow_with_the_text(tmp_path):
    """2 and 8 MB of text, documents of 40 kB: the peaks differ by less than the texts do."""
    random = np.random.default_rng(8)
    paragraph = [sentence(random, 1000) for _ in range(50)]

    def corpus(documents):
        for number in range(documents):
            parts = random.integers(0, 50, 6)
            yield Piece("\n".join(f"{number} {paragraph[i]}" for i in parts), True)

    peaks = []
    for documents in (50, 200):
        folder = tmp_path / str(documents)
        folder.mkdir()
        tracemalloc.start()
        for _, document in deduplicated(corpus(documents), folder)[0]:
            for _ in document:
                pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 4e6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_length: don't, x1", "max length don t x1"),
        ("cafe\u0301 \u0301abc", "cafe\u0301 abc"),
        ("हिन्दी में लिखा", "हिन्दी में लिखा"),
        ("可以2024年。かな", "可 以 2024 年 か な"),
        ("ง่าย", "ง่ า ย"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_words_of_any_script(text, words):
    assert WORD.findall(text) == words.split(" ")
