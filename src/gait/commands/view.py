"""`gait view`: look at a log and its estimates in a browser."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, names_in, quote, refuse_overwriting, share_bar
from gait.errors import GaitError, os_errors
from gait.read_options import ReadOptions
from gait.rows import Row

if TYPE_CHECKING:
    from gait.log import Log, Trajectory
    from gait.report.view_page import Track
    from gait.robot import Robot


@dataclass(frozen=True)
class ViewOptions(Common, ReadOptions):
    """Look at a log in a browser: the robot walking in 3D beside plots of every method, with slips and faults marked.

    The page is served to this machine alone until Ctrl-C; --out writes it as one file instead, which opens anywhere,
    offline and on a phone. See docs/view.md.
    """

    log: Positional[Path]
    """The log, in any format that gait reads."""
    methods: tuple[str, ...] = ("gait-legs", "iekf")
    """Methods to run, such as gait-legs iekf; or all. The skeleton follows the first."""
    start: Literal["auto", "truth", "gravity"] = "auto"
    """Start from the true state, or at rest; auto takes ground truth if there is any."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """Write the page to this .html file, and serve nothing."""
    force: bool = False
    """Write over a file that is there."""
    port: int = 0
    """Port of the page on 127.0.0.1; any that is free by default."""


def run(options: ViewOptions) -> Outcome:
    """Read, estimate, and write or serve the page."""
    if options.out is not None:
        if options.out.suffix.lower() not in (".html", ".htm"):
            raise GaitError(f"{options.out} does not end in .html: name the page so")
        refuse_overwriting([options.out], options.force)
    with share_bar(options.interactive) as progress:
        from gait.io.atomic import atomic_path
        from gait.io.checked import correcting_words, read_checked, warnings_of, wrong_rows
        from gait.report.view_page import LEAST, events, slip_share, view_page

        progress("reading the log", 0.0)
        reading, findings = read_checked(options.log, options)
        log, notes = reading.log, [*warnings_of(findings, options), *reading.notes]
        progress("estimating", 0.2)
        robot, first, tracks = _tracks(options, log, notes)
        progress("drawing", 0.8)
        title = f"{options.log.name}: {log.duration:.1f} s of {robot.name}"
        found = events(log.reorder(robot), first, robot)
        page = view_page(title, log, robot, first, tracks)
        if options.out is not None:
            with atomic_path(options.out) as temporary:
                temporary.write_text(page, encoding="utf-8")
    names = " ".join(track["name"] for track in tracks)
    rows = [Row("duration", log.duration, "s"), Row("methods", names, "-")]
    rows += [Row(f"{kind}s", sum(one.kind == kind for one in found), "-") for kind in ("slip", "fault", "gap")]
    if share := slip_share(log):
        rows.append(Row("slip_fraction", share, "-"))
        lasting = f"slips: those that last {1e3 * LEAST:.0f} ms or longer"
        notes.append(f"{lasting}; slip_fraction: share of the samples in which a foot slips, however briefly")
    rows += wrong_rows(findings)
    if options.out is None:
        _serve(options, page)
        return Outcome(rows, title=title, notes=notes)
    rows.append(Row("size", options.out.stat().st_size / 1e6, "MB"))
    following = f"xdg-open {quote(options.out)}"
    if fix := correcting_words(findings, options):
        words = ["gait", "view", str(options.log), "--methods", *options.methods, "--out", str(options.out), "--force"]
        following = shlex.join([*words, *fix])
    return Outcome(rows, title=title, notes=notes, wrote=options.out, next=following)


def _tracks(options: ViewOptions, log: Log, notes: list[str]) -> tuple[Robot, Trajectory, list[Track]]:
    """The robot, the estimate of the first method, and what to show of each; notes say which cannot run, and why."""
    from gait.estimator import Estimator
    from gait.methods import BUILT_IN, DEFAULT
    from gait.report.view_page import frames, track_of

    found: list[Track] = []
    shown: tuple[Robot, Trajectory] | None = None
    why, rows = "no method was given", frames(log.t)
    methods = names_in(options.methods)
    for method in dict.fromkeys((DEFAULT, *BUILT_IN) if "all" in methods else methods):
        try:
            estimator = Estimator.load(options.robot or log.load_robot(), method)
            trajectory, details = estimator.run_with_details(log, options.start)
        except GaitError as error:
            why = str(error)
            notes.append(f"left out {method}: {why}")
            continue
        found.append(track_of(method, trajectory, details, rows))
        shown = shown or (estimator.robot, trajectory)
    if shown is None:
        raise GaitError(f"no method can estimate {options.log}: {why}")
    return *shown, found


def _serve(options: ViewOptions, page: str) -> None:
    """Give the page to browsers on this machine until Ctrl-C."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    content = page.encode()

    class Page(BaseHTTPRequestHandler):
        """One page, whatever is asked for."""

        def do_GET(self) -> None:
            """Send it; a page elsewhere that names this machine by another name is refused."""
            known = self.headers.get("Host", "").rpartition(":")[0] in ("127.0.0.1", "localhost")
            self.send_response(200 if known and self.path == "/" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            body = content if known and self.path == "/" else b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Nothing is worth a line."""

    with os_errors(f"cannot serve at port {options.port}"), HTTPServer(("127.0.0.1", options.port), Page) as server:
        print(f"http://127.0.0.1:{server.server_port}/ in a browser on this machine; Ctrl-C stops", file=sys.stderr)
        sys.stderr.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
