"""Figure 3: how good the generators are and whether their chains have settled."""

from manybody.files import tables
from manybody.plotting.simplicity.generators import Chains, Run, fig3


def draw(files, block: dict, context: dict) -> tuple:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    clones = dict(zip(context["clones"], files["clones"], strict=True))
    runs = {}
    for (name, seed), losses, manifest in zip(
        context["runs"], files["losses"], files["runs"], strict=True
    ):
        about, _ = tables.read_run(manifest)
        targets = tables.read_targets(context["targets"][name], clones)
        # One run each: the first seed that the block asks for.
        runs.setdefault(name, Run(about, tables.read_losses({seed: losses}), targets))
    student = runs.pop(block["evaluation"])
    chains = {name: Chains(*tables.read_trace(path)) for name, path in clones.items()}
    return fig3(runs, chains, student, block)
