"""Samplers that draw a token anew, whatever it was: heat bath, masked Gibbs, and token by token.

All chains draw at once. What they draw from is exact, so there is nothing to accept.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manybody.io.refusal import Refusal
from manybody.models.base import Model
from manybody.models.samplers import STATES
from manybody.sampling.diagnostics import Record
from manybody.sampling.draws import propose
from manybody.sampling.footprint import COPIES

SWEEPS, SETTLED = 100_000, 1e-13  # sweeps at most; change sum |p - p'| of one that is settled


class MaskedGibbs:
    """Chains that redraw a token from the model's masked conditional: one forward pass a step.
    `scored`, chains of an energy at the same tokens, is asked for it after each sweep."""

    targeted = False

    def __init__(self, model: Model, scored):
        self.model, self.scored, self.tokens = model, scored, scored.tokens

    def conditionals(self, chains: Tensor, positions: Tensor) -> Tensor:
        rows = torch.arange(len(chains), device=chains.device)
        return self.model.masked_logits(self.tokens[chains], rows, positions)

    def replace(self, chains: Tensor, positions: Tensor, tokens: Tensor) -> None:
        self.tokens[chains, positions] = tokens

    def rebuild(self) -> None:
        self.scored.rebuild()

    def energy(self) -> Tensor:
        self.scored.rebuild()
        return self.scored.energy()


def redraw(
    chains,
    visits: np.ndarray,
    uniforms: np.ndarray,
    initial: np.ndarray,
    keep: set[int] = frozenset(),
    report: Callable[[int, Record], None] | None = None,
    betas: np.ndarray | None = None,
) -> Record:
    """Draws every position of every chain anew, sweep by sweep; arguments as of `advance`.

    `chains` has `conditionals` (n, |V|), up to a constant a row, `replace` and `energy`, which is
    asked for after each sweep unless the conditionals are its own, `chains.targeted`.
    """
    count, sweeps, length = visits.shape
    record = Record(sweeps, count)
    device = chains.tokens.device
    tokens = chains.tokens.cpu().numpy().copy()
    energies = chains.energy().cpu().numpy().copy() if chains.targeted else None
    rows, every = np.arange(count), torch.arange(count, device=device)
    for sweep in range(sweeps):
        for step in range(length):
            positions = visits[:, sweep, step].copy()
            where = torch.from_numpy(positions).to(device)
            current = tokens[rows, positions]
            logits = chains.conditionals(every, where)
            if betas is not None:
                logits = logits * torch.from_numpy(betas).to(logits)[:, None]
            drawn, gain = propose(logits, uniforms[:, sweep, step, 0].copy(), current)
            chains.replace(every, where, torch.from_numpy(drawn).to(device))
            tokens[rows, positions] = drawn
            if energies is not None:
                energies -= gain if betas is None else gain / betas
            record.same[sweep] += drawn == current
            record.accepted[sweep] += drawn != current
            if report is not None:
                report((sweep * length + step + 1) * count, record)
        record.energies[sweep] = chains.energy().cpu().numpy() if energies is None else energies
        record.changed[sweep] = (tokens != initial).sum(1)
        if sweep + 1 in keep:
            record.tokens[sweep + 1] = tokens.copy()
    return record


class Causal:
    """Sequences of a causal model; the first token, which it does not predict, is the start's."""

    targeted = False

    def __init__(self, model: Model, tokens: Tensor):
        self.model, self.tokens = model, tokens.clone()
        self.at_once = max(1, COPIES["cpu"] // (8 * model.activation_size))

    def rebuild(self) -> None:
        """There are no caches."""

    def conditionals(self, chains: Tensor, positions: Tensor) -> Tensor:
        """Logits (n, |V|) of the token at a position, the same of all chains, after the first."""
        place = int(positions[0])
        if place == 0:
            return functional.one_hot(self.tokens[chains, 0], self.model.vocabulary).double().log()
        parts = self.tokens[chains, :place].split(self.at_once)
        return torch.cat([self.model.head(self.model.features(part)[:, -1]) for part in parts])

    def replace(self, chains: Tensor, positions: Tensor, tokens: Tensor) -> None:
        self.tokens[chains, positions] = tokens

    def energy(self) -> Tensor:
        """-log p (C,) of the tokens after the first, given the first."""
        found = []
        for part in self.tokens.split(self.at_once):
            logits = self.model(part)[:, :-1].double()
            found.append(functional.cross_entropy(logits.mT, part[:, 1:], reduction="none").sum(1))
        return torch.cat(found)


class Enumerated(Causal):
    """Sequences of a masked model, drawn token by token, as those of a causal one are, from the
    stationary distribution of Gibbs sweeps."""

    def __init__(self, model: Model, tokens: Tensor):
        super().__init__(model, tokens)
        self.law = stationary(model).to(tokens.device)

    def conditionals(self, chains: Tensor, positions: Tensor) -> Tensor:
        """log p (n, |V|) of the token at a position, the same of all chains, after those before."""
        place = int(positions[0])
        rows = self.law.reshape(self.model.vocabulary**place, self.model.vocabulary, -1).sum(2)
        return rows[self._numbers(self.tokens[chains, :place])].log()

    def energy(self) -> Tensor:
        """-log p (C,)."""
        return -self.law.flatten()[self._numbers(self.tokens)].log()

    def _numbers(self, tokens: Tensor) -> Tensor:
        powers = self.model.vocabulary ** torch.arange(tokens.shape[1], device=tokens.device)
        return (tokens * powers.flip(0)).sum(1)


@torch.no_grad()
def stationary(model: Model) -> Tensor:
    """The distribution (|V|,) * L that does not change if each token in turn, from left to right,
    is drawn from its masked conditional. `Refusal` for more than `STATES` states."""
    length, vocabulary = model.length, model.vocabulary
    if vocabulary**length > STATES:
        raise Refusal(
            f"found enumerated, of |V|^L = {vocabulary}^{length} states; expected at most {STATES} "
            "to enumerate; take gibbs",
            "sampler",
        )
    every = torch.arange(vocabulary**length, device=next(model.parameters()).device)
    states = torch.stack(torch.unravel_index(every, (vocabulary,) * length), 1)
    batch, sites = max(1, COPIES["cpu"] // (8 * model.activation_size)), []
    for site in range(length):
        contexts = states[states[:, site] == 0]
        logits = [
            model.masked_logits(part, every[: len(part)], torch.full_like(part[:, 0], site))
            for part in contexts.split(batch)
        ]
        chances = torch.cat(logits).double().softmax(1)
        sites.append(chances.view(vocabulary**site, -1, vocabulary).mT)
    law = torch.full_like(every, 1 / len(every), dtype=torch.float64)
    for _ in range(SWEEPS):
        before = law
        for chances in sites:
            law = (law.view(chances.shape).sum(1, keepdim=True) * chances).flatten()
        if (law - before).abs().sum() < SETTLED:
            return law.view((vocabulary,) * length)
    raise Refusal(f"found chains that do not settle in {SWEEPS} sweeps; take gibbs", "sampler")
