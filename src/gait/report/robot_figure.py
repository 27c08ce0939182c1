"""A robot in its stance, from the side and from the front, as a PNG by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gait.errors import need_extra
from gait.io.atomic import atomic_path
from gait.report.draw import DPI, STYLE
from gait.robot import Robot

_VIEWS = (("side", 0, "x forward, m"), ("front", 1, "y left, m"))

_LABEL: dict[str, Any] = {
    "textcoords": "offset points", "fontsize": 8, "zorder": 5,
    "bbox": {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.5},
}  # fmt: skip
"""Readable on top of a leg."""


def draw_robot(robot: Robot, path: Path) -> None:
    """Write the picture."""
    try:
        import matplotlib.style
        from matplotlib.figure import Figure
    except ImportError:
        raise need_extra("matplotlib", "viz") from None
    legs, corners = robot.skeleton(robot.q_stand), robot.corners(robot.q_stand)
    with matplotlib.style.context(["default", STYLE]):
        figure = Figure(figsize=(9.0, 5.0), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (title, k, label) in zip(axes, _VIEWS, strict=True):
            ax.plot(0.0, 0.0, "k+", markersize=10)
            ax.annotate(robot.base_link, (0.0, 0.0), xytext=(6, 8), **_LABEL)
            ax.plot(robot.imu_position[k], robot.imu_position[2], "ks", markersize=5, fillstyle="none")
            ax.annotate("IMU", (robot.imu_position[k], robot.imu_position[2]), xytext=(6, -12), **_LABEL)
            for leg, points, sole in zip(robot.legs, legs, corners, strict=True):
                line = ax.plot(points[:, k], points[:, 2], "o-", markersize=4, label=leg.name)[0]
                outline = np.vstack([sole, sole[:1]])
                ax.plot(outline[:, k], outline[:, 2] - leg.foot.radius, "-", color=line.get_color(), linewidth=2.5)
            ax.set_title(title)
            ax.set_xlabel(label)
            ax.set_aspect("equal")
        axes[0].set_ylabel("z up, m")
        axes[0].invert_xaxis()
        axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        figure.suptitle(f"{robot.name} in stance, {robot.mass:.1f} kg")
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format="png", dpi=DPI, metadata={"Software": None})
