"""What is suggested for a text, and the reasons."""

import pytest
from configs import load
from snakemake.utils import update_config

from benchmarks import recipes
from manybody.pipeline import advice
from manybody.pipeline.check import check, take_away

SPLITS = ("train", "validation", "test")


def text(**changes):
    """A text with which the config is well, but for `changes`."""
    counts = {
        "documents": 900, "characters": 4 * 10**6, "words": 7 * 10**5, "types": 20000, "new": 0.02,
        "markers": 0, "headings": 0,
    }  # fmt: skip
    found = advice.Text(
        words={split: counts for split in SPLITS},
        tokens={"rare": 40, "unseen": 140, "fragments": 0.312},
        blocks={"train": 120000, "validation": 7000, "test": 7000},
        vocabulary=400,
        length=16,
        deduplicated=None,
        passed_over="",
        leaks={"verbatim": 0.005, "near": 0.02, "changed": 2, "runs": 0.06, "run": 12},
        verbatim={16: 0.005},
        ngrams=[{"order": 1, "next": 5.0, "masked": 4.9, "error": 0.01}],
    )
    return found._replace(**changes)


@pytest.fixture
def config():
    config = load("own-text.yaml")
    config["corpora"]["mine"] = {"kind": "file", "files": ["mine.txt"]}
    config["sources"]["docs"]["corpus"] = "mine"
    return config


RUNS, CLONES = [("own-bert", 0), ("own-n2", 0)], ["n2", "n4"]


def changes(config, found):
    return advice.overlay(advice.suggestions(found, "docs", config, RUNS, CLONES), {})


def test_what_is_well_is_left_alone(config):
    assert set(changes(config, text())) == {"models"}, "recipes alone were measured"


def suggested(config, model):
    """The recipe that is suggested for a model, with its rank."""
    found = advice.suggestions(text(), "docs", config, RUNS, CLONES)
    return {one.path[-1]: one.suggested for one in found if one.path[:2] == ("models", model)}


@pytest.mark.parametrize(("model", "layers"), [("n2", 2), ("n4", 4)])
def test_the_recipe_is_the_cheapest_that_ended_as_low_as_the_best(config, model, layers):
    tried = [one for one in advice.recipes() if one["layers"] == layers]
    keys = ("rank", "learning_rate", "steps")
    recipe = suggested(config, model)
    (chosen,) = [one for one in tried if all(one[key] == recipe[key] for key in keys)]
    best = min(one["loss"] for one in tried)
    assert chosen["loss"] <= best + 0.05
    work = chosen["rank"] * chosen["steps"]
    assert all(one["loss"] > best + 0.05 for one in tried if one["rank"] * one["steps"] < work)
    assert not any(
        one["loss"] < chosen["loss"] for one in tried if one["rank"] * one["steps"] == work
    )


def test_a_full_rank_is_left_and_no_rank_is_above_the_vocabulary(config):
    config["models"]["n2"]["rank"] = None
    assert suggested(config, "n2")["rank"] is None
    assert advice._recipe(text(vocabulary=20), "n4", config["models"]["n4"])[-1].suggested <= 20


def test_twelve_recipes_were_tried_and_can_be_tried_again():
    columns = ("layers", "rank", "learning_rate", "steps")
    tried = [tuple(one[column] for column in columns) for one in advice.recipes()]
    assert tried == list(recipes.RECIPES)


def test_few_held_out_blocks_ask_for_larger_shares(config):
    blocks = {"train": 9000, "validation": 300, "test": 600}
    split = changes(config, text(blocks=blocks))["corpora"]["mine"]["split"]
    # 600 validation sequences and a tenth, of 300 at 5 %: 11 %, in steps of 5 %
    assert split == {"train": 0.7, "validation": 0.15, "test": 0.15}


def test_lines_that_look_like_boundaries(config):
    marked = {split: {**text().words["train"], "markers": 20} for split in SPLITS}
    assert changes(config, text(words=marked))["corpora"]["mine"] == {"boundary": "marker"}
    config["corpora"]["mine"]["boundary"] = "marker"
    assert "corpora" not in changes(config, text(words=marked))
    # Without files there is no such key.
    config["corpora"]["mine"] = {"kind": "pydocs"}
    assert "corpora" not in changes(config, text(words=marked))


def test_the_shortest_blocks_that_are_new(config):
    shares = {16: 0.03, 24: 0.008, 32: 0.002, 48: 0.0}
    found = text(leaks=text().leaks | {"verbatim": 0.03}, verbatim=shares)
    assert changes(config, found)["sources"]["docs"] == {"length": 24}


def test_a_vocabulary_that_the_text_cannot_fill(config):
    small = text(blocks={"train": 6000, "validation": 700, "test": 700})
    assert changes(config, small)["sources"]["docs"] == {"vocabulary": 300}


def test_what_is_suggested_is_a_config_that_repeats_what_it_holds_and_the_page_has_times(config):
    found = text(leaks=text().leaks | {"verbatim": 0.03}, verbatim={16: 0.03, 24: 0.008})
    advised = advice.suggestions(found, "docs", config, RUNS, CLONES)
    given = {"sources": {"docs": {"vocabulary": 300}}}
    made = advice.overlay(advised, given)
    assert made["sources"] == {"docs": {"vocabulary": 300, "length": 24}}
    assert given == {"sources": {"docs": {"vocabulary": 300}}}
    update_config(config, made)
    check(config, take_away(config))
    again = advice.suggestions(
        found._replace(length=24, verbatim={24: 0.0}), "docs", config, [], []
    )
    assert advice.overlay(again, made) == made
    found = found._replace(passed_over="Passed over: notes.")
    page = advice.page("docs", found, advised, {"train_model": [90.0, 30.0]})
    assert "\nPassed over: notes.\n" in page
    assert " 3.00% stand verbatim in the training text, 2.00% but for at most 2 tokens, " in page
    assert "; 31.2% of the training tokens are parts of a character: a larger" in page
    latin = found._replace(tokens=found.tokens | {"fragments": 1e-5})
    assert "0.0% of the training tokens are parts of a character.\n" in advice.page(
        "docs", latin, advised, {}
    )
    assert "| `sources.docs.length` | 16 | 24 |" in page
    assert "| train_model | 2 | 2.0 |" in page
