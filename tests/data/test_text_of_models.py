"""Sequences of proteins, RNA and DNA as the text of a model whose tokens are letters."""

import own_models
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from manybody.data import SourceError, documents, own_text, own_tokenizer, tokenizer
from manybody.data.documents import Piece
from manybody.io.sequences import Sequences

A3M = "#A3M#\n>one/3-9 x\nMKtV-LXJ\n>two\nM-\nKV.L*\n>ss_pred\nCCCCCC\n>three\nmJKLBZ\n"
ROWS = ["MKTVLXJ", "MKVL", "MJKLBZ"]


@pytest.fixture
def esm(tmp_path):
    """A folder with ESM-2's vocab.txt, as published."""
    own_models.letters(tmp_path / "esm")
    return tmp_path / "esm"


def encoded(tmp_path, folder, text, length, name="family.a3m"):
    (tmp_path / name).write_text(text)
    own_text.encode(tmp_path / name, folder, length, 10, tmp_path / "text.parquet")
    return Sequences.open(tmp_path / "text.parquet")


def test_sequences_lose_gaps_and_case_and_no_block_has_two(tmp_path, esm):
    found = encoded(tmp_path, esm, A3M, 5)
    library = transformers.EsmTokenizer(str(esm / "vocab.txt"))
    blocks = ["MKT", "VLX", "MKV", "MJK", "LBZ"]
    assert found.tokens.tolist() == [library(" ".join(one))["input_ids"] for one in blocks]
    assert found.tokens[3, 2] == library.unk_token_id
    assert found.about["said"] == [
        "of 3 sequences 0 are shorter than 3 tokens and left out, and 3 longer ones are cut",
        "letters that the tokenizer does not know: J (2)",
        "remarks (lines of # or ;) and numbers beside letters passed over: 1",
        "records without letters or of annotation passed over: 1",
    ]
    assert own_text.usual_length(tmp_path / "family.a3m", esm) == 8
    half = encoded(tmp_path, esm, A3M, 8)
    assert half.tokens[:, 1:-1].tolist() == [
        library(" ".join(one))["input_ids"][1:-1] for one in ("MKTVLX", "MJKLBZ")
    ]
    assert half.about["said"][0].startswith("of 3 sequences 1 are shorter")
    with pytest.raises(SourceError, match=r"length: found 12: of 3 sequences 3 are .*take 8"):
        encoded(tmp_path, esm, A3M, 12)


FORMS = {
    "stockholm": "# STOCKHOLM 1.0\none MKtV-LXJ\ntwo M-KV.L..\nthree mJKLBZ--\n//\n",
    "clustal": "CLUSTAL W\n\none MKtV-LXJ\ntwo M-KV-L--\nthree mJKLBZ--\n",
    "lines": "MKtV-LXJ\nM-KV.L..\nmJKLBZ--\n",
    "spaced": "M K t V - L X J\nM - K V L\n\nm J K L B Z\n",
    "parquet": "MKtV-LXJ MKVL mJKLBZ",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_format_is_found_and_letters_of_dna_are_doubted(form, tmp_path, esm):
    (tmp_path / "family").write_text(FORMS[form])
    if form == "parquet":
        pq.write_table(pa.table({"text": FORMS[form].split()}), tmp_path / "family")
    bpe = own_tokenizer.read(esm, "esm")
    assert [row for _, row in own_text.records([tmp_path / "family"], bpe)[0]] == ROWS
    assert [len(own_text.doubtful(rows, bpe)) for rows in (ROWS, ["ACGGT", "CC"])] == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        ">a\nMKLV\n>b\nMK<mask>LV\n",
        "2 4\nA  MKLV\nB  MK-V\n",
        "A MKLVMKLVMK\nB MKLVMKLV-K\n",
        "@a\nMKLV\n+\nIIII\n",
        "LOCUS       P1                 4 aa    linear\nORIGIN\n        1 mklv\n//\n",
        "HEADER    TOXIN\nATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  0.00\n",
        "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  0.00           C\n",
    ],
)
def test_an_alignment_of_another_format_is_no_text_of_a_model_of_letters(text, tmp_path, esm):
    with pytest.raises(
        SourceError, match=r"It looks like .*: .*(, then|; then) `file|b holds <mask>"
    ):
        encoded(tmp_path, esm, text * 9, 8)


def test_a_file_of_notes_beside_sequences_is_refused_by_name(tmp_path, esm):
    (tmp_path / "all").mkdir()
    (tmp_path / "all/notes.md").write_text("# Notes\nof mine\n")
    (tmp_path / "all/one.a3m").write_text(A3M)
    with pytest.raises(
        SourceError, match=r"all/notes.md, which holds no sequences, beside 1 files"
    ):
        own_text.usual_length(tmp_path / "all", esm)


@pytest.mark.parametrize("text", ["one\ntwo\nthree\n" * 9, "> quoted\nit's two, or 3\n" * 9])
def test_a_text_of_words_stays_a_text(text, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "PIECE", 16)  # characters; all of 8 a token are read
    words = own_models.byte_level()
    words.save_pretrained(tmp_path / "gpt")
    found = encoded(tmp_path, tmp_path / "gpt", text, 8)
    assert found.tokens[0].tolist() == words.encode(text)[:8]
    assert found.tokens.size > len(words.encode(text)) - 16
    protein = encoded(tmp_path, tmp_path / "gpt", ">one\nmk-LV\n>two\nMKLVMKLV\n", 4)
    assert words.decode(protein.tokens.ravel().tolist()).startswith("MKLV")


def test_a_text_is_read_up_to_the_piece_that_has_the_last_character_asked_for():
    assert [
        *own_text._first(iter([Piece("ab", True), Piece("cd", False), Piece("ef", True)]), 4)
    ] == [Piece("ab", True), Piece("cd", True)]


def test_letters_are_read_as_the_vocabulary_spells_them(tmp_path):
    def tokens(letters, text):
        own_models.letters(tmp_path, letters)
        bpe = own_tokenizer.read(tmp_path, "rna")
        return own_text.numbered([text], bpe)[0][0], own_text.kind_of(bpe)

    assert tokens("ACGU", "ATGC") == ([4, 7, 6, 5], "rna")
    assert tokens("ACGT", "AUGC") == ([4, 7, 6, 5], "dna")
    assert tokens("acgt", "ATGC") == ([4, 7, 6, 5], "dna")
    assert tokens([*"ACGT", "ACG", "CAT"], "CATACGT") == ([9, 8, 7], "dna")
    with pytest.raises(SourceError, match=r"of 7 tokens without one for each residue.*spaces"):
        tokens(["ACG", "CAT"], "CATACG")
    known = {f"▁{one}": number for number, one in enumerate("ACGU")}
    assert own_text.kind_of(Tokenizer(models.WordLevel(known, "▁A"))) == "rna"
    with pytest.raises(SourceError, match="tokenizer: found one that stops at a part of the text"):
        tokenizer.encoded(Tokenizer(models.WordLevel(known, "<unk>")), ["T"])
    apart = Tokenizer(models.BPE({one: number for number, one in enumerate("▁ACGU")}, []))
    apart.pre_tokenizer = pre_tokenizers.Metaspace()
    assert own_text.numbered(["CA"], apart) == ([[2, 1]], [])


def test_a_tokenizer_is_read_as_after_training_and_asked_by_its_own_letters(tmp_path):
    made = Tokenizer(
        models.BPE({"<s>": 0, "</s>": 1, "A": 2, "C": 3, "AC": 4}, [("A", "C")], dropout=1.0)
    )
    made.post_processor = processors.BertProcessing(("</s>", 1), ("<s>", 0))
    made.enable_padding(length=9)
    made.save(str(tmp_path / "tokenizer.json"))
    read, said = own_tokenizer.read(tmp_path, "rna"), own_tokenizer.described(tmp_path)
    assert [
        (said["before"], said["after"], read.encode("ACx").ids),
        *encoded(tmp_path, tmp_path, "AC" * 50 + "x", 8).about["said"],
    ] == [([0], [1], [0, 4, 1]), "characters without a token left out (1.0%): x (1)"]
    with pytest.raises(SourceError, match=r"out \(33.3%\): x \(20\); expected at most 5%; give"):
        encoded(tmp_path, tmp_path, "ACx" * 20, 8)


def test_what_is_null_in_the_config_is_put_around_no_sequence(tmp_path):
    own_models.letters(tmp_path, "ACGT")
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"eos_token": null, "sep_token": null}')
    said = own_tokenizer.described(tmp_path)
    assert (said["before"], said["after"], said["mask"]) == ([0], [], 8)
    own_models.letters(tmp_path, ["Aa", "C#"])  # as SaProt's
    assert own_tokenizer.described(tmp_path) is None
    config.write_text('{"tokenizer_class": "EsmTokenizer"}')
    assert own_tokenizer.read(tmp_path, "saprot").encode("C#Aa").ids == [0, 5, 4, 2]
