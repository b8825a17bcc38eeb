"""The page of ``matroot report`` in a browser, driven by its command line."""

import html
import json
import re
import shutil
import subprocess

import pytest

from matroot.bench.report import content_of, page

from .example_results import SUITES, document, load

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on PATH")

# Windows cannot be as narrow as phones, frames can.
FRAMES = """<!doctype html><meta charset="utf-8"><pre id="found"></pre>
<iframe style="width:380px;height:800px;border:0" srcdoc="{0}"></iframe>
<iframe style="width:1400px;height:800px;border:0" srcdoc="{0}"></iframe>
<iframe style="width:1046px;height:800px;border:0" srcdoc="{1}"></iframe>
<script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const inside = frame.contentDocument, root = inside.documentElement;
    const plots = [...inside.querySelectorAll("svg.plot")].map(svg => {{
      const at = svg.getBoundingClientRect(), box = svg.getBBox();
      const shown = svg.checkVisibility({{opacityProperty: true, visibilityProperty: true}});
      const texts = [...svg.querySelectorAll("text")].every(text => {{
        const t = text.getBoundingClientRect();
        return t.left >= at.left - 1 && t.right <= at.right + 1 && t.bottom <= at.bottom + 1;
      }});
      const drawn = [...svg.querySelectorAll("[style*='--c']")].map(e => getComputedStyle(e));
      return {{left: at.left, right: at.right, width: at.width, height: at.height, box: [box.width, box.height], shown,
        texts, drawn: drawn.length, colours: new Set(drawn.map(s => s.stroke)).size}};
    }});
    const fetched = frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name);
    return {{width: root.clientWidth, scroll: root.scrollWidth, plots, fetched}};
  }});
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>"""


def browse(tmp_path, *options):
    call = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    call += ["--disable-background-networking", "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"]
    return subprocess.run([*call, *options], capture_output=True, text=True, timeout=120, encoding="utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    cpu = load(folder, document(), "bench-cpu-float32.json")
    cuda = load(folder, document("cuda", speed=30.0), "bench-cuda-float32.json")
    return page(content_of([cpu, cuda]))


def test_plots_are_visible_on_phone_screen_and_paper(tmp_path, report):
    path = tmp_path / "frames.html"
    # A4 across, less its margins.
    printed = report.replace("@media print", "@media all")
    path.write_text(FRAMES.format(html.escape(report), html.escape(printed)), encoding="utf-8")
    done = browse(tmp_path, "--window-size=1500,900", "--virtual-time-budget=10000", "--dump-dom", path.as_uri())
    assert "CONSOLE" not in done.stderr, done.stderr
    text = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.S)
    assert text, done.stderr
    frames = json.loads(html.unescape(text[1]))
    for frame, width in zip(frames, (380, 1400, 1046), strict=True):
        assert frame["fetched"] == []
        assert width - 20 <= frame["width"] <= width
        assert frame["scroll"] <= frame["width"], "the page is wider than the window"
        assert len(frame["plots"]) >= 2 * len(SUITES)
        for one in frame["plots"]:
            assert one["shown"]
            assert one["texts"], "text beyond the edge of a plot"
            assert one["left"] >= 0
            assert one["right"] <= frame["width"]
            assert min(one["width"], one["height"]) > 200
            assert min(one["box"]) > 100
            assert one["drawn"] > 0
            assert one["colours"] > 0


def test_no_console_messages_and_a_screenshot_with_content(tmp_path, report):
    path, screenshot = tmp_path / "page.html", tmp_path / "page.png"
    path.write_text(report, encoding="utf-8")
    done = browse(tmp_path, "--window-size=1400,2000", f"--screenshot={screenshot}", path.as_uri())
    assert "CONSOLE" not in done.stderr, done.stderr
    # A blank screenshot of this size compresses to a few thousand bytes.
    assert screenshot.stat().st_size > 50_000
