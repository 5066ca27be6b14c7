"""A masked or causal language model of transformers' own classes, trained elsewhere."""

import re

from manybody.models import description

SUFFIX = re.compile(r"(For\w+|LMHeadModel)$")  # of the names of transformers' classes
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
WIDTH = ("hidden_size", "n_embd", "dim", "d_model")


class About(description.About):
    network = "Pretrained"
    read = True

    @property
    def causal(self) -> bool:
        return self.description["objective"] == "next-token"

    @property
    def display_name(self) -> str:
        return SUFFIX.sub("", str((self._config.get("architectures") or ["pretrained"])[0]))

    @property
    def sizes(self) -> list:
        return [
            next((self._config[key] for key in keys if key in self._config), None)
            for keys in (LAYERS, WIDTH)
        ]

    @property
    def _config(self) -> dict:
        """transformers' config, which the block of the pipeline's config does not have."""
        return self.description.get("config", {})
