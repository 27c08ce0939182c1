"""Log, Trajectory, the field table, checks."""

from gait.log.log import MAX_GAP, Log
from gait.log.record import Record
from gait.log.sample import Sample
from gait.log.trajectory import Trajectory

__all__ = ["MAX_GAP", "Log", "Record", "Sample", "Trajectory"]
