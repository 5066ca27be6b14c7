"""Attention between the factored limit and input-dependent maps (potts, eq. 2)."""

from functools import partial

from manybody.models import description


class About(description.About):
    network = "Interpolated"
    display_name = "interpolated attention"
    maps = "averaged"

    @property
    def label(self) -> str:
        return f"{self.display_name}, a = {self.description['a']:g}"

    def equation(self, tensor):
        from manybody.models.interpolated.equation import logits

        a = self.description["a"]
        names = ("scores", "values", "mask") if a else ("scores", "values")
        scores, values, *mask = (tensor(name).astype("float64") for name in names)
        return partial(logits, a, scores, values, mask[0] if a else None)
