"""Pictures as text in a page."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

MOST = 6_900_000  # bytes of all pictures: as text a third more, which leaves a page 0.8 of 10 MB
COLOURS = 256
SMALLER = 0.8  # of the width and height, as often as it takes


def inline(paths: Sequence[str | Path]) -> list[dict]:
    """Each PNG file as `uri` (data:), `width` and `height` in pixels.

    A file that is larger than its share of `MOST` is drawn in 256 colours, and smaller until it
    fits; no other file is touched.
    """
    return [_inline(Path(path), MOST // max(1, len(paths))) for path in paths]


def _inline(path: Path, share: int) -> dict:
    content = path.read_bytes()
    with Image.open(path) as opened:
        size = opened.size
        picture = opened.convert("RGB") if len(content) > share else None
    scale = 1.0
    while len(content) > share:
        smaller = [max(1, round(side * scale)) for side in size]
        reduced = picture.resize(smaller, Image.Resampling.LANCZOS).quantize(COLOURS)
        saved = io.BytesIO()
        reduced.save(saved, "PNG", optimize=True)
        content, scale = saved.getvalue(), scale * SMALLER
    text = base64.b64encode(content).decode("ascii")
    return {"uri": f"data:image/png;base64,{text}", "width": size[0], "height": size[1]}
