"""Files that a public host reads: workflows, the entry of the catalog, versions."""

import re
import tomllib

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from repository import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
TOKEN = {"publish", "deploy"}  # jobs that the host vouches for, to an index or its pages


def load(path):
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_there_is(path):
    workflow = load(path)
    assert workflow["name"] == path.stem
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    for name, job in jobs.items():
        assert job.get("needs") in (None, *jobs)
        assert job["timeout-minutes"] <= 90
        assert ("id-token" in job.get("permissions", {})) == (name in TOKEN)
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
                assert target in TARGETS
            assert re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", step.get("uses", "a/b@v1"))
            listed = step.get("with", {}).get("cache-dependency-path")
            assert listed is None or (ROOT / listed).is_file()


def test_pull_requests_are_tested_on_every_python_that_the_package_takes():
    workflow = load(GITHUB / "workflows" / "tests.yml")
    assert "pull_request" in workflow[True]  # YAML takes `on` for a truth value
    job = workflow["jobs"]["everyday"]
    taken = SpecifierSet(PROJECT["requires-python"])
    pythons = [f"3.{minor}" for minor in range(30) if f"3.{minor}" in taken]
    assert job["strategy"]["matrix"]["python"] == pythons
    assert "make test TORCH=cpu" in [step.get("run") for step in job["steps"]]


def test_a_release_is_built_of_its_tag_and_published_without_a_stored_token():
    workflow = load(GITHUB / "workflows" / "release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    kept, taken = (
        step["with"]
        for name in ("build", "publish")
        for step in workflow["jobs"][name]["steps"]
        if "load-artifact" in step.get("uses", "")
    )
    assert kept == taken
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text("utf-8")


def test_the_version_is_the_same_everywhere_and_the_changelog_says_what_it_brings():
    log = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", log, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert all(date for _, date in versions[1:])
    assert versions[1][0] == PROJECT["version"] == load(ROOT / "CITATION.cff")["version"]


def test_the_catalog_finds_what_it_lists():
    usage = load(ROOT / ".snakemake-workflow-catalog.yml")["usage"]
    assert usage["software-stack-deployment"]["conda"] is True
    assert (ROOT / "workflow" / "Snakefile").is_file()
    text = (ROOT / "config" / "README.md").read_text("utf-8")
    named = re.findall(r"`([\w-]+\.yaml)`", text) + re.findall(r"\]\((.+?)\)", text)
    assert len(named) > 4
    for name in {*named} - {"mine.yaml"}:
        assert (ROOT / "config" / name).is_file(), name


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/decisions.md"])
def test_pages_name_files_targets_and_functions_that_exist(name):
    text = (ROOT / name).read_text("utf-8")
    assert {*re.findall(r"`make ([a-z-]+)`", text)} <= TARGETS
    for link in re.findall(r"\]\((.+?)\)", text):
        assert ((ROOT / name).parent / link).is_file(), link
    source = ROOT / "workflow" / "src" / "manybody"
    for first, files, lines in re.findall(r"^\| (`(\S+?\.py)`.*?) \| (\d+) \|", text, re.MULTILINE):
        folder = (source / files).parent
        named = [
            (source if "/" in file else folder) / file for file in re.findall(r"`(\S+)`", first)
        ]
        found = [path for file in named for path in file.parent.glob(file.name)]
        assert len(found) >= len(named), first
        there = sum(len(path.read_text("utf-8").splitlines()) for path in found)
        assert abs(there - int(lines)) <= 0.2 * there, first  # the size of a file, not each edit
