"""`gait-legs` around its network in torch, for n robots at once: `gait.reference.leg_velocity`, function by function.

Read that file for what the features and the fusion are. Robots stand last, see `torch_lie`. Every leg is in use: the
encoders of a simulator do not fail. Torques are not checked either: a robot that is lifted is not detected.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gait.lie import rotation_from_quat
from gait.nets.torch_chain import TorchChains, foot_rate, foot_velocity
from gait.nets.torch_filter import TorchFilter, constant, gate_inflation, leg_variances
from gait.nets.torch_flexure import TorchFlexure, flexure_velocity, weight_flexure
from gait.nets.torch_lie import cross, product, square, turn, turn_back
from gait.nets.torch_monitor import TorchConsensus
from gait.parameters import LEG_INSTANT, Options
from gait.reference.filter import VEL
from gait.reference.leg_velocity import (
    HISTORY,
    LARGEST_VARIANCE,
    SMOOTHING,
    UNINFORMATIVE,
    YAW_BIAS_PER_ACCEL,
    YAW_BIAS_PER_RATE,
    YAW_BIAS_STD,
)
from gait.robot import Robot


class Features(NamedTuple):
    """Features of base and legs in a sample, in the precision of the filter."""

    shared: Tensor
    """Angular rate and specific force in base axes (6, n)."""
    legs: Tensor
    """Foot position, measured velocity, ground force and foot acceleration of each leg (12, L, n)."""
    feet_b: Tensor
    """Foot positions (3, L, n), m."""
    foot_accel: Tensor
    """(3, L, n), m/s^2."""


class LegSample(NamedTuple):
    """One sample of n robots as the features take it."""

    gyro: Tensor
    """(3, n), IMU axes, and so is the next."""
    accel: Tensor
    q: Tensor
    """(J, L, n), and so are the next two."""
    dq: Tensor
    tau: Tensor


class TorchLegFeatures(nn.Module):
    """Features from sample to sample."""

    R_bi: Tensor
    hips_b: Tensor
    rates: Tensor
    """Angular rates in base axes, newest first (HISTORY, 3, n)."""
    last_dq: Tensor
    """(J, L, n), and so are the next two."""
    ddq: Tensor
    tau: Tensor
    tau_rate: Tensor
    """Of the torques that are kept (J, L, n), N m/s."""
    flexed: Tensor
    """What a unit of compliance adds to the velocity of each leg (3, L, n)."""

    def __init__(self, robot: Robot, n: int, options: Options, dtype: torch.dtype, period: float, forces: bool) -> None:
        """Set up for n robots, `period` seconds a sample; the options hold the latency of joints.

        With `forces`, torques are known.
        """
        super().__init__()
        self.forces = forces
        self.latency, self.chains = options.joint_delay, TorchChains(robot, dtype)
        self.length, self.weight = robot.leg_length, robot.mass * -options.gravity
        R_bi, hips_b = rotation_from_quat(robot.imu_quat_wxyz), robot.hips_b
        self.register_buffer("R_bi", constant(R_bi[..., None], dtype), persistent=False)
        self.register_buffer("hips_b", constant(hips_b.T[..., None], dtype), persistent=False)
        self.register_buffer("rates", torch.zeros(HISTORY, 3, n, dtype=dtype))
        self.flexure = TorchFlexure(robot, n, period, dtype, options.flexure)
        for name in ("last_dq", "ddq", "tau", "tau_rate"):
            self.register_buffer(name, torch.zeros(robot.num_joints // robot.num_legs, robot.num_legs, n, dtype=dtype))

    def step(self, s: LegSample, dt: Tensor, begins: Tensor, active: Tensor) -> Features:
        """The features of one more sample.

        Args:
            s: the sample.
            dt: seconds since the sample before (n,).
            begins: robots that have no sample before (n,).
            active: robots that have this one (n,); the others remember what they did.
        """
        gyro_b, accel_b = turn(self.R_bi, s.gyro), turn(self.R_bi, s.accel)
        self._smooth(s.dq, s.tau, dt, begins, active)
        w_b = self._delayed(gyro_b, dt, begins, active)
        self.flexure.begin(begins)
        # Encoders on the motors' side read what joints give way under load as well.
        if self.forces:
            c = self.flexure.compliance
            s = s._replace(q=s.q - c * self.tau, dq=s.dq - c * self.tau_rate)
        poses = self.chains.link_poses(s.q)
        if not self.forces:
            # Each leg carries its share of the weight while half of them stand.
            rates, sway = weight_flexure(poses, s.dq, self.weight * min(1.0, 2.0 / len(self.hips_b[0])))
            s = s._replace(dq=s.dq - self.flexure.assumed * rates)
        J, feet_b = poses.jacobian, poses.points[-1]
        tau_free = self.chains.joint_torques(poses, s.dq, self.ddq, -accel_b)
        position = (feet_b - self.hips_b) / self.length
        wrench, told = self.chains.ground_wrench(poses, self.tau, tau_free), (self.tau != 0.0).any(0)
        lever = self.chains.contact_lever(poses, wrench, self.weight, told)
        velocity = cross(foot_rate(poses, s.dq, w_b), lever) - foot_velocity(J, feet_b, s.dq, w_b)
        if not self.forces:
            velocity = velocity + self.flexure.assumed * sway
        self.flexed = flexure_velocity(poses, self.tau_rate, lever)
        force = wrench[:3] / self.weight
        foot_accel = turn(J, self.ddq)
        legs = torch.cat([position, velocity, force, foot_accel])
        return Features(torch.cat([gyro_b, accel_b]), legs, feet_b, foot_accel)

    def _smooth(self, dq: Tensor, tau: Tensor, dt: Tensor, begins: Tensor, active: Tensor) -> None:
        """Joint accelerations by differences, and torques, through the same low-pass so that both lag alike."""
        last_dq, ddq = torch.where(begins, dq, self.last_dq), torch.where(begins, 0.0, self.ddq)
        last_tau = torch.where(begins, tau, self.tau)
        share = 1.0 / (SMOOTHING + dt)
        self.ddq = torch.where(active, ddq + share * (dq - last_dq - dt * ddq), self.ddq)
        self.tau_rate = torch.where(active, share * (tau - last_tau), self.tau_rate)
        self.tau = torch.where(active, last_tau + dt * share * (tau - last_tau), self.tau)
        self.last_dq = torch.where(active, dq, self.last_dq)

    def _delayed(self, gyro_b: Tensor, dt: Tensor, begins: Tensor, active: Tensor) -> Tensor:
        """The angular rate of the moment when the joints were read, interpolated; this one is kept."""
        past = torch.where(begins, gyro_b, self.rates[:-1])
        rates = torch.cat([gyro_b[None], past])  # newest first
        self.rates = torch.where(active, rates, self.rates)
        back = torch.where(dt > 0.0, torch.clamp(self.latency / dt, max=HISTORY - 1.001), 0.0)
        # Linear interpolation as a weight for each of the rates: no index comes from a value.
        at = torch.arange(HISTORY, dtype=gyro_b.dtype, device=gyro_b.device)[:, None]
        weights = torch.clamp(1.0 - (back - at).abs(), min=0.0)
        return (weights[:, None] * rates).sum(0)


class TorchMeasurement(NamedTuple):
    """What a network, or the legs together, measure."""

    vel_b: Tensor
    """Velocity of base_link (3, n), m/s."""
    var_b: Tensor
    """Its variances (3, n)."""
    informative: Tensor
    """Whether there is any measurement (n,)."""
    consensus: TorchConsensus
    """For the monitor."""
    R_wb: Tensor
    """Predicted orientation (3, 3, n)."""
    gyro_bias_z: Tensor
    """Gyro bias about z of base_link less the estimate (n,), rad/s."""
    gyro_bias_z_var: Tensor
    """Its variance (n,); 0 where it is not measured."""


class PredictedMotion(NamedTuple):
    """The predicted state of base_link in its own axes."""

    R_wb: Tensor
    """Orientation (3, 3, n)."""
    w: Tensor
    """Angular rate (3, n)."""
    v: Tensor
    """Velocity (3, n), its variances and its derivative."""
    var: Tensor
    a: Tensor


def predicted_motion(ekf: TorchFilter, gyro: Tensor, accel: Tensor, R_bi: Tensor, p_bi: Tensor) -> PredictedMotion:
    """The predicted state of base_link, given angular rate and specific force as measured (3, n)."""
    R_wb = product(ekf.R, R_bi.transpose(0, 1))
    w_b = turn(R_bi, gyro - ekf.gyro_bias)
    v_b = turn_back(R_wb, ekf.v) - cross(w_b, p_bi)
    var_b = (R_wb * product(ekf.P[VEL, VEL], R_wb)).sum(0)
    # d/dt R' v = R' a - w x R' v; the lever arm's own acceleration is left out.
    a_b = turn(R_bi, accel - ekf.accel_bias) + turn_back(R_wb, ekf.g) - cross(w_b, v_b)
    return PredictedMotion(R_wb, w_b, v_b, var_b, a_b)


def fuse_legs(
    ekf: TorchFilter,
    imu: tuple[Tensor, Tensor],
    x: Features,
    leg_vel: Tensor,
    leg_log_std: Tensor,
    R_bi: Tensor,
    p_bi: Tensor,
) -> TorchMeasurement:
    """One measurement from all legs that are informative, of robots that are upright.

    Args:
        ekf: with the predicted state.
        imu: angular rate and specific force as measured (3, n).
        x: features of the network's sample.
        leg_vel: velocity of base_link as each leg measures it (3, L, n).
        leg_log_std: log of its standard deviation (3, L, n).
        R_bi: mounting rotation of the IMU.
        p_bi: its lever arm.
    """
    o = ekf.options
    p = predicted_motion(ekf, *imu, R_bi, p_bi)
    used = (o.leg_inflation * torch.exp(leg_log_std) < UNINFORMATIVE).any(0) & (p.R_wb[2, 2] > 0.0)  # (L, n)
    informative = used.any(0)
    z = leg_vel + cross(turn(R_bi, ekf.gyro_bias)[:, None], x.feet_b)
    r = leg_variances(leg_log_std, x.foot_accel, o.leg_inflation, o.joint_delay_std) * ekf.adapted.factor[:, None]
    expected = p.v - o.joint_delay * p.a

    mean_b, claimed = combine(z, torch.where(used, 1.0 / r, 0.0), informative)
    spread = (torch.where(used, 1.0 / r, 0.0) * torch.square(z - mean_b[:, None])).sum(1) * claimed
    consensus = TorchConsensus(mean_b - expected, p.var, LEG_INSTANT**2 * claimed, spread, claimed)

    r = r * gate_inflation(z - expected[:, None], p.var[:, None] + LEG_INSTANT**2 * r, o.leg_guard, 0)
    weight = torch.where(used, 1.0 / r, 0.0)
    mean_b, var_b = combine(z, weight, informative)
    bias, bias_var = yaw_bias(x.feet_b, z - mean_b[:, None], weight, informative)
    bias_var = bias_var * (YAW_BIAS_STD**2 + YAW_BIAS_PER_RATE**2 * square(p.w) + YAW_BIAS_PER_ACCEL**2 * square(p.a))
    return TorchMeasurement(mean_b + o.joint_delay * p.a, var_b, informative, consensus, p.R_wb, bias, bias_var)


def learn_flexure(own: TorchLegFeatures, ekf: TorchFilter, p: PredictedMotion, x: Features, active: Tensor) -> None:
    """Hold what legs measure before any network against the predicted state, for how far their joints give way.

    Args:
        own: what learns.
        ekf: with the predicted state.
        p: of base_link.
        x: features of the sample.
        active: robots that have this sample and one before (n,).
    """
    z = x.legs[3:6] + cross(turn(own.R_bi, ekf.gyro_bias)[:, None], x.feet_b)
    off = z - (p.v - ekf.options.joint_delay * p.a)[:, None]
    own.flexure.learn(off, own.flexed, x.legs[8], active & (p.R_wb[2, 2] > 0.0))


def combine(z: Tensor, weight: Tensor, informative: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted means (3, n) of what legs measure (3, L, n), and their variances; 0 and 1 where no leg has a weight."""
    information = torch.where(informative, weight.sum(1), 1.0)
    return (weight * z).sum(1) / information, 1.0 / information


def yaw_bias(feet_b: Tensor, residual: Tensor, weight: Tensor, informative: Tensor) -> tuple[Tensor, Tensor]:
    """Gyro bias about z (n,) and its variance (n,) by weighted least squares on what legs differ by; else zeros."""
    slope = torch.stack([feet_b[1], -feet_b[0]])  # (2, L, n)
    weight = weight[:2]
    slope = slope - combine(slope, weight, informative)[0][:, None]
    information = (weight * slope**2).sum((0, 1))
    told = information * LARGEST_VARIANCE >= 1.0
    safe = torch.where(told, information, 1.0)
    bias = (weight * slope * residual[:2]).sum((0, 1)) / safe
    return torch.where(told, bias, 0.0), torch.where(told, 1.0 / safe, 0.0)
