"""Memory of a clone's job on a CPU, from the sizes in the config. Standard library only.

A rule states what its job takes before there is a model, in a process that need not have torch:
these are the sizes that `backends.bytes_needed` reads from a model, computed from its description.
Chains move in groups of at most `LIMIT` bytes, `chains.MEMORY`.
"""

LIMIT = 12 << 30
WORK = 1 << 28  # bytes of one work space, of masked copies and of proposals
TABLES = 1 << 30  # that tables over tokens may take
SQUARES = 4 << 30  # that the tables of one squared layer may take
DOUBLE, SINGLE = 8, 4
# MB of an interpreter with torch and compiled loops, and what its allocator keeps: with 620 chains
# of BERT 1.2 GB were measured beside the caches and work spaces.
PROCESS = 2000
# MB where chains move on a GPU; for an alignment, whose sizes are in its file; and for the small
# models that are tables.
FIXED = 3000


def job_megabytes(model: dict, source: dict, clone: dict) -> int:
    """MB that the job of a clone takes on a CPU; entries of the config.

    The process, the weights in single and double precision, and the group of chains that moves
    together.
    """
    known = "vocabulary" in source and "length" in source
    if not known or model["architecture"] not in ("factored", "bert", "encoder"):
        return FIXED
    sizes = {**model, "vocabulary": source["vocabulary"], "length": source["length"]}
    shared, each = group_bytes(sizes, clone["energy"], clone["precision"])
    group = min(shared + clone["chains"] * each, LIMIT)
    return PROCESS + -(-(group + _weight_bytes(sizes)) // 10**6)


def group_bytes(sizes: dict, energy: str, precision: str = "float32") -> tuple[int, int]:
    """Bytes that all chains share, and bytes for each chain; `backends.bytes_needed` on a CPU.

    sizes: a model's description: `architecture`, `vocabulary`, `length` and its own sizes. What a
    bfloat16 copy of the weights adds is left to `PROCESS`.
    """
    if _is_incremental(sizes):
        found = _factored_bytes(sizes, energy)
        if sum(found) <= LIMIT:
            return found
    return _masked_bytes(sizes)


def _is_incremental(sizes: dict) -> bool:
    """Whether the forms of `sampling.factored` hold."""
    return (
        sizes["architecture"] == "factored"
        and sizes["variant"] == "exact"
        and sizes.get("heads", 1) == 1
        and sizes["bias"] != "site"
    )


def _rank(sizes: dict) -> int:
    return sizes["vocabulary"] if sizes["rank"] is None else sizes["rank"]


def _weight_bytes(sizes: dict) -> int:
    """Of a factored model: those of others are small beside the process."""
    if sizes["architecture"] != "factored":
        return 0
    values = 2 * sizes["vocabulary"] * _rank(sizes)
    heads = sizes.get("heads", 1)
    return (SINGLE + DOUBLE) * sizes["layers"] * heads * (values + sizes["length"] ** 2)


# --- Incremental forms of factored models --------------------------------------------------------


def _factored_bytes(sizes: dict, energy: str) -> tuple[int, int]:
    length, vocabulary, rank = sizes["length"], sizes["vocabulary"], _rank(sizes)
    layers, full = sizes["layers"], sizes["rank"] is None
    if energy == "raw" and layers == 2:
        entry = DOUBLE + SINGLE
        return (2 * entry + DOUBLE) * vocabulary**2, 3 * entry * (length + 2) * vocabulary
    tables_fit = not full and DOUBLE * vocabulary * rank**2 <= TABLES
    if energy == "raw" and layers == 3 and tables_fit:
        tables = vocabulary * rank**2 + 3 * rank**3 + length**3
        caches = 3 * length**2 * rank + length * rank**2 + 5 * length * rank
        return DOUBLE * tables, DOUBLE * caches
    return _deep_bytes(sizes, energy)


def _deep_bytes(sizes: dict, energy: str) -> tuple[int, int]:
    """Any number of layers; a squared layer keeps states as wide as the rank, with tables, or |V|,
    without."""
    length, vocabulary, rank = sizes["length"], sizes["vocabulary"], _rank(sizes)
    layers = sizes["layers"]
    squares = range(1, layers - 1)
    tabled = [_has_tables(sizes, layer) for layer in squares]
    shared = DOUBLE * (layers - 1) * (length**3 + min(rank**3, vocabulary**2))
    work = DOUBLE * length * (rank * layers + (vocabulary if energy == "norm" else 0))
    width = 0
    for layer, has_tables in zip(squares, tabled, strict=True):
        if not has_tables:
            work += 4 * length**2 * vocabulary
            width += vocabulary
            continue
        targets = layers - 2 - layer
        maps = 2 * length * targets if layer == 1 else length**2 * min(targets, 1)
        work += (4 + 2 * targets) * length**2 * rank + (maps + length) * rank**2
        shared += _table_bytes(layers, layer, rank)
        width += rank
    shared += max(WORK, DOUBLE * work)
    if tabled and all(tabled):  # the compiled loops, and their tables over tokens
        shared += DOUBLE * (layers - 1) ** 2 * rank**3
        if energy == "raw":
            shared += min(DOUBLE * (layers - 2) * vocabulary * rank**2, TABLES)
    return shared, DOUBLE * (2 * length**2 * width + 2 * length * (rank + 2))


def _has_tables(sizes: dict, layer: int) -> bool:
    """Whether tables make a proposal cheaper in this squared layer, and fit."""
    length, vocabulary, rank = sizes["length"], sizes["vocabulary"], _rank(sizes)
    layers = sizes["layers"]
    if sizes["rank"] is None or _table_bytes(layers, layer, rank) > SQUARES:
        return False
    targets, pairs = layers - 2 - layer, length**2
    if layer == 1:
        between = 2 * length * rank**3 + 2 * pairs * rank**2
        channels = 2 * length * vocabulary * rank
    else:
        between = pairs * rank**3
        channels = pairs * vocabulary * rank
    tables = targets * between + pairs * rank**2 + length * rank**3
    direct = channels + (targets * pairs + length) * vocabulary * rank + 4 * pairs * vocabulary
    return tables < direct


def _table_bytes(layers: int, layer: int, rank: int) -> int:
    return DOUBLE * (layers - 1 - layer) * rank**3


# --- Masked copies of any model ------------------------------------------------------------------


def _masked_bytes(sizes: dict) -> tuple[int, int]:
    length, vocabulary = sizes["length"], sizes["vocabulary"]
    if sizes["architecture"] == "factored":
        heads = sizes.get("heads", 1)
        features = heads * _rank(sizes)
        numbers = 5 * vocabulary + 4 * (heads - 1) * features
    else:
        features = sizes["width"]
        numbers = 8 * features + 2 * sizes["mlp"]
    work = max(WORK, length * SINGLE * length * numbers)
    each = 4 * length * features * SINGLE + 80 * length + vocabulary * (3 * DOUBLE + SINGLE)
    return 2 * work, each
