"""TUM: `t x y z qx qy qz qw` on each line, as evo and most trajectory tools read it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gait.errors import GaitError, located
from gait.io import text_numbers as table
from gait.io.atomic import atomic_path
from gait.io.format import Notes
from gait.log import Record, Trajectory
from gait.read_options import ReadOptions

_COLUMNS = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")


class Tum:
    """Pose only. Nanoseconds in time, 15 decimals in the rest: rounding is far below any sensor."""

    name = "tum"
    suffixes: tuple[str, ...] = (".tum", ".txt")

    def matches(self, head: bytes) -> bool:
        """Text whose first line that is no comment is eight numbers."""
        values = (table.first_line(head) or "").split()
        return len(values) == len(_COLUMNS) and all(map(table.is_number, values))

    def read(self, path: Path, options: ReadOptions | None = None, notes: Notes | None = None) -> Trajectory:
        """Read a trajectory; its velocity is the central difference of the positions."""
        values = table.parse(path, table.read_lines(path), 0, _COLUMNS, None)
        t = values["t"]
        pos_w = np.stack([values[name] for name in ("x", "y", "z")], axis=1)
        quat = np.stack([values[name] for name in ("qw", "qx", "qy", "qz")], axis=1)
        if notes is not None:
            notes.say(
                f"{path.name} has no velocities: they are differences of its positions, with their noise; a CSV or npz"
                " of the trajectory has those of the filter"
            )
        if len(t) < 2:
            raise GaitError(f"{path} has one pose: two are needed to tell a velocity")
        with located(path):
            at_rest = Trajectory(t=t, pos_w=pos_w, quat_wb_wxyz=quat, vel_w=np.zeros_like(pos_w))
            with np.errstate(over="ignore", invalid="ignore"):
                vel_w = np.gradient(pos_w, t, axis=0)
            return at_rest.replace(vel_w=vel_w, vel_b=None, source=f"{path.name}, velocity from positions")

    def write(self, record: Record, path: Path) -> None:
        """Write the poses; of a Log, those of its ground truth."""
        quat, pos_w = record.need("quat_wb_wxyz"), record.need("pos_w")
        rows = np.column_stack((record.t, pos_w, quat[:, 1:], quat[:, :1]))
        with atomic_path(path) as temporary:
            np.savetxt(temporary, rows, fmt=["%.9f"] + ["%.15f"] * 7, header=" ".join(_COLUMNS))
