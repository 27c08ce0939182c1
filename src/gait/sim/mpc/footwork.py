"""Footwork, compiled: when legs lift off and touch down, where they land, where the ground is, and the joint targets.

A joint target is the wanted motion of a leg and the torque it takes, as one position for the drive.
"""

from __future__ import annotations

import math

import numpy as np

from gait.arrays import Array
from gait.sim import kernels
from gait.sim.kernels import Legs, about_z, compiled, rotate, transform
from gait.sim.mpc.walk_state import Pattern, Swing, Tuning, WalkReading, WalkState

_EPS = 0.004
"""Seconds between the poses from which velocities and accelerations of the joints are taken."""


@compiled
def observe(legs: Legs, reading: WalkReading, tuning: Tuning, pattern: Pattern, wanted: Array, s: WalkState) -> float:
    """Update the state of body, feet and ground.

    Args:
        legs: of the robot as it is described.
        reading: of this step.
        tuning: settings.
        pattern: of the gait.
        wanted: commanded forward, sideways and yaw velocity.
        s: updated.

    Returns:
        Speed of the fastest foot that should stand still, m/s.
    """
    find_feet(legs, reading.q, reading.quat, s)
    slip = slip_speed(reading, s)
    step_phases(pattern, s)
    track_ground(tuning.ground_rate, s)
    yaw = math.atan2(s.R[1, 0], s.R[0, 0])
    follow_command(wanted, tuning, yaw, s)
    footholds(pattern.duty * pattern.period, tuning.foot_gain, yaw, reading.vel_w, s)
    return slip


@compiled
def find_feet(legs: Legs, q: Array, quat: Array, s: WalkState) -> None:
    """Orientation, feet in the base frame and in the odometry frame, and the leg Jacobians."""
    s.R[:] = kernels.rotation_from_quat(quat)
    kernels.feet_of(legs, q, s.feet_b, s.jac)
    for leg in range(q.shape[0]):
        s.feet_w[leg] = transform(s.R, s.pos, s.feet_b[leg])


@compiled
def slip_speed(reading: WalkReading, s: WalkState) -> float:
    """Highest horizontal speed in m/s of the feet that should stand still, by the robot's own sensors.

    Feet that have just landed or are about to leave do not count.
    """
    most = 0.0
    for leg in range(s.stance.shape[0]):
        if s.stance[leg] == 0 or s.progress[leg] < 0.15 or s.progress[leg] > 0.85:
            continue
        moving = kernels.foot_velocity(s.jac[leg], reading.dq[leg], reading.omega_b, s.feet_b[leg])
        slide = transform(s.R, reading.vel_w, moving)
        most = max(most, math.sqrt(slide[0] * slide[0] + slide[1] * slide[1]))
    return most


@compiled
def step_phases(pattern: Pattern, s: WalkState) -> None:
    """Let legs lift off and touch down as their phases say.

    A leg whose swing would have little time left (the pattern changed under it) stays down for another cycle.
    """
    duty = pattern.duty
    for leg in range(pattern.phases.shape[0]):
        phase = pattern.phases[leg]
        if s.stance[leg] == 1:
            if duty < phase < duty + 0.35 * (1.0 - duty):
                s.stance[leg] = 0
                s.lifted[leg] = phase
                s.start[leg] = s.target[leg] = s.feet_w[leg]
        elif phase < s.lifted[leg] - 1e-9:
            s.stance[leg] = 1
            s.anchor[leg] = s.feet_w[leg]
        if s.stance[leg] == 1:
            s.progress[leg] = min(phase / duty, 1.0)
            # The foot may still settle at first; later its place is the ground's.
            if s.progress[leg] < 0.3:
                s.anchor[leg] = s.feet_w[leg]
        else:
            s.swing_time[leg] = max((1.0 - s.lifted[leg]) * pattern.period, 0.05)
            s.progress[leg] = (phase - s.lifted[leg]) / (1.0 - s.lifted[leg])


@compiled
def track_ground(rate: float, s: WalkState) -> None:
    """Correct the height by the standing feet, and lay the ground plane through the last places of all feet.

    `rate` is the share of the way to the new plane in this step.
    """
    legs = s.stance.shape[0]
    count, error, mean = 0, 0.0, np.zeros(3)
    for leg in range(legs):
        # A foot that has just landed may still settle; later its place is the ground's.
        if s.stance[leg] == 1 and s.progress[leg] >= 0.3:
            count += 1
            error += s.anchor[leg, 2] - s.feet_w[leg, 2]
        mean += s.anchor[leg] / legs
    if count > 0:
        error *= 0.2 / count
        s.pos[2] += error
        s.feet_w[:, 2] += error
    xx, xy, yy, xz, yz = 1e-3, 0.0, 1e-3, 0.0, 0.0
    for leg in range(legs):
        x, y, z = s.anchor[leg, 0] - mean[0], s.anchor[leg, 1] - mean[1], s.anchor[leg, 2] - mean[2]
        xx += x * x
        xy += x * y
        yy += y * y
        xz += x * z
        yz += y * z
    det = xx * yy - xy * xy
    sx, sy = (yy * xz - xy * yz) / det, (xx * yz - xy * xz) / det
    s.slope[0] += rate * (min(max(sx, -0.4), 0.4) - s.slope[0])
    s.slope[1] += rate * (min(max(sy, -0.4), 0.4) - s.slope[1])
    s.ground[:] += rate * (mean - s.ground)


@compiled
def follow_command(wanted: Array, tuning: Tuning, yaw: float, s: WalkState) -> None:
    """Follow the command at a bounded acceleration; the wanted pose stays on a leash around the real one."""
    dt, leash = tuning.dt, tuning.leash
    for i in range(3):
        step = (tuning.acceleration if i < 2 else tuning.yaw_acceleration) * dt
        s.following[i] += min(max(wanted[i] - s.following[i], -step), step)
    s.vel_cmd[0], s.vel_cmd[1] = about_z(yaw, s.following[0], s.following[1])
    gap = s.pose[:2] + s.vel_cmd[:2] * dt - s.pos[:2]
    far = math.sqrt(gap[0] * gap[0] + gap[1] * gap[1])
    shrink = leash / far if far > leash else 1.0
    s.pose[:2] = s.pos[:2] + shrink * gap
    turn = (s.pose[2] + s.following[2] * dt - yaw + math.pi) % (2.0 * math.pi) - math.pi
    s.pose[2] = yaw + min(max(turn, -0.3), 0.3)


@compiled
def footholds(stance_time: float, gain: float, yaw: float, vel: Array, s: WalkState) -> None:
    """Raibert's rule: land under the hip, half a stance ahead, plus `gain` seconds of the velocity error."""
    for leg in range(s.stance.shape[0]):
        if s.stance[leg] == 1 or s.progress[leg] > 0.9:
            continue
        left = (1.0 - s.progress[leg]) * s.swing_time[leg]
        heading = yaw + s.following[2] * (left + 0.5 * stance_time)
        hip = about_z(heading, s.hips[leg, 0], s.hips[leg, 1])
        for i in range(2):
            ahead = 0.5 * stance_time * vel[i] + gain * (vel[i] - s.vel_cmd[i])
            s.target[leg, i] = s.pos[i] + vel[i] * left + hip[i] + min(max(ahead, -0.22), 0.22)
        rise = s.slope[0] * (s.target[leg, 0] - s.ground[0]) + s.slope[1] * (s.target[leg, 1] - s.ground[1])
        s.target[leg, 2] = s.ground[2] + rise - 0.004


@compiled
def swing_point(progress: float, start: Array, target: Array, swing: Swing, way: Array) -> Array:
    """Place of a swinging foot (3,), `swing.lift` metres up half way.

    At both ends it has a share of the body's velocity, at which it would go the `way` (3,) during the swing.
    """
    s = min(max(progress, 0.0), 1.0)
    blend = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)
    bump = 4.0 * s * (1.0 - s)
    out = start + (target - start) * blend
    if swing.carried != 0.0:
        # Zero at both ends with a slope of 1 there, without curvature.
        out += swing.carried * (s - 10.0 * s**3 + 15.0 * s**4 - 6.0 * s**5) * way
    out[2] += swing.lift * bump * (bump + swing.abrupt * (1.0 - bump))
    return out


@compiled
def turned(R: Array, omega: Array, time: float) -> Array:
    """R exp(omega time): the orientation after turning at a constant body rate."""
    return kernels.product(R, kernels.so3_exp(omega * time))


@compiled
def joint_targets(legs: Legs, reading: WalkReading, tuning: Tuning, swing: Swing, s: WalkState, q_des: Array) -> None:
    """Joint targets (L, 3) to hold for the coming control period, written into `q_des`.

    A target is wanted motion plus wanted torque: q_des = q_ref + (tau + kd dq_ref) / kp. The reference is taken at the
    middle of the hold, where the body will be by then, so that a slow control rate does not drag the legs behind.
    """
    # Base poses at the middle of the hold and shortly before and after, then the present one.
    times = np.array([0.5 * tuning.dt - _EPS, 0.5 * tuning.dt, 0.5 * tuning.dt + _EPS, 0.0])
    Rs, ps = np.empty((4, 3, 3)), np.empty((4, 3))
    for k in range(4):
        Rs[k] = turned(s.R, reading.omega_b, times[k])
        ps[k] = s.pos + reading.vel_w * times[k] + 0.5 * s.acc * times[k] * times[k]
    # A falling body does not feel its weight, nor do its legs.
    gravity = -rotate(s.R.T, s.acc + np.array([0.0, 0.0, 9.81]))
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
                foot_w = swing_point(at, s.start[leg], s.target[leg], swing, s.vel_cmd * s.swing_time[leg])
            kernels.leg_ik(legs, leg, rotate(Rs[k].T, foot_w - ps[k]), qs[k])
        wanted = (qs[2] - qs[0]) / (2.0 * _EPS)
        # A standing leg hardly accelerates: it carries its weight and pushes; a swinging one has its dynamics.
        if standing:
            tau = kernels.leg_torque(legs, leg, q, still, still, gravity)
            force_b, jac = rotate(s.R.T, s.forces[leg]), s.jac[leg]
            for j in range(3):
                tau -= jac[j] * force_b[j]
        else:
            bend = (qs[2] - 2.0 * qs[1] + qs[0]) / (_EPS * _EPS)
            tau = kernels.leg_torque(legs, leg, q, dq, bend, gravity)
            tau += tuning.extra_kp * (qs[3] - q) + tuning.extra_kd * (wanted - dq)
        q_des[leg] = qs[1] + (tau + tuning.kd * wanted) / tuning.kp
