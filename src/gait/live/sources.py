"""Where samples come from: ROS 2 topics, a Go2, a Go1, or a log that is played again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from gait.errors import GaitError
from gait.io.joints import match_joints
from gait.live.cdr import JointDecoder, decode_imu, decode_low_cmd, decode_low_state
from gait.live.dds import Node
from gait.live.pairing import NS, Arrival, Held, Pairing
from gait.log.log import Log
from gait.log.sample import Sample
from gait.robot import Robot

UNITREE_LEGS = ("FR", "FL", "RR", "RL")
UNITREE_LINKS = ("hip", "thigh", "calf")
UNITREE_JOINTS = tuple(f"{leg}_{link}_joint" for leg in UNITREE_LEGS for link in UNITREE_LINKS)
"""Order of the motors in Unitree's messages."""


_MS = 1_000_000
BATCH = 200
"""Samples given at once: whoever has fallen behind still looks up several times a second."""


class Source(Protocol):
    """Gives samples as they come. `poll` is called again and again by one thread."""

    name: str
    """What it is, in words."""
    ended: bool
    """Whether nothing will come any more."""
    wants_targets: bool
    """Whether samples will have joint targets, as far as is known; it turns False if none come."""

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Wait for samples, but no longer than `timeout` seconds, and give those that are there."""

    def status(self) -> str:
        """What it waits for or leaves out, in a few words; empty if all is well."""

    def close(self) -> None:
        """Let go of sockets and the like."""


@dataclass(frozen=True)
class Topics:
    """Names of topics as DDS has them: those of ROS 2 with rt in the place of the first slash."""

    imu: str = "rt/imu"
    joints: str = "rt/joint_states"
    targets: str = ""
    """JointState whose positions are joint targets; empty if there is none."""


def dds_name(topic: str) -> str:
    """The name in DDS of a ROS 2 topic: /odom is rt/odom. A name that begins with rt/ is taken as it is."""
    if not topic or topic.startswith("rt/"):
        return topic
    return f"rt/{topic.lstrip('/')}"


class RosSource:
    """sensor_msgs/Imu and JointState from any ROS 2 machine in the network, paired by their stamps."""

    ended = False

    def __init__(
        self,
        node: Node,
        robot: Robot,
        topics: Topics,
        joint_names: str | None = None,
        stamps: str = "header",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Subscribe.

        Args:
            node: in a domain.
            robot: whose joints are wanted.
            topics: where to listen.
            joint_names: which joint is which, as `match_joints` takes it.
            stamps: `header`, or `sent` for the time at which DDS sent a message.
            clock: for tests.
        """
        from gait.live import idl

        self.name = f"{topics.imu} and {topics.joints} in domain {node.domain}"
        self.wants_targets = bool(topics.targets)
        self._node, self._robot, self._given = node, robot, joint_names
        self._header, self._clock = stamps == "header", clock
        self._imu = node.reader(topics.imu, idl.Imu)
        self._joints = node.reader(topics.joints, idl.JointState)
        self._targets = node.reader(topics.targets, idl.JointState) if topics.targets else None
        self._pairing = Pairing(robot.num_joints, commands=bool(topics.targets))
        self._decoders = (JointDecoder(), JointDecoder())
        self._orders: dict[tuple[str, ...], list[int]] = {}
        self.note = ""
        """How joints were matched, in words."""

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Take what has come. Commands last: one that was sent before an IMU message is then there as well."""
        pairing = self._pairing
        self._node.wait(min(timeout, 0.002) if pairing.waiting else timeout)
        now = self._clock()
        for data, sent in self._imu.take(BATCH):
            message = decode_imu(data)
            pairing.add_imu(self._stamp(message.ns, sent), message.gyro, message.accel, sent, now)
        for data, sent in self._joints.take():
            joints = self._decoders[0](data)
            order = self._order(joints.names)
            if joints.dq is None:
                raise GaitError(f"{self._joints.topic} has no velocities: publish one for each joint")
            tau = None if joints.tau is None else joints.tau[order]
            pairing.add_joints(self._stamp(joints.ns, sent), joints.q[order], joints.dq[order], tau)
        if self._targets is not None:
            for data, sent in self._targets.take():
                command = self._decoders[1](data)
                pairing.add_targets(self._stamp(command.ns, sent), command.q[self._order(command.names)])
        return pairing.take(now)

    def status(self) -> str:
        """Topics without a word, and messages that could not be used."""
        silent = [one.topic for one in (self._imu, self._joints) if not one.count]
        if self._targets is not None and not self._targets.count:
            silent.append(self._targets.topic)
        words = [f"nothing on {', '.join(silent)}"] if silent else []
        if self._pairing.unpaired:
            words.append(f"{self._pairing.unpaired} without joints")
        if self._pairing.disordered:
            words.append(f"{self._pairing.disordered} out of order")
        return ", ".join(words)

    def close(self) -> None:
        """Nothing: the node is closed by who made it."""

    def _stamp(self, header: int, sent: int) -> int:
        return header if self._header and header else sent

    def _order(self, names: tuple[str, ...]) -> list[int]:
        if names not in self._orders:
            found = match_joints(names, self._robot.joint_names, self._given)
            self._orders[names], self.note = list(found.index), found.note
        return self._orders[names]


class Go2Source:
    """rt/lowstate and rt/lowcmd of a Unitree Go2. Stamps are the times at which the robot sent the messages."""

    ended = False

    def __init__(self, node: Node, robot: Robot, state: str = "rt/lowstate", command: str = "rt/lowcmd") -> None:
        """Subscribe; an empty `command` does without joint targets."""
        from gait.live import idl

        self.name = f"{state} in domain {node.domain}"
        self.wants_targets = bool(command)
        self._node, self._order = node, unitree_order(robot)
        self._state = node.reader(state, idl.LowState)
        self._command = node.reader(command, idl.LowCmd) if command else None
        self._targets = Held()
        self._later: list[tuple[int, bytes]] = []
        """Commands that were sent after the last state."""

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Take what has come: a state with the last command that was sent before it."""
        self._node.wait(timeout)
        states = [(sent, data) for data, sent in self._state.take(BATCH)]
        commands, self._later = self._later, []
        if self._command is not None:
            commands += [(sent, data) for data, sent in self._command.take()]
        order, arrivals, k = self._order, [], 0
        for sent, data in states:
            while k < len(commands) and commands[k][0] <= sent:
                self._targets.set(commands[k][0], decode_low_cmd(commands[k][1])[order])
                k += 1
            state = decode_low_state(data)
            q_des = self._targets.at(sent) if self.wants_targets else None
            joints = (state.q[order], state.dq[order], q_des, state.tau[order])
            sample = Sample(sent / NS, state.gyro, state.accel, *joints)
            arrivals.append(Arrival(sample, sent, sent, state.tick * _MS))
        self._later = commands[k:]
        return arrivals

    def status(self) -> str:
        """Topics without a word."""
        silent = [one.topic for one in (self._state, self._command) if one is not None and not one.count]
        return f"nothing on {', '.join(silent)}" if silent else ""

    def close(self) -> None:
        """Nothing: the node is closed by who made it."""


def unitree_order(robot: Robot) -> list[int]:
    """Where the robot's joints are among Unitree's motors."""
    return list(match_joints(UNITREE_JOINTS, robot.joint_names).index)


class ReplaySource:
    """A log at the speed at which it was recorded, or faster."""

    wants_targets: bool

    def __init__(self, log: Log, robot: Robot, speed: float = 1.0) -> None:
        """Put the log into the robot's order; the clock starts at the first poll."""
        if not speed > 0.0:
            raise GaitError(f"speed must be above 0, got {speed:g}")
        log = log.reorder(robot)
        self.name = f"a log of {log.duration:.1f} s"
        self.ended, self.wants_targets = False, log.q_des is not None
        self._rows, self._t = log.rows(), log.t
        self._speed, self._next, self._begin_ns = speed, 0, 0

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Sleep until the next row is due, and give all that are."""
        if not self._begin_ns:
            self._begin_ns = time.time_ns()
        late = (time.time_ns() - self._due(self._next)) / NS
        if late < 0.0:
            time.sleep(min(-late, timeout))
        now = time.time_ns()
        arrivals: list[Arrival] = []
        while self._next < len(self._t) and len(arrivals) < BATCH and self._due(self._next) <= now:
            row = next(self._rows)
            arrivals.append(Arrival(row, round(row.t * NS), self._due(self._next)))
            self._next += 1
        self.ended = self._next == len(self._t)
        return arrivals

    def _due(self, row: int) -> int:
        past = (self._t[min(row, len(self._t) - 1)] - self._t[0]) / self._speed
        return self._begin_ns + int(past * NS)

    def status(self) -> str:
        """Nothing to say."""
        return ""

    def close(self) -> None:
        """Nothing to let go of."""
