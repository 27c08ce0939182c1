"""Joint targets, compiled: the wanted motion of every leg and the torque it takes, as one position for the drive."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.sim.compiled import compiled
from gait.sim.leg_kernels import Legs, leg_ik, leg_torque
from gait.sim.mpc.walk_state import Tuning, WalkReading, WalkState
from gait.sim.rotation_kernels import product, rotate_inverse, so3_exp, transform

_EPS = 0.004
"""Seconds between the poses from which velocities and accelerations of the joints are taken."""


@compiled
def swing_point(progress: float, start: Array, target: Array, lift: float) -> Array:
    """Place of a swinging foot (3,): at rest on the ground at both ends, `lift` metres up half way."""
    s = min(max(progress, 0.0), 1.0)
    blend = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)
    bump = 4.0 * s * (1.0 - s)
    out = start + (target - start) * blend
    out[2] += lift * bump * bump
    return out


@compiled
def turned(R: Array, omega: Array, time: float) -> Array:
    """R exp(omega time): the orientation after turning at a constant body rate."""
    return product(R, so3_exp(omega * time))


@compiled
def joint_targets(legs: Legs, reading: WalkReading, tuning: Tuning, lift: float, s: WalkState, q_des: Array) -> None:
    """Joint targets (L, 3) to hold for the coming control period, written into `q_des`.

    A target is wanted motion plus wanted torque: q_des = q_ref + (tau + kd dq_ref) / kp. The reference is taken at the
    middle of the hold, where the body will be by then, so that a slow control rate does not drag the legs behind.
    `lift` is how high feet are lifted.
    """
    # Base poses at the middle of the hold and shortly before and after, then the present one.
    times = np.array([0.5 * tuning.dt - _EPS, 0.5 * tuning.dt, 0.5 * tuning.dt + _EPS, 0.0])
    Rs, ps = np.empty((4, 3, 3)), np.empty((4, 3))
    for k in range(3):
        Rs[k] = turned(s.R, reading.omega_b, times[k])
        ps[k] = s.pos + reading.vel_w * times[k] + 0.5 * s.acc * times[k] * times[k]
    Rs[3], ps[3] = s.R, s.pos
    # A falling body does not feel its weight, nor do its legs.
    gravity = -rotate_inverse(s.R, s.acc + np.array([0.0, 0.0, 9.81]))
    qs, still = np.empty((4, 3)), np.zeros(3)
    for leg in range(q_des.shape[0]):
        q, dq, standing = reading.q[leg], reading.dq[leg], s.stance[leg] == 1
        foot_w = transform(s.R, s.pos, s.feet_b[leg])
        if standing:
            # Holding on to the place where it stood slows a slipping foot; the planned force acts along the vertical.
            s.grip[leg, :2] += tuning.release * (foot_w[:2] - s.grip[leg, :2])
            foot_w[:2] = s.grip[leg, :2]
        else:
            s.grip[leg] = foot_w
        for k in range(4):
            if not standing:
                at = s.progress[leg] + times[k] / s.swing_time[leg]
                foot_w = swing_point(at, s.start[leg], s.target[leg], lift)
            leg_ik(legs, leg, rotate_inverse(Rs[k], foot_w - ps[k]), qs[k])
        wanted = (qs[2] - qs[0]) / (2.0 * _EPS)
        # A standing leg hardly accelerates: it carries its weight and pushes; a swinging one has its dynamics.
        if standing:
            tau = leg_torque(legs, leg, q, still, still, gravity)
            force_b, jac = rotate_inverse(s.R, s.forces[leg]), s.jac[leg]
            for j in range(3):
                tau -= jac[j] * force_b[j]
        else:
            bend = (qs[2] - 2.0 * qs[1] + qs[0]) / (_EPS * _EPS)
            tau = leg_torque(legs, leg, q, dq, bend, gravity)
            tau += tuning.extra_kp * (qs[3] - q) + tuning.extra_kd * (wanted - dq)
        q_des[leg] = qs[1] + (tau + tuning.kd * wanted) / tuning.kp
