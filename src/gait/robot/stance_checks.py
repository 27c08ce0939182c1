"""What can be wrong with a robot description, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gait.robot.robot import Robot


def mistakes(robot: Robot) -> list[str]:
    """What is implausible about a robot in its stance; empty where nothing is."""
    return list(_mistakes(robot))


def _mistakes(robot: Robot) -> Iterator[str]:
    if robot.num_legs == 1:
        yield f"{robot.legs[0].name} is the only leg that was found: if there are more, name their feet with --feet"
    feet = robot.feet(robot.q_stand)  # (L, 3)
    lowest = np.array([corners[:, 2].min() for corners in robot.corners(robot.q_stand)])
    down = (feet - robot.hips_b).mean(axis=0)
    sideways = np.abs(down[:2]).max() > 2.0 * max(-down[2], 0.0) and np.linalg.norm(down) > 0.3 * robot.leg_length
    if sideways:
        axis = int(np.argmax(np.abs(down)))
        yield (
            f"z of {robot.base_link} is not up: its legs point to {'+' if down[axis] > 0.0 else '-'}{'xyz'[axis]};"
            " gait takes z to be up: import it with a turned base, --rpy " + _upright(down)
        )
    below = robot.hips_b[:, 2] - feet[:, 2]
    high = [i for i, leg in enumerate(robot.legs) if not sideways and below[i] < 0.2 * leg.length]
    if high:
        names = ", ".join(robot.leg_names[i] for i in high)
        yield (
            f"in stance, feet are {below[high].min():.2f} m below their hips, of legs of {robot.leg_length:.2f} m"
            f" ({names}): enter joint angles of a stance as `stand` in the file, or check axes, signs, and that z is up"
        )
    for leg in robot.legs:
        if not 0.02 < leg.length < 5.0:
            yield f"the leg {leg.name} is {leg.length:.3g} m long: lengths are in metres"
        if not leg.mass.sum() > 0.0:
            yield f"the links of {leg.name} have no mass: their torques cannot be separated from the ground's"
    if not sideways and np.ptp(lowest) > 0.1 * robot.leg_length:
        yield f"in stance the feet differ in height by {np.ptp(lowest):.2f} m: check `stand`"
    for chain, own in zip(robot.chains, robot.by_leg(robot.q_stand), strict=True):
        if chain.foot.is_flat and not sideways:
            corners = chain.foot.corners @ chain.link_poses(own)[0][-1].T
            if np.ptp(corners[:, 2]) > 0.3 * np.linalg.norm(np.ptp(corners, axis=0)):
                yield f"in stance the sole of {chain.name} is not level: check `stand` and its corners"
    if not 0.05 < robot.mass < 2000.0:
        yield f"the robot weighs {robot.mass:.3g} kg: masses are in kg"
    elif robot.base.mass < 0.1 * robot.mass:
        yield f"the base has {robot.base.mass:.3g} kg of {robot.mass:.3g} kg: check its mass"
    if np.linalg.norm(robot.imu_position) > 3.0 * robot.leg_length:
        yield f"the IMU is {np.linalg.norm(robot.imu_position):.2f} m from the origin of {robot.base_link}"
    if not robot.kp.any():
        yield "no joint has a gain (kp): torques must be measured, since joint targets do not give them"
    if not sideways:
        yield from _heading(robot, feet)
    centre = robot.base.com[:2]
    if robot.num_legs > 2 and not _inside(centre, feet[:, :2]):
        yield "in stance the body's centre of mass is not above the feet: check `stand` and the leg offsets"


def _upright(down: np.ndarray) -> str:
    """Roll, pitch and yaw, degrees, of axes whose z points against `down`, one of x and y; the user checks yaw."""
    axis = int(np.argmax(np.abs(down)))
    sign = -np.sign(down[axis])
    return f"0,{90 * sign:.0f},0" if axis == 0 else f"{-90 * sign:.0f},0,0"


def _heading(robot: Robot, feet: np.ndarray) -> Iterator[str]:
    """Whether x is forward, as the names of the legs have it."""
    left = [name.lower() in ("left", "fl", "lf", "rl", "bl", "hl", "lh", "lr", "lb") for name in robot.leg_names]
    right = [name.lower() in ("right", "fr", "rf", "rr", "br", "hr", "rh", "rb") for name in robot.leg_names]
    if not (any(left) and any(right)):
        return
    across = feet[left].mean(axis=0) - feet[right].mean(axis=0)
    yaw = 90 * round(float(np.degrees(np.arctan2(-across[0], across[1]))) / 90.0)
    if yaw == 0:
        return
    yaw = 180 if yaw == -180 else yaw
    points = {90: "to the right", -90: "to the left"}.get(yaw, "backwards")
    where = {90: "behind", -90: "in front of"}.get(yaw, "to the right of")
    yield (
        f"the left {'foot is' if robot.num_legs == 2 else 'feet are'} {where} the right: x of {robot.base_link} points"
        f" {points}, where gait-legs expects it forward: import it with a turned base, --rpy 0,0,{yaw}"
    )


def _inside(point: np.ndarray, feet: np.ndarray) -> bool:
    """Whether a point lies in the box around the feet."""
    return bool((feet.min(axis=0) <= point).all() and (point <= feet.max(axis=0)).all())
