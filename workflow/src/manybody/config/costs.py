"""What the long jobs of a text take, from those of the demo that were measured: `costs.json`.

A job's seconds grow with its amount of work: those of the measured job that is most like it, times
the ratio of the amounts. At the demo's |V|, L and sizes of models this is a measurement, rescaled
by steps, chains and sequences; at other sizes it is an estimate that was not checked.

    python -m manybody.config.costs RESULTS CONFIG

makes the file anew from RESULTS/usage and the config that made it.
"""

import json
import sys
from math import log
from pathlib import Path

from manybody import models
from manybody.files.atomic import read_json, write_json
from manybody.sampling import footprint

MEASURED = Path(__file__).with_name("costs.json")
KEPT = ("stage", "family", "layers", "size", "energy", "amount", "arrays")
KEPT += ("seconds", "megabytes")
START = 2.5  # seconds in which a job of torch starts


def jobs(config: dict, runs: list, clones: list) -> list[dict]:
    """The trainings, clones and evaluations behind some runs (evaluation, seed) and clones.

    One dictionary a job: `stage` (its rule),
    `name`, `source`, `model` with its `architecture`, `layers` and `size` (rank or width), `energy`
    of a clone, `amount` (of work, to compare jobs of one stage), `arrays` (MB), `test` (sequences
    of the test split that it asks for).
    """
    evaluations = config["evaluations"]
    clones = [(name, config["clones"][name]) for name in clones]
    # What is trained elsewhere is of any size.
    runs = [run for run in runs if "training" in config["models"][evaluations[run[0]]["model"]]]
    clones = [pair for pair in clones if "training" in config["models"][pair[1]["model"]]]
    trained = [(evaluations[name]["source"], evaluations[name]["model"], s) for name, s in runs]
    trained += [(clone["source"], clone["model"], clone["seed"]) for _, clone in clones]
    found = [_training(config, *run) for run in dict.fromkeys(trained)]
    found += [_sampling(config, name, clone) for name, clone in clones]
    found += [_evaluation(config, name, seed) for name, seed in runs]
    return found


def _job(config, stage, name, model, source, amount, **more) -> dict:
    entry, sizes = config["models"][model], config["sources"][source]
    size = entry.get("rank") or entry.get("width") or sizes["vocabulary"]
    made = {"stage": stage, "name": name, "source": source, "model": model, "test": 0}
    made |= {"family": entry["architecture"], "layers": entry.get("layers", 1), "size": size}
    made |= {"amount": amount, "arrays": 0}
    return {**made, **more}


def _about(config, model, source):
    sizes = {key: config["sources"][source][key] for key in ("vocabulary", "length")}
    return models.about({**config["models"][model], **sizes})


def _training(config, source, model, seed) -> dict:
    recipe, about = config["models"][model]["training"], _about(config, model, source)
    length = config["sources"][source]["length"]
    copies = recipe["steps"] * recipe["batch"]
    arrays = 8 * recipe["batch"] * (about.work_size or 0) // 10**6
    name = f"{source}.{model}.seed-{seed}"
    return _job(config, "train_model", name, model, source, copies * length, arrays=arrays)


def _sampling(config, name, clone) -> dict:
    model, source = clone["model"], clone["source"]
    about, length = _about(config, model, source), config["sources"][source]["length"]
    shared, each = footprint.group_bytes(about, clone["energy"])
    power = 2 if about.closed_form else 3
    return _job(
        config,
        "sample_clones",
        f"{source}.{name}",
        model,
        source,
        clone["chains"] * max(clone["sweeps"]) * length**power,
        arrays=min(shared + clone["chains"] * each, footprint.MEMORY) // 10**6,
        energy=clone["energy"],
        test=clone["chains"] if clone["chain_init"] == "test" else 0,
    )


def _evaluation(config, name, seed) -> dict:
    from manybody.training.schedule import checkpoint_steps

    entry = config["evaluations"][name]
    model, source = entry["model"], entry["source"]
    length = config["sources"][source]["length"]
    recipe = config["models"][model]["training"]
    steps = 1 if entry["steps"] == "last" else len(checkpoint_steps(recipe))
    sequences = test = 0
    for target in entry["targets"].values():
        clone = target.get("clone", target.get("initial"))
        sequences += config["clones"][clone]["chains"] if clone else target["sequences"]
        test = max(test, target["sequences"] if target.get("split") == "test" else 0)
    power = 1 if _about(config, model, source).causal else 2
    amount = steps * sequences * length**power
    name = f"{name}.seed-{seed}"
    return _job(config, "evaluate_model", name, model, source, amount, test=test)


def estimated(job: dict, measured: list[dict] | None = None) -> tuple[float, int]:
    """Seconds and MB that a job takes on one core of two that are busy."""
    known = [
        other
        for other in (read_json(MEASURED) if measured is None else measured)
        if (other["stage"], other.get("energy")) == (job["stage"], job.get("energy"))
    ]

    def distance(other):
        apart = [abs(log(job[key] / other[key])) for key in ("layers", "size", "amount")]
        return other["family"] != job["family"], *apart

    near = min(known, key=lambda other: (distance(other), other["seconds"]))
    ratio = 1.0
    for key in ("amount", "layers", "size"):
        ratio *= job[key] / near[key]
    seconds = START + (near["seconds"] - START) * ratio
    return seconds, near["megabytes"] + job["arrays"] - near["arrays"]


def main(results: str, config: str) -> None:
    """Writes `costs.json`: the jobs of a run, with their seconds and MB."""
    import yaml

    loaded = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
    usage = Path(results) / "usage"
    runs = [
        (name, seed) for name, entry in loaded["evaluations"].items() for seed in entry["seeds"]
    ]
    measured = []
    for job in jobs(loaded, runs, list(loaded["clones"])):
        lines = (usage / job["stage"] / f"{job['name']}.jsonl").read_text().splitlines()
        used = json.loads(lines[-1])
        job |= {"seconds": round(used["s"], 1), "megabytes": round(used["max_rss"])}
        measured.append({key: job[key] for key in KEPT if key in job})
    write_json(MEASURED, measured)


if __name__ == "__main__":
    main(*sys.argv[1:])
