"""The invariant EKF of n robots at once in torch: `gait.reference.filter` without feet, function by function.

Read that file for the equations. Robots stand last here, see `torch_lie`. Two things differ: a step may last another
time for each robot, 0 for those that take no part in it, and the zeros of transition and measurement are left out of
the products. What training shares is the measurement model of legs, `leg_variances` and `gate_inflation`: the loss of
`gait-legs` runs it behind a filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn, unflatten

from gait.arrays import Array
from gait.nets.torch_adapt import TorchAdaptedNoise
from gait.nets.torch_lie import (
    coefficients,
    cross,
    inverse3,
    orthonormalised,
    polynomial,
    product,
    quat_from_rotation,
    skew,
    so3_exp,
    square,
    turn,
    turn_back,
)
from gait.parameters import LEG_INSTANT, MOST_LASTING, Options, ProcessNoise
from gait.reference.disagreement import MOUNTING_STD
from gait.reference.filter import ACCEL_BIAS, GYRO_BIAS, LARGEST_BIAS, POS, ROT, VEL

POSE, BIASES = slice(0, 9), slice(9, 15)
MAX_SPEED, MAX_STD = 12.0, 100.0
"""As in core/iekf.c: no legged robot is faster, and a larger standard deviation holds no information."""
MAX_GYRO_BIAS, MAX_ACCEL_BIAS = LARGEST_BIAS.ravel().tolist()


class TorchFilter(nn.Module):
    """Right-invariant EKF of n robots that takes velocities in IMU axes and gyro biases."""

    R: Tensor
    """Orientation of the IMU (3, 3, n)."""
    v: Tensor
    """(3, n), like the next three."""
    p: Tensor
    gyro_bias: Tensor
    accel_bias: Tensor
    P: Tensor
    """(15, 15, n)."""
    g: Tensor
    eye: Tensor

    def __init__(
        self, n: int, noise: ProcessNoise, options: Options, dtype: torch.dtype, of_soles: bool = False
    ) -> None:
        super().__init__()
        self.noise, self.options = noise, options
        self.adapted = TorchAdaptedNoise(n, dtype, of_soles)
        self.register_buffer("R", torch.eye(3, dtype=dtype)[..., None].repeat(1, 1, n))
        for name in ("v", "p", "gyro_bias", "accel_bias"):
            self.register_buffer(name, torch.zeros(3, n, dtype=dtype))
        self.register_buffer("P", torch.eye(15, dtype=dtype)[..., None].repeat(1, 1, n))
        self.register_buffer("g", torch.tensor([[0.0], [0.0], [options.gravity]], dtype=dtype), persistent=False)
        self.register_buffer("eye", torch.eye(3, dtype=dtype)[..., None], persistent=False)

    def start(self, chosen: Tensor, R: Tensor, v: Tensor, p: Tensor, std: Tensor) -> None:
        """Begin with the chosen robots (n,) at a state of the IMU known to these standard deviations (15,)."""
        var = torch.square(std)
        P = torch.diag(torch.cat([torch.zeros_like(var[ROT]), var[3:]]))[..., None].repeat(1, 1, v.shape[1])
        P[POSE, POSE] += self._turned(v, p, var[ROT, None])
        self.R, self.P = torch.where(chosen, R, self.R), torch.where(chosen, P, self.P)
        self.v, self.p = torch.where(chosen, v, self.v), torch.where(chosen, p, self.p)
        self.gyro_bias = torch.where(chosen, 0.0, self.gyro_bias)
        self.accel_bias = torch.where(chosen, 0.0, self.accel_bias)

    def _turned(self, v: Tensor, p: Tensor, var: Tensor) -> Tensor:
        """What rotation variances (3, n) add to the covariance of the pose (9, 9, n): J var J', J = [1; v^; p^]."""
        J = torch.cat([self.eye.expand(3, 3, v.shape[1]), skew(v), skew(p)])
        return product(J * var, J.transpose(0, 1))

    def propagate(self, gyro: Tensor, accel: Tensor, dt: Tensor, more: tuple[Tensor, Tensor]) -> None:
        """One IMU sample (3, n) of each robot, held over dt seconds (n,); 0 leaves a robot as it is.

        `more` are squares of densities (n,) that join the noise of gyro and accelerometer.
        """
        w, a = gyro - self.gyro_bias, accel - self.accel_bias
        n = self.noise
        accel_var = n.accel**2 + more[1] + n.accel_share**2 * square(turn(self.R, a) + self.g)
        height_var = n.height_time * self.P[5, 5].clamp(max=MOST_LASTING**2)
        # P + Ad Q Ad' dt: noise of one size on all axes does not see the rotation in the adjoint.
        self.P[POSE, POSE] += self._turned(self.v, self.p, (n.gyro**2 + more[0]) * dt)
        diagonal = self.P.diagonal(dim1=0, dim2=1).T  # (15, n)
        diagonal[VEL] += accel_var * dt
        diagonal[POS] += (n.position**2 + n.position_share**2 * square(self.v)) * dt
        diagonal[8] += height_var * dt
        diagonal[GYRO_BIAS] += n.gyro_bias**2 * dt
        diagonal[ACCEL_BIAS] += n.accel_bias**2 * dt
        self._transition(dt)
        _, b, c, d = coefficients(square(w * dt))
        once, twice = a, a / 2
        if self.options.exact_mean:
            once, twice = polynomial(w * dt, a, 1.0, b, c), polynomial(w * dt, a, 0.5, c, d)
        self.p = self.p + self.v * dt + (turn(self.R, twice) + self.g / 2) * dt**2
        self.v = self.v + (turn(self.R, once) + self.g) * dt
        self.R = orthonormalised(product(self.R, so3_exp(w * dt)))

    def _transition(self, dt: Tensor) -> None:
        """P <- Phi P Phi'; the rows of the biases do not change."""
        FP = self._phi(self.P, dt)  # (9, 15, n)
        self.P[POSE, POSE] = symmetric(self._phi(FP.transpose(0, 1), dt))
        self.P[POSE, BIASES] = FP[:, BIASES]
        self.P[BIASES, POSE] = FP[:, BIASES].transpose(0, 1)

    def _phi(self, X: Tensor, dt: Tensor) -> Tensor:
        """The rows of the pose of Phi X (9, k, n), with Phi = exp(A dt) of the error equation d xi / dt = A xi."""
        exact = 1.0 if self.options.exact_phi else 0.0
        half, sixth = exact * dt**2 / 2, exact * dt**3 / 6
        by_gyro, by_accel = product(self.R, X[GYRO_BIAS]), product(self.R, X[ACCEL_BIAS])  # (3, k, n)
        tilt = torch.stack([-X[1], X[0], torch.zeros_like(X[0])]) * self.options.gravity  # g^ times the rotation
        rot = X[ROT] - dt * by_gyro
        vel = X[VEL] + dt * (tilt - by_accel) - product(skew(self.v * dt + self.g * half), by_gyro)
        turned = product(skew(self.p * dt + self.v * half + self.g * sixth), by_gyro)
        return torch.cat([rot, vel, X[POS] + dt * X[VEL] + half * (tilt - by_accel) - turned])

    def correct_velocity(self, vel_i: Tensor, cov_i: Tensor, active: Tensor) -> None:
        """The velocity in IMU axes (3, n), y = R' v + noise, of the robots that are active (n,)."""
        HP = self.P[VEL].clone()
        S = HP[:, VEL] + product(product(self.R, cov_i), self.R.transpose(0, 1))
        self._correct(turn(self.R, vel_i) - self.v, HP, S, product(inverse3(S), HP), active)

    def correct_gyro_bias(self, axis_i: Tensor, innovation: Tensor, variance: Tensor, active: Tensor) -> None:
        """The gyro bias about an axis (3,) of the IMU, as its difference from the estimate (n,); variance (n,)."""
        axis = axis_i[:, None]
        HP = (axis[..., None] * self.P[GYRO_BIAS]).sum(0, keepdim=True)  # (1, 15, n)
        S = ((axis * HP[0, GYRO_BIAS]).sum(0) + variance)[None, None]
        self._correct(innovation[None], HP, S, HP / S[0], active)

    def _correct(self, z: Tensor, HP: Tensor, S: Tensor, K: Tensor, active: Tensor) -> None:
        """Joseph's form, (I - K H) P (I - K H)' + K N K', multiplied out; S = H P H' + N and K' are (m, m or 15, n)."""
        K, z = torch.where(active, K, 0.0), torch.where(active, z, 0.0)
        rest = HP - product(S, K)  # nothing but what rounding left of it
        for gain, row, left in zip(K, HP, rest, strict=True):
            self.P.addcmul_(gain[:, None], row[None], value=-1.0)
            self.P.addcmul_(left[:, None], gain[None], value=-1.0)
        self.P = symmetric(self.P)
        self._retract((K * z[:, None]).sum(0))

    def _retract(self, delta: Tensor) -> None:
        """X <- exp(delta) X, and the biases by addition."""
        phi = delta[ROT]
        a, b, c, _ = coefficients(square(phi))
        vectors = torch.stack([self.v, self.p, *self.R.unbind(1)], 1)  # (3, 5, n)
        v, p, *columns = polynomial(phi[:, None], vectors, 1.0, a, b).unbind(1)
        moved = polynomial(phi[:, None], torch.stack([delta[VEL], delta[POS]], 1), 1.0, b, c)
        self.v, self.p = v + moved[:, 0], p + moved[:, 1]
        self.R = orthonormalised(torch.stack(columns, 1))
        self.gyro_bias = self.gyro_bias + delta[GYRO_BIAS]
        self.accel_bias = self.accel_bias + delta[ACCEL_BIAS]

    def inflate(self, rows: slice, A: Tensor, variance: Tensor) -> None:
        """Add variances (k, n) along the columns of A (3, k, n or 1) to a block of the covariance."""
        self.P[rows, rows] += product(A * variance, A.transpose(0, 1))

    def reset_velocity(self, chosen: Tensor, R_wb: Tensor, delta_b: Tensor, variance_b: Tensor) -> None:
        """Let the velocity of the chosen robots (n,) be what is measured, with the variance of that (3, n)."""
        self.v = self.v + torch.where(chosen, turn(R_wb, delta_b), 0.0)
        self.P[VEL] = torch.where(chosen, 0.0, self.P[VEL])
        self.P[:, VEL] = torch.where(chosen, 0.0, self.P[:, VEL])
        self.inflate(VEL, R_wb, torch.where(chosen, variance_b, 0.0))

    def limit_biases(self) -> None:
        """See that biases are those of sensors."""
        self.gyro_bias = torch.clamp(self.gyro_bias, -MAX_GYRO_BIAS, MAX_GYRO_BIAS)
        self.accel_bias = torch.clamp(self.accel_bias, -MAX_ACCEL_BIAS, MAX_ACCEL_BIAS)

    @property
    def plausible(self) -> Tensor:
        """Whether state and covariance are what a robot's can be (n,); a nan is not."""
        diagonal = self.P.diagonal(dim1=0, dim2=1).T
        vectors = torch.cat([self.v, self.p, self.gyro_bias, self.accel_bias, diagonal])
        finite = torch.isfinite(vectors.sum(0) + self.R.sum((0, 1)))
        return finite & (square(self.v) < MAX_SPEED**2) & (diagonal[VEL].sum(0) < MAX_STD**2)


def symmetric(P: Tensor) -> Tensor:
    """P, whose two triangles rounding pulls apart."""
    return (P + P.transpose(0, 1)) / 2


@dataclass(frozen=True)
class BatchState:
    """States of base_link of n robots, in SI units; tensors on the device, in the precision of the samples."""

    R_wb: Tensor
    """Orientation, body to world (n, 3, 3)."""
    vel_w: Tensor
    """Velocity in the world frame (n, 3), m/s."""
    pos_w: Tensor
    """Position in the world frame (n, 3), m, from where the robot was reset."""
    vel_b: Tensor
    """Velocity in the body frame (n, 3), m/s."""
    vel_cov: Tensor
    """Covariance of `vel_b` (n, 3, 3)."""
    pose_cov: Tensor
    """Covariance of position, then rotation, in world axes (n, 6, 6)."""
    ang_vel_b: Tensor
    """Angular rate in the body frame (n, 3), rad/s, without the estimated bias."""
    gyro_bias: Tensor
    """Gyro bias (n, 3), rad/s, in IMU axes."""
    accel_bias: Tensor
    """Accelerometer bias (n, 3), m/s^2, in IMU axes."""
    started: Tensor
    """Whether the robot has had its first sample (n,); a start from gravity waits for one of a robot at rest."""
    diverged: Tensor
    """Whether the state left all bounds in this step and was started again at the last good pose (n,)."""

    @property
    def quat_wb_wxyz(self) -> Tensor:
        """Orientation, body to world (n, 4), w first."""
        return quat_from_rotation(self.R_wb.movedim(0, -1)).T

    @property
    def vel_b_std(self) -> Tensor:
        """Standard deviation of `vel_b` (n, 3), m/s."""
        return torch.sqrt(self.vel_cov.diagonal(dim1=-2, dim2=-1))

    @property
    def gravity_b(self) -> Tensor:
        """Unit vector of gravity in the body frame (n, 3), the `projected_gravity` of policies: (0, 0, -1) if level."""
        return -self.R_wb[:, 2]


class OpenDisagreement(NamedTuple):
    """Variances that a disagreement of measurements and IMU shows."""

    velocity_least: Tensor
    """What those of the velocity are at least, base axes (3, n)."""
    velocity_more: Tensor
    """What joins them (3, n)."""
    pose_least: Tensor
    """What those of position and rotation are at least, world axes (6, n)."""


def base_state(
    ekf: TorchFilter,
    gyro: Tensor,
    R_bi: Tensor,
    p_bi: Tensor,
    shown: OpenDisagreement,
    flags: tuple[Tensor, Tensor],
    dtype: torch.dtype,
) -> BatchState:
    """From the IMU to base_link.

    Given are the angular rate as measured (3, n), variances that an open disagreement shows, and who has started and
    diverged.
    """
    R_wb = product(ekf.R, R_bi.transpose(0, 1))
    w_b = turn(R_bi, gyro - ekf.gyro_bias)
    vel_w, pos_w = ekf.v - turn(R_wb, cross(w_b, p_bi)), ekf.p - turn(R_wb, p_bi)
    P_rr, P_pp, P_pr = ekf.P[ROT, ROT], ekf.P[POS, POS], ekf.P[POS, ROT]
    # p_hat - p = xi_p + xi_R x p, to first order.
    J = -skew(pos_w)
    pr = P_pr + product(J, P_rr)
    pp = P_pp + product(J, P_pr.transpose(0, 1)) + product(pr, J.transpose(0, 1))
    pose_cov = torch.cat([torch.cat([pp, pr], 1), torch.cat([pr.transpose(0, 1), P_rr], 1)])
    pose_cov.diagonal(dim1=0, dim2=1)[:, 3:5] += MOUNTING_STD**2
    of_pose = pose_cov.diagonal(dim1=0, dim2=1)  # (n, 6)
    of_pose.copy_(torch.maximum(of_pose, shown.pose_least.T))
    vel_cov = product(R_wb.transpose(0, 1), product(ekf.P[VEL, VEL], R_wb))
    variances = vel_cov.diagonal(dim1=0, dim2=1)  # (n, 3)
    variances.copy_(torch.maximum(variances, shown.velocity_least.T) + shown.velocity_more.T)
    vel_b = turn_back(R_wb, vel_w)
    found = {
        "R_wb": R_wb, "vel_w": vel_w, "pos_w": pos_w, "vel_b": vel_b, "vel_cov": vel_cov, "pose_cov": pose_cov,
        "ang_vel_b": w_b, "gyro_bias": ekf.gyro_bias, "accel_bias": ekf.accel_bias,
    }  # fmt: skip
    started, diverged = flags
    return BatchState(**{k: robots_first(x).to(dtype) for k, x in found.items()}, started=started, diverged=diverged)


def imu_state(
    R_wb: Tensor, vel_w: Tensor, pos_w: Tensor, gyro: Tensor, R_bi: Tensor, p_bi: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """From base_link to the IMU: its orientation, velocity and position."""
    lever_b = cross(turn(R_bi, gyro), p_bi)
    return product(R_wb, R_bi), vel_w + turn(R_wb, lever_b), pos_w + turn(R_wb, p_bi)


def level_rotation(accel_b: Tensor) -> Tensor:
    """Orientations R_wb (3, 3, n) with roll and pitch of specific forces in base axes (3, n), heading zero."""
    fx, fy, fz = accel_b
    roll, pitch = torch.atan2(fy, fz), torch.atan2(-fx, torch.hypot(fy, fz))
    cr, sr, cp, sp = torch.cos(roll), torch.sin(roll), torch.cos(pitch), torch.sin(pitch)
    rows = [cp, sp * sr, sp * cr, torch.zeros_like(cr), cr, -sr, -sp, cp * sr, cp * cr]
    return unflatten(torch.stack(rows), 0, (3, 3))


def leg_variances(log_std: Tensor, foot_accel: Tensor, inflation: float, delay_std: float) -> Tensor:
    """Variances of the measurement of each leg and axis: the network's, inflated, plus what an unknown latency adds."""
    return inflation**2 * torch.exp(2.0 * log_std) + torch.square(delay_std / LEG_INSTANT * foot_accel)


def gate_inflation(innovation: Tensor, variance: Tensor, guard: float, axes: int = -1) -> Tensor:
    """By how much the gate inflates the variance of each leg: 1 for one whose innovation is consistent.

    The mean over `axes`, the dimension of x, y and z, is of size 1 in the result.
    """
    nis = torch.square(innovation) / variance
    return torch.clamp(nis.mean(axes, keepdim=True) / guard**2, min=1.0)


def robots_first(x: Tensor) -> Tensor:
    """(..., n) as (n, ...)."""
    return x.movedim(-1, 0).contiguous()


def constant(values: Array, dtype: torch.dtype) -> Tensor:
    """A tensor of numbers of the robot or of a network."""
    return torch.from_numpy(values.copy()).to(dtype)
