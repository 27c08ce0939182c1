"""Axes of the IMU, joint velocities and ground truth against how the legs move."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gait import Log, quaternions
from gait.log.checks import check_log
from gait.log.finding import CheckFinding
from gait.samples import SAMPLE

Changes = Callable[[Log], dict[str, Any]]
YAW = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE)


def wrong(log: Log, blind: bool) -> dict[str, CheckFinding]:
    none = dict.fromkeys(("pos_w", "quat_wb_wxyz", "vel_w", "foot_vel_w")) if blind else {}
    found = check_log(log.replace(**none))
    return {one.name: one for one in found if not one.ok and one.name != "start"}


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(
    ("change", "names", "words"),
    [
        (lambda log: {"gyro": log.gyro @ YAW.T, "accel": log.accel @ YAW.T}, {"gyro_axes"}, "taken as y, -x, z"),
        (lambda log: {"gyro": log.gyro * [1.0, 1.0, 0.0]}, {"gyro"}, "its z never change"),
        (lambda log: {"gyro": log.gyro[:, [1, 0, 2]]}, {"gyro_axes"}, "two of them are swapped"),
        (lambda log: {"gyro": log.gyro * [-1.0, 1.0, 1.0]}, {"gyro_axes", "gyro"}, "--scale gyro.x=-1"),
        (lambda log: {"accel": log.accel[:, [1, 0, 2]]}, {"accel_axes"}, "taken as y, x, z"),
        (lambda log: {"accel": log.accel * [-1.0, -1.0, 1.0]}, {"accel_axes"}, "taken as -x, -y, z"),
        (
            lambda log: {name: np.roll(getattr(log, name), 25, axis=0) for name in ("q", "dq")},
            {"joint_clock"},
            "behind",
        ),
        (
            lambda log: {name: np.roll(getattr(log, name), -50, axis=0) for name in ("q", "dq")},
            {"joint_clock"},
            "ahead",
        ),
        (lambda log: {"dq": 2.0 * log.dq}, {"joints"}, "dq is 2 times the change of q"),
        (lambda log: {"t": 0.5 * log.t}, {"joints"}, "times the change of q"),
    ],
)
def test_wrong_axes_and_velocities_are_told(
    log: Log, change: Changes, names: set[str], words: str, blind: bool
) -> None:
    found = wrong(log.replace(**change(log)), blind)
    named = names & set(found)
    assert named and any(words in found[name].words for name in named)


@pytest.mark.parametrize("blind", [False, True])
def test_right_axes_pass(log: Log, blind: bool) -> None:
    assert wrong(log, blind) == {}


def test_a_body_of_other_axes_in_the_ground_truth_is_told(log: Log) -> None:
    yaw = np.tile([np.cos(0.26), 0.0, 0.0, np.sin(0.26)], (len(log), 1))
    turned = log.replace(quat_wb_wxyz=quaternions.multiply(log.need("quat_wb_wxyz"), yaw))
    assert "turned by 30 deg about z" in wrong(turned, False)["truth_scale"].words


def test_a_tilted_imu_is_told_though_the_robot_turns(log: Log) -> None:
    tilt = np.tile([np.cos(0.13), 0.0, np.sin(0.13), 0.0], (len(log), 1))
    changed = {name: quaternions.rotate(tilt, getattr(log, name)) for name in ("gyro", "accel")}
    assert "gravity is 1" in wrong(log.replace(**changed), False)["truth_rotation"].words
