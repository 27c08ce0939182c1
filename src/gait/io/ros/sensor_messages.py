"""What the sensors said, as ROS 2 has it: sensor_msgs/Imu and JointState, so that a recording can be run again."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from gait.arrays import Array
from gait.io.ros.mcap_writer import McapRecorder
from gait.io.ros.odometry import HEADER, QUATERNION, VECTOR
from gait.log.sample import Sample

NS = 1_000_000_000
IMU, JOINTS, TARGETS = "/imu", "/joint_states", "/joint_targets"
_LITTLE = b"\x00\x01\x00\x00"
_NOTHING = np.empty(0)

SCHEMAS: dict[str, str] = {
    "sensor_msgs/msg/Imu": f"""\
std_msgs/Header header
geometry_msgs/Quaternion orientation
float64[9] orientation_covariance
geometry_msgs/Vector3 angular_velocity
float64[9] angular_velocity_covariance
geometry_msgs/Vector3 linear_acceleration
float64[9] linear_acceleration_covariance
{HEADER}{QUATERNION}{VECTOR}""",
    "sensor_msgs/msg/JointState": f"""\
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
{HEADER}""",
}
"""What a file says about each type."""


def encode_imu(ns: int, gyro: Array, accel: Array) -> bytes:
    """sensor_msgs/Imu without orientation."""
    values = np.zeros(37)
    values[4], values[13:16], values[25:28] = -1.0, gyro, accel
    # An empty frame_id ends at 13 bytes; numbers begin at the next multiple of eight.
    return _LITTLE + struct.pack("<iII4x", *divmod(ns, NS), 1) + values.tobytes()


def encode_joints(ns: int, names: Sequence[str], *values: Array) -> bytes:
    """sensor_msgs/JointState of position, velocity and effort, as many as there are."""
    data = bytearray(_LITTLE + struct.pack("<iI", *divmod(ns, NS)) + _names(tuple(names)))
    for one in (*values, *[_NOTHING] * (3 - len(values))):
        data += struct.pack("<I", len(one))
        if len(one):
            data.extend(b"\0" * (-(len(data) - 4) % 8))
            data += np.asarray(one, dtype="<f8").tobytes()
    return bytes(data)


@lru_cache(maxsize=16)
def _names(names: tuple[str, ...]) -> bytes:
    """An empty frame_id and the names, aligned to four: the same in every message of a robot."""
    # Eight bytes of stamp stand before, so that alignment is as if nothing did.
    block = bytearray(struct.pack("<IxxxxI", 1, len(names)))
    for name in names:
        block += struct.pack("<I", len(name) + 1) + name.encode() + b"\0"
        block.extend(b"\0" * (-len(block) % 4))
    return bytes(block)


class InputRecorder:
    """Writes samples beside their odometry: `/imu`, `/joint_states` and `/joint_targets`, which `gait run` reads."""

    def __init__(self, recorder: McapRecorder, joint_names: Sequence[str]) -> None:
        """Take the names of joints in the order of the samples."""
        self._recorder, self._names = recorder, tuple(joint_names)
        imu, joints = SCHEMAS.items()
        self._imu = recorder.channel(IMU, *imu)
        self._joints = recorder.channel(JOINTS, *joints)
        self._targets = recorder.channel(TARGETS, *joints)

    def write(self, ns: int, sample: Sample) -> None:
        """Write a sample; joints that were not there are left out."""
        write = self._recorder.write_to
        write(self._imu, ns, encode_imu(ns, sample.gyro, sample.accel))
        if np.isfinite(sample.q).all() and np.isfinite(sample.dq).all():
            more = () if sample.tau is None else (sample.tau,)
            write(self._joints, ns, encode_joints(ns, self._names, sample.q, sample.dq, *more))
        if sample.q_des is not None and np.isfinite(sample.q_des).all():
            write(self._targets, ns, encode_joints(ns, self._names, sample.q_des))
