"""DDS through cyclonedds: what a node has of readers, writers and patience. ROS 2 and Unitree's Go2 speak it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from gait.errors import GaitError, need_extra

EXTRA = "live"
_INTERFACE = re.compile(r"[\w.:@-]+")
DOMAINS = 232
"""The highest domain that fits the ports."""
MOST = 100_000
"""Messages taken at once by default."""


def check_extra() -> None:
    """Raise unless cyclonedds is installed."""
    try:
        import cyclonedds.domain  # noqa: F401
    except ImportError:
        raise need_extra("cyclonedds", EXTRA) from None


def domain_of(domain: int | None) -> int:
    """The domain that was asked for, or that of ROS_DOMAIN_ID, or 0."""
    word = os.environ.get("ROS_DOMAIN_ID", "") if domain is None else str(domain)
    try:
        number = int(word or 0)
    except ValueError:
        raise GaitError(f"ROS_DOMAIN_ID is '{word}': set it to a number, or give --domain") from None
    if not 0 <= number <= DOMAINS:
        raise GaitError(f"domain {number} does not exist: choose one from 0 to {DOMAINS}")
    return number


class Node:
    """A participant in a domain. One thread reads; what arrives meanwhile is kept by the library."""

    def __init__(self, domain: int | None = None, interface: str = "") -> None:
        """Join a domain.

        Args:
            domain: its number; that of ROS_DOMAIN_ID by default.
            interface: network interface, such as eth0 or lo; by default what CYCLONEDDS_URI says, or the first one.
        """
        check_extra()
        from cyclonedds.core import DDSException, WaitSet
        from cyclonedds.domain import Domain, DomainParticipant

        self.domain, self.interface = domain_of(domain), interface
        if interface and not _INTERFACE.fullmatch(interface):
            raise GaitError(f"'{interface}' is no network interface: see `ip -br addr` for their names")
        try:
            # The settings of a domain hold as long as this object lives.
            self._settings = Domain(self.domain, _settings(interface)) if interface else None
            self._participant: Any = DomainParticipant(self.domain)
        except DDSException:
            where = f" on interface {interface}" if interface else ""
            raise GaitError(
                f"cannot join DDS domain {self.domain}{where}: see `ip -br addr` for the interfaces, and CYCLONEDDS_URI"
                " for settings"
            ) from None
        self._waitset: Any = WaitSet(self._participant)

    def words(self) -> str:
        """Domain, interface and ports, as the standard has them (RTPS 2.2, 9.6.1)."""
        usual = "as CYCLONEDDS_URI says" if os.environ.get("CYCLONEDDS_URI") else "of the system's choice"
        where = f"interface {self.interface}" if self.interface else f"interface {usual}"
        first = 7400 + 250 * self.domain
        return f"DDS domain {self.domain}, {where}, UDP ports {first} to {first + 249}"

    def reader(self, topic: str, kind: str) -> Reader:
        """Read a topic of messages of some type, whatever the reliability of who writes it."""
        return Reader(self._participant, self._waitset, topic, kind)

    def writer(self, topic: str, kind: str, depth: int, keep: bool = False) -> Writer:
        """Write a topic, reliably for those who ask for it, and, if asked to, also what was sent before they joined."""
        return Writer(self._participant, topic, kind, depth, keep)

    def wait(self, timeout: float) -> None:
        """Return when a reader has something, or after so many seconds."""
        self._waitset.wait(int(timeout * 1e9))

    def close(self) -> None:
        """Leave the domain, which subscribers see."""
        self._waitset = self._participant = self._settings = None


class Reader:
    """Messages of one topic as bytes, in the order of arrival."""

    def __init__(self, participant: Any, waitset: Any, topic: str, kind: str) -> None:
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState
        from cyclonedds.qos import Policy, Qos
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic

        from gait.live.idl import raw

        # Best effort is what sensors send, and it also hears those that are reliable. All is kept until it is taken:
        # a pause of this process must not cost a sample.
        qos = Qos(Policy.Reliability.BestEffort, Policy.History.KeepAll, Policy.Durability.Volatile)
        self.topic, self.count = topic, 0
        self._reader: Any = DataReader(participant, Topic(participant, topic, raw(kind)), qos=qos)
        self._condition = ReadCondition(self._reader, ViewState.Any | InstanceState.Any | SampleState.Any)
        waitset.attach(self._condition)

    def take(self, most: int = MOST) -> Iterator[tuple[bytes, int]]:
        """What has come: bytes, and when it was sent on the clock of the sender, ns."""
        for message in self._reader.take(most):
            # What is not raw says that a writer has gone; we notice by its silence.
            if (data := getattr(message, "encoded", None)) is not None:
                self.count += 1
                yield data, message.sample_info.source_timestamp

    @property
    def writers(self) -> int:
        """How many write this topic now."""
        return len(self._reader.get_matched_publications())


class Writer:
    """Sends messages that are encoded already."""

    def __init__(self, participant: Any, topic: str, kind: str, depth: int, keep: bool = False) -> None:
        from cyclonedds.core import DDSException
        from cyclonedds.pub import DataWriter
        from cyclonedds.qos import Policy, Qos
        from cyclonedds.topic import Topic

        from gait.live.idl import raw

        # A listener that is too slow must not hold up the estimator: no waiting, what does not fit is dropped.
        durability = Policy.Durability.TransientLocal if keep else Policy.Durability.Volatile
        qos = Qos(Policy.Reliability.Reliable(0), Policy.History.KeepLast(depth), durability)
        self._kind, self._error = raw(kind), DDSException
        self._writer: Any = DataWriter(participant, Topic(participant, topic, self._kind), qos=qos)
        self.dropped = 0

    @property
    def readers(self) -> int:
        """How many read this topic now."""
        return len(self._writer.get_matched_subscriptions())

    def write(self, encoded: bytes) -> None:
        """Send a message."""
        try:
            self._writer.write(self._kind.of(encoded))
        except self._error:
            self.dropped += 1


def _settings(interface: str) -> str:
    """Settings of cyclonedds for one interface. Loopback has no multicast: there, partners are asked one by one."""
    general, discovery = f'<Interfaces><NetworkInterface name="{interface}"/></Interfaces>', ""
    if interface == "lo":
        general += "<AllowMulticast>false</AllowMulticast>"
        discovery = "<Peers><Peer address='localhost'/></Peers><ParticipantIndex>auto</ParticipantIndex>"
        discovery += "<MaxAutoParticipantIndex>30</MaxAutoParticipantIndex>"
    parts = f"<General>{general}</General><Discovery>{discovery}</Discovery>"
    return f"<CycloneDDS><Domain>{parts}</Domain></CycloneDDS>"
