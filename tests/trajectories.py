"""Runs to judge: smooth walks with a known truth, and estimates that go wrong in known ways."""

import math

import numpy as np

from gait import Log, Trajectory
from gait.quaternions import multiply, rotate


def from_rotvec(vector: np.ndarray) -> np.ndarray:
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    return np.concatenate((np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * vector), axis=-1)


def turn_z(yaw: float) -> np.ndarray:
    return from_rotvec(np.array([0.0, 0.0, yaw]))


def walk(t: np.ndarray, seed: int = 0) -> Trajectory:
    """A smooth curved walk with the sway of a gait; velocity is the exact derivative of the position."""
    phase = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, 6)
    w = np.array([0.31, 0.23, 2.9])
    size = np.array([2.0, 1.5, 0.03])
    pos = np.stack([a * np.sin(f * t + p) for a, f, p in zip(size, w, phase, strict=False)], axis=1)
    vel = np.stack([a * f * np.cos(f * t + p) for a, f, p in zip(size, w, phase, strict=False)], axis=1)
    pos, vel = pos + 0.3 * t[:, None] * [1.0, 0.2, 0.0], vel + 0.3 * np.array([1.0, 0.2, 0.0])
    sway = np.stack((0.06 * np.sin(5.1 * t + phase[3]), 0.04 * np.sin(7.3 * t + phase[4]), np.zeros_like(t)), axis=1)
    yaw = from_rotvec(np.stack((0 * t, 0 * t, np.sin(0.4 * t + phase[5]) * 1.5), axis=1))
    return Trajectory(t=t, pos_w=pos, vel_w=vel, quat_wb_wxyz=multiply(yaw, from_rotvec(sway)))


def spoil(truth: Trajectory, seed: int = 1) -> Trajectory:
    """An estimate that drifts in everything."""
    rng = np.random.default_rng(seed)
    n = len(truth)
    slow = np.cumsum(rng.normal(size=(n, 9)), axis=0) / math.sqrt(n)
    quat = multiply(from_rotvec(0.2 * slow[:, :3] + [0.02, -0.03, 0.4]), truth.quat_wb_wxyz)
    vel = truth.vel_w + 0.1 * slow[:, 3:6] + 0.05 * rng.normal(size=(n, 3))
    return Trajectory(t=truth.t, pos_w=truth.pos_w + 0.4 * slow[:, 6:] + 0.1, vel_w=vel, quat_wb_wxyz=quat)


def moved(trajectory: Trajectory, quat: np.ndarray, shift: np.ndarray) -> Trajectory:
    """The same trajectory described in another world."""
    return trajectory.replace(
        pos_w=rotate(quat, trajectory.pos_w) + shift,
        vel_w=rotate(quat, trajectory.vel_w),
        quat_wb_wxyz=multiply(np.broadcast_to(quat, (len(trajectory), 4)), trajectory.quat_wb_wxyz),
        vel_b=None,
    )


def log_of(truth: Trajectory, **fields: object) -> Log:
    n = len(truth)
    rest = {"gyro": np.zeros((n, 3)), "accel": np.zeros((n, 3)), "q": np.zeros((n, 12)), "dq": np.zeros((n, 12))}
    poses = {name: getattr(truth, name) for name in ("t", "pos_w", "quat_wb_wxyz", "vel_w")}
    return Log(**{**rest, **poses, **fields})


def clock(seconds: float, rate: float) -> np.ndarray:
    return np.arange(round(seconds * rate) + 1) / rate


def straight(speed: float = 1.0, seconds: float = 20.0, rate: float = 100.0, **changes: object) -> Trajectory:
    t = clock(seconds, rate)
    pos, vel = np.outer(t, [speed, 0.0, 0.0]), np.tile([speed, 0.0, 0.0], (len(t), 1))
    return Trajectory(
        **{"t": t, "pos_w": pos, "vel_w": vel, "quat_wb_wxyz": np.tile([1.0, 0, 0, 0], (len(t), 1)), **changes}
    )
