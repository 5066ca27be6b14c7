"""Checkpoints of tiny models along a training, in folders as `save_pretrained` makes them."""

import json
import math
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

TOKENS, LENGTH, WIDTH = 40, 8, 24
SCHEDULES = {
    "constant": lambda part: 1.0,
    "cosine": lambda part: 0.5 * (1 + math.cos(math.pi * part)),
    "linear": lambda part: 1 - part,
    "stable-decay": lambda part: min(1.0, 5 * (1 - part)),
    "to-a-tenth": lambda part: 0.1 + 0.45 * (1 + math.cos(math.pi * part)),
}


class Network(nn.Module):
    """One layer of causal attention and its MLP."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.first, self.second, self.last = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.inner, self.outer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight
        parts = self.inner(self.first(x)).chunk(3, -1)
        x = x + self.outer(functional.scaled_dot_product_attention(*parts, is_causal=True))
        x = x + self.down(functional.gelu(self.up(self.second(x))))
        return self.head(self.last(x))


def text(count: int, seed: int) -> torch.Tensor:
    """Sequences of one Markov chain."""
    chain = np.random.default_rng(0).dirichlet(np.full(TOKENS, 0.15), TOKENS).cumsum(1)
    drawn = np.random.default_rng(seed)
    tokens = drawn.integers(0, TOKENS, (count, LENGTH))
    for place in range(1, LENGTH):
        tokens[:, place] = (drawn.random(count)[:, None] > chain[tokens[:, place - 1]]).sum(1)
    return torch.from_numpy(tokens.clip(max=TOKENS - 1))


def weights(
    optimizer: str, rate: float, schedule: str, saves: list[int], seed: int, warmup=0, decay=0.0
) -> dict[int, tuple[dict, float]]:
    """Weights and the loss on held-out sequences at the steps `saves`, of which the last ends the
    training."""
    data, held_out = text(3000, 1), text(100, 2)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Network()
    settings = {"lr": rate, "weight_decay": decay}
    if optimizer == "adamw":
        moved = torch.optim.AdamW(network.parameters(), betas=(0.9, 0.95), **settings)
    else:
        moved = torch.optim.SGD(network.parameters(), momentum=0.9, **settings)
    generator = torch.Generator().manual_seed(seed)

    def loss(tokens):
        logits = network(tokens)[:, :-1]
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    found = {}
    for step in range(saves[-1] + 1):
        if step in saves:
            with torch.no_grad():
                kept = {name: value.clone() for name, value in network.state_dict().items()}
                found[step] = kept, float(loss(held_out))
        for group in moved.param_groups:
            rising = min(1.0, (step + 1) / warmup) if warmup else 1.0
            group["lr"] = rate * rising * SCHEDULES[schedule](step / saves[-1])
        batch = data[torch.randint(0, len(data), (16,), generator=generator)]
        moved.zero_grad()
        loss(batch).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        moved.step()
    return found


def linear(last: int, count: int = 10) -> list[int]:
    return sorted({round(last * k / count) for k in range(count + 1)})


def spaced(last: int, factor: float = 2.0) -> list[int]:
    """0, and steps evenly spaced in their logarithm."""
    return sorted({0, last, *{round(factor**k) for k in range(40) if factor**k < last}})


def save(folder: Path, tensors: dict, shards: int = 1, **config) -> None:
    """A checkpoint in `shards` files of weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", **config}))
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return
    names, listed = sorted(tensors), {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = names[number::shards]
        save_file({name: tensors[name] for name in part}, folder / file)
        listed |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
