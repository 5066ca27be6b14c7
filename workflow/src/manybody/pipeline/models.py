"""Models and clones: their modules, and the devices, processes and memory of their jobs."""

from pathlib import Path

from manybody.models import ARCHITECTURES, about
from manybody.pipeline.check import ConfigError
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources
from manybody.sampling import footprint


class Models:
    """Parameters and resources of the jobs that train, read or sample the config's models."""

    def __init__(self, paths: Paths, sources: Sources):
        self.paths, self.sources = paths, sources
        self.config, self.entry = paths.config, paths.entry

    def model_modules(self, model: str) -> list[str]:
        """The modules of a model that a job imports by name."""
        entry = self.entry("models", model)
        package = ARCHITECTURES[entry["architecture"]]
        return [package, f"{package}.{about(entry).module}"]

    def training_modules(self, model: str) -> list[str]:
        fit = ["manybody.training.lbfgs"] if self.is_fitted(model) else []
        return [*self.model_modules(model), *fit]

    def theory_module(self, theory: str) -> str:
        kind = self.entry("theory", theory)["kind"].replace("-", "_")
        return f"manybody.theory.{kind.replace('multi_index_', 'multi_index.')}"

    def architecture(self, model: str) -> dict:
        """An entry without its recipe: it rebuilds a model of the |V| and L of a source."""
        entry = self.entry("models", model)
        return {key: entry[key] for key in entry if key not in ("training", "init_seed")}

    def models_with(self, key: str) -> list[str]:
        return [name for name, model in self.config["models"].items() if key in model]

    def trained_models(self, on_cpu: bool) -> list[str]:
        """Trained models that stay on the CPU by their recipe, or those that need not."""
        return [
            name
            for name, model in self.sources.checked.models.items()
            if model.given is None and on_cpu == (self.training_device(name) == "cpu")
        ]

    def is_fitted(self, model: str) -> bool:
        """Says that a model is fitted to all sequences at once, which is done on the CPU."""
        return self.sources.checked.models[model].fitted

    def training_stream(self, model: str) -> str:
        """The name that tells a model's batches and masks from those of others with its seeds."""
        return self.entry("models", model)["training"].get("stream", model)

    def training_device(self, model: str) -> str:
        """The device that a model trains on: a recipe may keep a small network on the CPU."""
        if self.is_fitted(model):
            return "cpu"
        recipe = self.entry("models", model)["training"]
        return recipe.get("device", self.config["compute"]["device"])

    def training_processes(self, model: str) -> int:
        """Data-parallel processes; one for a fit, and for what stays on the CPU beside GPUs."""
        device, compute = self.training_device(model), self.config["compute"]
        return 1 if (self.is_fitted(model) or device != compute["device"]) else compute["processes"]

    def training_threads(self, model: str) -> int:
        return self.entry("models", model)["training"]["threads"] * self.training_processes(model)

    def sequence_weights(self, source: str, model: str) -> str | list:
        """Weights of the training sequences, for a recipe that asks for them."""
        asked = "sequence_weights" in self.entry("models", model)["training"]
        return self.paths.split_path(source, "weights") if asked else []

    def all_splits(self, source: str, model: str) -> str | list:
        """The test split, for a recipe that fits to all sequences."""
        asked = "couplings" in self.entry("models", model)["training"]["optimizer"]
        return self.paths.split_path(source, "test") if asked else []

    def weight_folders(self, model: str) -> list[str]:
        """The user's own folders that a model is read from; `ConfigError` where one is missing."""
        named = self.entry("models", model)["weights"]
        folders = {str: [named], list: named}.get(type(named), [])
        for folder in folders:
            if not Path(folder).expanduser().is_dir():
                raise ConfigError(
                    f"models.{model}.weights: found {folder}, which is no folder; expected one in "
                    f"save_pretrained layout, or of checkpoint-N (relative paths start at "
                    f"{Path.cwd()}), or {{hub: owner/name}}; correct the path"
                )
        return folders

    def clone_modules(self, *clones: str) -> list[str]:
        """The modules of the models of clones, each once."""
        models = [self.entry("clones", clone)["model"] for clone in clones]
        return list(dict.fromkeys(name for model in models for name in self.model_modules(model)))

    def clone_megabytes(self, clone: str) -> int:
        """Memory of a clone's job: with a GPU the chains are not in it."""
        compute = self.config["compute"]
        if compute["gpus"] and compute["device"] != "cpu":
            return footprint.FIXED
        entry = self.entry("clones", clone)
        model, sizes = self.entry("models", entry["model"]), self.sources.sizes_of(entry["source"])
        return footprint.job_megabytes(model, sizes, entry)
