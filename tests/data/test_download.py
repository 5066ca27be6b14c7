"""Downloads against a server on this machine that stops, lies, changes and refuses."""

import hashlib
import json
import time

import child
import pytest
from configs import load
from corpora import collected
from http_server import DATA, server

from manybody.data import SourceError, download, published
from manybody.data.download import fetch
from manybody.pipeline.check import ConfigError, check

__all__ = ["server"]  # a fixture
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "downloads" / "text.txt"


def get(server, path, expected=None, name="text.txt"):
    return fetch(f"{server.url}/{name}", path, expected, patience=0.001)


def test_a_download_is_whole_and_its_digest_recorded(server, path):
    assert get(server, path).read_bytes() == DATA
    assert json.loads((path.parent / "text.txt.json").read_text())["sha256"] == SHA256
    assert sorted(path.parent.iterdir()) == [path, path.with_name("text.txt.json")]


@pytest.mark.parametrize(
    ("name", "cuts", "ranges", "asked"),
    [
        (
            "text.txt",
            [1_000_000, 0, 500_000],
            True,
            [None, "bytes=1000000-", "bytes=1000000-", "bytes=1500000-"],
        ),
        (
            "redirect/text.txt",
            [1_000_000],
            True,
            [None, None, "bytes=1000000-", "bytes=1000000-"],
        ),
        ("text.txt", [1_000_000], False, [None, "bytes=1000000-"]),
    ],
    ids=["cuts", "redirects", "no ranges"],
)
def test_a_connection_that_ends_early_is_taken_up_where_it_ended(
    server, path, name, cuts, ranges, asked
):
    """By redirects too; a server without ranges sends all anew."""
    server.cuts = cuts
    server.ranges = ranges
    assert get(server, path, SHA256, name).read_bytes() == DATA
    assert server.asked == asked


def test_a_killed_download_goes_on(server, path):
    server.pause = 0.02
    code = (
        "import sys; from pathlib import Path; from manybody.data.download import fetch; "
        "fetch(sys.argv[1], Path(sys.argv[2]))"
    )
    process = child.start("-c", code, f"{server.url}/text.txt", path)
    part = path.parent / "text.txt.part"
    deadline = time.monotonic() + 30
    while not (part.is_file() and part.stat().st_size > 200_000):
        assert time.monotonic() < deadline, "the download never began"
        time.sleep(0.01)
    with process:
        process.kill()
    have = part.stat().st_size
    assert have < len(DATA)
    server.pause = 0.0
    assert get(server, path).read_bytes() == DATA
    assert server.asked == [None, f"bytes={have}-"]


@pytest.mark.parametrize(
    ("more", "asked"),
    [(b"", [f"bytes={len(DATA)}-"]), (b"more", [f"bytes={len(DATA) + 4}-", None])],
)
def test_a_part_that_is_the_whole_file_is_taken_and_a_longer_one_starts_anew(
    server, path, more, asked
):
    path.parent.mkdir()
    (path.parent / "text.txt.part").write_bytes(DATA + more)
    assert get(server, path).read_bytes() == DATA
    assert server.asked == asked


@pytest.mark.parametrize(
    ("name", "broken", "expected", "reason", "tries"),
    [
        ("nowhere.txt", False, None, "404.*`files` in the config", 1),
        ("text.txt", True, None, "503", download.TRIES),
        ("text.txt", False, "0" * 64, f"has sha256 {SHA256}, the config's `sha256`", 1),
    ],
    ids=["missing", "broken", "another"],
)
def test_what_cannot_be_had_is_refused_and_nothing_kept(
    server, path, name, broken, expected, reason, tries
):
    server.broken = broken
    with pytest.raises(SourceError, match=reason):
        get(server, path, expected, name)
    assert len(server.asked) == tries
    assert not list(path.parent.glob("*"))


@pytest.mark.parametrize("where", ["here", "on the server"])
def test_a_later_change_of_the_file_is_refused(server, path, where):
    get(server, path)
    if where == "here":
        path.write_bytes(DATA[:-1] + b"x")
    else:
        path.unlink()
        server.files["/text.txt"] = DATA[::-1]
    with pytest.raises(SourceError, match=f"but {SHA256} was recorded when it was first"):
        get(server, path)
    assert path.exists() == (where == "here")


def test_published_data_sets_are_fetched_at_their_revision(server, tmp_path, monkeypatch):
    revision = "0123abcd"
    root = f"/roneneldan/TinyStories/{revision}"
    for name, stories in (("TinyStories-train.txt", 40), ("TinyStories-valid.txt", 40)):
        content = "".join(f"{name} {i}\n<|endoftext|>\n" for i in range(stories))
        server.files[f"{root}/{name}"] = content.encode()
    monkeypatch.setattr(published, "URL", server.url + "/{repository}/{revision}/{name}")
    corpus = {"kind": "tinystories", "revision": revision, "split": "published"}
    assert collected(tmp_path, corpus) == collected(tmp_path, corpus)
    assert len(server.asked) == 2
    assert (tmp_path / "downloads/tinystories" / revision / "TinyStories-train.txt").is_file()


def test_no_credentials_are_sent_whatever_the_machine_holds(server, path, tmp_path, monkeypatch):
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    server.cuts = [1_000_000]
    get(server, path)
    assert len(server.headers) == 2
    for headers in server.headers:
        assert not {"Authorization", "Cookie"} & set(headers)
        assert "secret" not in str(headers)


def test_secrets_in_an_address_are_neither_shown_nor_kept(server, path, capfd):
    fetch(f"{server.url}/text.txt?token=hush#hush", path, patience=0.001)
    assert json.loads((path.parent / "text.txt.json").read_text())["url"] == (
        f"{server.url}/text.txt"
    )
    refused = "http://me:hush@127.0.0.1:1/x?token=hush"
    with pytest.raises(SourceError, match=r"cannot download http://127\.0\.0\.1:1/x:") as caught:
        fetch(refused, path.with_name("x"), patience=0.001)
    assert "hush" not in str(caught.value) + "".join(capfd.readouterr())


@pytest.mark.parametrize("revision", ["main", "v1.0", "0123abcd", "A" * 40, "0" * 40 + "\n"])
def test_a_revision_that_can_move_is_refused_by_the_config(revision):
    config = load()
    config["corpora"]["stories"] = corpus = {"kind": "tinystories", "split": "published"}
    corpus["revision"] = "0123456789abcdef" * 2 + "01234567"
    check(config)
    corpus["revision"] = revision
    with pytest.raises(ConfigError, match=r"corpora\.stories\.revision: found"):
        check(config)
