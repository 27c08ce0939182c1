"""Invariant Kalman filters: they see measurements and covariances, never joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gait.parameters import BASELINES, ContactAided, ContactDetection, Options, Prior, ProcessNoise, SlipRejection

if TYPE_CHECKING:
    from gait.filters.contact_aided import ContactAidedFilter
    from gait.filters.iekf import InvariantEKF

__all__ = [
    "BASELINES",
    "ContactAided",
    "ContactAidedFilter",
    "ContactDetection",
    "InvariantEKF",
    "Options",
    "Prior",
    "ProcessNoise",
    "SlipRejection",
]


def __getattr__(name: str) -> Any:
    # Compiled filters load on first use: who reads parameters need not wait for them.
    if name == "InvariantEKF":
        from gait.filters.iekf import InvariantEKF

        return InvariantEKF
    if name == "ContactAidedFilter":
        from gait.filters.contact_aided import ContactAidedFilter

        return ContactAidedFilter
    raise AttributeError(f"module 'gait.filters' has no attribute '{name}'")
