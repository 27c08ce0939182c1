"""Many robots at once on the CPU: one call takes a sample of each, threads share the work.

batch = gait.Batch("go1", 4096)
states = batch.update(t, gyro, accel, q, dq, q_des)  # arrays (n, ...)
observation[:, :3] = states.vel_b
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gait.arrays import AnyArray, Array, BoolArray
from gait.binding import CONTACT_SOURCES, CONTACTS, aligned_bytes, core, pointer
from gait.engine import engines_of
from gait.errors import GaitError
from gait.methods import DEFAULT, is_python
from gait.nets.model import Model
from gait.parameters import Limits, Options, Prior, ProcessNoise
from gait.robot import Robot
from gait.sample_rows import FIELDS, row_parts, start_of
from gait.state import RowLayout, StateArrays


class Batch:
    """Estimators of n robots of one kind, which share robot, weights and settings; each does what `Estimator` does."""

    def __init__(
        self,
        robot: str | Path | Robot,
        n: int,
        method: str | Path | Model = DEFAULT,
        *,
        threads: int | None = None,
        targets: bool = True,
        noise: ProcessNoise | None = None,
        prior: Prior | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        contact_from: str | None = None,
    ) -> None:
        """Make n estimators, each at rest.

        Args:
            robot: name of a robot, the path of its YAML file, or a `Robot`.
            n: how many.
            method: as for `Estimator.load`; not one written in Python.
            threads: how many share a call; one for each core by default.
            targets: whether samples will have what the method reads beside IMU, q and dq (q_des, tau); if not, the
                method's weights without it are taken.
            noise: as for `Estimator.load`, like the arguments that follow.
            prior: see there.
            options: see there.
            limits: see there.
            contact_from: see there; `tau` by default.
        """
        if isinstance(method, str) and is_python(method):
            raise GaitError(f"method {method} is written in Python: use Estimator, one for each robot")
        if n < 1:
            raise GaitError(f"a batch of {n} robots: give at least 1")
        self.robot = robot if isinstance(robot, Robot) else Robot.load(robot)
        settings = {
            "noise": noise, "prior": prior, "options": options, "limits": limits, "contact_from": contact_from,
        }  # fmt: skip
        full, less, self.method = engines_of(method, self.robot, settings)
        self._engine = engine = full if targets or less is None else less
        self._core, self._bytes = core(), engine.bytes
        self._memory = aligned_bytes(n * engine.bytes)
        self._rows = np.full((n, engine.row_doubles), np.nan)
        self._out = np.zeros((n, engine.state_doubles))
        self._layout = RowLayout(self.robot.leg_names, engine.shape, 0)
        self._parts = row_parts(self._rows, self.robot)
        for i in range(n):
            self._core.gait_init(self._at(i), ctypes.addressof(engine.config))
        if engine.config.method == CONTACTS:
            for i in range(n):
                self._core.gait_set_contact_source(self._at(i), CONTACT_SOURCES[contact_from or "tau"])
        threads = min(threads or os.cpu_count() or 1, n)
        bounds = np.linspace(0, n, threads + 1).astype(int)
        self._chunks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def states(self) -> StateArrays:
        """The states after the last call of `update`."""
        return StateArrays(self._out, self._layout)

    def update(
        self,
        t: float | Array,
        gyro: npt.ArrayLike,
        accel: npt.ArrayLike,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        q_des: npt.ArrayLike | None = None,
        tau: npt.ArrayLike | None = None,
        foot_force: npt.ArrayLike | None = None,
        contact: npt.ArrayLike | None = None,
        leg_ok: npt.ArrayLike | None = None,
        skip: npt.ArrayLike | None = None,
    ) -> StateArrays:
        """Take one sample of each robot.

        Args:
            t: stamps, s: one for all, or (n,).
            gyro: (n, 3), and so on as for `Estimator.update`, with the robots in front.
            accel: (n, 3).
            q: (n, J), joints in the robot's order.
            dq: (n, J).
            q_des: (n, J).
            tau: (n, J).
            foot_force: (n, L).
            contact: (n, L).
            leg_ok: (n, L).
            skip: robots that have no sample this time (n,): their states stay.

        Returns:
            The states, which the next call overwrites.
        """
        self._rows[:, 0] = t
        for name, value in zip(FIELDS, (gyro, accel, q, dq, q_des, tau, foot_force, contact), strict=True):
            self._put(name, value)
        self._put("leg_ok", leg_ok)
        left_out = None
        if skip is not None:
            left_out = np.ascontiguousarray(skip, dtype=np.bool_)
            if left_out.shape != (len(self),):
                raise GaitError(f"skip must be {len(self)} flags, got an array of shape {left_out.shape}")
        if self._pool is None:
            self._step(*self._chunks[0], left_out)
        else:
            for done in [self._pool.submit(self._step, *chunk, left_out) for chunk in self._chunks]:
                done.result()
        return self.states

    def reset(
        self,
        robots: Sequence[int] | BoolArray | None = None,
        *,
        quat_wb_wxyz: npt.ArrayLike | None = None,
        vel_w: npt.ArrayLike | None = None,
        pos_w: npt.ArrayLike | None = None,
        gyro: npt.ArrayLike | None = None,
        accel: npt.ArrayLike | None = None,
    ) -> None:
        """Start robots again, as `Estimator.reset`: all of them, or those with these numbers or set flags (n,).

        The other arguments have a row for each robot that is reset, or are one for all.
        """
        chosen = self._chosen(robots)
        given = {"quat": quat_wb_wxyz, "vel_w": vel_w, "pos_w": pos_w, "gyro": gyro, "accel": accel}
        rows = {name: _rows_of(value, len(chosen), name) for name, value in given.items()}
        for k, robot in enumerate(chosen):
            start = start_of(**{name: None if value is None else value[k] for name, value in rows.items()})
            if isinstance(start, tuple):
                self._core.gait_reset(self._at(robot), *map(pointer, start), None)
            elif not self._core.gait_reset_gravity(self._at(robot), None if start is None else pointer(start)):
                raise GaitError(f"the specific force given for robot {robot} is not that of a robot at rest")

    def clone(self, source: int, robots: Sequence[int] | BoolArray | None = None) -> None:
        """Let robots (all by default) go on from everything that one of them remembers."""
        contexts = self._memory.reshape(len(self), self._bytes)
        chosen = self._chosen(robots)
        contexts[chosen] = contexts[self._chosen([source])[0]]
        self._out[chosen] = self._out[source]

    def _chosen(self, robots: Sequence[int] | BoolArray | None) -> list[int]:
        numbers = np.arange(len(self))
        try:
            return [int(i) for i in (numbers if robots is None else numbers[np.asarray(robots)])]
        except IndexError:
            raise GaitError(f"robots are numbered 0 to {len(self) - 1}, or flagged by {len(self)} bools") from None

    def _at(self, robot: int) -> int:
        return pointer(self._memory) + robot * int(self._bytes)

    def _put(self, name: str, value: npt.ArrayLike | None) -> None:
        part = self._parts[name]
        if value is None:
            part[:] = 1.0 if name == "leg_ok" else np.nan
            return
        if np.shape(value) != part.shape:
            raise GaitError(f"{name} must be an array of shape {part.shape}, got {np.shape(value)}")
        part[:] = value

    def _step(self, first: int, last: int, skip: AnyArray | None) -> None:
        """Some of the robots; the GIL is free meanwhile."""
        rows, out = self._rows[first:last], self._out[first:last]
        flags = None if skip is None else pointer(skip[first:last])
        self._core.gait_update_batch(self._at(first), self._bytes, last - first, pointer(rows), flags, pointer(out))


def _rows_of(value: npt.ArrayLike | None, count: int, name: str) -> Array | None:
    """A row for each robot, from those given or from one for all."""
    if value is None:
        return None
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 1:
        return np.broadcast_to(array, (count, len(array)))
    if array.ndim != 2 or len(array) != count:
        raise GaitError(f"{name} must have {count} rows, or be one for all, got an array of shape {array.shape}")
    return array
