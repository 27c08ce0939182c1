"""What the force planner looks at, compiled: the body now, and contacts, lever arms and reference over the horizon."""

from __future__ import annotations

import math

from gait.arrays import Array
from gait.sim.compiled import compiled
from gait.sim.mpc.planner import LEAST_SHARE
from gait.sim.mpc.walk_state import Pattern, Preview, WalkReading, WalkState
from gait.sim.rotation_kernels import rotate


@compiled
def look_ahead(reading: WalkReading, com_b: Array, height: float, pattern: Pattern, s: WalkState, out: Preview) -> int:
    """Fill in the preview, with the present place of the base as origin.

    Args:
        reading: of this step.
        com_b: centre of mass in the base frame.
        height: wanted height of the base.
        pattern: of the gait; the horizon is one cycle.
        s: the controller's state, whose centre of mass is brought up to date.
        out: written.

    Returns:
        How many legs stand in how many steps: the forces to plan.
    """
    phases, duty, period = pattern.phases, pattern.duty, pattern.period
    yaw = math.atan2(s.R[1, 0], s.R[0, 0])
    body_now(reading, com_b, yaw, s, out)
    com_height = height + com_b[2]
    _reference(yaw, com_height, period, s, out)
    dt = period / out.share.shape[0]
    cos, sin = math.cos(yaw), math.sin(yaw)
    count = 0
    for k in range(out.share.shape[0]):
        t0, t1 = k * dt, (k + 1) * dt
        mid = 0.5 * (t0 + t1)
        # The body as it should move from where it is: it carries the lever arms along.
        cx, cy = s.com_w[0] + s.vel_cmd[0] * mid, s.com_w[1] + s.vel_cmd[1] * mid
        cz = s.ground[2] + com_height + s.slope[0] * (cx - s.ground[0]) + s.slope[1] * (cy - s.ground[1])
        for leg in range(phases.shape[0]):
            a, b = phases[leg] + t0 / period, phases[leg] + t1 / period
            stood_a = math.floor(a) * duty + min(a - math.floor(a), duty)
            stood_b = math.floor(b) * duty + min(b - math.floor(b), duty)
            out.share[k, leg] = min((stood_b - stood_a) / (b - a), 1.0)
            if s.stance[leg] == 0 and b < 1.0:
                out.share[k, leg] = 0.0
            if out.share[k, leg] >= LEAST_SHARE:
                count += 1
            x, y, z = _foot_then(leg, math.floor(0.5 * (a + b)), pattern, yaw, s)
            out.arms[k, leg, 0] = cos * (x - cx) + sin * (y - cy)
            out.arms[k, leg, 1] = -sin * (x - cx) + cos * (y - cy)
            out.arms[k, leg, 2] = z - cz
    return count


@compiled
def _foot_then(leg: int, cycle: int, pattern: Pattern, yaw: float, s: WalkState) -> tuple[float, float, float]:
    """Where a foot stands in a cycle from now: where it is, where it is about to land, or below its hip by then."""
    if cycle == 0 and s.stance[leg] == 1:
        return s.feet_w[leg, 0], s.feet_w[leg, 1], s.feet_w[leg, 2]
    if cycle <= 1 and s.stance[leg] == 0:
        return s.target[leg, 0], s.target[leg, 1], s.target[leg, 2]
    when = (cycle + 0.5 * pattern.duty - pattern.phases[leg]) * pattern.period
    cos, sin = math.cos(yaw + s.following[2] * when), math.sin(yaw + s.following[2] * when)
    x = s.com_w[0] + s.vel_cmd[0] * when + cos * s.hips[leg, 0] - sin * s.hips[leg, 1]
    y = s.com_w[1] + s.vel_cmd[1] * when + sin * s.hips[leg, 0] + cos * s.hips[leg, 1]
    return x, y, s.ground[2] + s.slope[0] * (x - s.ground[0]) + s.slope[1] * (y - s.ground[1])


@compiled
def body_now(reading: WalkReading, com_b: Array, yaw: float, s: WalkState, out: Preview) -> None:
    """The planner's view of the body in the heading frame."""
    cos, sin = math.cos(yaw), math.sin(yaw)
    arm, w, vel, x = rotate(s.R, com_b), rotate(s.R, reading.omega_b), reading.vel_w, out.state
    s.com_w[:] = s.pos + arm
    vx = vel[0] + w[1] * arm[2] - w[2] * arm[1]
    vy = vel[1] + w[2] * arm[0] - w[0] * arm[2]
    vz = vel[2] + w[0] * arm[1] - w[1] * arm[0]
    x[0], x[1], x[2] = math.atan2(s.R[2, 1], s.R[2, 2]), -math.asin(min(max(s.R[2, 0], -1.0), 1.0)), 0.0
    x[3], x[4], x[5] = 0.0, 0.0, s.com_w[2]
    x[6], x[7], x[8] = cos * w[0] + sin * w[1], -sin * w[0] + cos * w[1], w[2]
    x[9], x[10], x[11] = cos * vx + sin * vy, -sin * vx + cos * vy, vz


@compiled
def _reference(yaw: float, com_height: float, period: float, s: WalkState, out: Preview) -> None:
    """The wanted states: level with the ground, on the way from the wanted pose, at the velocity that is followed."""
    cos, sin = math.cos(yaw), math.sin(yaw)
    roll = math.atan(-sin * s.slope[0] + cos * s.slope[1])
    pitch = -math.atan(cos * s.slope[0] + sin * s.slope[1])
    ahead_x, ahead_y, turn = s.pose[0] - s.pos[0], s.pose[1] - s.pos[1], s.pose[2] - yaw
    ox, oy = cos * ahead_x + sin * ahead_y, -sin * ahead_x + cos * ahead_y
    vx, vy = cos * s.vel_cmd[0] + sin * s.vel_cmd[1], -sin * s.vel_cmd[0] + cos * s.vel_cmd[1]
    yaw_rate, dt = s.following[2], period / out.reference.shape[0]
    for k in range(out.reference.shape[0]):
        t, x = (k + 1) * dt, out.reference[k]
        ex, ey = s.com_w[0] + s.vel_cmd[0] * t, s.com_w[1] + s.vel_cmd[1] * t
        x[0], x[1], x[2] = roll, pitch, turn + yaw_rate * t
        x[3], x[4] = ox + vx * t, oy + vy * t
        x[5] = s.ground[2] + com_height + s.slope[0] * (ex - s.ground[0]) + s.slope[1] * (ey - s.ground[1])
        x[6], x[7], x[8] = 0.0, 0.0, yaw_rate
        x[9], x[10], x[11] = vx, vy, s.slope[0] * s.vel_cmd[0] + s.slope[1] * s.vel_cmd[1]
