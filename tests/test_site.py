"""The documentation as a site: it builds without a warning and needs no network."""

import re
import subprocess
import sys
from pathlib import Path

import needs
from browser import Browser

ROOT = Path(__file__).parents[1]


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    for name in ("mkdocs", "material", "mkdocstrings"):
        needs.package(name)
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    start = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    # Nothing from elsewhere is loaded: the site works offline.
    assert not re.findall(r'<(?:script|link)[^>]+(?:src|href)="https?://[^"]+"', start)
    api = (tmp_path / "site/api.html").read_text(encoding="utf-8")
    assert "gait.Estimator.update" in api and "gait.Log.resample" in api


def test_tables_fit_a_window_of_1280_px(tmp_path: Path) -> None:
    """The widest pages: a table that is wider is cut off, with a scroll bar below it."""
    for name in ("mkdocs", "material", "mkdocstrings"):
        needs.package(name)
    needs.require("chromium")
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q", "--site-dir", str(site)], cwd=ROOT, check=True)
    right = "Math.max(...[...document.querySelectorAll('table')].map((one) => one.getBoundingClientRect().right))"
    with Browser(tmp_path, width=1280) as browser:
        for page in ("faults", "filters", "rivals", "results", "training"):
            browser.open(site / f"{page}.html")
            assert browser.eval(right) < 1280.0, page


def test_the_navigation_names_pages_that_are_there() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("nav:\n", 1)[1]
    listed = set(re.findall(r"[\w-]+\.md", nav))
    assert listed <= {path.name for path in (ROOT / "docs").glob("*.md")}
