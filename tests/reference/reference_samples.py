"""Robots and samples drawn at random, for tests of the reference."""

from __future__ import annotations

import copy

import numpy as np

from gait import Robot
from gait.log.sample import Sample
from gait.sim.variety import description, draw_variant, varied

LEG_COUNTS = (2, 4, 6)
_HIPS = [(0.19, -0.05), (0.19, 0.05), (-0.19, -0.05), (-0.19, 0.05), (0.01, -0.06), (-0.01, 0.06)]


def random_robot(legs: int, seed: int) -> Robot:
    """A robot with so many legs, its sizes, joint directions and IMU mounting drawn at random."""
    rng = np.random.default_rng(seed)
    tree = copy.deepcopy(varied(description("go1"), draw_variant(rng, f"random-{legs}-{seed}")))
    tree["legs"] = {f"leg{i}": [x, y, 0.01 * i] for i, (x, y) in enumerate(_HIPS[:legs])}
    tree["leg"]["axes"] = [rng.choice(["", "-"]) + axis for axis in "xyy"]
    tree["leg"]["offsets"]["calf"] = (np.array(tree["leg"]["offsets"]["calf"]) + rng.normal(size=3) * 0.01).tolist()
    quat = rng.normal(size=4)
    tree["imu"] = {"position": (rng.normal(size=3) * 0.1).tolist(), "quat_wxyz": (quat / np.linalg.norm(quat)).tolist()}
    return Robot.of(tree, "a random robot")


def random_joints(robot: Robot, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(robot.q_lower, robot.q_upper)


def random_sample(robot: Robot, rng: np.random.Generator) -> Sample:
    """Numbers of the size that sensors give."""
    joints = robot.num_joints
    return Sample(
        t=0.0,
        gyro=rng.normal(size=3),
        accel=rng.normal(size=3) * 3.0 + [0.0, 0.0, 9.81],
        q=random_joints(robot, rng),
        dq=rng.normal(size=joints) * 4.0,
        q_des=random_joints(robot, rng),
        tau=rng.normal(size=joints) * 8.0,
        foot_force=rng.uniform(0.0, 0.6, robot.num_legs) * robot.mass * 9.81,
        contact=rng.random(robot.num_legs) < 0.5,
    )


def random_covariance(rng: np.random.Generator, size: int, scale: float) -> np.ndarray:
    A = rng.normal(size=(size, size)) * scale
    return A @ A.T + scale**2 * np.eye(size)
