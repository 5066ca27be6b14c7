"""The site that `make docs` builds: no warning, no dead link inside, legible on a phone."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from browser import DARK, NEEDED, asks, chromium
from repository import ROOT

from manybody import public

PACKAGES = Path(sys.prefix) / "docs"
# Loads one page after the other into a frame, which may be narrower than a window.
FRAME = """<!doctype html><body><iframe width="{width}" height="900" style="border: 0"></iframe>
<script type="module">
const frame = document.querySelector("iframe"), found = {{}};
for (const page of {pages}) {{
  frame.src = page;
  await new Promise(loaded => {{ frame.onload = loaded; }});
  const page_ = frame.contentDocument, root = page_.documentElement;
  const style = e => frame.contentWindow.getComputedStyle(e);
  const broken = [];
  for (const picture of page_.images) {{
    picture.loading = "eager";
    if (!picture.complete)
      await new Promise(ended => {{ picture.onload = picture.onerror = ended; }});
    if (!picture.naturalWidth) broken.push(picture.src);
  }}
  if (page.includes("?q="))
    await new Promise(searched => setTimeout(searched, 5000));
  found[page] = {{
    window: frame.contentWindow.innerWidth, width: root.scrollWidth, broken,
    pictures: page_.images.length, ground: style(page_.body).backgroundColor,
    sideways: [...page_.querySelectorAll("article *")].filter(e =>
      e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(style(e).overflowX))
      .map(e => e.tagName),
    hits: [...page_.querySelectorAll("#search-results a")].map(e => e.textContent),
  }};
}}
document.body.textContent = JSON.stringify(found);
</script></body>"""


@pytest.fixture(scope="module")
def site() -> Path:
    if not PACKAGES.exists():
        pytest.skip("no Sphinx in the environment: `make docs` installs it")
    out = ROOT / "build" / "docs"
    shutil.rmtree(out, ignore_errors=True)
    path = os.pathsep.join(map(str, (PACKAGES, ROOT / "docs", ROOT / "workflow" / "src")))
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-n"]
    built = subprocess.run(
        [*command, "-d", "build/doctrees", "docs", out],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return out


class Page(HTMLParser):
    """What a page refers to, and what it can be referred to by."""

    def __init__(self, text: str):
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.alternatives: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links |= {given[key] for key in ("href", "src") if given.get(key)}
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "img":
            self.alternatives.append(given.get("alt") or "")


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    written = [path for path in site.rglob("*.html") if site / "_static" not in path.parents]
    return {path: Page(path.read_text(encoding="utf-8")) for path in written}


def test_no_link_inside_is_dead(site, pages):
    dead, followed = [], 0
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            address, name = urldefrag(link)
            file = unquote(address.partition("?")[0])
            target = (path.parent / file).resolve() if file else path
            followed += 1
            if not target.exists() or (name and unquote(name) not in pages[target].names):
                dead.append((str(path.relative_to(site)), link))
    assert dead == []
    assert followed > 3000


def test_every_picture_has_a_page_with_its_claims_caption_files_and_code(site, pages):
    gallery = ROOT / "docs" / "gallery"
    index = pages[site / "generated" / "gallery" / "index.html"]
    pictures = {path.relative_to(gallery) for path in gallery.rglob("*.png")}
    assert len(pictures) > 30
    for picture in pictures:
        name = str(picture.with_suffix(".html")).replace("/", "-")
        assert name in index.links
        page = pages[site / "generated" / "gallery" / name]
        assert len(page.alternatives[0].split()) > 3
        text = (site / "generated" / "gallery" / name).read_text(encoding="utf-8")
        assert 'id="how-it-is-drawn"' in text
        assert re.search(r'<span class="nf">draw</span>', text)
        assert "<strong>(a)</strong>" in text or picture.stem in text
        files = {link.rpartition("/")[2] for link in page.links if "_downloads" in link}
        tables = {path.name for path in (gallery / picture).parent.glob(f"{picture.stem}.csv*")}
        assert files >= tables | {picture.name}


def test_the_figures_of_the_demo_have_their_own_claims(site):
    page = (site / "generated" / "gallery" / "potts-fig3.html").read_text(encoding="utf-8")
    said = re.findall(r"<dt><strong>([\w-]+)</strong>: (.*?)</dt>", page)
    assert ("yes", "More weight decay lowers the peak (figure 3, right)") in said
    assert len(said) == 6


def test_every_public_name_is_described_with_an_example(site):
    text = (site / "generated" / "api.html").read_text(encoding="utf-8")
    described = re.split(r'<dt class="sig sig-object py" id="manybody\.(\w+)">', text)[1:]
    assert described[::2] == public.__all__
    assert all("&gt;&gt;&gt;" in section for section in described[1::2])


def test_files_outside_docs_are_words_or_lead_into_the_repository(site, pages):
    links = {link for page in pages.values() for link in page.links if "_downloads" in link}
    assert {Path(link).suffix for link in links} == {".csv", ".gz", ".png"}


@pytest.mark.parametrize("flags", [(), (DARK,)], ids=["light", "dark"])
@pytest.mark.parametrize("width", [380, 1280])
@NEEDED
def test_it_fits_loads_and_asks_for_nothing(site, pages, tmp_path, width, flags):
    search = f"file://{site}/search.html?q=threshold"
    shown = [*(f"file://{path}" for path in pages), search]
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width, pages=json.dumps(shown)), encoding="utf-8")
    wide = ("--window-size=1400,1000", "--disable-web-security")
    said = chromium(tmp_path, frame, *wide, "--virtual-time-budget=600000", *flags)
    found = json.loads(re.search(r"<body>(\{.*\})</body>", said, re.DOTALL)[1])
    assert set(found) == set(shown)
    assert {page: one for page, one in found.items() if one["width"] > one["window"]} == {}
    assert {one["window"] for one in found.values()} == {width}
    assert [one["broken"] for one in found.values() if one["broken"]] == []
    drawn = len(list((ROOT / "docs" / "gallery").rglob("*.png")))
    assert sum(one["pictures"] for one in found.values()) > 2 * drawn
    scrolling = {"PRE"} if width == 380 else {"PRE", "DIV"}  # code; tables, on a wide screen
    assert {tag for one in found.values() for tag in one["sideways"]} <= scrolling
    (ground,) = {one["ground"] for one in found.values()}
    assert (max(map(int, re.findall(r"\d+", ground))) < 50) == bool(flags)
    assert len(found[search]["hits"]) > 3
    assert not asks(tmp_path)
