"""The live loop: samples in, states out to sinks, until it is stopped."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gait.estimator import Estimator, State
from gait.io.ros.definitions import DIAGNOSTICS, FOOT_STATES
from gait.io.ros.diagnostics import DiagnosticEncoder
from gait.io.ros.mcap_writer import McapRecorder
from gait.io.ros.messages import TOPICS, encode_sample
from gait.io.ros.odometry import Converter, Encoder, FootEncoder
from gait.live.dds import Writer
from gait.live.external_topics import ExternalTopics
from gait.live.monitor import Monitor, StatusLine
from gait.live.pairing import NS, Arrival
from gait.live.sources import SampleSource
from gait.log import Sample
from gait.report.rerun_view import View
from gait.robot import Robot

POLL = 0.05
"""Longest wait for a sample, s, after which the loop checks whether to stop."""
PATIENCE = 1.0
"""How long to wait for the first joint targets, s, before it goes on without."""
WITHOUT_TARGETS = "No joint targets came, so weights that do without were taken: start again once commands are sent."


class Sink(Protocol):
    """Takes states: publisher, recorder, viewer."""

    def put(self, arrival: Arrival, state: State) -> None:
        """A sample and the state after it."""

    def close(self) -> None:
        """The last has come."""


@dataclass
class OdometrySink:
    """Odometry and transform to DDS and to a file: encoded once, the same bytes for both."""

    converter: Converter
    encoder: Encoder
    odometry: Writer | None = None
    transform: Writer | None = None
    recorder: McapRecorder | None = None
    joint_names: tuple[str, ...] = ()
    """Of the samples, which are recorded as well."""

    def __post_init__(self) -> None:
        self._feet: tuple[FootEncoder, Writer | None, int] | None = None
        self._diagnostics: tuple[DiagnosticEncoder, Writer | None, int] | None = None
        self._static: tuple[Robot, Writer] | None = None
        recorder = self.recorder
        self._channels = {role: recorder.channel(*topic) for role, topic in TOPICS.items()} if recorder else {}

    def put(self, arrival: Arrival, state: State) -> None:
        """Send it, then record it."""
        if self._static is not None:
            robot, static = self._static
            self._static = None
            static.write(self.encoder.imu_transform(arrival.ns, robot))
        values = self.converter.of(state, arrival.sample.gyro)
        odometry, transform = (make(arrival.ns, values) for make in (self.encoder.odometry, self.encoder.transform))
        for writer, message in ((self.odometry, odometry), (self.transform, transform)):
            if writer is not None:
                writer.write(message)
        if self.recorder is not None:
            self.recorder.write_messages(arrival.ns, odometry, transform)
            for role, message in encode_sample(arrival.ns, self.joint_names, arrival.sample):
                self.recorder.write_to(self._channels[role], arrival.ns, message)
        if self._feet is not None and state.foot_pos_w is not None:
            encoder, writer, channel = self._feet
            self._send(arrival.ns, encoder.encode(arrival.ns, state), writer, channel)
        if self._diagnostics is not None:
            diagnosis, writer, channel = self._diagnostics
            health = state.health
            if diagnosis.due(arrival.ns, health):
                self._send(arrival.ns, diagnosis.encode(arrival.ns, health, state), writer, channel)

    def _send(self, ns: int, message: bytes, writer: Writer | None, channel: int) -> None:
        if writer is not None:
            writer.write(message)
        if self.recorder is not None:
            self.recorder.write_to(channel, ns, message)

    def publish_feet(self, encoder: FootEncoder, writer: Writer | None) -> None:
        """Also send and record the feet and the ground of states."""
        self._feet = encoder, writer, self.recorder.channel("/foot_states", FOOT_STATES) if self.recorder else -1

    def publish_diagnostics(self, encoder: DiagnosticEncoder, writer: Writer | None) -> None:
        """Send health as well, once a second and where it changes, and record it."""
        channel = self.recorder.channel("/diagnostics", DIAGNOSTICS) if self.recorder else -1
        self._diagnostics = encoder, writer, channel

    def publish_frames(self, robot: Robot, writer: Writer | None) -> None:
        """Send the pose of the IMU with the first sample, and record it."""
        if self.recorder is not None:
            self.recorder.describe(robot)
        self._static = None if writer is None else (robot, writer)

    def close(self) -> None:
        """Complete the file."""
        if self.recorder is not None:
            self.recorder.close()

    @property
    def dropped(self) -> int:
        """Messages that no listener could take."""
        return sum(one.dropped for one in (self.odometry, self.transform) if one is not None)


class ViewSink:
    """Some of the samples to Rerun: drawing all of them would take longer than they last."""

    RATE = 20.0

    def __init__(self, view: View) -> None:
        """Draw there."""
        self._view, self._next = view, 0

    def put(self, arrival: Arrival, state: State) -> None:
        """Draw, if the last drawing is long enough ago."""
        if arrival.ns >= self._next or arrival.ns < self._next - 2 * int(1e9 / self.RATE):
            self._next = arrival.ns + int(1e9 / self.RATE)
            self._view.show(arrival.ns / 1e9, state, np.asarray(arrival.sample.q))

    def close(self) -> None:
        """Write what is left."""
        self._view.close()


def run_live(
    source: SampleSource,
    estimator: Estimator,
    sinks: Sequence[Sink],
    monitor: Monitor,
    line: StatusLine,
    stop: Callable[[], bool] = lambda: False,
    others: ExternalTopics | None = None,
) -> None:
    """Estimate until the source ends or `stop` says so; sinks are closed whatever happens.

    Args:
        source: gives samples.
        estimator: reset, and run once before: the first call may compile.
        sinks: given every state.
        monitor: given every sample.
        line: for the terminal.
        stop: asked every few milliseconds.
        others: measurements of other sensors, as the estimator names them.
    """
    gc.collect()
    # What is there now stays: the collector need not look at it again, which would take it tens of milliseconds.
    gc.freeze()
    start = _Start(source, monitor)
    try:
        while not source.ended and not stop():
            for arrival in source.poll(POLL):
                sample = start.sample(arrival)
                if sample is None:
                    continue
                state = estimator.update(sample)
                for sink in sinks:
                    sink.put(arrival, state)
                monitor.add(arrival, state, time.time_ns())
                if others is not None:
                    others.correct(estimator, start.zero_ns, arrival.ns)
            if line.due():
                for news in source.ignored.news():
                    line.say(news)
                line.write(monitor.line(source.status()))
    finally:
        gc.unfreeze()
        line.close()
        for sink in sinks:
            sink.close()


class _Start:
    """Which weights to take is settled with the first sample: so that one waits for joint targets, if there are to be
    any."""

    def __init__(self, source: SampleSource, monitor: Monitor) -> None:
        self._source, self._monitor = source, monitor
        self._first: float | None = None
        self.zero_ns: int | None = None
        """When the first sample was, where the estimator's time begins."""

    def sample(self, arrival: Arrival) -> Sample | None:
        """The sample as the estimator shall see it, or None if it is not to be used.

        Its time is counted from the start: seconds since 1970 would be rounded to 0.2 us.
        """
        sample, source = arrival.sample, self._source
        if self.zero_ns is None:
            if source.wants_targets and (sample.q_des is None or not np.isfinite(sample.q_des).all()):
                now = time.monotonic()
                self._first = now if self._first is None else self._first
                if now - self._first < PATIENCE:
                    return None
                source.wants_targets = False
                self._monitor.notes.append(WITHOUT_TARGETS)
            self.zero_ns = arrival.ns
        t = (arrival.ns - self.zero_ns) / NS
        return sample._replace(t=t) if source.wants_targets else sample._replace(t=t, q_des=None)


@contextmanager
def until_interrupted() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and a polite kill ask to stop, instead of tearing the loop apart in the middle of a write."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
