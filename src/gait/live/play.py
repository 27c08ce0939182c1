"""A log played as if a robot sent it: to try `gait live` without a robot, and to measure its latency.

python -m gait.live.play ros      # the sample; elsewhere: gait live ros --targets /joint_targets
python -m gait.live.play go1 LOG  # another log; elsewhere: gait live go1
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.io.ros.messages import FIELDS, TOPICS, encode_sample, writer
from gait.live import PACKAGES
from gait.live.dds import Node, Writer
from gait.live.go1 import PORT, SDK
from gait.log import Log, Sample
from gait.samples import SAMPLE

NS = 1_000_000_000


def _encode(kind: str, values: Mapping[str, Any]) -> bytes:
    """A message of Unitree's with the given fields of a Log, and zero for the rest."""
    paths = {name: path for role in FIELDS[kind].values() for name, path in role.items()}
    known = {paths[name]: value for name, value in values.items() if value is not None}
    write = writer(kind, packed=kind.startswith(SDK))
    for path, value in known.items():
        if "*" in path:
            # Messages have room for more motors than a robot has.
            room = write.layout.read(write.encode(0, {}), path).size
            known[path] = np.concatenate([value, np.zeros(room - len(value))])
    return write.encode(0, known)


def encode_state(package: str, row: Sample, tick: int = 0) -> bytes:
    """LowState of one of Unitree's packages with IMU, motors and tick, and nothing else."""
    values = {name: getattr(row, name) for name in ("gyro", "accel", "q", "dq", "tau")}
    return _encode(f"{package}/msg/LowState", {**values, "tick": tick % 2**32})


def encode_command(package: str, q_des: Array) -> bytes:
    """LowCmd of one of Unitree's packages with target angles, and nothing else."""
    return _encode(f"{package}/msg/LowCmd", {"q_des": q_des})


class FakeRobot:
    """Sends rows as a robot would, over DDS or UDP."""

    writers: Sequence[Writer] = ()
    """Of what a subscriber cannot do without; UDP has none."""

    def send(self, row: Sample, ns: int) -> None:
        """All messages of one row, stamped with a time in ns; the targets first, as a controller has them."""
        raise NotImplementedError

    def discovered(self) -> bool:
        """Whether a subscriber has been discovered; UDP has no discovery."""
        return all(writer.readers for writer in self.writers)

    def close(self) -> None:
        """Release sockets; a node is closed by who made it."""


class RosRobot(FakeRobot):
    """Topics of a ROS 2 robot: IMU, joint states, and a JointState of targets."""

    def __init__(self, node: Node, names: Sequence[str]) -> None:
        self._names = names
        self._topics = {role: node.writer(f"rt{topic}", kind, 50) for role, (topic, kind) in TOPICS.items()}
        self.writers = [self._topics["imu"], self._topics["joints"]]

    def send(self, row: Sample, ns: int) -> None:
        """Targets, then what the sensors measure."""
        for role, message in encode_sample(ns, self._names, row):
            self._topics[role].write(message)


class UnitreeRobot(FakeRobot):
    """Topics of a Go2 or G1, with ticks of milliseconds; their stamps are the times at which they are sent."""

    def __init__(self, node: Node, package: str = "unitree_go") -> None:
        self._package = package
        self._command = node.writer("rt/lowcmd", f"{package}/msg/LowCmd", 50)
        self._state = node.writer("rt/lowstate", f"{package}/msg/LowState", 50)
        self.writers = [self._state]

    def send(self, row: Sample, ns: int) -> None:
        """Targets, then what the sensors measure."""
        if row.q_des is not None:
            self._command.write(encode_command(self._package, row.q_des))
        self._state.write(encode_state(self._package, row, ns // 1_000_000))


class Go1Robot(FakeRobot):
    """Packets of a Go1, with ticks of microseconds."""

    def __init__(self, port: int = PORT) -> None:
        self._to = ("127.0.0.1", port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send(self, row: Sample, ns: int) -> None:
        """Targets, then what the sensors measure."""
        if row.q_des is not None:
            self._socket.sendto(encode_command(SDK, row.q_des), self._to)
        self._socket.sendto(encode_state(SDK, row, ns // 1000), self._to)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def play(log: Log, robot: FakeRobot, start_ns: int | None = None) -> int:
    """Send every row when it is due.

    Args:
        log: what to play.
        robot: as which.
        start_ns: stamp of the first row; the time of day by default.

    Returns:
        How many rows were sent.
    """
    start_ns = time.time_ns() if start_ns is None else start_ns
    begin, first = time.perf_counter(), float(log.t[0])
    for row in log.rows():
        past = row.t - first
        wait = begin + past - time.perf_counter()
        if wait > 0.0:
            time.sleep(wait)
        robot.send(row, start_ns + round(past * NS))
    return len(log)


def main() -> None:
    """Play from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", choices=("ros", "go2", "go1", "g1"), help="whose messages to send")
    parser.add_argument("log", type=Path, nargs="?", default=SAMPLE, help="the sample by default")
    parser.add_argument("--domain", type=int, help="DDS domain; ROS_DOMAIN_ID by default")
    parser.add_argument("--interface", default="", help="network interface for DDS")
    parser.add_argument("--port", type=int, default=PORT, help="UDP port of gait live go1")
    parser.add_argument("--rate", type=float, help="resample the log first, Hz")
    parser.add_argument("--begin", type=float, default=0.0, help="seconds of the log to leave out")
    parser.add_argument("--seconds", type=float, help="seconds of the log to play")
    parser.add_argument("--stamp", type=float, help="stamp of the first row, s; the time of day by default")
    parser.add_argument("--wait", type=float, default=30.0, help="seconds to wait for a subscriber")
    args = parser.parse_args()
    try:
        print(f"sent {_play(args)} rows")
    except GaitError as error:
        sys.exit(f"play: {error}")


def _play(args: argparse.Namespace) -> int:
    log = Log.load(args.log)
    start = float(log.t[0]) + args.begin
    log = log.slice(start, None if args.seconds is None else start + args.seconds)
    log = log if args.rate is None else log.resample(args.rate)
    robot: FakeRobot
    if args.robot == "go1":
        robot = Go1Robot(args.port)
    else:
        node = Node(args.domain, args.interface)
        robot = RosRobot(node, log.joint_names) if args.robot == "ros" else UnitreeRobot(node, PACKAGES[args.robot])
    if args.robot != "ros":
        # The order of Unitree's motors is that of its robots' joints.
        log = log.reorder("g1" if args.robot == "g1" else "go1")
    deadline = time.monotonic() + args.wait
    while not robot.discovered() and time.monotonic() < deadline:
        time.sleep(0.01)
    # The subscriber has discovered us; we must discover it too before anything is sent.
    time.sleep(0.2)
    count = play(log, robot, None if args.stamp is None else round(args.stamp * NS))
    # What was sent last may still be on its way.
    time.sleep(0.2)
    robot.close()
    return count


if __name__ == "__main__":
    main()
