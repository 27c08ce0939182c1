"""Recordings of real robots as logs, with the protocol by which estimates of them are judged.

    python benchmarks/real_logs.py                                        # gait-legs, iekf, iekf-sr on all of them
    python benchmarks/real_logs.py --methods gait-legs --rates 200 500 --no-targets

The recordings lie in `shared/real` in a folder above the checkout, which is for evaluation alone: nothing is trained or
tuned on them. Ground truth is motion capture: its position is smoothed over 0.1 s (Hann window) and differentiated, and
the estimated velocity is smoothed alike before the two are compared.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from sections import markdown

import gait.robot
from gait import Estimator, Log, Robot, Trajectory
from gait.arrays import Array, BoolArray
from gait.bench.realism import even_signals
from gait.errors import GaitError
from gait.metrics.consistency import coverage, nees
from gait.metrics.trajectory_error import relative_error
from gait.quaternions import rotate, rotate_inverse

WINDOW = 0.1
"""Length of the smoothing window, s: 21 samples at 200 Hz, 51 at 500 Hz."""
A1_SKIP, GO2_SKIP = 4.0, 1.0
"""Seconds at the start that are not judged."""
GO2_MARKER_B = np.array([-0.018, 0.002, 0.052])
"""Where the tracked marker is on the Go2's body."""


def real_folder() -> Path:
    """The folder of the recordings, in the nearest folder above this file that has one."""
    for parent in Path(__file__).resolve().parents:
        if (parent / "shared/real").is_dir():
            return parent / "shared/real"
    raise GaitError("no recordings of real robots: put shared/real beside the checkout")


@dataclass(frozen=True)
class Recording:
    """A log of a real robot and which of its samples count."""

    name: str
    robot: Robot
    log: Log
    scored: BoolArray
    """Samples that are judged (N,): ground truth is valid, and the start is over."""
    start: str
    """How an estimator starts: `truth` or `gravity`."""

    @property
    def walking(self) -> Log:
        """The part that is judged, from its first to its last sample."""
        rows = np.flatnonzero(self.scored)
        return self.log.slice(self.log.t[rows[0]], self.log.t[rows[-1]] + 1e-9)


def smoothed(values: Array, rate: float) -> Array:
    """Values (N, ...) as the protocol smooths them."""
    return even_signals.smoothed(values, rate, WINDOW)


def truth_velocity(pos_w: Array, rate: float) -> Array:
    """Velocity (N, 3) of motion capture: position smoothed over 0.1 s, then central differences."""
    return np.gradient(smoothed(pos_w, rate), 1.0 / rate, axis=0)


def a1_robot() -> Robot:
    """Unitree A1: geometry as published with the recording, masses and limits of Unitree's a1_description (BSD-3)."""
    tree = yaml.safe_load((Path(gait.robot.__file__).parent / "go1.yaml").read_text(encoding="utf-8"))
    tree["name"] = "a1"
    tree["leg"] |= {"foot_radius": 0.02}
    tree["leg"]["offsets"] = {"hip": [0.0, 0.0838, 0.0], "thigh": [0.0, 0.0, -0.2], "calf": [0.0, 0.0, -0.2]}
    tree["legs"] = {leg: [np.sign(x) * 0.1805, np.sign(y) * 0.047, 0.0] for leg, (x, y, _) in tree["legs"].items()}
    tree["imu"]["position"] = [0.0, 0.0, 0.0]
    tree["links"] = {
        "base": [_part(6.0, [0.0, 0.0041, -0.0005], [0.0158533, 0.0377999, 0.0456542, -3.66e-5, -6.11e-5, -2.75e-5])],
        "hip": [
            _part(0.696, [-0.003311, 0.000635, 3.1e-5], [4.69246e-4, 8.0749e-4, 5.52929e-4, -9.409e-6, 0, 0], "xy")
        ],
        "thigh": [
            _part(
                1.013,
                [-0.003237, -0.022327, -0.027326],
                [0.005529065, 0.005139339, 0.001367788, 4.825e-6, 3.43869e-4, 2.2448e-5],
                "y",
            )
        ],
        "calf": [
            _part(0.166, [0.006435, 0.0, -0.107388], [0.002997972, 0.003014022, 3.2426e-5, 0, -1.41163e-4, 0]),
            _part(0.06, [0.0, 0.0, -0.2], [9.6e-6, 9.6e-6, 9.6e-6, 0, 0, 0]),
        ],
    }
    tree["joints"] |= {
        "lower": [-0.80285, -1.0472, -2.69653], "upper": [0.80285, 4.18879, -0.9163], "torque": [33.5] * 3,
        "velocity": [21.0] * 3,
    }  # fmt: skip
    return Robot.of(tree, "the A1 of benchmarks/real_logs.py")


def _part(mass: float, com: list[float], inertia: list[float], mirror: str = "") -> dict[str, object]:
    """A rigid part of a link as a robot file holds it."""
    return {"mass": mass, "com": com, "inertia": inertia, "mirror": list(mirror)}


def a1_walk(rate: float = 200.0, folder: Path | None = None) -> Recording:
    """The walk of the A1: 22 s at 200 Hz with motion capture and the robot's own contact flags, without torques.

    Args:
        rate: 200 Hz is native; any other is interpolated linearly.
        folder: where the recordings are.
    """
    robot = a1_robot()
    with np.load((folder or real_folder()) / "a1_walk.npz") as file:
        names = ("t", "gyro", "accel", "q", "dq", "contact", "pos_w", "quat_wb_wxyz")
        log = Log(
            **{name: file[name] for name in names}, robot=robot.name, leg_names=file["leg_names"].tolist(),
            joint_names=file["joint_names"].tolist(), source="real A1, niudix/leg_odom",
        ).reorder(robot)  # fmt: skip
    return _recording("a1", robot, log, np.ones(len(log), dtype=bool), rate, A1_SKIP, "truth")


def go2_walks(rate: float = 200.0, *, targets: bool = True, folder: Path | None = None) -> list[Recording]:
    """The ten walks of a Go2 under a learned policy, 4 to 8 s at 200 Hz with motion capture, without torques.

    The accelerometer was not logged: `accel` is the second derivative of motion capture, without impacts. Roll and
    pitch of the ground truth are those of the robot's own attitude filter.

    Args:
        rate: 200 Hz is native; any other is interpolated linearly.
        targets: whether logs have the joint targets `q_des`.
        folder: where the recordings are.
    """
    robot, walks = Robot.load("go2"), []
    with np.load((folder or real_folder()) / "go2_walks.npz") as file:
        for name in file["names"].tolist():
            parts = ("t", "gyro", "q", "dq", "quat_wb_wxyz", *(["q_des"] if targets else []))
            arrays = {part: file[f"{name}.{part}"].astype(np.float64) for part in parts}
            arrays["quat_wb_wxyz"] /= np.linalg.norm(arrays["quat_wb_wxyz"], axis=1, keepdims=True)
            pos_w = file[f"{name}.pos_w"] - rotate(arrays["quat_wb_wxyz"], GO2_MARKER_B)
            accel = file[f"{name}.accel_standin"].astype(np.float64)
            log = Log(**arrays, accel=accel, pos_w=pos_w, robot=robot, source=f"real Go2, {name}; no accelerometer")
            walks.append(_recording(name, robot, log, file[f"{name}.truth_valid"], rate, GO2_SKIP, "gravity"))
    return walks


def _recording(name: str, robot: Robot, log: Log, valid: BoolArray, rate: float, skip: float, start: str) -> Recording:
    t, resampled = log.t, log if rate == round(log.rate) else log.resample(rate)
    # What ground truth lacks reaches as far as the smoothing does, and so do the ends of the log.
    reach = np.interp(resampled.t, t, valid.astype(float)) > 0.999
    half = round(WINDOW / 2.0 * rate)
    scored = ~(np.convolve(~reach, np.ones(2 * half + 1), "same") > 0.5)
    scored[:half] = scored[-half:] = False
    scored &= resampled.t >= resampled.t[0] + skip
    log = resampled.replace(vel_w=truth_velocity(resampled.need("pos_w"), rate))
    return Recording(name, robot, log, scored, start)


class Score(NamedTuple):
    """How an estimate of a recording does."""

    velocity: float
    """Root mean square of the error of the smoothed velocity, m/s."""
    drift: float
    """Mean position error over windows of 5 s, m; nan for shorter walks."""
    within: float
    """Share of the velocity errors within two standard deviations; nan of an estimate without covariance."""
    nees: float
    """Of the velocity; 3 is ideal. nan without covariance."""
    scale: float
    """Estimated over true velocity along the ground, by least squares: below 1 the robot seems too slow."""


def score(recording: Recording, estimate: Trajectory) -> Score:
    """Judge an estimate on the recording's clock, in the body frame.

    For the root mean square both velocities are smoothed over 0.1 s; coverage and NEES take the estimate as it is.
    """
    log, rows = recording.log, recording.scored
    smooth_b = rotate_inverse(estimate.quat_wb_wxyz, smoothed(estimate.vel_w, log.rate))
    errors = (smooth_b - log.vel_b)[rows]
    drift = float("nan")
    if log.t[rows][-1] - log.t[rows][0] > 5.0:
        drift = relative_error(estimate, recording.walking, 5.0).position.mean
    raw, rmse = (estimate.vel_b - log.vel_b)[rows], float(np.sqrt(np.mean(np.sum(errors**2, axis=1))))
    true_b = log.vel_b[rows, :2]
    scale = float(np.sum(smooth_b[rows, :2] * true_b) / np.sum(true_b**2))
    if estimate.vel_cov is None:
        return Score(rmse, drift, float("nan"), float("nan"), scale)
    vel_cov = estimate.vel_cov[rows]
    return Score(rmse, drift, coverage(raw, vel_cov).fraction, nees(raw, vel_cov).mean, scale)


def main() -> None:
    """Print how methods do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["gait-legs", "iekf", "iekf-sr"])
    parser.add_argument("--rates", nargs="+", type=float, default=[200.0, 500.0])
    parser.add_argument("--no-targets", action="store_true", help="leave the joint targets of the Go2 out")
    options = parser.parse_args()
    rows = []
    for rate in options.rates:
        for recording in (a1_walk(rate), *go2_walks(rate, targets=not options.no_targets)):
            for method in options.methods:
                estimate = Estimator.load(recording.robot, method).run(recording.log, start=recording.start)
                rows.append([recording.name, f"{rate:g}", method, *(f"{x:.3f}" for x in score(recording, estimate))])
    print(
        markdown(["recording", "Hz", "method", "velocity, m/s", "5 s drift, m", "within 2 std", "NEES", "scale"], rows)
    )


if __name__ == "__main__":
    main()
