"""Captions: templates in Jinja2 that give reStructuredText, as HTML.

The same files are read by `snakemake --report`, with the same settings. These take away the line
break after a tag, unless it ends with `+%}`.
"""

from pathlib import Path
from types import SimpleNamespace

from docutils.core import publish_parts
from jinja2 import Environment
from jinja2.exceptions import TemplateError

from manybody.io.atomic import ArtifactError

ENVIRONMENT = Environment(trim_blocks=True, lstrip_blocks=True)
# A name of the user's that is also markup does not keep the page from being written.
SETTINGS = {"report_level": 5, "file_insertion_enabled": False, "raw_enabled": False}


def caption(path: str | Path, config: dict, block: dict | None = None) -> str:
    """The caption in `path` as HTML, of a figure with the config's `block`.

    Raises `ArtifactError`, which names the file, where the config has not got what it asks for.
    """
    job = SimpleNamespace(config=config, params=SimpleNamespace(block=block))
    try:
        text = ENVIRONMENT.from_string(Path(path).read_text("utf-8")).render(snakemake=job)
    except TemplateError as error:
        raise ArtifactError(f"{path}: the caption asks for what is not there: {error}") from error
    return publish_parts(text, writer="html5", settings_overrides=SETTINGS)["body"]
