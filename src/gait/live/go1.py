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

from gait.errors import GaitError, os_errors
from gait.io.ros.layout import MessageWriter
from gait.live.pairing import NS, Arrival
from gait.live.sources import SampleSource, UnitreeSamples, checked_stamp
from gait.robot import Robot

PORT = 8090
LOOPBACK = "127.0.0.1"
SENDERS = 4
"""Addresses of senders that are counted separately."""
BUFFER = 4 * 1024 * 1024
"""Bytes that the kernel is asked to keep for us while we are busy; net.core.rmem_max may grant less."""
BATCH = 20
"""Samples given at once: in the time that they take, the kernel's buffer does not fill."""
MOST = 100_000
_FORCE = 33
"""SO_RCVBUFFORCE of Linux, which Python has no name for."""
_TIMESTAMP = 35
"""SO_TIMESTAMPNS of Linux, which Python has no name for: the kernel stamps each packet on arrival."""

SDK = "unitree_legged_sdk"
"""Package of the definitions of its packed structs."""


def size_of(name: str) -> int:
    """Bytes of a struct: 937 of LowState, 734 of LowCmd."""
    return MessageWriter(f"{SDK}/msg/{name}", packed=True).layout.size


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
        # A tick is 32 bits and wraps after 71 minutes.
        step = (tick - self._last) % 2**32
        self._ticks += step if step < 2**31 else step - 2**32
        self._last = tick
        self._count += 1
        if self._count == self.PACKETS:
            # Packets may have been held up, so roughly is enough: the units are a thousand apart.
            elapsed = max(arrived_ns - self._begin_ns, 1)
            self.unit = next((unit for unit in self.UNITS if 0.05 < self._ticks * unit / elapsed < 20.0), 0)
        return self._begin_ns + self._ticks * self.unit if self.unit else arrived_ns


class Go1Source(SampleSource):
    """Packets of a Go1. Stamps are its ticks; latency counts from when the kernel received a packet."""

    def __init__(self, robot: Robot, port: int = PORT, address: str = LOOPBACK, targets: bool = True) -> None:
        """Listen.

        Args:
            robot: whose joints are wanted.
            port: to listen at; 0 for any.
            address: of this machine, at which packets are received; by default only those from this machine.
            targets: whether commands will come.
        """
        super().__init__()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        # With the privilege for it, a buffer beyond the limit.
        for option, value in ((_FORCE, BUFFER), (_TIMESTAMP, 1)):
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, option, value)
        with os_errors(f"cannot listen at UDP port {port} of {address}"):
            try:
                self._socket.bind((address, port))
            except OSError:
                self._socket.close()
                raise
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self.name, self.wants_targets = f"UDP port {self.port}", targets
        self.listens = (f"UDP {address}:{self.port}",)
        self._samples, self._clock = UnitreeSamples(SDK, robot, packed=True), TickClock()
        self._sizes = {size_of(name): name for name in ("LowState", "LowCmd")}
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._states = self._strange = self._size = 0
        self._senders: set[str] = set()

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Take what has come, in its order: a state with the last command before it."""
        if not self._waiting:
            select.select([self._socket], [], [], timeout)
        # All of it, whatever is done with it now: the kernel's buffer is small.
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while len(self._waiting) < MOST:
                data, ancillary, _, sender = self._socket.recvmsg(2048, 64)
                self._waiting.append((data, self._arrived(ancillary)))
                if len(data) in self._sizes and len(self._senders) < SENDERS:
                    self._senders.add(sender[0])
        arrivals: list[Arrival] = []
        while self._waiting and len(arrivals) < BATCH:
            data, arrived = self._waiting.popleft()
            kind = self._sizes.get(len(data))
            try:
                if kind == "LowCmd":
                    self._samples.command(arrived, data)
                elif kind == "LowState":
                    self._states += 1
                    state = self._samples.state(data)
                    ns = checked_stamp(self._clock.stamp(int(state["tick"]), arrived))
                    sample = self._samples.sample(state, ns, arrived if self.wants_targets else None)
                    arrivals.append(Arrival(sample, ns, arrived))
                else:
                    self._strange, self._size = self._strange + 1, len(data)
            except GaitError as error:
                self.ignored.add(self.listens[0], error)
        return arrivals

    @staticmethod
    def _arrived(ancillary: list[tuple[int, int, bytes]]) -> int:
        for _, kind, data in ancillary:
            if kind == _TIMESTAMP and len(data) >= 16:
                sec, nanosec = struct.unpack("@qq", data[:16])
                return int(sec) * NS + int(nanosec)
        return time.time_ns()

    def status(self) -> str:
        """What comes that is not a packet of a Go1, or not of one alone."""
        words = [] if self._states or self._strange else [f"nothing at UDP port {self.port}"]
        if len(self._senders) > 1:
            words.append(f"packets from {len(self._senders)} senders: {', '.join(sorted(self._senders))}")
        if self._strange:
            sizes = " and ".join(f"{size} ({name})" for size, name in self._sizes.items())
            words.append(f"{self._strange} packets left out, the last of {self._size} bytes: {sizes} are read")
        return ", ".join([*words, *filter(None, [self.ignored.words()])])

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
