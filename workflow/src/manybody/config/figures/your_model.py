"""Figures of models that were trained elsewhere."""

from manybody.config.figures.base import Figure, inputs
from manybody.config.figures.simplicity import of_seeds
from manybody.io.options import Block, key, refers


class SeriesSpectrum(Figure):
    """Which orders of interaction models use along their checkpoints."""

    spectra: list[refers("spectra", "draws")] = key("Spectra of up to seven models.", min_length=1)

    def inputs(self, config):
        return inputs(config, spectra=of_seeds(self.spectra, config))

    def misfits(self, path, config):
        first = self.spectra[0]
        most = config.spectra[first].orders
        for name in self.spectra:
            if (found := config.spectra[name].orders) != most:
                yield (
                    f"{path}.spectra: found {name}, orders {found}; expected those of {first}, "
                    f"{most}; change spectra.{name}.orders"
                )


class PassageMap(Figure):
    """Which tokens of a passage act on which."""

    spectrum: refers("spectra", "draws") = key("Spectrum that has a `passage`.")

    def inputs(self, config):
        entry = config["spectra"][self.spectrum]
        return inputs(config, spectra=[(self.spectrum, entry["seeds"][0])])

    def misfits(self, path, config):
        if config.spectra[self.spectrum].passage is None:
            yield (
                f"{path}.spectrum: found {self.spectrum}, which has no passage; expected one that "
                f"has; set spectra.{self.spectrum}.passage to 0, the first test sequence"
            )


class YourModelFigures(Block):
    """Figures of models that were trained elsewhere."""

    spectrum: SeriesSpectrum = key("Which orders they use along their checkpoints.", None)
    map: PassageMap = key("Which tokens of a passage act on which.", None)
