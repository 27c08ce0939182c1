"""`gait-legs` around its network: the features of each leg, and the fusion of the legs' velocities to one.

A leg whose foot stands still measures the velocity of base_link by itself, v = -(J dq + w x p), plus what a round foot
rolls. Features are normalised across robots: positions by the leg length, forces by the weight. Joints are read later
than the IMU, so w is interpolated at their latency.

The variance of a leg grows with its NIS against the predicted state, so that an outlier has little weight. It also
grows with the foot acceleration, because the latency of the joints is uncertain; its known part is compensated with the
predicted acceleration. A leg whose foot is at p measures a gyro bias b as -b x p: the estimate of b is added back,
and its error about z, which gravity does not observe, shows in the differences between legs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array, BoolArray
from gait.lie import rotation_from_quat
from gait.nets.features import PER_LEG, SHARED
from gait.parameters import LEG_INSTANT, Options
from gait.reference.chain import chains_of, foot_jacobian, foot_position, foot_velocity, joint_torques, per_leg
from gait.reference.contacts import ground_wrench, rolling_velocity
from gait.reference.disagreement import Consensus
from gait.reference.filter import VEL, ReferenceFilter
from gait.reference.flat_feet import contact_lever
from gait.reference.flexure import ASSUMED, bending_torque, flexure_velocity, weight_flexure
from gait.robot import Robot

POSITION, VELOCITY, FORCE, FOOT_ACCELERATION = (slice(i, i + 3) for i in range(0, 12, 3))
"""Among those of a leg. No network reads the foot acceleration J ddq: the variance of an uncertain latency needs it."""
SMOOTHING = 0.004
"""Time constant of joint accelerations and torques, s."""
HISTORY = 8
"""Angular rates that are kept: the latency is at most one sample less."""
GRAVITY = 9.81
UP_B = np.array([0.0, 0.0, 1.0])
UNINFORMATIVE = 3.0
"""Standard deviation, m/s, above which on all axes a leg is not fused: it holds no information."""
YAW_BIAS_STD, YAW_BIAS_PER_RATE, YAW_BIAS_PER_ACCEL = 1.5, 3.0, 0.3
"""Factors on the standard deviation of the bias about z: always, for each rad/s and for each m/s^2; squares add up."""
LARGEST_VARIANCE = 1e6
"""Of the bias, (rad/s)^2; a larger one holds no information."""


class LegGeometry:
    """Pose of the IMU, hips, and leg length, by which positions are scaled."""

    def __init__(self, robot: Robot) -> None:
        self.R_bi, self.p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        self.hips_b, self.length = robot.hips_b, robot.leg_length  # (L, 3)

    def feet_b(self, features: Array) -> Array:
        """Foot positions (L, 3), m, of features (6 + 12 L,)."""
        return self.hips_b + self.length * features[SHARED:].reshape(-1, PER_LEG)[:, POSITION]


class LegFeatures:
    """Features from sample to sample."""

    def __init__(self, robot: Robot, latency: float, forces: bool = True, flexure: bool = True) -> None:
        """Set up for a robot whose joints are read `latency` seconds after the IMU.

        Args:
            robot: whose features they are.
            latency: seconds.
            forces: whether torques are known.
            flexure: whether joints give way.
        """
        self.robot, self.latency, self.forces = robot, latency, forces
        self.assumed = flexure * ASSUMED / bending_torque(robot)
        self.chains, self.geometry = chains_of(robot), LegGeometry(robot)
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self._rates: Array | None = None
        self._dq, self._ddq, self._tau, self._tau_rate = np.zeros((4, self.robot.num_joints))
        self.compliance = 0.0
        """Of the joints, rad/(N m): their deflection is subtracted."""
        self.flexed = np.zeros((len(self.chains), 3))
        """What a unit of it adds to the velocity that each leg measures."""

    def step(
        self, gyro: Array, accel: Array, q: Array, dq: Array, tau: Array, dt: float, known: BoolArray | None = None
    ) -> Array:
        """The features (6 + 12 L,) of one more sample.

        Args:
            gyro: angular rate in IMU axes (3,).
            accel: specific force in IMU axes (3,).
            q: joint angles (J,).
            dq: joint velocities (J,).
            tau: joint torques (J,).
            dt: seconds since the sample before.
            known: legs whose sample before is valid (L,); the others begin here. All by default.
        """
        gyro_b, accel_b = self.geometry.R_bi @ gyro, self.geometry.R_bi @ accel
        begins = np.full(len(self.chains), self._rates is None) if known is None else ~known
        self._smooth(dq, tau, dt, begins)
        w_b = self._delayed(gyro_b, dt)
        # Encoders on the motors' side also read the deflection under load.
        if self.forces:
            q, dq = q - self.compliance * self._tau, dq - self.compliance * self._tau_rate
            sways = np.zeros((len(self.chains), 3))
        else:
            dq, sways = self._unbent(q, dq)
        joints = zip(*(per_leg(self.chains, x) for x in (q, dq, self._ddq, self._tau)), strict=True)
        legs = np.array([self._leg(leg, w_b, accel_b, *own) for leg, own in enumerate(joints)])
        legs[:, VELOCITY] += sways
        return np.concatenate([gyro_b, accel_b, legs.ravel()])

    def _unbent(self, q: Array, dq: Array) -> tuple[Array, Array]:
        """Of legs that carry their share of the weight while half of them stand: joint velocities without the
        deflection (J,), and how else it moves their feet (L, 3)."""
        force = self.robot.mass * GRAVITY * min(1.0, 2.0 / len(self.chains))
        legs = zip(self.chains, per_leg(self.chains, q), per_leg(self.chains, dq), strict=True)
        rates, sways = zip(*(weight_flexure(chain, own_q, own_dq, force) for chain, own_q, own_dq in legs), strict=True)
        return dq - self.assumed * np.concatenate(rates), self.assumed * np.array(sways)

    def _leg(self, leg: int, w_b: Array, accel_b: Array, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """Position, velocity, force and foot acceleration (12,) of one leg."""
        chain, geometry = self.chains[leg], self.geometry
        J, tau_free = foot_jacobian(chain, q), joint_torques(chain, q, dq, ddq, -accel_b)
        position = (foot_position(chain, q) - geometry.hips_b[leg]) / geometry.length
        weight, wrench = self.robot.mass * GRAVITY, ground_wrench(chain, q, tau, tau_free, geometry.length)
        # Torques that are all zero were not measured.
        lever = contact_lever(chain, q, UP_B, wrench if tau.any() else None, weight)
        self.flexed[leg] = flexure_velocity(chain, q, per_leg(self.chains, self._tau_rate)[leg], lever)
        velocity = rolling_velocity(chain, q, dq, w_b, lever) - foot_velocity(chain, q, dq, w_b)
        return np.concatenate([position, velocity, wrench[:3] / weight, J @ ddq])

    def _smooth(self, dq: Array, tau: Array, dt: float, begins: BoolArray) -> None:
        """Joint accelerations by differences, and torques, through the same low-pass so that both lag alike."""
        fresh = np.repeat(begins, [chain.num_joints for chain in self.chains])
        last_dq, ddq, last_tau = np.where(fresh, [dq, 0.0 * dq, tau], [self._dq, self._ddq, self._tau])
        self._ddq = ddq + (dq - last_dq - dt * ddq) / (SMOOTHING + dt)
        self._tau_rate = (tau - last_tau) / (SMOOTHING + dt)
        self._tau = last_tau + dt * self._tau_rate
        self._dq = dq

    def _delayed(self, gyro_b: Array, dt: float) -> Array:
        """The angular rate of the moment when the joints were read, interpolated; this one is kept."""
        if self._rates is None:
            self._rates = np.tile(gyro_b, (HISTORY, 1))
        self._rates = np.vstack([gyro_b, self._rates[:-1]])  # newest first
        back = min(self.latency / dt, HISTORY - 1.001) if dt > 0.0 else 0.0
        return np.array([np.interp(back, np.arange(HISTORY), rates) for rates in self._rates.T])


class VelocityMeasurement(NamedTuple):
    """What a network, or the legs together, measure."""

    vel_b: Array
    """Velocity of base_link (3,), m/s."""
    var_b: Array
    """Its variances (3,)."""
    gyro_bias_z: float = 0.0
    """Gyro bias about z of base_link less the estimate, rad/s."""
    gyro_bias_z_var: float = 0.0
    """Its variance; 0 if there is no such measurement."""
    mean_b: Array | None = None
    """Weighted mean of the legs' velocities (3,), before the latency is compensated."""


class Motion(NamedTuple):
    """Of the predicted state of base_link in its own axes."""

    rate: Array
    """Angular rate (3,), rad/s."""
    velocity: Array
    """Velocity (3,), m/s."""
    variance: Array
    """Of the velocity (3,)."""
    acceleration: Array
    """Derivative of the velocity (3,), m/s^2."""
    upright: bool
    """Upside down, a robot does not stand on its feet."""


def predicted_motion(ekf: ReferenceFilter, gyro: Array, accel: Array, R_bi: Array, p_bi: Array) -> Motion:
    """Of the predicted state, given angular rate and specific force as measured (3,)."""
    R_wb = ekf.R @ R_bi.T
    w_b = R_bi @ (gyro - ekf.gyro_bias)
    v_b = R_wb.T @ ekf.v - np.cross(w_b, p_bi)
    var_b = np.diag(R_wb.T @ ekf.P[VEL, VEL] @ R_wb)
    # d/dt R' v = R' a - w x R' v; the lever arm's own acceleration is left out.
    a_b = R_bi @ (accel - ekf.accel_bias) + R_wb.T @ ekf.g - np.cross(w_b, v_b)
    return Motion(w_b, v_b, var_b, a_b, bool(R_wb[2, 2] > 0.0))


class LegMeasurements(NamedTuple):
    """Of the K legs that are fused."""

    used: BoolArray
    """Which legs they are (L,)."""
    feet_b: Array
    """Foot positions (K, 3)."""
    velocity: Array
    """Of base_link (K, 3), the estimated gyro bias taken off."""
    variance: Array
    """(K, 3)"""


def measure_legs(
    ekf: ReferenceFilter, features: Array, leg_vel: Array, leg_log_std: Array, leg_ok: BoolArray, geometry: LegGeometry
) -> LegMeasurements:
    """The measurements of the legs that are in use and informative.

    Args:
        ekf: with the predicted state.
        features: of `LegFeatures` (6 + 12 L,).
        leg_vel: velocity of base_link as each leg measures it (L, 3).
        leg_log_std: log of its standard deviation (L, 3).
        leg_ok: legs in use (L,).
        geometry: of legs and IMU.
    """
    feet_b, foot_accel = geometry.feet_b(features), features[SHARED:].reshape(-1, PER_LEG)[:, FOOT_ACCELERATION]
    z = leg_vel + np.cross(geometry.R_bi @ ekf.gyro_bias, feet_b)
    r = ekf.adapted.factor * leg_variances(leg_log_std, foot_accel, ekf.options)
    used = leg_ok & (ekf.options.leg_inflation * np.exp(leg_log_std) < UNINFORMATIVE).any(axis=1)
    return LegMeasurements(used, feet_b[used], z[used], r[used])


def legs_off(ekf: ReferenceFilter, features: Array, motion: Motion, geometry: LegGeometry) -> Array:
    """By how much the velocities of the legs (L, 3), before any network, differ from the predicted one."""
    feet_b, velocity = geometry.feet_b(features), features[SHARED:].reshape(-1, PER_LEG)[:, VELOCITY]
    expected = motion.velocity - ekf.options.joint_delay * motion.acceleration
    return np.asarray(velocity + np.cross(geometry.R_bi @ ekf.gyro_bias, feet_b) - expected)


def consensus_of(legs: LegMeasurements, motion: Motion, o: Options) -> Consensus:
    """The consensus of all legs against the predicted state: legs around the prediction dispute neither of the two."""
    information = np.sum(1.0 / legs.variance, axis=0)
    mean = np.sum(legs.velocity / legs.variance, axis=0) / information
    spread = np.sum((legs.velocity - mean) ** 2 / legs.variance, axis=0) / information
    delta = mean + o.joint_delay * motion.acceleration - motion.velocity
    return Consensus(delta, LEG_INSTANT**2 / information, spread, 1.0 / information)


def gate_legs(legs: LegMeasurements, motion: Motion, o: Options) -> tuple[LegMeasurements, Array]:
    """The variance of each leg inflated by its NIS over the gate, and its test ratio (K,)."""
    innovation = legs.velocity + o.joint_delay * motion.acceleration - motion.velocity
    nis = np.mean(innovation**2 / (motion.variance + LEG_INSTANT**2 * legs.variance), axis=1) / o.leg_guard**2
    return legs._replace(variance=legs.variance * np.maximum(nis, 1.0)[:, None]), np.sqrt(nis)


def fuse_legs(legs: LegMeasurements, motion: Motion, o: Options) -> VelocityMeasurement:
    """One measurement from those of the legs, of which there is at least one."""
    information = np.sum(1.0 / legs.variance, axis=0)
    mean_b = np.sum(legs.velocity / legs.variance, axis=0) / information
    bias, bias_var = yaw_bias(legs.feet_b, legs.velocity - mean_b, 1.0 / legs.variance)
    w, a = motion.rate, motion.acceleration
    bias_var *= YAW_BIAS_STD**2 + YAW_BIAS_PER_RATE**2 * float(w @ w) + YAW_BIAS_PER_ACCEL**2 * float(a @ a)
    return VelocityMeasurement(mean_b + o.joint_delay * a, 1.0 / information, bias, bias_var, mean_b)


def leg_variances(log_std: Array, foot_accel: Array, options: Options) -> Array:
    """Variances (L, 3): the network's, inflated, plus what an unknown latency adds while the foot accelerates."""
    return (options.leg_inflation * np.exp(log_std)) ** 2 + (options.joint_delay_std / LEG_INSTANT * foot_accel) ** 2


def yaw_bias(feet_b: Array, residual: Array, weight: Array) -> tuple[float, float]:
    """Gyro bias about z and its variance by weighted least squares on the differences between legs; zeros without them.

    A bias e moves the measurement of a leg at p by -e z x p = e (p_y, -p_x, 0).

    Args:
        feet_b: foot positions (L, 3).
        residual: measurements of the legs less their weighted mean (L, 3).
        weight: inverse variances (L, 3).
    """
    slope = np.stack([feet_b[:, 1], -feet_b[:, 0]], axis=1)  # (L, 2)
    weight = weight[:, :2]
    slope = slope - np.sum(weight * slope, axis=0) / np.sum(weight, axis=0)
    information = float(np.sum(weight * slope**2))
    if information * LARGEST_VARIANCE < 1.0:
        return 0.0, 0.0
    return float(np.sum(weight * slope * residual[:, :2])) / information, 1.0 / information
