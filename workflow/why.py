"""Lists the jobs that would run, in groups, by what has changed since they last ran.

    python workflow/why.py [arguments for snakemake]

A change of parameters is shown key by key, `training.learning_rate 0.004 -> 0.006`.
"""

import ast
import logging
import re
import sys
from collections import defaultdict

from snakemake import cli, workflow
from snakemake.logging import logger

from display import planned, span
from manybody.io.differences import differences as between
from manybody.pipeline.time_left import Plan

PARAMETERS = re.compile(r"before and now across all output: before: (.*?) now: (.*?) ?(?:;|$)")
CODE = re.compile("[0-9a-f]{16}")
CAUSES = {
    "Code has changed": "its rule has changed",
    "Missing output files": "not made yet or gone",
    "Updated input files": "files it is made from are newer",
    "Set of input files has changed": "made from other files",
    "Forced execution": "damaged, or asked for by --force",
    "Software environment": "its environment has changed",
}
MOST = 15  # lines of a group
FOLLOWS = "what they are made from is made again"


def reasons(text: str) -> list[str]:
    """Why a job runs, from Snakemake's sentence about it."""
    found = []
    if changed := PARAMETERS.search(text):
        found += differences(*map(_values, changed.groups()))
    found += [words for start, words in CAUSES.items() if start in text]
    return found or [FOLLOWS]


def _values(text: str) -> list:
    """The parameters that Snakemake lists, as it writes them."""
    try:
        return [] if text == "<nothing exclusive>" else list(ast.literal_eval(f"[{text}]"))
    except (ValueError, SyntaxError):
        return [text]


def differences(before: list, now: list) -> list[str]:
    """Differences, key by key where both have a mapping."""
    mappings = [[value for value in part if isinstance(value, dict)] for part in (before, now)]
    found = [
        f"{path} {old!r} -> {new!r}"
        for pair in zip(*mappings, strict=False)
        for path, old, new in between(*pair, "(absent)")
    ]
    others = [[value for value in part if not isinstance(value, dict)] for part in (before, now)]
    if any(isinstance(value, str) and CODE.fullmatch(value) for value in others[1]):
        found.append("the code behind its numbers has changed")
        others = [[v for v in part if not CODE.fullmatch(str(v))] for part in others]
    if any(others):
        found.append(" -> ".join(", ".join(map(repr, part)) or "nothing" for part in others))
    return found


def report(jobs: list[dict]) -> str:
    """The jobs in groups, first those with causes of their own."""
    groups = defaultdict(list)
    for job in jobs:
        groups[tuple(reasons(job["reason"]))].append(job)
    lines = []
    for causes, members in sorted(groups.items(), key=lambda group: group[0] == (FOLLOWS,)):
        names = [f"    {job['rule_msg'] or job['rule_name']}" for job in members]
        if len(names) >= MOST:
            names[MOST - 2 :] = [f"    and {len(names) - MOST + 2} more"]
        lines += [f"{_jobs(len(members))}: {'; '.join(causes)}", *names]
    return "\n".join(lines)


def time_needed(plan: Plan) -> str:
    """The time that the planned jobs take together, and what that rests on."""
    needed = span(plan.left({}, {}, {}))
    said = f"{_jobs(len(plan.expected))}, about {needed} with --cores {plan.cores}"
    if plan.stored:
        said += f"; the results of {len(plan.stored)} are in the store"
    if plan.guessed:
        said += f"; a rough estimate, as {len(plan.guessed)} of them never ran here"
    return said


def _jobs(count: int) -> str:
    return f"{count} job{'s' if count > 1 else ''}"


def main(arguments: list[str]) -> None:
    jobs: list[dict] = []

    def keeps(record: logging.LogRecord) -> bool:
        """Takes down the jobs that a dry run would start, and lets only errors through."""
        if getattr(record, "reason", None) and record.output:
            jobs.append(vars(record))
        return record.levelno >= logging.ERROR

    logger.addFilter(keeps)
    try:
        cli.main(["--dry-run", "--cores", "all", *arguments])
    except SystemExit as end:
        if end.code:
            raise
    if not jobs:
        print("nothing: all is as the config says")
        return
    print(report(jobs))
    # Snakemake leaves the workflow there that it has read last.
    print(time_needed(planned(workflow.workflow)[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
