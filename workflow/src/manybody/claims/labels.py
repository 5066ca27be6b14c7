"""What generators and students are called in claims and legends, with their order."""

NAMES = {
    "bert": "BERT",
    "gpt": "GPT-Neo",
    "encoder": "encoder",
    "energy": "energy model",
    "interpolated": "interpolated attention",
}


def order(description: dict) -> int | None:
    """Highest order that a model couples: 2^(n-1) + 1 for n factored layers; None if unbounded."""
    if description["architecture"] == "energy":
        return description["order"]
    if description["architecture"] != "factored":
        return None
    return 2 ** (description["layers"] - 1) + 1


def bounded(description: dict) -> bool:
    """Whether the order is a restriction: it is not if it exceeds the sequence length L."""
    highest = order(description)
    return highest is not None and highest <= description["length"]


def _nominal(description: dict) -> bool:
    """Whether LayerNorm between the layers makes the order a name only."""
    return description.get("variant") == "paper" and description["layers"] > 1


def generator(description: dict) -> str:
    """`n = 2, order 3`; nominal orders and orders that L is too short for are said to be so."""
    highest = order(description)
    if highest is None:
        return f"{NAMES[description['architecture']]}, any order"
    if description["architecture"] == "energy":
        return f"{NAMES['energy']}, order {highest}"
    nominal = "nominal " if _nominal(description) else ""
    text = f"n = {description['layers']}, {nominal}order {highest}"
    if bounded(description):
        return text
    return f"{text} > L = {description['length']}: any order"


def target(document: dict, rank: bool = False) -> str:
    """A target's label: its generator, and what sets it apart from a clone as in the paper."""
    if document["original"]:
        return "original text"
    made = document["generator"]
    text = generator(made["description"])
    if rank:
        text += f", rank {made['description'].get('rank') or 'full'}"
    if not made["last"]:
        text += f", stopped at step {made['step']}"
    return text


def short(document: dict) -> str:
    """The order alone, for an axis of clones."""
    if document["original"]:
        return "original"
    description = document["generator"]["description"]
    highest = order(description)
    if highest is None:
        return NAMES[description["architecture"]]
    notes = ["nominal"] if _nominal(description) else []
    notes += [] if bounded(description) else ["> L"]
    return "\n".join([str(highest), *notes])


def network(description: dict) -> str:
    """`BERT 2 x 64`: layers x width; a factored model by its depth and rank."""
    if description["architecture"] == "factored":
        return f"factored n = {description['layers']}, rank {description.get('rank') or 'full'}"
    name = NAMES[description["architecture"]]
    if description["architecture"] == "energy":
        return f"{name}, order {description['order']}"
    if description["architecture"] == "interpolated":
        return f"{name}, a = {description['a']:g}"
    return f"{name} {description['layers']} × {description['width']}"


def scale(student: dict, runs: int) -> str:
    """One line on what was run, from the `about` of a run: network, source, |V|, L, runs."""
    description = student["description"]
    return (
        f"{network(description)} on {student['source']}: |V| = {description['vocabulary']}, "
        f"L = {description['length']}, {runs} run{'s' if runs > 1 else ''}"
    )
