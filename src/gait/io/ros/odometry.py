"""Odometry and transform as ROS 2 has them, as bytes: nav_msgs/Odometry and tf2_msgs/TFMessage in CDR.

A file and a network take the same bytes. All of a message but stamp and numbers is known beforehand, so that encoding
one is two copies; the tests hold it against an independent encoder.
"""

from __future__ import annotations

import struct

import numpy as np

from gait import lie
from gait.arrays import AnyArray, Array
from gait.estimator import State
from gait.log.trajectory import Trajectory
from gait.parameters import ProcessNoise
from gait.quaternions import rotate
from gait.robot import Robot

POSE, POSE_COV, TWIST, TWIST_COV = 0, 7, 43, 49
"""Where each part of the numbers of a message begins: position and xyzw, 6 x 6, velocity and turn rate, 6 x 6."""
WIDTH = TWIST_COV + 36
"""Numbers in an odometry message."""

_XYZW = [1, 2, 3, 0]
_CDR_LITTLE = b"\x00\x01\x00\x00"
_NS = 1_000_000_000


class Encoder:
    """Makes messages of one pair of frames."""

    def __init__(self, frame: str = "odom", child: str = "base_link") -> None:
        """Name the frames, as REP-105 does: the world of the odometry, and the body in it."""
        self.frame, self.child = frame, child
        # The four bytes before the payload do not count for its alignment.
        self._odometry = _names(8, frame, child)
        self._transform = _names(12, frame, child)

    def odometry(self, ns: int, values: Array) -> bytes:
        """nav_msgs/Odometry of the numbers (WIDTH,) at a time in nanoseconds."""
        return _CDR_LITTLE + struct.pack("<iI", *divmod(ns, _NS)) + self._odometry + values.tobytes()

    def transform(self, ns: int, values: Array) -> bytes:
        """tf2_msgs/TFMessage with one transform, of the same numbers."""
        start = struct.pack("<IiI", 1, *divmod(ns, _NS))
        return _CDR_LITTLE + start + self._transform + values[: POSE + 7].tobytes()


def _names(offset: int, *names: str) -> bytes:
    """Strings in CDR: aligned to 4, length with the closing zero, letters, zero; at the end aligned to 8."""
    out = b""
    for name in names:
        out += b"\0" * (-(offset + len(out)) % 4)
        letters = name.encode() + b"\0"
        out += struct.pack("<I", len(letters)) + letters
    return out + b"\0" * (-(offset + len(out)) % 8)


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


HEADER = """\
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
VECTOR = """\
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
QUATERNION = """\
================================================================================
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
"""

SCHEMAS: dict[str, str] = {
    "nav_msgs/msg/Odometry": f"""\
std_msgs/Header header
string child_frame_id
geometry_msgs/PoseWithCovariance pose
geometry_msgs/TwistWithCovariance twist
{HEADER}================================================================================
MSG: geometry_msgs/PoseWithCovariance
geometry_msgs/Pose pose
float64[36] covariance
================================================================================
MSG: geometry_msgs/Pose
geometry_msgs/Point position
geometry_msgs/Quaternion orientation
================================================================================
MSG: geometry_msgs/Point
float64 x
float64 y
float64 z
{QUATERNION}================================================================================
MSG: geometry_msgs/TwistWithCovariance
geometry_msgs/Twist twist
float64[36] covariance
================================================================================
MSG: geometry_msgs/Twist
geometry_msgs/Vector3 linear
geometry_msgs/Vector3 angular
{VECTOR}""",
    "tf2_msgs/msg/TFMessage": f"""\
geometry_msgs/TransformStamped[] transforms
================================================================================
MSG: geometry_msgs/TransformStamped
std_msgs/Header header
string child_frame_id
geometry_msgs/Transform transform
{HEADER}================================================================================
MSG: geometry_msgs/Transform
geometry_msgs/Vector3 translation
geometry_msgs/Quaternion rotation
{VECTOR}{QUATERNION}""",
}
"""What a file says about each type: its definition and those of its parts, as ROS 2 writes them."""
