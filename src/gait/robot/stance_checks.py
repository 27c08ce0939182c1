"""What can be wrong with a robot description, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gait.robot.robot import Robot


def mistakes(robot: Robot) -> list[str]:
    """What is implausible about a robot in its stance; empty where nothing is."""
    return list(_mistakes(robot))


def _mistakes(robot: Robot) -> Iterator[str]:
    feet = robot.feet(robot.q_stand)  # (L, 3)
    lowest = np.array([corners[:, 2].min() for corners in robot.corners(robot.q_stand)])
    for leg, hip, foot in zip(robot.legs, robot.hips_b, feet, strict=True):
        if foot[2] > hip[2] - 0.2 * leg.length:
            yield (
                f"in stance the foot of {leg.name} is {hip[2] - foot[2]:.2f} m below its hip, of a leg of"
                f" {leg.length:.2f} m: check `stand`, axes and signs, and that z is up"
            )
        if not 0.02 < leg.length < 5.0:
            yield f"the leg {leg.name} is {leg.length:.3g} m long: lengths are in metres"
        if not leg.mass.sum() > 0.0:
            yield f"the links of {leg.name} have no mass: torques cannot be told from the ground's"
    if np.ptp(lowest) > 0.1 * robot.leg_length:
        yield f"in stance the feet differ in height by {np.ptp(lowest):.2f} m: check `stand`"
    for chain, own in zip(robot.chains, robot.by_leg(robot.q_stand), strict=True):
        if chain.foot.is_flat:
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
        yield "no joint has a gain (kp), so torques must be measured: joint targets tell them only with `kp` and `kd`"
    lateral = dict(zip(robot.leg_names, feet[:, 1], strict=True))
    if lateral.get("left", 0.0) < lateral.get("right", 0.0):
        yield (
            f"the left foot is to the right: x of {robot.base_link} points backwards, so walking forward is a"
            " negative velocity; another link that is fixed to it may do, --base LINK of gait robot import"
        )
    centre = robot.base.com[:2]
    if robot.num_legs > 2 and not _inside(centre, feet[:, :2]):
        yield "in stance the body's centre of mass is not above the feet: check `stand` and the leg offsets"


def _inside(point: np.ndarray, feet: np.ndarray) -> bool:
    """Whether a point lies in the box around the feet."""
    return bool((feet.min(axis=0) <= point).all() and (point <= feet.max(axis=0)).all())
