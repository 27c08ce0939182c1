"""The Go1's low-level state over UDP: the packed structs of unitree_legged_sdk 3.8.0 (`comm.h`), little-endian.

A Go1 answers only the computer that commands it, in frames that its SDK unpacks. So the program that controls the robot
passes on what it has: `sendto(&state, sizeof(LowState))` and, for joint targets, `sendto(&cmd, sizeof(LowCmd))`, to the
same port; the size tells which is which.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.live.cdr import MOTORS, LowState, without_stops
from gait.live.pairing import NS, Arrival, Held
from gait.live.sources import unitree_order
from gait.log.sample import Sample
from gait.robot import Robot

PORT = 8090
BUFFER = 4 * 1024 * 1024
"""Bytes that the kernel is asked to keep for us while we are busy; net.core.rmem_max may grant less."""
BATCH = 20
"""Samples given at once: in the time that they take, the kernel's buffer does not fill."""
MOST = 100_000
_FORCE = 33
"""SO_RCVBUFFORCE of Linux, which Python has no name for."""
_TIMESTAMP = 35
"""SO_TIMESTAMPNS of Linux, which Python has no name for: the kernel tells when a packet came."""

_HEAD = [
    ("head", "u1", 2), ("level_flag", "u1"), ("frame_reserve", "u1"), ("sn", "<u4", 2), ("version", "<u4", 2),
    ("bandwidth", "<u2"),
]  # fmt: skip
_MOTOR_STATE = np.dtype([
    ("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("ddq", "<f4"), ("tau", "<f4"), ("q_raw", "<f4"), ("dq_raw", "<f4"),
    ("ddq_raw", "<f4"), ("temperature", "i1"), ("reserve", "<u4", 2),
])  # fmt: skip
LOW_STATE = np.dtype([
    *_HEAD,
    ("quaternion", "<f4", 4), ("gyro", "<f4", 3), ("accel", "<f4", 3), ("rpy", "<f4", 3), ("temperature", "i1"),
    ("motors", _MOTOR_STATE, 20),
    ("bms", "u1", 34), ("foot_force", "<i2", 4), ("foot_force_est", "<i2", 4), ("tick", "<u4"),
    ("wireless_remote", "u1", 40), ("reserve", "<u4"), ("crc", "<u4"),
])  # fmt: skip
"""937 bytes."""
_MOTOR_CMD = np.dtype([
    ("mode", "u1"), ("q", "<f4"), ("dq", "<f4"), ("tau", "<f4"), ("kp", "<f4"), ("kd", "<f4"), ("reserve", "<u4", 3),
])  # fmt: skip
LOW_CMD = np.dtype([
    *_HEAD,
    ("motors", _MOTOR_CMD, 20),
    ("bms", "u1", 4), ("wireless_remote", "u1", 40), ("reserve", "<u4"), ("crc", "<u4"),
])  # fmt: skip
"""734 bytes."""


def decode_state(data: bytes) -> tuple[int, LowState]:
    """The tick of a LowState, and what it says of IMU and motors."""
    one = np.frombuffer(data, LOW_STATE)[0]
    motors = one["motors"][:MOTORS]
    parts = (one["gyro"], one["accel"], motors["q"], motors["dq"], motors["tau"])
    return int(one["tick"]), LowState(*(part.astype(np.float64) for part in parts))


def decode_command(data: bytes) -> Array:
    """Target angles (12,) of a LowCmd; nan where a motor is not to hold an angle."""
    return without_stops(np.frombuffer(data, LOW_CMD)[0]["motors"]["q"][:MOTORS].astype(np.float64))


class TickClock:
    """Stamps from the robot's own tick, which has none of the jitter of a network.

    The header gives microseconds. Some firmware counts milliseconds, and a tick may stand still: the first packets show
    which it is, compared with the clock of this machine, and where nothing fits that clock is taken.
    """

    UNITS = (1_000, 1_000_000)
    """Nanoseconds of a tick."""
    PACKETS = 100

    def __init__(self) -> None:
        self.unit = self.UNITS[0]
        self._count, self._ticks, self._last, self._begin_ns = 0, 0, 0, 0

    def stamp(self, tick: int, arrived_ns: int) -> int:
        """The stamp of a packet, ns."""
        if not self._count:
            self._begin_ns, self._last = arrived_ns, tick
        # A tick is 32 bits and begins anew after 71 minutes.
        step = (tick - self._last) % 2**32
        self._ticks += step if step < 2**31 else step - 2**32
        self._last = tick
        self._count += 1
        if self._count == self.PACKETS:
            self.unit = self._decide(arrived_ns - self._begin_ns)
        return self._begin_ns + self._ticks * self.unit if self.unit else arrived_ns

    def _decide(self, elapsed_ns: int) -> int:
        # Packets may have been held up, so roughly is enough: the units are a thousand apart.
        fits = [unit for unit in self.UNITS if 0.05 < self._ticks * unit / max(elapsed_ns, 1) < 20.0]
        return fits[0] if fits else 0


class Go1Source:
    """Packets of a Go1. Stamps are its ticks; latency counts from when the kernel received a packet."""

    ended = False

    def __init__(self, robot: Robot, port: int = PORT, address: str = "0.0.0.0", targets: bool = True) -> None:
        """Listen.

        Args:
            robot: whose joints are wanted.
            port: to listen at; 0 for any.
            address: of this machine; all of them by default.
            targets: whether commands will come.
        """
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        with contextlib.suppress(OSError):
            # Whoever may, has it in full.
            self._socket.setsockopt(socket.SOL_SOCKET, _FORCE, BUFFER)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
        try:
            self._socket.bind((address, port))
        except OSError as error:
            self._socket.close()
            raise GaitError(f"cannot listen at UDP port {port}: {(error.strerror or str(error)).lower()}") from None
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self.name, self.wants_targets = f"UDP port {self.port}", targets
        self._order, self._clock = unitree_order(robot), TickClock()
        self._targets = Held()
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._states = self._strange = self._size = 0

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Take what has come, in its order: a state with the last command before it."""
        if not self._waiting:
            select.select([self._socket], [], [], timeout)
        # All of it, whatever is done with it now: the kernel's buffer is small.
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while len(self._waiting) < MOST:
                data, ancillary, _, _ = self._socket.recvmsg(2048, 64)
                self._waiting.append((data, self._arrived(ancillary)))
        arrivals: list[Arrival] = []
        while self._waiting and len(arrivals) < BATCH:
            data, arrived = self._waiting.popleft()
            if len(data) == LOW_CMD.itemsize:
                self._targets.set(arrived, decode_command(data)[self._order])
            elif len(data) == LOW_STATE.itemsize:
                arrivals.append(self._arrival(data, arrived))
            else:
                self._strange, self._size = self._strange + 1, len(data)
        return arrivals

    def _arrival(self, data: bytes, arrived: int) -> Arrival:
        tick, state = decode_state(data)
        ns, order = self._clock.stamp(tick, arrived), self._order
        self._states += 1
        q_des = self._targets.at(arrived) if self.wants_targets else None
        joints = (state.q[order], state.dq[order], q_des, state.tau[order])
        return Arrival(Sample(ns / NS, state.gyro, state.accel, *joints), ns, arrived)

    @staticmethod
    def _arrived(ancillary: list[tuple[int, int, bytes]]) -> int:
        for _, kind, data in ancillary:
            if kind == _TIMESTAMP and len(data) >= 16:
                sec, nanosec = struct.unpack("@qq", data[:16])
                return int(sec) * NS + int(nanosec)
        return time.time_ns()

    def status(self) -> str:
        """What comes that is not a packet of a Go1."""
        if self._strange:
            sizes = f"{LOW_STATE.itemsize} (LowState) and {LOW_CMD.itemsize} (LowCmd) are read"
            return f"{self._strange} packets left out, the last of {self._size} bytes: {sizes}"
        return "" if self._states else f"nothing at UDP port {self.port}"

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
