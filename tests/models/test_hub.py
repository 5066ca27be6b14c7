"""Series that are revisions of a repository, on a server that answers as the hub does."""

import hashlib
import json

import http_server
import numpy as np
import own_models
import pytest
import torch
from safetensors.torch import save

from manybody.data import own_tokenizer
from manybody.io import checkpoints
from manybody.io.atomic import ArtifactError
from manybody.io.refusal import Refusal
from manybody.io.sequences import write
from manybody.models import stored
from manybody.training.series import adopt

server = http_server.server
NAME, VOCABULARY, LENGTH = "someone/model", 120, 8
ENTRY = {"architecture": "pretrained", "objective": "next-token", "audit": False}


def commit(branch, version=0):
    return hashlib.sha1(f"{branch} {version}".encode()).hexdigest()


class Repository:
    """A repository of which each branch is a commit of its own."""

    def __init__(self, server):
        self.server, self.branches = server, {}

    def push(self, branch, files, version=0):
        self.branches[branch] = commit(branch, version)
        place = self.branches[branch]
        large = {"model.safetensors", "pytorch_model.bin"}
        siblings = []
        for name, data in files.items():
            self.server.files[f"/{NAME}/resolve/{place}/{name}"] = data
            lfs = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "pointerSize": 1}
            stored = {"lfs": lfs} if name in large else {}
            siblings.append({"rfilename": name, "size": len(data), **stored})
        said = {"id": NAME, "sha": place, "siblings": siblings, "tags": [], "private": False}
        api = f"/api/models/{NAME}"
        self.server.files[f"{api}/revision/{place}"] = json.dumps(said).encode()
        refs = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": at}
            for name, at in self.branches.items()
        ]
        said = {"branches": refs, "converts": [], "tags": []}
        self.server.files[f"{api}/refs"] = json.dumps(said).encode()

    def fetched(self, name="model.safetensors"):
        """Commits of which a file was asked for, in order."""
        parts = [path.split("/") for path in self.server.paths if path.endswith(f"/{name}")]
        return [part[4] for part in parts]


def files(seed):
    """A checkpoint's files; the weights of one seed move with the others."""
    library = own_models.model("gpt_neox", VOCABULARY)
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: value + 0.1 * torch.randn(value.shape, generator=generator)
        for name, value in library.state_dict().items()
    }
    config = library.config.to_json_string().encode()
    return {"config.json": config, "model.safetensors": save(tensors, {"format": "pt"})}


@pytest.fixture
def repository(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    made = Repository(server)
    for number, branch in enumerate(["step1000", "step0", "step500", "step64", "main"]):
        made.push(branch, {**files(number), "README.md": b"A model."})
    return made


@pytest.fixture
def adopted(tmp_path):
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (20, LENGTH))
    write(tmp_path / "text.parquet", tokens, VOCABULARY, {})

    def of(**weights):
        entry = {**ENTRY, "weights": {"hub": NAME, **weights}}
        where = tmp_path / "series" / "theirs.json"
        places = tmp_path / "text.parquet", tmp_path / "run", where, tmp_path / "downloads"
        return adopt(entry, *places, 0, {"source": "text", "model": "theirs"})

    return of


def on_disk(tmp_path):
    return {path.parent.name for path in tmp_path.glob("downloads/*/*/model.safetensors")}


def test_revisions_are_a_series_of_which_two_are_on_disk(repository, adopted, tmp_path):
    manifest = adopted(revisions="step")
    assert checkpoints.checkpoint_steps(manifest) == [0, 64, 500, 1000]
    order = [commit(f"step{step}") for step in (0, 64, 500, 1000)]
    assert repository.fetched() == order
    assert on_disk(tmp_path) == set(order[-2:])
    # The last two are read from there, an earlier one is downloaded again in place of the oldest.
    assert stored.load_model(manifest).vocabulary == VOCABULARY
    stored.load_model(manifest, 0)
    assert repository.fetched() == [*order, order[0]]
    assert len(on_disk(tmp_path)) == 2
    assert (
        tmp_path / f"downloads/someone--model/{order[-1]}/model.safetensors"
    ).read_bytes() == files(0)["model.safetensors"]


def test_a_branch_that_moves_later_is_what_it_was(repository, adopted, tmp_path):
    adopted(revisions=["step64", "step500"])
    repository.push("step64", files(9), version=1)
    repository.push("step2M", files(8))
    record = tmp_path / "series" / "theirs.json"
    before = json.loads(record.read_text())["checkpoints"]
    assert before["64"]["commit"] == commit("step64")
    manifest = adopted(revisions=["step64", "step500", "step2M"])
    assert json.loads(record.read_text())["checkpoints"]["64"] == before["64"]
    assert checkpoints.checkpoint_steps(manifest) == [64, 500, 2_000_000]


def test_other_bytes_at_the_same_commit_are_refused(repository, adopted, tmp_path):
    manifest = adopted(revisions=["step0", "step64", "step500"])
    other = files(7)["model.safetensors"]
    repository.server.files[f"/{NAME}/resolve/{commit('step0')}/model.safetensors"] = other
    with pytest.raises(Refusal, match=r"model.safetensors has sha256 .* expects"):
        stored.load_model(manifest, 0)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (
            {"revisions": "epoch"},
            r"found epoch, but someone/model has no .*one of .*step0",
        ),
        ({"revisions": ["step7"]}, r"found step7, but someone/model has no such branch or tag"),
        ({"revisions": ["main", "step0"]}, r"found the revision main, whose name does not end"),
        ({"hub": "no/body"}, r"cannot ask the hub for no/body.*fetch the files elsewhere"),
    ],
)
def test_what_the_hub_does_not_have_is_refused(repository, adopted, weights, said):
    with pytest.raises(Refusal, match=said):
        adopted(**weights)


def test_a_revision_with_pickled_weights_is_refused(repository, adopted):
    config = files(0)["config.json"]
    repository.push("step3000", {"config.json": config, "pytorch_model.bin": b"cos\nsystem\n"})
    with pytest.raises(Refusal, match=r"someone/model@step3000, which has no .*pickled ones elsew"):
        adopted(revisions="step")
    assert not repository.fetched("pytorch_model.bin")


def test_a_tokenizer_comes_from_the_hub(repository, tmp_path):
    own_models.word_piece().save_pretrained(tmp_path / "made")
    parts = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    repository.push("main", {**files(0), **parts}, version=1)
    given = {"hub": NAME, "revision": "main"}
    out = tmp_path / "tokenizer.json", tmp_path / "special.json"
    for _ in range(2):
        with own_tokenizer.fetched(given, tmp_path / "downloads") as (folder, origin):
            own_tokenizer.take(folder, origin, *out)
        repository.push("main", files(1), version=2)  # the branch moves
    assert json.loads(out[1].read_text())["mask"] == 4


def test_the_record_names_what_a_manifest_was_made_from(repository, adopted, tmp_path):
    manifest = adopted(revisions=["step0"])
    (tmp_path / "series" / "theirs.json").unlink()
    assert stored.load_model(manifest).length == LENGTH
    with pytest.raises(ArtifactError, match=r"there is no step 5; there are 0"):
        stored.load_model(manifest, 5)
