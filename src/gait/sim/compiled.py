"""Numba for the simulator's inner loops: compiled at the first call, cached on disk, without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, TypeVar, cast

from gait.errors import need_extra

try:
    import numba
except ModuleNotFoundError:
    raise need_extra("numba", "sim") from None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function. Arithmetic stays strict IEEE: a walk does not depend on what the optimiser reordered."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))


@cache
def compiled_copy(function: F) -> F:
    """A plain function of another module, compiled together with the functions of that module which it calls.

    Equations are written once, readable and without numba; the simulator compiles them as they are.
    """
    names, scope = function.__code__.co_names, function.__globals__
    called = {
        name: compiled_copy(scope[name])
        for name in names
        if isinstance(scope.get(name), FunctionType) and scope[name].__module__ == function.__module__
    }
    copy = FunctionType(function.__code__, {**scope, **called}, function.__name__, function.__defaults__)
    copy.__qualname__ = function.__qualname__
    return compiled(cast("F", copy))


def warm_up() -> None:
    """Compile everything the simulator needs, or read it from the cache, by simulating a few milliseconds.

    A process that starts workers calls it first: they then read the cache instead of compiling all at once.
    """
    import numpy as np

    from gait.robot import Robot
    from gait.sim.episode import EpisodeConfig, run_episode
    from gait.sim.mismatch import sensors_of
    from gait.sim.sensors import SensorStream, sense

    robot, rng = Robot.load("go1"), np.random.default_rng(0)
    for gait in ("trot", "airborne"):
        raw = run_episode(EpisodeConfig(gait=gait, seconds=0.02, settle=0.6), 3)
    sense(raw, robot, sensors_of("exact"), rng)
    stream = SensorStream(robot, sensors_of("exact"), rng)
    for _ in range(2):
        stream.step(*(x[0] for x in (raw.quat_wb_wxyz, raw.vel_w, raw.omega_b, raw.q, raw.dq, raw.q_des, raw.tau)))
