"""Invariant Kalman filters: they see measurements and covariances, never joints."""

from gait.filters.iekf import InvariantEKF
from gait.filters.params import (
    BASELINES,
    ContactAided,
    ContactDetection,
    Options,
    Prior,
    ProcessNoise,
    SlipRejection,
)

__all__ = [
    "BASELINES",
    "ContactAided",
    "ContactDetection",
    "InvariantEKF",
    "Options",
    "Prior",
    "ProcessNoise",
    "SlipRejection",
]
