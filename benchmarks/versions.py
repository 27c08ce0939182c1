"""This version against another one that is installed beside it: `run`, and `update` paced at 500 Hz, interleaved.

git worktree add --detach ../other 29b5141 && python -m venv ../other/.venv && ../other/.venv/bin/pip install ../other
python benchmarks/versions.py ../other/.venv/bin/python
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

LOG = Path(__file__).parents[1] / "src/gait/samples/go1_trot.mcap"
METHODS = "gait", "gait-legs", "iekf"
TURN = """
import json, sys, time
import numpy as np
import gait

log = gait.Log.load(sys.argv[1])
samples = list(zip(log.t, log.gyro, log.accel, log.q, log.dq))
found = {}
for method in sys.argv[2].split(",") if int(sys.argv[3]) else ():
    estimator = gait.Estimator.load("go1", method=method)
    estimator.run(log)
    times = []
    for _ in range(int(sys.argv[3])):
        begin = time.perf_counter()
        estimator.run(log)
        times.append(time.perf_counter() - begin)
    found[f"{method} run, us a sample"] = 1e6 * float(np.median(times)) / len(log.t)

if not int(sys.argv[4]):
    sys.exit(json.dump(found, sys.stdout))
estimator = gait.Estimator.load("go1", method="gait")
keywords = [{"q_des": q_des, "tau": tau} for q_des, tau in zip(log.q_des, log.tau)]
for sample, known in zip(samples[:200], keywords):
    estimator.update(*sample, **known)
times, due = [], time.perf_counter()
for sample, known in list(zip(samples, keywords))[200:200 + int(sys.argv[4])]:
    due += 0.002
    time.sleep(max(due - time.perf_counter() - 0.0003, 0.0))
    while time.perf_counter() < due:
        pass
    begin = time.perf_counter()
    estimator.update(*sample, **known)
    times.append(time.perf_counter() - begin)
found["gait update at 500 Hz, median, us"], found["gait update at 500 Hz, p99, us"] = (
    float(1e6 * value) for value in np.percentile(times, [50, 99])
)
json.dump(found, sys.stdout)
"""


def main() -> None:
    """Take turns, and print medians with their ranges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="the interpreter of the other version's environment")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--runs", type=int, default=30, help="of the sample log, for each method and turn")
    parser.add_argument("--paced", type=int, default=3000, help="samples of a paced turn")
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(options.turns):
        for name, python in (("this", sys.executable), ("other", options.other)):
            for runs, paced in ((options.runs, 0), (0, options.paced)):
                arguments = [python, "-c", TURN, str(LOG), ",".join(METHODS), str(runs), str(paced)]
                told = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
                for what, value in json.loads(told).items():
                    found[what][name].append(value)
    for what, values in found.items():
        this, other = (sorted(values[name]) for name in ("this", "other"))
        ratio = statistics.median(other) / statistics.median(this)
        print(
            f"{what}: {statistics.median(this):.1f} ({this[0]:.1f} to {this[-1]:.1f}), other"
            f" {statistics.median(other):.1f} ({other[0]:.1f} to {other[-1]:.1f}), ratio {ratio:.2f}"
        )


if __name__ == "__main__":
    main()
