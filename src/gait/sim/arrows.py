"""Two arrows on a drawn robot: true and estimated velocity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gait.arrays import Array
from gait.errors import need_extra
from gait.sim.physics import mujoco

if TYPE_CHECKING:
    from gait.estimator import Estimator
    from gait.log.log import Log

TRUE, ESTIMATED = (86, 180, 233), (230, 159, 0)
"""Colours of the arrows. Okabe and Ito: told apart by colour-blind eyes."""
HEIGHTS = (0.11, 0.17)
"""Where the arrows start above the base, m: one over the other, since a good estimate would hide the ground truth."""
LENGTH, WIDTH = 0.8, 0.014
"""Metres of an arrow for 1 m/s, and its thickness in metres."""
SHORTEST = 0.03
"""A shorter arrow is all head and is left out, m."""
HOLD = 0.5
"""Speeds in the legend are means over so many seconds, and stand for as long: digits that flicker cannot be read."""


@dataclass(frozen=True)
class Velocities:
    """True and estimated velocity of the base, world frame, on one clock."""

    t: Array
    """Seconds from the start of the recording (N,)."""
    true_w: Array
    """(N, 3), m/s."""
    estimated_w: Array
    """(N, 3), m/s."""
    name: str
    """Of the method that estimates."""
    rmse: float = float("nan")
    """Error of the body velocity over all of it, m/s."""

    @staticmethod
    def of(log: Log, estimator: Estimator) -> Velocities:
        """Run an estimator over a log; ground truth initialises it and is compared with."""
        from gait.metrics import velocity_rmse

        path = estimator.run(log)
        return Velocities(log.t, log.need("vel_w"), path.vel_w, estimator.method, velocity_rmse(path, log).rmse)

    def at(self, time: float) -> tuple[Array, Array]:
        """The true and the estimated velocity (3,) at the last sample until then."""
        row = max(int(np.searchsorted(self.t, time, side="right")) - 1, 0)
        return self.true_w[row], self.estimated_w[row]

    def speeds(self, time: float) -> tuple[float, float]:
        """The mean true and estimated speed of the `HOLD` seconds in which that moment lies, m/s."""
        rows = self.t // HOLD == min(time, float(self.t[-1])) // HOLD
        true, estimated = (np.linalg.norm(velocity[rows], axis=1) for velocity in (self.true_w, self.estimated_w))
        return float(true.mean()), float(estimated.mean())


def add_arrows(scene: Any, base: Array, velocities: Velocities, time: float) -> None:
    """Put both velocities of that moment into a MuJoCo scene, above the base's position (3,)."""
    for velocity_w, height, colour in zip(velocities.at(time), HEIGHTS, (TRUE, ESTIMATED), strict=True):
        start = base + np.array([0.0, 0.0, height])
        vector = LENGTH * velocity_w
        if np.linalg.norm(vector) < SHORTEST or scene.ngeom >= scene.maxgeom:
            continue
        arrow = scene.geoms[scene.ngeom]
        rgba = np.array([*colour, 255], dtype=np.float32) / 255
        kind = mujoco.mjtGeom.mjGEOM_ARROW
        mujoco.mjv_initGeom(arrow, kind, np.zeros(3), np.zeros(3), np.eye(3).ravel(), rgba)
        mujoco.mjv_connector(arrow, kind, WIDTH, start, start + vector)
        # It shines by itself, so that its colour is that of the legend from every side.
        arrow.emission, arrow.specular = 0.15, 0.0
        scene.ngeom += 1


def add_legend(image: npt.NDArray[np.uint8], velocities: Velocities, time: float) -> npt.NDArray[np.uint8]:
    """The image with a word on each arrow, and its speed, in the upper left corner."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise need_extra("Pillow", "sim") from None
    size = max(image.shape[0] // 20, 9)
    font = ImageFont.load_default(size)
    names = ("true", f"estimated ({velocities.name})")
    picture = Image.fromarray(image)
    pen = ImageDraw.Draw(picture)
    margin, line = size // 2, size + size // 2
    wide = max(pen.textlength(name, font) for name in names)
    number = 3 * size + wide + pen.textlength("0.00 m/s", font)  # right edge of the speeds
    pen.rectangle((0, 0, number + 2 * margin, 2 * line + margin), fill=(34, 38, 42))
    for k, (name, colour, speed) in enumerate(zip(names, (TRUE, ESTIMATED), velocities.speeds(time), strict=True)):
        middle = margin + line * k + line // 2
        pen.rectangle((margin, middle - size // 6, margin + size, middle + size // 6), fill=colour)
        pen.text((2 * margin + size, middle), name, (240, 240, 240), font, anchor="lm")
        pen.text((number + margin, middle), f"{speed:.2f} m/s", (240, 240, 240), font, anchor="rm")
    return np.asarray(picture)
