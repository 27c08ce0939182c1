"""`gait view`: one page that needs no network, in a real browser; what it shows is what the estimator said."""

import base64
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import needs
import numpy as np
import pytest
from browser import Browser

from gait import Estimator, Log
from gait.cli import main
from gait.report.view_page import FRAMES, events, frames
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def log() -> Log:
    """A walk with a stuck leg, a gap and a slip."""
    log = Log.load(SAMPLE).slice(4.0, 12.0)
    q, dq, foot, contact = (getattr(log, name).copy() for name in ("q", "dq", "foot_vel_w", "contact"))
    q[500:1100, 3:6], dq[500:1100, 3:6] = q[500, 3:6], 0.0
    foot[3000:3200, 1], contact[3000:3200, 1] = [0.9, 0.0, 0.0], True
    log = log.replace(q=q, dq=dq, foot_vel_w=foot, contact=contact)
    rows = np.r_[0:2000, 2150 : len(log)]
    return log.replace(**{name: array[rows] for name, array in log.arrays().items()})


@pytest.fixture(scope="module")
def page(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("view")
    log.save(folder / "walk.npz")
    assert main(["view", str(folder / "walk.npz"), "--out", str(folder / "page.html"), "--json"]) == 0
    return folder / "page.html"


def data_of(page: Path) -> dict:
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert found
    return json.loads(found[1])


def test_the_page_holds_the_estimate_and_the_skeleton(log: Log, page: Path) -> None:
    data, rows = data_of(page), frames(log.t)
    assert [one["name"] for one in data["tracks"]] == ["truth", "gait-legs", "iekf"]
    estimator = Estimator.load("go1")
    expected = estimator.run(log)
    vel = np.frombuffer(base64.b64decode(data["tracks"][1]["vel"]), dtype="<f4").reshape(-1, 3)
    np.testing.assert_allclose(vel, expected.vel_b[rows], atol=1e-6)
    points = np.frombuffer(base64.b64decode(data["skeleton"]), dtype="<i2").reshape(len(rows), 4, data["points"], 3)
    np.testing.assert_allclose(points[:, :, -1] / 1e3, estimator.robot.feet(log.q[rows]), atol=6e-4)


def test_slips_faults_and_gaps_are_where_they_were_put(log: Log, page: Path) -> None:
    found = {event["kind"]: event for event in data_of(page)["events"]}
    assert found["gap"]["start"] == pytest.approx(1999 / 500, abs=0.01)
    assert found["slip"]["words"] == "FL slips (ground truth)"
    assert found["slip"]["start"] == pytest.approx(6.0, abs=0.05)
    stale = next(event for event in data_of(page)["events"] if "FL stale" in event["words"])
    assert 1.0 <= stale["start"] < 1.3 and 2.0 < stale["end"] < 2.6
    robot = Estimator.load("go1").robot
    assert events(Log.load(SAMPLE), Estimator.load("go1").run(Log.load(SAMPLE)), robot) == []


def test_ten_minutes_are_thinned() -> None:
    assert len(frames(np.arange(300_000) / 500.0)) == FRAMES
    assert len(frames(np.arange(10_000) / 500.0)) == pytest.approx(1200, abs=2)
    assert frames(np.array([0.0, 0.002])).tolist() == [0, 1]


@needs.chromium
@needs.bash
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_a_browser_shows_one_moment_in_all_views(page: Path, tmp_path: Path, width: int, height: int) -> None:
    with Browser(tmp_path / "profile", width, height) as browser:
        browser.open(page)
        browser.until("document.documentElement.dataset.ready === '1'")
        assert browser.eval("document.documentElement.scrollWidth <= innerWidth")
        ink = (
            "((id) => { const c = document.getElementById(id); const d = c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data; let n = 0;"
            " for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n / (c.width * c.height); })"
        )
        for canvas in ("scene", "curves", "cursor"):
            # Drawn in the next frame, which a busy machine may show late.
            browser.until(f"{ink}('{canvas}') > 5e-4")
        # The moment under the pointer is that of the clock, of the slider and of the readout.
        box = browser.eval("(({x, y, width, height}) => [x, y, width, height])(cursor.getBoundingClientRect())")
        browser.click(box[0] + 0.6 * box[2], box[1] + 0.5 * box[3])
        at = browser.eval("view.state.at")
        assert 3.0 < at < 6.0
        assert browser.eval("clock.textContent") == f"{at:.2f} s"
        assert abs(browser.eval("Number(time.value)") / 1000 * 8.0 - at) < 0.05
        assert browser.eval("document.getElementById('readout').textContent").startswith("t ")
        # A method that is switched off is gone from the readout and from the plots.
        before = browser.eval(f"{ink}('curves')")
        browser.eval("document.querySelectorAll('#tracks input')[1].click()")
        assert not browser.eval("view.tracks[1].on") and browser.eval(f"{ink}('curves')") != before
        assert "gait-legs" not in browser.eval("document.getElementById('readout').textContent")
        # An event brings its moment to all views.
        browser.eval("document.querySelector('#events .slip').click()")
        assert browser.eval("view.state.at") == pytest.approx(6.0, abs=0.05)
        assert browser.eval("view.state.to - view.state.from") < 5.0
        browser.eval("document.getElementById('play').click()")
        browser.until("view.state.at > 6.1")
        # Reading the canvas back is what this test does, not the page.
        problems = [one for one in browser.problems if "willReadFrequently" not in one]
        assert problems == [] and all(url.startswith("file:") for url in browser.requests)


def test_the_page_is_served_to_this_machine_alone(page: Path) -> None:
    words = [sys.executable, "-m", "gait", "view", str(page.with_name("walk.npz")), "--methods", "iekf"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            url = re.match(r"(http://127\.0\.0\.1:\d+/) in a browser", line)
            assert url, line
            with urllib.request.urlopen(url[1], timeout=60) as answer:
                assert b'id="scene"' in answer.read()
            # A foreign page that has this machine under its own name gets nothing.
            asked = urllib.request.Request(url[1], headers={"Host": "evil.example:80"})
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(asked, timeout=60)
        finally:
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "duration" in out


def test_a_page_is_not_written_over(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(page.with_name("walk.npz"))
    assert main(["view", log, "--out", str(page)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert main(["view", log, "--out", str(page.with_suffix(".txt"))]) == 1
    assert "does not end in .html" in capsys.readouterr().err
