"""Whether `gait live` keeps up: a log played over the loopback by one process, estimated and recorded by another.

python benchmarks/live.py                # add --json for machines
python benchmarks/live.py --write        # into docs/live.md
python benchmarks/live.py --robots g1 --rates 1000 --log g1_walk.npz    # a walk of another robot than the sample's

Latency runs from a message being sent (DDS), or received by the kernel (UDP), to its odometry being on its way.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from sections import DOCS, markdown, paragraph, write_section

from gait.log.log import Log
from gait.report.describe import installation
from gait.report.table import rows_to_table
from gait.rows import Row, rows_to_json
from gait.samples import SAMPLE

CASES = {
    "ros": ("ROS 2 topics: IMU, joints, targets", ["ros", "--targets", "/joint_targets"]),
    "go2": ("Go2: state and command", ["go2", "--robot", "go1"]),
    "go1": ("Go1: UDP packets", ["go1", "--port", "8191"]),
    "g1": ("G1: state and command", ["g1"]),
}
"""By the robot that is played: what it is, and how gait listens to it."""
NETWORK = ["--domain", "87", "--interface", "lo"]
KEPT = ("samples", "lost", "latency_p50", "latency_p99", "latency_max", "dropped")


def measure(robot: str, rate: float, log: Path, folder: Path) -> list[Row]:
    """One case: how many rows were sent, and what became of them."""
    command = [sys.executable, "-m", "gait", "live", *CASES[robot][1], *NETWORK, "--json"]
    record = folder / f"{robot}-{rate:.0f}.mcap"
    said = folder / f"{robot}-{rate:.0f}.txt"
    with said.open("w") as file:
        live = subprocess.Popen(
            [*command, "--every", "0.5", "--record", record], stdout=subprocess.PIPE, stderr=file, text=True
        )
        # UDP does not wait for the receiver.
        while "waiting" not in said.read_text() and live.poll() is None:
            time.sleep(0.1)
        words = [sys.executable, "-m", "gait.live.play", robot, log, "--rate", rate, *NETWORK, "--port", 8191]
        sent = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout
        live.terminate()
        out, _ = live.communicate(timeout=60)
    found = {row["name"]: row for row in json.loads(out)["rows"]}
    name = f"{robot}.{rate:.0f}hz"
    rows = [Row(f"{name}.sent", int(sent.split()[1]), "-")]
    return rows + [Row(f"{name}.{one}", found[one]["value"], found[one]["unit"]) for one in KEPT]


def section(rows: list[Row], seconds: float) -> str:
    """A table and a word on the machine, as they stand in the documentation."""
    values = {row.name: float(row.value) for row in rows}
    cases = list(dict.fromkeys(row.name.rsplit(".", 1)[0] for row in rows if row.name.count(".") == 2))
    lines = []
    for case in cases:
        robot, rate = case.split(".")
        cells = [CASES[robot][0], rate.removesuffix("hz")]
        cells += [f"{values[f'{case}.{name}']:.0f}" for name in ("sent", "samples", "lost")]
        lines.append([*cells, *(f"{values[f'{case}.{name}']:.2f}" for name in KEPT[2:5])])
    heads = ["source", "Hz", "sent", "estimated", "lost", "median, ms", "99 % below, ms", "longest, ms"]
    about = {row.name: row.value for row in installation()}
    text = (
        f"{seconds:.0f} s each, odometry and tf sent and recorded. Measured on {about['cpu']}, {about['cores']} cores"
        f" for the one that plays and the one that estimates, at a load average of {values['load_average']:.1f}; Python"
        f" {platform.python_version()}, cyclonedds {version('cyclonedds')}."
    )
    return f"{markdown(heads, lines)}\n\n{paragraph(text)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="+", type=float, default=[500.0, 1000.0])
    parser.add_argument("--robots", nargs="+", choices=list(CASES), default=["ros", "go2", "go1"])
    parser.add_argument("--log", type=Path, default=SAMPLE, help="what is played; of a G1 for g1")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--write", action="store_true", help="put the table into docs/live.md")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [Row("load_average", os.getloadavg()[0], "-")]
    with tempfile.TemporaryDirectory() as folder:
        log = Log.load(args.log)
        path = Path(folder) / "walk.npz"
        log.slice(t1=float(log.t[0]) + args.seconds).save(path)
        for robot in args.robots:
            for rate in args.rates:
                rows += measure(robot, rate, path, Path(folder))
    if args.json:
        print(rows_to_json(rows))
    else:
        from rich.console import Console

        Console().print(rows_to_table(rows))
    if args.write:
        write_section("live", section(rows, args.seconds), DOCS / "live.md")


if __name__ == "__main__":
    main()
