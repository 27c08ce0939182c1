"""`gait bench`: measure what the documentation claims."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from tyro.conf import Positional

from gait.verbs import Common, Outcome


@dataclass(frozen=True)
class Options(Common):
    """Measure a part of the package.

    `sim`: does the simulated robot really walk? Falls, footfall patterns, speed and real-time factor of every gait over
    many seeds.

    `latency`: how long a step of the estimator takes, against torch, ONNX Runtime, the exported C and gtsam's filter,
    as far as they are installed.
    """

    what: Positional[Literal["sim", "latency"]]
    """What to measure."""
    quick: bool = False
    """For sim: fewer and shorter episodes, in under a minute."""
    seconds_per_rival: float = 1.0
    """For latency: how long each rival is timed."""
    methods: tuple[str, ...] = ()
    """For latency: methods to measure; all whose weights are there by default."""
    cold: bool = False
    """For latency: time a start without compiled code as well, which takes a minute or more."""


def run(options: Options) -> Outcome:
    """Run the study and say how it goes on the way."""
    talk = sys.stderr.isatty() and not options.json
    if options.what == "latency":
        return _latency(options, talk)
    from gait.sim.walkbench import walking_report

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    rows = walking_report(quick=options.quick, progress=say if talk else None)
    return Outcome(rows, title="walking", next="gait sim --gait trot --render trot.gif")


def _latency(options: Options, talk: bool) -> Outcome:
    def say(line: str) -> None:
        # One line, written over and over.
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    if talk:
        say("loading; without compiled code in the cache this takes a minute or more")
    from gait.runtime.latency import latency_report

    rows = latency_report(options.methods or None, options.seconds_per_rival, options.cold, say if talk else None)
    if talk:
        say("")
    return Outcome(rows, title="one sample in, state out: median time", next="gait warmup")
