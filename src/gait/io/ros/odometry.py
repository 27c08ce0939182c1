"""Odometry and transform as ROS 2 has them: nav_msgs/Odometry and tf2_msgs/TFMessage, for files and for DDS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.estimator import State
from gait.io.ros.definitions import FOOT_STATES, IMU_FRAME, ODOMETRY, TRANSFORMS
from gait.io.ros.layout import MessageWriter
from gait.log import Trajectory
from gait.parameters import ProcessNoise
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
        imu = {"transforms.0.header.frame_id": child, "transforms.0.child_frame_id": IMU_FRAME}
        self._imu = MessageWriter(TRANSFORMS, {"transforms": 1, **imu})

    def odometry(self, ns: int, values: Array) -> bytes:
        """nav_msgs/Odometry of the numbers (WIDTH,) at a time in nanoseconds."""
        return self._odometry.encode(ns, {_NUMBERS: values})

    def transform(self, ns: int, values: Array) -> bytes:
        """tf2_msgs/TFMessage with one transform, of the same numbers."""
        return self._transform.encode(ns, {_TRANSFORM: values[:POSE_COV]})

    def imu_transform(self, ns: int, robot: Robot) -> bytes:
        """tf2_msgs/TFMessage of /tf_static: the pose of the IMU in the body, by the robot's description."""
        return self._imu.encode(ns, {_TRANSFORM: np.concatenate([robot.imu_position, robot.imu_quat_wxyz[_XYZW]])})


class FootEncoder:
    """Makes gait_msgs/FootStates of states with feet."""

    def __init__(self, legs: Sequence[str], frame: str = "odom") -> None:
        """Name the legs, and the frame of the odometry."""
        lists = dict.fromkeys(("contact", "slip", "force"), len(legs))
        self._writer = MessageWriter(
            FOOT_STATES, {"header.frame_id": frame, "name": tuple(legs), "position": 3 * len(legs), **lists}
        )

    def encode(self, ns: int, state: State) -> bytes:
        """The message of one state."""
        assert state.foot_pos_w is not None
        values = {
            "contact": state.contact, "slip": state.slip, "force": state.foot_force,
            "position": state.foot_pos_w.ravel(), "ground_height": state.ground_height,
            "ground_slope": state.ground_slope,
        }  # fmt: skip
        return self._writer.encode(ns, values)


class Converter:
    """Makes the numbers of odometry messages, of states and of whole trajectories.

    The turn rate is the gyro's without its bias, in the axes of the body; its variance is that of the gyro's noise,
    at the rate of the samples.
    """

    def __init__(self, robot: Robot, rate: float = 500.0) -> None:
        """Take the pose of the IMU from the robot."""
        self._rotation = lie.rotation_from_quat(robot.imu_quat_wxyz)
        self._variance = ProcessNoise().gyro ** 2 * rate

    def of(self, state: State | Trajectory, gyro: Array | None = None) -> Array:
        """The numbers of a message (WIDTH,), or of each row (N, WIDTH); without a gyro the turn rate is zero."""
        shape = state.pos_w.shape[:-1]
        row = np.zeros((*shape, WIDTH))
        row[..., 0:3], row[..., 3:POSE_COV] = state.pos_w, state.quat_wb_wxyz[..., _XYZW]
        if state.pose_cov is not None:
            row[..., POSE_COV:TWIST] = state.pose_cov.reshape(*shape, 36)
        row[..., TWIST : TWIST + 3] = state.vel_b
        if gyro is not None:
            rate = (gyro - (0.0 if state.gyro_bias is None else state.gyro_bias)) @ self._rotation.T
            known = np.isfinite(rate).all(axis=-1, keepdims=True)
            row[..., TWIST + 3 : TWIST_COV] = np.where(known, rate, 0.0)
        if state.vel_cov is not None:
            row[..., TWIST_COV:].reshape(*shape, 6, 6)[..., :3, :3] = state.vel_cov
        row[..., [TWIST_COV + 21, TWIST_COV + 28, TWIST_COV + 35]] = self._variance
        return row
