"""What the controller makes of one reading, compiled into one call: feet, slip, phases, ground, command, footholds."""

from __future__ import annotations

import math

from gait import lie
from gait._compile import compiled
from gait.arrays import AnyArray, Array
from gait.sim.body import follow_command, track_ground
from gait.sim.footwork import feet_in_world, footholds, slip_speed, step_phases

_A1, _A2, _A3, _I1 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]", "int64[::1]"


@compiled(
    f"float64({_A3}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, {_A1}, {_A1}, {_A1}, {_A1}, {_A2}, {_A1}, {_A2}, {_A2},"
    f" {_A3}, {_A2}, {_I1}, {_A1}, {_A1}, {_A1}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, {_A1}, {_A1})"
)
def observe(
    offsets: Array,
    signs: Array,
    q: Array,
    dq: Array,
    quat: Array,
    omega_b: Array,
    vel: Array,
    phases: Array,
    timing: Array,
    wanted: Array,
    limits: Array,
    hips: Array,
    pos: Array,
    R: Array,
    feet_b: Array,
    jac: Array,
    feet_w: Array,
    stance: AnyArray,
    lifted: Array,
    progress: Array,
    swing_time: Array,
    start: Array,
    anchor: Array,
    target: Array,
    ground: Array,
    slope: Array,
    following: Array,
    pose: Array,
    vel_cmd: Array,
) -> float:
    """Bring everything the controller knows about body, feet and ground up to date.

    Args:
        offsets: link offsets (L, 4, 3).
        signs: joint directions (L, 3).
        q: joint angles (L, 3).
        dq: joint velocities (L, 3).
        quat: orientation of the base, wxyz.
        omega_b: its angular velocity in its own frame.
        vel: its velocity in the world frame.
        phases: of each leg.
        timing: duty factor, period of the gait, control period, rate of the ground plane, foothold gain.
        wanted: commanded velocities.
        limits: as `follow_command` takes them.
        hips: neutral foot places (L, 2).
        pos: position of the base in the odometry frame; its height is corrected.
        R: output, orientation of the base.
        feet_b: output, feet in the base frame.
        jac: output, leg Jacobians.
        feet_w: output, feet in the odometry frame.
        stance: whether each leg stands; updated.
        lifted: phase at which each leg left the ground; updated.
        progress: of each stance or swing; updated.
        swing_time: seconds of each swing; updated.
        start: where each swing began; updated.
        anchor: where each foot stood last; updated.
        target: where each swing ends; updated.
        ground: a point of the ground plane; updated.
        slope: of that plane; updated.
        following: velocities that are followed; updated.
        pose: wanted x, y and heading; updated.
        vel_cmd: output, velocity that is followed, in the world frame.

    Returns:
        Speed of the fastest foot that should stand still, m/s.
    """
    duty, period, dt = timing[0], timing[1], timing[2]
    lie.rotation_from_quat_into(quat, R)
    feet_in_world(offsets, signs, q, R, pos, feet_b, jac, feet_w)
    slip = slip_speed(stance, progress, dq, R, jac, feet_b, vel, omega_b)
    step_phases(phases, duty, stance, lifted, period, feet_w, start, anchor, target, progress, swing_time)
    track_ground(stance, progress, anchor, timing[3], feet_w, pos, ground, slope)
    yaw = math.atan2(R[1, 0], R[0, 0])
    follow_command(wanted, limits, pos, yaw, dt, following, pose, vel_cmd)
    footholds(
        stance, progress, swing_time, duty * period, pos, vel, vel_cmd, yaw, following[2], hips, ground, slope,
        timing[4], target,
    )  # fmt: skip
    return slip
