"""Every caption of every config is rendered as it is meant: paragraphs, lists and sentences."""

import html
import re
from pathlib import Path

import pytest
from configs import load
from jinja2 import Environment, StrictUndefined

from manybody.io.atomic import ArtifactError
from manybody.pipeline.check import take_away
from manybody.report import captions

REPORT = Path(__file__).parents[2] / "workflow" / "report"
CONFIGS = (
    (),
    ("smoke.yaml",),
    ("tiny.yaml",),
    ("headline.yaml",),
    ("controls.yaml",),
    ("truths.yaml",),
    ("headline.yaml", "headline-second.yaml"),
    ("lab.yaml",),
    ("lab.yaml", "lab-wikitext.yaml"),
    ("paper.yaml",),
)
OWN = {"kind": "file", "files": ["letters.txt"], "boundary": "blank-line"}
FAULTS = {
    "markup that is text": re.compile(r"\*\*|`|\{|\}|\\|<[a-z]+>|\w_\s"),
    "glued sentences": re.compile(r"[a-z0-9)\]%][.:;,!?]\*{0,2}[A-Z]|[a-z]\.\*"),
    "a list in a paragraph": re.compile(r"(?m)^- |[a-z0-9.]- \w"),
    "a plural of one": re.compile(r"\b1 (?:runs|seeds|heads|layers|steps|epochs|chains|corpora)\b"),
    "a gap": re.compile(r" [.,;:](?: |$)|\S  +\S|\(\s|\s\)"),
}


def strict(monkeypatch, trimmed=True):
    """Captions are refused for a name that is not there and for any warning of docutils."""
    environment = Environment(trim_blocks=trimmed, lstrip_blocks=trimmed, undefined=StrictUndefined)
    monkeypatch.setattr(captions, "ENVIRONMENT", environment)
    monkeypatch.setattr(captions, "SETTINGS", {"halt_level": 2, "report_level": 2})


def rendered(config):
    """The captions of a config's figures, and of the page itself, as HTML by file."""
    take_away(config)
    blocks = {REPORT / f"{name}.rst": None for name in ("workflow", "scorecard")}
    blocks |= {
        REPORT / paper / f"{figure}.rst": block
        for paper, figures in config["figures"].items()
        for figure, block in figures.items()
    }
    return {path: captions.caption(path, config, block) for path, block in blocks.items()}


def blocks_of(text):
    """Paragraphs and items of lists, as plain text on one line each."""
    parts = re.split(r"</?(?:p|li|ul|ol|dl|dt|dd|div|main)\b[^>]*>", text)
    return [" ".join(plain(part).split()) for part in parts if part.strip()]


def plain(text):
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def faults(text):
    """What a reader would stumble over in a caption as HTML."""
    found = [
        f"{name}: {match.string[max(0, match.start() - 30) : match.end() + 30]!r}"
        for block in re.split(r"</?(?:p|li)\b[^>]*>", text)
        for name, pattern in FAULTS.items()
        for match in pattern.finditer(plain(block))
    ]
    if "system-message" in text:
        found.append("a message of docutils")
    # A lead in bold type opens a paragraph; its line break alone was kept.
    leads = re.findall(r"\n<strong>[^<]*[.:]</strong>", text)
    return found + [f"a lead in a paragraph: {lead}" for lead in leads]


@pytest.mark.parametrize("overlays", CONFIGS, ids=lambda names: "+".join(names) or "default")
def test_captions_are_rendered_as_they_are_meant(overlays, monkeypatch):
    strict(monkeypatch)
    found = rendered(load(*overlays))
    assert {path.name: faults(text) for path, text in found.items() if faults(text)} == {}
    # What the settings take away after a tag is nothing that the text needs.
    strict(monkeypatch, trimmed=False)
    untrimmed = rendered(load(*overlays))
    assert {path: blocks_of(text) for path, text in found.items()} == {
        path: blocks_of(text) for path, text in untrimmed.items()
    }


def test_what_the_config_lacks_is_named_with_the_caption(tmp_path):
    path = tmp_path / "fig.rst"
    path.write_text("{{ snakemake.config['sources']['docs']['length'] }}\n")
    with pytest.raises(ArtifactError, match=r"fig\.rst: the caption asks"):
        captions.caption(path, {"sources": {}})


def test_captions_name_no_corpus_that_is_not_in_use():
    config = load()
    config["corpora"]["letters"] = OWN
    config["sources"]["docs"]["corpus"] = "letters"
    texts = rendered(config)
    assert not [path for path, text in texts.items() if "pydocs" in text]
    assert "letters" in texts[REPORT / "simplicity" / "fig4.rst"]
