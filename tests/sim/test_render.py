"""Drawing without a screen: what the pictures show, and one sentence where drawing is not possible."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import needs
import numpy as np
import pytest
from PIL import Image

from gait import GaitError
from gait.cli import main
from gait.sim import render
from gait.sim.episode import Simulation, run_episode
from gait.sim.render import (
    ESTIMATED,
    SKY,
    TRUE,
    Canvas,
    RenderConfig,
    Velocities,
    check_path,
    find_backend,
    frames,
    save,
)
from gait.sim.settings import EpisodeConfig

LOOK = RenderConfig(width=160, height=100, fps=20.0)
EPISODE = EpisodeConfig(terrain="rubber", seconds=0.4, settle=0.5)


@pytest.fixture(scope="module")
def drawable() -> None:
    needs.require("egl or osmesa")


@pytest.fixture(scope="module")
def images(drawable: None) -> list[np.ndarray]:
    return list(frames(Simulation(EPISODE, 0), LOOK))


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
    assert save(images[:5], tmp_path / "short.png") == 5
    with Image.open(tmp_path / "short.png") as png:
        assert png.size == (4 * 160, 2 * 100) and not np.asarray(png)[100:, 160:].any()


def still_robot(velocities: Velocities | None) -> np.ndarray:
    simulation = Simulation(EpisodeConfig(gait="stand", terrain="rubber", seconds=0.4, settle=0.5), 0)
    canvas = Canvas(simulation.model, "trunk", RenderConfig(width=240, height=150, azimuth=100.0, elevation=-25.0))
    render.mujoco.mj_forward(simulation.model, simulation.data)
    image = canvas.draw(simulation.data, velocities, 0.1)
    canvas.close()
    return image


def pixels(image: np.ndarray, colour: tuple[int, int, int]) -> tuple[int, float]:
    """How many pixels have the hue of a colour below the legend, and their middle column."""
    pixel = image[32:].astype(float) - image[32:].mean(axis=2, keepdims=True)
    hue = np.array(colour, dtype=float) - np.mean(colour)
    alike = pixel @ hue / (np.linalg.norm(pixel, axis=2) + 1e-9) / np.linalg.norm(hue) > 0.96
    found = np.argwhere(alike & (np.linalg.norm(pixel, axis=2) > 60.0))
    return len(found), float(found[:, 1].mean()) if len(found) else float("nan")


def velocities_of(true: list[float], estimated: list[float]) -> Velocities:
    t = np.arange(100) * 0.01
    return Velocities(t, np.tile(true, (100, 1)), np.tile(estimated, (100, 1)), "gait")


def test_two_arrows_point_where_the_velocities_do(drawable: None) -> None:
    plain = still_robot(None)
    assert pixels(plain, TRUE)[0] == 0
    # The camera stands to its right.
    ahead = still_robot(velocities_of([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]))
    (true, right), (estimated, left) = pixels(ahead, TRUE), pixels(ahead, ESTIMATED)
    assert min(true, estimated) > 30 and right > left + 20
    slow = still_robot(velocities_of([0.4, 0.0, 0.0], [0.0, 0.0, 0.0]))
    assert 0 < pixels(slow, TRUE)[0] < true, "an arrow is as long as the robot is fast"
    assert pixels(slow, ESTIMATED)[0] == 0, "and there is none of a robot that stands"
    assert ahead[:30, :80].max() > 200 and np.median(ahead[:30, :80]) < 50, "light words on a dark ground"


def test_velocities_are_those_of_the_moment_and_speeds_hold_still() -> None:
    t = 0.002 * np.arange(1, 501)
    true = np.outer(t, [1.0, 0.0, 0.0])
    both = Velocities(t, true, true + np.array([0.0, 0.3, 0.4]), "gait")
    assert both.at(0.0)[0][0] == pytest.approx(0.002) and both.at(9.0)[0][0] == pytest.approx(1.0)
    assert both.at(0.3011)[0][0] == pytest.approx(0.3), "never a sample that is still to come"
    assert both.speeds(0.1) == both.speeds(0.4) and both.speeds(0.1)[0] == pytest.approx(0.25, abs=0.01)
    assert both.speeds(0.6)[0] == pytest.approx(0.75, abs=0.01)


def test_the_verb_draws_an_estimate_beside_the_truth(
    drawable: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "walk.gif"
    words = ["sim", "--sensors", "twin", "--nominal", "--seed", "31", "--seconds", "0.4", "--render", str(path)]
    assert main([*words, "--estimate", "gait", "--speed", "1", "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["frames"] == 10 and 0.0 < rows["velocity_rmse"] < 0.1
    with Image.open(path) as gif:
        assert gif.info["duration"] == 40, "real time"
        last = np.asarray(gif.convert("RGB"))
    assert min(pixels(last, TRUE)[0], pixels(last, ESTIMATED)[0]) > 100, "the few colours of a GIF hold the arrows'"
    path.unlink()
    for more, sentence in {
        ("--estimate", "gate"): "unknown method 'gate': choose one of gait, ",
        ("--speed", "0"): "speed must lie between 0.05 and 4, got 0",
    }.items():
        assert main([*words, *more]) == 1
        error = capsys.readouterr().err
        assert sentence in error and error.count("\n") == 1
    assert main([*words[:-2], "--estimate", "gait"]) == 1
    assert "say where to draw with --render" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


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
    with pytest.raises(GaitError, match="MUJOCO_GL is 'osmesa', .*: run `apt-get install libosmesa6`, or unset"):
        find_backend()
    assert tried[2:] == ["osmesa"], "a choice that was made is not second-guessed"
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    with pytest.raises(GaitError, match="MUJOCO_GL is 'glfw', which needs a screen"):
        find_backend()


@pytest.mark.parametrize("error", ["AttributeError('no glGetError')", "ImportError('no EGL')", "OSError('no library')"])
@pytest.mark.parametrize("backend", render.INSTALL)
def test_a_backend_without_its_library_stops_drawing_and_nothing_else(backend: str, error: str, tmp_path: Path) -> None:
    # PyOpenGL throws what it likes where a library is missing; MuJoCo loads it as it is imported itself.
    (tmp_path / "OpenGL").mkdir()
    (tmp_path / "OpenGL/__init__.py").write_text(f"raise {error}")
    environment = {**os.environ, "MUJOCO_GL": backend, "PYTHONPATH": str(tmp_path)}
    environment.pop("PYOPENGL_PLATFORM", None)
    command = [sys.executable, "-m", "gait", "sim", "--terrain", "rubber", "--seconds", "0.2"]
    for words in (["--render", "x.png"], ["--out", "walk"]):
        done = subprocess.run(
            [*command, *words], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        if "--render" in words:
            assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
            assert f"run {render.INSTALL[backend]}, or unset MUJOCO_GL" in done.stderr
        else:
            assert done.returncode == 0 and "gait:" not in done.stderr, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"OpenGL", "walk"}


@pytest.mark.parametrize("backend", render.INSTALL)
def test_the_verb_draws_with_either_backend(backend: str, tmp_path: Path) -> None:
    needs.require(backend)
    environment = {**os.environ, "MUJOCO_GL": backend}
    environment.pop("PYOPENGL_PLATFORM", None)
    words = ["sim", "--gait", "pronk", "--terrain", "debris", "--seconds", "0.2", "--render", str(tmp_path / "x.png")]
    command = [sys.executable, "-m", "gait", *words]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert f"wrote {tmp_path / 'x.png'}" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"], "a picture records nothing else"
