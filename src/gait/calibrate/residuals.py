"""The information of a part of a walk on the unknowns: residuals and their derivatives.

In the axes s of the base at the start of a part, the velocity of the IMU is what the IMU integrates plus an error e(t),
piecewise linear, that walks at random:

    x(t) = S(t) + g t + e(t),   S = int R f dt,   dR/dt = R w^

A foot i that holds still measures the same as R (-J dq - w x p_i + w x p_bi + what it rolls), with joints as they were
read `joint_delay` later. Ground truth, where there is any, measures x less R (w x p_bi), and R itself. A sample of the
IMU holds for the time since the sample before, as in the estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gait import lie
from gait.arrays import Array, IntArray
from gait.calibrate.unknowns import Unknowns
from gait.calibrate.walk_parts import WalkPart, interpolated, leg_velocity, runs_of
from gait.robot import Robot

GRAVITY_W = np.array([0.0, 0.0, -9.81])
KNOTS = 0.2
"""Seconds between the knots of e."""
TRUTH_EVERY = 3
"""Residuals of feet to one of the ground truth."""
PATTERNS = 27
"""Of `foot_motion`: three shapes over the stance, three speeds, three axes."""
TURN = 3
"""Of the nuisance unknowns of a part, the first turn its start; the others are e at the knots."""


class ResidualRows(NamedTuple):
    """Residuals of one kind (B, 3), their derivatives (B, 3, P) and (B, 3, K), and the stance of each (B,)."""

    r: Array
    by_unknown: Array
    by_nuisance: Array
    stance: IntArray


@dataclass(frozen=True, eq=False)
class Point:
    """Where a part is linearised: its orientation at the start and the error of its integrated velocity (K, 3)."""

    R_ws: Array
    e: Array


class Inertial(NamedTuple):
    """Measurements of the IMU at each sample, with derivatives by the fifteen unknowns of the IMU."""

    w: Array
    """Angular rate in the base (N, 3)."""
    dw: Array
    R: Array
    """From the base to the axes at the start (N, 3, 3)."""
    turned: Array
    """How R turns, in the axes at the start (N, 3, 15)."""
    S: Array
    dS: Array


def cross(a: Array, b: Array) -> Array:
    """Cross products of columns: a (..., 3) with each column of b (..., 3, n)."""
    return np.asarray(np.cross(a[..., None], b, axis=-2))


def skew(a: Array) -> Array:
    """Matrices (..., 3, 3) with skew(a) b = a x b."""
    x, y, z = np.moveaxis(a, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([np.stack(row, -1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))], -2)


def _exp(phi: Array) -> Array:
    """Rotation matrices (N, 3, 3) of rotation vectors (N, 3) of a sample: exact to fourth order."""
    K, t2 = skew(phi), np.sum(phi**2, axis=1)[:, None, None]
    return np.asarray(np.eye(3) + (1.0 - t2 / 6.0) * K + (0.5 - t2 / 24.0) * (K @ K))


def _running_product(steps: Array) -> Array:
    """The products steps[0] ... steps[k] (N, 3, 3) for every k, by doubling."""
    out, shift = steps.copy(), 1
    while shift < len(out):
        out[shift:] = out[:-shift] @ out[shift:]
        shift *= 2
    return out


def inertial(part: WalkPart, point: Point, values: Array, unknowns: Unknowns, robot: Robot) -> Inertial:
    """Integrate the IMU over a part, and what its unknowns do to the result.

    Derivatives are those at the fitted specific force, which has the slope of e in it: a reading times its own error
    would draw the scale towards a value that makes residuals small.
    """
    log, n = part.walk.log, len(part.t)
    dt = np.diff(part.t, prepend=part.walk.log.t[part.rows.start - 1])[:, None]
    dt[0] = 0.0  # The part starts here.
    m, R_bi = unknowns.of("mounting", values), lie.rotation_from_quat(robot.imu_quat_wxyz)
    M, h = R_bi @ lie.so3_exp(m), 1e-6
    dM = [R_bi @ (lie.so3_exp(m + h * one) - lie.so3_exp(m - h * one)) / (2.0 * h) for one in np.eye(3)]

    def corrected(name: str) -> tuple[Array, Array]:
        bias, gain = unknowns.of(f"{name}_bias", values), 1.0 + unknowns.of(f"{name}_scale", values)
        return (getattr(log, name)[part.rows] - bias) / gain, gain

    def derivatives(own: Array, gain: Array, start: int) -> Array:
        d = np.zeros((n, 3, 15))
        d[:, :, :3] = np.stack([own @ one.T for one in dM], -1)
        d[:, :, start : start + 3] = -M / gain
        d[:, :, start + 3 : start + 6] = -M * (own / gain)[:, None]
        return d

    (w_i, gyro_gain), (f_i, accel_gain) = corrected("gyro"), corrected("accel")
    w, f = w_i @ M.T, f_i @ M.T
    R = _running_product(_exp(w * dt))
    knots = knots_of(part)
    slope = np.diff(point.e, axis=0) / (knots[1] - knots[0])
    within = np.clip(np.searchsorted(knots, part.t - part.t[0]) - 1, 0, len(slope) - 1)
    fitted = f_i + np.einsum("nji,nj->ni", R, slope[within]) @ M
    dw, df = derivatives(w_i, gyro_gain, 3), derivatives(fitted, accel_gain, 9)
    turned = np.cumsum(R @ dw * dt[..., None], axis=0)
    before = np.concatenate([R[:1], R[:-1]])
    force = np.einsum("nij,nj->ni", before, f + 0.5 * dt * np.cross(w, f))
    S = np.cumsum(force * dt, axis=0)
    dS = np.cumsum((cross(-force, turned) + before @ df) * dt[..., None], axis=0)
    # The rate of an instant is that of the samples around it.
    w_at, dw_at = (0.5 * (x + np.concatenate([x[1:], x[-1:]])) for x in (w, dw))
    return Inertial(w_at, dw_at, R, turned, S, dS)


def knots_of(part: WalkPart) -> Array:
    """Times of the knots of e, s from the start of the part."""
    length = part.t[-1] - part.t[0]
    return np.linspace(0.0, length, max(round(length / KNOTS), 1) + 1)


def _hats(t: Array, knots: Array) -> Array:
    """Weights of the knots at times (N, K)."""
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(t[:, None] - knots) / (knots[1] - knots[0])))


class PartModel:
    """The residuals of one part at given unknowns."""

    def __init__(self, part: WalkPart, point: Point, values: Array, unknowns: Unknowns, robot: Robot) -> None:
        self.part, self.point, self.values, self.unknowns, self.robot = part, point, values, unknowns, robot
        self.offsets = robot.offsets
        self.imu = Inertial(*(x[:: part.every] for x in inertial(part, point, values, unknowns, robot)))
        self.stamps = part.t[:: part.every]
        self.t = self.stamps - self.stamps[0]
        self.weights = _hats(self.t, knots_of(part))
        self.g = point.R_ws.T @ GRAVITY_W
        self.x = self.imu.S + self.t[:, None] * self.g + self.weights @ point.e
        self.up = -np.einsum("nji,j->ni", self.imu.R, self.g) / np.linalg.norm(self.g)
        # By how the part starts, and by e: of x.
        n, turn = len(self.t), self.t[:, None, None] * skew(self.g)
        self.dx = np.concatenate([turn, np.einsum("nk,ij->nikj", self.weights, np.eye(3)).reshape(n, 3, -1)], axis=2)

    def _measured(
        self, zeros: Array, scales: Array, delay: float, more: Array | float = 0.0
    ) -> tuple[Array, Array, Array]:
        """What each leg measures of the IMU's velocity in the base (N, L, 3), its lever arm, and its Jacobian.

        `more` (N, J) is added to the joint velocities.
        """
        q, dq = self.part.walk.joints(self.stamps + delay)
        dq = dq + more
        offsets = np.concatenate([self.offsets[:, :1], self.offsets[:, 1:] * (1.0 + scales[..., None])], axis=1)
        velocity, feet, J = leg_velocity(self.robot, offsets, q - zeros.ravel(), dq, self.imu.w, self.up)
        lever = self.robot.imu_position + self.robot.foot_radius * self.up[:, None] - feet
        return velocity + np.cross(self.imu.w, self.robot.imu_position)[:, None], lever, J

    def _legs(self) -> tuple[Array, Array, float]:
        of = self.unknowns.of
        return of("joint_zero", self.values), of("link_scale", self.values), float(of("joint_delay", self.values)[0])

    def slip(self) -> Array:
        """Velocity of each foot over the ground, as the unknowns have it (N, L, 3), in the axes at the start."""
        u = self._measured(*self._legs())[0]
        return np.asarray(self.x[:, None] - np.einsum("nij,nlj->nli", self.imu.R, u))

    def _by_leg(self, h: float = 1e-5, late: float = 1e-3) -> tuple[Array, Array]:
        """Derivatives of what legs measure, by central differences: by own zeros and scales, by the latency.

        Those by zeros and scales are at joint velocities that fit the trajectory, for the reason given in `inertial`.
        """
        zeros, scales, delay = self._legs()
        slip_b = np.einsum("nji,nlj->nli", self.imu.R, self.slip())
        J = self._measured(zeros, scales, delay)[2]
        JT = np.swapaxes(J, -1, -2)
        fitting = -np.linalg.solve(JT @ J + 1e-4 * np.eye(3), JT @ slip_b[..., None])[..., 0]
        more = np.where(self.part.stance[..., None], fitting, 0.0).reshape(len(self.t), -1)
        own = []
        for zero in True, False:
            for step in h * np.eye(3):
                ends = [
                    self._measured(zeros + s * zero, scales + s * (not zero), delay, more)[0] for s in (step, -step)
                ]
                own.append((ends[0] - ends[1]) / (2.0 * h))
        ends = [self._measured(zeros, scales, delay + s)[0] for s in (late, -late)]
        return np.stack(own, -1), (ends[0] - ends[1]) / (2.0 * late)

    def legs(self, considered: bool = False) -> ResidualRows:
        """Residuals of the feet that hold still; `considered` adds columns of `foot_motion` for each leg."""
        names, imu, n = self.unknowns, self.imu, len(self.t)
        u, lever, _ = self._measured(*self._legs())
        own, by_delay = self._by_leg()
        parts = []
        for leg, stand in enumerate(self.part.stance.T):
            stance, phase = np.full(n, -1), np.zeros(n)
            for number, (first, last) in enumerate(runs_of(stand)):
                stance[first:last] = number * self.part.stance.shape[1] + leg
                phase[first:last] = np.linspace(-1.0, 1.0, last - first)
            at = np.flatnonzero(stance >= 0)
            R, measured, dw = imu.R[at], u[at, leg], imu.dw[at]
            d = np.zeros((len(at), 3, names.size + considered * PATTERNS * len(self.part.stance.T)))
            if considered:
                start = names.size + PATTERNS * leg
                d[:, :, start : start + PATTERNS] = foot_motion(phase[at], np.einsum("nji,nj->ni", R, self.x[at]))
            for k, name in enumerate(("joint_zero", "link_scale")):
                start = names[name].start + 3 * leg
                d[:, :, start : start + 3] = own[at, leg, :, 3 * k : 3 * k + 3]
            d[:, :, names["joint_delay"].start] = by_delay[at, leg]
            d[:, :, names.imu] = -cross(lever[at, leg], dw)
            d, y = R @ d, np.einsum("nij,nj->ni", R, measured)
            d[:, :, names.imu] -= cross(y, imu.turned[at]) + imu.dS[at]
            parts.append(ResidualRows(y - self.x[at], d, -self.dx[at], stance[at]))
        return ResidualRows(*(np.concatenate(some) for some in zip(*parts, strict=True)))

    def truth(self) -> dict[str, ResidualRows]:
        """Residuals of velocity and rotation against the ground truth."""
        log, names, imu, of, n = self.part.walk.log, self.unknowns, self.imu, self.unknowns.of, len(self.t)
        late, R_sw = float(of("truth_delay", self.values)[0]), self.point.R_ws.T
        T = lie.so3_exp(np.append(of("truth_tilt", self.values), 0.0))
        h, vel_w = 1e-3, log.need("vel_w")
        before, at, after = (interpolated(log.t, vel_w, self.stamps + late + s) for s in (-h, 0.0, h))
        z, arm = at @ (R_sw @ T).T, np.cross(imu.w, self.robot.imu_position)
        b = self.x - np.einsum("nij,nj->ni", imu.R, arm)
        d = np.zeros((n, 3, names.size))
        d[:, :, names.imu] = imu.dS + cross(self.x - b, imu.turned) + imu.R @ cross(self.robot.imu_position, imu.dw)
        d[:, :, names["truth_tilt"]] = (R_sw @ skew(at @ T.T))[:, :, :2]
        d[:, :, names["truth_delay"].start] = -(after - before) / (2.0 * h) @ (R_sw @ T).T
        nuisance = self.dx.copy()
        nuisance[:, :, :TURN] -= skew(z)
        velocity = b - z, d, nuisance

        quat = log.need("quat_wb_wxyz")[self.part.rows][:: self.part.every]
        R_wb, R_bs = np.moveaxis(lie.rotation_from_quat(quat.T), -1, 0), np.swapaxes(imu.R, 1, 2)
        C = lie.so3_exp(of("truth_rotation", self.values))
        E = R_bs @ (R_sw @ T) @ R_wb @ _exp(late * imu.w) @ C
        theta = 0.5 * np.stack([E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], 1)
        d, nuisance = np.zeros_like(d), np.zeros_like(nuisance)
        d[:, :, names.imu], nuisance[:, :, :TURN] = -R_bs @ imu.turned, -R_bs
        d[:, :, names["truth_tilt"]] = (R_bs @ R_sw)[:, :, :2]
        d[:, :, names["truth_rotation"]] = np.eye(3)
        d[:, :, names["truth_delay"].start] = imu.w
        number = np.arange(len(self.t))[::TRUTH_EVERY]
        return {
            name: ResidualRows(r[::TRUTH_EVERY], by_unknown[::TRUTH_EVERY], by_nuisance[::TRUTH_EVERY], number)
            for name, (r, by_unknown, by_nuisance) in (("velocity", velocity), ("rotation", (theta, d, nuisance)))
        }


def foot_motion(phase: Array, u: Array) -> Array:
    """How feet that stand may move all the same, stance by stance alike (N, 3, PATTERNS).

    They sink and recover, creep and flex: a mean, a slope and a bend over the stance, each of them constant, in
    proportion to the forward and to the sideward velocity, along each axis.
    """
    shapes = np.stack([np.ones_like(phase), phase, 1.5 * phase**2 - 0.5], 1)
    speeds = np.stack([np.ones_like(phase), u[:, 0], u[:, 1]], 1)
    return np.asarray(np.einsum("ns,nv,ij->nisvj", shapes, speeds, np.eye(3)).reshape(len(phase), 3, PATTERNS))
