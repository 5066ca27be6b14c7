"""A clone saved as a data set: what it holds is the clone's, and the card says what it is."""

import numpy as np
import planted_page
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tokenizers import Tokenizer, models

import manybody as mb
from manybody.io.atomic import ArtifactError, sha256
from manybody.measure import cards, data_set
from manybody.sampling import metropolis

CORPORA = {
    "pydocs": {"kind": "pydocs", "packages": {"mpmath": "0" * 64}},
    "file": {"kind": "file", "files": ["/home/someone/letters.txt"]},
    "wikitext103": {"kind": "wikitext103", "revision": "b" * 40},
}
LICENCES = {"pydocs": "other", "file": "unknown", "wikitext103": ["cc-by-sa-3.0", "gfdl"]}


def draw(folder, about):
    """A clone of 12 symbols and its source's folder; `about` is that of the sequences."""
    source, clone = folder / "sequences" / "letters", folder / "clones" / "letters" / "tiny"
    initial = np.random.default_rng(0).integers(0, 12, (7, 6))
    mb.write_sequences(source / "test.parquet", initial, 12, about)
    letters = {chr(97 + number): number for number in range(12)}
    Tokenizer(models.BPE(vocab=letters, merges=[])).save(str(source / "tokenizer.json"))
    model = mb.build_model("factored", 12, 6, layers=2, rank=4, bias=True, seed=3)
    generator = {
        "model": "n2", "seed": 0, "step": 40, "last": True, "description": model.description,
        "order": model.about.order,
    }  # fmt: skip
    manifest = metropolis.sample(
        model, initial, clone, energy="norm", gauge="none", sweeps=[2, 5], order="left-to-right",
        seed=5, about={
            "source": "letters", "split": "test", "chain_init": "test", "generator": generator,
            "sequences": mb.read_sequences(source / "test.parquet").sha256, "alphabet": None,
            "tokenizer": sha256(source / "tokenizer.json") if "made" in about else None,
        },
    )  # fmt: skip
    return manifest, source


def head(folder):
    empty, text, words = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    assert empty == ""
    return yaml.safe_load(text), words


@pytest.mark.parametrize("kind", CORPORA)
def test_a_card_says_what_the_clone_is_and_tables_hold_its_tokens_and_text(kind, tmp_path):
    manifest, source = draw(tmp_path, {"made": {"documents": {"corpus": CORPORA[kind]}}})
    mb.save_dataset(manifest, tmp_path / "saved", source)
    about, words = head(tmp_path / "saved")
    assert about["license"] == LICENCES[kind]
    named = {each["config_name"]: each["data_files"] for each in about["configs"]}
    assert list(named) == ["sweep-5", "sweep-2", "starts"]
    assert [each["config_name"] for each in about["configs"] if each.get("default")] == ["sweep-5"]
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        "README.md", "tokenizer.json", *named.values(),
    }  # fmt: skip
    assert "n = 2, order 3, rank 4: the state after 5 sweeps; R-hat " in words
    settings = yaml.safe_load(words.split("```yaml\n")[1].split("```")[0])
    assert settings["generator"]["model"] == "n2"
    assert settings["generator"]["step"] == 40
    assert settings["generator"]["description"]["rank"] == 4
    found = {key: settings[key] for key in ("energy", "chains", "chain_init", "chain_seed", "order",
                                            "sweeps", "vocabulary", "length")}  # fmt: skip
    assert found == dict(energy="norm", chains=7, chain_init="test", chain_seed=5, sweeps=[2, 5],
                         order="left-to-right", vocabulary=12, length=6)  # fmt: skip
    assert "/home" not in words
    assert ("mpmath" in words, "b" * 40 in words) == (kind == "pydocs", kind == "wikitext103")
    for name in named:
        expected = mb.read_sequences(manifest.parent / f"{name}.parquet").tokens
        table = pq.read_table(tmp_path / "saved" / f"{name}.parquet")
        assert table.schema == pa.schema(
            [("tokens", pa.list_(pa.uint8(), 6)), ("text", pa.string())]
        )
        assert table["tokens"].to_pylist() == expected.tolist()
        letters = ["".join(chr(97 + token) for token in row) for row in expected]
        assert [text.replace(" ", "") for text in table["text"].to_pylist()] == letters


def test_the_card_of_a_run_goes_with_its_clone_and_no_other(tmp_path):
    manifest, source = draw(tmp_path, {"made": {"documents": {"corpus": CORPORA["file"]}}})
    said = []
    for digest in (sha256(manifest), "0" * 64):
        cards.write(tmp_path / "cards" / "letters.json", [planted_page.card("tiny", digest=digest)])
        mb.save_dataset(manifest, tmp_path / "saved", source)
        words = head(tmp_path / "saved")[1]
        said.append("n = 2, order 3, rank 8: the state after 20 sweeps (Metropolis" in words)
    assert said == [True, False]


DRAWN = {  # of a Hamiltonian and of a tree
    "{'order': 4}; no text": {"source": "letters", "parameters": {"order": 4}},
    "leaves; no text": {"source": "leaves", "level": 0},
}


@pytest.mark.parametrize("said", DRAWN)
def test_what_is_drawn_has_no_licence_and_its_clone_no_text(said, tmp_path):
    manifest, source = draw(tmp_path, DRAWN[said])
    mb.save_dataset(manifest, tmp_path / "saved", source)
    about, words = head(tmp_path / "saved")
    assert "license" not in about
    assert f"samples of a known distribution, {said}" in words
    assert pq.read_schema(tmp_path / "saved" / "sweep-5.parquet").names == ["tokens"]
    assert not (tmp_path / "saved" / "tokenizer.json").exists()


@pytest.mark.parametrize("file", ["test.parquet", "tokenizer.json"])
def test_a_source_that_has_changed_since_is_refused(file, tmp_path):
    about = {"made": {"documents": {"corpus": CORPORA["file"]}}}
    manifest, source = draw(tmp_path, about)
    if file == "test.parquet":
        mb.write_sequences(source / file, np.zeros((7, 6), int), 12, about)
    else:
        Tokenizer(models.BPE(vocab={"a": 0}, merges=[])).save(str(source / file))
    with pytest.raises(ArtifactError, match=rf"{file} is not the file that the clone .*tiny"):
        mb.save_dataset(manifest, tmp_path / "saved", source)
    assert not (tmp_path / "saved").exists()


def test_every_downloaded_text_has_a_licence():
    assert set(data_set.LICENCES) == set(data_set.REPOSITORIES)
