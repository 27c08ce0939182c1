"""One step of a velocity-aided estimator on one admitted sample: propagate by the IMU, correct by a network's velocity.

Samples come at the network's rate here. Left to the core: other rates (interpolation of the network's samples, more
process noise for slow ones), the second network for a lost leg, and an IMU that fails for a moment.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.lie import rotation_from_quat
from gait.log.sample import Sample
from gait.nets.model import Model
from gait.parameters import Options, Prior, ProcessNoise
from gait.reference.contacts import torques_of
from gait.reference.filter import BaseState, ReferenceFilter, base_state, imu_state, prior_std
from gait.reference.leg_velocity import LegFeatures, VelocityMeasurement, fuse_legs
from gait.reference.network import NumpyLegs, NumpyNetwork
from gait.robot import Robot


class NetworkVelocity:
    """The paper's network or a baseline: v and S = diag(exp(2 u)), inflated because its errors last."""

    def __init__(self, model: Model, options: Options) -> None:
        self.network, self.architecture, self.options = NumpyNetwork(model), model.architecture, options

    def reset(self) -> None:
        """As before the first sample."""
        self.network.reset()

    def measure(self, ekf: ReferenceFilter, sample: Sample, dt: float, leg_ok: BoolArray) -> VelocityMeasurement:
        """One step of the network; only `gait` has a token for each leg, which can be hidden."""
        parts = [sample.gyro, sample.accel, sample.q, sample.dq]
        if self.architecture.targets:
            assert sample.q_des is not None
            parts.append(sample.q_des - sample.q)
        seen = np.array([True, True, *leg_ok]) if self.architecture.kind == "gait" else None
        velocity, log_std = self.network.step(np.concatenate(parts), seen)
        return VelocityMeasurement(velocity, (self.options.inflation * np.exp(log_std)) ** 2)


class LegsVelocity:
    """`gait-legs`: every leg measures the velocity, the network gives its variance, and the legs are fused."""

    def __init__(self, model: Model, robot: Robot, options: Options) -> None:
        self.robot = robot
        self.network, self.features = NumpyLegs(model.for_robot(robot)), LegFeatures(robot, options.joint_delay)
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self.network.reset()
        self.features.reset()
        self._known: BoolArray = np.zeros(self.robot.num_legs, dtype=np.bool_)

    def measure(self, ekf: ReferenceFilter, sample: Sample, dt: float, leg_ok: BoolArray) -> VelocityMeasurement:
        """Features, network, fusion."""
        tau = torques_of(self.robot, sample, missing=0.0)  # of a network that does not read forces
        x = self.features.step(sample.gyro, sample.accel, sample.q, sample.dq, tau, dt, self._known)
        velocity, log_std = self.network.step(x, leg_ok, self._known)
        self._known = leg_ok.copy()
        return fuse_legs(ekf, sample.gyro, sample.accel, x, velocity, log_std, leg_ok, self.features.geometry)


class ReferenceVelocityAided:
    """The invariant EKF with a velocity source as its only measurement."""

    def __init__(
        self, robot: Robot, source: NetworkVelocity | LegsVelocity, noise: ProcessNoise, prior: Prior, options: Options
    ) -> None:
        """Set up; `source` measures the velocity of base_link, given the predicted state and a sample."""
        self.robot, self.source, self.prior = robot, source, prior
        self.R_bi, self.p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        self.ekf = ReferenceFilter(noise, options)

    def start(self, R_wb: Array, vel_w: Array, pos_w: Array, gyro: Array) -> None:
        """Begin at a known state of base_link."""
        self.ekf.start(*imu_state(R_wb, vel_w, pos_w, gyro, self.R_bi, self.p_bi), prior_std(self.prior))
        self.source.reset()

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
            self.source.reset()  # a network knows only samples that follow each other
        if leg_ok.any():
            measurement = self.source.measure(ekf, sample, dt, leg_ok)
            if dt > 0.0:
                self._correct(measurement, sample.gyro)
        return base_state(ekf, sample.gyro, self.R_bi, self.p_bi)

    def _correct(self, m: VelocityMeasurement, gyro: Array) -> None:
        """From base_link to the IMU: v_i = R_bi' (v_b + w_b x p_bi)."""
        w_b = self.R_bi @ (gyro - self.ekf.gyro_bias)
        vel_i = self.R_bi.T @ (m.vel_b + np.cross(w_b, self.p_bi))
        cov_i = self.R_bi.T @ np.diag(m.var_b) @ self.R_bi
        if m.gyro_bias_z_var > 0.0:
            self.ekf.correct_gyro_bias(self.R_bi[2], m.gyro_bias_z, m.gyro_bias_z_var)
        self.ekf.correct_velocity(vel_i, cov_i)
