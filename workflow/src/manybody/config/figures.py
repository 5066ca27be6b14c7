"""Whether what the figures of a config draw is there, and of the kind that they draw."""

from collections.abc import Iterator

from manybody.config.inputs import corpora, parts
from manybody.config.names import fits, kept, known, listed, of_kind

# What the keys of a figure name: the kind of theory or curve.
THEORY = {
    ("simplicity", "exact"): "many-body-exact",
    ("simplicity", "gradient_flow", "theory"): "gradient-flow",
    ("potts", "exact"): "potts-exact",
    ("potts", "fig3", "theory"): "replica",
    ("multi-index", "state_evolution"): "multi-index-state-evolution",
    ("multi-index", "regularised"): "multi-index-state-evolution",
    ("multi-index", "held"): "multi-index-held",
    ("multi-index", "gamp"): "multi-index-gamp",
    ("multi-index", "thresholds"): "multi-index-thresholds",
    ("multi-index", "sgd"): "multi-index-sgd",
    ("multi-index", "deep"): "multi-index-deep",
    ("multi-index", "deep_regularised"): "multi-index-deep",
    ("multi-index", "trec"): "multi-index-trec",
    ("multi-index", "untied"): "multi-index-untied",
    ("multi-index", "exact"): "multi-index-exact",
}
TRUE = "expected an energy model with weights: source; take one"
CURVES = {"fig3": "separability", "recovery": "recovery"}


def figure_problems(paper: str, figure: str, block: dict, config: dict) -> Iterator[str]:
    """What is wrong with `figures.{paper}.{figure}`, one sentence each."""
    path = f"figures.{paper}.{figure}"
    named = {
        "evaluations": ("evaluation", "wide_generator", "generators"),
        "clones": ("clones", "chains"),
    }
    students = [
        (f"{path}.corpora[{number}]" if "corpora" in block else path, part)
        for number, part in enumerate(corpora(block))
    ]
    for where, part in students:
        for kind, keys in named.items():
            for key in keys:
                for name in listed(part.get(key)):
                    yield from known(f"{where}.{key}", kind, name, config)
    if "curve" in block:
        kind = CURVES[figure]
        yield from of_kind(f"{path}.curve", block["curve"], (kind,), config, "curves")
    yield from _theory_problems(paper, figure, block, config)
    if "runs" in block or "model" in block:
        yield from _run_problems(path, block, config)
    for part in parts(block):
        yield from _part_problems(path, part, config)
    yield from _clone_problems(path, block, config)
    yield from _twin_problems(path, block, config)
    for where, part in students:
        if part.get("evaluation") in config["evaluations"]:
            yield from _evaluation_problems(where, part, config)
            yield from _comparison_problems(where, part, config)


def _theory_problems(paper: str, figure: str, block: dict, config: dict) -> Iterator[str]:
    """Whether the theories of a figure and of its parts are there and of the kind it draws."""
    path = f"figures.{paper}.{figure}"
    roles = block.get("theory", {})
    if isinstance(roles, dict):
        named = {f"theory.{role}": (name, (paper, role)) for role, name in roles.items()}
    else:
        named = {"theory": (roles, (paper, figure, "theory"))}
    for number, part in enumerate([block, *block.get("parts", [])]):
        if "exact" in part:
            key = f"parts[{number - 1}].exact" if number else "exact"
            named[key] = (part["exact"], (paper, "exact"))
    for key, (name, role) in named.items():
        yield from of_kind(f"{path}.{key}", name, (THEORY[role],), config, "theory")


def _clone_problems(path: str, block: dict, config: dict) -> Iterator[str]:
    """Whether the clones whose passages are shown have them."""
    for name in block.get("clones", []):
        clone = config["clones"].get(name)
        if clone and block["sweep"] not in clone["sweeps"]:
            yield (
                f"{path}.sweep: found {block['sweep']}; expected one of the sweeps that "
                f"clones.{name} saves, {clone['sweeps']}; take one of them or add it there"
            )
        if clone and max(block["passages"]) >= clone["chains"]:
            yield (
                f"{path}.passages: found {max(block['passages'])}; expected numbers below the "
                f"{clone['chains']} chains of clones.{name}; lower it, or sample more"
            )


def _twin_problems(path: str, block: dict, config: dict) -> Iterator[str]:
    """Whether twins are two clones of the generator that is tested on them, at one sweep."""
    for number, twins in enumerate(block.get("twins", [])):
        where, name = f"{path}.twins[{number}]", twins["evaluation"]
        if name not in block["generators"]:
            yield (
                f"{where}.evaluation: found {name}; expected one of {path}.generators: "
                f"{', '.join(block['generators'])}; take one of them or add it there"
            )
            continue
        if name not in config["evaluations"]:
            continue  # said of generators
        evaluation = config["evaluations"][name]
        targets = evaluation["targets"]
        own = [
            other
            for other, target in targets.items()
            if config["clones"].get(target.get("clone"), {}).get("model") == evaluation["model"]
        ]
        found = [twins["text"], twins["noise"]]
        wrong = [other for other in found if other not in own]
        for other in wrong:
            yield (
                f"{where}: found {other}; expected targets of evaluations.{name} that are clones "
                f"of its own model: {', '.join(own) or 'none'}; take two of them or add them there"
            )
        if not wrong and len({targets[other]["sweep"] for other in found}) > 1:
            yield (
                f"{where}: found {' and '.join(found)} at different sweeps; expected the same; "
                f"change one of them in evaluations.{name}"
            )


def _evaluation_problems(path: str, block: dict, config: dict) -> Iterator[str]:
    """Whether the figure's evaluation has the targets, seeds and checkpoints that are drawn."""
    evaluation = config["evaluations"][block["evaluation"]]
    for key in ("ladder", "control", "early_stopped", "wide", "norm", "starts", "pairs"):
        for name in listed(block.get(key)):
            if name not in evaluation["targets"]:
                yield (
                    f"{path}.{key}: found {name}; expected one of the targets of "
                    f"evaluations.{block['evaluation']}: {', '.join(evaluation['targets'])}; take "
                    f"one of them or add it there"
                )
    for seed in block.get("seeds", []):
        if seed not in evaluation["seeds"]:
            yield (
                f"{path}.seeds: found {seed}; expected seeds that "
                f"evaluations.{block['evaluation']} runs, {evaluation['seeds']}; "
                f"take some of them or add it there"
            )
    for name in block.get("colours", {}):
        if name not in evaluation["targets"]:
            yield (
                f"{path}.colours.{name}: found a colour for no target; expected targets of "
                f"evaluations.{block['evaluation']}: {', '.join(evaluation['targets'])}; remove it"
            )
    generators = (*block.get("generators", []), *listed(block.get("wide_generator")))
    if generators and "test" not in block:
        yield (
            f"{path}.test: found nothing beside generators; expected the target of test text in "
            f"their evaluations; name it, or leave generators out"
        )
        return
    for name in generators:
        targets = config["evaluations"].get(name, {"targets": [block["test"]]})["targets"]
        if block["test"] not in targets:
            yield (
                f"{path}.test: found {block['test']}; expected a target of evaluations.{name}, "
                f"which are {', '.join(targets)}; take one of them or add it there"
            )
    recipe = config["models"].get(evaluation["model"], {}).get("training", {})
    for step in block.get("late_steps", []) if "checkpoints" in recipe else ():
        if not kept(step, recipe):
            yield (
                f"{path}.late_steps: found {step}; expected checkpoints of {evaluation['model']}, "
                f"up to {recipe['steps']}; take others, or list it under "
                f"models.{evaluation['model']}.training.checkpoints"
            )


def _comparison_problems(path: str, block: dict, config: dict) -> Iterator[str]:
    """Whether the kinds that are compared are clones among the student's targets."""
    targets = config["evaluations"][block["evaluation"]]["targets"]
    clones = [name for name, target in targets.items() if "clone" in target]
    for number, pair in enumerate(block.get("comparisons", [])):
        for key in ("late", "early"):
            for name in pair[key]:
                if name not in clones:
                    yield (
                        f"{path}.comparisons[{number}].{key}: found {name}; expected a clone among "
                        f"the targets of evaluations.{block['evaluation']}: {', '.join(clones)}; "
                        f"take one of them or add it there"
                    )


def _run_problems(path: str, block: dict, config: dict) -> Iterator[str]:
    """Runs on one source, as in the figures of the potts paper."""
    missing = list(known(f"{path}.source", "sources", block["source"], config))
    entries = [(key, entry) for key in ("runs", "interpolation") for entry in block.get(key, [])]
    named = [(key, name) for key, entry in entries for name in entry["candidates"]]
    longer = [("runs", entry["longer"]) for entry in block.get("runs", []) if "longer" in entry]
    named += longer + [(key, block[key]) for key in ("optimum", "model") if key in block]
    for key, name in named:
        missing += known(f"{path}.{key}", "models", name, config)
    if isinstance(block.get("truth"), dict):
        source = block["truth"]["hamiltonian"]
        missing += of_kind(f"{path}.truth.hamiltonian", source, ("potts", "many-body"), config)
    if missing:
        yield from missing
        return
    for key, name in named:
        if key == "optimum" and config["models"][name].get("weights") != "source":
            yield f"{path}.optimum: found {name}; {TRUE}"
        elif key == "model" and not _is_pairwise(config["models"][name]):
            yield (
                f"{path}.model: found {name}; expected factored attention of one layer, whose "
                f"weights score pairs; take such a model"
            )
        yield from fits(f"{path}.{key}", name, block["source"], config)
    for entry in block.get("interpolation", []):
        for name in entry["candidates"]:
            if config["models"][name].get("a") != entry["a"]:
                yield (
                    f"{path}.interpolation: found {name} at a = {entry['a']}, but its a is "
                    f"{config['models'][name].get('a', 'none')}; expected the same; change one"
                )


def _is_pairwise(model: dict) -> bool:
    return model["architecture"] == "factored" and model["layers"] == 1


def _part_problems(path: str, part: dict, config: dict) -> Iterator[str]:
    """Networks, lines and truth on one source, as in figure 2."""
    missing = list(of_kind(f"{path}.source", part["source"], ("many-body", "potts"), config))
    expected = {"networks": "factored", "protocols": "factored", "lines": "energy"}
    networks = [(key, entry) for key in ("networks", "protocols") for entry in part.get(key, [])]
    named = [(key, entry["model"]) for key, entry in networks]
    named += [("lines", name) for name in part["lines"]] + [("truth", part["truth"])]
    for key, name in named:
        missing += known(f"{path}.{key}", "models", name, config)
    if missing:
        yield from missing
        return
    for key, name in named:
        model = config["models"][name]
        if key == "truth" and model.get("weights") != "source":
            yield f"{path}.truth: found {name}; {TRUE}"
        elif key != "truth" and model["architecture"] != expected[key]:
            yield (
                f"{path}.{key}: found {name}, a {model['architecture']} model; expected "
                f"{expected[key]} models; take others"
            )
        yield from fits(f"{path}.{key}", name, part["source"], config)
