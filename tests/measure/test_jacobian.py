"""The categorical Jacobian of small models, against loops as its definition has them."""

import numpy as np
import own_models
import pandas as pd
import pytest
import tokenizers
import torch
import transformers

from manybody import command, models
from manybody.data.pair_model import PairModel, of_pairs
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.measure import contacts, flips, jacobian
from manybody.measure.jacobian import beyond_pairs, categorical, norms, of_family
from manybody.models.pretrained.network import Pretrained

SIZE, LENGTH = 33, 4
SITES, RESIDUES = np.arange(1, LENGTH + 1), np.array([9, 4, 20, 6])
TOKENS = np.array([0, 4, 9, 25, 6, 2])  # one of them is no residue that is asked about
SPECIAL = [0, 1, 2, 3, 32]


@pytest.fixture
def esm():
    library = own_models.model("esm", SIZE, mask_token_id=32)
    return Pretrained(library, SIZE, LENGTH + 2, "masked", {}, special=SPECIAL, mask=32).double()


def loops(library, masked):
    """J as it is written, from one forward pass of the library for each logit."""
    found = np.empty((LENGTH, len(RESIDUES)) * 2)
    for i, a, j, b in np.ndindex(*found.shape):
        tokens = torch.from_numpy(TOKENS.copy())[None]
        tokens[0, SITES[i]] = int(RESIDUES[a])
        if masked:
            tokens[0, SITES[j]] = 32
        with torch.no_grad():
            found[i, a, j, b] = library(input_ids=tokens).logits[0, SITES[j], RESIDUES[b]]
    for axis in range(4):
        found -= found.mean(axis, keepdims=True)
    return found


@pytest.mark.parametrize("form", jacobian.FORMS)
def test_the_jacobian_is_that_of_its_definition(form, tmp_path, esm, monkeypatch):
    expected = loops(own_models.model("esm", SIZE, mask_token_id=32).double(), form == "masked")
    found = categorical(esm, TOKENS, SITES, RESIDUES, form)
    assert np.abs(found - expected).max() < 1e-12 < np.abs(expected).max()
    turned = expected.transpose(2, 3, 0, 1), expected.transpose(0, 3, 2, 1)
    assert min(np.abs(expected - other).max() for other in turned) > 1e-3
    scores = np.zeros((LENGTH, LENGTH))
    for i, a, j, b in np.ndindex(*expected.shape):
        if i != j:
            scores[i, j] += ((expected[i, a, j, b] + expected[j, b, i, a]) / 2) ** 2
    assert np.abs(norms(found) - np.sqrt(scores)).max() < 1e-12
    monkeypatch.setattr(flips, "of_model", lambda m: of_model(m)._replace(batch=5))
    asked = esm, TOKENS, SITES, RESIDUES, form, tmp_path
    with Progress(0, "forwards", "first") as first:
        assert np.abs(categorical(*asked, first) - found).max() < 1e-12
    assert len(list(tmp_path.iterdir())) == LENGTH
    assert first._done == 16 * (LENGTH if form == "masked" else 1)
    monkeypatch.setattr(jacobian, "_logits", lambda *_: pytest.fail("asked again"))
    assert np.abs(categorical(*asked) - found).max() < 1e-12


of_model = flips.of_model


def test_logits_that_are_not_finite_are_refused(esm):
    with torch.no_grad():
        esm.library.lm_head.bias[4] = np.nan
    with pytest.raises(Refusal, match="not finite"):
        categorical(esm, TOKENS, SITES, RESIDUES)


@pytest.mark.parametrize("layers", [1, 2])
def test_what_pairs_do_not_explain_vanishes_for_a_model_of_pairs(layers):
    torch.manual_seed(0)
    made = models.build(
        dict(architecture="factored", vocabulary=8, length=6, layers=layers, rank=3, bias=True)
    ).double()
    tokens, sites = np.array([0, 3, 4, 5, 3, 1]), np.arange(1, 5)
    found = beyond_pairs(made, tokens, sites, np.arange(2, 8), 2000)
    assert (found["value"] > 1e-9) == (layers == 2)


def test_residues_are_exchanged_by_their_shares_in_the_sequence(monkeypatch):
    asked, measured = {}, jacobian.spectrum

    def spectrum(*given, **options):
        asked.update(options)
        return measured(*given, **options)

    monkeypatch.setattr(jacobian, "spectrum", spectrum)
    made = models.build(dict(architecture="factored", vocabulary=8, length=6, layers=1, rank=3))
    beyond_pairs(made, np.array([0, 3, 4, 5, 3, 1]), np.arange(1, 5), np.arange(2, 8), 2000)
    counts = np.array([0, 0, 0.5, 2.5, 1.5, 1.5, 0.5, 0.5])  # and half a one of each residue
    np.testing.assert_allclose(asked["mu"], counts / 7)
    assert asked["special"] == (0, 1)


def test_a_familys_map_is_that_of_the_same_residues(tmp_path):
    couplings = of_pairs(np.random.default_rng(0).normal(size=(15, 21, 21)), 6)
    about = dict(aligned="-CDEwW", numbers=[None, 13, 14, 15, 17, 18], reference="one", gap=0)
    model = PairModel(np.zeros((6, 21)), couplings, about)
    model.save(tmp_path / "model.safetensors")
    scores = contacts.apc(model.norms(0))
    mine = dict(aligned="MCDEGWW", kind="protein", reference="mine")
    found = of_family(tmp_path, mine)
    sites = np.array([1, 2, 3, 5, 6])
    assert (found[np.ix_(sites, sites)] == scores[1:, 1:]).all()
    assert np.isnan(found[[0, 4]]).all()
    with pytest.raises(Refusal, match=r"of whose reference one 2 of 5 residues are in other"):
        of_family(tmp_path, mine | dict(aligned="MKKUGWW", reference="other"))


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model as ESM-2 is published, a sequence, its contacts and its family."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jacobian, "LEAST", 500)
    own_models.letters(tmp_path / "esm")
    sizes = dict(mask_token_id=32, pad_token_id=1, hidden_size=8, max_position_embeddings=16)
    own_models.model("esm", SIZE, **sizes).save_pretrained("esm")
    (tmp_path / "two.fasta").write_text(">none\n\n>one/4-11\nMK-LVJAGX\n>two\nMKLV\n")
    (tmp_path / "pairs.txt").write_text("1 7\n1 8\n")
    (tmp_path / "beyond.txt").write_text("1 9\n")
    (tmp_path / "rows.csv").write_text("name,sequence\none,MKLV\n")
    about = dict(aligned="MKLVXAG", numbers=[*range(1, 8)], reference="one", gap=0)
    couplings = of_pairs(np.random.default_rng(0).normal(size=(21, 21, 21)), 7)
    PairModel(np.zeros((7, 21)), couplings, about).save("model.safetensors")
    return tmp_path


def test_the_command_names_both_forms_beside_the_family(folder, capsys):
    given = ["--structure", "pairs.txt", "--family", "model.safetensors", "--masked"]
    assert command.main(["jacobian", "esm", "two.fasta", *given, "--out", "out/mine"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Esm 2 × 8 on one/4-11, 8 residues:\n")
    assert "one/4-11 is the first of 2 sequences" in said
    assert "tokenizer does not know: J (1)" in said
    assert "records without letters or of annotation passed over: 1" in said
    for name in (*jacobian.FORMS.values(), "family"):
        assert f"({name})" in said
    assert "L/5, L/2, L pairs 6 apart: 1.00, " in said
    assert "needs three residues or more (M_2 / Var g, " in said
    found = pd.read_csv("out/mine.csv")
    assert found["apc"].equals(found["unmasked"])
    assert not found["masked"].equals(found["unmasked"])
    assert set(found["site_i"]) == {"M4", "K5", "L6", "V7", "J8", "A9", "G10"}
    assert found["family"].isna().sum() == 7
    assert [path.name for path in (folder / "out").iterdir()] == ["mine.csv"]


REFUSED = {
    "no file": (["esm", "one.fasta"], "found one.fasta, which does not exist"),
    "no sequences": (["esm", "pairs.txt"], "expected the letters of a sequence, or a file"),
    "table": (["esm", "esm/config.json"], "config.json; expected the letters of a sequence, or"),
    "names and rows": (["esm", "rows.csv"], "It looks like a table: of names and aligned rows"),
    "one residue": (["esm", "M"], "found the sequence, M; expected two residues or more"),
    "long": (["esm", "M" * 13], "cannot read 15 tokens, special ones included"),
    "causal": (["gpt", "MKLV"], "found gpt, a causal model"),
    "words": (["bert", "MKLV"], "makes 1 tokens of 4 residues; expected a token each"),
    "lower case": (["bert", "MKLV"], "4 tokens of 4 residues; expected a token each, of which"),
    "sites": (["esm", "two.fasta", "--structure", "beyond.txt"], "sites from 1 to L = 8"),
    "overwritten": (
        ["esm", "MKLV", "--structure", "pairs.csv", "--out", "pairs"],
        "pairs.csv would be overwritten by a result",
    ),
    "family": (["esm", "WWWWWWW", "--family", "model.safetensors"], "0 of 7 residues are in"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused(case, folder, capsys):
    own_models.model("gpt_neox").save_pretrained("gpt")
    if case in ("words", "lower case"):
        own_models.model(vocabulary=30).save_pretrained("bert")
        own_models.letters(folder / "bert", [*"ACDEFGHIKLMNPQRSTVWY", "MKLV"])
    if case == "lower case":  # by its normaliser, while its tokens are capitals
        numbers = {one: n for n, one in enumerate(["<unk>", *"ACDEFGHIKLMNPQRSTVWY", "<mask>"])}
        bpe = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, "<unk>"))
        bpe.normalizer = tokenizers.normalizers.Lowercase()
        bpe.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
        bpe.save("bert/tokenizer.json")
    arguments, said = REFUSED[case]
    assert command.main(["jacobian", *arguments]) == 1
    assert said in capsys.readouterr().err
    assert not list(folder.glob("*jacobian*"))  # nor parts: nothing was measured


def test_rotary_positions_have_no_bound():
    config = transformers.EsmConfig(
        vocab_size=SIZE, position_embedding_type="rotary", max_position_embeddings=8,
        pad_token_id=1, mask_token_id=32, hidden_size=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=8,
    )  # fmt: skip
    library = transformers.AutoModelForMaskedLM.from_config(config)
    assert Pretrained(library, SIZE, 40, "masked", {}, mask=32).length == 40
