"""Fields of the messages that gait reads, for bags that do not carry them (ROS 2 before Iron, sqlite3).

Standard messages follow the REPs and common_interfaces; those of Unitree follow the field lists that Unitree publishes:
unitree_go for Go2 and B2, unitree_legged_msgs (ROS 1) and ros2_unitree_legged_msgs for Go1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

Fields = dict[str, Any]
"""Type name to (constants, fields), as rosbags parses them."""

_STANDARD = {
    "builtin_interfaces/msg/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/msg/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/msg/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/msg/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/msg/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/msg/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/msg/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/msg/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/msg/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
    "geometry_msgs/msg/PoseStamped": "std_msgs/Header header\ngeometry_msgs/Pose pose",
    "geometry_msgs/msg/PoseWithCovarianceStamped": "std_msgs/Header header\ngeometry_msgs/PoseWithCovariance pose",
    "geometry_msgs/msg/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
    "nav_msgs/msg/Odometry": (
        "std_msgs/Header header\nstring child_frame_id\n"
        "geometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist"
    ),
    "sensor_msgs/msg/Imu": (
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance"
    ),
    "sensor_msgs/msg/JointState": (
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort"
    ),
}

_MOTOR_CMD = "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 tau\nfloat32 {kp}\nfloat32 {kd}\nuint32[3] reserve"
_IMU = "float32[4] quaternion\nfloat32[3] gyroscope\nfloat32[3] accelerometer\nfloat32[3] rpy\nint8 temperature"

_UNITREE_GO = {
    "IMUState": _IMU,
    "MotorState": (
        "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est\nfloat32 q_raw\nfloat32 dq_raw\n"
        "float32 ddq_raw\nint8 temperature\nuint32 lost\nuint32[2] reserve"
    ),
    "MotorCmd": _MOTOR_CMD.format(kp="kp", kd="kd"),
    "BmsState": (
        "uint8 version_high\nuint8 version_low\nuint8 status\nuint8 soc\nint32 current\nuint16 cycle\n"
        "int8[2] bq_ntc\nint8[2] mcu_ntc\nuint16[15] cell_vol"
    ),
    "BmsCmd": "uint8 off\nuint8[3] reserve",
    "LowState": (
        "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\nuint32[2] version\nuint16 bandwidth\n"
        "IMUState imu_state\nMotorState[20] motor_state\nBmsState bms_state\nint16[4] foot_force\n"
        "int16[4] foot_force_est\nuint32 tick\nuint8[40] wireless_remote\nuint8 bit_flag\nfloat32 adc_reel\n"
        "int8 temperature_ntc1\nint8 temperature_ntc2\nfloat32 power_v\nfloat32 power_a\nuint16[4] fan_frequency\n"
        "uint32 reserve\nuint32 crc"
    ),
    "LowCmd": (
        "uint8[2] head\nuint8 level_flag\nuint8 frame_reserve\nuint32[2] sn\nuint32[2] version\nuint16 bandwidth\n"
        "MotorCmd[20] motor_cmd\nBmsCmd bms_cmd\nuint8[40] wireless_remote\nuint8[12] led\nuint8[2] fan\nuint8 gpio\n"
        "uint32 reserve\nuint32 crc"
    ),
}


def _go1(snake: bool) -> dict[str, str]:
    """Messages of the Go1: the same bytes, camelCase names in ROS 1 and snake_case in ROS 2."""

    def name(camel: str) -> str:
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in camel) if snake else camel

    # sn, soc and the like are one word in either.
    sn, soc, bq, mcu = ("sn", "soc", "bq_ntc", "mcu_ntc") if snake else ("SN", "SOC", "BQ_NTC", "MCU_NTC")
    head = (
        f"uint8[2] head\nuint8 {name('levelFlag')}\nuint8 {name('frameReserve')}\nuint32[2] {sn}\nuint32[2] version\n"
        f"uint16 {name('bandWidth')}\n"
    )
    return {
        "IMU": _IMU,
        "MotorState": (
            f"uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 {name('tauEst')}\nfloat32 q_raw\nfloat32 dq_raw\n"
            "float32 ddq_raw\nint8 temperature\nuint32[2] reserve"
        ),
        "MotorCmd": _MOTOR_CMD.format(kp="kp" if snake else "Kp", kd="kd" if snake else "Kd"),
        "BmsState": (
            f"uint8 version_h\nuint8 version_l\nuint8 bms_status\nuint8 {soc}\nint32 current\nuint16 cycle\n"
            f"int8[8] {bq}\nint8[8] {mcu}\nuint16[30] cell_vol"
        ),
        "BmsCmd": "uint8 off\nuint8[3] reserve",
        "LowState": (
            f"{head}IMU imu\nMotorState[20] {name('motorState')}\nBmsState bms\nint16[4] {name('footForce')}\n"
            f"int16[4] {name('footForceEst')}\nuint32 tick\nuint8[40] {name('wirelessRemote')}\n"
            "uint32 reserve\nuint32 crc"
        ),
        "LowCmd": (
            f"{head}MotorCmd[20] {name('motorCmd')}\nBmsCmd bms\nuint8[40] {name('wirelessRemote')}\n"
            "uint32 reserve\nuint32 crc"
        ),
    }


FEET_TYPE = "gait_msgs/msg/Feet"
_GAIT = {
    FEET_TYPE: "std_msgs/Header header\nstring[] name\nbool[] contact\nfloat32[] force\nfloat32[] velocity\nfloat64[] t"
}
"""Of a Log, what no standard message carries: contact, force and true velocity of each foot, by name of the leg, and
the time in seconds where whole nanoseconds do not give it back."""


@lru_cache(maxsize=1)
def texts() -> dict[str, str]:
    """The definition of every message that gait knows, in the language of .msg files."""
    packages = {
        "unitree_go": _UNITREE_GO,
        "unitree_legged_msgs": _go1(snake=False),
        "ros2_unitree_legged_msgs": _go1(snake=True),
    }
    unitree = {f"{package}/msg/{name}": text for package, types in packages.items() for name, text in types.items()}
    return {**_STANDARD, **unitree, **_GAIT}


@lru_cache(maxsize=2)
def known(ros1: bool = False) -> Fields:
    """Every message that gait knows, parsed. A header of ROS 1 begins with a number."""
    types: Fields = {}
    for name, text in texts().items():
        types.update(parse(text, name))
    if ros1:
        types.update(parse("uint32 seq\ntime stamp\nstring frame_id", "std_msgs/msg/Header"))
    return types


def parse(text: str, name: str, idl: bool = False) -> Fields:
    """The types that a definition in a bag names, by type name."""
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    if not idl:
        return dict(get_types_from_msg(text, name))
    types: Fields = {}
    separator = "=" * 80 + "\n"
    for part in text.split(separator) if text.startswith(separator) else [text]:
        body = part.split("\n", 1)[1] if part.startswith("IDL: ") else part
        if body.strip():
            types.update(get_types_from_idl(body))
    return types


def full_text(name: str) -> str:
    """A definition with those it needs below it, as bags carry it."""
    parts, queue, seen = [texts()[name]], [name], {name}
    while queue:
        for line in texts()[queue.pop(0)].splitlines():
            kind = line.split()[0].split("[")[0]
            package, _, bare = kind.rpartition("/")
            full = f"{package}/msg/{bare}"
            if package and full not in seen:
                seen.add(full)
                queue.append(full)
                parts.append(f"{'=' * 80}\nMSG: {kind}\n{texts()[full]}")
    return "\n".join(parts) + "\n"
