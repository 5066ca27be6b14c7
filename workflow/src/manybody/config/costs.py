"""What the long jobs of a text take, from those of the demo that were measured: `costs.json`.

A job's seconds grow with its amount of work: those of the measured job that is most like it, times
the ratio of the amounts. At the demo's |V|, L and sizes of models this is a measurement, rescaled
by steps, chains and sequences; at other sizes it is an estimate that was not checked.

    python -m manybody.config.costs RESULTS CONFIG [TABLE]

makes the file anew from RESULTS/usage and the config that made it, or writes what is estimated
beside what was measured to TABLE.
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
    runs, clones = list(runs), [(name, config["clones"][name]) for name in clones]
    evaluations = config["evaluations"]
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


def measured(results: str | Path, config: dict) -> list[dict]:
    """The jobs of `jobs` that a run has done, with their `seconds` and `megabytes` as measured."""
    usage = Path(results) / "usage"
    runs = [
        (name, seed) for name, entry in config["evaluations"].items() for seed in entry["seeds"]
    ]
    found = []
    for job in jobs(config, runs, list(config["clones"])):
        path = usage / job["stage"] / f"{job['name']}.jsonl"
        if path.is_file():
            used = json.loads(path.read_text().splitlines()[-1])
            found.append(job | {"seconds": _seconds(used), "megabytes": round(used["max_rss"])})
    return found


def _seconds(used: dict) -> float:
    """Seconds of processor time, which do not grow as those of the clock where others work too.

    Snakemake looks 31 times each half second, then each 30 s; what a job takes after the last look
    is filled in at its mean rate.
    """
    seconds = used["s"]
    looked = 15.5 + (seconds - 15.5) // 30 * 30 if seconds > 15.5 else seconds
    return round(used["cpu_time"] * seconds / looked, 1)


def main(results: str, config: str, table: str = "") -> None:
    """Writes `costs.json`, or to `table` the jobs as estimated and as measured."""
    import yaml

    found = measured(results, yaml.safe_load(Path(config).read_text(encoding="utf-8")))
    if not table:
        write_json(MEASURED, [{key: job[key] for key in KEPT if key in job} for job in found])
        return
    rows = ["stage,job,estimated_seconds,seconds,estimated_megabytes,megabytes"]
    for job in found:
        seconds, megabytes = estimated(job)
        numbers = f"{seconds:.1f},{job['seconds']},{megabytes},{job['megabytes']}"
        rows.append(f"{job['stage']},{job['name']},{numbers}")
    Path(table).write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
