"""Joint targets, compiled: the wanted motion of every leg and the torque it takes, as one position for the drive."""

from __future__ import annotations

import numpy as np

from gait import lie
from gait._compile import compiled
from gait.arrays import AnyArray, Array
from gait.robot.dynamics import leg_torque
from gait.robot.kinematics import leg_fk, leg_ik
from gait.sim.footwork import swing_point

_A1, _A2, _A3, _I1 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]", "int64[::1]"


@compiled(f"void({_A2}, {_A1}, float64, {_A2})")
def turned(R: Array, omega: Array, time: float, out: Array) -> None:
    """R exp(omega time): the orientation after turning at a constant body rate."""
    turn = lie.so3_exp(omega * time)
    for i in range(3):
        for j in range(3):
            out[i, j] = R[i, 0] * turn[0, j] + R[i, 1] * turn[1, j] + R[i, 2] * turn[2, j]


@compiled(
    f"void({_A3}, {_A2}, float64, {_A3}, {_A1}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, {_A1}, {_I1}, {_A1},"
    f" {_A1}, {_A2}, {_A2}, {_A2}, float64, {_A2}, {_A1}, {_A2})"
)
def joint_targets(
    offsets: Array,
    signs: Array,
    knee_sign: float,
    inertial: Array,
    armature: Array,
    q: Array,
    dq: Array,
    R: Array,
    pos: Array,
    vel: Array,
    omega_b: Array,
    acc: Array,
    stance: AnyArray,
    progress: Array,
    swing_time: Array,
    start: Array,
    target: Array,
    grip: Array,
    lift: float,
    forces: Array,
    gains: Array,
    q_des: Array,
) -> None:
    """Joint targets (L, 3) to hold for the coming control period.

    A target is wanted motion plus wanted torque: q_des = q_ref + (tau + kd dq_ref) / kp. The reference is taken at the
    middle of the hold, where the body will be by then, so that a slow control rate does not drag the legs behind.

    Args:
        offsets: link offsets (L, 4, 3).
        signs: joint directions (L, 3).
        knee_sign: which way the knees bend.
        inertial: mass properties of each link, as in `Robot.leg_inertial` (L, 3, 10).
        armature: rotor inertias (J,).
        q: joint angles (L, 3).
        dq: joint velocities (L, 3).
        R: orientation of the base.
        pos: its position.
        vel: its velocity.
        omega_b: its angular velocity in its own frame.
        acc: its planned acceleration.
        stance: whether each leg stands.
        progress: of each swing.
        swing_time: seconds of each swing.
        start: where each swing began.
        target: where it ends.
        grip: where each standing foot should stay; drifts after a foot that slips.
        lift: how high feet are lifted.
        forces: of the ground on each foot, in the world frame (L, 3).
        gains: kp, kd, hold time, extra position gain, extra velocity gain of swinging legs, and the share of its
            way to the foot that `grip` goes in a step.
        q_des: output (L, 3).
    """
    kp, kd, hold, extra_kp, extra_kd = gains[0], gains[1], gains[2], gains[3], gains[4]
    eps = 0.004
    legs = q.shape[0]
    # Base poses at the middle of the hold and shortly before and after.
    Rs, ps = np.empty((3, 3, 3)), np.empty((3, 3))
    for k in range(3):
        time = 0.5 * hold + eps * (k - 1)
        turned(R, omega_b, time, Rs[k])
        for i in range(3):
            ps[k, i] = pos[i] + vel[i] * time + 0.5 * acc[i] * time * time
    gravity, force_b = np.empty(3), np.empty(3)
    for i in range(3):
        # A falling body does not feel its weight, nor do its legs.
        gravity[i] = -(R[0, i] * acc[0] + R[1, i] * acc[1] + R[2, i] * (acc[2] + 9.81))
    foot_w, foot_b, anchor = np.empty(3), np.empty(3), np.empty(3)
    jac, qs = np.empty((3, 3)), np.empty((3, 3))
    tau, now, rate, bend = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for leg in range(legs):
        leg_fk(offsets, signs, leg, q[leg], foot_b, jac)
        for i in range(3):
            anchor[i] = pos[i] + R[i, 0] * foot_b[0] + R[i, 1] * foot_b[1] + R[i, 2] * foot_b[2]
            force_b[i] = R[0, i] * forces[leg, 0] + R[1, i] * forces[leg, 1] + R[2, i] * forces[leg, 2]
        standing = stance[leg] == 1
        if standing:
            # Holding on to the place where it stood slows a slipping foot; the planned force acts along the vertical.
            for i in range(2):
                grip[leg, i] += gains[5] * (anchor[i] - grip[leg, i])
                anchor[i] = grip[leg, i]
        else:
            grip[leg, :] = anchor
        for k in range(4):
            at = k if k < 3 else 1
            if standing:
                foot_w[:] = anchor
            else:
                time = 0.5 * hold + eps * (k - 1) if k < 3 else 0.0
                swing_point(progress[leg] + time / swing_time[leg], start[leg], target[leg], lift, foot_w)
            for i in range(3):
                foot_b[i] = 0.0
                for j in range(3):
                    if k < 3:
                        foot_b[i] += Rs[at, j, i] * (foot_w[j] - ps[at, j])
                    else:
                        foot_b[i] += R[j, i] * (foot_w[j] - pos[j])
            if k < 3:
                leg_ik(offsets, signs, knee_sign, leg, foot_b, qs[k])
            else:
                leg_ik(offsets, signs, knee_sign, leg, foot_b, now)
        for i in range(3):
            # A standing leg hardly accelerates: it carries its weight and pushes; a swinging one has its dynamics.
            rate[i] = 0.0 if standing else dq[leg, i]
            bend[i] = 0.0 if standing else (qs[2, i] - 2.0 * qs[1, i] + qs[0, i]) / (eps * eps)
        leg_torque(offsets, signs, inertial, armature, leg, q[leg], rate, bend, gravity, tau)
        for i in range(3):
            wanted = (qs[2, i] - qs[0, i]) / (2.0 * eps)
            if standing:
                for j in range(3):
                    tau[i] -= jac[j, i] * force_b[j]
            else:
                tau[i] += extra_kp * (now[i] - q[leg, i]) + extra_kd * (wanted - dq[leg, i])
            q_des[leg, i] = qs[1, i] + (tau[i] + kd * wanted) / kp
