from typing import Literal

from manybody.data import STATES
from manybody.data.options import HAMILTONIAN, Derived
from manybody.io.options import Count, Seed, key, refers


class Options(Derived):
    """A planted Hamiltonian without the interactions above an order, exact, by enumeration."""

    reads = (HAMILTONIAN,)
    kind: Literal["cut"]
    source: refers(
        "sources", wanted="with a Hamiltonian", fits=lambda source: source.hamiltonian_order
    ) = key("Source with the Hamiltonian.")
    at: Count = key("Largest order of interaction that is left.")
    kept: Literal["interactions", "marginals"] = key(
        "interactions: the terms of that order and below, in the zero-sum gauge; marginals: the "
        "law of that order with the marginals of the planted one on so many sites."
    )
    seed: Seed = key("Draws the sequences.")

    def misfits(self, path, config):
        planted = config.sources[self.source]
        order = planted.hamiltonian_order
        if self.at >= order:
            yield (
                f"{path}.at: found {self.at}; expected less than the {order} of source "
                f"{self.source}, above which there is nothing to cut; lower it"
            )
        if planted.vocabulary**planted.length > STATES:
            yield (
                f"{path}.source: found {self.source} with |V|^L = "
                f"{planted.vocabulary}^{planted.length}; expected at most {STATES} states, as all "
                f"are enumerated; take one of fewer sites or colours"
            )
