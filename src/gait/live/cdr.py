"""Messages of robots, out of their bytes: sensor_msgs Imu and JointState, and Unitree's LowState and LowCmd.

The general decoder of cyclonedds takes 0.1 to 2 ms a message, and at 1 kHz a millisecond is all the time there is. What
an estimator needs is a few numbers at places that are known, or soon found; tests compare with general decoders.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError

NS = 1_000_000_000
MOTORS = 12
"""Of the twenty that Unitree's messages have room for: FR, FL, RR, RL, each hip, thigh, calf."""
STOP = 1e6
"""Unitree sends 2.146e9 for a target angle that is not to be followed; no joint comes near this."""

_LITTLE, _BIG = "<", ">"


class Imu(NamedTuple):
    """An inertial measurement."""

    ns: int
    """Stamp of the header; zero if nobody filled it."""
    gyro: Array
    accel: Array


class Joints(NamedTuple):
    """Joint data in the order of the message; what it has not is None."""

    ns: int
    names: tuple[str, ...]
    q: Array
    dq: Array | None
    tau: Array | None


class LowState(NamedTuple):
    """What Unitree's low-level state says of IMU and motors."""

    gyro: Array
    accel: Array
    q: Array
    dq: Array
    tau: Array
    tick: int = 0
    """Of the robot, ms."""


def encapsulation(data: bytes) -> tuple[str, int]:
    """Byte order and largest alignment, from the four bytes before a payload."""
    kind = data[1] if len(data) > 4 else 255
    if kind not in (0, 1, 6, 7):
        raise GaitError(f"a message comes in encoding {kind}: plain CDR is needed (0, 1, 6 or 7)")
    return (_LITTLE if kind & 1 else _BIG), (8 if kind < 2 else 4)


def _header(data: bytes, order: str) -> tuple[int, int]:
    """Stamp of a std_msgs/Header in nanoseconds, and where its frame_id ends."""
    sec, nanosec, length = struct.unpack_from(f"{order}iII", data, 4)
    return sec * NS + nanosec, 16 + length


def _align(offset: int, size: int) -> int:
    # Alignment counts from the payload, which begins after four bytes.
    return offset + -(offset - 4) % size


def decode_imu(data: bytes) -> Imu:
    """sensor_msgs/Imu."""
    order, widest = encapsulation(data)
    ns, end = _header(data, order)
    # Orientation (4), covariance (9), rate (3), covariance (9), force (3), covariance (9).
    values = np.frombuffer(data, f"{order}f8", 28, _align(end, widest))
    return Imu(ns, values[13:16].astype(np.float64), values[25:28].astype(np.float64))


class JointDecoder:
    """sensor_msgs/JointState. A publisher sends the same names every time: they are read once."""

    def __init__(self) -> None:
        self._block = b""
        self._names: tuple[str, ...] = ()

    def __call__(self, data: bytes) -> Joints:
        """Decode one message."""
        order, widest = encapsulation(data)
        ns, end = _header(data, order)
        offset = _align(end, 4)
        if self._block and data.startswith(self._block, offset):
            offset += len(self._block)
        else:
            offset = self._read_names(data, order, offset)
        q, offset = _doubles(data, order, widest, offset)
        dq, offset = _doubles(data, order, widest, offset)
        tau, offset = _doubles(data, order, widest, offset)
        count = len(self._names)
        if len(q) != count:
            raise GaitError(
                f"a JointState has {count} names but {len(q)} positions: publish one position for each name"
            )
        return Joints(ns, self._names, q, dq if len(dq) == count else None, tau if len(tau) == count else None)

    def _read_names(self, data: bytes, order: str, start: int) -> int:
        (count,) = struct.unpack_from(f"{order}I", data, start)
        offset, names = start + 4, []
        for _ in range(count):
            offset = _align(offset, 4)
            (length,) = struct.unpack_from(f"{order}I", data, offset)
            names.append(data[offset + 4 : offset + 3 + length].decode("utf-8", "replace"))
            offset += 4 + length
        self._block, self._names = data[start:offset], tuple(names)
        return offset


def _doubles(data: bytes, order: str, widest: int, offset: int) -> tuple[Array, int]:
    offset = _align(offset, 4)
    (count,) = struct.unpack_from(f"{order}I", data, offset)
    offset += 4
    if not count:
        return np.empty(0), offset
    offset = _align(offset, widest)
    return np.frombuffer(data, f"{order}f8", count, offset).astype(np.float64), offset + 8 * count


def decode_low_state(data: bytes) -> LowState:
    """unitree_go LowState_ of the Go2, as unitree_sdk2 2.0 defines it."""
    order, _ = encapsulation(data)
    # 22 bytes of head, then the floats of the IMU: quaternion (4), gyroscope (3), accelerometer (3), angles (3).
    imu = np.frombuffer(data, f"{order}f4", 10, 4 + 24).astype(np.float64)
    # A motor is 48 bytes: q, dq, ddq, tau_est, three raw ones, a temperature, what was lost, two reserved, a mode.
    motors = np.frombuffer(data, f"{order}f4", 12 * MOTORS, 4 + 80).reshape(MOTORS, 12)[:, :4].astype(np.float64)
    (tick,) = struct.unpack_from(f"{order}I", data, 4 + 1096)
    return LowState(imu[4:7], imu[7:10], motors[:, 0].copy(), motors[:, 1].copy(), motors[:, 3].copy(), tick)


def decode_low_cmd(data: bytes) -> Array:
    """Target angles (12,) of a unitree_go LowCmd_; nan where a motor is not to hold an angle."""
    order, _ = encapsulation(data)
    # A motor is 36 bytes: q, dq, tau, kp, kd, three reserved, and the mode of the next.
    motors = np.frombuffer(data, f"{order}f4", 9 * MOTORS - 1, 4 + 24)
    return without_stops(motors[::9].astype(np.float64))


def without_stops(q_des: Array) -> Array:
    """Targets with nan in the place of those that say: do not follow."""
    return np.where(np.abs(q_des) < STOP, q_des, np.nan)
