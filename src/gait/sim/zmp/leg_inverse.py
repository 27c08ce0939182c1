"""Joint angles of a leg of any joints that put its foot in a pose, for many instants at once."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.robot import Chain

_DAMPING = 1e-5
"""Squared damping of the least squares, on metres and radians."""
_LONGEST = 0.3
"""Longest step of an angle, rad."""
_TURN = 0.05
"""Weight of the orientation, m/rad, of a leg of fewer than six joints, which cannot have all of it."""


def leg_angles(chain: Chain, place_b: Array, R_b: Array, start: Array, rounds: int = 25) -> tuple[Array, Array]:
    """Angles (N, J) for places (N, 3) and orientations (N, 3, 3) of the foot in base_link, and the errors, m (N,).

    Damped least squares from `start` (J,), each instant by itself.
    """
    q = np.tile(start, (len(place_b), 1))
    error = np.zeros((len(q), 6))
    weight = np.repeat([1.0, 1.0 if chain.num_joints >= 6 else _TURN], 3)
    for _ in range(rounds):
        rotations, points, _ = chain.link_poses(q)
        linear, angular = chain.jacobians(q)
        J = weight[:, None] * np.concatenate([linear, angular], axis=1)  # (N, 6, J)
        error[:, :3] = place_b - points[:, -1]
        off = R_b @ np.swapaxes(rotations[:, -1], 1, 2)
        error[:, 3:] = 0.5 * np.stack(
            [off[:, 2, 1] - off[:, 1, 2], off[:, 0, 2] - off[:, 2, 0], off[:, 1, 0] - off[:, 0, 1]], axis=1
        )
        error[:, 3:] *= weight[3:]
        square = J @ np.swapaxes(J, 1, 2) + _DAMPING * np.eye(6)
        step = np.einsum("nij,ni->nj", J, np.linalg.solve(square, error[..., None])[..., 0])
        q = q + np.clip(step, -_LONGEST, _LONGEST)
    return q, np.asarray(np.linalg.norm(place_b - chain.link_poses(q)[1][:, -1], axis=1))
