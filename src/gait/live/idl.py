"""Types of the messages as DDS knows them, with the names that ROS 2 and Unitree give them.

Whoever connects compares names and structure, so both must be those of the other side. The contents pass as bytes:
`gait.live.cdr` decodes those that come, and those that go are encoded before.
"""

from __future__ import annotations

from typing import Any

import cyclonedds.idl.annotations as annotate
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl.types import array, float32, float64, int16, int32, sequence, uint8, uint16, uint32


def _struct(name: str, fields: dict[str, Any], raw: bool = False) -> Any:
    """A struct that cannot be extended, the only kind that ROS 2 and Unitree have.

    A raw one carries bytes: `encoded`, a whole message in CDR with the four bytes before it. `of(encoded)` makes one.
    """
    package, kind = name.split("/")
    made: Any = make_idl_struct(kind, f"{package}.msg.dds_.{kind}_", fields)
    made = annotate.autoid("sequential")(annotate.final(made))
    if raw:
        # A base class would become a part of the type that others see.
        made.of = made.deserialize = classmethod(_of)
        made.serialize = lambda message, *args, **more: message.encoded
    return made


def _of(kind: Any, encoded: bytes, *args: Any, **more: Any) -> Any:
    message = kind.__new__(kind)
    message.encoded = encoded
    return message


# ROS 2

_TIME = _struct("builtin_interfaces/Time", {"sec": int32, "nanosec": uint32})
_HEADER = _struct("std_msgs/Header", {"stamp": _TIME, "frame_id": str})
_VECTOR3 = _struct("geometry_msgs/Vector3", dict.fromkeys("xyz", float64))
_POINT = _struct("geometry_msgs/Point", dict.fromkeys("xyz", float64))
_QUATERNION = _struct("geometry_msgs/Quaternion", dict.fromkeys("xyzw", float64))
_POSE = _struct("geometry_msgs/Pose", {"position": _POINT, "orientation": _QUATERNION})
_POSE_COV = _struct("geometry_msgs/PoseWithCovariance", {"pose": _POSE, "covariance": array[float64, 36]})
_TWIST = _struct("geometry_msgs/Twist", {"linear": _VECTOR3, "angular": _VECTOR3})
_TWIST_COV = _struct("geometry_msgs/TwistWithCovariance", {"twist": _TWIST, "covariance": array[float64, 36]})
_TRANSFORM = _struct("geometry_msgs/Transform", {"translation": _VECTOR3, "rotation": _QUATERNION})
_STAMPED = _struct(
    "geometry_msgs/TransformStamped", {"header": _HEADER, "child_frame_id": str, "transform": _TRANSFORM}
)

Imu = _struct(
    "sensor_msgs/Imu",
    {
        "header": _HEADER,
        "orientation": _QUATERNION,
        "orientation_covariance": array[float64, 9],
        "angular_velocity": _VECTOR3,
        "angular_velocity_covariance": array[float64, 9],
        "linear_acceleration": _VECTOR3,
        "linear_acceleration_covariance": array[float64, 9],
    },
    raw=True,
)
JointState = _struct(
    "sensor_msgs/JointState",
    {"header": _HEADER, "name": sequence[str], **dict.fromkeys(("position", "velocity", "effort"), sequence[float64])},
    raw=True,
)
Odometry = _struct(
    "nav_msgs/Odometry",
    {"header": _HEADER, "child_frame_id": str, "pose": _POSE_COV, "twist": _TWIST_COV},
    raw=True,
)
TFMessage = _struct("tf2_msgs/TFMessage", {"transforms": sequence[_STAMPED]}, raw=True)

# Unitree Go2, after the IDL files of unitree_sdk2 2.0

_START = {
    "head": array[uint8, 2],
    "level_flag": uint8,
    "frame_reserve": uint8,
    "sn": array[uint32, 2],
    "version": array[uint32, 2],
    "bandwidth": uint16,
}
_IMU_STATE = _struct(
    "unitree_go/IMUState",
    {
        "quaternion": array[float32, 4],
        **dict.fromkeys(("gyroscope", "accelerometer", "rpy"), array[float32, 3]),
        "temperature": uint8,
    },
)
_MOTOR_STATE = _struct(
    "unitree_go/MotorState",
    {
        "mode": uint8,
        **dict.fromkeys(("q", "dq", "ddq", "tau_est", "q_raw", "dq_raw", "ddq_raw"), float32),
        "temperature": uint8,
        "lost": uint32,
        "reserve": array[uint32, 2],
    },
)
_BMS_STATE = _struct(
    "unitree_go/BmsState",
    {
        **dict.fromkeys(("version_high", "version_low", "status", "soc"), uint8),
        "current": int32,
        "cycle": uint16,
        "bq_ntc": array[uint8, 2],
        "mcu_ntc": array[uint8, 2],
        "cell_vol": array[uint16, 15],
    },
)
_MOTOR_CMD = _struct(
    "unitree_go/MotorCmd",
    {"mode": uint8, **dict.fromkeys(("q", "dq", "tau", "kp", "kd"), float32), "reserve": array[uint32, 3]},
)
_BMS_CMD = _struct("unitree_go/BmsCmd", {"off": uint8, "reserve": array[uint8, 3]})

LowState = _struct(
    "unitree_go/LowState",
    {
        **_START,
        "imu_state": _IMU_STATE,
        "motor_state": array[_MOTOR_STATE, 20],
        "bms_state": _BMS_STATE,
        "foot_force": array[int16, 4],
        "foot_force_est": array[int16, 4],
        "tick": uint32,
        "wireless_remote": array[uint8, 40],
        "bit_flag": uint8,
        "adc_reel": float32,
        "temperature_ntc1": uint8,
        "temperature_ntc2": uint8,
        "power_v": float32,
        "power_a": float32,
        "fan_frequency": array[uint16, 4],
        "reserve": uint32,
        "crc": uint32,
    },
    raw=True,
)
LowCmd = _struct(
    "unitree_go/LowCmd",
    {
        **_START,
        "motor_cmd": array[_MOTOR_CMD, 20],
        "bms_cmd": _BMS_CMD,
        "wireless_remote": array[uint8, 40],
        "led": array[uint8, 12],
        "fan": array[uint8, 2],
        "gpio": uint8,
        "reserve": uint32,
        "crc": uint32,
    },
    raw=True,
)
