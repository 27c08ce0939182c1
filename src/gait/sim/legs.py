"""Legs, compiled: phases, footholds, swing trajectories and the joint targets that carry the stance torques.

Positions are in an odometry frame with the world's axes; the controller keeps it itself. `stance` is 1 where a leg
stands. Arrays over legs come first: (L, 3).
"""

from __future__ import annotations

import math

import numpy as np

from gait._compile import compiled
from gait.arrays import AnyArray, Array
from gait.robots.kinematics import fk_jacobian, foot_velocity, leg_fk, leg_gravity, leg_ik

_A1, _A2, _A3 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"
_A4, _I1 = "float64[:, :, :, ::1]", "int64[::1]"


@compiled(f"void({_A1}, {_A2})")
def rotation(quat: Array, out: Array) -> None:
    """Rotation matrix (3, 3) of a unit quaternion wxyz."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    out[0, 0], out[0, 1], out[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    out[1, 0], out[1, 1], out[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    out[2, 0], out[2, 1], out[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@compiled(f"void({_A2}, {_A1}, float64, {_A2})")
def turned(R: Array, omega: Array, time: float, out: Array) -> None:
    """R exp(omega time): the orientation after turning at a constant body rate."""
    angle = math.sqrt(omega[0] ** 2 + omega[1] ** 2 + omega[2] ** 2) * time
    a, b = time, 0.5 * time * time
    if abs(angle) > 1e-6:
        a, b = math.sin(angle) / angle * time, (1.0 - math.cos(angle)) / (angle * angle) * time * time
    x, y, z = omega[0], omega[1], omega[2]
    E = np.empty((3, 3))
    E[0, 0], E[0, 1], E[0, 2] = 1 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y
    E[1, 0], E[1, 1], E[1, 2] = b * x * y + a * z, 1 - b * (x * x + z * z), b * y * z - a * x
    E[2, 0], E[2, 1], E[2, 2] = b * x * z - a * y, b * y * z + a * x, 1 - b * (x * x + y * y)
    for i in range(3):
        for j in range(3):
            out[i, j] = R[i, 0] * E[0, j] + R[i, 1] * E[1, j] + R[i, 2] * E[2, j]


@compiled(f"void({_A3}, {_A2}, {_A3}, {_A4}, {_A1}, int64, {_A1}, {_A2})")
def leg_inertia(
    offsets: Array, signs: Array, inertial: Array, inertias: Array, armature: Array, leg: int, q: Array, out: Array
) -> None:
    """Mass matrix (3, 3) of one leg on a base that does not move.

    Args:
        offsets: link offsets (L, 4, 3).
        signs: joint directions (L, 3).
        inertial: mass and centre of mass of each link (L, 3, 4).
        inertias: inertia of each link about its centre of mass (L, 3, 3, 3).
        armature: rotor inertia of each joint (J,).
        leg: which leg.
        q: joint angles (3,).
        out: output.
    """
    t = signs[leg, 1] * q[1]
    c = t + signs[leg, 2] * q[2]
    # In the hip link's frame the hip axis is x and both others are y: no need to turn by the hip angle.
    origin = np.zeros((3, 3))
    origin[1] = offsets[leg, 1]
    origin[2] = origin[1]
    origin[2, 0] += math.cos(t) * offsets[leg, 2, 0] + math.sin(t) * offsets[leg, 2, 2]
    origin[2, 1] += offsets[leg, 2, 1]
    origin[2, 2] += -math.sin(t) * offsets[leg, 2, 0] + math.cos(t) * offsets[leg, 2, 2]
    out[:] = 0.0
    J = np.zeros((3, 3))
    for k in range(3):
        angle = 0.0
        if k == 1:
            angle = t
        elif k == 2:
            angle = c
        ca, sa = math.cos(angle), math.sin(angle)
        m, x, y, z = inertial[leg, k, 0], inertial[leg, k, 1], inertial[leg, k, 2], inertial[leg, k, 3]
        px, py, pz = origin[k, 0] + ca * x + sa * z, origin[k, 1] + y, origin[k, 2] - sa * x + ca * z
        own = inertias[leg, k]
        xx = ca * (ca * own[0, 0] + sa * own[2, 0]) + sa * (ca * own[0, 2] + sa * own[2, 2])
        xy = ca * own[0, 1] + sa * own[2, 1]
        yy = own[1, 1]
        J[:] = 0.0
        J[1, 0], J[2, 0] = -signs[leg, 0] * pz, signs[leg, 0] * py
        for i in range(1, k + 1):
            J[0, i], J[2, i] = signs[leg, i] * (pz - origin[i, 2]), -signs[leg, i] * (px - origin[i, 0])
        for i in range(k + 1):
            for j in range(k + 1):
                value = m * (J[0, i] * J[0, j] + J[1, i] * J[1, j] + J[2, i] * J[2, j])
                turn = xx if i == 0 and j == 0 else (yy if i > 0 and j > 0 else xy)
                out[i, j] += value + signs[leg, i] * signs[leg, j] * turn
    for i in range(3):
        out[i, i] += armature[3 * leg + i]


@compiled(f"void({_A3}, {_A2}, {_A3}, {_A4}, {_A1}, int64, {_A1}, {_A1}, {_A1}, {_A2}, {_A1})")
def leg_dynamics(
    offsets: Array,
    signs: Array,
    inertial: Array,
    inertias: Array,
    armature: Array,
    leg: int,
    q: Array,
    dq: Array,
    ddq: Array,
    M: Array,
    tau: Array,
) -> None:
    """Add to `tau` the torques that accelerate a leg: M ddq, and what its own swing asks for (centrifugal, Coriolis).

    The velocity terms come from differences of the mass matrix, which does not depend on the hip angle.
    """
    eps = 1e-5
    leg_inertia(offsets, signs, inertial, inertias, armature, leg, q, M)
    slopes = np.zeros((3, 3, 3))
    moved = np.empty(3)
    for k in range(1, 3):
        moved[:] = q
        moved[k] += eps
        leg_inertia(offsets, signs, inertial, inertias, armature, leg, moved, slopes[k])
        slopes[k] = (slopes[k] - M) / eps
    for i in range(3):
        for j in range(3):
            tau[i] += M[i, j] * ddq[j]
            for k in range(3):
                tau[i] += (slopes[k, i, j] - 0.5 * slopes[i, j, k]) * dq[j] * dq[k]


@compiled(f"void(float64, {_A1}, {_A1}, float64, {_A1})")
def swing_point(s: float, start: Array, target: Array, lift: float, out: Array) -> None:
    """Place of a swinging foot at progress `s`: at rest on the ground at both ends, `lift` metres up half way."""
    s = min(max(s, 0.0), 1.0)
    blend = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)
    bump = 4.0 * s * (1.0 - s)
    for i in range(3):
        out[i] = start[i] + (target[i] - start[i]) * blend
    out[2] += lift * bump * bump


@compiled(f"void({_A1}, float64, {_I1}, {_A1}, float64, {_A2}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1})")
def step_phases(
    phases: Array,
    duty: float,
    stance: AnyArray,
    lifted: Array,
    period: float,
    feet_w: Array,
    start: Array,
    anchor: Array,
    target: Array,
    progress: Array,
    swing_time: Array,
) -> None:
    """Let legs lift off and touch down as their phases say.

    A leg whose swing would have little time left (the pattern changed under it) stays down for another cycle.

    Args:
        phases: of each leg in [0, 1).
        duty: share of the cycle that a leg stands.
        stance: whether each leg stands; updated.
        lifted: phase at which each leg left the ground; updated.
        period: seconds of a cycle.
        feet_w: where the feet are (L, 3).
        start: where each swing began (L, 3); updated.
        anchor: where each foot stands (L, 3); updated.
        target: where each swing ends (L, 3); set to the present place at lift-off.
        progress: share of stance or swing that has passed (L,); updated.
        swing_time: duration of each leg's swing (L,); updated.
    """
    for leg in range(phases.shape[0]):
        phase = phases[leg]
        if stance[leg] == 1:
            if duty < phase < duty + 0.35 * (1.0 - duty):
                stance[leg] = 0
                lifted[leg] = phase
                start[leg] = feet_w[leg]
                target[leg] = feet_w[leg]
        elif phase < lifted[leg] - 1e-9:
            stance[leg] = 1
            anchor[leg] = feet_w[leg]
        if stance[leg] == 1:
            progress[leg] = min(phase / duty, 1.0)
            # The foot may still settle at first; later its place is the ground's.
            if progress[leg] < 0.3:
                anchor[leg] = feet_w[leg]
        else:
            swing_time[leg] = max((1.0 - lifted[leg]) * period, 0.05)
            progress[leg] = (phase - lifted[leg]) / (1.0 - lifted[leg])


@compiled(
    f"void({_I1}, {_A1}, {_A1}, float64, {_A1}, {_A1}, {_A1}, float64, float64, {_A2}, {_A1}, {_A1}, float64, {_A2})"
)
def footholds(
    stance: AnyArray,
    progress: Array,
    swing_time: Array,
    stance_time: float,
    pos: Array,
    vel: Array,
    vel_cmd: Array,
    yaw: float,
    yaw_rate: float,
    hips: Array,
    ground: Array,
    slope: Array,
    gain: float,
    target: Array,
) -> None:
    """Raibert's rule: land under the hip, half a stance ahead, plus a share of the velocity error.

    Args:
        stance: whether each leg stands.
        progress: of each swing.
        swing_time: seconds of each swing.
        stance_time: seconds of a stance.
        pos: base position.
        vel: its velocity.
        vel_cmd: its wanted velocity.
        yaw: heading.
        yaw_rate: wanted turning rate.
        hips: neutral foot places below the base in the heading frame (L, 2).
        ground: a point of the ground plane (3,).
        slope: of that plane along x and y (2,).
        gain: seconds by which a velocity error moves the foot.
        target: output (L, 3).
    """
    for leg in range(stance.shape[0]):
        if stance[leg] == 1 or progress[leg] > 0.9:
            continue
        left = (1.0 - progress[leg]) * swing_time[leg]
        heading = yaw + yaw_rate * (left + 0.5 * stance_time)
        c, s = math.cos(heading), math.sin(heading)
        for i in range(2):
            hip = c * hips[leg, 0] - s * hips[leg, 1] if i == 0 else s * hips[leg, 0] + c * hips[leg, 1]
            ahead = 0.5 * stance_time * vel[i] + gain * (vel[i] - vel_cmd[i])
            ahead = min(max(ahead, -0.22), 0.22)
            target[leg, i] = pos[i] + vel[i] * left + hip + ahead
        rise = slope[0] * (target[leg, 0] - ground[0]) + slope[1] * (target[leg, 1] - ground[1])
        target[leg, 2] = ground[2] + rise - 0.004


@compiled(
    f"void({_A3}, {_A2}, float64, {_A3}, {_A4}, {_A1}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, {_A1}, {_I1}, {_A1},"
    f" {_A1}, {_A2}, {_A2}, {_A2}, float64, {_A2}, {_A1}, {_A2})"
)
def joint_targets(
    offsets: Array,
    signs: Array,
    knee_sign: float,
    inertial: Array,
    inertias: Array,
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
        inertial: mass and centre of mass of each link (L, 3, 4).
        inertias: inertia of each link (L, 3, 3, 3).
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
    jac, M, qs = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    tau, now = np.empty(3), np.empty(3)
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
        leg_gravity(offsets, signs, inertial, leg, q[leg], gravity, tau)
        for i in range(3):
            rate = (qs[2, i] - qs[0, i]) / (2.0 * eps)
            if standing:
                for j in range(3):
                    tau[i] -= jac[j, i] * force_b[j]
            else:
                tau[i] += extra_kp * (now[i] - q[leg, i]) + extra_kd * (rate - dq[leg, i])
            q_des[leg, i] = qs[1, i] + kd * rate / kp
        if not standing:
            for i in range(3):
                now[i] = (qs[2, i] - 2.0 * qs[1, i] + qs[0, i]) / (eps * eps)
            leg_dynamics(offsets, signs, inertial, inertias, armature, leg, q[leg], dq[leg], now, M, tau)
        for i in range(3):
            q_des[leg, i] += tau[i] / kp


@compiled(f"float64({_I1}, {_A1}, {_A2}, {_A2}, {_A3}, {_A2}, {_A1}, {_A1})")
def slip_speed(
    stance: AnyArray, progress: Array, dq: Array, R: Array, jac: Array, feet_b: Array, vel: Array, omega_b: Array
) -> float:
    """Highest horizontal speed in m/s of the feet that should stand still, as the robot itself can tell.

    Feet that have just landed or are about to leave do not count.
    """
    most = 0.0
    moving = np.empty(3)
    for leg in range(stance.shape[0]):
        if stance[leg] == 0 or progress[leg] < 0.15 or progress[leg] > 0.85:
            continue
        foot_velocity(jac[leg], dq[leg], omega_b, feet_b[leg], moving)
        x = vel[0] + R[0, 0] * moving[0] + R[0, 1] * moving[1] + R[0, 2] * moving[2]
        y = vel[1] + R[1, 0] * moving[0] + R[1, 1] * moving[1] + R[1, 2] * moving[2]
        most = max(most, math.sqrt(x * x + y * y))
    return most


@compiled(f"void({_A3}, {_A2}, {_A2}, {_A2}, {_A1}, {_A2}, {_A3}, {_A2})")
def feet_in_world(
    offsets: Array, signs: Array, q: Array, R: Array, pos: Array, feet_b: Array, jac: Array, feet_w: Array
) -> None:
    """Feet (L, 3) in the base frame and in the odometry frame, with the leg Jacobians."""
    fk_jacobian(offsets, signs, q, feet_b, jac)
    for leg in range(q.shape[0]):
        for i in range(3):
            feet_w[leg, i] = pos[i]
            for j in range(3):
                feet_w[leg, i] += R[i, j] * feet_b[leg, j]
