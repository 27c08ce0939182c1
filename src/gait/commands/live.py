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
from gait.live import PACKAGES
from gait.methods import DEFAULT
from gait.read_options import NONE, ReadOptions, asked
from gait.rows import Row

if TYPE_CHECKING:
    from gait.estimator import Estimator
    from gait.live.dds import Node, Writer
    from gait.live.external_topics import ExternalTopics
    from gait.live.session import OdometrySink, Sink
    from gait.live.sources import SampleSource

LIVE = ("ros", "go2", "go1", "g1")
OF_A_LOG = ("truth", "columns", "scale", "time", "align_clock", "fix")
"""Options that a running robot does not have."""


@dataclass(frozen=True, kw_only=True)
class LiveOptions(Common, ReadOptions):
    """Estimate a running robot: from ROS 2 topics, a Go2, a Go1, or a log played back; see docs/live.md.

    Odometry and tf go to DDS, where ROS 2 sees them as /odom and /tf. Keep the robot still for the first moment. Ctrl-C
    stops.
    """

    source: Positional[str]
    """ros, go2, go1, g1, or the path of a log to play back in real time."""
    # Not `... | None`: for that tyro imports a type checker, which doubles the time of a help.
    method: str = DEFAULT
    """gait-legs, gait, gait-flat, nmn, iekf or iekf-sr; or a model file."""
    imu: Optional[str] = None  # noqa: UP045
    """ros: topic of sensor_msgs/Imu, /imu by default; of a log: as in gait run."""
    joints: Optional[str] = None  # noqa: UP045
    """ros: topic of sensor_msgs/JointState with velocities, /joint_states by default; of a log: as in gait run."""
    targets: Optional[str] = None  # noqa: UP045
    """ros: topic of a JointState whose positions are joint targets. go1, go2, g1, a log: none to do without."""
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
    fuse: tuple[str, ...] = ()
    """Topics whose poses or fixes correct the estimate; of another type than nav_msgs/Odometry with its name behind a
    colon, as in /fix:NavSatFix; see docs/fusion.md."""
    sensors: Optional[Path] = None  # noqa: UP045
    """With --fuse: YAML file that says where sensors are mounted."""
    speed: float = 1.0
    """Of a log: 2 is twice as fast."""
    odom: str = "/odom"
    """Topic for nav_msgs/Odometry; none to publish none."""
    tf: str = "/tf"
    """Topic for tf2_msgs/TFMessage; none to publish none."""
    feet: str = NONE
    """Topic for gait_msgs/FootStates: contact, slip, force and position of the feet, and the ground."""
    diagnostics: str = "/diagnostics"
    """Topic for diagnostic_msgs/DiagnosticArray, where odometry or tf are published; none to publish none."""
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
    unfit = [f"--{name.replace('_', '-')}" for name in OF_A_LOG if name in asked(options)]
    if unfit and options.source in LIVE:
        raise GaitError(f"{unfit[0]} is for logs: leave it out, or give the path of a log instead of {options.source}")
    show, notes = options.interactive, list[str]()
    with starting(show):
        from gait.live.monitor import Monitor, StatusLine
        from gait.live.session import run_live, until_interrupted

        # A missing package is reported before anything takes time.
        node = _join(options, notes)
        estimator, source = _source(options, node, notes)
        odometry, sinks = _sinks(options, node, estimator, source.name)
        others = _others(options, node)
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
            run_live(source, estimator, sinks, monitor, line, stop, others)
        finally:
            source.close()
            if node is not None:
                node.close()
    words = (source.status(), getattr(source, "note", ""))
    told = [f"{one[:1].upper()}{one[1:]}." for one in (*words, *source.ignored.news()) if one]
    notes = [*notes, *monitor.notes, *told, *(others.notes() if others is not None else ())]
    following = f"gait run {quote(options.record)}" if options.record is not None and monitor.samples else ""
    rows = [*monitor.rows(), Row("dropped", odometry.dropped, "-")]
    return Outcome(rows, title=source.name, notes=notes, wrote=options.record, next=following)


def _network(options: LiveOptions, node: Node | None, source: SampleSource) -> list[str]:
    """What is open to others, a line each: where messages are received from, and where they go to."""
    from gait.live.sources import dds_name

    lines = [] if node is None else [node.words()]
    listened = (*source.listens, *(options.fuse if node is not None else ()))
    topics = (options.odom, options.tf, *_described(options), options.feet)
    sent = [dds_name(topic) for topic in topics if node is not None and topic != NONE]
    lines += [f"{what} {', '.join(names)}" for what, names in (("listens to", listened), ("sends", sent)) if names]
    return lines or ["listens to nothing, sends nothing"]


def _described(options: LiveOptions) -> tuple[str, str]:
    """Topics of static transforms, beside those of tf, and of diagnostics, beside either."""
    static = NONE if options.tf == NONE else f"{options.tf}_static"
    return static, NONE if options.odom == options.tf == NONE else options.diagnostics


def _join(options: LiveOptions, notes: list[str]) -> Node | None:
    """A DDS node where it is needed; without the package, a note that nothing is published."""
    from gait.live.dds import Node, check_extra

    if options.source not in ("ros", *PACKAGES):
        if options.odom == NONE and options.tf == NONE:
            return None
        try:
            check_extra()
        except GaitError as error:
            notes.append(f"Odometry was not published: {error}.")
            return None
    return Node(options.domain, options.interface)


def _source(options: LiveOptions, node: Node | None, notes: list[str]) -> tuple[Estimator, SampleSource]:
    """The estimator, after a few steps, since the first is slow; and what gives it samples. Notes are added to."""
    import numpy as np

    from gait.estimator import Estimator
    from gait.fused_run import sensors_of
    from gait.io.checked import read_checked, warnings_of
    from gait.io.ros.fused import topic_and_type
    from gait.live.go1 import Go1Source
    from gait.live.sources import ReplaySource, RosSource, Topics, UnitreeSource, dds_name

    log = None
    if options.source not in LIVE:
        reading, findings = read_checked(options.source, options)
        log = reading.log
        notes += [*warnings_of(findings, options), *reading.notes]
    usual = log.load_robot() if log is not None else options.source if options.source in PACKAGES else "go1"
    sensors = sensors_of([topic_and_type(word)[0] for word in options.fuse], options.sensors)
    estimator = Estimator.load(
        options.robot or usual,
        options.method,
        attention=options.view is not None,
        feet=options.feet != NONE,
        sensors=sensors,
    )
    robot = estimator.robot
    q = robot.q_stand[[robot.joint_names.index(name) for name in robot.encoder_names]]
    for k in range(20):
        estimator.update(0.002 * k, np.zeros(3), np.array([0.0, 0.0, 9.81]), q, 0.0 * q, q, 0.0 * q)
    estimator.reset()
    if log is not None:
        return estimator, ReplaySource(log, robot, options.speed)
    if options.source == "go1":
        return estimator, Go1Source(robot, options.port, options.address, options.targets != NONE)
    assert node is not None
    if options.source in PACKAGES:
        command = "" if options.targets == NONE else "rt/lowcmd"
        return estimator, UnitreeSource(node, robot, PACKAGES[options.source], command)
    targets = "" if options.targets in (None, NONE) else dds_name(str(options.targets))
    topics = Topics(dds_name(options.imu or "/imu"), dds_name(options.joints or "/joint_states"), targets)
    return estimator, RosSource(node, robot, topics, options.joint_names, options.stamps)


def _others(options: LiveOptions, node: Node | None) -> ExternalTopics | None:
    """What gives measurements of other sensors, if any are asked for."""
    if not options.fuse:
        return None
    from gait.io import open_log
    from gait.live.external_topics import DdsTopics, LoggedTopics

    if options.source not in LIVE:
        return LoggedTopics(Path(options.source), options.fuse, open_log(options.source).t)
    if node is None:
        raise GaitError("--fuse needs DDS: leave out --odom none, or --tf none")
    return DdsTopics(node, options.fuse, options.stamps == "header")


def _sinks(
    options: LiveOptions, node: Node | None, estimator: Estimator, source: str
) -> tuple[OdometrySink, list[Sink]]:
    """Where states go; the odometry first, since a control loop waits for it."""
    from gait.io.ros.definitions import DIAGNOSTICS, FOOT_STATES, ODOMETRY, TRANSFORMS
    from gait.io.ros.diagnostics import DiagnosticEncoder
    from gait.io.ros.mcap_writer import McapRecorder
    from gait.io.ros.odometry import Converter, Encoder, FootEncoder
    from gait.live.session import OdometrySink, ViewSink
    from gait.live.sources import dds_name
    from gait.report.rerun_view import View

    robot, encoder = estimator.robot, Encoder(options.frame, options.child)

    def writer(topic: str, kind: str, depth: int, keep: bool = False) -> Writer | None:
        return None if node is None or topic == NONE else node.writer(dds_name(topic), kind, depth, keep)

    recorder = None
    # A missing viewer is reported before a file is begun.
    views: list[Sink] = []
    if options.view is not None:
        views = [ViewSink(View(robot, options.view[0] if options.view else None))]
    if options.record is not None:
        recorder = McapRecorder(options.record, encoder, robot=robot.name, method=estimator.method, source=source)
    publishers = writer(options.odom, ODOMETRY, 10), writer(options.tf, TRANSFORMS, 100)
    sink = OdometrySink(Converter(robot), encoder, *publishers, recorder, robot.encoder_names)
    static, diagnostics = _described(options)
    # Later listeners get it as well.
    sink.publish_frames(robot, writer(static, TRANSFORMS, 1, keep=True))
    if options.diagnostics != NONE:
        encoding = DiagnosticEncoder(robot.name, estimator.method)
        sink.publish_diagnostics(encoding, writer(diagnostics, DIAGNOSTICS, 10))
    if options.feet != NONE:
        sink.publish_feet(FootEncoder(robot.leg_names, options.frame), writer(options.feet, FOOT_STATES, 10))
    return sink, [sink, *views]
