"""What the compiled parts of the walking controller share: the reading, the settings and the state, by name.

Positions are in an odometry frame with the world's axes; the controller keeps it itself. Arrays over legs come first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import AnyArray, Array


class WalkReading(NamedTuple):
    """The controller's input in one step."""

    q: Array
    """Joint angles (L, 3)."""
    dq: Array
    """Joint velocities (L, 3)."""
    quat: Array
    """Orientation of the base, wxyz."""
    omega_b: Array
    """Its angular velocity in its own frame."""
    vel_w: Array
    """Its velocity in the world frame."""


class Pattern(NamedTuple):
    """Where the gait is in its cycle."""

    phases: Array
    """Of each leg in [0, 1) (L,)."""
    duty: float
    """Share of the cycle that a leg stands."""
    period: float
    """Seconds of a cycle."""


class Tuning(NamedTuple):
    """Settings of the walking controller of a Go1, the same for every gait and terrain; the controller scales them to
    its robot and adds, from `dt` on, what follows from its rate and the drives."""

    height: float = 0.275
    """Height of the base above the centres of standing feet, in metres."""
    friction: float = 0.5
    """Friction the force planner counts on while no foot slips; the true one is unknown."""
    least_friction: float = 0.14
    """Friction it still counts on when feet slip."""
    slip_speed: float = 0.2
    """Speed of a standing foot, in m/s, from which on it counts as slipping."""
    caution_time: float = 0.1
    """Seconds of slipping in which the assumed friction falls to a third."""
    trust_rate: float = 0.6
    """Rate at which the assumed friction recovers while feet hold, 1/s."""
    max_force: float = 180.0
    """Largest vertical force of a foot in newtons."""
    plan_rate: float = 60.0
    """Force plans a second, at most one per control step."""
    foot_gain: float = 0.03
    """Seconds by which a velocity error moves a foothold."""
    acceleration: float = 2.0
    """How fast the velocity command is followed, m/s^2."""
    yaw_acceleration: float = 3.0
    """How fast the turning command is followed, rad/s^2."""
    leash: float = 0.05
    """How far the wanted position may run ahead of the body, in metres."""
    swing_kp: float = 60.0
    """Effective position gain of swinging legs, whatever the drive's own, in N m/rad."""
    swing_kd: float = 1.2
    """Effective velocity gain of swinging legs, in N m s/rad."""
    grip: float = 0.35
    """How firmly a standing foot holds on to its place against slipping, in N m s/rad: that place drifts after the foot
    within `grip / kp` seconds, so stiff and weak drives brake a slip alike."""
    dt: float = 0.0
    """Seconds of a control step, for which joint targets are held."""
    ground_rate: float = 0.0
    """Share of the way to the new ground plane in a step."""
    kp: float = 0.0
    kd: float = 0.0
    extra_kp: float = 0.0
    """What swinging legs get on top of the drive's gains."""
    extra_kd: float = 0.0
    release: float = 0.0
    """Share of its way to a foot that slips which the held place goes in a step."""


class Swing(NamedTuple):
    """How feet swing; `gait.sim.settings.Command` tells what the shares are."""

    carried: float = 0.0
    abrupt: float = 0.0
    lift: float = 0.0
    """How high feet are lifted, m."""


class WalkState(NamedTuple):
    """State of body, feet and ground in the controller; every array is updated in place."""

    pos: Array
    """Position of the base (3,)."""
    R: Array
    """Orientation of the base (3, 3)."""
    acc: Array
    """Planned acceleration of the body (3,)."""
    com_w: Array
    """Centre of mass (3,)."""
    feet_b: Array
    """Feet in the base frame (L, 3)."""
    feet_w: Array
    """Feet (L, 3)."""
    jac: Array
    """Leg Jacobians (L, 3, 3)."""
    forces: Array
    """Planned forces of the ground on each foot, world frame (L, 3)."""
    stance: AnyArray
    """1 where a leg stands, 0 where it swings (L,)."""
    lifted: Array
    """Phase at which each leg left the ground (L,)."""
    progress: Array
    """Share of stance or swing that has passed (L,)."""
    swing_time: Array
    """Seconds of each swing (L,)."""
    start: Array
    """Where each swing began (L, 3)."""
    anchor: Array
    """Where each foot stood last (L, 3)."""
    target: Array
    """Where each swing ends (L, 3)."""
    grip: Array
    """Where each standing foot should stay; drifts after a foot that slips (L, 3)."""
    hips: Array
    """Neutral foot places below the base in the heading frame (L, 2)."""
    ground: Array
    """A point of the ground plane (3,)."""
    slope: Array
    """Slope of that plane along x and y (2,)."""
    following: Array
    """Forward, sideways and yaw velocity that are followed now (3,)."""
    vel_cmd: Array
    """The velocity followed, in the world frame (3,)."""
    pose: Array
    """Wanted x, y and heading (3,)."""

    @staticmethod
    def of(legs: int) -> WalkState:
        """The state of a robot that stands at the origin."""
        shapes = {
            (3,): ("pos", "acc", "com_w", "ground", "following", "vel_cmd", "pose"),
            (legs, 3): ("feet_b", "feet_w", "forces", "start", "anchor", "target", "grip"),
            (legs,): ("lifted", "progress"),
        }
        zero = {name: np.zeros(shape) for shape, names in shapes.items() for name in names}
        own = {"R": np.eye(3), "jac": np.zeros((legs, 3, 3)), "hips": np.zeros((legs, 2)), "slope": np.zeros(2)}
        return WalkState(**zero, **own, stance=np.ones(legs, dtype=np.int64), swing_time=np.full(legs, 0.2))


class Preview(NamedTuple):
    """What the force planner looks at over its horizon of N steps, in the heading frame."""

    share: Array
    """Part of each step during which a leg stands (N, L)."""
    arms: Array
    """From the centre of mass to each foot (N, L, 3)."""
    state: Array
    """Roll, pitch, yaw; position of the centre of mass; angular and linear velocity (12,)."""
    reference: Array
    """The same as wanted at the end of every step (N, 12)."""

    @staticmethod
    def of(steps: int, legs: int) -> Preview:
        """Empty."""
        return Preview(np.zeros((steps, legs)), np.zeros((steps, legs, 3)), np.zeros(12), np.zeros((steps, 12)))
