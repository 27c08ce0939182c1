"""The methods by name, and the weights behind them. This module imports nothing heavy, for command lines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """One way to estimate: a network whose velocity the filter takes, or a filter on contacts."""

    needs: str
    """Inputs beside gyro, accel, q and dq, in words."""
    weights: str = ""
    """Name of the network's weights; empty for a model-based method."""
    without_targets: str = ""
    """Weights for logs without q_des (for `gait-legs` without tau, too), where there are any."""
    dead_leg: str = ""
    """Weights that take over while a leg is out of use, where there are any."""
    trot_only: str = ""
    """Weights that know no other gait and stand for the method in the benchmark's tables, if not the usual ones."""

    @property
    def tabled(self) -> str:
        """Weights that stand for the method in tables."""
        return self.trot_only or self.weights


METHODS: dict[str, Method] = {
    "gait": Method("q_des; without it, the weights that do without", "gait-0", "gait-no-targets-0", "gait-dead-leg-0"),
    "gait-flat": Method("q_des", "gait-flat-1"),
    "nmn": Method("q_des", "nmn-2"),
    "iekf": Method("tau, or q_des (with the robot's gains), or foot_force, or contact"),
    "iekf-sr": Method("tau, or q_des (with the robot's gains), or foot_force, or contact"),
    "gait-legs": Method(
        "tau, or q_des (with the robot's gains); without both, the weights that do without",
        "gait-legs-all-0",
        "gait-legs-kinematic-0",
        trot_only="gait-legs-1",
    ),
}
"""The methods by name. Of three seeds, `weights` names the one with the median validation error."""

DEFAULT = "gait-legs"
"""The method that is taken unless another is asked for."""
