"""What stops a call before any job, in one sentence, and how it is said."""

import os
import re
import sys
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

# One of those for each environment of envs/, and what this file itself needs
PACKAGES = ("pydantic", "numba", "torch", "matplotlib")


def refuse(sentence):
    """Ends the call with a sentence, without the places in the code that Snakemake would add."""
    logger.error(sentence)
    raise SystemExit(1)


def refusing(function):
    """`function`, whose `ConfigError` ends the call with its sentence."""

    def answer(*arguments, **named):
        from manybody.pipeline.check import ConfigError

        try:
            return function(*arguments, **named)
        except ConfigError as error:
            refuse(str(error))

    return answer


class Asked:
    """A part of the pipeline that rules ask: what it refuses ends the call with its sentence."""

    def __init__(self, part):
        self.part = part

    def __getattr__(self, name):
        found = refusing(getattr)(self.part, name)
        return refusing(found) if callable(found) else found


def refuse_braces():
    """Snakemake takes braces in the path of the clone for names that it is to fill in."""
    if {*"{}"} & {*str(ROOT)}:
        refuse(f"found the clone in {ROOT}; expected a path without braces; rename the folder")


def refuse_missing_packages():
    """Jobs run in this Python unless Snakemake makes them environments."""
    elsewhere = workflow.deployment_settings.deployment_method or workflow.output_settings.dryrun
    missing = [name for name in PACKAGES[: 1 if elsewhere else None] if not find_spec(name)]
    if missing:
        refuse(
            f"the Python that runs snakemake, {sys.executable}, has no {', '.join(missing)}; "
            f"expected the packages of envs/requirements-cpu.txt; call `make env` and "
            f"`. .venv/bin/activate` in {ROOT}, or use --use-conda, for which pydantic "
            f"beside snakemake is enough"
        )


def refuse_missing_profile():
    """Snakemake goes on without any workflow profile where the one that is asked for is not there."""
    from manybody.config.files import asked

    name = next(iter(asked(sys.argv[1:], "--workflow-profile")[0]), "none")
    own = ROOT / "profiles"
    places = (Path(name), Path("profiles", name), own / name)
    if name != "none" and not any(place.exists() for place in places):
        there = ", ".join(sorted(folder.name for folder in own.iterdir()))
        refuse(
            f"--workflow-profile: found {name}, which does not exist; expected one of {there}, or a "
            f"folder with a config.yaml; name one, or leave it out for default"
        )


def refuse_read_only(results):
    """Refuses folders that cannot be written, and says where results go from elsewhere."""
    fix = f"start in that of the clone (cd {ROOT}, or --directory {ROOT})"
    places = {
        ".snakemake": ("snakemake writes to the folder that it is started in", fix),
        results: (f"results: found {results}", "give another one"),
    }
    if given := os.environ.get("TMPDIR"):
        places[given] = (f"TMPDIR: found {given}", "set TMPDIR to another one")
    for folder, (what, way_out) in places.items():
        around = (Path(folder), *Path(folder).parents)
        place = next(path for path in around if os.path.lexists(path))
        if not place.exists():
            odd, allow = f"links to {os.readlink(place)}, which is not there", "make that folder"
        elif not place.is_dir():
            odd, allow = "is no folder", "move it away"
        elif not os.access(place, os.W_OK | os.X_OK):
            odd, allow = "cannot be written", "allow it (chmod u+w)"
        else:
            continue
        if not workflow.output_settings.dryrun:
            refuse(
                f"{what}, but {place.absolute()} {odd}; expected a folder of your own; {allow}, or "
                f"{way_out}"
            )
    if MAIN and Path.cwd() != ROOT and workflow.is_main_process:
        logger.info(
            f"Results go to {Path(results).absolute()}, and the files that the config names are "
            f"looked for in {Path.cwd()}, where snakemake runs; or {fix}."
        )


def explain_unknown_targets(record):
    """A filter of Snakemake's log: what is there, where it says that no rule makes what was asked."""
    asked = re.search(r"No rule to produce (.+) \(if you", str(record.msg))
    if asked and getattr(record, "exception", "") == "MissingRuleException":
        names = [rule.name for rule in workflow.rules]
        papers = [paper for paper, figure in figures.names() if figure == asked[1]]
        near = [f"{RESULTS}/figures/{paper}/{asked[1]}.pdf" for paper in papers]
        near = near or get_close_matches(asked[1], [*figures.files(), *names], 1)
        manifest = str(Path(asked[1]).with_name("manifest.json"))
        if any(known.is_producer(manifest) for known in workflow.rules):
            near = [f"{manifest}, which comes with all that it lists"]
        known = ", ".join("{}/{}".format(*pair) for pair in figures.names()) or "none"
        fix = f"did you mean {' or '.join(near)}?" if near else "name one of them"
        record.msg = (
            f"{asked[1]}: no rule makes it; expected the name of a rule, such as scorecard, of a "
            f"figure that one paper has, or a file of {RESULTS}; its figures, in "
            f"{RESULTS}/figures as .pdf, .png and .csv, are {known}; {fix}"
        )
    return True


def explain_lock(record):
    """A filter of Snakemake's log: who holds the lock, and whether it lives."""
    if "Directory cannot be locked" in str(record.msg):
        from manybody.io.running import explained

        record.msg = explained(RESULTS)
    return True


if MAIN:
    logger.addFilter(explain_unknown_targets)
    logger.addFilter(explain_lock)
