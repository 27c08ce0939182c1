"""Drawing without a screen: what the pictures show, and one sentence where drawing is not possible."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from gait import GaitError
from gait.sim import render
from gait.sim.episode import EpisodeConfig, Simulation, run_episode
from gait.sim.render import SKY, Canvas, RenderConfig, check_path, find_backend, frames, save

LOOK = RenderConfig(width=160, height=100, fps=20.0)
EPISODE = EpisodeConfig(terrain="rubber", seconds=0.4, settle=0.5)


@pytest.fixture(scope="module")
def drawable() -> None:
    try:
        find_backend()
    except GaitError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def images(drawable: None) -> list[np.ndarray]:
    return list(frames(EPISODE, 0, LOOK))


def test_frames_show_a_robot_that_moves_under_the_sky(images: list[np.ndarray]) -> None:
    assert len(images) == 8 and all(image.shape == (100, 160, 3) for image in images)
    for image in images:
        assert tuple(image[0, 0]) == SKY and tuple(image[-1, 0]) != SKY, "up is up"
        middle = image[20:80, 40:120].astype(int)
        assert (middle.min(axis=2) > 140).sum() > 50, "the light body is in the middle"
    assert np.abs(images[0].astype(int) - images[4].astype(int)).max() > 50


def test_arrows_stand_on_loaded_feet_only(drawable: None) -> None:
    def orange(episode: EpisodeConfig, lift: float) -> int:
        simulation = Simulation(episode, 0)
        while simulation.time < 0.1:
            simulation.step()
        canvas = Canvas(simulation.model, "trunk", LOOK)
        simulation.data.qpos[2] += lift
        render.mujoco.mj_forward(simulation.model, simulation.data)
        image = canvas.draw(simulation.data).astype(int)
        canvas.close()
        return int(((image[:, :, 0] - image[:, :, 2]) > 80).sum())

    standing = EpisodeConfig(gait="stand", terrain="rubber", seconds=0.4, settle=0.5)
    assert orange(standing, 0.0) > 10 and orange(standing, 0.3) == 0


def test_drawing_does_not_disturb_the_physics(images: list[np.ndarray]) -> None:
    simulation = Simulation(EPISODE, 0)
    canvas = Canvas(simulation.model, "trunk", LOOK)
    while not simulation.done:
        simulation.step()
        if simulation.row % 100 == 0:
            canvas.draw(simulation.data)
    canvas.close()
    assert np.array_equal(simulation.episode().pos_w, run_episode(EPISODE, 0).pos_w)


def test_gif_and_strip_hold_the_frames(images: list[np.ndarray], tmp_path: Path) -> None:
    save(images, tmp_path / "walk.gif", LOOK)
    with Image.open(tmp_path / "walk.gif") as gif:
        assert gif.n_frames == 8 and gif.size == (160, 100)
        # 20 frames a second of the episode, shown at half speed.
        assert gif.info["duration"] == 100 and gif.info["loop"] == 0
        first = np.asarray(gif.convert("RGB")).astype(int)
    assert np.abs(first - images[0].astype(int)).mean() < 5.0
    save(images, tmp_path / "walk.png")
    with Image.open(tmp_path / "walk.png") as png:
        assert png.size == (4 * 160, 2 * 100)
        assert np.array_equal(np.asarray(png)[:100, :160], images[0])
        assert np.array_equal(np.asarray(png)[100:, 480:], images[-1])
    render.save_strip(images[:3], tmp_path / "short.png", columns=2)
    with Image.open(tmp_path / "short.png") as png:
        assert png.size == (2 * 160, 2 * 100)


def test_paths_are_checked_before_anything_is_drawn(tmp_path: Path) -> None:
    assert check_path(tmp_path / "a.GIF") == ".gif"
    with pytest.raises(GaitError, match=r"end its name in .gif or .png"):
        check_path(tmp_path / "a.mp4")
    with pytest.raises(GaitError, match="does not exist, create it first"):
        check_path(tmp_path / "missing" / "a.gif")
    for name in ("a.gif", "a.png"):
        with pytest.raises(GaitError, match="no frames"):
            save([], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_egl_and_osmesa_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def fail(command: list[str], env: dict[str, str], **options: object) -> SimpleNamespace:
        tried.append(env["MUJOCO_GL"])
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(render.subprocess, "run", fail)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    with pytest.raises(GaitError, match="apt-get install libegl1 .* or `apt-get install libosmesa6`"):
        find_backend()
    assert tried == ["egl", "osmesa"]
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with pytest.raises(GaitError, match="apt-get install"):
        find_backend()
    assert tried[2:] == ["osmesa"], "a choice that was made is not second-guessed"
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    with pytest.raises(GaitError, match="MUJOCO_GL is 'glfw', which needs a screen"):
        find_backend()


@pytest.mark.parametrize("backend", render.BACKENDS)
def test_the_verb_draws_with_either_backend(backend: str, tmp_path: Path) -> None:
    environment = {**os.environ, "MUJOCO_GL": backend}
    environment.pop("PYOPENGL_PLATFORM", None)
    words = ["sim", "--gait", "pronk", "--terrain", "debris", "--seconds", "0.2", "--render", str(tmp_path / "x.png")]
    command = [sys.executable, "-m", "gait", *words]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "drawing needs EGL or OSMesa" in result.stderr:
        pytest.skip(f"{backend} is not installed")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert f"wrote {tmp_path / 'x.png'}" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"], "a picture records nothing else"
