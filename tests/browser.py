"""The distribution's Chromium, as tests of pages drive it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
NEEDED = pytest.mark.skipif(CHROMIUM is None, reason="no command chromium in PATH")
QUIET = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-features=NetworkTimeServiceQuerying"
)
LOG = "net.json"
DARK = "--blink-settings=preferredColorScheme=0"


def chromium(folder: Path, page: Path, *flags: str) -> str:
    """What Chromium prints of a page; `folder` takes its profile and the log of its requests."""
    command = [CHROMIUM, *QUIET.split(), f"--user-data-dir={folder / 'profile'}", *flags]
    shown = subprocess.run(
        [*command, f"--log-net-log={folder / LOG}", "--dump-dom", f"file://{page}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return shown.stdout


def requests(folder: Path) -> set[tuple[str, str]]:
    """(what asks, URL) of all requests of the last page; Chromium itself asks for the time."""
    text = (folder / LOG).read_text(encoding="utf-8")
    return set(re.findall(r'"traffic_annotation":(\d+),"url":"([^"]*)"', text))


def asks(folder: Path) -> bool:
    """Says if the last page of a folder asked for anything that is not a file."""
    asking = folder / "asking"
    asking.mkdir()
    (asking / "page.html").write_text('<!doctype html><img src="http://127.0.0.1:9/x.png">')
    chromium(asking, asking / "page.html")
    (kind,) = {kind for kind, url in requests(asking) if url.endswith("x.png")}
    return kind in {kind for kind, _ in requests(folder)}
