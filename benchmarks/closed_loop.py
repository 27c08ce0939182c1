"""Section of docs/legs.md: our walking controller fed by estimators, on several grounds.

    python benchmarks/closed_loop.py --write                          # truth, gait-legs, gait and iekf; 15 minutes
    python benchmarks/closed_loop.py --methods model.safetensors --courses "trot on rubber"

`gait bench loop` measures one of these walks, or a policy; `gait.bench.feedback` describes robot and figures.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from sections import DOCS, markdown, write_section

from gait.bench.feedback import Source, loop_study
from gait.rows import rows_to_json
from gait.sim.plan import CollectConfig

COURSES = {
    "trot on rubber": ("trot", "rubber", 60.0),
    "trot on slippery": ("trot", "slippery", 60.0),
    "trot on debris": ("trot", "debris", 60.0),
    "bound on rubber": ("bound", "rubber", 20.0),
}
"""Gait, ground and seconds by name."""


def line(course: str, source: Source) -> list[str]:
    """A source on a course, for the table."""
    when = ", ".join(f"{walk.fell_at:.1f}" for walk in source.walks if walk.fell_at is not None) or "-"
    falls = f"{source.falls} of {len(source.walks)}"
    return [course, source.name, falls, f"{source.mean('velocity'):.3f}", f"{source.mean('tracking'):.3f}", when]


def main() -> None:
    """Walk, and print a table while it grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["truth", "gait-legs", "gait", "iekf"], help="or model files")
    parser.add_argument("--courses", nargs="+", default=list(COURSES), choices=list(COURSES))
    parser.add_argument("--seed", type=int, default=71001, help="not one of the benchmark's, 61001 to 63001")
    parser.add_argument("--runs", type=int, default=8, help="walks of each method on each course")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    parser.add_argument("--write", action="store_true", help="write the section of docs/legs.md")
    options = parser.parse_args()
    rows, lines = [], []
    for name in options.courses:
        gait, terrain, seconds = COURSES[name]
        plan = CollectConfig(
            gait, terrain, sensors="twin", nominal=True, seed=options.seed, seconds=seconds, episodes=options.runs
        )
        for source in loop_study(plan, options.methods, options.workers):
            rows += [replace(row, name=f"{name}.{row.name}") for row in source.rows(None)]
            lines.append(line(f"{name}, {seconds:g} s", source))
            print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    table = markdown(["walk", "fed by", "falls", "velocity error, m/s", "tracking error, m/s", "fell at, s"], lines)
    print(rows_to_json(rows) if options.json else table)
    if options.write:
        write_section("loop", table, DOCS / "legs.md")


if __name__ == "__main__":
    main()
