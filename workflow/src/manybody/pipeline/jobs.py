"""Jobs: which go before others, and what those get that are submitted again."""

from collections.abc import Callable
from functools import cached_property

from manybody.papers.inputs import Clock, Contacts, Maps, Spectrum
from manybody.pipeline.figures import Figures
from manybody.pipeline.paths import Paths

# Priorities, from the highest on. A job of several threads waits until as many cores are free at
# once: with jobs of one thread ready that is never, unless it counts for more than all of these.
WIDE, DRAWN, DRAWN_FIRST, SEQUENCES_FIRST, OF_CLONES = 500, 100, 60, 50, 15


def growing(amount: int | Callable) -> Callable:
    """A resource of which a job that is submitted again, since it ran out, gets more; `amount` is a
    number, or a function of the wildcards."""
    return lambda wildcards, attempt: attempt * (amount(wildcards) if callable(amount) else amount)


class Jobs:
    """Priorities by which figures come out along the way."""

    def __init__(self, paths: Paths, figures: Figures):
        self.paths, self.figures = paths, figures

    def urgency(self, file: str, least: int) -> Callable:
        """The priority of the jobs that make `file`, a path with wildcards: from `least` on.

        What the first figure of each paper waits for goes before all others. Models that clones are
        sampled from go before other models, as clones and evaluations wait for them. Among equals
        the files of one figure go before those of the next.
        """

        def of_job(wildcards):
            path = file.format(**dict(wildcards.items()))
            rank, names = self.figure_rank.get(path), self.figures.names()
            if rank is not None and rank < len({paper for paper, _ in names}):
                return DRAWN_FIRST
            own = OF_CLONES if path in self.figures.generators else least
            return own if rank is None else own + 1 - rank / len(names)

        return of_job

    @cached_property
    def figure_rank(self) -> dict[str, int]:
        """The rank of the first figure, from 0 on, that is drawn from each file.

        Fewer parts go first, after one figure of each paper: the ranks below the number of papers.
        """
        ordered = sorted(
            self.figures.names(),
            key=lambda name: sum(map(len, self.figures.inputs(*name).values())),
        )
        first = {paper: (paper, figure) for paper, figure in reversed(ordered)}
        found = {}
        for rank, name in enumerate(sorted(ordered, key=lambda name: name not in first.values())):
            for path in self._files(name):
                found.setdefault(path, rank)
        return found

    def _files(self, name: tuple[str, str]) -> set[str]:
        """A figure's inputs, and the models of its clones, clocks, contacts, maps and spectra."""
        paths, figures = self.paths, self.figures
        read = figures.keys((Clock, Contacts, Maps), [name])
        spectra = figures.keys(Spectrum, [name])
        return {
            *(path for files in figures.inputs(*name).values() for path in files),
            *(paths.model_of("clones", clone) for clone in figures.clones([name])),
            *(paths.model_path(one.source, one.model, one.seed) for one in read),
            *(paths.model_of("spectra", one.spectrum, one.seed) for one in spectra),
        }
