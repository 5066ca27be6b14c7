"""The page as Chromium shows it, where there is one: width, place, contrast, and no request."""

import json
import re

import planted_page
import pytest
from browser import DARK, NEEDED, asks, chromium
from configs import load

pytestmark = [pytest.mark.long, NEEDED]
# A frame may be narrower than a window; what is measured in it comes back as a message.
FRAME = """<!doctype html><body><iframe src="measured.html" width="{width}" height="900"
style="border: 0"></iframe><script>
addEventListener("message", event => {{ document.body.textContent = event.data; }});
</script></body>"""
WAIT = ("--virtual-time-budget=5000",)
# Luminance and contrast of WCAG 2, of every text with the ground that it stands on.
MEASURE = """<script>
const lum = c => c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const ground = e => { const c = rgb(getComputedStyle(e).backgroundColor);
  return c.length === 3 || c[3] > 0 ? c.slice(0, 3) : ground(e.parentElement); };
const ratios = [...document.body.querySelectorAll("*")]
  .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
  .filter(e => !["SCRIPT"].includes(e.tagName))
  .map(e => { const l = [lum(rgb(getComputedStyle(e).color).slice(0, 3)), lum(ground(e))].sort();
    return (l[1] + .05) / (l[0] + .05); });
parent.postMessage(JSON.stringify({
  width: document.documentElement.scrollWidth, window: innerWidth,
  height: document.documentElement.scrollHeight,
  answer: document.querySelector("#answer").getBoundingClientRect().bottom,
  words: document.body.innerText.trim().split(/\\s+/).length,
  sideways: [...document.body.querySelectorAll("*")]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible")
    .map(e => e.tagName),
  contrast: Math.min(...ratios), texts: ratios.length, ground: lum(ground(document.body))}), "*");
</script></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = load()
    config["models"]["n2"]["training"]["batch"] = 999
    return planted_page.run(folder, config)


@pytest.mark.parametrize("flags", [(), (DARK,)], ids=["light", "dark"])
@pytest.mark.parametrize("width", [380, 1280])
def test_it_fits_and_can_be_read(page, tmp_path, width, flags):
    text = page.read_text(encoding="utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', text)[0]
    measured = tmp_path / "measured.html"
    measured.write_text(text.replace(policy, "").replace("</body>", MEASURE), encoding="utf-8")
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width), encoding="utf-8")
    shown = chromium(tmp_path, frame, "--window-size=1400,1000", *WAIT, *flags)
    found = json.loads(re.search(r"<body>(\{.*\})</body>", shown)[1])
    assert found["window"] == width
    assert found["width"] <= width
    assert found["sideways"] == []
    assert found["words"] <= 1500
    assert width == 380 or (found["answer"] <= 900 and found["height"] <= 4000)
    assert found["texts"] > 100
    assert found["contrast"] >= 4.5
    assert (found["ground"] < 0.1) == bool(flags)


def test_no_request_leaves_it(page, tmp_path):
    chromium(tmp_path, page)
    assert not asks(tmp_path)
