"""Needs of figures, and by them the order of jobs."""

import re

import configs
import pytest

from manybody.pipeline.check import ConfigError, check
from manybody.pipeline.figures import Figures
from manybody.pipeline.jobs import DRAWN_FIRST, OF_CLONES, Jobs
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources


def figures(*overlays: str) -> Figures:
    config = configs.load(*overlays)
    paths, checked = Paths(config), check(config)
    return Figures(paths, Sources(paths, checked), checked)


@pytest.fixture(scope="module")
def demo():
    return figures()


@pytest.fixture(scope="module")
def jobs(demo):
    return Jobs(demo.paths, demo)


def priority(jobs: Jobs, template: str, path: str, least: int) -> float:
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template))
    found = re.fullmatch(pattern, path).groupdict()
    return jobs.urgency(template, least)(found)


def test_a_figure_is_drawn_from_files_of_what_it_needs(demo):
    needed = demo.needs("simplicity", "fig4", drawn=True)
    inputs = demo.inputs("simplicity", "fig4", drawn=True)
    paths = demo.paths
    assert inputs["losses"] == [
        paths.losses.format(evaluation=name, seed=seed) for name, seed in needed["runs"]
    ]
    assert inputs["clones"] == [paths.clone_path(name) for name in needed["clones"]]
    assert inputs["runs"]
    assert inputs["clones"]
    every = {run for run, _ in demo.parts("runs")}
    assert every >= {run for run, _ in needed["runs"]}


def test_what_is_judged_alone_does_not_redraw_a_figure(demo):
    exact = [name for name in demo.names() if "exact" in demo.config["figures"][name[0]][name[1]]]
    assert exact
    for name in exact:
        judged, drawn = demo.needs(*name, drawn=False), demo.needs(*name, drawn=True)
        assert set(drawn["theory"]) < set(judged["theory"])
        assert "exact" not in demo.block(*name, drawn=True)
        assert "exact" in demo.block(*name, drawn=False)


def test_the_first_figure_of_each_paper_goes_before_all_others(demo, jobs):
    papers = {paper for paper, _ in demo.names()}
    assert set(jobs.figure_rank.values()) >= set(range(len(papers)))
    first = [path for path, rank in jobs.figure_rank.items() if rank < len(papers)]
    theory = next(path for path in first if "/theory/" in path)
    assert priority(jobs, demo.paths.theory, theory, 10) == DRAWN_FIRST


def test_generators_go_before_other_models_and_figures_one_by_one(demo, jobs):
    model, papers = demo.paths.model, len({paper for paper, _ in demo.names()})
    later = {path: rank for path, rank in jobs.figure_rank.items() if rank >= papers}
    generators = demo.generators & later.keys()
    models = {path for path in later if "/models/" in path} - generators
    assert generators
    assert models
    # the default's names hold no slash, so that a path is taken apart in one way
    ranked = {path: priority(jobs, model, path, 10) for path in generators | models}
    assert all(OF_CLONES < ranked[path] < OF_CLONES + 1 for path in generators)
    assert all(10 < ranked[path] < 11 for path in models)
    for one in models:
        for other in models:
            if later[one] < later[other]:
                assert ranked[one] > ranked[other]
    undrawn = demo.paths.model_path("docs", "n4", 99)
    assert priority(jobs, model, undrawn, 10) == 10


def test_runs_that_no_figure_follows_are_refused(demo):
    source, model = demo.parts("displacements")[0]
    runs = demo.followed_runs(source, model)
    assert runs
    assert all(f"/{source}/{model}/seed-" in path for path in runs)
    with pytest.raises(ConfigError, match=f"no figure follows docs/no; .*{source}/{model}"):
        demo.followed_runs("docs", "no")


def test_advice_without_a_trial_says_what_to_leave_in(demo):
    assert [*demo.trial_files()] == ["spectra", "manifests", "ngrams"]
    assert len(demo.needed_trial()) == 2 * len(demo.config["spectra"]["trial"]["seeds"]) + 1
    without = figures()
    without.config["spectra"].pop("trial")
    with pytest.raises(ConfigError, match=r"spectra\.trial: expected .*take `advise`"):
        without.needed_trial()


def test_figures_with_a_config_of_their_own_have_cards_of_their_own(demo):
    assert demo.own() == []
    own = figures("controls.yaml")
    assert ("simplicity", "controls") in own.own()
    cards = [key for key in own.carded if key.startswith("simplicity.controls.")]
    shown = own.page_inputs([("simplicity", "controls")], "simplicity.controls.")
    assert cards
    assert len(shown["cards"]) == len(cards)
    assert len(shown["figures"]) == 3
