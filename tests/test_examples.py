"""The examples run as they stand, and show what they promise."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import needs
import numpy as np
import pytest
from PIL import Image
from policies import write_policy

import gait
from gait import Estimator, Log
from gait.commands.demo import SAMPLE
from gait.sim.policy.observation import read_policy_config
from gait.sim.policy.observer import Observer, Seen, rotation

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
MJLAB = ("mjlab==1.6.0", "torch==2.13.0", "safetensors")
"""What the example for mjlab needs. mjlab pins another MuJoCo than ours, so it has an environment of its own."""


@pytest.fixture
def short(tmp_path: Path) -> Path:
    Log.load(SAMPLE).slice(t1=6.0).save(tmp_path / "short.npz")
    return tmp_path / "short.npz"


def run(monkeypatch: pytest.MonkeyPatch, name: str, *words: object) -> dict[str, object]:
    """Run an example as `python examples/NAME WORDS` does; what it defines."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    return runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_estimate_a_log_prints_the_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(monkeypatch, "estimate_a_log.py")
    text = capsys.readouterr().out
    assert "Log(go1, 10000 rows, 500 Hz" in text
    error, drift = (float(re.search(rf"{name} +([0-9.]+) m", text)[1]) for name in ("velocity error", "position drift"))
    assert 0.0 < error < 0.05 and 0.0 < drift < 0.3


def test_estimate_a_log_takes_any_log(
    short: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Log.load(short).replace(pos_w=None, vel_w=None, quat_wb_wxyz=None).save(short)
    run(monkeypatch, "estimate_a_log.py", short)
    text = capsys.readouterr().out
    assert "speed" in text and "error" not in text, "without truth there is an estimate, and no error"
    with pytest.raises(SystemExit, match="there is no file"):
        run(monkeypatch, "estimate_a_log.py", "none.npz")


def test_policy_observation_holds_the_velocity_and_gravity(
    short: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = run(monkeypatch, "policy_observation.py", short)
    text = capsys.readouterr().out
    assert "starting" in text and re.search(r"time a cycle +median \d+ us", text)
    log, observer = Log.load(short), parts["Observer"]()
    for sample in log.rows():
        observation, state = observer(sample, np.array([0.5, 0.0, 0.1]), np.full(12, 0.3))
    assert observation.shape == (48,) and np.isfinite(observation).all()
    np.testing.assert_allclose(observation[:3] / 2.0, log.vel_b[-1], atol=0.1)
    np.testing.assert_allclose(observation[6:9], -state.R_wb.T @ [0.0, 0.0, 1.0])
    assert observation[8] < -0.95, "gravity points down"
    np.testing.assert_allclose(observation[9:12], [1.0, 0.0, 0.025])
    assert (observation[36:] == 0.3).all()


def test_attention_plot_draws_a_line_and_shades_contacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "attention_plot.py", tmp_path / "a.png")
    assert f"wrote {tmp_path / 'a.png'}" in capsys.readouterr().out
    with Image.open(tmp_path / "a.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert ((pixels[..., 2] - pixels[..., 0]) > 120).sum() > 1000, "blue lines"
    shade = (np.abs(pixels - round(0.88 * 255)) < 4).all(axis=2).mean()
    assert 0.2 < shade < 0.7, "a trotting foot is on the ground for half of the time"
    with pytest.raises(SystemExit, match="usage: python examples/attention_plot.py OUT.png"):
        run(monkeypatch, "attention_plot.py")


def test_gymnasium_observes_the_estimate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    gymnasium = needs.package("gymnasium")
    parts = run(monkeypatch, "rl_gymnasium.py", 25)
    error = float(re.search(r"4 robots, 25 steps: velocity error median ([0-9.]+) m/s", capsys.readouterr().out)[1])
    assert 0.0 < error < 0.05

    class Short(parts["Go1Env"]):  # type: ignore[misc,name-defined]
        """One of the robots falls in every third step."""

        def reset(self, *, seed: int | None = None, options: object = None) -> object:
            self.left = 3 if seed == 0 else 1000
            return super().reset(seed=seed)

        def step(self, action: np.ndarray) -> object:
            self.left -= 1
            observation, reward, _, _, info = super().step(action)
            return observation, reward, self.left == 0, False, info

    env = parts["EstimatedVelocity"](gymnasium.vector.SyncVectorEnv([Short, Short]))
    alone, t = Estimator.load("go1"), 0.0
    observation, info = env.reset(seed=[0, 1])
    for k in range(6):
        if k:
            observation, _, over, _, info = env.step(np.full((2, 12), 0.1 * (-1) ** k, dtype=np.float32))
            assert over.tolist() == [k == 3, False]
        if k == 4:
            alone = Estimator.load("go1")  # its episode was over one step before: gymnasium has reset it now
        for i in range(10):
            t += 0.002
            state = alone.update(t, **{name: info[name][0, i] for name in parts["FIELDS"]})
        np.testing.assert_allclose(observation[0, :3], state.vel_b, atol=1e-6)
        np.testing.assert_allclose(observation[0, 3:6], -state.R_wb[2], atol=1e-6)
    assert observation.shape == env.observation_space.shape == (2, 30)


@pytest.fixture(scope="module")
def mjlab() -> Path:
    """Python of an environment with mjlab, made once and kept beside the checkout's other caches."""
    folder = ROOT / ".cache/mjlab"
    python = folder / "bin/python"
    if not (folder / "ready").is_file():
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
            command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *MJLAB]
            subprocess.run(command, check=True, capture_output=True, timeout=3000)
        except (OSError, subprocess.SubprocessError):
            needs.lacking("mjlab", f"pip install {MJLAB[0]} must work on this machine")
        (folder / "ready").touch()
    return python


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_mjlab_observes_the_estimate(mjlab: Path) -> None:
    """In miniature: 16 robots for 40 steps of 20 ms, most of which is compilation."""
    command = [mjlab, ROOT / "tests/mjlab_driver.py", EXAMPLES / "rl_mjlab.py", "40"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["envs"] == 16 and found["same"] and 0.0 < found["median"] < 0.1


def test_the_example_for_mjlab_is_short() -> None:
    assert len((EXAMPLES / "rl_mjlab.py").read_text(encoding="utf-8").splitlines()) <= 40


def test_deploy_policy_reads_what_the_simulated_policy_reads(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = write_policy(tmp_path / "hold.onnx", np.zeros((48, 12)), np.full(12, 0.2))
    parts = run(monkeypatch, "deploy_policy.py", policy, short)
    assert "last targets" in capsys.readouterr().out
    log, seen = Log.load(short), []
    shuffled = list(reversed(log.joint_names))
    deployment = parts["Deployment"](lambda observation: seen.append(observation) or np.full(12, 0.2), shuffled)
    command = np.array([0.3, -0.1, 0.2])
    for sample in log.rows():
        targets = deployment.step(*sample[:3], sample.q[::-1], sample.dq[::-1], sample.tau[::-1], command)
        if deployment.count % 10 == 1:
            at_policy = sample, deployment.state
    assert len(seen) in range(len(log) // 10 - 40, len(log) // 10 + 1), "50 Hz, once the estimate has started"
    np.testing.assert_allclose(targets, deployment.pose[::-1] + 0.1)
    # The observer of the simulator is an implementation of its own.
    config = read_policy_config(Path(gait.__file__).parent / "sim/policy/go1.yaml")
    (sample, state), robot = at_policy, deployment.robot
    observer = Observer(config, deployment.pose, robot.imu_position, rotation(robot.imu_quat_wxyz))
    omega_b = rotation(robot.imu_quat_wxyz) @ (sample.gyro - state.gyro_bias)
    same = Seen(sample.q, sample.dq, state.R_wb, state.vel_w, omega_b, command, np.full(12, 0.2), 0.0)
    np.testing.assert_allclose(seen[-1], observer(same), atol=1e-6)


def test_deploy_policy_stands_while_the_estimate_is_of_no_use(monkeypatch: pytest.MonkeyPatch, short: Path) -> None:
    parts, log = run(monkeypatch, "deploy_policy.py"), Log.load(short)
    deployment = parts["Deployment"](lambda _: np.ones(12), log.joint_names)
    rows = list(log.rows())
    for sample in rows[:500]:
        deployment.step(*sample[:5], sample.tau, np.zeros(3))
    assert (deployment.action == 1.0).all()
    for sample in rows[500:520]:
        deployment.step(sample.t, np.full(3, np.nan), *sample[2:5], sample.tau, np.zeros(3))
    np.testing.assert_array_equal(deployment.targets, deployment.pose)
    assert "gyro not finite" in str(deployment.state.health)


@pytest.mark.parametrize("name", ["estimate_a_log.py", "policy_observation.py", "deploy_policy.py"])
def test_an_example_that_needs_no_extras_imports_none(name: str) -> None:
    tree = ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.split(".")[0] for name in modules} <= {"gait", "numpy", *sys.stdlib_module_names}


def test_every_example_is_tested() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.name}"' in text for path in EXAMPLES.glob("*.py"))
