"""Factored attention with x^2 between the layers (simplicity, eq. 3)."""

from manybody.models import description


class About(description.About):
    display_name = "factored attention"
    maps = "fixed"
    recipes = ("recipe", "fit")

    @property
    def full(self) -> bool:
        return self.description.get("heads") == "full"

    @property
    def network(self) -> str:
        return "Full" if self.full else "Factored"

    @property
    def module(self) -> str:
        return "full" if self.full else "network"

    @property
    def kind(self) -> str:
        """The maps of one layer, `free` or `softmax`; of more layers the architecture."""
        return self.description.get("attention", "free") if self.depth == 1 else super().kind

    @property
    def order(self) -> int:
        """2^(n-1) + 1; what L allows is at most L."""
        return 2 ** (self.depth - 1) + 1

    @property
    def nominal(self) -> bool:
        """LayerNorm between the layers is no polynomial."""
        return self.description.get("variant") == "paper" and self.depth > 1

    @property
    def depth(self) -> int:
        return self.description["layers"]

    @property
    def generator(self) -> str:
        """`n = 2, order 3`; nominal orders and orders that L is too short for are said to be so."""
        text = f"n = {self.depth}, {'nominal ' if self.nominal else ''}order {self.order}"
        if self.bounded:
            return text
        return f"{text} > L = {self.description['length']}: any order"

    @property
    def label(self) -> str:
        return f"factored n = {self.depth}, rank {self.description.get('rank') or 'full'}"

    @property
    def pairwise(self) -> bool:
        return self.depth == 1

    def pair_factors(self, tensor, layer=0):
        if self.full:
            raise ValueError("full couplings have no heads, and so no A and V")
        import numpy as np

        names = (f"attention.{layer}", f"left.{layer}")
        attention, values = (tensor(name).astype(np.float64) for name in names)
        if self.description["rank"] is not None:
            values = values @ tensor(f"right.{layer}").astype(np.float64)
        if self.description.get("attention") == "softmax":
            attention = np.exp(attention - attention.max(axis=-1, keepdims=True))
            attention /= attention.sum(axis=-1, keepdims=True)
        return attention.reshape(-1, *attention.shape[-2:]), values.reshape(-1, *values.shape[-2:])

    @property
    def equation(self) -> bool:
        return self.pairwise and self._heads == 1 and not self.description.get("bias", True)

    @property
    def _heads(self) -> int:
        return 0 if self.full else self.description.get("heads", 1)

    @property
    def _read(self) -> int:
        """Numbers that the heads of one layer read of a position; none of full couplings."""
        return self._heads * (self.description.get("rank") or self.description["vocabulary"])

    @property
    def closed_form(self) -> bool:
        own_fields = self.description["bias"] == "site"
        return self.description["variant"] == "exact" and self._heads == 1 and not own_fields

    @property
    def feature_size(self) -> int:
        """Those of every head, and one for each token where positions have fields."""
        fields = self.description["vocabulary"] if self.description["bias"] == "site" else 0
        return self._read + fields

    @property
    def work_size(self) -> int:
        """Numbers of each row: x, the pre-activation, its square and the norm's output, all |V|
        wide, and what each of several heads reads, in two layouts."""
        numbers = 5 * self.description["vocabulary"] + 4 * (self._heads - 1) * self._read
        return self.description["length"] * numbers

    @property
    def weights(self) -> int:
        vocabulary, length = self.description["vocabulary"], self.description["length"]
        if self.full:
            return (length * vocabulary) ** 2
        return self.depth * (2 * vocabulary * self._read + self._heads * length**2)
