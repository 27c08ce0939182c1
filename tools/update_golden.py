"""Recompute the golden outputs in `tests/golden`: `python tools/update_golden.py`.

Prints the largest differences from what is stored, then overwrites it; `--check` leaves the files as they are. A commit
that changes the outputs says why.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
import conftest  # noqa: E402, F401  (sets the cache of compiled code)
from golden import recorded  # noqa: E402
from golden.cases import CASES  # noqa: E402
from golden.recorded import Record  # noqa: E402

SUMMARY = ROOT / "tests/golden/SUMMARY.txt"
SHOWN = ("quat_wb_wxyz", "vel_w", "pos_w", "gyro_bias", "accel_bias", "vel_var", "pose_var", "predicted_vel")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument("--methods", nargs="+", choices=recorded.METHODS, help="with --check: these methods alone")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), help="with --check: these cases alone")
    options = parser.parse_args()
    if not options.check and (options.methods or options.cases):
        parser.error("--methods and --cases need --check: the files are written all together")
    wanted = options.cases or CASES
    print("largest differences from the stored outputs; of variances, relative")
    print(f"{'method':10}{'case':20}" + "".join(f"{name:>14}" for name in SHOWN) + "  health")
    computed = {}
    for method in options.methods or recorded.METHODS:
        stored = recorded.load(method)
        computed[method] = {}
        for case in recorded.cases_of(method):
            if case not in wanted:
                continue
            record = computed[method][case] = recorded.compute(method, case)
            print(f"{method:10}{case:20}{_compared(method, case, record, stored.get(case))}", flush=True)
    if options.check:
        return
    paths = [recorded.save(method, records) for method, records in computed.items()]
    SUMMARY.write_text("\n".join(_summary(computed)) + "\n", encoding="utf-8")
    for path in (*paths, SUMMARY):
        print(f"wrote {os.path.relpath(path)}, {path.stat().st_size / 1e3:.0f} kB")


def _compared(method: str, case: str, record: Record, stored: Record | None) -> str:
    """One line: what became of a case."""
    if stored is None:
        return "  new"
    found = recorded.complaints(record, stored, recorded.tolerances_of(method, case))
    if "refused" in record or "refused" in stored:
        return f"  {found[0]}" if found else "  refused, as stored"
    differences = recorded.largest_differences(record, stored)
    if not differences:
        return f"  {found[0]}"
    health, before = recorded.health_of(record), recorded.health_of(stored)
    rows = int((health != before).sum())
    shown = [f"{differences[name]:14.1e}" if name in differences else f"{'':14}" for name in SHOWN]
    return (
        "".join(shown) + ("  equal" if rows == 0 else f"  {rows} rows differ") + ("  beyond tolerance" if found else "")
    )


def _summary(computed: dict[str, dict[str, Record]]) -> Iterator[str]:
    """One line a method and case, so that a change shows in a text diff."""
    yield "# Written by tools/update_golden.py. A line: method, case, rows, last position (m), mean speed (m/s),"
    yield "# largest standard deviation of the velocity (m/s), digest of the health bits, rows with each health bit."
    for method, records in computed.items():
        for case, record in records.items():
            yield f"{method:10}{case:20}" + _line(record)


def _line(record: Record) -> str:
    if "refused" in record:
        return f"refused: {record['refused'][0]}"
    health = recorded.health_of(record)
    speed, std = record["overall"][0]
    place = "".join(f"{value + 0.0:11.5f}" for value in np.round(record["pos_w"][-1], 5))
    counts = [f"{name} {rows}" for bit, name in recorded.BITS.items() if (rows := int((health >> bit & 1).sum()))]
    digest = hashlib.sha256(health.astype("<u4").tobytes()).hexdigest()[:8]
    return f"{len(health):6}{place}{speed:11.6f}{std:12.5g}  {digest}  {', '.join(counts)}"


if __name__ == "__main__":
    main()
