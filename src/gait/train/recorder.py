"""Records of a training: event files for TensorBoard and a picture of the curves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gait.errors import need_extra
from gait.report.chart import COLOURS, Chart, Panel, Series
from gait.report.draw import draw


class Recorder:
    """Follows a training."""

    def __init__(self, out: Path, history: list[dict[str, Any]]) -> None:
        """Start in a folder; rows that a resumed training already has are taken over."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise need_extra("tensorboard", "train") from None
        self._out, self._history = out, history
        # What a killed process logged after its last checkpoint is replaced by what comes now.
        self._writer = SummaryWriter(str(out), purge_step=len(history))

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def add(self, row: dict[str, Any]) -> None:
        """Log one iteration."""
        for name, value in row.items():
            if name != "iteration":
                tag = name.replace("validation_", "validation/", 1) if "validation_" in name else f"training/{name}"
                self._writer.add_scalar(tag, value, row["iteration"])

    def draw(self) -> None:
        """Draw loss, velocity error and calibration over the iterations."""
        validated = [row for row in self._history if "validation_nll" in row]

        def curve(label: str, name: str, rows: list[dict[str, Any]], method: str = "gait") -> Series:
            x, y = np.array([(row["iteration"], row[name]) for row in rows]).T
            return Series(label, x, y, colour=COLOURS[method])

        looks = "gait", "gait-legs", "iekf"
        errors = [
            curve(axis, f"validation_velocity_rmse_{axis}", validated, look)
            for axis, look in zip("xyz", looks, strict=True)
        ]
        shares = [curve(f"{n} sigma", f"validation_within_{n}_sigma", validated, looks[n]) for n in (1, 2)]
        honest = [
            replace(one, label=f"honest {one.label}", y=np.full(len(one.y), share), dashed=True)
            for one, share in zip(shares, (0.683, 0.954), strict=True)
        ]
        panels = {
            "training loss": [curve("loss", "loss", self._history)],
            "validation error (m/s)": errors,
            "share within": [*shares, *honest],
        }
        drawn = [Panel(tuple(lines), "iteration", name, log_y="error" in name) for name, lines in panels.items()]
        draw(Chart("curves", "Training", "Loss, velocity error and calibration by iteration.", tuple(drawn)), self._out)
