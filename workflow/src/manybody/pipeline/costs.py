"""What jobs take, from those of the demo that were measured: `costs.json`.

A job's seconds grow with its amount of work: those of the measured job that is most like it, times
the ratio of the amounts. At the demo's |V|, L and sizes of models this is a measurement, rescaled
by steps, chains and sequences; at other sizes it is an estimate that was not checked. The jobs of
a text are described by sizes that advice is given on; any other by the counts of its entry in the
config (points, realisations, sweeps ...), of which each is taken to multiply the work.

    python -m manybody.pipeline.costs RESULTS CONFIG [TABLE]

makes the file anew from RESULTS/logs, RESULTS/usage and the config that made them, or writes what
is estimated beside what was measured to TABLE. The times are those of the clock: use a run that had
the machine to itself.
"""

import json
import sys
from functools import cache
from math import log, prod
from pathlib import Path

from manybody import models
from manybody.io.atomic import read_json, write_json
from manybody.sampling import footprint

MEASURED = Path(__file__).with_name("costs.json")
KEPT = ("stage", "name", "family", "layers", "size", "energy", "amount", "arrays")
KEPT += ("seconds", "megabytes")
START = 2.5  # seconds in which a job of torch starts
LIGHT = (4.0, 300)  # seconds and MB of a job of which none was measured: it draws or judges
# Where the entry of a job's name stands in the config, if its counts say how much work it is
ENTRIES = {"collect_corpus": "corpora", "compute_theory": "theory", "fit_curve": "curves"}
ENTRIES |= {"sample_hamiltonian": "sources", "draw_sequences": "sources"}
ENTRIES |= {"measure_spectrum": "spectra"}


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
    sampler, paths = clone.get("sampler", "mh"), clone.get("paths") or 0
    shared, each = footprint.group_bytes(about, clone["energy"], sampler=sampler, paths=paths)
    replicas = len(clone.get("inverse_temperatures") or [1])
    work = clone["energy"] if sampler == "mh" else sampler
    power = 2 if footprint.incremental(about, clone["energy"]) else 3
    return _job(
        config,
        "sample_clones",
        f"{source}.{name}",
        model,
        source,
        clone["chains"] * replicas * max(paths, 1) * max(clone["sweeps"]) * length**power,
        arrays=min(shared + clone["chains"] * replicas * each, footprint.MEMORY) // 10**6,
        energy=work,
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
        own = target.get("split") == "test" and "source" not in target
        test = max(test, target["sequences"] if own else 0)
    power = 1 if _about(config, model, source).causal else 2
    amount = steps * sequences * length**power
    name = f"{name}.seed-{seed}"
    return _job(config, "evaluate_model", name, model, source, amount, test=test)


def _of_own_text(config, source) -> bool:
    """Whether these are sequences of a text, by a tokenizer whose |V| the config says."""
    entry = config["sources"].get(source, {})
    return entry.get("kind") == "text" and "vocabulary" in entry


def described(config: dict, log: str) -> dict:
    """A job as `estimated` takes it, by the path of its log below `logs/` without the ending."""
    stage, *names = log.split("/")
    text = names and _of_own_text(config, names[0])
    if stage == "train_model" and text:
        return _training(config, names[0], names[1], names[2].removeprefix("seed-"))
    if stage == "sample_clones" and text:
        return _sampling(config, names[1], config["clones"][names[1]])
    if stage == "evaluate_model":
        entry = config["evaluations"][names[0]]
        trained = config["models"][entry["model"]].get("training")
        if _of_own_text(config, entry["source"]) and trained:
            return _evaluation(config, names[0], names[1].removeprefix("seed-"))
    family, amount = "", 1
    if stage == "train_model":
        entry = config["models"][names[1]]
        recipe = entry["training"]
        family = f"{entry['architecture']} {recipe['optimizer']['name']}"
        counts = ("steps", "batch", "restarts")
        amount = _amount({key: recipe[key] for key in counts if key in recipe})
    elif stage in ENTRIES:
        entry = config[ENTRIES[stage]][names[0]]
        family, amount = entry["kind"], _amount(entry)
    return {"stage": stage, "name": ".".join(names), "family": family, "amount": amount}


def _amount(entry: dict) -> int:
    """The product of an entry's counts: whole numbers, lengths of lists, sums of inner mappings.

    Where these hold no whole numbers it is how many they hold: packages of a corpus.
    """
    counts = []
    for key, value in entry.items():
        if isinstance(value, dict):
            value = sum(inner for inner in value.values() if isinstance(inner, int)) or len(value)
        elif isinstance(value, list):
            value = len(value)
        if isinstance(value, int) and key not in ("seed", "threads"):
            counts.append(max(value, 1))
    return prod(counts)


def estimated(job: dict, measured: list[dict] | None = None) -> tuple[float, int]:
    """Seconds and MB that a job takes on one core of two that are busy."""
    sized = "layers" in job
    known = [
        other
        for other in (_measured() if measured is None else measured)
        if other["stage"] == job["stage"] and ("layers" in other) == sized
    ]
    # Chains of an energy or a sampler that none was measured of are like any others.
    known = [other for other in known if other.get("energy") == job.get("energy")] or known
    if not known:
        return LIGHT
    keys = ("layers", "size", "amount") if sized else ("amount",)

    def distance(other):
        apart = [abs(log(job[key] / other[key])) for key in keys]
        return other["family"] != job["family"], not sized and other["name"] != job["name"], *apart

    least = min(map(distance, known))
    near = sorted((other for other in known if distance(other) == least), key=_seconds)
    near = near[(len(near) - 1) // 2]
    ratio = 1.0
    # The amounts of two jobs that no sizes describe can be compared if they are of one kind.
    if sized or near["family"] == job["family"]:
        ratio = prod(job[key] / near[key] for key in keys)
    start = min(START, near["seconds"])
    seconds = start + (near["seconds"] - start) * ratio
    return seconds, near["megabytes"] + job.get("arrays", 0) - near.get("arrays", 0)


@cache
def _measured() -> list[dict]:
    return read_json(MEASURED)


def _seconds(job: dict) -> float:
    return job["seconds"]


def measured(results: str | Path, config: dict) -> list[dict]:
    """The jobs that a run has done, with their `seconds` and `megabytes` as measured."""
    logs, usage = Path(results) / "logs", Path(results) / "usage"
    found = []
    for path in sorted(logs.rglob("*.log")):
        key = str(path.relative_to(logs).with_suffix(""))
        stage, _, name = key.partition("/")
        times = usage / stage / f"{name.replace('/', '.')}.jsonl"
        if times.exists():
            used = json.loads(times.read_text().splitlines()[-1])
            took = {"seconds": round(used["s"], 1), "megabytes": round(used["max_rss"])}
            found.append(described(config, key) | took | {"log": key})
    return found


def main(results: str, config: str, table: str = "") -> None:
    """Writes `costs.json`, or to `table` the jobs as estimated and as measured."""
    import yaml

    found = measured(results, yaml.safe_load(Path(config).read_text(encoding="utf-8")))
    if not table:
        kept = [{key: job[key] for key in KEPT if key in job} for job in found]
        write_json(MEASURED, [_anonymous(job) if "layers" in job else job for job in kept])
        return
    rows = ["log,estimated_seconds,seconds,estimated_megabytes,megabytes"]
    for job in found:
        seconds, megabytes = estimated(job)
        numbers = f"{seconds:.1f},{job['seconds']},{megabytes},{job['megabytes']}"
        rows.append(f"{job['log']},{numbers}")
    Path(table).write_text("\n".join(rows) + "\n", encoding="utf-8")


def _anonymous(job: dict) -> dict:
    """A job of a text is found by its sizes, not by its name."""
    return {key: value for key, value in job.items() if key != "name"}


if __name__ == "__main__":
    main(*sys.argv[1:])
