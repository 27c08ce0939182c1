"""Pictures of an episode, drawn without a screen: a GIF, or a strip of frames as one PNG.

MuJoCo draws through EGL (on a GPU or in software) or OSMesa (in software). Which of them works is tried out in a
process of its own, since a failed attempt cannot be taken back; nothing but this module needs either.
"""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gait.errors import GaitError, need_extra
from gait.io.atomic import atomic_path
from gait.sim.arrows import Velocities, add_arrows, add_legend
from gait.sim.episode import Feedback, Simulation
from gait.sim.physics import mujoco
from gait.sim.settings import EpisodeConfig

Frame = npt.NDArray[np.uint8]
BACKENDS = ("egl", "osmesa")
SKY = (176, 196, 214)
COLOURS = 128
"""Of a GIF."""
PATIENCE = 60.0
"""Seconds that a backend may take to make a context."""
INSTALL = {
    "egl": "`apt-get install libegl1 libgl1-mesa-dri`",
    "osmesa": "`apt-get install libosmesa6`",
    "": "`apt-get install libegl1 libgl1-mesa-dri` or `apt-get install libosmesa6`",
}
"""What to run for a backend, and for either."""


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


class Canvas:
    """Draws a MuJoCo state from a camera that follows one body."""

    def __init__(self, model: Any, body: str, config: RenderConfig) -> None:
        self._config, self._model, self._body = config, model, model.body(body).id
        self._context = _gl_context(config)
        model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.35, 0.45
        # Arrows and clipping planes are relative to these, which otherwise change with every pebble on the ground.
        model.stat.extent, model.stat.meansize, model.stat.meanmass = 2.0, 0.1, 1.0
        model.vis.map.force, model.vis.scale.forcewidth = 0.01, 0.15
        model.vis.rgba.contactforce[:] = 0.95, 0.35, 0.1, 1.0
        self._scene = mujoco.MjvScene(model, maxgeom=2000)
        # Drawn in software, shadows are slow and speckled.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self._option, self._camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self._height: float | None = None
        self._camera.distance = config.distance
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
        self._camera.lookat[:] = centre[0], centre[1], self._height - 0.08
        # Arrows at the feet tell standing from swinging, which shapes alone hardly do.
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


def frames(
    config: EpisodeConfig,
    seed: int,
    look: RenderConfig | None = None,
    feedback: Feedback | None = None,
    velocities: Velocities | None = None,
) -> Iterator[Frame]:
    """Simulate an episode and draw its recorded part, one frame after another.

    With `velocities`, which an earlier run of the same episode gave, arrows show them.
    """
    look = look or RenderConfig()
    simulation = Simulation(config, seed, feedback)
    canvas = Canvas(simulation.model, simulation.robot.base_link, look)
    try:
        drawn, wanted = 0, round(config.seconds * look.fps)
        while not simulation.done and drawn < wanted:
            simulation.step()
            if simulation.time >= drawn / look.fps:
                drawn += 1
                yield canvas.draw(simulation.data, velocities, simulation.time)
    finally:
        canvas.close()


def save_gif(images: list[Frame], path: str | Path, look: RenderConfig | None = None) -> None:
    """Write frames as a looping GIF, whole or not at all."""
    look = look or RenderConfig()
    if not images:
        raise GaitError(f"there are no frames to write to {path}: draw a longer episode")
    pillow = _pillow()
    # One palette for all keeps the file small. Each colour counts once in it, so that a thin arrow keeps its own.
    few = np.concatenate(images[:: max(len(images) // 8, 1)]).reshape(-1, 3)
    palette = pillow.fromarray((np.unique(few >> 2, axis=0) << 2)[None]).quantize(COLOURS)
    pictures = [pillow.fromarray(image).quantize(palette=palette, dither=pillow.Dither.NONE) for image in images]
    # GIF time steps are hundredths of a second.
    duration = max(round(100.0 / (look.fps * look.speed)), 2) * 10
    with atomic_path(path) as temporary:
        options = {"save_all": True, "append_images": pictures[1:], "duration": duration, "loop": 0, "optimize": False}
        pictures[0].save(temporary, format="GIF", **options)


def save_strip(images: list[Frame], path: str | Path, count: int = 8, columns: int = 4) -> int:
    """Write `count` frames, evenly spaced, as one PNG: left to right, then down; how many that are."""
    if not images:
        raise GaitError(f"there are no frames to write to {path}: draw a longer episode")
    picked = [images[i] for i in np.linspace(0, len(images) - 1, min(count, len(images))).round().astype(int)]
    blank = np.zeros_like(picked[0])
    rows = [picked[i : i + columns] for i in range(0, len(picked), columns)]
    rows[-1] += [blank] * (len(rows[0]) - len(rows[-1]))
    sheet = np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)
    with atomic_path(path) as temporary:
        _pillow().fromarray(sheet).save(temporary, format="PNG")
    return len(picked)


def save(images: list[Frame], path: str | Path, look: RenderConfig | None = None) -> int:
    """Write frames as the ending of the path asks: `.gif` moves, `.png` is a strip. Returns how many it holds."""
    if check_path(path) == ".png":
        return save_strip(images, path)
    save_gif(images, path, look)
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
    if asked and asked not in BACKENDS:
        raise GaitError(f"MUJOCO_GL is '{asked}', which needs a screen: set it to egl or osmesa, or unset it")
    for backend in (asked,) if asked else BACKENDS:
        if backend_works(backend):
            return backend
    if asked:
        raise GaitError(f"MUJOCO_GL is '{asked}', which does not work here: run {INSTALL[asked]}, or unset MUJOCO_GL")
    raise GaitError(f"drawing needs EGL or OSMesa: run {INSTALL['']}")


def backend_works(backend: str) -> bool:
    """Whether a context can be made in `egl` or `osmesa`, whatever error, crash or wait it ends in otherwise."""
    probe = f"from mujoco.{backend} import GLContext; c = GLContext(8, 8); c.make_current(); c.free()"
    environment = {**os.environ, "MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
    try:
        tried = subprocess.run(
            [sys.executable, "-c", probe], env=environment, capture_output=True, check=False, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return False
    return tried.returncode == 0


def _gl_context(config: RenderConfig) -> Any:
    backend = _chosen_backend()
    module = importlib.import_module(f"mujoco.{backend}")
    context = module.GLContext(config.width, config.height)
    context.make_current()
    return context


@functools.cache
def _chosen_backend() -> str:
    # PyOpenGL binds to one platform for the life of the process, and MuJoCo records it in this variable.
    backend = os.environ.get("PYOPENGL_PLATFORM", "").lower()
    if backend not in BACKENDS or not backend_works(backend):
        backend = find_backend()
        os.environ["PYOPENGL_PLATFORM"] = backend
    return backend


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise need_extra("Pillow", "sim") from None
    return Image
