"""One step of a velocity-aided estimator on one admitted sample: propagate by the IMU, correct by a network's velocity.

Samples come at the network's rate here. Left to the core: other rates (interpolation of the network's samples, more
process noise for slow ones), the second network for a lost leg or without torques, input checks, an IMU that fails
for a moment, and a robot at rest.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.lie import rotation_from_quat
from gait.log.sample import Sample
from gait.nets.features import PER_LEG, SHARED
from gait.nets.model import Model
from gait.parameters import LEG_INSTANT, Options, Prior, ProcessNoise
from gait.reference.adapted_noise import AdaptedNoise
from gait.reference.contacts import torques_of
from gait.reference.disagreement import Consensus, ConsistencyMonitor
from gait.reference.filter import BaseState, ReferenceFilter, base_state, imu_state, prior_std
from gait.reference.flexure import Flexure
from gait.reference.leg_velocity import (
    FORCE,
    LegFeatures,
    LegGeometry,
    VelocityMeasurement,
    consensus_of,
    fuse_legs,
    gate_legs,
    legs_off,
    measure_legs,
    predicted_motion,
)
from gait.reference.network import NumpyLegs, NumpyNetwork
from gait.robot import Robot

LARGEST_STD = 0.5
"""Standard deviation, m/s, above which on all axes an output holds no information."""


class NetworkVelocity:
    """The paper's network or a baseline: v and S = diag(exp(2 u)), inflated because its errors last."""

    def __init__(self, model: Model, robot: Robot, options: Options) -> None:
        self.network, self.architecture, self.options = NumpyNetwork(model), model.architecture, options
        self.period, self.geometry = 1.0 / model.rate, LegGeometry(robot)

    def reset(self) -> None:
        """As before the first sample."""
        self.forget()

    def forget(self) -> None:
        """Forget the samples: the next one does not follow them."""
        self.network.reset()

    def step(self, sample: Sample, dt: float, leg_ok: BoolArray) -> None:
        """One step of the network; only `gait` has a token for each leg, which can be hidden."""
        parts = [sample.gyro, sample.accel, sample.q, sample.dq]
        if self.architecture.targets:
            assert sample.q_des is not None
            parts.append(sample.q_des - sample.q)
        seen = np.array([True, True, *leg_ok]) if self.architecture.kind == "gait" else None
        self.velocity, log_std = self.network.step(np.concatenate(parts), seen)
        self.std = np.exp(log_std)

    def measure(self, monitor: ConsistencyMonitor, sample: Sample) -> VelocityMeasurement | None:
        """Its velocity, compared with the predicted state; None if it is not informative."""
        if not (self.std < LARGEST_STD).any():
            return None
        motion = predicted_motion(monitor.ekf, sample.gyro, sample.accel, self.geometry.R_bi, self.geometry.p_bi)
        instant = monitor.ekf.adapted.factor * self.std**2
        m = VelocityMeasurement(self.velocity, self.options.inflation**2 * instant)
        consensus = Consensus(m.vel_b - motion.velocity, instant, np.zeros(3), m.var_b)
        monitor.consensus(consensus, motion.variance, self.period)
        return m


class LegsVelocity:
    """`gait-legs`: every leg measures the velocity, the network gives its variance, and the legs are fused."""

    def __init__(self, model: Model, robot: Robot, options: Options) -> None:
        self.robot, self.options, self.period = robot, options, 1.0 / model.rate
        self.network, forces = NumpyLegs(model.for_robot(robot)), model.architecture.targets
        self.features = LegFeatures(robot, options.joint_delay, forces, options.flexure)
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self.flexure = Flexure(self.robot)
        self.forget()

    def forget(self) -> None:
        """Forget the samples: the next one does not follow them."""
        self.network.reset()
        self.features.reset()
        self._known: BoolArray = np.zeros(self.robot.num_legs, dtype=np.bool_)
        self.ratios = np.zeros(self.robot.num_legs)

    def step(self, sample: Sample, dt: float, leg_ok: BoolArray) -> None:
        """Features and network."""
        tau = torques_of(self.robot, sample, missing=0.0)  # of a network that does not read forces
        self.features.compliance = self.options.flexure * self.flexure.compliance
        self.x = self.features.step(sample.gyro, sample.accel, sample.q, sample.dq, tau, dt, self._known)
        self.out = self.network.step(self.x, leg_ok, self._known)
        self._known = leg_ok.copy()

    def measure(self, monitor: ConsistencyMonitor, sample: Sample) -> VelocityMeasurement | None:
        """The consensus of the legs compared with the prediction, then each leg gated and fused; None without legs."""
        ekf, geometry, o = monitor.ekf, self.features.geometry, self.options
        motion = predicted_motion(ekf, sample.gyro, sample.accel, geometry.R_bi, geometry.p_bi)
        seen = self._known & motion.upright
        if self.features.forces and motion.upright:
            load = self.x[SHARED:].reshape(-1, PER_LEG)[:, FORCE][:, 2]
            self.flexure.learn(legs_off(ekf, self.x, motion, geometry), self.features.flexed, load, seen, self.period)
        legs = measure_legs(ekf, self.x, *self.out, seen, geometry)
        self.ratios = np.zeros(self.robot.num_legs)
        if not legs.used.any():
            return None
        monitor.consensus(consensus_of(legs, motion, o), motion.variance, self.period)
        legs, self.ratios[legs.used] = gate_legs(legs, motion, o)
        m = fuse_legs(legs, motion, o)
        if m.gyro_bias_z_var > 0.0:
            monitor.rate(m.gyro_bias_z, LEG_INSTANT**2 * m.gyro_bias_z_var, self.period)
        return m


class ReferenceVelocityAided:
    """The invariant EKF with a velocity source as its only measurement."""

    def __init__(
        self, robot: Robot, source: NetworkVelocity | LegsVelocity, noise: ProcessNoise, prior: Prior, options: Options
    ) -> None:
        """Set up; `source` measures the velocity of base_link, given the predicted state and a sample."""
        self.robot, self.source, self.prior = robot, source, prior
        self.R_bi, self.p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        self.ekf = ReferenceFilter(noise, options)
        soles = all(leg.foot.is_flat for leg in robot.legs)
        self.ekf.adapted = AdaptedNoise(of_soles=isinstance(source, LegsVelocity) and soles)
        length = robot.leg_length if isinstance(source, LegsVelocity) else 0.0
        self.monitor = ConsistencyMonitor(self.ekf, self.R_bi, length)

    def start(self, R_wb: Array, vel_w: Array, pos_w: Array, gyro: Array) -> None:
        """Begin at a known state of base_link."""
        self.ekf.start(*imu_state(R_wb, vel_w, pos_w, gyro, self.R_bi, self.p_bi), prior_std(self.prior))
        self.source.reset()
        self.monitor.reset()

    def step(self, sample: Sample, dt: float, leg_ok: BoolArray | None = None) -> BaseState:
        """Take a sample, dt seconds after the last, and return the state of base_link.

        Args:
            sample: admitted, its joints in the robot's order.
            dt: seconds; 0 for the first sample, which the network sees and the filter does not.
            leg_ok: False for legs whose encoders cannot be used (L,); all can by default.
        """
        ekf = self.ekf
        leg_ok = np.ones(self.robot.num_legs, dtype=bool) if leg_ok is None else leg_ok
        gap = dt > ekf.options.max_gap
        if gap:
            ekf.bridge_gap(dt)
        elif dt > 0.0:
            ekf.propagate(sample.gyro, sample.accel, dt)
        if gap or dt == 0.0 or not leg_ok.any():
            self.source.forget()  # the memory of a network holds consecutive samples
        if leg_ok.any():
            self.source.step(sample, dt, leg_ok)
            measurement = self.source.measure(self.monitor, sample) if dt > 0.0 else None
            if measurement is not None:
                self._correct(measurement, sample.gyro)
        ekf.limit_biases()
        return self.monitor.reported(base_state(ekf, sample.gyro, self.R_bi, self.p_bi))

    def _correct(self, m: VelocityMeasurement, gyro: Array) -> None:
        """From base_link to the IMU: v_i = R_bi' (v_b + w_b x p_bi)."""
        w_b = self.R_bi @ (gyro - self.ekf.gyro_bias)
        vel_i = self.R_bi.T @ (m.vel_b + np.cross(w_b, self.p_bi))
        cov_i = self.R_bi.T @ np.diag(m.var_b) @ self.R_bi
        if m.gyro_bias_z_var > 0.0:
            self.ekf.correct_gyro_bias(self.R_bi[2], m.gyro_bias_z, m.gyro_bias_z_var)
        self.ekf.correct_velocity(vel_i, cov_i)
