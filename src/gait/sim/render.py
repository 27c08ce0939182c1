"""Pictures of an episode, drawn without a screen: a GIF, or a strip of frames as one PNG.

MuJoCo draws through EGL (on a GPU or in software) or OSMesa (in software). Which of them works is tried out in a
process of its own, since a failed attempt cannot be taken back; nothing but this module needs either.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gait.arrays import Array
from gait.errors import GaitError, need_extra
from gait.io.atomic import atomic_path
from gait.sim.episode import Simulation
from gait.sim.physics import mujoco

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError:
    raise need_extra("Pillow", "sim") from None

if TYPE_CHECKING:
    from gait.estimator import Estimator
    from gait.log.log import Log

Frame = npt.NDArray[np.uint8]
SKY = (176, 196, 214)
COLOURS = 128
"""Of a GIF."""
STRIP, COLUMNS = 8, 4
"""Frames in a PNG, and in a row of it."""
PATIENCE = 60.0
"""Seconds that a backend may take to make a context."""
INSTALL = {"egl": "`apt-get install libegl1 libgl1-mesa-dri`", "osmesa": "`apt-get install libosmesa6`"}
"""The backends, and what to run for each."""
TRUE, ESTIMATED = (86, 180, 233), (230, 159, 0)
"""Colours of the arrows. Okabe and Ito: distinct for colour-blind eyes."""
HEIGHTS = (0.11, 0.17)
"""Where the arrows start above the base, m: one over the other, since a good estimate would hide the ground truth."""
LENGTH, WIDTH = 0.8, 0.014
"""Metres of an arrow for 1 m/s, and its thickness in metres."""
SHORTEST = 0.03
"""A shorter arrow is all head and is left out, m."""
GO1_HEIGHT = 0.34
"""Of the base of a Go1 that stands, m: the camera moves away from taller robots."""
HOLD = 0.5
"""Speeds in the legend are means over so many seconds, and stand for as long: digits that flicker cannot be read."""


@dataclass(frozen=True)
class RenderConfig:
    """How an episode is drawn."""

    width: int = 480
    height: int = 300
    fps: float = 25.0
    """Frames in a second of the episode."""
    speed: float = 0.5
    """Speed of a GIF: half by default, since a trot is quick."""
    distance: float = 1.3
    """From the camera to the robot, m."""
    azimuth: float = 130.0
    """Direction of view, degrees; 90 looks at the robot's right side as it starts."""
    elevation: float = -14.0
    """Degrees; negative looks down."""


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


def add_legend(image: Frame, velocities: Velocities, time: float) -> Frame:
    """The image with a word on each arrow, and its speed, in the upper left corner."""
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


class Canvas:
    """Draws a MuJoCo state from a camera that follows one body."""

    def __init__(self, model: Any, body: str, config: RenderConfig, size: float = 1.0) -> None:
        """Make a canvas; `size` is how many times as large as a Go1 the robot is."""
        self._config, self._model, self._body, self._size = config, model, model.body(body).id, size
        self._context = _gl_module().GLContext(config.width, config.height)
        self._context.make_current()
        model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.35, 0.45
        # Arrows and clipping planes are relative to these, which otherwise change with every pebble on the ground.
        model.stat.extent, model.stat.meansize, model.stat.meanmass = 2.0, 0.1, 1.0
        model.vis.map.force, model.vis.scale.forcewidth = 0.01, 0.15
        model.vis.rgba.contactforce[:] = 0.95, 0.35, 0.1, 1.0
        self._scene = mujoco.MjvScene(model, maxgeom=2000)
        # Drawn in software, shadows are slow and speckled.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        # Scenes of others keep what collides in a group that is hidden, and meshes, which may be missing, in another.
        self._option.geomgroup[:] = 1
        self._height: float | None = None
        self._camera.distance = config.distance * size
        self._camera.azimuth, self._camera.elevation = config.azimuth, config.elevation
        self._gpu = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._gpu)
        self._area = mujoco.MjrRect(0, 0, config.width, config.height)

    def draw(self, data: Any, velocities: Velocities | None = None, time: float = 0.0) -> Frame:
        """The present state as an image (height, width, 3).

        Args:
            data: the state.
            velocities: drawn as two arrows above the body, in place of the forces on the feet.
            time: the moment of the state on their clock, s.
        """
        self._context.make_current()
        centre = data.xpos[self._body]
        # The camera hardly bobs with the body, so that the body's motion can be seen.
        self._height = centre[2] if self._height is None else self._height + 0.05 * (centre[2] - self._height)
        # One that is lifted or dropped must not leave the picture either.
        self._height = min(max(self._height, centre[2] - 0.15), centre[2] + 0.15)
        self._camera.lookat[:] = centre[0], centre[1], self._height - 0.08 * self._size
        # Arrows at the feet distinguish stance from swing.
        self._option.flags[mujoco.mjtVisFlag.mjVIS_CONTACTFORCE] = velocities is None
        every = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self._model, data, self._option, None, self._camera, every, self._scene)
        if velocities is not None:
            add_arrows(self._scene, centre, velocities, time)
        mujoco.mjr_render(self._area, self._scene, self._gpu)
        image = np.empty((self._config.height, self._config.width, 3), dtype=np.uint8)
        depth = np.empty(image.shape[:2], dtype=np.float32)
        mujoco.mjr_readPixels(image, depth, self._area, self._gpu)
        image[(depth >= 1.0) | ~image.any(axis=2)] = SKY
        upright = np.ascontiguousarray(image[::-1])
        return upright if velocities is None else add_legend(upright, velocities, time)

    def close(self) -> None:
        """Give the drawing context back."""
        self._gpu.free()
        self._context.free()


def frames(simulation: Simulation, look: RenderConfig, velocities: Velocities | None = None) -> Iterator[Frame]:
    """Run an episode from its start and draw its recorded part, one frame after another.

    With `velocities`, which an earlier run of the same episode gave, arrows show them.
    """
    size = max(float(simulation.plant.start[2]) / GO1_HEIGHT, 1.0)
    canvas = Canvas(simulation.model, simulation.robot.base_link, look, size)
    try:
        drawn, wanted = 0, round(simulation.config.seconds * look.fps)
        while not simulation.done and drawn < wanted:
            simulation.step()
            if simulation.time >= drawn / look.fps:
                drawn += 1
                yield canvas.draw(simulation.data, velocities, simulation.time)
    finally:
        canvas.close()


def save(images: list[Frame], path: str | Path, look: RenderConfig | None = None) -> int:
    """Write frames, whole or not at all, as the ending of the path asks: `.gif` moves, and loops; `.png` is a strip.

    A strip shows frames that are evenly spaced, left to right, then down. Returns how many frames the file holds.
    """
    look, strip = look or RenderConfig(), check_path(path) == ".png"
    if not images:
        raise GaitError(f"there are no frames to write to {path}: draw a longer episode")
    options: dict[str, Any] = {"format": "PNG"}
    if strip:
        images = [images[i] for i in np.linspace(0, len(images) - 1, min(STRIP, len(images))).round().astype(int)]
        rows = [images[i : i + COLUMNS] for i in range(0, len(images), COLUMNS)]
        rows[-1] += [np.zeros_like(images[0])] * (len(rows[0]) - len(rows[-1]))
        picture = Image.fromarray(np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0))
    else:
        # One palette for all keeps the file small. Each colour counts once in it, so that a thin arrow keeps its own.
        few = np.concatenate(images[:: max(len(images) // 8, 1)]).reshape(-1, 3)
        palette = Image.fromarray((np.unique(few >> 2, axis=0) << 2)[None]).quantize(COLOURS)
        quantized = [Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
        picture, *others = quantized
        # GIF time steps are hundredths of a second.
        duration = max(round(100.0 / (look.fps * look.speed)), 2) * 10
        options = {"format": "GIF", "save_all": True, "append_images": others, "duration": duration, "loop": 0}
    with atomic_path(path) as temporary:
        picture.save(temporary, optimize=False, **options)
    return len(images)


def check_path(path: str | Path) -> str:
    """The ending of a picture's path, or a GaitError if it cannot be drawn to: better now than after the drawing."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".gif", ".png"):
        raise GaitError(f"cannot draw to {path}: end its name in .gif or .png")
    if not Path(path).parent.is_dir():
        raise GaitError(f"cannot draw to {path}: the folder {Path(path).parent} does not exist, create it first")
    return suffix


def find_backend() -> str:
    """The way to draw that works here, or a GaitError that says what to install.

    `MUJOCO_GL`, MuJoCo's own switch, decides alone where it is set.
    """
    asked = os.environ.get("MUJOCO_GL", "").lower()
    if asked and asked not in INSTALL:
        raise GaitError(f"MUJOCO_GL is '{asked}', which needs a screen: set it to egl or osmesa, or unset it")
    for backend in (asked,) if asked else INSTALL:
        if backend_works(backend):
            return backend
    if asked:
        raise GaitError(f"MUJOCO_GL is '{asked}', which does not work here: run {INSTALL[asked]}, or unset MUJOCO_GL")
    raise GaitError(f"drawing needs EGL or OSMesa: run {' or '.join(INSTALL.values())}")


def backend_works(backend: str) -> bool:
    """Whether a context can be made in `egl` or `osmesa`, whatever error, crash or wait it ends in otherwise."""
    probe = f"from mujoco.{backend} import GLContext; c = GLContext(8, 8); c.make_current(); c.free()"
    env = {**os.environ, "MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
    with contextlib.suppress(subprocess.TimeoutExpired):
        tried = subprocess.run([sys.executable, "-c", probe], env=env, capture_output=True, timeout=PATIENCE)
        return tried.returncode == 0
    return False


@functools.cache
def _gl_module() -> Any:
    # PyOpenGL binds to one platform for the life of the process, and MuJoCo records it in this variable.
    backend = os.environ.get("PYOPENGL_PLATFORM", "").lower()
    if backend not in INSTALL or not backend_works(backend):
        os.environ["PYOPENGL_PLATFORM"] = backend = find_backend()
    return importlib.import_module(f"mujoco.{backend}")
