from typing import Literal

from manybody.data.options import Sampled, TensorFile
from manybody.io.options import Block, Inside, Positive, Seed, Several, key, nearest_of


class Gaussian(Block):
    """Gaussian numbers, made symmetric."""

    gaussian: Seed = key("Seed of the draw.")


class Temperature(Block):
    """An inverse temperature, or the mean Hamming distance of two samples that sets it.

    null takes back the other one, which an overlay does not leave out.
    """

    hamming: Inside | None = key("Share of sites at which two samples differ.", None)
    beta: Positive | None = key("Inverse temperature.", None)

    def problems(self):
        given = [name for name in ("hamming", "beta") if getattr(self, name) is not None]
        if len(given) != 1:
            yield (
                "",
                f"found {' and '.join(given) or 'neither hamming nor beta'}; expected one of "
                f"hamming and beta; give one, and null for the other where an overlay replaces "
                f"it: {{hamming: null, beta: 1.0}}",
            )


class Options(Sampled):
    """Samples of a generalised Potts model."""

    package_files = ("potts_colours.json",)
    kind: Literal["potts"]
    couplings: Literal["contact-map", "signs"] | TensorFile = key(
        "Interaction J of the sites; contact-map is positive with row sums 1; signs is the same "
        "with random signs, which is glassy and refused at low temperatures."
    )
    colours: Literal["stored", "standard"] | nearest_of(Gaussian, TensorFile) = key(
        "Interaction U of the colours; the stored Gaussian draw of 20 colours, the identity "
        "(standard), another draw."
    )
    fields: TensorFile = key(
        "Fields of each site and colour, (L, |V|); none where nothing is said.", None
    )
    temperature: Temperature = key(
        "The inverse temperature itself, or the mean Hamming distance of two samples that sets "
        "it; null takes back the other one, which an overlay does not leave out."
    )
    sweeps: Several = key(
        "Gibbs sweeps of each chain from a uniform start, and of each chain that sets or tests "
        "the temperature."
    )

    @property
    def hamiltonian_order(self) -> int:
        return 2

    def problems(self):
        hamming, most = self.temperature.hamming, 1 - 1 / self.vocabulary
        if hamming is not None and hamming >= most:
            yield (
                "temperature.hamming",
                f"found {hamming:g}; expected less than 1 - 1/|V| = {most:.4g}, which is that of "
                f"uniform colours (beta = 0); lower it",
            )
