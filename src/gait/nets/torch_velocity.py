"""Sources of a velocity for the filter of n robots in torch: the first half of `gait.reference.velocity_aided`.

A sample is a column of numbers for each robot (F, n): gyro, accel, q, dq, and q_des - q or tau if the network reads it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn, unflatten

from gait.errors import GaitError
from gait.lie import rotation_from_quat
from gait.nets.model import Model
from gait.nets.torch_filter import TorchFilter, constant, robots_first
from gait.nets.torch_legs import (
    LegSample,
    TorchLegFeatures,
    TorchMeasurement,
    fuse_legs,
    learn_flexure,
    predicted_motion,
)
from gait.nets.torch_monitor import TorchConsensus
from gait.nets.torch_network import TorchLegs, TorchNetwork
from gait.parameters import Options
from gait.reference.velocity_aided import LARGEST_STD
from gait.robot import Robot

Imu = tuple[Tensor, Tensor]
"""Angular rate and specific force as measured (3, n)."""
REST_VELOCITY_STD, REST_RATE_STD = 0.03, 0.02
"""As in core/network_step.c: of a robot at rest, m/s and rad/s."""


class TorchNetworkVelocity(nn.Module):
    """The paper's network or a baseline: v and S = diag(exp(2 u)), inflated because its errors last."""

    R_bi: Tensor
    p_bi: Tensor

    def __init__(self, model: Model, robot: Robot, n: int, options: Options, dtype: torch.dtype) -> None:
        super().__init__()
        self.network, self.options = TorchNetwork(model, n), options
        R_bi = rotation_from_quat(robot.imu_quat_wxyz)
        self.register_buffer("R_bi", constant(R_bi[..., None], dtype), persistent=False)
        self.register_buffer("p_bi", constant(robot.imu_position[:, None], dtype), persistent=False)

    @staticmethod
    def load(q: Tensor, dq: Tensor, q_des: Tensor | None, tau: Tensor | None) -> Tensor:
        """What the network reads beside IMU, q and dq (J, n)."""
        if q_des is None:
            raise GaitError(
                "this network reads the joint targets q_des, which are not there: give them, or make the batch with"
                " targets=False"
            )
        return q_des - q

    def measure(
        self, ekf: TorchFilter, imu: Imu, x: Tensor, dt: Tensor, begins: Tensor, active: Tensor
    ) -> TorchMeasurement:
        """One step of the network on samples x (F, n), dt seconds (n,) after those before."""
        outputs = self.network.step(robots_first(x.to(torch.float32)), begins, active)
        velocity, log_std = (out.T.to(x.dtype) for out in outputs)
        p = predicted_motion(ekf, *imu, self.R_bi, self.p_bi)
        std = torch.exp(log_std)
        instant = torch.square(std) * ekf.adapted.factor
        claimed = self.options.inflation**2 * instant
        consensus = TorchConsensus(velocity - p.v, p.var, instant, torch.zeros_like(instant), claimed)
        informative, none = (std < LARGEST_STD).any(0), torch.zeros_like(std[0])
        return TorchMeasurement(velocity, claimed, informative, consensus, p.R_wb, none, none)


class TorchLegsVelocity(nn.Module):
    """`gait-legs`: every leg measures the velocity, the network gives its variance, and the legs are fused."""

    kp: Tensor
    kd: Tensor
    torque_limit: Tensor
    p_bi: Tensor

    def __init__(self, model: Model, robot: Robot, n: int, options: Options, dtype: torch.dtype) -> None:
        super().__init__()
        self.network, forces = TorchLegs(model, n), model.architecture.targets
        self.features = TorchLegFeatures(robot, n, options, dtype, 1.0 / model.rate, forces)
        self._joints, self._shape = robot.num_joints, (robot.num_legs, -1)
        for name in ("kp", "kd", "torque_limit"):
            self.register_buffer(name, constant(getattr(robot, name)[:, None], dtype), persistent=False)
        self.register_buffer("p_bi", constant(robot.imu_position[:, None], dtype), persistent=False)

    def load(self, q: Tensor, dq: Tensor, q_des: Tensor | None, tau: Tensor | None) -> Tensor:
        """Joint torques (J, n) as measured, else what the joints' PD loops make of the tracking error."""
        if tau is not None:
            return tau
        if q_des is None:
            raise GaitError(
                "this network reads joint torques tau, or joint targets q_des, and neither is there: give one of them,"
                " or make the batch with targets=False"
            )
        return torch.clamp(self.kp * (q_des - q) - self.kd * dq, -self.torque_limit, self.torque_limit)

    def measure(
        self, ekf: TorchFilter, imu: Imu, x: Tensor, dt: Tensor, begins: Tensor, active: Tensor
    ) -> TorchMeasurement:
        """Features, network, fusion on samples x (F, n), dt seconds (n,) after those before."""
        # Joints stand leg by leg: (L J, n) to (J, L, n).
        q, dq, *load = (unflatten(part, 0, self._shape).transpose(0, 1) for part in torch.split(x[6:], self._joints))
        sample = LegSample(x[:3], x[3:6], q, dq, load[0] if load else torch.zeros_like(q))
        found = self.features.step(sample, dt, begins, active)
        shared, legs = robots_first(found.shared.to(torch.float32)), found.legs.to(torch.float32).permute(2, 1, 0)
        outputs = self.network.step(shared, legs.contiguous(), begins, active)
        velocity, log_std = (out.permute(2, 1, 0).to(x.dtype) for out in outputs)
        if self.features.forces and self.features.flexure.used:
            motion = predicted_motion(ekf, *imu, self.features.R_bi, self.p_bi)
            learn_flexure(self.features, ekf, motion, found, active & ~begins)
        return fuse_legs(ekf, imu, found, velocity, log_std, self.features.R_bi, self.p_bi)


def at_rest(m: TorchMeasurement, turning: Tensor, still: Tensor) -> TorchMeasurement:
    """Robots that are still (n,) have no velocity, and what their gyros measure about z (n,) is bias."""
    return m._replace(
        vel_b=torch.where(still, 0.0, m.vel_b),
        var_b=torch.where(still, REST_VELOCITY_STD**2, m.var_b),
        gyro_bias_z=torch.where(still, turning, m.gyro_bias_z),
        gyro_bias_z_var=torch.where(still, REST_RATE_STD**2, m.gyro_bias_z_var),
    )
