"""Files of the user's own: which are read, what is refused of them, and what counts as changed."""

import os

import configs
import pytest

from manybody.pipeline.check import ConfigError, check
from manybody.pipeline.families import Families
from manybody.pipeline.models import Models
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources, digests


def sources(config: dict) -> Sources:
    return Sources(Paths(config), check(config))


def own_text(files, length=8, vocabulary=300) -> dict:
    """The default config with a text of the user's own."""
    config = configs.load()
    config["corpora"]["mine"] = {
        "kind": "file",
        "split": {"train": 0.8, "validation": 0.1, "test": 0.1},
        "seed": 0,
        "files": files,
    }
    config["sources"]["mine"] = {
        "kind": "text",
        "corpus": "mine",
        "vocabulary": vocabulary,
        "length": length,
        "end_of_document": "dropped",
    }
    return config


def test_files_of_a_folder_are_named_one_by_one(tmp_path):
    for name in ("b.txt", "a.txt", ".hidden"):
        (tmp_path / name).write_text("the spin turns the field")
    asked = sources(own_text([str(tmp_path)]))
    assert asked.corpus_files("mine") == [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    assert asked.corpus_files("pydocs") == []


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("{mine}.txt", None, "{mine}.txt, with braces"),
        (
            os.fsdecode(b"caf\xe9.txt"),
            None,
            r"caf\\udce9.txt, with bytes that are no UTF-8; .*; rename",
        ),
        ("mine.txt", (2**32, 2**32), r"mine.txt, whose time lies .*; set it \(touch .*mine.txt\)"),
    ],
)
def test_what_snakemake_cannot_take_is_refused(tmp_path, name, changed, said):
    (tmp_path / name).write_text("the spin turns the field")
    os.utime(tmp_path / name, changed)
    asked = sources(own_text([str(tmp_path)]))
    with pytest.raises(ConfigError, match=rf"corpora\.mine\.files: found .*{said}"):
        asked.corpus_files("mine")


def test_results_among_the_texts_are_refused(tmp_path):
    config = own_text([str(tmp_path)]) | {"results": f"{tmp_path}/results"}
    with pytest.raises(ConfigError, match=r"results: found .*results, which lies in .*mine\.files"):
        sources(config).corpus_files("mine")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"length": 40}, r"sources\.mine\.length: found 40; expected at most 34, .* 102 bytes"),
        ({"vocabulary": 400}, r"sources\.mine\.vocabulary: found 400; expected less than 359"),
    ],
)
def test_a_text_that_is_too_short_is_refused_and_one_that_is_long_enough_is_not(
    tmp_path, sizes, said
):
    (tmp_path / "mine.txt").write_text("x" * 101)
    files = [str(tmp_path / "mine.txt")]
    with pytest.raises(ConfigError, match=said):
        sources(own_text(files, **sizes)).documents("mine", "train")
    asked = sources(own_text(files, length=34, vocabulary=358))
    assert asked.documents("mine", "test") == "results/corpora/mine/test.parquet"


def test_files_that_a_source_is_made_of(tmp_path):
    (tmp_path / "J.safetensors").write_bytes(b"J")
    config = configs.load()
    config["sources"]["planted"]["couplings"] = {"file": str(tmp_path / "J.safetensors")}
    assert sources(config).source_files("planted") == [str(tmp_path / "J.safetensors")]
    config["sources"]["planted"]["couplings"] = {"file": str(tmp_path / "K.safetensors")}
    with pytest.raises(ConfigError, match=r"sources\.planted\.couplings\.file: .*did you mean"):
        sources(config).source_files("planted")


def test_a_tokenizer_of_the_user_s_own(tmp_path):
    config = configs.load()
    source = config["sources"]["docs"]
    del source["vocabulary"]
    source["tokenizer"] = str(tmp_path)
    asked = sources(config)
    assert asked.file_beside("docs", "special.json") == "results/sequences/docs/special.json"
    with pytest.raises(ConfigError, match=r"sources\.docs\.tokenizer: .*tokenizer\.json"):
        asked.source_files("docs")
    (tmp_path / "tokenizer.json").write_text("{}")
    assert asked.source_files("docs") == [str(tmp_path / "tokenizer.json")]
    source["tokenizer"] = {"hub": "owner/name", "revision": "main"}
    assert sources(config).source_files("docs") == []


def test_weights_that_are_no_folder_are_refused(tmp_path):
    config = configs.load()
    config["models"]["theirs"] = {"architecture": "pretrained", "weights": str(tmp_path / "no")}
    models = Models(Paths(config), None)
    with pytest.raises(ConfigError, match=r"models\.theirs\.weights: found .* no folder"):
        models.weight_folders("theirs")
    config["models"]["theirs"]["weights"] = [str(tmp_path)]
    assert models.weight_folders("theirs") == [str(tmp_path)]
    config["models"]["theirs"]["weights"] = {"hub": "owner/name"}
    assert models.weight_folders("theirs") == []


def test_the_content_of_small_files_counts(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"a" * 10**6)
    large.write_bytes(b"a" * (10**6 + 1))
    before = digests([str(small), str(large), str(tmp_path / "none")])
    assert list(before) == [str(small)]
    small.write_bytes(b"b")
    assert digests([str(small)]) != before


def families(path, text: str, code="utf-8", **more) -> Families:
    """Those of a list with this text."""
    path.write_text(text, code)
    config = configs.load()
    config["families"]["mine"] = dict(listed=str(path), chunk=2, **more)
    return Families(Paths(config), check(config))


@pytest.mark.parametrize("code", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_list_of_families_is_cut_into_jobs(code, tmp_path):
    text = f"a.fasta\ts.pdb\t\tnew.fasta\n# a remark\n\nb.fasta.gz\n{tmp_path}/c.sto\t\te.csv\n"
    found = families(tmp_path / "listed.txt", text, code)
    first = dict(name="a", file="a.fasta", structure="s.pdb", effects=None, sequences="new.fasta")
    assert found.chunk("mine", 1)[0] == first
    assert [entry["name"] for entry in found.chunk("mine", 2)] == ["c"]
    folder = "results/family_chunks/mine"
    assert found.chunks("mine") == [f"{folder}/1.json", f"{folder}/2.json"]
    assert found.used("mine") == [f"{folder}/energies/1.json", f"{folder}/mutations/2.json"]
    (tmp_path / "c.sto").touch()
    assert found.files("mine", 2) == [f"{tmp_path}/c.sto"]
    assert found.files("mine", 2, ["effects"]) == []
    drawn = families(tmp_path / "listed.txt", text, generate=10)
    assert drawn.used("mine")[1:3] == [f"{folder}/generated/{n}.json" for n in (1, 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.fasta\nb/a.fasta\n", "a comes more than once"),
        ("a b.fasta\n", "a b has characters beside letters"),
        (f"{__file__} s.pdb\n", "own_files.py s.pdb is no file, but its first part is .a tab"),
        ("a.fasta\t{a}.pdb\n", r"{a}.pdb has characters beside letters"),
        ("a.fasta\t\t\t\tmore\n", "a.fasta has more behind it than 3 files"),
        ("# none\n", "listed.txt names no file"),
    ],
)
def test_a_list_that_names_no_families_is_refused(text, said, tmp_path):
    with pytest.raises(ConfigError, match=rf"families.mine.listed: .*{said}.*; expected an alig"):
        families(tmp_path / "listed.txt", text).chunks("mine")
