"""`gait live`: estimate a running robot and publish its odometry."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, quote, starting
from gait.errors import GaitError
from gait.methods import DEFAULT
from gait.rows import Row

if TYPE_CHECKING:
    from gait.estimator import Estimator
    from gait.live.dds import Node, Writer
    from gait.live.session import OdometrySink, Sink
    from gait.live.sources import SampleSource

NONE = "none"


@dataclass(frozen=True)
class LiveOptions(Common):
    """Estimate a running robot: from ROS 2 topics, a Go2, a Go1, or a log played back; see docs/live.md.

    Odometry and tf go to DDS, where ROS 2 sees them as /odom and /tf. Keep the robot still for the first moment. Ctrl-C
    stops.
    """

    source: Positional[str]
    """ros, go2, go1, or the path of a log to play back in real time."""
    # Not `... | None`: for that tyro imports a type checker, which doubles the time of a help.
    robot: Optional[str] = None  # noqa: UP045
    """Name of the robot, or the path of its YAML file; go1 for ros, what the log says for a log."""
    method: str = DEFAULT
    """gait-legs, gait, gait-flat, nmn, iekf or iekf-sr; or a model file."""
    imu: str = "/imu"
    """ros: topic of sensor_msgs/Imu."""
    joints: str = "/joint_states"
    """ros: topic of sensor_msgs/JointState, with velocities."""
    targets: Optional[str] = None  # noqa: UP045
    """ros: topic of a JointState whose positions are joint targets. go1, go2: none to do without."""
    joint_names: Optional[str] = None  # noqa: UP045
    """ros: which joint is which, where their names do not tell: theirs=ours,..."""
    stamps: Literal["header", "sent"] = "header"
    """ros: stamps of the headers, or the times at which DDS sent the messages."""
    domain: Optional[int] = None  # noqa: UP045
    """DDS domain; ROS_DOMAIN_ID by default, or 0."""
    interface: str = ""
    """Network interface for DDS, such as eth0; by default that of CYCLONEDDS_URI, or the first one."""
    port: int = 8090
    """go1: UDP port to listen at."""
    address: str = "127.0.0.1"
    """go1: address of this machine to listen at; by default only programs on this machine are received."""
    speed: float = 1.0
    """Of a log: 2 is twice as fast."""
    odom: str = "/odom"
    """Topic for nav_msgs/Odometry; none to publish none."""
    tf: str = "/tf"
    """Topic for tf2_msgs/TFMessage; none to publish none."""
    frame: str = "odom"
    """Frame of the odometry."""
    child: str = "base_link"
    """Frame of the body."""
    record: Optional[Path] = None  # noqa: UP045
    """Write odometry, tf and the samples to this .mcap file, which `gait run` reads."""
    view: Optional[tuple[Path, ...]] = None  # noqa: UP045
    """Show the robot in Rerun; with the name of an .rrd file, write that instead."""
    seconds: float = 0.0
    """Stop after so many seconds with samples; 0 for never."""
    every: float = 0.0
    """Print a line every so many seconds, instead of one that changes."""


def run(options: LiveOptions) -> Outcome:
    """Set up, run until stopped, and summarise."""
    if options.view is not None and len(options.view) > 1:
        raise GaitError("--view takes one file: give the source before it, as in gait live ros --view run.rrd")
    if options.record is not None and options.record.suffix != ".mcap":
        raise GaitError(f"{options.record} does not end in .mcap: name the recording so")
    show, notes = options.interactive, list[str]()
    with starting(show):
        from gait.live.monitor import Monitor, StatusLine
        from gait.live.session import run_live, until_interrupted

        # A missing package is reported before anything takes time.
        node = _join(options, notes)
        estimator, source = _source(options, node)
        odometry, sinks = _sinks(options, node, estimator, source.name)
    monitor, line = Monitor(), StatusLine(show, options.every)
    if not options.json or options.every:
        for one in _network(options, node, source):
            print(one, file=sys.stderr)
        print(f"{source.name}, by {estimator.method}; Ctrl-C stops", file=sys.stderr)
    with until_interrupted() as interrupted:

        def stop() -> bool:
            spent = time.monotonic() - monitor.first if options.seconds and monitor.samples else 0.0
            return interrupted() or spent > options.seconds

        try:
            run_live(source, estimator, sinks, monitor, line, stop)
        finally:
            source.close()
            if node is not None:
                node.close()
    words = (source.status(), getattr(source, "note", ""))
    told = [f"{one[:1].upper()}{one[1:]}." for one in (*words, *source.ignored.news()) if one]
    notes += [*monitor.notes, *told]
    following = f"gait run {quote(options.record)}" if options.record is not None and monitor.samples else ""
    rows = [*monitor.rows(), Row("dropped", odometry.dropped, "-")]
    return Outcome(rows, title=source.name, notes=notes, wrote=options.record, next=following)


def _network(options: LiveOptions, node: Node | None, source: SampleSource) -> list[str]:
    """What is open to others, a line each: where messages are received from, and where they go to."""
    from gait.live.sources import dds_name

    lines = [] if node is None else [node.words()]
    sent = [dds_name(topic) for topic in (options.odom, options.tf) if node is not None and topic != NONE]
    lines += [
        f"{what} {', '.join(names)}" for what, names in (("listens to", source.listens), ("sends", sent)) if names
    ]
    return lines or ["listens to nothing, sends nothing"]


def _join(options: LiveOptions, notes: list[str]) -> Node | None:
    """A DDS node where it is needed; without the package, a note that nothing is published."""
    from gait.live.dds import Node, check_extra

    if options.source not in ("ros", "go2"):
        if options.odom == NONE and options.tf == NONE:
            return None
        try:
            check_extra()
        except GaitError as error:
            notes.append(f"Odometry was not published: {error}.")
            return None
    return Node(options.domain, options.interface)


def _source(options: LiveOptions, node: Node | None) -> tuple[Estimator, SampleSource]:
    """The estimator, after a few steps, since the first is slow; and what gives it samples."""
    import numpy as np

    from gait.estimator import Estimator
    from gait.io import open_log
    from gait.live.go1 import Go1Source
    from gait.live.sources import Go2Source, ReplaySource, RosSource, Topics, dds_name

    log = None if options.source in ("ros", "go1", "go2") else open_log(options.source)
    usual = log.robot if log is not None else "go2" if options.source == "go2" else "go1"
    estimator = Estimator.load(options.robot or usual, options.method, attention=options.view is not None)
    robot, q = estimator.robot, estimator.robot.q_stand
    for k in range(20):
        estimator.update(0.002 * k, np.zeros(3), np.array([0.0, 0.0, 9.81]), q, 0.0 * q, q, 0.0 * q)
    estimator.reset()
    if log is not None:
        return estimator, ReplaySource(log, robot, options.speed)
    if options.source == "go1":
        return estimator, Go1Source(robot, options.port, options.address, options.targets != NONE)
    assert node is not None
    if options.source == "go2":
        return estimator, Go2Source(node, robot, command="" if options.targets == NONE else "rt/lowcmd")
    targets = "" if options.targets in (None, NONE) else dds_name(str(options.targets))
    topics = Topics(dds_name(options.imu), dds_name(options.joints), targets)
    return estimator, RosSource(node, robot, topics, options.joint_names, options.stamps)


def _sinks(
    options: LiveOptions, node: Node | None, estimator: Estimator, source: str
) -> tuple[OdometrySink, list[Sink]]:
    """Where states go; the odometry first, since a control loop waits for it."""
    from gait.io.ros.definitions import ODOMETRY, TRANSFORMS
    from gait.io.ros.mcap_writer import McapRecorder
    from gait.io.ros.odometry import Converter, Encoder
    from gait.live.session import OdometrySink, ViewSink
    from gait.live.sources import dds_name
    from gait.report.rerun_view import View

    robot, encoder = estimator.robot, Encoder(options.frame, options.child)

    def writer(topic: str, kind: str, depth: int) -> Writer | None:
        return None if node is None or topic == NONE else node.writer(dds_name(topic), kind, depth)

    recorder = None
    # A missing viewer is reported before a file is begun.
    views: list[Sink] = []
    if options.view is not None:
        views = [ViewSink(View(robot, options.view[0] if options.view else None))]
    if options.record is not None:
        recorder = McapRecorder(options.record, encoder, robot=robot.name, method=estimator.method, source=source)
    publishers = writer(options.odom, ODOMETRY, 10), writer(options.tf, TRANSFORMS, 100)
    sink = OdometrySink(Converter(robot), encoder, *publishers, recorder, robot.joint_names)
    return sink, [sink, *views]
