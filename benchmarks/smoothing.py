"""Filter and smoother on walks with ground truth, and what each step of the smoother gains: docs/smoothing.md.

    python benchmarks/smoothing.py [--write] [WALK...]

By default the first walk of each course of both test sets (`gait bench rivals` keeps those of version 2); the first
20 s are taken.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sections import DOCS, markdown, paragraph, write_section

import gait
from gait import Estimator, Log, Trajectory
from gait.arrays import Array
from gait.bench.courses import FOLDERS, courses_of, make_test_set
from gait.engine import options_of
from gait.smoothing import LEG_INFLATION, Smoothed, leg_shifts, on_the_ground, shows_forces, smooth_once, smooth_with

SECONDS = 20.0
WINDOW = 5.0
"""Over which drift is taken, s."""
BAND = 0.5
"""Hz: errors below and above it are given apart."""


def rms(values: Array) -> float:
    """Of the length of vectors (N, 3)."""
    return float(np.sqrt(np.square(values).sum(1).mean()))


def nees(errors: Array, covs: Array) -> float:
    """Mean over samples; 3 is right."""
    return float(np.einsum("ni,nij,nj->n", errors, np.linalg.inv(covs), errors).mean())


def slow(errors: Array, log: Log) -> Array:
    """What is slower than `BAND`."""
    spectrum = np.fft.rfft(errors, axis=0)
    spectrum[np.fft.rfftfreq(len(log), 1.0 / log.rate) > BAND] = 0.0
    return np.fft.irfft(spectrum, len(log), axis=0)


@dataclass(frozen=True)
class Scores:
    """One estimate of one walk."""

    velocity: float
    position: float
    nees: float
    slow: float
    quick: float

    @staticmethod
    def of(found: Trajectory, log: Log) -> Scores:
        """Against ground truth."""
        errors, slower = found.vel_b - log.vel_b, slow(found.vel_b - log.vel_b, log)
        cov = found.need("vel_cov")
        return Scores(
            rms(errors), rms(found.pos_w - log.need("pos_w")), nees(errors, cov), rms(slower), rms(errors - slower)
        )


@dataclass(frozen=True)
class Measured:
    """A walk."""

    filter: Scores
    steps: Mapping[str, Scores]
    """By what the smoother does, one after the other."""
    done: Smoothed
    seconds: tuple[float, float]
    """Processor time of filter and smoother."""


def measure(log: Log) -> Measured:
    """Filter and smoother, step by step."""
    estimator = Estimator.load(log.load_robot())
    log = log.reorder(estimator.robot)
    began = time.process_time()
    filtered = estimator.run(log)
    between = time.process_time()
    done = smooth_with(estimator, log)
    seconds = (between - began, time.process_time() - between)
    delay = options_of(estimator.robot).joint_delay
    steps = {"smoother alone": smooth_once(estimator, log).smoothed}
    if done.latency is not None and done.latency.significant:
        delay = done.latency.value
    own = estimator.with_options(joint_delay=delay, leg_inflation=LEG_INFLATION)
    one = smooth_once(own, log)
    steps["with latency"] = one.smoothed
    if shows_forces(log, estimator.robot):
        one = smooth_once(own, log, shifts=leg_shifts(own, log, one.smoothed, "auto"))
        steps["with compliance"] = one.smoothed
        steps["with ground"] = on_the_ground(one, own, log).smoothed
    steps["whole"] = done.smoothed
    scores = {name: Scores.of(found, log) for name, found in steps.items()}
    return Measured(Scores.of(filtered, log), scores, done, seconds)


def table(found: Mapping[str, Measured]) -> str:
    """A line for each walk."""
    rows = []
    for name, one in found.items():
        last, latency = list(one.steps.values())[-1], one.done.latency
        shown = "-" if latency is None else f"{1e3 * latency.value:.1f} ± {1e3 * latency.std:.1f}"
        rows.append([
            name, shown, f"{one.filter.velocity:.4f}, {last.velocity:.4f}",
            ", ".join(f"{step.velocity / one.filter.velocity:.2f}" for step in one.steps.values()),
            f"{one.filter.position:.3f}, {last.position:.3f}", f"{last.position / one.filter.position:.2f}",
            f"{one.filter.nees:.1f}, {last.nees:.1f}",
            f"{one.filter.slow:.4f}, {last.slow:.4f}", f"{one.filter.quick:.4f}, {last.quick:.4f}",
        ])  # fmt: skip
    heads = [
        "walk", "latency, ms", "velocity, m/s: filter, smoother",
        "ratio: alone, with latency, with compliance, with ground, whole", "position, m: filter, smoother", "ratio",
        "NEES of the velocity (3): filter, smoother", "below 0.5 Hz, m/s", "above, m/s",
    ]  # fmt: skip
    spent = np.array([one.seconds for one in found.values()]).mean(0)
    note = (
        f"20 s take {spent[0]:.2f} s for the filter and {spent[1]:.1f} s for the smoother, processor time of one core."
    )
    return f"{markdown(heads, rows)}\n\n{paragraph(note)}"


def first_walks(twin: int) -> dict[str, Path]:
    """Of each course, by name; simulated where they are not there."""
    courses = [replace(course, runs=1) for course in courses_of(twin)]
    paths = {one.name: FOLDERS[twin] / f"{one.name}-{one.seconds:g}s/episode_00000.npz" for one in courses}
    if not all(path.exists() for path in paths.values()):
        make_test_set(courses, FOLDERS[twin], workers=1)
    return paths


def study(walks: Mapping[str, Path]) -> str:
    """Measure walks, and print as it goes."""
    found = {}
    for name, path in walks.items():
        found[name] = measure(gait.open_log(path).slice(0.0, SECONDS))
        print(name, {step: round(one.velocity, 4) for step, one in found[name].steps.items()}, flush=True)
    return table(found)


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks", nargs="*", type=Path, help="files with ground truth")
    parser.add_argument("--write", action="store_true", help="write the sections of docs/smoothing.md")
    args = parser.parse_args(words)
    if args.walks:
        print(study({f"{path.parent.name}/{path.stem}": path for path in args.walks}))
        return
    for twin in (2, 1):
        text = study(first_walks(twin))
        print(text)
        if args.write:
            write_section(f"smoothing-twin-{twin}", text, DOCS / "smoothing.md")


if __name__ == "__main__":
    main()
