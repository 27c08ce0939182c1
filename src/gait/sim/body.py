"""The body, compiled: where the ground is, what the command asks for, and what the force planner looks at."""

from __future__ import annotations

import math

import numpy as np

from gait._compile import compiled
from gait.arrays import AnyArray, Array
from gait.sim.mpc import LEAST_SHARE

_A1, _A2, _A3, _I1 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]", "int64[::1]"


@compiled(f"void({_I1}, {_A1}, {_A2}, float64, {_A2}, {_A1}, {_A1}, {_A1})")
def track_ground(
    stance: AnyArray,
    progress: Array,
    anchor: Array,
    rate: float,
    feet_w: Array,
    pos: Array,
    ground: Array,
    slope: Array,
) -> None:
    """Correct the height by the standing feet, and lay the ground plane through the last places of all feet.

    Args:
        stance: whether each leg stands.
        progress: of each stance.
        anchor: where each foot stood last (L, 3).
        rate: share of the way to the new plane in this step.
        feet_w: where the feet are; moved along with the body.
        pos: position of the base; corrected.
        ground: a point of the ground plane; updated.
        slope: of that plane along x and y; updated.
    """
    legs = stance.shape[0]
    count, error = 0, 0.0
    mean = np.zeros(3)
    for leg in range(legs):
        # A foot that has just landed may still settle; later its place is the ground's.
        if stance[leg] == 1 and progress[leg] >= 0.3:
            count += 1
            error += anchor[leg, 2] - feet_w[leg, 2]
        for i in range(3):
            mean[i] += anchor[leg, i] / legs
    if count > 0:
        error *= 0.2 / count
        pos[2] += error
        for leg in range(legs):
            feet_w[leg, 2] += error
    xx, xy, yy, xz, yz = 1e-3, 0.0, 1e-3, 0.0, 0.0
    for leg in range(legs):
        x, y, z = anchor[leg, 0] - mean[0], anchor[leg, 1] - mean[1], anchor[leg, 2] - mean[2]
        xx += x * x
        xy += x * y
        yy += y * y
        xz += x * z
        yz += y * z
    det = xx * yy - xy * xy
    sx, sy = (yy * xz - xy * yz) / det, (xx * yz - xy * xz) / det
    slope[0] += rate * (min(max(sx, -0.4), 0.4) - slope[0])
    slope[1] += rate * (min(max(sy, -0.4), 0.4) - slope[1])
    for i in range(3):
        ground[i] += rate * (mean[i] - ground[i])


@compiled(f"void({_A1}, {_A1}, {_A1}, float64, float64, {_A1}, {_A1}, {_A1})")
def follow_command(
    wanted: Array, limits: Array, pos: Array, yaw: float, dt: float, following: Array, pose: Array, vel_cmd: Array
) -> None:
    """Follow the command at a bounded acceleration; the wanted pose stays on a leash around the real one.

    Args:
        wanted: commanded forward, sideways and yaw velocity.
        limits: their accelerations (3,), then the leash in metres and in radians.
        pos: position of the base.
        yaw: heading.
        dt: seconds since the last call.
        following: the velocity that is followed now; updated.
        pose: wanted x, y and heading; updated.
        vel_cmd: output, the velocity followed in the world frame.
    """
    for i in range(3):
        step = limits[i] * dt
        following[i] += min(max(wanted[i] - following[i], -step), step)
    c, s = math.cos(yaw), math.sin(yaw)
    vel_cmd[0] = c * following[0] - s * following[1]
    vel_cmd[1] = s * following[0] + c * following[1]
    vel_cmd[2] = 0.0
    gap_x = pose[0] + vel_cmd[0] * dt - pos[0]
    gap_y = pose[1] + vel_cmd[1] * dt - pos[1]
    far = math.sqrt(gap_x * gap_x + gap_y * gap_y)
    shrink = limits[3] / far if far > limits[3] else 1.0
    pose[0], pose[1] = pos[0] + shrink * gap_x, pos[1] + shrink * gap_y
    turn = (pose[2] + following[2] * dt - yaw + math.pi) % (2.0 * math.pi) - math.pi
    pose[2] = yaw + min(max(turn, -limits[4]), limits[4])


@compiled(f"void({_A2}, {_A1}, {_A1}, {_A1}, {_A1}, {_A1}, {_A1}, float64, {_A1}, {_A1}, {_A1})")
def body_state(
    R: Array,
    pos: Array,
    vel: Array,
    omega_b: Array,
    com_b: Array,
    slope: Array,
    pose: Array,
    height: float,
    com_w: Array,
    state: Array,
    offset: Array,
) -> None:
    """The planner's view of the body in the heading frame, with the present place as origin.

    Args:
        R: orientation of the base.
        pos: its position.
        vel: its velocity.
        omega_b: its angular velocity in its own frame.
        com_b: centre of mass in the base frame.
        slope: of the ground along x and y.
        pose: wanted x, y and heading.
        height: wanted height of the base.
        com_w: output, centre of mass.
        state: output (12,).
        offset: output, what `preview` takes.
    """
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    arm, w, v = np.empty(3), np.empty(3), np.empty(3)
    for i in range(3):
        arm[i] = R[i, 0] * com_b[0] + R[i, 1] * com_b[1] + R[i, 2] * com_b[2]
        w[i] = R[i, 0] * omega_b[0] + R[i, 1] * omega_b[1] + R[i, 2] * omega_b[2]
        com_w[i] = pos[i] + arm[i]
    v[0] = vel[0] + w[1] * arm[2] - w[2] * arm[1]
    v[1] = vel[1] + w[2] * arm[0] - w[0] * arm[2]
    v[2] = vel[2] + w[0] * arm[1] - w[1] * arm[0]
    state[0], state[1], state[2] = math.atan2(R[2, 1], R[2, 2]), -math.asin(min(max(R[2, 0], -1.0), 1.0)), 0.0
    state[3], state[4], state[5] = 0.0, 0.0, com_w[2]
    state[6], state[7], state[8] = c * w[0] + s * w[1], -s * w[0] + c * w[1], w[2]
    state[9], state[10], state[11] = c * v[0] + s * v[1], -s * v[0] + c * v[1], v[2]
    offset[0], offset[1], offset[2] = pose[0] - pos[0], pose[1] - pos[1], height + com_b[2]
    offset[3], offset[4] = math.atan(-s * slope[0] + c * slope[1]), -math.atan(c * slope[0] + s * slope[1])
    offset[5] = pose[2] - yaw


@compiled(
    f"int64({_A1}, float64, float64, float64, {_I1}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, {_A1}, float64, float64,"
    f" {_A1}, {_A2}, {_A3}, {_A2})"
)
def preview(
    phases: Array,
    duty: float,
    period: float,
    dt: float,
    stance: AnyArray,
    feet_w: Array,
    target: Array,
    hips: Array,
    com_w: Array,
    vel_cmd: Array,
    ground: Array,
    slope: Array,
    yaw: float,
    yaw_rate: float,
    offset: Array,
    share: Array,
    arms: Array,
    reference: Array,
) -> int:
    """What the planner looks at: contact shares, lever arms and the reference over the horizon, in the heading frame.

    Args:
        phases: of each leg.
        duty: share of the cycle that a leg stands.
        period: seconds of a cycle.
        dt: seconds of a planning step.
        stance: whether each leg stands now.
        feet_w: where the feet are.
        target: where swinging feet will land.
        hips: neutral foot places in the heading frame (L, 2).
        com_w: centre of mass.
        vel_cmd: wanted velocity in the world frame.
        ground: a point of the ground plane.
        slope: of that plane.
        yaw: heading.
        yaw_rate: wanted turning rate.
        offset: wanted minus present position x, y; wanted height of the centre of mass; roll, pitch, yaw wanted now.
        share: output (N, L).
        arms: output (N, L, 3).
        reference: output (N, 12).

    Returns:
        How many legs stand in how many steps: the forces to plan.
    """
    count = 0
    c0, s0 = math.cos(yaw), math.sin(yaw)
    for k in range(share.shape[0]):
        t0, t1 = k * dt, (k + 1) * dt
        mid = 0.5 * (t0 + t1)
        # The body as it should move from where it is: it carries the lever arms along.
        cx, cy = com_w[0] + vel_cmd[0] * mid, com_w[1] + vel_cmd[1] * mid
        cz = ground[2] + offset[2] + slope[0] * (cx - ground[0]) + slope[1] * (cy - ground[1])
        for leg in range(phases.shape[0]):
            a, b = phases[leg] + t0 / period, phases[leg] + t1 / period
            stood_a = math.floor(a) * duty + min(a - math.floor(a), duty)
            stood_b = math.floor(b) * duty + min(b - math.floor(b), duty)
            share[k, leg] = min((stood_b - stood_a) / (b - a), 1.0)
            if stance[leg] == 0 and b < 1.0:
                share[k, leg] = 0.0
            if share[k, leg] >= LEAST_SHARE:
                count += 1
            cycle = math.floor(0.5 * (a + b))
            if cycle == 0 and stance[leg] == 1:
                fx, fy, fz = feet_w[leg, 0], feet_w[leg, 1], feet_w[leg, 2]
            elif cycle <= 1 and stance[leg] == 0:
                fx, fy, fz = target[leg, 0], target[leg, 1], target[leg, 2]
            else:
                when = (cycle + 0.5 * duty - phases[leg]) * period
                c, s = math.cos(yaw + yaw_rate * when), math.sin(yaw + yaw_rate * when)
                fx = com_w[0] + vel_cmd[0] * when + c * hips[leg, 0] - s * hips[leg, 1]
                fy = com_w[1] + vel_cmd[1] * when + s * hips[leg, 0] + c * hips[leg, 1]
                fz = ground[2] + slope[0] * (fx - ground[0]) + slope[1] * (fy - ground[1])
            arms[k, leg, 0] = c0 * (fx - cx) + s0 * (fy - cy)
            arms[k, leg, 1] = -s0 * (fx - cx) + c0 * (fy - cy)
            arms[k, leg, 2] = fz - cz
        vx, vy = c0 * vel_cmd[0] + s0 * vel_cmd[1], -s0 * vel_cmd[0] + c0 * vel_cmd[1]
        ox, oy = c0 * offset[0] + s0 * offset[1], -s0 * offset[0] + c0 * offset[1]
        rise = slope[0] * vel_cmd[0] + slope[1] * vel_cmd[1]
        reference[k, 0], reference[k, 1], reference[k, 2] = offset[3], offset[4], offset[5] + yaw_rate * t1
        reference[k, 3], reference[k, 4] = ox + vx * t1, oy + vy * t1
        ex, ey = com_w[0] + vel_cmd[0] * t1, com_w[1] + vel_cmd[1] * t1
        reference[k, 5] = ground[2] + offset[2] + slope[0] * (ex - ground[0]) + slope[1] * (ey - ground[1])
        reference[k, 6], reference[k, 7], reference[k, 8] = 0.0, 0.0, yaw_rate
        reference[k, 9], reference[k, 10], reference[k, 11] = vx, vy, rise
    return count
