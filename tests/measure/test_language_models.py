"""Small models as ESM-2 is published, trained on planted families: what is measured of them."""

from itertools import combinations

import numpy as np
import own_models
import pytest
import torch
import transformers
from scipy.special import log_softmax

from manybody.measure import contacts, flips, jacobian, own_model
from manybody.measure.spectrum import spectrum

pytestmark = pytest.mark.slow

MASK, SEQUENCES = 8, 50_000  # tokens 4 to 7 are ACGU


def planted(sets: list[tuple], length: int) -> tuple[dict, np.ndarray]:
    """Tables of the interactions of sets of sites, random, of zero mean along each axis and of unit
    variance, and samples (N, L) of their law."""
    rng, tables = np.random.default_rng(0), {}
    for sites in sets:
        table = rng.normal(size=(4,) * len(sites))
        for axis in range(len(sites)):
            table -= table.mean(axis, keepdims=True)
        tables[sites] = table / table.std()
    tokens = rng.integers(4, size=(SEQUENCES, length))
    for site in 40 * [*range(length)]:
        noise = rng.gumbel(size=(SEQUENCES, 4))
        tokens[:, site] = (conditionals(tables, tokens, site) + noise).argmax(1)
    return tables, tokens


def conditionals(tables: dict, tokens: np.ndarray, site: int) -> np.ndarray:
    """Log-probabilities (N, 4) of a site given the others."""
    found = np.zeros((len(tokens), 4))
    for sites in (sites for sites in tables if site in sites):
        others = tuple(tokens[:, other] for other in sites if other != site)
        found += np.moveaxis(tables[sites], sites.index(site), -1)[others]
    return log_softmax(found, axis=1)


def trained(folder, inner: np.ndarray, steps: int) -> str:
    """Writes a model and the sequences that it was trained on: one residue of each is the target,
    of which, as for ESM-2, a tenth stays, and another is exchanged at random."""
    own_models.letters(folder, "ACGU")
    rows = enumerate("".join("ACGU"[a] for a in row) for row in inner[:400])
    (folder / "family.fasta").write_text("".join(f">{n}\n{row}\n" for n, row in rows))
    tokens, batch = torch.from_numpy(np.pad(inner + 4, ((0, 0), (1, 1)))), torch.arange(128)
    tokens[:, -1] = 2
    torch.manual_seed(0)
    config = transformers.EsmConfig(
        vocab_size=MASK + 1, mask_token_id=MASK, pad_token_id=1, hidden_size=32,
        num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=32, initializer_range=0.12, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    library = transformers.AutoModelForMaskedLM.from_config(config)
    optimizer = torch.optim.AdamW(library.parameters(), betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, steps, pct_start=0.1)
    for _ in range(steps):
        seen = tokens[torch.randint(len(tokens), batch.shape)]
        sites, kind = 1 + torch.randint(inner.shape[1], batch.shape), torch.rand(batch.shape)
        target = seen[batch, sites]
        shown = torch.where(kind < 0.9, target, torch.randint_like(target, 4, 8))
        seen[batch, sites] = torch.where(kind < 0.8, MASK, shown)
        logits = library(input_ids=seen).logits[batch, sites]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, target).backward()
        optimizer.step()
        schedule.step()
    library.save_pretrained(folder)
    return str(folder / "family.fasta")


def test_the_map_of_a_model_of_a_planted_family_finds_its_contacts(tmp_path):
    pairs = list(combinations(range(12), 2))
    tables, tokens = planted(pairs[::6] + pairs[3:4], 12)
    family = trained(tmp_path / "esm", tokens, 1500)
    real = np.zeros((12, 12), bool)
    real[tuple(zip(*tables, strict=True))] = True
    asked = jacobian.opened(str(tmp_path / "esm"), family)
    scores, beyond = jacobian.measured(asked, True, tmp_path / "parts")
    for form in scores:  # the alignment's own map can find no more than all of them
        assert contacts.precision(contacts.apc(scores[form]), real | real.T)[11] >= 0.9
    assert beyond["share"] < 0.1


def test_a_model_of_a_planted_family_has_its_interactions_of_three(tmp_path):
    tables, tokens = planted([(0, 2, 5), (1, 4, 6), (2, 3, 7)], 8)
    family = trained(tmp_path / "esm", tokens, 3000)

    def exact(given, positions):
        inner, sites = given[:, 1:-1].numpy() - 4, positions.numpy() - 1
        each = np.stack([conditionals(tables, inner, site) for site in range(8)], axis=1)
        return torch.from_numpy(np.pad(each[np.arange(len(sites)), sites], ((0, 0), (4, 1))))

    with own_model.measured(str(tmp_path / "esm"), family, 10, 2, 6000, tmp_path / "p") as measured:
        found = measured[0].set_index(["quantity", "order"])["value"]
    text = np.pad(tokens[:400] + 4, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 2)))
    law = flips.Conditionals(exact, MASK + 1)
    truth = spectrum(law, text, orders=2, special=(0, 1, 2, 3, MASK), forwards=6000).table
    truth = truth.set_index(["quantity", "order"])["value"]
    print(*((key, found[key] / truth[key]) for key in (("M", 1), ("M", 2), ("Var g", 0))))
    assert 1 / 1.5 < found["M", 2] / truth["M", 2] < 1.5
