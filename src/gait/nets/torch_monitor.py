"""Consistency of measurements with the predicted state of n robots in torch: core/monitor.c, function by function.

Read that file for why: what lasts of the disagreement between legs and prediction inflates the variances of the
velocity and of what may be its cause, an outlier that lasts resets the velocity, and a robot at rest has none. Robots
stand last, see `torch_lie`. Left out is what watches over the IMU's mounting, `monitor_gravity`, and the flags.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gait.nets.torch_filter import OpenDisagreement, TorchFilter
from gait.nets.torch_lie import product, turn_back
from gait.nets.torch_sensors import TorchSensors
from gait.reference.adapted_noise import SPAN, STEP
from gait.reference.disagreement import (
    CAUSE_TIME,
    DISPUTE,
    DISTRUST,
    DISTRUST_TIME,
    INFLATION_TIME,
    MEMORY,
    MOST_HEADING,
    OPEN_STD,
    OPEN_TIME,
    RATE_STD,
    RESET_TIME,
    RISE,
    RISE_RATE,
    TURN_STD,
    TURN_TIME,
)
from gait.reference.filter import ACCEL_BIAS, GYRO_BIAS, POS, ROT, VEL

STILL_TIME, STILL_RATE, STILL_FORCE, STILL_NOISE = 0.5, 0.04, 0.5, (0.03, 0.3)
"""Rest: seconds, rad/s, m/s^2 off gravity, and noise of a sample, rad/s and m/s^2."""


class TorchConsensus(NamedTuple):
    """A velocity by all sources together, in base axes (3, n) each."""

    delta: Tensor
    """Measured less predicted velocity, m/s."""
    predicted: Tensor
    """Variances of the prediction."""
    instant: Tensor
    """Variances of one measurement."""
    spread: Tensor
    """Mean squares of the sources around their consensus."""
    claimed: Tensor
    """Variances with which it will be fused."""


class TorchMonitor(nn.Module):
    """What the monitor remembers of n robots."""

    lasting: Tensor
    """Part of the disagreement that lasts, base axes (3, n), m/s."""
    lasting_rate: Tensor
    """The same of the angular rate about z (n,), rad/s."""
    duration: Tensor
    """Seconds for which variances have been inflated (n,)."""
    disputed: Tensor
    """Seconds for which the measurement has been an outlier (n,)."""
    distrust: Tensor
    """Seconds for which the last reset still counts (n,)."""
    resting: Tensor
    """Seconds for which nothing has moved (n,)."""
    open: Tensor
    """Mean of the disagreement, base axes (3, n), m/s."""
    turn: Tensor
    """Mean of that of the rate about z (n,), rad/s."""
    heading: Tensor
    """What it has made of the heading (n,), rad."""
    aside: Tensor
    """And of the position, world axes (3, n), m."""
    rise: Tensor
    still_noise: Tensor
    ground: Tensor

    def __init__(self, n: int, R_bi: Tensor, dt: float, dtype: torch.dtype, leg_length: float = 0.0) -> None:
        """Set up for n robots with an IMU mounted at R_bi (3, 3, 1), and measurements every dt seconds.

        leg_length: m, of legs that measure a velocity each.
        """
        super().__init__()
        self.dt, self.hidden = dt, RATE_STD * leg_length
        for name in ("lasting", "open", "aside"):
            self.register_buffer(name, torch.zeros(3, n, dtype=dtype))
        for name in ("lasting_rate", "duration", "disputed", "distrust", "resting", "turn", "heading"):
            self.register_buffer(name, torch.zeros(n, dtype=dtype))
        constants = {"rise": RISE, "still_noise": STILL_NOISE, "ground": (1.0, 1.0, 0.0)}
        for name, values in constants.items():
            self.register_buffer(name, torch.tensor(values, dtype=dtype)[:, None], persistent=False)
        self.register_buffer("R_ib", R_bi.transpose(0, 1).clone(), persistent=False)

    R_ib: Tensor

    def reset(self, chosen: Tensor) -> None:
        """Forget what is remembered of the chosen robots (n,)."""
        shown = ("open", "turn", "heading", "aside")
        for name in ("lasting", "lasting_rate", "duration", "disputed", "distrust", "resting", *shown):
            setattr(self, name, torch.where(chosen, 0.0, getattr(self, name)))

    def still(self, sensors: TorchSensors, gravity: float, active: Tensor) -> Tensor:
        """Whether nothing has moved for a while (n,); time passes for those that are active."""
        rate, force = sensors.level
        quiet = (rate < STILL_RATE) & ((force + gravity).abs() < STILL_FORCE)
        now = quiet & (sensors.noise < self.still_noise).all(0) & sensors.joints_rest
        self.resting = torch.where(active, torch.where(now, self.resting + self.dt, 0.0), self.resting)
        return self.resting > STILL_TIME

    def consensus(self, ekf: TorchFilter, c: TorchConsensus, R_wb: Tensor, chosen: Tensor) -> None:
        """Hold the velocity measurement of the chosen robots (n,) against the predicted state, before it is fused."""
        dt, share = self.dt, torch.where(self.distrust > 0.0, DISTRUST, 1.0)
        self._follow_open(ekf, c, chosen)
        variance = c.predicted + c.instant + c.spread
        lasting = follow(self.lasting, c.delta, share * self.rise * dt)
        excess = torch.clamp(torch.square(lasting) - variance, min=0.0)
        inflated = (excess > 0.0).any(0)
        ratio = torch.sqrt((torch.square(c.delta) / variance).mean(0))
        disputed = torch.where(ratio > DISPUTE, self.disputed + dt, 0.0)
        reset = disputed * share >= RESET_TIME
        distrust = torch.where(reset, DISTRUST_TIME, torch.clamp(self.distrust - dt, min=0.0))
        after = {
            "lasting": torch.where(reset, 0.0, lasting),
            "duration": torch.where(inflated, self.duration + dt, 0.0),
            "disputed": torch.where(reset, 0.0, disputed),
            "distrust": distrust,
        }
        for name, value in after.items():
            setattr(self, name, torch.where(chosen, value, getattr(self, name)))
        ekf.reset_velocity(chosen & reset, R_wb, c.delta, c.claimed + c.spread)
        self._inflate_causes(ekf, R_wb, torch.where(chosen & ~reset, excess, 0.0), share)

    def drift(self, ekf: TorchFilter, due: Tensor) -> None:
        """What differs for longer than any slip, of robots that are due (n,): a bias, or a tilt and its cause."""
        per, lasting = -ekf.options.gravity * SPAN, ekf.adapted.lasting
        tilted2, speed2 = lasting(1.0)[:2].sum(0) / per**2, torch.square(ekf.v[:2]).sum(0)
        climbed = torch.where(due, torch.sqrt(speed2 * tilted2) * STEP, 0.0)
        self.aside = torch.stack([*self.aside[:2], self.aside[2] + climbed])
        excess = torch.where(due, lasting(ekf.adapted.gate), 0.0) * (STEP / INFLATION_TIME)
        tilt, R_iw = excess[[1, 0]] / per**2, ekf.R.transpose(0, 1)
        ekf.inflate(VEL, ekf.eye, excess)
        ekf.inflate(ACCEL_BIAS, R_iw, excess / SPAN**2)
        ekf.inflate(ROT, ekf.eye[:, :2], tilt)
        ekf.inflate(GYRO_BIAS, R_iw[:, :2], tilt / CAUSE_TIME**2)

    def _follow_open(self, ekf: TorchFilter, c: TorchConsensus, chosen: Tensor) -> None:
        """The mean disagreement, and how the body seems to climb with a tilt that is wrong."""
        informs = OPEN_STD**2 / (OPEN_STD**2 + c.instant + c.spread)
        now = self.open + self.dt / (OPEN_TIME + self.dt) * (informs * informs * c.delta - self.open)
        self.open = torch.where(chosen, now, self.open)
        speed2, open2 = torch.square(ekf.v[:2]).sum(0), torch.square(self.open[:2]).sum(0)
        climb = torch.sqrt(speed2 * open2) / (-ekf.options.gravity * OPEN_TIME)
        height = (1.0 - self.dt / MEMORY) * self.aside[2] + climb * self.dt
        self.aside = torch.stack([*self.aside[:2], torch.where(chosen, height, self.aside[2])])

    def _follow_heading(self, ekf: TorchFilter, difference: Tensor, variance: Tensor, chosen: Tensor) -> None:
        """Heading and position by the legs alone less those of the filter, from the difference of the rates about z."""
        dt, keep = self.dt, 1.0 - self.dt / MEMORY
        share = TURN_STD**2 / (TURN_STD**2 + variance) * (dt / (TURN_TIME + dt))
        self.turn = torch.where(chosen, self.turn + share * (difference - self.turn), self.turn)
        heading = torch.clamp(keep * self.heading + self.turn * dt, -MOST_HEADING, MOST_HEADING)
        self.heading = torch.where(chosen, heading, self.heading)
        moved = keep * self.aside[:2] + self.heading * dt * torch.stack([-ekf.v[1], ekf.v[0]])
        self.aside = torch.cat([torch.where(chosen, moved, self.aside[:2]), self.aside[2:]])

    def _inflate_causes(self, ekf: TorchFilter, R_wb: Tensor, excess: Tensor, share: Tensor) -> None:
        """What has lasted for a while may come from the velocity, from the accelerometer's bias or from a tilt."""
        time = torch.clamp(self.duration, min=self.dt)
        once = self.dt / INFLATION_TIME * share
        later = torch.where(time > CAUSE_TIME, once / torch.square(time), 0.0)
        tilt = 0.5 * (excess[0] + excess[1]) * later / ekf.options.gravity**2
        drift = tilt / torch.square(time)
        ekf.inflate(VEL, R_wb, excess * once)
        ekf.inflate(POS, R_wb, 2.0 * self.dt * time * excess)
        ekf.inflate(ACCEL_BIAS, self.R_ib, excess * later)
        ekf.inflate(GYRO_BIAS, self.R_ib[:, :2], torch.stack([drift, drift]))
        ekf.inflate(ROT, ekf.eye[:, :2], torch.stack([tilt, tilt]))

    def rate(self, ekf: TorchFilter, difference: Tensor, variance: Tensor, chosen: Tensor) -> None:
        """The rate about z of base_link by the legs less that of the gyro (n,), and the variance of one measurement."""
        self._follow_heading(ekf, difference, torch.where(chosen, variance, 1.0), chosen)
        axis = self.R_ib[:, 2:]  # (3, 1, 1)
        P_bg = ekf.P[GYRO_BIAS, GYRO_BIAS]
        predicted = (axis * product(P_bg, axis)).sum((0, 1))
        lasting = follow(self.lasting_rate, difference, RISE_RATE * self.dt)
        self.lasting_rate = torch.where(chosen, lasting, self.lasting_rate)
        excess = torch.clamp(torch.square(lasting) - predicted - variance, min=0.0)
        excess = torch.where(chosen, excess, 0.0)
        ekf.inflate(GYRO_BIAS, axis, excess[None] * (self.dt / INFLATION_TIME))
        ekf.inflate(ROT, ekf.eye[:, 2:], excess[None] * (2.0 * INFLATION_TIME * self.dt))

    def open_disagreement(self, ekf: TorchFilter) -> OpenDisagreement:
        """Variances that the disagreement shows: whichever is right, the other is as far off."""
        R_wb = product(ekf.R, self.R_ib)
        drift = turn_back(torch.square(R_wb), ekf.adapted.lasting(1.0))
        least = torch.maximum(torch.where(self.duration > 0.0, torch.square(self.lasting), 0.0), drift)
        # In any direction, since it turns with the heading.
        along = torch.square(self.aside[:2]).mean(0)
        none = torch.zeros_like(along)
        late2 = ekf.options.joint_delay_std**2
        x, y, z = late2 * torch.square(ekf.adapted.swept)
        aside = torch.square(self.aside[2])
        pose = torch.stack([along + x, along + y, aside + z, none, none, torch.square(self.heading)])
        more = torch.square(self.open) + late2 * ekf.adapted.square_b
        more = more + self.hidden**2 * self.ground
        return OpenDisagreement(least, more, pose)


def follow(lasting: Tensor, now: Tensor, rise: Tensor | float) -> Tensor:
    """The part of a value that lasts: it rises slowly and falls at once."""
    lasting = torch.where(lasting * now <= 0.0, 0.0, lasting)
    return torch.where(now > 0.0, torch.minimum(now, lasting + rise), torch.maximum(now, lasting - rise))
