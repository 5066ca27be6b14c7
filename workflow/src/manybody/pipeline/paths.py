"""Paths of what the config names: templates for outputs, files of entries for inputs."""

from manybody.pipeline.check import ConfigError

TEMPLATES = {  # below the folder of results; some are a kind of `papers.inputs`
    "sequences": "sequences/{source}",
    "hamiltonians": "sequences/{source}/hamiltonian.safetensors",
    "models": "models/{source}/{model}/seed-{seed}/manifest.json",
    "clone": "clones/{source}/{clone}/manifest.json",
    "cards": "cards/{source}.json",
    "losses": "losses/{evaluation}/seed-{seed}.parquet",
    "truths": "truths/{evaluation}.parquet",
    "theory": "theory/{theory}.parquet",
    "curves": "curves/{curve}.parquet",
    "spectra": "spectra/{spectrum}/seed-{seed}.parquet",
    "displacements": "displacements/{source}/{model}.parquet",
    "equations": "equations/{paper}/{figure}.parquet",
    "clocks": "clocks/{source}/{model}/seed-{seed}.parquet",
    "maps": "maps/{source}/{model}/seed-{seed}.parquet",
    "contacts": "contacts/{source}/{model}/seed-{seed}.parquet",
    "figure": "figures/{paper}/{figure}",
    "chunk": "family_chunks/{families}/{chunk}.json",
    "used": "family_chunks/{families}/{use}/{chunk}.json",
    "families": "families/{families}/index.html",
    "known": "known_contacts/{paper}/{figure}.parquet",
}


class Paths:
    """Paths below the folder of results, by names in `TEMPLATES` and of entries in `config`: the
    checked config as mappings, which rules hand on to jobs."""

    def __init__(self, config: dict):
        self.config, self.results = config, config["results"]
        vars(self).update({name: f"{self.results}/{path}" for name, path in TEMPLATES.items()})

    def entry(self, block: str, name: str) -> dict:
        """The config's entry `block: name`. `ConfigError` names what is there where it is not."""
        if name not in self.config[block]:
            raise ConfigError(
                f"config has no {block}: {name}; it has {', '.join(sorted(self.config[block]))}"
            )
        return self.config[block][name]

    def of_one_run(self, block: str, name: str) -> dict:
        """The entry without its seeds. Each seed has a job, which another seed must not change."""
        return {key: value for key, value in self.entry(block, name).items() if key != "seeds"}

    def split_path(self, source: str, split: str) -> str:
        return f"{self.sequences}/{split}.parquet".format(source=source)

    def split_of(self, block: str, name: str, split: str) -> str:
        """Sequences of a split of the source that the entry `block: name` names."""
        return self.split_path(self.entry(block, name)["source"], split)

    def model_path(self, source: str, model: str, seed: int | str) -> str:
        """Manifest of a run."""
        self.entry("models", model)
        return self.models.format(source=source, model=model, seed=seed)

    def clone_path(self, clone: str) -> str:
        """Manifest of a clone."""
        return self.clone.format(source=self.entry("clones", clone)["source"], clone=clone)

    def model_of(self, block: str, name: str, seed: int | str | None = None) -> str:
        """Manifest of the run that an entry names, by default of the entry's own seed."""
        entry = self.entry(block, name)
        seed = entry["seed"] if seed is None else seed
        return self.model_path(entry["source"], entry["model"], seed)

    def clone_reference(self, clone: str) -> str | list:
        """Manifest of the model whose final loss picks the checkpoint; nothing where none does."""
        entry = self.entry("clones", clone)
        if not isinstance(entry["step"], dict):
            return []
        reference = entry["step"]["loss_of"]
        return self.model_path(entry["source"], reference["model"], reference["seed"])

    def evaluated_targets(self, evaluation: str) -> list[str]:
        """One file for each target, in the order of the config: a clone's manifest or a split."""
        entry = self.entry("evaluations", evaluation)
        return [
            self.split_path(target.get("source", entry["source"]), target["split"])
            if "split" in target
            else self.clone_path(target.get("clone", target.get("initial")))
            for target in entry["targets"].values()
        ]
