"""Messages and packets of live robots as "files": whatever comes, the loop goes on and the sink gets numbers."""

import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gait import Estimator, Log, Robot
from gait.errors import GaitError
from gait.io.ros import messages
from gait.io.ros.odometry import Converter, Encoder
from gait.live import play
from gait.live.go1 import SDK, Go1Source
from gait.live.monitor import Monitor, StatusLine
from gait.live.session import OdometrySink, run_live
from gait.live.sources import RosSource, SampleSource, Topics, UnitreeSource
from gait.samples import SAMPLE

NS = 1_700_000_000 * 10**9
SENT = (NS, 0, -1, 2**63 - 1, -(2**63), 1)
ROBOT = Robot.load("go1")


class Network:
    """A node whose topics hold what is put there."""

    domain = 0

    def __init__(self, topics: dict[str, list[tuple[bytes, int]]]) -> None:
        self.topics = topics

    def reader(self, topic: str, kind: str) -> "Network.Topic":
        return self.Topic(topic, self.topics.get(topic, []))

    def wait(self, timeout: float) -> None:
        """Nothing to wait for."""

    class Topic:
        def __init__(self, topic: str, waiting: list[tuple[bytes, int]]) -> None:
            self.topic, self.waiting, self.count = topic, waiting, 1

        def take(self, most: int = 0) -> list[tuple[bytes, int]]:
            found, self.waiting[:] = list(self.waiting), []
            return found


@cache
def rows() -> Any:
    """Some samples of a walk."""
    return list(Log.load(SAMPLE).slice(0.0, 0.01).rows())


def _run(source: SampleSource, polls: int) -> None:
    """The whole loop, from a message to odometry; a GaitError would end it, and so is a failure here."""
    left = iter(range(polls))
    sink = OdometrySink(Converter(ROBOT), Encoder())
    try:
        run_live(source, ESTIMATOR, [sink], Monitor(), StatusLine(False), lambda: next(left, None) is None)
        source.status()
        source.ignored.words()
        state = ESTIMATOR.update(_still())
        assert np.isfinite(state.vel_b).all(), "the next sample gives numbers"
    except GaitError as error:
        raise AssertionError(f"it ended: {error}") from None
    finally:
        ESTIMATOR.reset()


ESTIMATOR = Estimator.load(ROBOT)


def _still() -> Any:
    q = ROBOT.q_stand
    row = rows()[0]
    return row._replace(t=10.0**6, gyro=np.zeros(3), accel=np.array([0.0, 0.0, 9.81]), q=q, dq=0.0 * q, q_des=q)


def _ros(role: str) -> Callable[[Path], object]:
    """Two good samples, the mutant among them."""

    def read(path: Path) -> object:
        data = path.read_bytes()
        sent = SENT[data[0] % len(SENT)] if data and data[0] > 1 else NS
        good = [
            dict(messages.encode_sample(NS + i * 2_000_000, ROBOT.joint_names, row)) for i, row in enumerate(rows())
        ]
        topics = {name: [(one[name], NS + i) for i, one in enumerate(good)] for name in ("imu", "joints", "targets")}
        topics[role].insert(1, (data, sent))
        source = RosSource(Network(topics), ROBOT, Topics("imu", "joints", "targets"))  # type: ignore[arg-type]
        _run(source, 3)
        return source

    return read


def _go2(path: Path) -> object:
    data = path.read_bytes()
    states = [(play.encode_state("unitree_go", row, i), NS + i * 2_000_000) for i, row in enumerate(rows())]
    topic = "rt/lowstate" if len(data) % 2 else "rt/lowcmd"
    topics: dict[str, list[tuple[bytes, int]]] = {"rt/lowstate": states, "rt/lowcmd": []}
    topics[topic].insert(1, (data, SENT[len(data) % len(SENT)]))
    source = UnitreeSource(Network(topics), ROBOT)  # type: ignore[arg-type]
    _run(source, 3)
    return source


def _go1(path: Path) -> object:
    data = path.read_bytes()[:60000]
    source = Go1Source(ROBOT, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for i, row in enumerate(rows()):
            sender.sendto(play.encode_state(SDK, row, i * 2000), ("127.0.0.1", source.port))
            sender.sendto(data, ("127.0.0.1", source.port))
    try:
        _run(source, 2)
    finally:
        source.close()
    return source


def _messages(role: str) -> Callable[[Path], list[bytes]]:
    return lambda folder: [dict(messages.encode_sample(NS, ROBOT.joint_names, rows()[0]))[role]]


def _packets(package: str) -> Callable[[Path], list[bytes]]:
    row = rows()[0]
    return lambda folder: [play.encode_state(package, row, 77), play.encode_command(package, row.q_des)]


PACKETS: dict[str, tuple[Callable[[Path], list[bytes]], Callable[[Path], object]]] = {
    "live-imu": (_messages("imu"), _ros("imu")),
    "live-joints": (_messages("joints"), _ros("joints")),
    "live-targets": (_messages("targets"), _ros("targets")),
    "live-go2": (_packets("unitree_go"), _go2),
    "live-go1": (_packets(SDK), _go1),
}
"""By name: whole messages, and what receives one."""
