"""Checks of the config beyond its types: that names exist and that choices fit together."""

from collections.abc import Iterator
from pathlib import Path

from manybody.plotting.needs import parts

SCHEMA = Path(__file__).resolve().parents[2] / "schemas" / "config.schema.yaml"


class ConfigError(ValueError):
    """What is wrong with the config: the key's path, the value, what was expected, the way out."""


def check(config: dict) -> None:
    """Raises `ConfigError` with everything that is wrong with `config`, one line each."""
    problems = list(_schema_problems(config)) or list(_problems(config))
    if problems:
        raise ConfigError("the config cannot be used:\n" + "\n".join(f"  {p}" for p in problems))


def _schema_problems(config: dict) -> Iterator[str]:
    import yaml
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(yaml.safe_load(SCHEMA.read_text(encoding="utf-8")))
    for error in validator.iter_errors(config):
        yield from _sentences(error)


def _sentences(error) -> Iterator[str]:
    """One sentence for each thing wrong, from the alternative that was meant."""
    if error.validator == "oneOf":
        chosen = _meant(error)
        if chosen:
            for inner in chosen:
                yield from _sentences(inner)
            return
    path = _path(error)
    about = error.schema.get("description", "") if isinstance(error.schema, dict) else ""
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        for key in sorted(set(error.instance) - set(allowed)):
            near = _nearest(key, allowed)
            hint = f"did you mean {near}?" if near else f"known keys: {', '.join(allowed)}"
            yield f"{path}{'.' if path else ''}{key}: this key is not known; {hint}"
    elif error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        yield f"{path or 'config'}: missing {', '.join(missing)}; add it as in config/config.yaml"
    else:
        found = repr(error.instance)
        found = found if len(found) <= 80 else found[:77] + "..."
        yield f"{path}: found {found}; {error.message}" + (f" ({about.strip()})" if about else "")


def _meant(error) -> list:
    """Errors of the alternative whose fixed values (const, enum) match, else of the closest."""
    branches: dict[int, list] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)

    def distance(errors):
        mismatched = sum(e.validator in ("const", "enum", "type") for e in errors)
        return (mismatched, len(errors))

    ranked = sorted(branches.values(), key=distance)
    if len(ranked) > 1 and distance(ranked[0]) == distance(ranked[1]):
        return []
    return ranked[0]


def _path(error) -> str:
    text = ""
    for part in error.absolute_path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def _nearest(key: str, allowed: list[str]) -> str:
    from difflib import get_close_matches

    # Short names such as n2 and n3 are near at half their letters.
    return next(iter(get_close_matches(key, allowed, 1, cutoff=0.5)), "")


def _known(path: str, block: str, name: str, config: dict) -> Iterator[str]:
    if name not in config[block]:
        near = _nearest(name, list(config[block]))
        hint = f"did you mean {near}?" if near else f"defined are {', '.join(config[block])}"
        yield f"{path}: there is no {block}.{name}; {hint}"


def _problems(config: dict) -> Iterator[str]:
    for name, source in config["sources"].items():
        yield from _source_problems(f"sources.{name}", source, config)
    for name, model in config["models"].items():
        yield from _model_problems(f"models.{name}", model)
    for name, clone in config["clones"].items():
        yield from _clone_problems(f"clones.{name}", clone, config)
    for name, evaluation in config["evaluations"].items():
        yield from _evaluation_problems(f"evaluations.{name}", evaluation, config)
    for name, curve in config["curves"].items():
        yield from _source_of(f"curves.{name}", curve["source"], ("potts",), config)
    for paper, figures in config["figures"].items():
        for name, block in figures.items():
            yield from _figure_problems(f"figures.{paper}.{name}", block, config)


def _source_problems(path: str, source: dict, config: dict) -> Iterator[str]:
    if source["kind"] == "text":
        yield from _known(f"{path}.corpus", "corpora", source["corpus"], config)
    elif source["kind"] == "many-body" and source["length"] < source["order"]:
        yield (
            f"{path}.length: found {source['length']}, fewer sites than the order "
            f"{source['order']} of the interaction; take at least {source['order']}"
        )


def _model_problems(path: str, model: dict) -> Iterator[str]:
    start, rank = model.get("start"), model.get("rank")
    if start is not None and rank is not None:
        yield (
            f"{path}.start: found {start} with rank {rank}; a uniform start is that of full "
            f"values, so set rank to null or leave start out"
        )
    if isinstance(start, list) and len(start) != model["layers"]:
        yield (
            f"{path}.start: found {len(start)} scales for {model['layers']} layers; give one for "
            f"each, or one number for all"
        )
    if "training" not in model or model["training"]["optimizer"]["name"] == "lbfgs":
        return
    recipe = model["training"]
    if "width" in model and model["width"] % model["heads"]:
        yield (
            f"{path}.heads: found {model['heads']}, which does not divide width {model['width']}; "
            f"take a divisor of the width"
        )
    causal = model["architecture"] == "gpt"
    expected = "next-token" if causal else "masked"
    if recipe["objective"] != expected:
        yield (
            f"{path}.training.objective: found {recipe['objective']}; a {model['architecture']} "
            f"model is trained with {expected}"
        )
    beyond = [step for step in recipe["checkpoints"]["listed"] if step > recipe["steps"]]
    if beyond:
        yield (
            f"{path}.training.checkpoints.listed: found {beyond}, beyond the last step "
            f"{recipe['steps']}; take them out or train longer"
        )
    hold = recipe.get("hold", 0)
    if hold and recipe["schedule"] != "cosine":
        yield (
            f"{path}.training.hold: found {hold} with schedule {recipe['schedule']}, which holds "
            f"the rate anyway; leave it out or take schedule cosine"
        )
    if hold and recipe["warmup"] + hold > recipe["steps"]:
        yield (
            f"{path}.training.hold: found {hold}, expected at most "
            f"{recipe['steps'] - recipe['warmup']}, the steps after the warm-up; shorten it"
        )
    if recipe["warmup"] >= recipe["steps"]:
        yield (
            f"{path}.training.warmup: found {recipe['warmup']}, expected less than the "
            f"{recipe['steps']} steps of the run; shorten it"
        )


def _fits(path: str, model: str, source: str, config: dict) -> Iterator[str]:
    """Whether a model can be built for a source's |V| and L."""
    sizes, given = config["models"][model], config["sources"][source]
    recipe = sizes.get("training", {})
    if given["kind"] == "alignment":
        return  # its |V| and L are in the file
    if "weights" in recipe:
        yield (
            f"models.{model}.training.weights: found {recipe['weights']}, but {path} trains it on "
            f"{source}, a {given['kind']} source; only the sequences of alignments have weights"
        )
    available = given.get("sequences", {}).get("train")
    if available and recipe.get("subset", 0) > available:
        yield (
            f"models.{model}.training.subset: found {recipe['subset']}, more than the {available} "
            f"training sequences of source {source}, on which {path} uses it"
        )
    rank, vocabulary, length = sizes.get("rank"), given["vocabulary"], given["length"]
    if rank and rank > vocabulary:
        yield (
            f"models.{model}.rank: found {rank}, more than the |V| = {vocabulary} of source "
            f"{source}, on which {path} uses it; take rank <= {vocabulary}, or null for full values"
        )
    order = sizes.get("order")
    if order and order > length:
        yield (
            f"models.{model}.order: found {order}, above the L = {length} of source {source}, on "
            f"which {path} uses it; take at most {length}"
        )
    true_order = {"many-body": given.get("order"), "potts": 2}.get(given["kind"])
    if order and "weights" in sizes and order != true_order:
        yield (
            f"models.{model}.order: found {order}, but source {source}, whose weights {path} "
            f"takes, is of order {true_order or 'none: it is a text'}; the two must be one"
        )
    if recipe.get("objective") == "masked" and "batch" in recipe:
        masks = length if recipe["masks"] == "all" else max(1, round(recipe["masks"] * length))
        if recipe["batch"] < masks:
            yield (
                f"models.{model}.training.batch: found {recipe['batch']} copies, fewer than the "
                f"{masks} that one sequence of source {source} gives; take at least {masks}"
            )
        elif recipe["masks"] == "all" and recipe["batch"] % length:
            yield (
                f"models.{model}.training.batch: found {recipe['batch']} copies, no multiple of "
                f"the {length} that each sequence of source {source} gives; take "
                f"{recipe['batch'] // length * length}"
            )


def _clone_problems(path: str, clone: dict, config: dict) -> Iterator[str]:
    missing = [
        *_known(f"{path}.source", "sources", clone["source"], config),
        *_known(f"{path}.model", "models", clone["model"], config),
    ]
    if isinstance(clone["step"], dict):
        reference = clone["step"]["loss_of"]["model"]
        missing += _known(f"{path}.step.loss_of.model", "models", reference, config)
    if missing:
        yield from missing
        return
    model = config["models"][clone["model"]]
    if model["architecture"] == "gpt":
        yield (
            f"{path}.model: found {clone['model']}, a causal model; chains need the masked logits "
            f"of a factored or bert model"
        )
    if isinstance(clone["step"], int) and clone["step"] > model["training"]["steps"]:
        yield (
            f"{path}.step: found {clone['step']}, beyond the last step "
            f"{model['training']['steps']} of {clone['model']}; take one of its checkpoints or last"
        )
    yield from _fits(path, clone["model"], clone["source"], config)


def _evaluation_problems(path: str, evaluation: dict, config: dict) -> Iterator[str]:
    missing = [
        *_known(f"{path}.source", "sources", evaluation["source"], config),
        *_known(f"{path}.model", "models", evaluation["model"], config),
    ]
    if missing:
        yield from missing
        return
    for name, target in evaluation["targets"].items():
        yield from _target_problems(f"{path}.targets.{name}", target, evaluation, config)
    yield from _fits(path, evaluation["model"], evaluation["source"], config)


def _target_problems(path: str, target: dict, evaluation: dict, config: dict) -> Iterator[str]:
    if "split" in target:
        return
    key = "clone" if "clone" in target else "starts"
    missing = list(_known(f"{path}.{key}", "clones", target[key], config))
    if missing:
        yield from missing
        return
    clone = config["clones"][target[key]]
    if clone["source"] != evaluation["source"]:
        yield (
            f"{path}.{key}: {target[key]} has sequences of source {clone['source']}, the model is "
            f"trained on {evaluation['source']}; the two must be one"
        )
    if key == "clone" and target["sweep"] not in clone["sweeps"]:
        yield (
            f"{path}.sweep: found {target['sweep']}, but clones.{target[key]} saves sweeps "
            f"{clone['sweeps']}; take one of them or add it there"
        )


def _figure_problems(path: str, block: dict, config: dict) -> Iterator[str]:
    named = {
        "evaluations": ("evaluation", "wide_generator", "generators"),
        "clones": ("early_stopped_clone", "clones", "chains"),
    }
    for kind, keys in named.items():
        for key in keys:
            for name in _listed(block.get(key)):
                yield from _known(f"{path}.{key}", kind, name, config)
    for key, kind in (("theory", "theory"), ("exact", "theory"), ("curve", "curves")):
        for name in _listed(block.get(key)):
            yield from _known(f"{path}.{key}", kind, name, config)
    if "runs" in block or "model" in block:
        yield from _run_problems(path, block, config)
    for part in parts(block):
        yield from _part_problems(path, part, config)
    if block.get("evaluation") not in config["evaluations"]:
        return
    evaluation = config["evaluations"][block["evaluation"]]
    for key in ("ladder", "control", "early_stopped", "wide", "norm", "starts", "pairs"):
        for name in _listed(block.get(key)):
            if name not in evaluation["targets"]:
                yield (
                    f"{path}.{key}: evaluations.{block['evaluation']} is not tested on {name}; "
                    f"its targets are {', '.join(evaluation['targets'])}"
                )
    for seed in block.get("seeds", []):
        if seed not in evaluation["seeds"]:
            yield (
                f"{path}.seeds: found {seed}, but evaluations.{block['evaluation']} runs seeds "
                f"{evaluation['seeds']}; take some of them or add it there"
            )
    for name in block.get("clones", []):
        if name in config["clones"] and block["sweep"] not in config["clones"][name]["sweeps"]:
            yield (
                f"{path}.sweep: found {block['sweep']}, but clones.{name} saves sweeps "
                f"{config['clones'][name]['sweeps']}; take one of them or add it there"
            )


def _run_problems(path: str, block: dict, config: dict) -> Iterator[str]:
    """Runs on one source, as in the figures of the potts paper."""
    missing = list(_known(f"{path}.source", "sources", block["source"], config))
    entries = [(key, entry) for key in ("runs", "interpolation") for entry in block.get(key, [])]
    named = [(key, name) for key, entry in entries for name in entry["candidates"]]
    named += [(key, block[key]) for key in ("optimum", "model") if key in block]
    for key, name in named:
        missing += _known(f"{path}.{key}", "models", name, config)
    if isinstance(block.get("truth"), dict):
        source = block["truth"]["hamiltonian"]
        missing += _source_of(f"{path}.truth", source, ("potts", "many-body"), config)
    if missing:
        yield from missing
        return
    for key, name in named:
        if key == "optimum" and config["models"][name].get("weights") != "source":
            yield f"{path}.optimum: found {name}; expected an energy model with weights: source"
        yield from _fits(f"{path}.{key}", name, block["source"], config)
    for entry in block.get("interpolation", []):
        for name in entry["candidates"]:
            if config["models"][name].get("a") != entry["a"]:
                yield (
                    f"{path}.interpolation: found {name} at a = {entry['a']}, but its a is "
                    f"{config['models'][name].get('a', 'none')}; the two must be one"
                )


def _source_of(path: str, source: str, kinds: tuple[str, ...], config: dict) -> Iterator[str]:
    """Whether a source is there and of one of the kinds."""
    yield from _known(f"{path}.source", "sources", source, config)
    kind = config["sources"].get(source, {}).get("kind", kinds[0])
    if kind not in kinds:
        yield (
            f"{path}.source: found {source}, a {kind} source; expected a source of kind "
            f"{' or '.join(kinds)}"
        )


def _part_problems(path: str, part: dict, config: dict) -> Iterator[str]:
    """Networks, lines and truth on one source, as in figure 2."""
    missing = list(_source_of(path, part["source"], ("many-body", "potts"), config))
    expected = {"networks": "factored", "protocols": "factored", "lines": "energy"}
    networks = [(key, entry) for key in ("networks", "protocols") for entry in part.get(key, [])]
    named = [(key, entry["model"]) for key, entry in networks]
    named += [("lines", name) for name in part["lines"]] + [("truth", part["truth"])]
    for key, name in named:
        missing += _known(f"{path}.{key}", "models", name, config)
    if missing:
        yield from missing
        return
    for key, name in named:
        model = config["models"][name]
        if key == "truth" and model.get("weights") != "source":
            yield f"{path}.truth: found {name}; expected an energy model with weights: source"
        elif key != "truth" and model["architecture"] != expected[key]:
            yield (
                f"{path}.{key}: found {name}, a {model['architecture']} model; expected "
                f"{expected[key]} models"
            )
        yield from _fits(f"{path}.{key}", name, part["source"], config)


def _listed(value) -> list[str]:
    """The names in a value of the config: one, a list, a list of lists, or names by their part."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [name for part in parts for name in _listed(part)]
