"""A policy as the controller of an episode."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.sim.policy.observer import Observer, Seen, rotation
from gait.sim.policy.rig import Rig
from gait.sim.settings import Command


class PolicyWalker:
    """Walks the robot of a scene: one observation and one action a control step.

    Attributes:
        wanted: the command in force: vx, vy, yaw rate.
        gait_id: -1, for episodes record no gait.
    """

    gait_id = -1

    def __init__(self, rig: Rig) -> None:
        self._rig, self.wanted = rig, np.zeros(3)
        self._observer = Observer(rig.config, rig.pose[rig.order], rig.p_bi, rig.R_bi)
        self._memory, self._action = rig.policy.start(), np.zeros(len(rig.order))
        self._targets, self._steps = rig.pose.copy(), 0

    def command(self, command: Command) -> None:
        """Follow another command from now on."""
        self.wanted[:] = command.vx, command.vy, command.yaw_rate

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (J,) for the coming control period.

        Args:
            q: joint positions (J,) in the order of the Log, as everything here.
            dq: joint velocities (J,).
            quat: orientation wxyz.
            omega_b: angular rate in the base frame.
            vel_w: velocity of the base in the world frame.
        """
        rig, order, time = self._rig, self._rig.order, self._steps / self._rig.rate
        seen = Seen(q[order], dq[order], rotation(quat), vel_w, omega_b, self.wanted, self._action, time)
        action, limit = rig.policy(self._observer(seen), self._memory), rig.config.action_clip
        self._action = action if limit is None else np.clip(action, -limit, limit)
        self._targets[order] = rig.pose[order] + rig.action_scale * self._action
        self._steps += 1
        return np.clip(self._targets, rig.lower, rig.upper)
