"""Do the joint torques of a log carry the weight of its robot? If not, it is another one, or loaded, or the torques are
of another scale or sign."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.log.finding import CheckFinding, Problem, verdict
from gait.log.leg_checks import alike
from gait.log.log import Log
from gait.robot import Chain, Robot, robot_names

GRAVITY = 9.81
ROWS = 3000
"""Of a log that are looked at."""
WINDOW, LEAST = 1.0, 3
"""Length of a mean force, s: some steps, after which the body has about its first vertical velocity again; and how many
of them it takes."""
CARRIES = 0.3
"""Share of the weight above which a robot stands or walks; below, it lies, hangs, or is carried."""
HEAVIER, LIGHTER = 1.1, 0.9
"""Shares of the weight beyond which it is another one. Torques of motor currents are off by 8 % in a joint and by less
in all; a load of a tenth is usual and harmless."""
SCALE = 2.0
"""No robot carries more than its own weight."""
FITS, LOAD = 0.07, 0.7
"""Share by which a robot may be heavier than what legs carry for its name to be given; and how light one may be,
which is loaded then."""
LOWEST = 0.25
"""Share of the weight that the two lowest feet carry at the least: about half on slopes, more in every gait."""
SINGULAR = 1e-5
"""Manipulability |det J|, m^3, below which a leg is so straight that torques do not tell the force."""


def carried_mass(log: Log, robot: Robot) -> tuple[float, float] | None:
    """What the legs carry while they stand or walk, kg, by their torques; and the share of the two lowest feet in it.

    It is negative where torques have the other sign; None if it cannot be told.

    Args:
        log: with torques, joints in the order of the robot, and the accelerometer in axes of the body.
        robot: with legs of three joints.
    """
    plain = all(
        leg.num_joints == len(leg.axes) == 3 and not leg.shared and not leg.slides.any() for leg in robot.chains
    )
    if log.tau is None or not plain:
        return None
    rows = np.arange(0, len(log), max(1, len(log) // ROWS))
    up_b = log.accel[rows].mean(axis=0)
    up_b = up_b / max(float(np.linalg.norm(up_b)), 1e-9)
    legs = zip(robot.chains, robot.by_leg(log.q[rows]), robot.by_leg(log.tau[rows]), strict=True)
    forces = np.stack([_vertical_force(chain, q, tau, up_b) for chain, q, tau in legs], axis=1)
    force = forces.sum(axis=1)
    lowest = np.argsort(robot.feet(log.q[rows]) @ up_b, axis=1)[:, :2]
    usual = len(rows) / max(log.duration / WINDOW, 1.0)
    known = np.isfinite(force)
    window = np.floor((log.t[rows] - log.t[0])[known] / WINDOW)
    # Numbered without those between them, since stamps of a damaged log may lie anywhere.
    _, window, counts = np.unique(window, return_inverse=True, return_counts=True)
    means = np.bincount(window, force[known])[counts > 0.5 * usual] / counts[counts > 0.5 * usual] / GRAVITY
    means = means[np.abs(means) > CARRIES * robot.mass]
    if len(means) < LEAST:
        return None
    low = np.take_along_axis(forces, lowest, axis=1).sum(axis=1)
    return float(np.median(means)), float(np.nansum(low[known]) / np.nansum(force[known]))


def _vertical_force(chain: Chain, q: Array, tau: Array, up_b: Array) -> Array:
    """Force of the ground on a foot along `up_b` (N,), the leg at rest: J' f = torques that hold the leg - tau."""
    rotations, points, axes = chain.link_poses(q)
    centres = points[:, :-1] + np.einsum("nsij,sj->nsi", rotations, chain.com)
    weight = GRAVITY * chain.mass[:, None] * up_b  # (3, 3)
    # A joint holds all links from its own on.
    holds = [
        np.einsum("ni,nsi->n", axes[:, j], np.cross(centres[:, j:] - points[:, j, None], weight[j:])) for j in range(3)
    ]
    jacobian = np.cross(axes, points[:, -1:] - points[:, :-1])  # transposed: (N, joints, 3)
    straight = np.abs(np.linalg.det(jacobian)) < SINGULAR
    jacobian[straight] = np.eye(3)
    force = np.linalg.solve(jacobian, (np.stack(holds, axis=1) - tau)[..., None])[..., 0] @ up_b
    return np.where(straight, np.nan, force)


def check_weight(log: Log, robot: Robot, is_known: bool) -> list[CheckFinding]:
    """Compare what the legs carry with the weight of the robot.

    Args:
        log: as `carried_mass` takes it.
        robot: whose log it is.
        is_known: whether the log itself names the robot, so that it cannot be another one.
    """
    # Nobody gives a description of his own for a robot of another make.
    is_known = is_known or robot.name not in robot_names()
    found_mass = carried_mass(log, robot)
    if found_mass is None:
        return []
    carried, low = found_mass
    share = carried / robot.mass
    shown = f"by their torques, the legs carry {carried:.1f} kg, and {robot.name} weighs {robot.mass:.1f} kg"
    others = [] if is_known else [f"{mass:.1f} kg: --robot {name}" for name, mass in _robots_of(carried, robot)]
    causes = [f"another robot ({' or '.join(others)})" if others else "another robot"] if not is_known else []
    if 1.0 < share < SCALE:
        causes.append(f"a load of {carried - robot.mass:.1f} kg, which belongs into the robot's file")
    causes.append(f"torques of another scale (--scale tau={1.0 / share:.2f})")
    words = f"{shown}: {', '.join(causes[:-1])}{', or ' if len(causes) > 1 else ''}{causes[-1]}"
    wrong = share < LIGHTER or share > HEAVIER
    turned = f"by their torques, the legs pull the robot down with {-carried:.1f} kg: torques have the other sign"
    swapped = robot.num_legs > 2 and low < LOWEST
    order = f"by their torques, the two lowest feet carry {low:.0%} of the robot: torques are those of other joints"
    found = verdict(
        "weight",
        shown,
        Problem(share < 0.0, turned, "--scale tau=-1"),
        Problem(swapped, order),
        Problem(wrong, words),
    )
    # The load of a robot that is known harms no estimate.
    harmless = is_known and 1.0 < share < SCALE and not swapped
    return [CheckFinding(found.name, found.ok, found.words, found.fix, grave=not harmless)]


def _robots_of(mass: float, robot: Robot) -> list[tuple[str, float]]:
    """Names and masses of other robots that gait knows, with joints of the same names and nearer to this mass, kg, than
    `robot`; the nearest first."""
    found = [
        (abs(other.mass - mass), other.name, other.mass)
        for other in alike(robot)
        if abs(other.mass - mass) < abs(robot.mass - mass) and LOAD * mass < other.mass < (1.0 + FITS) * mass
    ]
    return [(name, weight) for _, name, weight in sorted(found)]
