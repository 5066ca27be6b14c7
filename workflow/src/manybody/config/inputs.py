"""Which runs and clones a figure's block in the config asks for. Standard library only."""


def needs(block: dict, config: dict) -> dict:
    """What `block` draws: `runs`, pairs of evaluation and seed; `clones`; `targets`; `models`,
    `maps`, `equations` and `contacts`, triples of source, model and seed; `sources`; `theory`;
    `curves`.

    The student's `evaluation` comes with all its seeds or the block's own `seeds`; `generators`
    and `wide_generator` name evaluations as well; a block of several `corpora` has these for each.
    Clones are those that the evaluations are tested on, and the block's `chains` and `clones`.
    `targets` gives each evaluation's targets as the config has them. Models are those of the
    block's `networks`, `protocols`, `lines` and `truth`, or of its `parts`, the first two with
    `displacements`, pairs of source and model; or the candidates of its `runs`, which come with
    maps, and those that are `longer`, the candidates of its `interpolation`, and its `optimum`.
    Theory is its `theory`, one name or several by their part in the figure, and `exact`.
    `sources` gives each of their sources as the config has it. `elsewhere` is the figure that has
    the claims about the same runs, or None. Raises `KeyError` for a name that is not defined.
    """
    runs, targets = [], {}
    students = [part for part in corpora(block) if "evaluation" in part]
    own_seeds = {part["evaluation"]: part["seeds"] for part in students if "seeds" in part}
    names = [part["evaluation"] for part in students]
    names += [name for part in corpora(block) for name in part.get("generators", [])]
    names += _one(block, "wide_generator")
    clones = [*block.get("chains", []), *block.get("clones", [])]
    for name in dict.fromkeys(names):
        evaluation = config["evaluations"][name]
        runs += [[name, seed] for seed in own_seeds.get(name, evaluation["seeds"])]
        targets[name] = evaluation["targets"]
        clones += [target["clone"] for target in targets[name].values() if "clone" in target]
    trained = [run for part in parts(block) for run in _trained(part)]
    models = trained + [run for part in parts(block) for run in _references(part)]
    maps = _candidates(block, "runs")
    equations = maps + _candidates(block, "interpolation")
    models += equations
    models += [(block["source"], name, 0) for name in _one(block, "optimum")]
    models += [
        (block["source"], entry["longer"], seed)
        for entry in block.get("runs", [])
        if "longer" in entry
        for seed in entry["seeds"]
    ]
    named = [part["source"] for part in parts(block)] + _one(block, "source")
    contacts = [(block["source"], block["model"], block["seed"])] if "model" in block else []
    return {
        "runs": runs,
        "clones": sorted(set(clones)),
        "targets": targets,
        "models": [list(run) for run in dict.fromkeys(models)],
        "displacements": [list(run) for run in dict.fromkeys(run[:2] for run in trained)],
        "maps": [list(run) for run in dict.fromkeys(maps)],
        "equations": [list(run) for run in dict.fromkeys(equations)],
        "contacts": [list(run) for run in contacts],
        "sources": {name: config["sources"][name] for name in named},
        "theory": [*_theory(block), *_one(block, "exact")],
        "curves": _one(block, "curve"),
        "truth": _one(block, "truth") if contacts else [],
        "elsewhere": _elsewhere(block, config),
    }


def _elsewhere(block: dict, config: dict) -> str | None:
    """The figure that draws the runs of `block` as well and has the claims about them, if one does.

    Claims are counted once: a figure of the same student with late steps goes before one without,
    one of the same deepest network by one recipe before one by several.
    """
    for name, other in config.get("figures", {}).get("simplicity", {}).items():
        student = "late_steps" in other and "late_steps" not in block and "ladder" in block
        if student and other["evaluation"] == block["evaluation"]:
            return name
        networks = "networks" in other and "protocols" not in other and "protocols" in block
        if networks and all(
            one(other) == one(block)
            for one in (lambda part: part["source"], lambda part: part["networks"][-1])
        ):
            return name
    return None


def parts(block: dict) -> list[dict]:
    """The parts of a block that each compare networks with lines on one source."""
    return block.get("parts", [block] if "networks" in block else [])


def corpora(block: dict) -> list[dict]:
    """The parts of a block that each test a student on one corpus: itself, or its `corpora`."""
    return block.get("corpora", [block])


def _trained(part: dict) -> list[tuple[str, str, int]]:
    """(source, model, seed) of the runs that one part follows: its networks and protocols."""
    networks = [*part["networks"], *part.get("protocols", [])]
    return [(part["source"], entry["model"], seed) for entry in networks for seed in entry["seeds"]]


def _references(part: dict) -> list[tuple[str, str, int]]:
    """(source, model, seed) of what one part compares them with: its lines and the truth."""
    return [(part["source"], name, 0) for name in [*part["lines"], part["truth"]]]


def _candidates(block: dict, key: str) -> list[tuple[str, str, int]]:
    """(source, model, seed) of all runs among which a figure chooses the best learning rate."""
    return [
        (block["source"], model, seed)
        for entry in block.get(key, [])
        for model in entry["candidates"]
        for seed in entry["seeds"]
    ]


def _theory(block: dict) -> list[str]:
    theory = block.get("theory", {})
    return list(theory.values()) if isinstance(theory, dict) else [theory]


def _one(block: dict, key: str) -> list:
    return [block[key]] if key in block else []
