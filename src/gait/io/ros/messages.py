"""Which field of which message is which field of a Log: one table for bags, for live robots and for writing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gait.arrays import AnyArray, Array
from gait.errors import located
from gait.io.ros.definitions import (
    ANYMAL,
    EXTENDED_JOINTS,
    FEET,
    IMU,
    IMU_FRAME,
    JOINT_STATE,
    NAV_SAT,
    ODOMETRY,
    POSE,
    POSE_COV,
    known,
)
from gait.io.ros.layout import MessageLayout, MessageWriter, Paths
from gait.log import Sample

UNITREE_JOINTS = tuple(f"{leg}_{joint}_joint" for leg in ("FR", "FL", "RR", "RL") for joint in ("hip", "thigh", "calf"))
"""Motors 0 to 11 of every Unitree quadruped; its messages have room for 20."""
_LEG_OF_G1 = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_LEG_OF_H1_2 = ("hip_yaw", "hip_pitch", "hip_roll", "knee", "ankle_pitch", "ankle_roll")
G1_JOINTS, H1_2_JOINTS = (
    tuple(f"{side}_{joint}_joint" for side in ("left", "right") for joint in leg) for leg in (_LEG_OF_G1, _LEG_OF_H1_2)
)
"""Motors 0 to 11 of Unitree's humanoids with two joints an ankle; what comes behind is no leg."""
H1_JOINTS = (
    "right_hip_roll", "right_hip_pitch", "right_knee", "left_hip_roll", "left_hip_pitch", "left_knee", "torso",
    "left_hip_yaw", "right_hip_yaw", "unused", "left_ankle", "right_ankle",
)  # fmt: skip
"""Motors 0 to 11 of an H1, which sends the messages of a Go2."""
NO_TARGET = 1e3
"""Beyond any angle: Unitree sends 2.146e9 where a motor has no target."""
TOPICS = {"targets": ("/joint_targets", JOINT_STATE), "imu": ("/imu", IMU), "joints": ("/joint_states", JOINT_STATE)}
"""Topic and type of what a robot of ROS 2 sends and a live recording holds, which `gait run` reads."""
NO_ORIENTATION = np.array([-1.0, *[0.0] * 8])
"""Covariance of an orientation that is not there, by convention of sensor_msgs/Imu."""
_KEPT = 8


def _pose(position: str, orientation: str) -> dict[str, Paths]:
    return {"pos_w": position, "quat_wb_wxyz": tuple(f"{orientation}.{axis}" for axis in "wxyz")}


_WITH_COV = _pose("pose.pose.position", "pose.pose.orientation")


def _low_state(imu: str, motors: str, torque: str) -> dict[str, dict[str, Paths]]:
    joints: dict[str, Paths] = {"q": f"{motors}.*.q", "dq": f"{motors}.*.dq", "tau": f"{motors}.*.{torque}"}
    inertial: dict[str, Paths] = {"gyro": f"{imu}.gyroscope", "accel": f"{imu}.accelerometer"}
    return {"imu": inertial, "joints": joints, "clock": {"tick": "tick"}}


def _high_state(motors: str, torque: str) -> dict[str, dict[str, Paths]]:
    """What the high level of a Go1 or A1 sends, which lacks a tick."""
    return {role: fields for role, fields in _low_state("imu", motors, torque).items() if role != "clock"}


def _low_cmd(motors: str, gain: str) -> dict[str, dict[str, Paths]]:
    return {"targets": {"q_des": f"{motors}.*.q", "kp": f"{motors}.*.{gain}"}}


FIELDS: dict[str, dict[str, dict[str, Paths]]] = {
    IMU: {"imu": {"gyro": "angular_velocity", "accel": "linear_acceleration"}},
    JOINT_STATE: {
        "joints": {"q": "position", "dq": "velocity", "tau": "effort"},
        "targets": {"q_des": "position"},
    },
    ODOMETRY: {"truth": {**_WITH_COV, "twist": "twist.twist.linear"}, "fuse": {**_WITH_COV, "cov": "pose.covariance"}},
    POSE: dict.fromkeys(("truth", "fuse"), _pose("pose.position", "pose.orientation")),
    POSE_COV: {"truth": _WITH_COV, "fuse": {**_WITH_COV, "cov": "pose.covariance"}},
    NAV_SAT: {
        "fuse": {
            "fix": ("latitude", "longitude", "altitude"),
            "cov": "position_covariance",
            "known": "position_covariance_type",
            "status": "status.status",
        }
    },
    "geometry_msgs/msg/TransformStamped": {"truth": _pose("transform.translation", "transform.rotation")},
    "unitree_go/msg/LowState": _low_state("imu_state", "motor_state", "tau_est"),
    "unitree_go/msg/LowCmd": _low_cmd("motor_cmd", "kp"),
    "unitree_legged_msgs/msg/LowState": _low_state("imu", "motorState", "tauEst"),
    "unitree_legged_msgs/msg/LowCmd": _low_cmd("motorCmd", "Kp"),
    "ros2_unitree_legged_msgs/msg/LowState": _low_state("imu", "motor_state", "tau_est"),
    "ros2_unitree_legged_msgs/msg/LowCmd": _low_cmd("motor_cmd", "kp"),
    "unitree_legged_msgs/msg/HighState": _high_state("motorState", "tauEst"),
    "ros2_unitree_legged_msgs/msg/HighState": _high_state("motor_state", "tau_est"),
    "unitree_hg/msg/LowState": _low_state("imu_state", "motor_state", "tau_est"),
    "unitree_hg/msg/LowCmd": _low_cmd("motor_cmd", "kp"),
    EXTENDED_JOINTS: {"joints": {"q": "position", "dq": "velocity", "tau": "effort"}},
    ANYMAL: {
        "joints": {"q": "joints.position", "dq": "joints.velocity", "tau": "joints.effort"},
        "truth": _pose("pose.pose.position", "pose.pose.orientation"),
    },
    "unitree_legged_sdk/msg/LowState": _low_state("imu", "motorState", "tauEst"),
    "unitree_legged_sdk/msg/LowCmd": _low_cmd("motorCmd", "Kp"),
    FEET: {"feet": {"contact": "contact", "foot_force": "force", "foot_vel_w": "velocity", "t": "t"}},
}
"""Of each type, by what it is used for: the field of a Log and where it is in the message."""


NAMED = {JOINT_STATE: "", EXTENDED_JOINTS: "", ANYMAL: "joints."}
"""Types whose joints have names, and where these and the numbers are."""


def unitree_motors(kind: str, joints: Sequence[str]) -> tuple[str, ...]:
    """Names of the motors in messages of one of Unitree's types, for a robot with these joints.

    A G1 and an H1-2 have the same joints in another order from the hip down, which tells them apart.
    """
    if kind.startswith("unitree_hg/"):
        first = next((name for name in joints if "hip" in name), "")
        return H1_2_JOINTS if "yaw" in first else G1_JOINTS
    return H1_JOINTS if any("hip_yaw" in name for name in joints) else UNITREE_JOINTS


def roles_of(kind: str) -> tuple[str, ...]:
    """What messages of a type may be used for."""
    return tuple(role for role in FIELDS.get(kind, {}) if role != "clock")


def is_unitree(kind: str) -> bool:
    """Whether a type is one of Unitree's, whose motors have numbers and no names."""
    return "unitree" in kind.partition("/")[0]


def has_target(q_des: Array) -> AnyArray:
    """Where the target angles of Unitree's commands are angles."""
    return np.asarray(np.abs(q_des) < NO_TARGET)


def says_command(name: str) -> bool:
    """Whether the name of a topic speaks of commands rather than of states."""
    return re.search(r"cmd|command|target|desired|\bdes\b|_des\b|reference|setpoint|goal", name.lower()) is not None


class FieldReader:
    """The fields of a Log out of messages of one type that arrive one by one."""

    def __init__(self, kind: str, *roles: str, packed: bool = False) -> None:
        """Read what a type has for some purposes, keys of `FIELDS`; packed as in `MessageLayout.of`."""
        self._kind, self._packed = kind, packed
        self._fields = {name: paths for role in roles for name, paths in FIELDS[kind][role].items()}
        self._layouts: list[MessageLayout] = []
        """A publisher sends the same shape every time."""

    def read(self, data: bytes) -> tuple[dict[str, AnyArray], MessageLayout]:
        """The fields of a message, empty where it has none of them, and its layout."""
        layout = next((one for one in self._layouts if one.fits(data)), None)
        if layout is None:
            with located(f"a message cannot be read as {self._kind}"):
                layout = MessageLayout.of(data, self._kind, known(), self._packed)
            self._layouts = [layout, *self._layouts[: _KEPT - 1]]
        return {name: layout.read(data, paths) for name, paths in self._fields.items()}, layout


@lru_cache(maxsize=64)
def writer(kind: str, given: tuple[tuple[str, Any], ...] = (), packed: bool = False) -> MessageWriter:
    """Writes messages of a type and shape; `given` is that of `MessageWriter` in pairs."""
    return MessageWriter(kind, dict(given), packed)


def encode_imu(ns: int, gyro: Array, accel: Array) -> bytes:
    """sensor_msgs/Imu without orientation."""
    values = {"angular_velocity": gyro, "linear_acceleration": accel, "orientation_covariance": NO_ORIENTATION}
    return writer(IMU, (("header.frame_id", IMU_FRAME),)).encode(ns, values)


def encode_joints(ns: int, names: Sequence[str], *values: Array) -> bytes:
    """sensor_msgs/JointState of position, velocity and effort, as many as there are."""
    lists = dict(zip(("position", "velocity", "effort"), values, strict=False))
    lengths = ((path, len(value)) for path, value in lists.items())
    return writer(JOINT_STATE, (("name", tuple(names)), *lengths)).encode(ns, lists)


def encode_sample(ns: int, names: Sequence[str], sample: Sample) -> Iterator[tuple[str, bytes]]:
    """Role and message of `TOPICS` for what a sample has; joints that were not there are left out."""
    if sample.q_des is not None and np.isfinite(sample.q_des).all():
        yield "targets", encode_joints(ns, names, sample.q_des)
    yield "imu", encode_imu(ns, sample.gyro, sample.accel)
    if np.isfinite(sample.q).all() and np.isfinite(sample.dq).all():
        more = () if sample.tau is None else (sample.tau,)
        yield "joints", encode_joints(ns, names, sample.q, sample.dq, *more)
