"""Samplers of clones: under which energies they draw, and of which models.

energy      what the chains are weighed by            docs/science/controls.md
raw         sum of the masked logits                  the paper's
norm        sum of the masked log-probabilities
reference   E*_mu, mu the training text's unigrams    sections 1 and 2, of factored n <= 2

sampler     draws from                                the energy
mh          exp(-E), proposals by masked logits       the target
heat-bath   exp(-E), all |V| values of a position     the target
gibbs       the masked conditionals in turn           recorded after each sweep
ancestral   the next token's, token by token          recorded, exact: -log p
enumerated  the stationary distribution of gibbs      recorded, exact: -log p
            sweeps, found over all |V|^L states

Without torch: the config asks as well.
"""

MASKED, CLOSED, CAUSAL = (
    "a trained model with masked logits",
    "exact factored attention of one or two layers, with one head and one bias for all positions",
    "a causal model",
)
ENERGIES = ("raw", "norm", "reference")
NEEDS = {  # sampler -> the energies that it takes, and the models
    "mh": (ENERGIES, MASKED),
    "heat-bath": (("raw", "reference"), CLOSED),
    "gibbs": (ENERGIES, MASKED),
    "ancestral": (("norm",), CAUSAL),
    "enumerated": (("norm",), MASKED),
}
INDEPENDENT = ("ancestral", "enumerated")  # samplers with independent draws
STATES = 2**16  # of `enumerated` at most


def closed(about) -> bool:
    """True if E*_mu and the conditionals of an energy have a closed form; `about` a model's."""
    return about.closed_form and about.depth <= 2


def suits(sampler: str, about) -> bool:
    """True if the sampler can draw from a model; `about` is the model's."""
    models = NEEDS[sampler][1]
    if models == CAUSAL:
        return about.causal
    return not about.causal and (models == MASKED or closed(about))


def by_order(sampler: str, energy: str, about) -> bool:
    """True if the chains are those of `factored.by_order`."""
    if not closed(about) or energy == "norm":
        return False
    return energy == "reference" or sampler in ("heat-bath", "gibbs")
