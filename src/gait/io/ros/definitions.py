"""The definition of every message, once: all that reads, writes, sends or describes messages is derived from here.

Standard messages are those of rosbags; Unitree's, ANYmal's and gait's own are in `definitions.msg`, in the form in
which bags carry definitions.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

Fields = dict[str, Any]
"""Type name to (constants, fields), as rosbags parses them."""

IMU, JOINT_STATE = "sensor_msgs/msg/Imu", "sensor_msgs/msg/JointState"
POSE, NAV_SAT = "geometry_msgs/msg/PoseStamped", "sensor_msgs/msg/NavSatFix"
POSE_COV = "geometry_msgs/msg/PoseWithCovarianceStamped"
ODOMETRY, TRANSFORMS = "nav_msgs/msg/Odometry", "tf2_msgs/msg/TFMessage"
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
EXTENDED_JOINTS, ANYMAL = "any_msgs/msg/ExtendedJointState", "anymal_msgs/msg/AnymalState"
FEET, FOOT_STATES = "gait_msgs/msg/Feet", "gait_msgs/msg/FootStates"
IMU_FRAME = "imu_link"
"""Frame of the IMU, whose pose in the body the robot's description has."""
_SEPARATOR = "=" * 80 + "\n"


@lru_cache(maxsize=2)
def store(ros1: bool = False) -> Any:
    """The rosbags type store of every message that gait knows. A header of ROS 1 begins with a number."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    found = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    types: Fields = {}
    for part in Path(__file__).with_suffix(".msg").read_text(encoding="utf-8").split(_SEPARATOR):
        name, _, text = part.removeprefix("MSG: ").partition("\n")
        types.update(get_types_from_msg(text, name.replace("/", "/msg/")))
    found.register(types)
    return found


def known(ros1: bool = False) -> Fields:
    """The fields of every message that gait knows."""
    fields: Fields = store(ros1).fielddefs
    return fields


def parse(text: str, name: str, idl: bool = False) -> Fields:
    """The types that a definition in a bag names, by type name."""
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    if not idl:
        return dict(get_types_from_msg(text, name))
    types: Fields = {}
    for part in text.split(_SEPARATOR) if text.startswith(_SEPARATOR) else [text]:
        body = part.split("\n", 1)[1] if part.startswith("IDL: ") else part
        if body.strip():
            types.update(get_types_from_idl(body))
    return types


def full_text(name: str) -> str:
    """A definition with those it needs below it, as bags carry it."""
    return str(store().generate_msgdef(name, ros_version=2)[0])
