"""Invariant Kalman filters: they see measurements and covariances, never joints."""

from gait.filters.iekf import InvariantEKF
from gait.filters.params import ContactAided, ContactDetection, ImuNoise, Options, Prior, SlipRejection

__all__ = ["ContactAided", "ContactDetection", "ImuNoise", "InvariantEKF", "Options", "Prior", "SlipRejection"]
