"""What may be wrong with an estimate: bits for machines, words for people."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag


class Health(IntFlag):
    """Bits of `Trajectory.health`; 0 means that all is well."""

    STARTING = 1
    """The state is still being found: no gravity direction or no measurement so far."""
    TIME_GAP = 2
    """Samples were missing before this one."""
    BAD_SAMPLE = 4
    """A value was not finite, out of the sensor's range or out of time, and was not used."""
    NO_MEASUREMENT = 8
    """Nothing but the IMU moved the state: no foot on the ground, or no network output."""
    REJECTED = 16
    """A measurement was too unlikely and was not used, or was used with less weight."""
    SLIP = 32
    """A foot in contact moves."""
    DIVERGED = 64
    """The covariance or the state left the plausible range: do not trust it."""
    BAD_TIME = 128
    """The stamp was not finite or not later than the one before: the sample was not used."""
    BAD_IMU = 256
    """Gyro or accelerometer were not finite: the state was held and its uncertainty grew."""
    IMU_SATURATED = 512
    """Gyro or accelerometer were at the end of their range or beyond: treated like BAD_IMU."""
    STALE_LEG = 1024
    """Encoders of a leg were not finite, out of range, stuck or flagged: the leg was not used."""


FIRST_LEG = 16
"""Bit of the first leg: with STALE_LEG, bit FIRST_LEG + i says that leg i is concerned."""
_WORDS = {
    Health.STARTING: "starting",
    Health.NO_MEASUREMENT: "no measurement",
    Health.REJECTED: "measurement rejected",
    Health.SLIP: "foot slips",
    Health.DIVERGED: "diverged",
    Health.BAD_TIME: "stamp not later than the last",
    Health.BAD_IMU: "imu not finite",
    Health.IMU_SATURATED: "imu saturated",
}


class HealthReport:
    """The health of one estimate. `str()` gives words such as `leg FR stale, gap 0.12 s`; `flags` gives the bits."""

    __slots__ = ("_gap", "_legs", "bits")

    def __init__(self, bits: int, leg_names: Sequence[str] = (), gap: float = 0.0) -> None:
        """Take the bits of `Health`, the names behind the leg bits and the seconds behind TIME_GAP."""
        self.bits = bits
        """All bits, those of the legs among them."""
        self._legs, self._gap = leg_names, gap

    @property
    def ok(self) -> bool:
        """Whether there is nothing to report."""
        return self.bits == 0

    @property
    def flags(self) -> Health:
        """The bits by name, without those that say which leg."""
        return Health(self.bits & ((1 << FIRST_LEG) - 1))

    @property
    def words(self) -> list[str]:
        """What is wrong, each in a few words."""
        words = [word for flag, word in _WORDS.items() if self.bits & flag]
        if self.bits & Health.TIME_GAP:
            words.append(f"gap {self._gap:.2f} s")
        words += [f"leg {leg} stale" for i, leg in enumerate(self._legs) if self.bits >> (FIRST_LEG + i) & 1]
        return words

    def __str__(self) -> str:
        return ", ".join(self.words) or "ok"

    def __repr__(self) -> str:
        return f"HealthReport({self})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HealthReport):
            return self.bits == other.bits
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]
