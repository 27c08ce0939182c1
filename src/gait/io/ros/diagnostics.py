"""Health as ROS 2 has it: diagnostic_msgs/DiagnosticArray, for files and for DDS."""

from __future__ import annotations

from functools import lru_cache

from gait.health import Health, HealthReport
from gait.io.ros.definitions import DIAGNOSTICS
from gait.io.ros.layout import MessageWriter
from gait.state import State

OK, WARN, ERROR = 0, 1, 2
"""Levels of diagnostic_msgs/DiagnosticStatus."""
PERIOD, LEAST_PERIOD = 1_000_000_000, 100_000_000
"""Nanoseconds between messages while nothing changes, and at least where health does."""
_ERRORS = Health.DIVERGED | Health.BAD_IMU | Health.IMU_STUCK | Health.IMU_UNITS | Health.IMU_AXES
_FIELDS = {"resets": "d", "test_ratio": ".3g", "vel_std_x": ".3g", "vel_std_y": ".3g", "vel_std_z": ".3g"}


def level_of(health: HealthReport) -> int:
    """ERROR where the state should not be used or the IMU is out of use, WARN for all else that health names."""
    return OK if health.ok else ERROR if health.flags & _ERRORS else WARN


class DiagnosticEncoder:
    """Decides when a message is due, and makes it: once a second, and at once where health changes."""

    def __init__(self, robot: str, method: str) -> None:
        """Name the robot (`hardware_id`) and the method."""
        self._robot, self._name = robot, f"gait: {method}"
        self._last_ns: int | None = None
        self._last_words = ""

    def due(self, ns: int, health: HealthReport) -> bool:
        """Whether a message should be sent for a sample at this time; a clock that was set back counts as a change."""
        since = PERIOD if self._last_ns is None else ns - self._last_ns
        changed = str(health) != self._last_words
        if since < 0 or since >= PERIOD or (changed and since >= LEAST_PERIOD):
            self._last_ns, self._last_words = ns, str(health)
            return True
        return False

    def encode(self, ns: int, health: HealthReport, state: State | None = None) -> bytes:
        """diagnostic_msgs/DiagnosticArray with one status; a state adds what stands behind its health."""
        values: list[tuple[str, str]] = []
        if state is not None:
            numbers = (state.resets, state.test_ratio, *state.vel_b_std)
            values = [(name, format(x, how)) for (name, how), x in zip(_FIELDS.items(), numbers, strict=True)]
            values += [(f"valid_{name}", str(flag)) for name, flag in state.valid._asdict().items()]
        writer = _writer(self._name, self._robot, str(health), tuple(values))
        return writer.encode(ns, {"status.0.level": level_of(health)})


@lru_cache(maxsize=8)
def _writer(name: str, robot: str, message: str, values: tuple[tuple[str, str], ...]) -> MessageWriter:
    """For messages of these texts, which change rarely."""
    given: dict[str, str | int] = {
        "status": 1, "status.0.name": name, "status.0.message": message, "status.0.hardware_id": robot,
        "status.0.values": len(values),
    }  # fmt: skip
    for i, (key, value) in enumerate(values):
        given |= {f"status.0.values.{i}.key": key, f"status.0.values.{i}.value": value}
    return MessageWriter(DIAGNOSTICS, given)
