"""The light install: numpy, numba, safetensors, tyro, rich and PyYAML are enough to import and to estimate."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = [
    "torch",
    "mujoco",
    "daqp",
    "matplotlib",
    "scipy",
    "pandas",
    "PIL",
    "gtsam",
    "evo",
    "onnx",
    "onnxruntime",
    "numba",
    "llvmlite",
]


@pytest.fixture(scope="module")
def base_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has the base install alone; `make test` prepares one, otherwise it is made here."""
    if ready := os.environ.get("GAIT_BASE_PYTHON"):
        return str((ROOT / ready).absolute())
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    pip = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "-e", ROOT]
    subprocess.run(pip, check=True, capture_output=True)
    return str(python)


def test_nothing_heavy_is_installed(base_python: str) -> None:
    code = f"import importlib.util as u; print([m for m in {HEAVY} if u.find_spec(m)])"
    done = subprocess.run([base_python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_base_imports_and_estimates(base_python: str) -> None:
    code = """
import numpy as np, gait
from gait.invariant_ekf import InvariantEKF
from gait.samples import SAMPLE
robot = gait.Robot.load("go1")
assert robot.feet(robot.q_stand).shape == (4, 3)
ekf = InvariantEKF()
ekf.reset_from_gravity(np.array([0.0, 0.0, 9.81]))
for _ in range(100):
    assert ekf.step(np.zeros(3), np.array([0.5, 0.0, 9.81]), 0.002, np.zeros(3), np.eye(3))
assert np.isfinite(ekf.cov).all()
estimator = gait.Estimator.load("go1")
for row in gait.open_log(SAMPLE).slice(None, 0.4).rows():
    state = estimator.update(row)
assert np.isfinite(state.vel_b).all() and state.health.ok, state
print("fine")
"""
    done = subprocess.run([base_python, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr


def test_the_command_line_runs_and_names_the_extra_it_lacks(base_python: str) -> None:
    done = subprocess.run([base_python, "-m", "gait", "info"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # The checkout is where gait came from, and no index has it.
    hint = f"pip install -e '{ROOT}[sim]'"
    for words in (["sim", "--out", "nowhere"], ["bench", "sim", "--quick"], ["bench", "tables", "--quick"]):
        done = subprocess.run([base_python, "-m", "gait", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert hint in done.stderr, words
        assert len(done.stderr.strip().splitlines()) == 1
