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
    """

    what: Positional[Literal["sim"]]
    """What to measure."""
    quick: bool = False
    """Fewer and shorter episodes, in under a minute."""


def run(options: Options) -> Outcome:
    """Run the study and say how it goes on the way."""
    from gait.sim.walkbench import walking_report

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    rows = walking_report(quick=options.quick, progress=say if sys.stderr.isatty() and not options.json else None)
    return Outcome(rows, title="walking", next="gait sim --gait trot --render trot.gif")
