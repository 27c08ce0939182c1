"""Sources of samples: ROS 2 topics, a Go2 or G1, or a log that is replayed; `go1.py` has the Go1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io.joints import match_joints
from gait.io.ros.definitions import IMU, JOINT_STATE
from gait.io.ros.layout import MessageLayout
from gait.io.ros.messages import FieldReader, has_target, unitree_motors
from gait.live.dds import Node, Reader
from gait.live.ignored import Ignored
from gait.live.pairing import HOLD, NS, Arrival, Pairing
from gait.log import Log, Sample
from gait.robot import Robot

KEPT = 64
"""Lists of joint names that are remembered."""
LATEST = 2**31 * NS
"""ROS has no time beyond: seconds are 32 bits."""
BATCH = 200
"""Samples given at once: with a backlog, the loop still checks for a stop several times a second."""


def checked_stamp(ns: int) -> int:
    """A stamp, if it is a time that a message can have."""
    if not 0 <= ns < LATEST:
        raise GaitError(f"its stamp of {ns / NS:.9g} s is no time: set the clock of the sender")
    return ns


class SampleSource:
    """Gives samples as they come. `poll` is called again and again by one thread."""

    name: str
    """What it is, in words."""
    ended = False
    """Whether nothing will come any more."""
    wants_targets: bool
    """Whether samples will have joint targets, as far as is known; it turns False if none come."""
    listens: tuple[str, ...] = ()
    """Where messages are received: addresses, ports and topics, a line each."""

    def __init__(self) -> None:
        self.ignored = Ignored()
        """Messages that could not be used: no message ends the loop."""

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Wait for samples, but no longer than `timeout` seconds, and give those that are there."""
        raise NotImplementedError

    def status(self) -> str:
        """What it waits for or leaves out, in a few words; empty if all is well."""
        return ""

    def close(self) -> None:
        """Release what it opened itself; a node is closed by who made it."""


class Topics(NamedTuple):
    """Names of topics as DDS has them: those of ROS 2 with rt in the place of the first slash."""

    imu: str = "rt/imu"
    joints: str = "rt/joint_states"
    targets: str = ""
    """JointState whose positions are joint targets; empty if there is none."""


def dds_name(topic: str) -> str:
    """The name in DDS of a ROS 2 topic: /odom is rt/odom. A name that begins with rt/ is taken as it is."""
    return topic if not topic or topic.startswith("rt/") else f"rt/{topic.lstrip('/')}"


class RosSource(SampleSource):
    """sensor_msgs/Imu and JointState from any ROS 2 machine in the network, paired by their stamps."""

    def __init__(
        self, node: Node, robot: Robot, topics: Topics, joint_names: str | None = None, stamps: str = "header"
    ) -> None:
        """Subscribe.

        Args:
            node: in a domain.
            robot: whose joints are wanted.
            topics: where to listen.
            joint_names: which joint is which, as `match_joints` takes it.
            stamps: `header`, or `sent` for the time at which DDS sent a message.
        """
        super().__init__()
        self.name = f"{topics.imu} and {topics.joints} in domain {node.domain}"
        self.listens = tuple(
            f"{topic} ({kind})" for topic, kind in zip(topics, (IMU, JOINT_STATE, JOINT_STATE), strict=True) if topic
        )
        self.wants_targets = bool(topics.targets)
        self._node, self._robot, self._given = node, robot, joint_names
        self._header = stamps == "header"
        self._imu = node.reader(topics.imu, IMU)
        self._joints = node.reader(topics.joints, JOINT_STATE)
        self._targets = node.reader(topics.targets, JOINT_STATE) if topics.targets else None
        self._pairing = Pairing(len(robot.encoder_names), commands=bool(topics.targets))
        self._imu_fields = FieldReader(IMU, "imu")
        self._joint_fields, self._target_fields = (FieldReader(JOINT_STATE, role) for role in ("joints", "targets"))
        self._orders: dict[tuple[str, ...], list[int] | GaitError] = {}
        self.note = ""
        """How joints were matched, in words."""

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Take what has come. Commands last: one that was sent before an IMU message is then there as well."""
        pairing = self._pairing
        self._node.wait(min(timeout, 0.002) if pairing.waiting else timeout)
        now = time.monotonic()
        for data, sent in self._imu.take(BATCH):
            with self._usable(self._imu):
                imu, layout = self._imu_fields.read(data)
                pairing.add_imu(self._stamp(layout, data, sent), imu["gyro"], imu["accel"], sent, now)
        for data, sent in self._joints.take():
            with self._usable(self._joints):
                self._add_joints(data, sent)
        if self._targets is not None:
            for data, sent in self._targets.take():
                with self._usable(self._targets):
                    command, layout = self._target_fields.read(data)
                    q_des = command["q_des"]
                    pairing.add_targets(self._stamp(layout, data, sent), q_des[self._order(layout, q_des)])
        return pairing.take(now)

    @contextmanager
    def _usable(self, reader: Reader) -> Iterator[None]:
        """A message of anyone in the network: another version, cut short, or of another device on the same topic."""
        try:
            yield
        except GaitError as error:
            self.ignored.add(reader.topic, error)

    def _add_joints(self, data: bytes, sent: int) -> None:
        joints, layout = self._joint_fields.read(data)
        order = self._order(layout, joints["q"])
        if len(joints["dq"]) != len(joints["q"]):
            raise GaitError(f"{self._joints.topic} has no velocities: publish one for each joint")
        tau = joints["tau"][order] if len(joints["tau"]) == len(joints["q"]) else None
        self._pairing.add_joints(self._stamp(layout, data, sent), joints["q"][order], joints["dq"][order], tau)

    def status(self) -> str:
        """Topics without a word, and messages that could not be used."""
        words = _silent(self._imu, self._joints, self._targets)
        counts = {"without joints": self._pairing.unpaired, "out of order": self._pairing.disordered}
        words += [f"{count} {what}" for what, count in counts.items() if count]
        return ", ".join([*words, *filter(None, [self.ignored.words()])])

    def _stamp(self, layout: MessageLayout, data: bytes, sent: int) -> int:
        return checked_stamp((layout.stamp(data) if self._header else 0) or sent)

    def _order(self, layout: MessageLayout, q: AnyArray) -> list[int]:
        names = layout.texts["name"]
        if len(q) != len(names):
            raise GaitError(
                f"a JointState has {len(names)} names but {len(q)} positions: publish one position for each name"
            )
        if names not in self._orders:
            if len(self._orders) >= KEPT:
                self._orders.clear()
            try:
                found = match_joints(names, self._robot.encoder_names, self._given)
                self._orders[names], self.note = list(found.index), found.note
            except GaitError as error:
                # A gripper, say, that sends its joints to the same topic.
                self._orders[names] = error
        order = self._orders[names]
        if isinstance(order, GaitError):
            raise order
        return order


class UnitreeSamples:
    """Samples of Unitree's LowState and LowCmd: joints in the robot's order, with the targets that hold."""

    def __init__(self, package: str, robot: Robot, packed: bool = False) -> None:
        """Take the definitions of a package; packed as in `MessageLayout.of`."""
        self._states = FieldReader(f"{package}/msg/LowState", "imu", "joints", "clock", packed=packed)
        self._commands = FieldReader(f"{package}/msg/LowCmd", "targets", packed=packed)
        self._order = unitree_order(package, robot)
        self._command: tuple[int, AnyArray] | None = None

    def state(self, data: bytes) -> dict[str, AnyArray]:
        """The fields of a LowState, and its tick."""
        found, order = self._states.read(data)[0], self._order
        return found | {name: found[name][order] for name in ("q", "dq", "tau")}

    def target(self, data: bytes) -> AnyArray:
        """Target angles of a LowCmd; nan where a motor is not to hold an angle."""
        q_des = self._commands.read(data)[0]["q_des"][self._order]
        return np.where(has_target(q_des), q_des, np.nan)

    def command(self, ns: int, data: bytes) -> None:
        """A LowCmd, which holds until the next."""
        self._command = ns, self.target(data)

    def sample(self, state: dict[str, AnyArray], ns: int, targets_ns: int | None) -> Sample:
        """A sample with a stamp, and with the targets at another one, if any are wanted.

        There are none before the first command, and nan once the last is too old.
        """
        q_des = None
        if targets_ns is not None and self._command is not None:
            sent, q_des = self._command
            q_des = q_des if targets_ns - sent <= HOLD * NS else np.full_like(q_des, np.nan)
        return Sample(ns / NS, state["gyro"], state["accel"], state["q"], state["dq"], q_des, state["tau"])


class UnitreeSource(SampleSource):
    """rt/lowstate and rt/lowcmd of a Unitree Go2, G1 or H1. Stamps are the times at which the robot sent them."""

    def __init__(self, node: Node, robot: Robot, package: str = "unitree_go", command: str = "rt/lowcmd") -> None:
        """Subscribe to messages of a package; an empty `command` does without joint targets."""
        super().__init__()
        self.name = f"rt/lowstate in domain {node.domain}"
        self.listens = (f"rt/lowstate ({package}/msg/LowState)",)
        self.listens += (f"{command} ({package}/msg/LowCmd)",) if command else ()
        self.wants_targets = bool(command)
        self._node, self._samples = node, UnitreeSamples(package, robot)
        self._state = node.reader("rt/lowstate", f"{package}/msg/LowState")
        self._command = node.reader(command, f"{package}/msg/LowCmd") if command else None
        self._later: list[tuple[bytes, int]] = []
        """Commands that were sent after the last state."""

    def poll(self, timeout: float) -> Iterable[Arrival]:
        """Take what has come: a state with the last command that was sent before it."""
        self._node.wait(timeout)
        states = list(self._state.take(BATCH))
        commands = self._later + ([] if self._command is None else list(self._command.take()))
        arrivals = []
        for data, sent in states:
            before = [command for command in commands if command[1] <= sent]
            if before:
                commands = [command for command in commands if command[1] > sent]
            for command, command_sent in before:
                self._use("rt/lowcmd", self._samples.command, command_sent, command)
            state = self._use("rt/lowstate", self._samples.state, data)
            if state is not None and self._use("rt/lowstate", checked_stamp, sent) is not None:
                sample = self._samples.sample(state, sent, sent if self.wants_targets else None)
                arrivals.append(Arrival(sample, sent, sent, int(state["tick"]) * 1_000_000))
        # A sender whose clock is ahead must not fill the memory.
        self._later = commands[-BATCH:]
        return arrivals

    def _use(self, where: str, read: Callable[..., Any], *given: Any) -> Any:
        """What a reader makes of a message; None if it cannot be read, which is counted."""
        try:
            return read(*given)
        except GaitError as error:
            self.ignored.add(where, error)
            return None

    def status(self) -> str:
        """Topics without a message, and messages that could not be used."""
        return ", ".join([*_silent(self._state, self._command), *filter(None, [self.ignored.words()])])


def unitree_order(package: str, robot: Robot) -> list[int]:
    """Where the robot's joints are among the motors of one of Unitree's packages."""
    return list(match_joints(unitree_motors(f"{package}/", robot.encoder_names), robot.encoder_names).index)


def _silent(*readers: Reader | None) -> list[str]:
    """Topics without a message so far, in words."""
    silent = [reader.topic for reader in readers if reader is not None and not reader.count]
    return [f"nothing on {', '.join(silent)}"] if silent else []


class ReplaySource(SampleSource):
    """A log at the speed at which it was recorded, or faster."""

    def __init__(self, log: Log, robot: Robot, speed: float = 1.0) -> None:
        """Put the log into the robot's order; the clock starts at the first poll."""
        super().__init__()
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
        early = (self._due(self._next) - time.time_ns()) / NS
        time.sleep(min(max(early, 0.0), timeout))
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
