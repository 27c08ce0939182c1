"""Odometry and transform as ROS 2 has them: nav_msgs/Odometry and tf2_msgs/TFMessage, for files and for DDS."""

from __future__ import annotations

import numpy as np

from gait import lie
from gait.arrays import AnyArray, Array
from gait.estimator import State
from gait.io.ros.definitions import ODOMETRY, TRANSFORMS
from gait.io.ros.layout import MessageWriter
from gait.log.trajectory import Trajectory
from gait.parameters import ProcessNoise
from gait.quaternions import rotate
from gait.robot import Robot

POSE_COV, TWIST, TWIST_COV = 7, 43, 49
"""Where each part of the numbers of a message begins: position and xyzw, 6 x 6, velocity and turn rate, 6 x 6."""
WIDTH = TWIST_COV + 36
"""Numbers in an odometry message."""

_XYZW = [1, 2, 3, 0]
_POSE = ("pose.pose.position", "pose.pose.orientation", "pose.covariance")
_TWIST = ("twist.twist.linear", "twist.twist.angular", "twist.covariance")
_NUMBERS = (*_POSE, *_TWIST)
_TRANSFORM = ("transforms.0.transform.translation", "transforms.0.transform.rotation")


class Encoder:
    """Makes messages of one pair of frames."""

    def __init__(self, frame: str = "odom", child: str = "base_link") -> None:
        """Name the frames, as REP-105 does: the world of the odometry, and the body in it."""
        self.frame, self.child = frame, child
        names = {"header.frame_id": frame, "child_frame_id": child}
        self._odometry = MessageWriter(ODOMETRY, names)
        one = {f"transforms.0.{path}": name for path, name in names.items()}
        self._transform = MessageWriter(TRANSFORMS, {"transforms": 1, **one})

    def odometry(self, ns: int, values: Array) -> bytes:
        """nav_msgs/Odometry of the numbers (WIDTH,) at a time in nanoseconds."""
        return self._odometry.encode(ns, {_NUMBERS: values})

    def transform(self, ns: int, values: Array) -> bytes:
        """tf2_msgs/TFMessage with one transform, of the same numbers."""
        return self._transform.encode(ns, {_TRANSFORM: values[:POSE_COV]})


class Converter:
    """Makes the numbers of odometry messages, of states and of whole trajectories.

    The turn rate is the gyro's without its bias, in the axes of the body; its variance is that of the gyro's noise,
    at the rate of the samples.
    """

    def __init__(self, robot: Robot, noise: ProcessNoise | None = None, rate: float = 500.0) -> None:
        """Take the pose of the IMU from the robot."""
        self._rotation = lie.rotation_from_quat(robot.imu_quat_wxyz)
        self._quat = robot.imu_quat_wxyz
        self._variance = (noise or ProcessNoise()).gyro ** 2 * rate
        self._row = np.zeros(WIDTH)
        self._fill_constants(self._row[None])

    def of_state(self, state: State, gyro: Array) -> Array:
        """The numbers of one message (WIDTH,); the next call overwrites them."""
        row = self._row
        row[0:3], row[3:7] = state.pos_w, state.quat_wb_wxyz[_XYZW]
        row[POSE_COV:TWIST] = state.pose_cov.ravel()
        row[TWIST : TWIST + 3] = state.vel_b
        rate = self._rotation @ (gyro - state.gyro_bias)
        row[TWIST + 3 : TWIST + 6] = rate if np.isfinite(rate).all() else 0.0
        row[TWIST_COV:].reshape(6, 6)[:3, :3] = state.vel_cov
        return row

    def of_trajectory(self, trajectory: Trajectory, gyro: Array | None = None) -> Array:
        """The numbers of a message for each row (N, WIDTH); without a gyro (N, 3) the turn rate is zero."""
        rows = np.zeros((len(trajectory), WIDTH))
        rows[:, 0:3], rows[:, 3:7] = trajectory.pos_w, trajectory.quat_wb_wxyz[:, _XYZW]
        if trajectory.pose_cov is not None:
            rows[:, POSE_COV:TWIST] = trajectory.pose_cov.reshape(-1, 36)
        rows[:, TWIST : TWIST + 3] = trajectory.vel_b
        if gyro is not None:
            bias = 0.0 if trajectory.gyro_bias is None else trajectory.gyro_bias
            rows[:, TWIST + 3 : TWIST + 6] = rotate(self._quat, gyro - bias)
        self._fill_constants(rows)
        if trajectory.vel_cov is not None:
            rows[:, TWIST_COV:].reshape(-1, 6, 6)[:, :3, :3] = trajectory.vel_cov
        return rows

    def _fill_constants(self, rows: AnyArray) -> None:
        rows[:, [TWIST_COV + 21, TWIST_COV + 28, TWIST_COV + 35]] = self._variance
