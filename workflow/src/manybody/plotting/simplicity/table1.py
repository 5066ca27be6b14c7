"""Table 1: one test passage, and what each generator's chain has made of it."""

from manybody.files.manifest import Manifest
from manybody.files.sequences import Symbols
from manybody.plotting.simplicity.passages import read_passages, table1


def draw(files, block: dict, context: dict) -> tuple:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    clones = dict(zip(context["clones"], files["clones"], strict=True))
    manifests = [Manifest.read(clones[name], "clones") for name in block["clones"]]
    if files["tokenizer"]:
        from manybody.sources.tokenizer import load

        words = load(files["tokenizer"])
    else:  # sequences that are no text
        words = Symbols(manifests[0].about["alphabet"])
    return table1(*read_passages(manifests, block["sweep"], block["passages"], words.decode), block)
