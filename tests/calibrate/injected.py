"""Walks with known errors: what `gait calibrate` has to find."""

from dataclasses import dataclass, field

import numpy as np

from gait import Log, Robot
from gait.arrays import Array
from gait.calibrate import Calibrated
from gait.log.imu_noise import ImuNoise

KINDS = ("joint_zero", "link_scale", "joint_delay", "mounting", "gyro_bias", "gyro_scale", "accel_bias", "accel_scale")
SIZES = dict(zip(KINDS, (0.02, 0.015, 0.002, 0.02, 0.02, 0.01, 0.2, 0.015), strict=True))
"""Standard deviations that errors are drawn with; the latency is one to four samples."""


@dataclass
class Errors:
    """Errors by the name of their group, those of joints and links by leg."""

    joint_zero: Array = field(default_factory=lambda: np.zeros((4, 3)))
    link_scale: Array = field(default_factory=lambda: np.zeros((4, 3)))
    joint_delay: int = 0
    """In samples."""
    mounting: Array = field(default_factory=lambda: np.zeros(3))
    gyro_bias: Array = field(default_factory=lambda: np.zeros(3))
    gyro_scale: Array = field(default_factory=lambda: np.zeros(3))
    accel_bias: Array = field(default_factory=lambda: np.zeros(3))
    accel_scale: Array = field(default_factory=lambda: np.zeros(3))

    @staticmethod
    def draw(rng: np.random.Generator, *kinds: str) -> "Errors":
        """Errors of some kinds."""
        errors = Errors()
        for kind in kinds:
            if kind == "joint_delay":
                errors.joint_delay = int(rng.integers(1, 5))
            else:
                setattr(errors, kind, rng.normal(0.0, SIZES[kind], np.shape(getattr(errors, kind))))
        return errors

    def read(self, log: Log) -> Log:
        """What sensors with these errors read in place of the log's."""
        gyro, accel = ImuNoise(mounting=tuple(self.mounting)).applied(log.t, log.gyro, log.accel, 0)
        rows = np.maximum(np.arange(len(log)) - self.joint_delay, 0)
        zeros = self.joint_zero.ravel()
        joints = {"q": log.q + zeros, "dq": log.dq, "tau": log.need("tau"), "q_des": log.need("q_des") + zeros}
        return log.replace(
            gyro=gyro * (1.0 + self.gyro_scale) + self.gyro_bias,
            accel=accel * (1.0 + self.accel_scale) + self.accel_bias,
            **{name: values[rows] for name, values in joints.items()},
        )

    def described(self, robot: Robot) -> Robot:
        """A description from which the robot's links differ by these scales."""
        return robot.with_links(list(1.0 / (1.0 + self.link_scale[..., None])))

    def scores(self, found: Calibrated, period: float, without: Calibrated | None = None) -> dict[str, Array]:
        """Errors of the estimates over their standard deviations, by kind.

        With `without`, the estimate from the log as it was, of how much the injected errors change the estimate.
        """
        out = {}
        for kind in KINDS:
            at, true = found.unknowns[kind], np.ravel(getattr(self, kind)) * (period if kind == "joint_delay" else 1.0)
            before = 0.0 if without is None else without.values[at]
            out[kind] = (found.values[at] - before - true) / found.std[at]
        return out
