"""Writes the figures of docs/fusion.md: a late pose with outliers on walks, and what a correction costs.

    python benchmarks/fusion.py [--write] [WALK ...]

Walks are files with ground truth; by default the sample log.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from sections import DOCS, write_section

import gait
from gait import Estimator, Log, lie
from gait.arrays import Array
from gait.external import ExternalSensor
from gait.samples import SAMPLE

LEVER, STD, LATENCY, OUTLIERS = np.array([0.2, 0.05, 0.1]), (0.03, 0.01), 0.1, 0.05


def _nees(error: Array, cov: Array) -> float:
    return float(error @ np.linalg.solve(cov, error))


def fused(log: Log, method: str, seed: int = 0) -> dict[str, float]:
    """A pose at 10 Hz, 100 ms late, one in twenty a metre off."""
    rng, log = np.random.default_rng(seed), log.reorder("go1")
    est = Estimator.load("go1", method, sensors={"lidar": ExternalSensor(p_bs=LEVER, std=STD)})
    est.start_as(log)
    waiting: list[tuple[float, float, Array, Array, bool]] = []
    errors: dict[str, list[float]] = {name: [] for name in ("vel", "pos", "vel_nees", "pos_nees", "jump")}
    spent, wrong, step = list[float](), 0, round(0.1 * log.rate)
    for k, row in enumerate(log.rows()):
        state = est.update(row)
        R = lie.rotation_from_quat(log.quat_wb_wxyz[k])
        if k % step == 0:
            off, p = rng.random() < OUTLIERS, log.pos_w[k] + R @ LEVER + STD[0] * rng.normal(size=3)
            direction = rng.normal(size=3)
            p = p + off * direction / np.linalg.norm(direction)
            quat = lie.quat_from_rotation(lie.so3_exp(STD[1] * rng.normal(size=3)) @ R)
            waiting.append((row.t + LATENCY, row.t, p, quat, off))
        if waiting and row.t >= waiting[0][0]:
            _, t, p, quat, off = waiting.pop(0)
            before, begin = est.predict(row.t).vel_b, time.perf_counter()
            result = est.correct("pose", t, (p, quat), sensor="lidar")
            spent.append(time.perf_counter() - begin)
            wrong += result.taken == off
            state = est.predict(row.t)
            errors["jump"].append(float(np.linalg.norm(state.vel_b - before)))
        vel, pos = state.vel_b - R.T @ log.vel_w[k], state.pos_w - log.pos_w[k]
        errors["vel"].append(float(vel @ vel))
        errors["pos"].append(float(pos @ pos))
        errors["vel_nees"].append(_nees(vel, state.vel_cov))
        errors["pos_nees"].append(_nees(pos, state.pose_cov[:3, :3]))
    return {
        "velocity": np.mean(errors["vel"]) ** 0.5, "position": np.mean(errors["pos"]) ** 0.5,
        "position_max": max(errors["pos"]) ** 0.5, "velocity_nees": float(np.mean(errors["vel_nees"])),
        "position_nees": float(np.mean(errors["pos_nees"])), "jump": max(errors["jump"]),
        "misjudged": wrong, "cost": float(np.median(spent)) * 1e6,
    }  # fmt: skip


def alone(log: Log, method: str) -> dict[str, float]:
    """The same without the pose."""
    log = log.reorder("go1")
    found = Estimator.load("go1", method).run(log)
    vel, pos = found.vel_b - log.vel_b, found.pos_w - log.pos_w
    return {"velocity": float((vel**2).sum(1).mean() ** 0.5), "position": float((pos**2).sum(1).mean() ** 0.5)}


def buffer_cost(log: Log) -> tuple[float, float]:
    """Microseconds of an update without and with the buffer; the two take turns, medians."""
    rows, times = list(log.reorder("go1").rows())[:4000], np.zeros((2, 4000))
    pair = [Estimator.load("go1"), Estimator.load("go1", sensors={"x": ExternalSensor()})]
    for k, row in enumerate(rows):
        for i, est in enumerate(pair):
            begin = time.perf_counter()
            est.update(row)
            times[i, k] = time.perf_counter() - begin
    without, with_buffer = np.median(times, axis=1) * 1e6
    return float(without), float(with_buffer)


def main() -> None:
    """Measure, print, and write if asked."""
    words = [word for word in sys.argv[1:] if word != "--write"]
    lines = [
        "A pose at 10 Hz with errors of 0.03 m and 0.01 rad, 100 ms late, one in twenty a metre off"
        f" (`python benchmarks/fusion.py{' WALK...' if words else ''}`):",
        "",
        "| walk, method | velocity, m/s: alone, fused | position, m: alone, fused, largest |"
        " NEES (3): velocity, position | largest jump, m/s | outliers misjudged |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    cost = 0.0
    for word in words or [str(SAMPLE)]:
        log = gait.open_log(word)
        name = Path(word).stem if not words else f"{Path(word).parent.name}"
        for method in ("gait-legs", "iekf") if not words else ("gait-legs",):
            a, f = alone(log, method), fused(log, method)
            cost = f["cost"]
            lines.append(
                f"| {name}, `{method}` | {a['velocity']:.4f}, {f['velocity']:.4f} | {a['position']:.3f},"
                f" {f['position']:.3f}, {f['position_max']:.3f} | {f['velocity_nees']:.1f}, {f['position_nees']:.1f} |"
                f" {f['jump']:.3f} | {f['misjudged']:.0f} |"
            )
    without, with_buffer = buffer_cost(gait.open_log(SAMPLE))
    lines += [
        "",
        f"A correction that is 100 ms old takes {cost:.0f} us; the buffer adds {with_buffer - without:.1f} us to an"
        f" `update` of {without:.1f} us.",
    ]
    text = "\n".join(lines)
    if "--write" in sys.argv:
        write_section("fusion", text, DOCS / "fusion.md")
    else:
        print(text)


if __name__ == "__main__":
    main()
