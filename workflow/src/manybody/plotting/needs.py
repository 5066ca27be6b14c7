"""Which runs and clones a figure's block in the config asks for. Standard library only."""


def needs(block: dict, config: dict) -> dict:
    """What `block` draws: `runs`, pairs of evaluation and seed; `clones`; `targets`.

    The student's `evaluation` comes with all its seeds or the block's own `seeds`; `generators`
    and `wide_generator` name evaluations as well. Clones are those that the evaluations are
    tested on, and the block's `chains`, `early_stopped_clone` and `clones`. `targets` gives each
    evaluation's targets as the config has them. Raises `KeyError` for a name that is not defined.
    """
    runs, targets = [], {}
    names = [block["evaluation"]] if "evaluation" in block else []
    names += [*block.get("generators", []), *_one(block, "wide_generator")]
    clones = [*block.get("chains", []), *block.get("clones", [])]
    clones += _one(block, "early_stopped_clone")
    for name in dict.fromkeys(names):
        evaluation = config["evaluations"][name]
        seeds = evaluation["seeds"]
        if name == block.get("evaluation"):
            seeds = block.get("seeds", seeds)
        runs += [[name, seed] for seed in seeds]
        targets[name] = evaluation["targets"]
        clones += [target["clone"] for target in targets[name].values() if "clone" in target]
    return {"runs": runs, "clones": sorted(set(clones)), "targets": targets}


def _one(block: dict, key: str) -> list[str]:
    return [block[key]] if key in block else []
