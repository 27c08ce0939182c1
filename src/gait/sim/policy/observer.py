"""From the state of a robot to the numbers that a policy reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import Array
from gait.errors import GaitError
from gait.sim.policy.observation import TERMS, PolicyConfig, Term

Float32 = npt.NDArray[np.float32]
DOWN = np.array([0.0, 0.0, -1.0])


class Seen(NamedTuple):
    """Inputs of a control step; joints in the order of the policy."""

    q: Array
    dq: Array
    R_wb: Array
    """Orientation of the base (3, 3)."""
    vel_w: Array
    """Velocity of the base link's origin (3,)."""
    omega_b: Array
    """Angular velocity in the base frame (3,)."""
    command: Array
    """vx, vy, yaw rate."""
    last_action: Array
    time: float
    """Seconds since the first control step."""


class Observer:
    """Makes the observation of a policy, and keeps its history."""

    def __init__(self, config: PolicyConfig, pose: Array, p_bi: Array, R_bi: Array) -> None:
        """Make the observer of an episode.

        Args:
            config: the terms.
            pose: joint angles (J,) that joint positions are relative to.
            p_bi: lever arm of the IMU.
            R_bi: its axes in the base frame.
        """
        self._pose, self._p_bi, self._R_bi, self._config = pose, p_bi, R_bi, config
        self._terms = [(term, self._scale(term)) for term in config.terms]
        self._past = [deque[Array](maxlen=term.history) for term in config.terms]
        self._whole = deque[Array](maxlen=config.history)

    def _scale(self, term: Term) -> Array:
        scale, width = np.asarray(term.scale, dtype=np.float64), term.width(len(self._pose))
        if scale.ndim and len(scale) != width:
            raise GaitError(f"`scale` of the term {term.term} has {len(scale)} numbers, the term {width}")
        return scale

    def __call__(self, seen: Seen) -> Float32:
        """The observation (N,) of a control step."""
        parts = []
        for (term, scale), past in zip(self._terms, self._past, strict=True):
            parts.append(self._stack(past, _VALUES[term.term](self, term, seen) * scale))
        frame = self._stack(self._whole, np.concatenate(parts))
        limit = self._config.observation_clip
        return (frame if limit is None else np.clip(frame, -limit, limit)).astype(np.float32)

    def _stack(self, past: deque[Array], now: Array) -> Array:
        if past.maxlen == 1:
            return now
        # As training does after a reset: what was before the first step is the first step.
        past.extend([now] * (1 if past else past.maxlen or 1))
        return np.concatenate(list(reversed(past)) if self._config.newest_first else list(past))

    def _turned(self, term: Term, vector_b: Array) -> Array:
        turned: Array = self._R_bi.T @ vector_b if term.at == "imu" else vector_b
        return turned

    def _velocity(self, term: Term, seen: Seen) -> Array:
        vel_b = seen.R_wb.T @ seen.vel_w
        return self._turned(term, vel_b + np.cross(seen.omega_b, self._p_bi) if term.at == "imu" else vel_b)

    def _phase(self, term: Term, seen: Seen) -> Array:
        angle = np.array(term.offsets) + 2.0 * np.pi * term.frequency * seen.time
        return np.concatenate([np.cos(angle), np.sin(angle)])

    def _positions(self, term: Term, seen: Seen) -> Array:
        return seen.q - self._pose if term.relative else seen.q


_VALUES: dict[str, Callable[[Observer, Term, Seen], Array]] = {
    "base_velocity": Observer._velocity,
    "gyro": lambda observer, term, seen: observer._turned(term, seen.omega_b),
    "projected_gravity": lambda observer, term, seen: observer._turned(term, seen.R_wb.T @ DOWN),
    "command": lambda observer, term, seen: seen.command,
    "joint_positions": Observer._positions,
    "joint_velocities": lambda observer, term, seen: seen.dq,
    "last_action": lambda observer, term, seen: seen.last_action,
    "phase": Observer._phase,
}


def check_size(config: PolicyConfig, joints: int, wanted: int) -> None:
    """Raise a GaitError that names the term at fault unless the observation is as long as the policy's input."""
    sizes = [term.width(joints) * term.history for term in config.terms]
    total = sum(sizes) * config.history
    if total == wanted:
        return
    names = [term.term for term in config.terms]
    listed = ", ".join(f"{name} {size}" for name, size in zip(names, sizes, strict=True))
    times = f", {config.history} times over" if config.history > 1 else ""
    raise GaitError(
        f"the policy takes {wanted} numbers but the observation has {total} ({listed}{times}):"
        f" {_advice(config, joints, sizes, wanted)}"
    )


def _advice(config: PolicyConfig, joints: int, sizes: Sequence[int], wanted: int) -> str:
    """Which one change of a term would make the observation fit."""
    excess = sum(sizes) - wanted / config.history
    for term, size in reversed(list(zip(config.terms, sizes, strict=True))):
        if size == excess:
            return f"leave out the term {term.term}"
    present = {term.term for term in config.terms}
    for name in TERMS:
        if name not in (*present, "phase") and Term(name).width(joints) == -excess:
            return f"add the term {name}"
    for term, size in zip(config.terms, sizes, strict=True):
        wanted_size, width = size - excess, term.width(joints)
        if wanted_size > 0 and wanted_size % width == 0:
            return f"give the term {term.term} a `history` of {int(wanted_size) // width}, or correct another term"
    return "correct the terms, their `history` or `joints`"


def rotation(quat_wxyz: Array) -> Array:
    """The rotation matrix of a quaternion."""
    return np.asarray(lie.rotation_from_quat(quat_wxyz))
