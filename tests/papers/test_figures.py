"""What holds for every figure: its module, what importing it loads, and its caption."""

import re

import child
import pytest
from configs import figures, load
from docutils.core import publish_parts
from docutils.utils import SystemMessage
from snakemake.utils import update_config

from manybody import papers
from manybody.papers.figure import own_texts

FIGURES = [(paper, figure) for paper in papers.PAPERS for figure in papers.figures(paper)]
CONFIGS = (
    (),
    ("smoke.yaml",),
    ("tiny.yaml",),
    ("truths.yaml",),
    ("order.yaml",),
    ("order.yaml", "bounds.yaml"),
    ("heads.yaml",),
    ("lab.yaml",),
    ("lab.yaml", "lab-wikitext.yaml"),
    ("paper.yaml",),
)
WORDS = 120
HEAVY = ("torch", "numba", "scipy", "matplotlib", "seaborn", "tokenizers")
OWN = {"kind": "file", "files": ["letters.txt"], "boundary": "blank-line"}
FAULTS = {  # of a caption as plain text
    "markup that is text": r"\*\*|`|\{|\}|\\|<[a-z]+>|\w_\s",
    "glued sentences": r"[a-z0-9)\]%][.:;,!?]\*{0,2}[A-Z]|[a-z]\.\*",
    "a plural of one": r"\b1 (?:runs|seeds|heads|layers|steps|epochs|chains|corpora)\b",
    "a gap": r" [.,;:](?: |$)|\S  +\S|\(\s|\s\)",
    "a name of Python": r"\bNone\b|\bnan\b|\bTrue\b|\bFalse\b",
}


# --- Modules --------------------------------------------------------------------------------------


def test_every_figure_is_found_by_its_file_name():
    assert {"fig1", "truths", "spectrum_truth"} <= set(papers.figures("simplicity"))
    assert {"learning", "spectra"}.isdisjoint(papers.figures("simplicity"))
    assert papers.module_name("your-model", "map") == "manybody.papers.your_model.map"
    with pytest.raises(ModuleNotFoundError, match="fig99"):
        papers.figure_module("potts", "fig99")


def test_importing_every_figure_loads_nothing_heavy():
    names = [papers.module_name(*one) for one in FIGURES]
    program = (
        "import importlib, pkgutil, sys, manybody.papers as papers\n"
        "before = set(sys.modules)\n"
        "every = [m.name for m in pkgutil.walk_packages(papers.__path__, 'manybody.papers.')]\n"
        f"assert set({names}) <= set(every)\n"
        "for name in every: importlib.import_module(name)\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules and name not in before])"
    )
    assert child.run("-c", program).split() == []


def test_keys_of_the_demo_are_those_of_the_files_of_a_job():
    """Each figure's job gets one file for each of its distinct keys, by kind."""
    demo = figures(load())
    for name in demo.names():
        found = demo.inputs(*name)
        assert all(path for paths in found.values() for path in paths), name
        assert found, name


# --- Captions -------------------------------------------------------------------------------------


def captions(config: dict) -> dict[str, str]:
    every = figures(config)
    return {"/".join(name): every.caption(*name) for name in every.names()}


def faults(text: str) -> list[str]:
    """What a reader would stumble over in a caption; docutils' warnings among them."""
    own = text.partition("\n\nText ")[0]  # names of the user's files do not count
    if len(own.split()) > WORDS:
        return [f"{len(own.split())} words"]
    strict = {"halt_level": 2, "report_level": 2, "warning_stream": False}
    try:
        body = publish_parts(text, writer="html5", settings_overrides=strict)["body"]
    except SystemMessage as message:
        return [str(message)]
    blocks = re.split(r"</?(?:p|li)\b[^>]*>", body)
    plain = [re.sub(r"<[^>]+>", "", block).replace("&amp;", "&") for block in blocks]
    return [
        f"{name}: {match[0]!r}"
        for block in plain
        for name, pattern in FAULTS.items()
        for match in re.finditer(pattern, block)
    ]


@pytest.mark.parametrize("overlays", CONFIGS, ids=lambda names: "+".join(names) or "default")
def test_captions_are_short_and_rendered_as_they_are_meant(overlays):
    found = captions(load(*overlays))
    assert found
    assert {name: faults(text) for name, text in found.items() if faults(text)} == {}


def test_captions_name_no_corpus_that_is_not_in_use():
    config = load()
    config["corpora"]["letters"] = OWN
    config["sources"]["docs"]["corpus"] = "letters"
    found = captions(config)
    assert not [name for name, text in found.items() if "pydocs" in text]
    assert "letters" in found["simplicity/fig4"]
    for figure in ("fig4", "spectrum", "table1"):
        assert found[f"simplicity/{figure}"].endswith("\n\nText letters: ``letters.txt``.\n")
    assert "letters.txt" not in found["potts/fig2"] + found["simplicity/fig2"]


def test_of_many_files_some_are_named():
    many = OWN | {"files": ["a_.txt", "b.txt", "c.txt", "d.txt", "e.txt"]}
    config = load()
    update_config(config, {"corpora": {"many": many}})
    config["sources"]["docs"]["corpus"] = "many"
    assert own_texts(config) == {"many": "a_.txt, b.txt, c.txt and 2 more"}
    assert not any(map(faults, captions(config).values()))


def test_a_text_that_no_figure_is_made_of_is_not_named():
    config = load()
    config["corpora"]["docs"] = OWN
    config["sources"]["aside"] = config["sources"]["docs"] | {"corpus": "docs"}
    assert not [text for text in captions(config).values() if "Text " in text]
