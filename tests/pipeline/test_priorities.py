"""Files that figures are made of, and by them the order of jobs."""

import re

import configs
import pytest

from manybody.papers.inputs import Displacements, Trained
from manybody.pipeline.check import ConfigError
from manybody.pipeline.jobs import DRAWN_FIRST, OF_CLONES, Jobs


@pytest.fixture(scope="module")
def demo():
    return configs.figures(configs.load())


@pytest.fixture(scope="module")
def jobs(demo):
    return Jobs(demo.paths, demo)


def fields(template: str, path: str) -> dict[str, str] | None:
    """Wildcards by which a path follows from a template; the default's names hold no slash."""
    found = re.fullmatch(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template)), path)
    return found and found.groupdict()


def priority(jobs: Jobs, template: str, path: str, least: int) -> float:
    return jobs.urgency(template, least)(fields(template, path))


def test_a_figure_is_made_of_files_of_what_it_asks_for(demo):
    name, paths = ("potts", "fig2"), demo.paths
    inputs = demo.inputs(*name)
    runs = demo.keys(Trained, [name])
    assert runs
    assert {paths.model_path(run.source, run.model, run.seed) for run in runs} <= set(
        inputs["models"]
    )
    (source,) = {run.source for run in runs}
    assert inputs["sequences"] == [paths.split_path(source, "validation")]
    assert inputs["hamiltonians"] == [paths.hamiltonians.format(source=source)]
    assert inputs["equations"] == [f"results/equations/{'/'.join(name)}.parquet"]


def test_a_figure_that_is_not_there_is_refused_with_those_that_are(demo):
    with pytest.raises(ConfigError, match=r"no figure potts/fig9; it has .*potts/fig2"):
        demo.inputs("potts", "fig9")


def test_what_figures_share_is_asked_for_once(demo):
    name = ("potts", "fig2")
    assert demo.keys(Trained, [name, name]) == demo.keys(Trained, [name])


def test_the_first_figure_of_each_paper_goes_before_all_others(demo, jobs):
    papers = {paper for paper, _ in demo.names()}
    assert set(jobs.figure_rank.values()) >= set(range(len(papers)))
    paths = demo.paths
    templates = (paths.models, paths.curves, paths.theory, paths.losses, paths.spectra)
    first = [
        priority(jobs, template, path, 10)
        for path, rank in jobs.figure_rank.items()
        for template in templates
        if rank < len(papers) and fields(template, path)
    ]
    assert first
    assert set(first) == {DRAWN_FIRST}


def test_generators_go_before_other_models_and_figures_one_by_one(demo, jobs):
    model, papers = demo.paths.models, len({paper for paper, _ in demo.names()})
    later = {path: rank for path, rank in jobs.figure_rank.items() if rank >= papers}
    generators = demo.generators & later.keys()
    models = {path for path in later if "/models/" in path} - generators
    assert generators
    assert models
    ranked = {path: priority(jobs, model, path, 10) for path in generators | models}
    assert all(OF_CLONES < ranked[path] < OF_CLONES + 1 for path in generators)
    assert all(10 < ranked[path] < 11 for path in models)
    for one in models:
        for other in models:
            if later[one] < later[other]:
                assert ranked[one] > ranked[other]
    assert priority(jobs, model, demo.paths.model_path("docs", "n4", 99), 10) == 10


def test_runs_that_no_figure_follows_are_refused(demo):
    followed = demo.keys(Displacements)[0]
    source, model = followed.source, followed.model
    runs = demo.followed_runs(source, model)
    assert runs
    assert all(f"/{source}/{model}/seed-" in path for path in runs)
    with pytest.raises(ConfigError, match=f"no figure follows docs/no; .*{source}/{model}"):
        demo.followed_runs("docs", "no")


def test_figures_have_short_names_where_one_paper_has_them(demo):
    short = {figure: paper for paper, figure in demo.short()}
    assert short["fig4"] == short["gradient_flow"] == "simplicity"
    assert short["contacts"] == "potts"
    assert not {"fig1", "fig2", "fig3", "fig5"} & short.keys()
