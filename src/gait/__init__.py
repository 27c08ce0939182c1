"""GAIT: velocity, orientation and position of a legged robot from an IMU and joint encoders alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gait._version import __version__
from gait.errors import GaitError

if TYPE_CHECKING:
    from gait.batch import Batch
    from gait.estimator import Estimator
    from gait.io import open_log
    from gait.log.log import Log
    from gait.log.sample import Sample
    from gait.log.trajectory import Trajectory
    from gait.robot import Robot
    from gait.samples import SAMPLE
    from gait.smoothing import smooth
    from gait.state import State

# Names load on first use, so that `gait --help` does not wait for numpy.
_LAZY = {
    "SAMPLE": "gait.samples",
    "Batch": "gait.batch",
    "Estimator": "gait.estimator",
    "Log": "gait.log.log",
    "Robot": "gait.robot",
    "Sample": "gait.log.sample",
    "State": "gait.state",
    "Trajectory": "gait.log.trajectory",
    "open_log": "gait.io",
    "smooth": "gait.smoothing",
}

__all__ = [
    "SAMPLE",
    "Batch",
    "Estimator",
    "GaitError",
    "Log",
    "Robot",
    "Sample",
    "State",
    "Trajectory",
    "__version__",
    "open_log",
    "smooth",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'gait' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
