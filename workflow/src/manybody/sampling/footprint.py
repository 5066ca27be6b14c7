"""Memory of Metropolis-Hastings chains, from sizes alone, without torch.

A rule states what its job takes before there is a model, by the sizes in the config. The sampler
asks for those of its model, to choose the form of its caches and how many chains move together.
"""

from dataclasses import dataclass

from manybody import models
from manybody.models import samplers

MEMORY = 12 << 30  # bytes for tables, caches and work space of the chains that move together
# Bytes of activations of masked copies at once. On a CPU they stay near its caches: proposals of a
# small BERT take up to 1.5 times as long with 256 MiB.
COPIES = {"cpu": 16 << 20, "cuda": 4 << 30}
# Bytes of work space that one batch of proposals may take: a GPU is full with a few of four layers.
PROPOSALS = {"cpu": 1 << 28, "cuda": 4 << 30}
TABLES = 1 << 30  # that tables over tokens may take
DOUBLE, SINGLE = 8, 4
# MB of an interpreter with torch and compiled loops, and what its allocator keeps: with 620 chains
# of BERT 1.2 GB were measured beside the caches and work spaces.
PROCESS = 2000
# MB where chains move on a GPU; for an alignment, whose sizes are in its file; and for a model of
# which only its network knows the sizes.
FIXED = 3000


@dataclass(frozen=True)
class Sizes:
    """n layers, L, |V| and d, the rank, or |V| for full values, of factored attention."""

    layers: int
    length: int
    vocabulary: int
    rank: int
    full: bool

    @classmethod
    def of(cls, description: dict) -> "Sizes":
        layers, length, vocabulary, rank = (
            description[key] for key in ("layers", "length", "vocabulary", "rank")
        )
        return cls(layers, length, vocabulary, rank or vocabulary, rank is None)


def job_megabytes(model: dict, source: dict, clone: dict) -> int:
    """MB that the job of a clone takes on a CPU: the process, which a copy in half precision of the
    weights counts to, these in single and double, and the chains that move together."""
    if "vocabulary" not in source or "length" not in source:
        return FIXED
    sizes = {"vocabulary": source["vocabulary"], "length": source["length"]}
    about = models.about(model | sizes)
    if about.work_size is None:
        return FIXED
    shared, each = group_bytes(about, clone["energy"], sampler=clone.get("sampler", "mh"))
    group = min(shared + clone["chains"] * each, MEMORY)
    return PROCESS + -(-(group + (SINGLE + DOUBLE) * about.weights) // 10**6)


def group_bytes(
    model, energy: str, number: int = SINGLE, device: str = "cpu", sampler: str = "mh"
) -> tuple[int, int]:
    """Bytes that all chains share, and bytes for each chain (caches and work space), of a model or
    its `About`; number: bytes of one of its numbers."""
    about = models.about(model.description)
    if sampler in samplers.INDEPENDENT:
        return COPIES["cpu"], DOUBLE * 2 * (about.description["vocabulary"] + 8)
    if samplers.by_order(sampler, energy, about):
        return order_bytes(Sizes.of(model.description), number)
    if sampler == "mh" and incremental(model, energy, number, device):
        return incremental_bytes(Sizes.of(model.description), energy, number, device)
    length, vocabulary = about.description["length"], about.description["vocabulary"]
    work = max(COPIES.get(device, COPIES["cpu"]), length * model.work_size * number)
    # Features are cached, proposed, and both again while they are gathered or concatenated.
    numbers = 4 * length * model.feature_size + vocabulary
    return 2 * work, number * numbers + DOUBLE * (10 * length + 3 * vocabulary)


def incremental(model, energy: str, number: int = SINGLE, device: str = "cpu") -> bool:
    """True if a form of `sampling.factored` holds the chains; its tables must fit."""
    if not models.about(model.description).closed_form:
        return False
    sizes = Sizes.of(model.description)
    # Of many layers the tables outgrow any machine: explicit masked copies then.
    fits = sum(incremental_bytes(sizes, energy, number, device)) <= MEMORY
    return fits and (form(sizes, energy, device) == "three_layers" or changes_pay(sizes))


def changes_pay(sizes: Sizes) -> bool:
    """True if following what a token changes, in double precision and smaller products, which take
    three to five times as long, is faster than computing all masked copies anew in single: not of
    five layers or more, whose squares have too many targets, and not where the rank is near |V|.
    """
    copies = sizes.length**2 * sizes.vocabulary * sizes.rank * (2 * sizes.layers - 3)
    changes = sum(square_products(sizes, layer) for layer in range(1, sizes.layers - 1))
    return sizes.layers < 3 or 3 * changes < copies


def form(sizes: Sizes, energy: str, device: str = "cpu") -> str:
    """The module of `sampling.factored` that is fastest; the compiled loops are for a CPU."""
    if device != "cpu":
        return "any_depth"
    if sizes.layers < 3:
        return "two_layers" if energy == "raw" and sizes.layers == 2 else "any_depth"
    free = energy == "raw" and sizes.layers == 3 and not sizes.full
    return "three_layers" if free and score_bytes(sizes) <= TABLES else "compiled"


def incremental_bytes(
    sizes: Sizes, energy: str, number: int = SINGLE, device: str = "cpu"
) -> tuple[int, int]:
    """Bytes of tables and work space, and of one chain's caches with a proposal's changes."""
    length, vocabulary, rank, layers = sizes.length, sizes.vocabulary, sizes.rank, sizes.layers
    chosen = form(sizes, energy, device)
    if chosen == "two_layers":
        entry = DOUBLE + SINGLE * (number == SINGLE)
        return (2 * entry + DOUBLE) * vocabulary**2, 3 * entry * (length + 2) * vocabulary
    if chosen == "three_layers":
        tables = vocabulary * rank**2 + 3 * rank**3 + 3 * length**3
        caches = 3 * length**2 * rank + length * rank**2 + 5 * length * rank
        return DOUBLE * tables, DOUBLE * caches
    shared = DOUBLE * 2 * (layers - 1) * length**3
    # Of a squared layer one d x d x d table to every layer above.
    shared += DOUBLE * (layers - 2) * (layers - 1) // 2 * rank**3
    shared += max(PROPOSALS.get(device, PROPOSALS["cpu"]), proposal_bytes(sizes, energy))
    if chosen == "any_depth":
        shared += DOUBLE * vocabulary**2 + has_pairs(sizes) * pair_bytes(sizes)
    else:
        shared += DOUBLE * layers * (layers - 1) * rank**3
        shared += min(score_bytes(sizes), TABLES) if energy == "raw" else 0
    squares = max(layers - 2, 0)
    return shared, DOUBLE * (2 * length**2 * squares * rank + 2 * length * (rank + 2))


def order_bytes(sizes: Sizes, number: int = SINGLE) -> tuple[int, int]:
    """The same of `factored.by_order`: rho, g and the pairs; W and S; the sums of one proposal."""
    length, vocabulary = sizes.length, sizes.vocabulary
    shared = (2 * DOUBLE + 3 * number) * vocabulary**2 + DOUBLE * 2 * length * vocabulary
    return shared, (2 * length + 8) * vocabulary * number + 4 * DOUBLE * vocabulary


def proposal_bytes(sizes: Sizes, energy: str) -> int:
    """Bytes that the changes of one proposal take while `any_depth` computes them, about."""
    length, vocabulary, rank, layers = sizes.length, sizes.vocabulary, sizes.rank, sizes.layers
    total = DOUBLE * length * (rank * layers + (vocabulary if energy == "norm" else 0))
    for layer in range(1, layers - 1):
        targets = layers - 2 - layer
        maps = 2 * length * targets if layer == 1 else length**2 * min(targets, 1)
        total += (4 + 2 * targets) * length**2 * rank + (maps + length) * rank**2
    return DOUBLE * total


def has_pairs(sizes: Sizes) -> bool:
    """True if what the first square sends on is kept for every pair of tokens."""
    return not sizes.full and pair_bytes(sizes) <= TABLES


def pair_bytes(sizes: Sizes) -> int:
    return DOUBLE * (sizes.layers - 1) * sizes.vocabulary**2 * sizes.rank


def square_products(sizes: Sizes, layer: int) -> int:
    """Multiplications for a proposal of a squared layer by its tables."""
    length, rank, targets = sizes.length, sizes.rank, sizes.layers - 2 - layer
    between = length**2 * rank**3
    if layer == 1:
        between = 2 * length * rank**3 + 2 * length**2 * rank**2
    return targets * between + length**2 * rank**2 + length * rank**3


def score_bytes(sizes: Sizes) -> int:
    """Bytes of the tables over tokens, M_a of every square above the first."""
    return DOUBLE * (sizes.layers - 2) * sizes.vocabulary * sizes.rank**2
