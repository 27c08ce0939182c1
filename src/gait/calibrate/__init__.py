"""Calibration of a robot from walks: joint zeros, link lengths, IMU errors and latency, with their uncertainty."""

from gait.calibrate.calibration import Calibrated, ErrorEstimate, calibrate
from gait.calibrate.unknowns import Unknowns

__all__ = ["Calibrated", "ErrorEstimate", "Unknowns", "calibrate"]
