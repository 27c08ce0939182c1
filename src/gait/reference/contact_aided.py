"""One step of `iekf` and `iekf-sr`: the contact-aided invariant EKF (Hartley et al. 2020) with slip rejection (Kim et
al. 2021) on one admitted sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gait.arrays import Array, BoolArray
from gait.lie import rotation_from_quat
from gait.log.sample import Sample
from gait.parameters import ContactAided
from gait.reference.adapted_noise import AdaptedNoise
from gait.reference.chain import chains_of, foot_position, foot_rate, per_leg
from gait.reference.contacts import (
    FOOT_SPEED,
    LegContact,
    feet_consensus,
    feet_rate,
    foot_ratio,
    rolling_velocity,
    slip_limit,
    slip_velocity,
    torques_of,
)
from gait.reference.disagreement import ConsistencyMonitor
from gait.reference.filter import VEL, BaseState, ReferenceFilter, base_state, imu_state, prior_std
from gait.reference.flat_feet import FASTEST, contact_lever, sole_bias_variance, sole_rests
from gait.robot import Robot

UP_W = np.array([0.0, 0.0, 1.0])


class ReferenceContactAided:
    """Feet on the ground are points in the state, and forward kinematics measures where they are."""

    def __init__(self, robot: Robot, params: ContactAided, contact_from: str = "tau") -> None:
        """Set up; `contact_from` is the field of a sample that contacts come from: tau, foot_force or contact."""
        self.robot, self.params, self.contact_from = robot, params, contact_from
        self.R_bi, self.p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        self.ekf = ReferenceFilter(params.imu, params.options)
        self.ekf.adapted = AdaptedNoise(of_contacts=True)
        self.monitor = ConsistencyMonitor(self.ekf, self.R_bi)
        self.chains, self.weight = chains_of(robot), robot.mass * -params.options.gravity
        self.legs = [LegContact(chain, params.detection, robot.leg_length) for chain in self.chains]
        self.slips: BoolArray = np.zeros(len(self.legs), dtype=np.bool_)
        self.slip_limit = params.slip.speed
        self.ratios = np.zeros(len(self.legs))

    @property
    def contact(self) -> BoolArray:
        """Feet on the ground (L,)."""
        return np.array([leg.contact for leg in self.legs])

    def start(self, R_wb: Array, vel_w: Array, pos_w: Array, gyro: Array) -> None:
        """Begin at a known state of base_link, with no foot on the ground."""
        state = imu_state(R_wb, vel_w, pos_w, gyro, self.R_bi, self.p_bi)
        self.ekf.start(*state, prior_std(self.params.prior))
        self.legs = [LegContact(chain, self.params.detection, self.robot.leg_length) for chain in self.chains]
        self.slip_limit = self.params.slip.speed
        self.monitor.reset()

    def step(self, sample: Sample, dt: float, leg_ok: Sequence[bool] | None = None) -> BaseState:
        """Take a sample, dt seconds after the last, and return the state of base_link.

        Args:
            sample: admitted, its joints in the robot's order.
            dt: seconds.
            leg_ok: False for legs whose encoders cannot be used; all can by default.
        """
        ekf, p = self.ekf, self.params
        if dt > p.options.max_gap:
            return self._bridge_gap(sample.gyro, dt)
        R_wb = ekf.R @ self.R_bi.T
        w_b, up_b = self.R_bi @ (sample.gyro - ekf.gyro_bias), R_wb.T @ UP_W
        vel_b = R_wb.T @ ekf.v - np.cross(w_b, self.p_bi)
        feet_i, roll_i, contact_std, slips_b, biases_i = {}, {}, {}, {}, {}
        tau = torques_of(self.robot, sample, missing=np.nan)
        joints = (per_leg(self.chains, x) for x in (sample.q, sample.dq, tau))
        for i, (leg, q, dq, leg_tau) in enumerate(zip(self.legs, *joints, strict=True)):
            if leg_ok is not None and not leg_ok[i]:
                leg.lose()
                continue
            wrench_b = None
            if self.contact_from == "tau":
                wrench_b = leg.ground_wrench(q, dq, leg_tau, p.options.gravity * up_b, dt)
                load = float(up_b @ wrench_b[:3]) / self.weight
                leg.update(load, dt)
            elif sample.foot_force is not None and self.contact_from == "foot_force":
                load = sample.foot_force[i] / self.weight
                leg.update(load, dt)
            else:
                leg.contact = sample.contact is not None and bool(sample.contact[i])
                load = float(leg.contact)
            lever_b = contact_lever(leg.chain, q, up_b, wrench_b, self.weight)
            if sole_rests(leg.chain, q, up_b, lever_b, load):
                biases_i[i] = ekf.gyro_bias + self.R_bi.T @ foot_rate(leg.chain, q, dq, w_b)
            roll_b = float(p.rolling) * rolling_velocity(leg.chain, q, dq, w_b, lever_b)
            # The centre of the foot moves as its contact point does, and its position does not depend on the tilt.
            feet_i[i] = self.R_bi.T @ (foot_position(leg.chain, q) - self.p_bi)
            roll_i[i] = self.R_bi.T @ roll_b
            slips_b[i] = slip_velocity(leg.chain, q, dq, w_b, vel_b, roll_b)
            contact_std[i] = p.contact
            # Upside down, a robot does not stand on its feet.
            leg.contact = leg.contact and bool(up_b[2] > 0.0)

        if p.slip.enabled:
            contact_std |= self._reject_slips(slips_b, dt)
        cov_i = dict.fromkeys(feet_i, np.eye(3) * p.kinematics**2)
        ekf.propagate(sample.gyro, sample.accel, dt, contact_std, roll_i)
        self._judge_feet(slips_b, feet_i, dt)
        for i in [i for i in ekf.feet if not self.legs[i].contact]:
            ekf.remove_foot(i)
        ekf.correct_feet(feet_i, cov_i)
        self._correct_by_soles(biases_i, sample.gyro)
        for i in [i for i, leg in enumerate(self.legs) if leg.contact and i not in ekf.feet]:
            ekf.add_foot(i, feet_i[i], cov_i[i])
        ekf.limit_biases()
        return self.monitor.reported(base_state(ekf, sample.gyro, self.R_bi, self.p_bi))

    def _bridge_gap(self, gyro: Array, dt: float) -> BaseState:
        """Propagate over a gap between samples, after which no foot is in contact."""
        self.ekf.bridge_gap(dt)
        for leg in self.legs:
            leg.reset()
        self.ekf.limit_biases()
        return self.monitor.reported(base_state(self.ekf, gyro, self.R_bi, self.p_bi))

    def _correct_by_soles(self, biases_i: dict[int, Array], gyro: Array) -> None:
        """Soles that rest measure the gyro bias (3,): what is left of the angular rate after that of their joints."""
        ekf = self.ekf
        for i in (i for i in biases_i if self.legs[i].contact and i in ekf.feet):
            variance = sole_bias_variance(float(ekf.R[2] @ (gyro - ekf.gyro_bias)))
            for k, axis in enumerate(np.eye(3)):
                off = biases_i[i][k] - ekf.gyro_bias[k]
                if abs(off) < FASTEST:
                    ekf.correct_gyro_bias(axis, off, variance)

    def _reject_slips(self, slips_b: dict[int, Array], dt: float) -> dict[int, float]:
        """The contact noise of feet in contact: beyond the limit it grows with the speed over the ground.

        No foot is rejected as a whole: where all seem to slip, the predicted velocity may be wrong.
        """
        p, speeds = self.params, {i: float(np.linalg.norm(v)) for i, v in slips_b.items() if self.legs[i].contact}
        limit, most = self.slip_limit, p.slip.inflation
        self.slips = np.array([speeds.get(i, 0.0) > limit for i in range(len(self.legs))])
        found = {i: p.contact * min(most, max(1.0, speed / limit)) for i, speed in speeds.items()}
        if speeds:
            self.slip_limit = slip_limit(limit, np.array(list(speeds.values())), p.slip.speed, dt)
        return found

    def _judge_feet(self, slips_b: dict[int, Array], feet_i: dict[int, Array], dt: float) -> None:
        """A single foot that moves over the ground is an outlier; if all do, the prediction is disputed."""
        R_wb = self.ekf.R @ self.R_bi.T
        predicted = np.diag(R_wb.T @ self.ekf.P[VEL, VEL] @ R_wb)
        self.ratios = np.zeros(len(self.legs))
        judged = [i for i in slips_b if self.legs[i].contact and i in self.ekf.feet]
        for i in judged:
            self.ratios[i] = foot_ratio(slips_b[i], predicted)
            if self.ratios[i] > 1.0 and np.linalg.norm(slips_b[i]) > FOOT_SPEED:
                self.legs[i].contact = False
        standing = [i for i in judged if self.legs[i].contact]
        feet = [slips_b[i] for i in standing]
        if feet:
            rate, variance = feet_rate(np.array(feet), np.array([self.R_bi @ feet_i[i] for i in standing]))
            if np.isfinite(variance):
                self.monitor.follow_heading(rate, variance, dt)
            self.monitor.consensus(feet_consensus(np.array(feet), self.ekf.adapted.factor), predicted, dt)
