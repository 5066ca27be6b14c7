"""Exact conditionals of an energy with interactions of k sites (many-body, section 4)."""

from manybody.models import description


class About(description.About):
    network = "Energy"
    display_name = "energy model"
    recipes = ("fit",)

    @property
    def order(self) -> int:
        return self.description["order"]

    @property
    def label(self) -> str:
        return self.generator

    def from_hamiltonian(self, hamiltonian):
        if self.order != hamiltonian.order:
            raise ValueError(
                f"the model is energy of order {self.order}, but the Hamiltonian is of order "
                f"{hamiltonian.order}; give the model order {hamiltonian.order}"
            )
        from manybody.models.energy.network import conditionals

        return conditionals(hamiltonian)
