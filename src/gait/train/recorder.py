"""What a training leaves to look at: event files for TensorBoard and a picture of the curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gait.errors import need_extra
from gait.io.atomic import atomic_path

CURVES = "curves.png"


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
        try:
            import matplotlib
        except ImportError:
            raise need_extra("matplotlib", "viz") from None
        matplotlib.use("agg")
        from matplotlib import pyplot

        validated = [row for row in self._history if "validation_nll" in row]
        figure, (top, middle, bottom) = pyplot.subplots(3, 1, figsize=(7, 8), sharex=True, layout="constrained")
        top.plot([row["iteration"] for row in self._history], [row["loss"] for row in self._history], lw=0.8)
        top.set_ylabel("training loss")
        x = [row["iteration"] for row in validated]
        for axis in "xyz":
            middle.plot(x, [row[f"validation_velocity_rmse_{axis}"] for row in validated], label=axis)
        middle.set(yscale="log", ylabel="validation error (m/s)")
        middle.legend()
        for sigma, honest in ((1, 0.683), (2, 0.954)):
            shares = [row[f"validation_within_{sigma}_sigma"] for row in validated]
            line = bottom.plot(x, shares, label=f"{sigma} sigma")
            bottom.axhline(honest, color=line[0].get_color(), lw=0.8, ls=":")
        bottom.set(ylim=(0, 1), ylabel="share within", xlabel="iteration")
        bottom.legend()
        with atomic_path(self._out / CURVES) as temporary:
            figure.savefig(temporary, dpi=120, format="png")
        pyplot.close(figure)
