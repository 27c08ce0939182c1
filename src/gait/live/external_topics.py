"""Measurements of other sensors while a robot runs: topics of ROS 2, or those of the log that is played back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.external import Correction
from gait.fused_run import summary_lines
from gait.io.ros.fused import FixOrigin, Fused, due, measurement, read_fused, topic_and_type
from gait.io.ros.messages import FieldReader
from gait.live.dds import Node
from gait.live.ignored import Ignored
from gait.live.pairing import NS


class ExternalTopics:
    """Gives measurements to an estimator as they arrive, and counts what became of them."""

    def __init__(self) -> None:
        self.results: list[tuple[str, Correction]] = []
        self.ignored = Ignored()

    def take(self, now_ns: int) -> Iterable[tuple[int, Fused]]:
        """What has arrived by the time of a sample: its stamp, ns, and the measurement."""
        raise NotImplementedError

    def correct(self, estimator: Estimator, zero_ns: int | None, now_ns: int) -> None:
        """Give what has arrived to an estimator whose time begins at `zero_ns`."""
        for ns, one in self.take(now_ns):
            if zero_ns is not None:
                t = (ns - zero_ns) / NS
                self.results.append((one.name, estimator.correct(one.kind, t, one.value, one.noise, one.name)))

    def notes(self) -> list[str]:
        """A sentence for each sensor."""
        told = [f"{one[:1].upper()}{one[1:]}." for one in self.ignored.news()]
        return [*summary_lines(self.results), *told]


class DdsTopics(ExternalTopics):
    """Topics of ROS 2."""

    def __init__(self, node: Node, words: Sequence[str], header: bool = True) -> None:
        """Subscribe; stamps are those of the headers, or the times at which messages were sent."""
        super().__init__()
        self._header = header
        self._topics = []
        for word in words:
            topic, kind = topic_and_type(word)
            reader = node.reader(topic if topic.startswith("rt/") else f"rt/{topic.lstrip('/')}", kind)
            self._topics.append((topic, reader, FieldReader(kind, "fuse"), FixOrigin()))

    def take(self, now_ns: int) -> Iterable[tuple[int, Fused]]:
        """All that is there; a message that cannot be read is counted."""
        for topic, reader, fields, origin in self._topics:
            for data, sent in reader.take():
                try:
                    found, layout = fields.read(data)
                    one = measurement(found, origin)
                    ns = (layout.stamp(data) if self._header else 0) or sent
                except (GaitError, ValueError) as error:
                    self.ignored.add(topic, GaitError(str(error)))
                    continue
                if one is not None:
                    yield ns, Fused(ns / NS, ns / NS, topic, *one)


class LoggedTopics(ExternalTopics):
    """Topics of a bag that is played back, each message when it was recorded."""

    def __init__(self, path: Path, words: Sequence[str], t: Array) -> None:
        """Read them; `t` are the stamps of the log."""
        super().__init__()
        self._waiting = read_fused(path, words, np.asarray(t))

    def take(self, now_ns: int) -> Iterable[tuple[int, Fused]]:
        """What was recorded by then."""
        for one in due(self._waiting, now_ns / NS):
            yield round(one.t * NS), one
