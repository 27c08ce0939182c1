"""gtsam's four legged estimators on a Log: the same IMU noise, prior, kinematics and contacts as our own filters.

Their state is that of the IMU. They have no contact detection, so contacts are given; feet roll, which they do not
model, so the contact point is given at where it was on touch-down: the centre of the foot less what it rolled since.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gait.arrays import Array, BoolArray
from gait.bench.rivals import MissingRivalError, module_of
from gait.errors import GaitError
from gait.lie import quat_from_rotation, rotation_from_quat, skew
from gait.log import Log, Trajectory
from gait.parameters import Prior, ProcessNoise
from gait.robot import Robot

CLASSES = {
    "gtsam-ekf": "LeggedInvariantEKF",
    "gtsam-iekf": "LeggedInvariantIEKF",
    "gtsam-lag": "LeggedFixedLagSmoother",
    "gtsam-lag-bias": "LeggedCombinedFixedLagSmoother",
}
"""Our names for them."""
LAG, PACKET = 0.2, 0.02
"""Of the smoothers, s: how far they look back, and how often they are told the contacts beside touch-downs and
lift-offs. Each telling adds a node, and a node in every sample of 500 Hz takes some ten times as long."""
FOOTHOLD_START = 0.5
"""Standard deviation of a new foothold, m, before its first measurement: gtsam's own."""


@dataclass(frozen=True)
class GtsamSettings:
    """What is tuned."""

    foothold: float = 1e-3
    """Random walk of a foothold, m/sqrt(s); filters alone."""
    kinematics: float = 1e-3
    """Standard deviation of a foot position, m."""
    integration: float = 1e-4
    """Noise of the position's integration, m/sqrt(s)."""
    huber: float = 0.0
    """Standard deviations beyond which a contact counts linearly; 0 for never. Not of gtsam-ekf."""
    bias: float = 1.0
    """Factor on the random walk of the biases; gtsam-lag-bias alone, whose bias begins at zero, known to 1e-6."""


@dataclass(frozen=True, eq=False)
class FootTrack:
    """Feet of a Log by its joints, in IMU axes."""

    position_i: Array
    """Centres relative to the IMU (N, L, 3), m."""
    rate_i: Array
    """Angular velocity of the feet by the joints alone (N, L, 3), rad/s."""
    radius: Array
    """(L,), m."""

    @staticmethod
    def of(log: Log, robot: Robot) -> FootTrack:
        """Of a Log whose joints have the robot's order."""
        R_bi, p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        legs = list(zip(robot.chains, robot.by_leg(log.q), robot.by_leg(log.dq), strict=True))
        position = [chain.link_poses(q)[1][:, -1] - p_bi for chain, q, _ in legs]
        rate = [np.einsum("nij,nj->ni", chain.jacobians(q)[1], dq) for chain, q, dq in legs]
        radius = np.array([chain.foot.radius for chain in robot.chains])
        return FootTrack(np.stack(position, 1) @ R_bi, np.stack(rate, 1) @ R_bi, radius)

    def roll(self, k: int, gyro: Array, up_i: Array) -> Array:
        """Velocity at which the feet roll in sample k (L, 3)."""
        return np.cross(gyro + self.rate_i[k], self.radius[:, None] * up_i)


def run_gtsam(
    name: str, log: Log, robot: Robot, contact: BoolArray, start: Trajectory, settings: GtsamSettings
) -> tuple[Trajectory, float]:
    """The estimate of one of `CLASSES`, with its covariance where gtsam gives one, and the seconds that it took.

    Args:
        name: of `CLASSES`.
        log: joints in the robot's order.
        robot: whose it is.
        contact: feet on the ground (N, L).
        start: whose first row is the state of base_link at the first sample.
        settings: as tuned.
    """
    gtsam = module_of("gtsam")
    if not hasattr(gtsam, CLASSES[name]):
        raise MissingRivalError(f"this gtsam has no {CLASSES[name]}: 4.3 has")
    try:
        return _GtsamRun(gtsam, name, log, robot, start, settings).run(contact)
    except RuntimeError as error:
        raise GaitError(f"{CLASSES[name]} gave up: {str(error).strip().splitlines()[0]}") from None


class _GtsamRun:
    """One estimator on one Log."""

    def __init__(
        self, gtsam: Any, name: str, log: Log, robot: Robot, start: Trajectory, settings: GtsamSettings
    ) -> None:
        self.gtsam, self.name, self.log, self.robot = gtsam, name, log, robot
        self.filters = name in ("gtsam-ekf", "gtsam-iekf")
        self.R_bi, self.p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        self.track = FootTrack.of(log, robot)
        self.estimator = self._make(start, settings)

    def _make(self, start: Trajectory, settings: GtsamSettings) -> Any:
        gtsam, prior, legs = self.gtsam, Prior(), self.robot.num_legs
        R_wb = rotation_from_quat(start.quat_wb_wxyz[0])
        vel_w = start.vel_w[0] + R_wb @ np.cross(self.R_bi @ self.log.gyro[0], self.p_bi)
        state = gtsam.NavState(gtsam.Rot3(R_wb @ self.R_bi), start.pos_w[0] + R_wb @ self.p_bi, vel_w)
        # Right perturbations: of rotation, position and velocity in IMU axes. Only the yaw is another in these.
        world = np.diag(np.square([prior.rotation, prior.rotation, prior.yaw]))
        R_wi = R_wb @ self.R_bi
        P = np.zeros((9 + 3 * legs, 9 + 3 * legs))
        P[:3, :3] = R_wi.T @ world @ R_wi
        P[3:6, 3:6], P[6:9, 6:9] = prior.position**2 * np.eye(3), prior.velocity**2 * np.eye(3)
        P[9:, 9:] = FOOTHOLD_START**2 * np.eye(3 * legs)
        footholds, params, names = np.zeros((3, legs)), self._params(settings), list(self.robot.leg_names)
        make = getattr(gtsam, CLASSES[self.name])
        if self.filters:
            return make(state, footholds, P, params, names)
        return make(state, footholds, P[:9, :9], params, LAG, names)

    def _params(self, settings: GtsamSettings) -> Any:
        noise, gtsam, one = ProcessNoise(), self.gtsam, np.eye(3)
        params, imu = gtsam.LeggedEstimatorParams(), gtsam.PreintegrationParams.MakeSharedU(9.81)
        imu.setGyroscopeCovariance(noise.gyro**2 * one)
        imu.setAccelerometerCovariance(noise.accel**2 * one)
        imu.setIntegrationCovariance(settings.integration**2 * one)
        params.preintegrationParams, params.body_P_imu = imu, gtsam.Pose3()
        params.footholdProcessSigma, params.footholdInitSigma = settings.foothold, FOOTHOLD_START
        params.contactCovariance = settings.kinematics**2 * one
        params.biasOmegaRandomWalkSigma = settings.bias * noise.gyro_bias
        params.biasAccRandomWalkSigma = settings.bias * noise.accel_bias
        params.useRobustContactNoise = settings.huber > 0.0
        params.robustContactHuberK = settings.huber or 1.0
        # Otherwise it waits until all feet are on the ground, which a trotting robot never has.
        params.useFullContactInitialization = False
        return params

    def run(self, contact: BoolArray) -> tuple[Trajectory, float]:
        """Take all samples."""
        log, estimator = self.log, self.estimator
        was, rolled = np.zeros(self.robot.num_legs, dtype=bool), np.zeros((self.robot.num_legs, 3))
        told, R, out, covs = -np.inf, estimator.estimate().rotation().matrix(), [], []
        began = time.process_time()
        for k, t in enumerate(log.t):
            dt = t - log.t[k - 1] if k else 0.0
            if dt > 0.0:
                estimator.predict(log.gyro[k], log.accel[k], dt)
            rolled = np.where(contact[k][:, None], rolled + dt * self.track.roll(k, log.gyro[k], R[2]) @ R.T, 0.0)
            if self.filters or t - told >= PACKET - 1e-6 or (contact[k] != was).any():
                points = self.track.position_i[k] - rolled @ R
                estimator.processContacts(self._packet(contact[k], was, points))
                was, told = contact[k], t
            estimate = estimator.estimate()
            R = estimate.rotation().matrix()
            bias = np.zeros(3) if self.filters else estimator.estimateBias().gyroscope()
            out.append((R, estimate.x(0), estimate.x(1), bias))
            if self.filters:
                covs.append(estimator.covariance()[:9, :9])
        spent = time.process_time() - began
        return self._trajectory(out, covs), spent

    def _packet(self, contact: BoolArray, was: BoolArray, points: Array) -> list[Any]:
        found = []
        for foot in np.flatnonzero(contact).tolist():
            one = self.gtsam.ContactMeasurement()
            one.foot, one.bodyPoint, one.touchdown = foot, points[foot], bool(not was[foot])
            found.append(one)
        return found

    def _trajectory(self, out: Sequence[tuple[Array, ...]], covs: list[Array]) -> Trajectory:
        """From the IMU to base_link."""
        R_wi, pos, vel, bias = (np.array(part) for part in zip(*out, strict=True))
        R_wb = R_wi @ self.R_bi.T
        lever_b = np.cross((self.log.gyro - bias) @ self.R_bi.T, self.p_bi)
        arrays = {
            "quat_wb_wxyz": np.array([quat_from_rotation(R) for R in R_wb]),
            "pos_w": pos - R_wb @ self.p_bi,
            "vel_w": vel - np.einsum("nij,nj->ni", R_wb, lever_b),
        }
        if covs:
            # R' v with R = R_hat exp(xi_R) and v = v_hat + R_hat xi_v: v_i x xi_R + xi_v.
            vel_i = np.einsum("nji,nj->ni", R_wi, vel)
            J = [np.hstack([skew(v), np.zeros((3, 3)), np.eye(3)]) for v in vel_i]
            arrays["vel_cov"] = np.array([self.R_bi @ j @ P @ j.T @ self.R_bi.T for j, P in zip(J, covs, strict=True)])
        return Trajectory(t=self.log.t, source=self.name, **arrays)
