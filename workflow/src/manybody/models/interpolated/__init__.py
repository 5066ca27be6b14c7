"""Attention between the factored limit and input-dependent maps (potts, eq. 2)."""

from manybody.models import description


class About(description.About):
    network = "Interpolated"
    display_name = "interpolated attention"
    maps = "averaged"
    equation = True

    @property
    def label(self) -> str:
        return f"{self.display_name}, a = {self.description['a']:g}"
