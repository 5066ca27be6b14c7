"""What the checks of a config share: whether a name is defined, and which steps a run keeps."""

from collections.abc import Iterator

from manybody.config.schema import nearest


def known(path: str, block: str, name: str, config: dict) -> Iterator[str]:
    """Whether `block` of the config has an entry `name`, which `path` asks for."""
    if name not in config[block]:
        near = nearest(name, list(config[block]))
        defined = ", ".join(config[block]) or "none"
        fix = f"did you mean {near}?" if near else "name one of them, or define it"
        yield (
            f"{path}: found {name}, but there is no {block}.{name}; expected one of {defined}; "
            f"{fix}"
        )


def of_kind(
    path: str, name: str, kinds: tuple[str, ...], config: dict, block: str = "sources"
) -> Iterator[str]:
    """Whether an entry is there and of one of the kinds."""
    yield from known(path, block, name, config)
    kind = config[block].get(name, {}).get("kind", kinds[0])
    if kind not in kinds:
        wanted = " or ".join(kinds)
        others = [other for other, entry in config[block].items() if entry["kind"] in kinds]
        fix = f"take {' or '.join(others)}" if others else f"define one under {block}"
        what = {"sources": "a source", "curves": "a curve"}.get(block, "a theory")
        yield f"{path}: found {name}, of kind {kind}; expected {what} of kind {wanted}; {fix}"


def fits(path: str, model: str, source: str, config: dict) -> Iterator[str]:
    """Whether a model can be built for a source's |V| and L."""
    sizes, given = config["models"][model], config["sources"][source]
    recipe = sizes.get("training", {})
    if given["kind"] == "alignment":
        return  # its |V| and L are in the file
    if "weights" in recipe:
        yield (
            f"models.{model}.training.weights: found {recipe['weights']}, but {path} trains it on "
            f"{source}, a {given['kind']} source; expected an alignment, whose sequences alone "
            f"have weights; leave it out"
        )
    available = given.get("sequences", {}).get("train")
    if available and recipe.get("subset", 0) > available:
        yield (
            f"models.{model}.training.subset: found {recipe['subset']}; expected at most the "
            f"{available} training sequences of source {source}, on which {path} uses it; lower it "
            f"or leave it out"
        )
    rank, vocabulary, length = sizes.get("rank"), given["vocabulary"], given["length"]
    if rank and rank > vocabulary:
        yield (
            f"models.{model}.rank: found {rank}; expected at most the |V| = {vocabulary} of "
            f"source {source}, on which {path} uses it; take rank <= {vocabulary}, or null for "
            f"full values"
        )
    order = sizes.get("order")
    if order and order > length:
        yield (
            f"models.{model}.order: found {order}; expected at most the L = {length} of source "
            f"{source}, on which {path} uses it; lower it"
        )
    true_order = {"many-body": given.get("order"), "potts": 2}.get(given["kind"])
    if order and "weights" in sizes and order != true_order:
        yield (
            f"models.{model}.order: found {order}, but source {source}, whose weights {path} "
            f"takes, is of order {true_order or 'none: it is a text'}; expected the same; "
            f"change one"
        )
    if recipe.get("objective") == "masked" and "batch" in recipe:
        masks = length if recipe["masks"] == "all" else max(1, round(recipe["masks"] * length))
        if recipe["batch"] < masks:
            yield (
                f"models.{model}.training.batch: found {recipe['batch']} copies; expected at least "
                f"the {masks} that one sequence of source {source} gives; raise it"
            )
        elif recipe["masks"] == "all" and recipe["batch"] % length:
            yield (
                f"models.{model}.training.batch: found {recipe['batch']} copies; expected a "
                f"multiple of the {length} that each sequence of source {source} gives; take "
                f"{recipe['batch'] // length * length}"
            )


def kept(step: int, recipe: dict) -> bool:
    """Whether a run with this recipe keeps its weights at `step`."""
    wanted, steps = recipe["checkpoints"], recipe["steps"]
    if step in (0, steps, *wanted["listed"]) or step > steps:
        return step <= steps
    if step % wanted.get("every", steps) == 0:
        return True
    from manybody.training.schedule import checkpoint_steps  # numpy takes a while

    inside = [each for each in wanted["listed"] if each <= steps]
    return step in checkpoint_steps({**recipe, "checkpoints": {**wanted, "listed": inside}})


def listed(value) -> list[str]:
    """The names in a value of the config: one, a list, a list of lists, or names by their part."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [name for part in parts for name in listed(part)]
