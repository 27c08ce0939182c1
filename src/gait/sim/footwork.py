"""Footwork, compiled: when legs lift off and touch down, where they land and how they get there.

Positions are in an odometry frame with the world's axes; the controller keeps it itself. `stance` is 1 where a leg
stands. Arrays over legs come first: (L, 3).
"""

from __future__ import annotations

import math

import numpy as np

from gait._compile import compiled
from gait.arrays import AnyArray, Array
from gait.robot.kinematics import fk_jacobian, foot_velocity

_A1, _A2, _A3, _I1 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]", "int64[::1]"


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


@compiled(f"void(float64, {_A1}, {_A1}, float64, {_A1})")
def swing_point(s: float, start: Array, target: Array, lift: float, out: Array) -> None:
    """Place of a swinging foot at progress `s`: at rest on the ground at both ends, `lift` metres up half way."""
    s = min(max(s, 0.0), 1.0)
    blend = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)
    bump = 4.0 * s * (1.0 - s)
    for i in range(3):
        out[i] = start[i] + (target[i] - start[i]) * blend
    out[2] += lift * bump * bump
