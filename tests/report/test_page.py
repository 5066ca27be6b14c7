"""The page of a run: it holds what it shows, asks for nothing else, and can be read everywhere."""

import base64
import json
import random
import re
from html.parser import HTMLParser
from pathlib import Path

import planted_page
import pytest
from configs import load
from PIL import Image

from manybody.measure import chains
from manybody.report import document, provenance

VOID = {"meta", "link", "img", "br", "hr", "input"}
TEMPLATE = document.CHECKOUT / "workflow" / "report" / document.TEMPLATE


class Page(HTMLParser):
    """Tags with their attributes, and the ids of sections."""

    def __init__(self, path: Path):
        super().__init__()
        self.tags, self.open, self.sections, self.text = [], [], [], ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag == "section":
            self.sections.append(attrs["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def values(self, name):
        return [attrs[name] for _, attrs in self.tags if name in attrs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def page(folder):
    return Page(planted_page.run(folder, load()))


# --- What is there --------------------------------------------------------------------------------


def test_every_figure_is_there_with_picture_files_and_rows(page, folder):
    links = page.values("href")
    pictures = [attrs for tag, attrs in page.tags if tag == "img"]
    figures = [(paper, name) for paper, named in load()["figures"].items() for name in named]
    assert len(pictures) == len(figures) + document.FIRST
    for paper, name in figures:
        assert f"{paper}-{name}" in page.values("id")
        for ending in ("pdf", "png", "csv", "claims.csv"):
            assert f"figures/{paper}/{name}.{ending}" in links
        assert f"({name}): a < b & c" in page.text
        assert f"What {name} shows." in page.text
    assert all(one["src"].startswith("data:image/png;base64,") for one in pictures)
    assert all((one["width"], one["height"]) == ("400", "300") for one in pictures)


def test_the_answer_comes_first_then_a_tab_a_paper(page):
    assert page.sections == ["answer", "papers", "clones", "provenance"]
    panels = [attrs["id"] for tag, attrs in page.tags if attrs.get("class") == "panel"]
    assert panels == list(load()["figures"])
    assert {f"#{paper}" for paper in panels} <= set(page.values("href"))


def test_the_first_pictures_are_those_of_what_was_found(tmp_path):
    config = load()
    config["figures"] = {
        "potts": {"recovery": {}, "fig3": {}},
        "simplicity": {"fig4": {}, "fig5": {}},
    }
    page = Page(planted_page.run(tmp_path, config, clones=False))
    head = page.source.partition('<section id="papers"')[0]
    found = re.findall(r'href="figures/([^"]*)\.png"', head)
    assert found == ["potts/fig3", "potts/recovery", "simplicity/fig4"]


def test_the_page_begins_with_what_was_found(page):
    head, _, rest = page.text.partition("what this run says")
    assert head.count("): a < b & c: yes (") == 3
    assert rest.count("a < b & c") > 3
    count = sum(map(len, load()["figures"].values()))  # of each figure one yes, one not run
    assert f"{count} yes, 0 no, 0 undecided, {count} not-run" in " ".join(head.split())


def test_links_lead_somewhere(page, folder):
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    for link in page.values("href"):
        if link.startswith("#"):
            assert link[1:] in ids
        elif link != "data:,":
            assert (folder / link).is_file()


def test_nothing_is_asked_of_any_other_file(page):
    assert not {"script", "iframe", "object", "embed", "video", "audio", "base", "form"} & {
        tag for tag, _ in page.tags
    }
    for name in ("src", "srcset", "poster", "data", "action", "background"):
        assert all(value.startswith("data:") for value in page.values(name))
    assert [attrs["href"] for tag, attrs in page.tags if tag == "link"] == ["data:,"]
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    (policy,) = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    style = "".join(re.findall(r"<style>.*?</style>", TEMPLATE.read_text("utf-8"), re.S))
    assert not re.search(r"url\(|@import|@font-face", style)


def test_a_card_is_a_row_a_sweep_that_leads_to_how_it_was_made(page):
    (table,) = re.findall(r'<table class="cards stack">.*?</table>', page.source, re.S)
    rows = [re.sub(r"<[^>]*>|\s+", " ", row) for row in re.findall(r"<tr>.*?</tr>", table, re.S)]
    assert len(rows) == 6
    for value in ("2.987 ± 0.065", "1.213 ± 0.025", "0.51 (0.11)", "0.80 (0.55)", "7 (19)", "no",
                  "3.06", "217", "35", "the state after 20 sweeps"):  # fmt: skip
        assert value in rows[2]
    assert "a sample" in rows[5]
    assert "the state after 2 sweeps" in rows[1]
    for name in ("n2", "n2-noise", "settled"):
        assert f"#clone-docs-{name}" in page.values("href")
        assert f"clone-docs-{name}" in page.values("id")
    for text in ("model n2 of seed 0 at step 10. Drawn", "It is a sample: both starts agree.",
                 "Drawn by Metropolis-Hastings by the raw score, from test sequences. It is",
                 "the state after 20 sweeps: the chains <do> not agree; chains",
                 "> a <b> c & d"):  # fmt: skip
        assert text in " ".join(page.text.split())


def test_a_caption_says_what_the_figures_clones_are(page):
    (caption,) = re.findall(r"<strong>Its clones.*?</details>", page.source, re.S)
    for said in ("1 of 2 are samples", "n2, n = 2, order 3, rank 8: the state after 2 sweeps",
                 "settled, n = 2, order 3, rank 8: a sample (Metropolis-Hastings"):  # fmt: skip
        assert said in " ".join(re.sub(r"<[^>]*>", "", caption).split())


def test_a_run_of_one_figure_without_claims_and_clones_has_a_page(tmp_path):
    config = load()
    config["figures"] = {"simplicity": {"gradient_flow": {"theory": "gradient-flow"}}}
    page = Page(planted_page.run(tmp_path, config, claims=False, clones=False))
    assert page.sections == ["answer", "papers", "provenance"]
    assert "judge no claim of a paper" in page.text
    assert "figures.simplicity.fig4" in page.text  # of the default, and not here


# --- Its parts ------------------------------------------------------------------------------------


def noise(path: Path, side: int) -> Path:
    """A picture that no format makes small."""
    Image.frombytes("RGB", (side, side), random.Random(side).randbytes(3 * side**2)).save(path)
    return path


def test_large_pictures_are_made_smaller_and_others_are_left(tmp_path):
    large, small = noise(tmp_path / "large.png", 140), noise(tmp_path / "small.png", 40)
    assert small.stat().st_size < 20_000 < large.stat().st_size
    made = document.inline(large, 20_000)
    assert len(made["uri"]) < 20_000 * 1.34
    assert (made["width"], made["height"]) == (140, 140)
    content = base64.b64encode(small.read_bytes()).decode()
    assert document.inline(small, 20_000)["uri"] == f"data:image/png;base64,{content}"


@pytest.mark.parametrize(
    ("rhat", "kept", "said"),
    [
        (1.01, 0.05, "the chains agree, and have left their start"),
        (1.05, 0.05, "the chains do not agree"),
        (1.01, 0.1, "part of the start is left"),
        (3.0, 0.5, "the chains do not agree and part of the start is left"),
        (float("nan"), 0.5, "too few sweeps to say whether the chains agree"),
    ],
)
def test_what_is_known_of_chains_is_said_in_words(rhat, kept, said):
    assert chains.in_words(rhat, kept) == said


def test_a_clone_without_passages_is_known_as_well(tmp_path):
    known = chains.known(planted_page.clone(tmp_path / "n2", changed=0.75, samples=False))
    assert known["samples"] == ""
    assert known["kept"] == pytest.approx(0.25)
    assert known["sweeps"] == 2


def test_differences_are_keys_with_both_values():
    default = {"a": {"b": 1, "c": [1, 2]}, "d": {"e": 1}}
    assert provenance.changes(default, {"f": None, "a": {"c": [1, 3], "b": 1}}) == [
        ("a.c", "[1, 2]", "[1, 3]"),
        ("d", "{e: 1}", "not there"),
        ("f", "not there", "null"),
    ]
    assert provenance.changes(default, default) == []
    ((_, text, _),) = provenance.changes({"a": list(range(500))}, {"a": 1})
    assert len(text) <= provenance.LONGEST


def test_times_are_those_of_the_last_run_of_each_job(tmp_path):
    for name, runs in {"a/one": [60, 120], "a/two": [60], "b/one": ["NA"], "c/one": []}.items():
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        lines = [json.dumps({"s": s, "cpu_time": s, "max_rss": 512.0}) for s in runs]
        path.write_text("".join(f"{line}\n" for line in lines))
    first, second, third = provenance.times(tmp_path)
    assert (first["rule"], first["jobs"], first["minutes"], first["memory"]) == ("a", 2, 3.0, 0.5)
    assert (second["jobs"], second["minutes"]) == (1, 0.0)
    assert third["jobs"] == 0
    assert provenance.times(tmp_path / "none") == []


def test_the_commit_is_that_of_the_code_or_not_known(tmp_path):
    assert provenance.commit(tmp_path).startswith("not known")
    assert re.match(r"[0-9a-f]{7,}|not known", provenance.commit(document.CHECKOUT))
