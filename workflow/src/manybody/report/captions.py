"""Captions: reStructuredText as HTML.

`snakemake --report` shows the same captions, which are parameters of the figures' rule.
"""

from docutils.core import publish_parts

# A name of the user's that is also markup does not keep the page from being written.
SETTINGS = {"report_level": 5, "file_insertion_enabled": False, "raw_enabled": False}


def as_html(text: str) -> str:
    """The HTML of a text in reStructuredText."""
    return publish_parts(text, writer="html5", settings_overrides=SETTINGS)["body"]
