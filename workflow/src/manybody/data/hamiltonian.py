"""The k-body Hamiltonian of many-body data, for any order k.

    p(s) = exp(-beta H) / Z,   H(s) = k! sum_{i1 < ... < ik} J_{i1...ik} U_{s_i1 ... s_ik}
    P(s_i = a | rest) = softmax_a(-beta h_i(a)),   h_i(a) = k! sum_t J_{i t} U_{a s_t}

with t running over the (k-1)-subsets of the other sites (docs/science/many-body.md, eq. 1 to 3).
J is symmetric and zero where two sites coincide, U is symmetric. The computation is exact and
shares no code with the samplers that it checks, `gibbs` and `pair_gibbs`.
"""

import hashlib
from functools import cached_property
from itertools import combinations, combinations_with_replacement, permutations
from math import comb, factorial, perm
from pathlib import Path

import numpy as np

from manybody.io.atomic import ArtifactError
from manybody.io.tensor_files import read_about, read_tensor, write_document

ROUNDING = 1e-6  # of the largest entry: how much asymmetry single precision may leave
BLOCK = 2**18  # numbers that are summed up together, so that a cache holds them


class Hamiltonian:
    """J (L,)*k, U (|V|,)*k and the inverse temperature beta, in double precision. `ValueError`
    names the tensor and entry that is not as above, its value and what was expected."""

    def __init__(self, couplings: np.ndarray, colours: np.ndarray, beta: float):
        self.couplings = np.ascontiguousarray(couplings, dtype=np.float64)
        self.colours = np.ascontiguousarray(colours, dtype=np.float64)
        self.beta = float(beta)
        check_tensor("couplings", self.couplings, distinct=True)
        check_tensor("colours", self.colours)
        if self.couplings.ndim != self.colours.ndim:
            raise ValueError(
                f"colours: {self.colours.ndim} indices, but couplings has {self.couplings.ndim}; "
                "both are of one order k"
            )
        self.order = self.couplings.ndim
        self.length, self.vocabulary = len(self.couplings), len(self.colours)
        if self.length < self.order:
            raise ValueError(f"couplings: L = {self.length}, expected at least k = {self.order}")
        if self.vocabulary < 2:
            raise ValueError(f"colours: |V| = {self.vocabulary}, expected at least 2")
        if not 0 < self.beta < np.inf:
            raise ValueError(f"beta: {self.beta}, expected a positive number")

    def shares(self) -> np.ndarray:
        """f_m = (m/L) Var_m / sigma_h^2, which sum to 1: (k,)."""
        weighted = variances(self.couplings, self.colours) * np.arange(1, self.order + 1)
        return weighted / weighted.sum()

    def logit_scale(self) -> float:
        """S = beta sigma_h, in nats."""
        return self.beta * field_scale(self.couplings, self.colours)

    @cached_property
    def packed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per site its tuples (L, T, k-1) and k! J of them (L, T); U by colour bin (bins, |V|)."""
        tuples = site_tuples(self.length, self.order - 1)
        sites = np.arange(self.length)[:, None]
        weights = factorial(self.order) * self.couplings[sites, *np.moveaxis(tuples, 2, 0)]
        return tuples, weights, self._by_bin()

    def _by_bin(self) -> np.ndarray:
        """U by the bin of all colours but one: (bins, |V|)."""
        return self.colours[*sorted_colours(self.vocabulary, self.order - 1).T]

    def local_fields(self, tokens: np.ndarray) -> np.ndarray:
        """h_i(a), energy of colour a at site i given the others: tokens (N, L) -> (N, L, |V|)."""
        from scipy.sparse import csc_array

        sites = np.array(list(combinations(range(self.length), self.order - 1)))  # (T, k - 1)
        # zero for the sites of the subset itself, which coincide
        weights = factorial(self.order) * self.couplings[*sites.T]  # (T, L)
        bins, folded = colour_bins(self.vocabulary, self.order - 1), self._by_bin()
        tokens = np.asarray(tokens, dtype=np.int64)
        found = np.empty((len(tokens), self.length, self.vocabulary))
        step = max(1, BLOCK // (len(folded) * self.length))
        for start in range(0, len(tokens), step):
            part = tokens[start : start + step]
            rows = bins[*part.T[sites.T]] + len(folded) * np.arange(len(part))  # (T, n)
            # A row for each sequence and bin, with a one for each subset whose colours are in it.
            ends = len(part) * np.arange(len(sites) + 1)
            chosen = csc_array(
                (np.ones(rows.size), rows.ravel(), ends),
                shape=(len(part) * len(folded), len(sites)),
            )
            sums = (chosen @ weights).reshape(len(part), len(folded), self.length)
            found[start : start + step] = sums.transpose(0, 2, 1) @ folded
        return found

    def log_conditionals(self, tokens: np.ndarray) -> np.ndarray:
        """log P(s_i = a | rest), eq. 3, in nats: tokens (N, L) -> (N, L, |V|)."""
        from scipy.special import log_softmax

        return log_softmax(-self.beta * self.local_fields(tokens), axis=2)

    def energies(self, tokens: np.ndarray) -> np.ndarray:
        """H(s), eq. 1 (without beta): tokens (N, L) -> (N,)."""
        tokens = np.asarray(tokens, dtype=np.int64)
        own = np.take_along_axis(self.local_fields(tokens), tokens[:, :, None], axis=2)
        return own.sum(axis=(1, 2)) / self.order

    def save(self, path: str | Path, about: dict) -> None:
        """Writes `couplings`, `colours`, `beta` (1,) and the JSON document `about`, atomically."""
        named = dict(couplings=self.couplings, colours=self.colours, beta=np.array([self.beta]))
        write_document(path, named, {**about, "sha256": _digest(named)})

    @classmethod
    def load(cls, path: str | Path) -> "Hamiltonian":
        """Reads what `save` wrote; `ArtifactError` names a file that is no whole Hamiltonian."""
        read = {name: read_tensor(path, name) for name in ("couplings", "colours", "beta")}
        try:
            sealed = read_about(path)["sha256"]
        except (ArtifactError, KeyError, TypeError):
            sealed = None
        if sealed != _digest(read):
            raise ArtifactError(
                f"{path} is refused: its tensors are not the ones that were written. Delete it and "
                "run the same command again to remake it."
            )
        return cls(read["couplings"], read["colours"], read["beta"][0])


read_conditionals = Hamiltonian.load  # the conditionals are those of the source of a file


def _digest(named: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(named.items()):
        digest.update(f"{name} {tensor.dtype} {tensor.shape}\n".encode())
        digest.update(np.ascontiguousarray(tensor))
    return digest.hexdigest()


def variances(couplings: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Var_m, m = 1 .. k, of eq. 4, (k,): the sum over site m-sets of
    [k!/(k-m)! sum_{other sites, ordered} J]^2 * mean(U^(m)^2)."""
    order = couplings.ndim
    found = np.empty(order)
    for m in range(1, order + 1):
        summed = perm(order, m) * couplings.sum(axis=tuple(range(m, order)))
        part = colours.mean(axis=tuple(range(m, order)))
        for axis in range(m):
            part = part - part.mean(axis=axis, keepdims=True)
        found[m - 1] = (summed**2).sum() / factorial(m) * (part**2).mean()
    return found


def field_scale(couplings: np.ndarray, colours: np.ndarray) -> float:
    """sigma_h, sigma_h^2 = sum_m (m/L) Var_m: what one site's colour moves H by, at beta = 0."""
    parts = variances(couplings, colours)
    return float(np.sqrt((np.arange(1, len(parts) + 1) * parts).sum() / len(couplings)))


def check_tensor(name: str, tensor: np.ndarray, distinct: bool = False) -> None:
    """`ValueError` unless `tensor` is finite, of order 2 to 4, symmetric in its indices, and, where
    these are to be `distinct`, zero wherever two of them coincide."""
    if not 2 <= tensor.ndim <= 4:
        raise ValueError(f"{name}: {tensor.ndim} indices, expected k = 2, 3 or 4")
    if len(set(tensor.shape)) > 1 or not tensor.size:
        raise ValueError(f"{name}: shape {tensor.shape}, expected all sides equal and not empty")
    if not np.isfinite(tensor).all():
        where = _first(~np.isfinite(tensor))
        raise ValueError(f"{name}{where} = {tensor[tuple(where)]}, expected finite numbers")
    for axis in range(tensor.ndim - 1):
        # Exchanges of neighbouring indices generate all permutations.
        differs = np.abs(tensor - tensor.swapaxes(axis, axis + 1)) > ROUNDING * np.abs(tensor).max()
        if differs.any():
            where = _first(differs)
            other = where.copy()
            other[axis], other[axis + 1] = other[axis + 1], other[axis]
            raise ValueError(
                f"{name}{where} = {tensor[tuple(where)]:.6g} but {name}{other} = "
                f"{tensor[tuple(other)]:.6g}: expected a tensor that is symmetric in its indices. "
                "Average it over their permutations"
            )
    if not distinct:
        return
    wrong = (tensor != 0) & coincident(len(tensor), tensor.ndim)
    if wrong.any():
        where = _first(wrong)
        raise ValueError(
            f"{name}{where} = {tensor[tuple(where)]:.6g}: expected 0 where two sites coincide "
            "(such terms are interactions of lower order). Set them to zero"
        )


def coincident(length: int, order: int) -> np.ndarray:
    """True where at least two of the sites are the same: bool, (L,) * order."""
    found = np.zeros((length,) * order, dtype=bool)
    for one, other in combinations(np.indices((length,) * order, sparse=True), 2):
        found |= one == other
    return found


def _first(where: np.ndarray) -> list[int]:
    return np.argwhere(where)[0].tolist()


# --- Index tables: the sites and the colours of one unordered tuple ------------------------------


def site_tuples(length: int, size: int) -> np.ndarray:
    """The T = C(L - 1, size) subsets of the other sites, for each site: int64, (L, T, size), each
    ascending, in lexicographic order."""
    subsets = np.array(list(combinations(range(length - 1), size)), dtype=np.int64)
    subsets = subsets.reshape(comb(length - 1, size), size)
    return subsets + (subsets >= np.arange(length)[:, None, None])


def sorted_colours(vocabulary: int, size: int) -> np.ndarray:
    """The ascending `size`-tuples of colours in lexicographic order, that of each bin: int64,
    (C(|V| + size - 1, size), size)."""
    return np.array(list(combinations_with_replacement(range(vocabulary), size)), dtype=np.int64)


def colour_bins(vocabulary: int, size: int) -> np.ndarray:
    """The bin of any ordered tuple of colours: int64, (|V|,) * size, a row of `sorted_colours`."""
    bins = np.empty((vocabulary,) * size, dtype=np.int64)
    rows = sorted_colours(vocabulary, size)
    for colours in permutations(rows.T):
        bins[*colours, ...] = np.arange(len(rows))
    return bins
