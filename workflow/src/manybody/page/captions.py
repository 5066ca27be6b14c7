"""Captions: templates in Jinja2 that give reStructuredText, as HTML.

The same files are read by `snakemake --report`, with the same settings: a tag of Jinja2 takes the
line break after it away, so a paragraph or a list must not begin right after a tag.
"""

from pathlib import Path
from types import SimpleNamespace

from docutils.core import publish_parts
from docutils.utils import SystemMessage
from jinja2 import Environment, StrictUndefined, TemplateError

from manybody.files.atomic import ArtifactError

# As Snakemake has them for its report; names that are not there are an error on the page as well.
ENVIRONMENT = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
WARNING = 2  # the level of docutils from which a message is an error here


def caption(path: str | Path, config: dict, block: dict | None = None) -> str:
    """The caption in `path` as HTML, of a figure with the config's `block`.

    Raises `ArtifactError`, which names the file, where the template asks for what the config has
    not got, or where docutils warns of its markup.
    """
    job = SimpleNamespace(config=config, params=SimpleNamespace(block=block))
    try:
        text = ENVIRONMENT.from_string(Path(path).read_text("utf-8")).render(snakemake=job)
        settings = {"halt_level": WARNING, "report_level": WARNING, "warning_stream": False}
        settings |= {"file_insertion_enabled": False, "raw_enabled": False}
        return publish_parts(text, writer="html5", settings_overrides=settings)["body"]
    except (TemplateError, SystemMessage) as error:
        raise ArtifactError(f"{path}: expected a caption in Jinja2 and reStructuredText: {error}") from error
