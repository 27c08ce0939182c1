"""A step whose measurements come from a method in Python: the filter is the core's (docs/extending.md)."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping

import numpy as np

from gait.arrays import AnyArray
from gait.binding import CSample, core, pointer
from gait.engine import Context
from gait.errors import GaitError
from gait.health import Health
from gait.log.sample import Sample
from gait.methods import PythonMethod
from gait.robot import Robot
from gait.state import RowLayout, State


class PythonSteps:
    """Steps of a context, with measurements of a method in Python."""

    def __init__(self, name: str, method: PythonMethod, robot: Robot) -> None:
        self.name, self.method, self.robot = name, method, robot

    def step(
        self,
        context: Context,
        sample: CSample,
        parts: Mapping[str, AnyArray],
        given: Collection[str],
        layout: RowLayout,
    ) -> State:
        """Take a sample.

        Args:
            context: takes it.
            sample: as the core takes it.
            parts: its fields by name.
            given: which of them there are.
            layout: of the states.
        """
        library, ready, taken = core(), ctypes.c_int(), False
        health = library.gait_begin(context.at, ctypes.addressof(sample), ctypes.addressof(ready))
        if ready.value:
            predicted = self._end(context, health, layout)
            for z, H, N in self.method.step(self._admitted(context, parts, given), predicted) or ():
                z, H, N = np.atleast_1d(z).astype(float), np.atleast_2d(H).astype(float), np.atleast_2d(N).astype(float)
                if H.shape != (len(z), 15) or N.shape != (len(z), len(z)):
                    raise GaitError(f"method {self.name} gave H {H.shape} and N {N.shape} for z {z.shape}")
                arrays = [np.ascontiguousarray(array) for array in (z, H, N)]
                if library.gait_correct(context.at, len(z), *map(pointer, arrays)):
                    taken = True
                else:
                    health |= Health.REJECTED
            health |= 0 if taken else Health.NO_MEASUREMENT
        return self._end(context, health, layout)

    def _end(self, context: Context, health: int, layout: RowLayout) -> State:
        out = np.empty(context.engine.state_doubles + context.engine.cov_size**2)
        core().gait_end(context.at, health, pointer(out))
        core().gait_cov(context.at, pointer(out) + 8 * context.engine.state_doubles)
        return State(out, layout)

    def _admitted(self, context: Context, parts: Mapping[str, AnyArray], given: Collection[str]) -> Sample:
        """The sample as the core admitted it; None for what was not given, torques, forces and flags as they came."""
        row = np.empty(7 + 3 * self.robot.num_joints)
        core().gait_admitted(context.at, pointer(row))
        q, dq, q_des = np.split(row[7:], 3)
        rest = {"q_des": q_des, **{name: parts[name].copy() for name in ("tau", "foot_force", "contact")}}
        return Sample(
            float(row[0]), row[1:4], row[4:7], q, dq, **{name: rest[name] if name in given else None for name in rest}
        )
