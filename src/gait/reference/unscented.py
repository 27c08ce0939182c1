"""The update of Bloesch et al. 2013: feet in contact do not move, an unscented transform, and outliers among the feet.

A method in Python (docs/extending.md). The velocity of a foot over the ground, in IMU axes,

    h = R' v + w x s + J dq - roll,    w = gyro - bias - noise,

is measured as zero. Sigma points of the error and of the gyro's noise go through h; their statistics are the linear
model z = -H xi + noise that the filter takes, so that its gain is that of the unscented filter. A foot whose innovation
has a NIS above the threshold is left out. The filter predicts as it does for every method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.lie import rotation_from_quat, skew
from gait.log.sample import Sample
from gait.parameters import ProcessNoise
from gait.reference.chain import per_leg
from gait.robot import Chain, Robot
from gait.state import State

STATES = np.r_[0:6, 9:12]
"""What h depends on: rotation, velocity and gyro bias."""
UP_W = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class UnscentedSettings:
    """What is tuned."""

    velocity: float = 0.3
    """Standard deviation of the velocity of a foot in contact, m/s, independent from sample to sample."""
    threshold: float = 20.0
    """NIS of a foot, with three components, above which it is an outlier."""


class UnscentedFeet:
    """Measurements of the feet that the sample calls contacts."""

    def __init__(self, robot: Robot, settings: UnscentedSettings | None = None) -> None:
        self.robot, self.settings = robot, settings or UnscentedSettings()
        self.R_bi, self.p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        self.chains, self.gyro_density = list(robot.chains), ProcessNoise().gyro
        self.reset()

    def reset(self) -> None:
        """A new log begins."""
        self.t = np.nan

    def step(self, sample: Sample, predicted_state: State) -> Iterator[tuple[Array, Array, Array]]:
        """One measurement of all feet in contact that are no outliers."""
        dt, self.t = sample.t - self.t, sample.t
        feet = [] if sample.contact is None or not dt > 0.0 else [i for i, on in enumerate(sample.contact) if on > 0.5]
        if not feet:
            return
        points = self._sigma_points(predicted_state.cov[np.ix_(STATES, STATES)], dt)  # (P, 12)
        h = self._foot_velocities(feet, sample, predicted_state, points)  # (P, F, 3)
        mean, n = h.mean(axis=0), len(STATES)
        spread = (h - mean).reshape(len(h), -1)
        S = spread.T @ spread / len(h) + self.settings.velocity**2 * np.eye(spread.shape[1])
        blocks = [S[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] for k in range(len(feet))]
        nis = [float(y @ np.linalg.solve(block, y)) for y, block in zip(mean, blocks, strict=True)]
        rows = np.flatnonzero(np.repeat(np.array(nis) <= self.settings.threshold, 3))
        if not len(rows):
            return
        # h = mean + A xi with A = P_hx P_xx^-1; the filter's model is z = -H xi.
        P_xx, P_xh = points[:, :n].T @ points[:, :n] / len(h), points[:, :n].T @ spread[:, rows] / len(h)
        A = np.linalg.solve(P_xx, P_xh).T
        H = np.zeros((len(rows), 15))
        H[:, STATES] = -A
        N = S[np.ix_(rows, rows)] - A @ P_xh
        yield -mean.reshape(-1)[rows], H, (N + N.T) / 2

    def _sigma_points(self, P: Array, dt: float) -> Array:
        """Points (2 n, n) of the errors and of the gyro's noise, all of the same weight."""
        n = len(P) + 3
        L = np.zeros((n, n))
        L[:-3, :-3], L[-3:, -3:] = np.linalg.cholesky(P), self.gyro_density / np.sqrt(dt) * np.eye(3)
        return np.sqrt(n) * np.concatenate([L.T, -L.T])

    def _foot_velocities(self, feet: list[int], sample: Sample, state: State, points: Array) -> Array:
        """h at each of the points (P, F, 3): X = exp(-xi) X_hat, so R' v = R_hat' (v_hat - J(xi_R) xi_v)."""
        R_wb, rotation, velocity, bias, noise = state.R_wb, *np.split(points, 4, axis=1)
        R_wi, w = R_wb @ self.R_bi, sample.gyro - state.gyro_bias
        v_w = state.vel_w + R_wb @ np.cross(self.R_bi @ w, self.p_bi)
        # x + a (xi x x) + b (xi x (xi x x)) is both exp(xi) x and J(xi) x, with other a and b.
        angle = np.maximum(np.linalg.norm(rotation, axis=1, keepdims=True), 1e-6)
        first, second = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle**2
        third = (1.0 - first) / angle**2
        vel_i = (v_w - _turned(rotation, velocity, second, third)) @ R_wi
        up_i = _turned(rotation, np.broadcast_to(UP_W, rotation.shape), first, second) @ R_wi
        rate_i = w + bias - noise  # the bias is b_hat - xi_b
        out = np.empty((len(points), len(feet), 3))
        q, dq = per_leg(self.chains, sample.q), per_leg(self.chains, sample.dq)
        for k, i in enumerate(feet):
            chain = self.chains[i]
            position, linear, angular = _foot_motion(chain, q[i], dq[i])
            s = self.R_bi.T @ (position - self.p_bi)
            roll = _cross(rate_i + self.R_bi.T @ angular, chain.foot.radius * up_i)
            out[:, k] = vel_i + rate_i @ skew(s) + self.R_bi.T @ linear - roll
        return out


def _foot_motion(chain: Chain, q: Array, dq: Array) -> tuple[Array, Array, Array]:
    """Position, velocity and angular velocity of a foot by its joints (3,), on a base at rest, in base_link."""
    _, points, axes = chain.link_poses(q)
    rates = (chain.ratio * dq[chain.source])[:, None]
    turned = np.where(chain.slides[:, None], 0.0, rates * axes)
    linear = np.where(chain.slides[:, None], rates * axes, _cross(turned, points[-1] - points[:-1]))
    return points[-1], linear.sum(axis=0), turned.sum(axis=0)


def _turned(xi: Array, x: Array, a: Array, b: Array) -> Array:
    """x + a (xi x x) + b (xi x (xi x x)), row by row."""
    once = _cross(xi, x)
    return x + a * once + b * _cross(xi, once)


def _cross(a: Array, b: Array) -> Array:
    """Cross products of rows; numpy's own takes four times as long on a few of them."""
    return np.asarray(a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]])
