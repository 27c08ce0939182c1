"""Samples as sensor_msgs/Imu and JointState, so that a live recording can be run again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from gait.arrays import Array
from gait.io.ros.definitions import IMU, JOINT_STATE
from gait.io.ros.layout import MessageWriter
from gait.io.ros.mcap_writer import McapRecorder
from gait.log.sample import Sample

TOPICS = {"imu": ("/imu", IMU), "joints": ("/joint_states", JOINT_STATE), "targets": ("/joint_targets", JOINT_STATE)}
NO_ORIENTATION = np.array([-1.0, *[0.0] * 8])
"""Covariance of an orientation that is not there, by convention of sensor_msgs/Imu."""
_LISTS = ("position", "velocity", "effort")


@lru_cache(maxsize=1)
def _imu_writer() -> MessageWriter:
    return MessageWriter(IMU)


@lru_cache(maxsize=16)
def _joint_writer(names: tuple[str, ...], lengths: tuple[int, ...]) -> MessageWriter:
    return MessageWriter(JOINT_STATE, {"name": names, **dict(zip(_LISTS, lengths, strict=False))})


def encode_imu(ns: int, gyro: Array, accel: Array) -> bytes:
    """sensor_msgs/Imu without orientation."""
    values = {"angular_velocity": gyro, "linear_acceleration": accel, "orientation_covariance": NO_ORIENTATION}
    return _imu_writer().encode(ns, values)


def encode_joints(ns: int, names: Sequence[str], *values: Array) -> bytes:
    """sensor_msgs/JointState of position, velocity and effort, as many as there are."""
    writer = _joint_writer(tuple(names), tuple(map(len, values)))
    return writer.encode(ns, dict(zip(_LISTS, values, strict=False)))


class InputRecorder:
    """Writes samples beside their odometry: `/imu`, `/joint_states` and `/joint_targets`, which `gait run` reads."""

    def __init__(self, recorder: McapRecorder, joint_names: Sequence[str]) -> None:
        """Take the names of joints in the order of the samples."""
        self._recorder, self._names = recorder, tuple(joint_names)
        self._channels = {role: recorder.channel(*topic) for role, topic in TOPICS.items()}

    def write(self, ns: int, sample: Sample) -> None:
        """Write a sample; joints that were not there are left out."""

        def write(role: str, message: bytes) -> None:
            self._recorder.write_to(self._channels[role], ns, message)

        write("imu", encode_imu(ns, sample.gyro, sample.accel))
        if np.isfinite(sample.q).all() and np.isfinite(sample.dq).all():
            more = () if sample.tau is None else (sample.tau,)
            write("joints", encode_joints(ns, self._names, sample.q, sample.dq, *more))
        if sample.q_des is not None and np.isfinite(sample.q_des).all():
            write("targets", encode_joints(ns, self._names, sample.q_des))
