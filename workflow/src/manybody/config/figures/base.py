"""What the blocks of all figures have: their inputs, and lists of runs."""

from collections.abc import Iterable

from manybody.io.options import Block, Reference, Seeds, inside, key, refers

TRUE = "expected an energy model with parameters: source; take one"
# One run: source, model, seed.
RunKey = tuple[str, str, int]


class Figure(Block):
    """What one figure draws."""

    def inputs(self, config: dict) -> dict:
        """What the figure is drawn from, by name, as `inputs` makes it; nothing else is made.

        `config` is the config as it is written, with what its entries say of runs and targets.
        Here the tables that the block names, in the order of its keys.
        """
        names = [name for _, name in inside("", self) if isinstance(name, Reference)]
        tables = {block: [n for n in names if n.block == block] for block in ("theory", "curves")}
        return inputs(config, **tables)

    def states(self, config: dict) -> list[list]:
        """The clones that the figure shows: [clone, sweep], of n-grams [source, None].

        Of its evaluations the targets that the block names, or all where it names none; clones that
        it names themselves, after its `sweep`, or after their last.
        """
        names = [name for _, name in inside("", self) if isinstance(name, Reference)]
        found = [
            [str(name), getattr(self, "sweep", max(config["clones"][name]["sweeps"]))]
            for name in names
            if name.block == "clones"
        ]
        kinds = {name: source["kind"] for name, source in config["sources"].items()}
        picked = {name for name in names if name.block in ("targets", "clone targets")}
        for evaluation in (name for name in names if name.block == "evaluations"):
            for name, target in config["evaluations"][evaluation]["targets"].items():
                if picked and name not in picked:
                    continue
                if "clone" in target:
                    found.append([target["clone"], target["sweep"]])
                elif kinds.get(target.get("source")) == "n-gram-clone":
                    found.append([target["source"], None])
        return [state for place, state in enumerate(found) if state not in found[:place]]


class SeededModel(Block):
    """Runs of one model."""

    model: refers("models") = key("Name of the model.")
    seeds: Seeds = key("Its runs.")


def inputs(
    config: dict,
    *,
    runs: Iterable[tuple[str, int]] = (),
    clones: Iterable[str] = (),
    models: Iterable[RunKey] = (),
    spectra: Iterable[tuple[str, int]] = (),
    displacements: Iterable[RunKey] = (),
    maps: Iterable[RunKey] = (),
    equations: Iterable[RunKey] = (),
    contacts: Iterable[RunKey] = (),
    sources: Iterable[str] = (),
    truths: Iterable[str] = (),
    theory: Iterable[str] = (),
    curves: Iterable[str] = (),
    known: Iterable[str] = (),
    planted: Iterable[str] = (),
    elsewhere: str | None = None,
) -> dict:
    """What a figure is drawn from; rules make the files, and hand this on as `context`.

    `runs` are pairs of an evaluation and a seed: their losses, their histories, and all clones that
    they are tested on, beside the figure's own `clones`. `spectra` are pairs of an entry of that
    block and a seed. `models` are trained or adopted;
    `displacements` (of all seeds of a model), `maps`, `equations` and `contacts` are taken from
    trained models. `sources` come with sequences and Hamiltonian.
    `truths` are evaluations on whose targets the source's own conditionals are tested.
    `known` is a file of known contacts; `planted` are sources whose couplings are the contacts.
    `elsewhere` is the figure that has the claims about the same runs, which are counted once.

    Returns the same by name, without repetition, and `targets`: those of each evaluation, and of
    each source its entry, as the config has them.
    """
    targets = {name: config["evaluations"][name]["targets"] for name, _ in runs}
    tested = (target for each in targets.values() for target in each.values())
    clones = {*clones, *(target["clone"] for target in tested if "clone" in target)}
    return {
        "runs": [list(run) for run in runs],
        "clones": sorted(clones),
        "targets": targets,
        "models": [list(run) for run in dict.fromkeys(models)],
        "spectra": [list(run) for run in dict.fromkeys(spectra)],
        "displacements": [list(run) for run in dict.fromkeys(run[:2] for run in displacements)],
        "maps": [list(run) for run in dict.fromkeys(maps)],
        "equations": [list(run) for run in dict.fromkeys(equations)],
        "contacts": [list(run) for run in contacts],
        "sources": {name: config["sources"][name] for name in sources},
        "truths": list(truths),
        "theory": list(theory),
        "curves": list(curves),
        "known": list(known),
        "planted": list(planted),
        "elsewhere": elsewhere,
    }
