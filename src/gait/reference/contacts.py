"""Which feet are on the ground, and which of them slip, from joint torques alone.

Joint torques of a leg are tau = tau_free - J' f: those of its own motion and weight, less those of the ground force f.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.log.sample import Sample
from gait.parameters import ContactDetection
from gait.reference.chain import foot_rate, foot_velocity, joint_torques
from gait.reference.disagreement import Consensus
from gait.robot import Chain, Robot

SINGULAR = 1e-5
"""Manipulability |det J|, m^3, below which a leg is so straight that torques do not determine the force."""
LEVER, DAMPING = 0.1, 0.01
"""In leg lengths: lever arm of the moment that a sole transmits, and damping of poorly determined components."""
TORQUE_MARGIN = 3.0
"""Torques beyond so many times the limit were not measured."""
LEAST_APART = 0.05
"""Least distance between feet that measure an angular rate, m."""
FOOT_STD, FOOT_GATE, FOOT_SPEED = 0.1, 5.0, 1.0
"""Standard deviation of a foot's velocity by its joints, m/s; an outlier exceeds both gates: in standard deviations of
the predicted velocity, and in m/s."""

SLIP_MARGIN, SLIP_RATE, SLIP_MOST = 2.0, 0.5, 1.0
"""Limit of slips over the median speed of the foot that moves least; by which share it moves in 1 s; at most, m/s."""


def ground_force(chain: Chain, q: Array, tau: Array, tau_free: Array, leg_length: float) -> Array:
    """Force of the ground on the foot (3,)."""
    return ground_wrench(chain, q, tau, tau_free, leg_length)[:3]


def ground_wrench(chain: Chain, q: Array, tau: Array, tau_free: Array, leg_length: float) -> Array:
    """Force of the ground on the foot and, of a sole, its moment about the centre (6,).

    The force is the f of J' f = tau_free - tau, or zero where the leg is singular.

    With three joints it is exact. With others it is damped least squares, so that components that joints do not
    determine are zero; a sole transmits a moment as well, as a force at `LEVER`.
    """
    jacobian, angular = chain.jacobians(q)
    if not np.isfinite(tau_free - tau).all():
        return np.zeros(6)
    if chain.num_joints == 3 and not chain.shared and not chain.foot.is_flat:
        if np.prod(np.linalg.svd(jacobian, compute_uv=False)) <= SINGULAR:
            return np.zeros(6)
        return np.append(np.linalg.solve(jacobian.T, tau_free - tau), np.zeros(3))
    arm = LEVER * leg_length
    A = np.vstack([jacobian, arm * angular]) if chain.foot.is_flat else jacobian
    A = A * (np.arange(chain.num_joints) >= chain.shared)
    normal = A @ A.T + (DAMPING * leg_length) ** 2 * np.eye(len(A))
    forces = np.linalg.solve(normal, A @ (tau_free - tau))
    return np.append(forces[:3], arm * forces[3:] if chain.foot.is_flat else np.zeros(3))


def pd_torques(robot: Robot, tracking_error: Array, dq: Array) -> Array:
    """Torques of the joints' PD loops for the tracking error q_des - q (J,), where no torque is measured."""
    return np.clip(robot.kp * tracking_error - robot.kd * dq, -robot.torque_limit, robot.torque_limit)


def torques_of(robot: Robot, sample: Sample, missing: float) -> Array:
    """Joint torques (J,): as measured, else those of the PD loops, else `missing`."""
    none = np.full(robot.num_joints, missing)
    tau = none if sample.q_des is None else pd_torques(robot, sample.q_des - sample.q, sample.dq)
    if sample.tau is None:
        return tau
    beyond = robot.by_leg(np.abs(sample.tau) - TORQUE_MARGIN * robot.torque_limit)
    return np.where(np.concatenate([np.full(len(leg), (leg <= 0.0).all()) for leg in beyond]), sample.tau, tau)


def hysteresis(contact: bool, waiting: float, load: float, d: ContactDetection, dt: float) -> tuple[bool, float]:
    """Contact of a foot and how long, s, its load has been on the other side of the threshold.

    Args:
        contact: of the last sample.
        waiting: of the last sample.
        load: normal force as a share of the robot's weight.
        d: thresholds and dwell times.
        dt: seconds since the last sample.
    """
    crossed = load < d.lift_off if contact else load > d.touch_down
    waiting = waiting + dt if crossed else 0.0
    dwell = d.lift_off_dwell if contact else d.touch_down_dwell
    # Half a step of tolerance: with jitter, a dwell of five samples must not become six.
    if crossed and waiting > dwell - 0.5 * dt:
        return not contact, 0.0
    return contact, waiting


def rolling_velocity(chain: Chain, q: Array, dq: Array, w_b: Array, lever_b: Array) -> Array:
    """How fast the centre of a foot moves that turns about its contact point (3,): w_foot x lever."""
    return np.cross(foot_rate(chain, q, dq, w_b), lever_b)


def slip_velocity(chain: Chain, q: Array, dq: Array, w_b: Array, vel_b: Array, roll_b: Array) -> Array:
    """Velocity of a foot over the ground (3,), given that of base_link: zero where it stands or rolls."""
    return vel_b + foot_velocity(chain, q, dq, w_b) - roll_b


def slip_limit(limit: float, speeds: Array, least: float, dt: float) -> float:
    """Speed of a foot in contact above which it slips, m/s: a multiple of the median of the slowest foot's.

    Vibration of legs, compliant feet and encoder latency look like slow slips, on each robot of another speed.

    Args:
        limit: of the last sample.
        speeds: of the feet in contact (K,), m/s; at least one.
        least: that the limit may be.
        dt: seconds since the last sample.
    """
    turn = SLIP_RATE if SLIP_MARGIN * speeds.min() > limit else -SLIP_RATE
    return max(least, min(SLIP_MOST, limit * (1.0 + turn * dt)))


def foot_ratio(slip_b: Array, predicted: Array) -> float:
    """Test ratio of a foot in contact: its velocity over the ground against the variances of the prediction (3,)."""
    return float(np.sqrt(np.mean(slip_b**2 / (predicted + FOOT_STD**2)))) / FOOT_GATE


def feet_consensus(slips_b: Array, factor: Array) -> Consensus:
    """Feet in contact (K, 3) that move over the ground together: a dispute of the predicted velocity.

    `factor` (3,) is the adapted factor on their variances.
    """
    delta, instant = -slips_b.mean(axis=0), factor * FOOT_STD**2
    return Consensus(delta, instant, np.mean((slips_b + delta) ** 2, axis=0), instant)


def feet_rate(slips_b: Array, feet_b: Array) -> tuple[float, float]:
    """Rate about z by which the gyro exceeds that of the feet in contact (K, 3); its variance, infinite if unknown.

    With an error e of the rate, the foot at p seems to move over the ground by e (-p_y, p_x).
    """
    slips, at = slips_b - slips_b.mean(axis=0), feet_b - feet_b.mean(axis=0)
    known = float(np.sum(at[:, :2] ** 2))
    if known <= LEAST_APART**2:
        return 0.0, np.inf
    return float(np.sum(at[:, 0] * slips[:, 1] - at[:, 1] * slips[:, 0])) / known, FOOT_STD**2 / known


class LegContact:
    """Contact of one leg from sample to sample."""

    def __init__(self, chain: Chain, detection: ContactDetection, leg_length: float) -> None:
        self.chain, self.detection, self.leg_length = chain, detection, leg_length
        self.tau = np.zeros(chain.num_joints)
        self.reset()

    def reset(self) -> None:
        """As after a gap: no contact and no earlier sample."""
        self.waiting = 0.0
        self.lose()

    def lose(self) -> None:
        """The encoders of this leg cannot be used: no contact, and no joint acceleration from here to the next sample.

        The dwell so far is kept.
        """
        self.contact = False
        self.dq: Array | None = None

    def ground_wrench(self, q: Array, dq: Array, tau: Array, gravity_b: Array, dt: float) -> Array:
        """Force and moment of the ground (6,) in base_link, from torques and joint accelerations with one low-pass."""
        if self.dq is None:
            share, self.ddq = 1.0, np.zeros_like(dq)
        else:
            share = 1.0 - np.exp(-dt / max(self.detection.smoothing, 1e-9))
            self.ddq = self.ddq + share * ((dq - self.dq) / dt - self.ddq)
        self.tau = np.where(np.isfinite(tau), self.tau + share * (tau - self.tau), self.tau)
        self.dq = dq
        tau_free = joint_torques(self.chain, q, dq, self.ddq, gravity_b)
        return ground_wrench(self.chain, q, self.tau, tau_free, self.leg_length)

    def update(self, load: float, dt: float) -> None:
        """Take the normal force as a share of the robot's weight."""
        load = load if np.isfinite(load) else 0.0
        self.contact, self.waiting = hysteresis(self.contact, self.waiting, load, self.detection, dt)
