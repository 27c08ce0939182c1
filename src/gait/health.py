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
    """A measurement was an outlier: it was not used, or with an inflated variance."""
    SLIP = 32
    """A foot in contact moves."""
    DIVERGED = 64
    """The covariance or the state left the plausible range: do not use it."""
    BAD_TIME = 128
    """The stamp was not finite or not later than the one before: the sample was not used."""
    BAD_IMU = 256
    """Gyro or accelerometer were not finite: the state was held and its uncertainty grew."""
    IMU_SATURATED = 512
    """Gyro or accelerometer were at the end of their range or beyond: treated like BAD_IMU."""
    STALE_LEG = 1024
    """Encoders of a leg were not finite, out of range, stuck, flagged, or contradicted by targets and torques: the leg
    was not used."""
    RESET = 2048
    """The velocity was reset to the measurement; shown for half a second."""
    GYRO = 4096
    """With bits of the IMU: the gyro is meant."""
    ACCEL = 8192
    """With bits of the IMU: the accelerometer is meant."""
    IMU_STUCK = 16384
    """Gyro or accelerometer do not change, and were not used."""
    IMU_UNITS = 32768
    """Gyro or accelerometer have values of another unit, and were not used."""
    DQ_DEAD = 1 << 24
    """Joint velocities of a leg are zero while its angles move: differences of the angles stand in."""
    ENCODER_STUCK = 1 << 25
    """With STALE_LEG: an angle does not change while the leg moves, or contradicts the joint's velocity."""
    BAD_TORQUE = 1 << 26
    """Torques do not support the robot's weight, and were not used."""
    CLOCK_BACK = 1 << 27
    """The clock was set back; shown for half a second."""
    IMU_DISPUTED = 1 << 28
    """Measurements agree with each other and not with the IMU: the variance of the prediction grows."""
    IMU_SPIKE = 1 << 29
    """A single value of gyro or accelerometer was far from its neighbours, and was not used."""
    IMU_AXES = 1 << 30
    """Gravity is not where the orientation has it: the IMU's axes, or the orientation at the start, are wrong."""
    NO_TORQUE = 1 << 31
    """Torques and joint targets that were there are missing."""


FIRST_LEG, MOST_LEGS = 16, 8
"""Bits of the legs: with STALE_LEG or DQ_DEAD, bit FIRST_LEG + i is that of leg i."""
_LEG_BITS = ((1 << MOST_LEGS) - 1) << FIRST_LEG
_WORDS = {
    Health.STARTING: "starting",
    Health.NO_MEASUREMENT: "no measurement",
    Health.REJECTED: "measurement rejected",
    Health.SLIP: "foot slips",
    Health.DIVERGED: "diverged",
    Health.BAD_TIME: "stamp not later than the last",
    Health.BAD_TORQUE: "torques do not support the robot's weight: ignored",
    Health.NO_TORQUE: "torques and targets missing",
    Health.IMU_DISPUTED: "imu and legs disagree",
    Health.RESET: "velocity reset",
    Health.IMU_AXES: "gravity is not along the vertical: check the axes of the imu",
}
_IMU_WORDS = {
    Health.BAD_IMU: "not finite",
    Health.IMU_SATURATED: "saturated",
    Health.IMU_STUCK: "stuck",
    Health.IMU_SPIKE: "spike",
}
_SENSORS = {Health.GYRO: "gyro", Health.ACCEL: "accelerometer"}
_UNITS = {Health.GYRO: "gyro in deg/s?", Health.ACCEL: "accelerometer in g?"}


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
        """The bits by name, without those of single legs."""
        return Health(self.bits & ~_LEG_BITS)

    @property
    def words(self) -> list[str]:
        """What is wrong, each in a few words."""
        words = [word for flag, word in _WORDS.items() if self.bits & flag]
        sensor = _SENSORS.get(self.flags & (Health.GYRO | Health.ACCEL), "imu")
        words += [f"{sensor} {word}" for flag, word in _IMU_WORDS.items() if self.bits & flag]
        if self.bits & Health.IMU_UNITS:
            words += [word for flag, word in _UNITS.items() if self.bits & flag]
        if self.bits & Health.CLOCK_BACK:
            words.append(f"clock set back {self._gap:.2g} s" if self._gap else "clock set back")
        elif self.bits & Health.TIME_GAP:
            words.append(f"gap {self._gap:.2f} s")
        return [*words, *self._leg_words()]

    def _leg_words(self) -> list[str]:
        named = [leg for i, leg in enumerate(self._legs) if self.bits >> (FIRST_LEG + i) & 1]
        if self.bits & Health.DQ_DEAD and not self.bits & Health.STALE_LEG:
            return [f"leg {leg}: dq is zero while q moves" for leg in named]
        if self.bits & Health.ENCODER_STUCK:
            return [f"leg {leg} stale: encoder stuck" for leg in named]
        return [f"leg {leg} stale" for leg in named]

    def __str__(self) -> str:
        return ", ".join(self.words) or "ok"

    def __repr__(self) -> str:
        return f"HealthReport({self})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HealthReport):
            return self.bits == other.bits
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]
