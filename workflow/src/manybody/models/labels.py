"""Names of generators and students in claims and legends, with their order."""

from manybody import models


def target(document: dict, rank: bool = False) -> str:
    """A target's label: its generator, and what sets it apart from a clone as in the paper."""
    if document["original"]:
        return "original text"
    if "generator" not in document:
        return document["source"]
    made = document["generator"]
    text = models.about(made["description"]).generator
    if rank and "rank" in made["description"]:
        text += f", rank {made['description'].get('rank') or 'full'}"
    if not made["last"]:
        text += f", stopped at step {made['step']}"
    return text


def short(document: dict) -> str:
    """The order alone, for an axis of clones."""
    if document["original"]:
        return "original"
    if "generator" not in document:
        return document["source"]
    about = models.about(document["generator"]["description"])
    if about.order is None:
        return about.display_name
    notes = ["nominal"] if about.nominal else []
    notes += [] if about.bounded else ["> L"]
    return "\n".join([str(about.order), *notes])


def scale(student: dict, runs: int) -> str:
    """One line on what was run, from the `about` of a run: network, text, |V|, L, runs."""
    description = student["description"]
    return (
        f"{models.about(description).label} on {student.get('corpus', student['source'])}: "
        f"|V| = {description['vocabulary']}, "
        f"L = {description['length']}, {runs} run{'s' if runs > 1 else ''}"
    )
