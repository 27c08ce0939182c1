"""Which field of which message is which field of a Log: one table for bags, for live robots and for writing."""

from __future__ import annotations

import re

import numpy as np

from gait.arrays import AnyArray, Array
from gait.io.ros.definitions import FEET, IMU, JOINT_STATE, ODOMETRY
from gait.io.ros.layout import Layout, MessageReader, Paths

UNITREE_JOINTS = tuple(f"{leg}_{joint}_joint" for leg in ("FR", "FL", "RR", "RL") for joint in ("hip", "thigh", "calf"))
"""Motors 0 to 11 of every Unitree quadruped; its messages have room for 20."""
NO_TARGET = 1e3
"""Beyond any angle: Unitree sends 2.146e9 where a motor has no target."""


def _pose(position: str, orientation: str) -> dict[str, Paths]:
    return {"pos_w": position, "quat_wb_wxyz": tuple(f"{orientation}.{axis}" for axis in "wxyz")}


def _low_state(imu: str, motors: str, torque: str) -> dict[str, dict[str, Paths]]:
    joints: dict[str, Paths] = {"q": f"{motors}.*.q", "dq": f"{motors}.*.dq", "tau": f"{motors}.*.{torque}"}
    return {
        "imu": {"gyro": f"{imu}.gyroscope", "accel": f"{imu}.accelerometer"},
        "joints": joints,
        "clock": {"tick": "tick"},
    }


def _low_cmd(motors: str, gain: str) -> dict[str, dict[str, Paths]]:
    return {"targets": {"q_des": f"{motors}.*.q", "kp": f"{motors}.*.{gain}"}}


FIELDS: dict[str, dict[str, dict[str, Paths]]] = {
    IMU: {"imu": {"gyro": "angular_velocity", "accel": "linear_acceleration"}},
    JOINT_STATE: {
        "joints": {"q": "position", "dq": "velocity", "tau": "effort"},
        "targets": {"q_des": "position"},
    },
    ODOMETRY: {"truth": {**_pose("pose.pose.position", "pose.pose.orientation"), "twist": "twist.twist.linear"}},
    "geometry_msgs/msg/PoseStamped": {"truth": _pose("pose.position", "pose.orientation")},
    "geometry_msgs/msg/PoseWithCovarianceStamped": {"truth": _pose("pose.pose.position", "pose.pose.orientation")},
    "geometry_msgs/msg/TransformStamped": {"truth": _pose("transform.translation", "transform.rotation")},
    "unitree_go/msg/LowState": _low_state("imu_state", "motor_state", "tau_est"),
    "unitree_go/msg/LowCmd": _low_cmd("motor_cmd", "kp"),
    "unitree_legged_msgs/msg/LowState": _low_state("imu", "motorState", "tauEst"),
    "unitree_legged_msgs/msg/LowCmd": _low_cmd("motorCmd", "Kp"),
    "ros2_unitree_legged_msgs/msg/LowState": _low_state("imu", "motor_state", "tau_est"),
    "ros2_unitree_legged_msgs/msg/LowCmd": _low_cmd("motor_cmd", "kp"),
    "unitree_legged_sdk/msg/LowState": _low_state("imu", "motorState", "tauEst"),
    "unitree_legged_sdk/msg/LowCmd": _low_cmd("motorCmd", "Kp"),
    FEET: {"feet": {"contact": "contact", "foot_force": "force", "foot_vel_w": "velocity", "t": "t"}},
}
"""Of each type, by what it is used for: the field of a Log and where it is in the message."""


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


def says_truth(name: str) -> bool:
    """Whether the name of a topic speaks of ground truth."""
    return re.search(r"truth|\bgt\b|_gt\b|vicon|mocap|optitrack|qualisys|vrpn", name.lower()) is not None


class FieldReader(MessageReader):
    """The fields of a Log out of messages that arrive one by one."""

    def __init__(self, kind: str, *roles: str, packed: bool = False) -> None:
        """Read what a type has for some purposes, keys of `FIELDS`."""
        super().__init__(kind, packed)
        self._fields = {name: paths for role in roles for name, paths in FIELDS[kind][role].items()}

    def read(self, data: bytes) -> tuple[dict[str, AnyArray], Layout]:
        """The fields of a message, empty where it has none of them, and its layout."""
        layout = self.layout(data)
        return {name: layout.read(data, paths) for name, paths in self._fields.items()}, layout
