"""`gait export --format c` of `gait-legs`: networks of any size, on robots that are described and not built in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
import yaml
from c_export import Exported, differences, expected_of, rows_of, start_of
from golden.cases import inputs_of
from golden.inputs import Inputs
from net_samples import random_model

import gait
from gait import Estimator, Robot
from gait.cli import main
from gait.nets import Model

pytestmark = needs.gcc
VARIANTS: list[dict[str, Any]] = [
    {"correction": True},
    {"head_width": 0},
    {"targets": False, "position": False},
    {"frames": 3, "stride": 3, "hidden": 10, "mlp": 100, "heads": 1, "head_width": 40},
]


def same_bits(model: Model, inputs: Inputs, robot: Robot, folder: Path) -> None:
    exported = Exported(model, folder, robot)
    expected = expected_of(Estimator.load(robot, model), inputs)
    found = differences(exported.run(rows_of(inputs), start_of(inputs)), expected)
    assert not any(found.values()), found


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_c_of_any_size_is_the_estimator(variant: dict[str, Any], tmp_path: Path) -> None:
    same_bits(random_model("gait-legs", **variant), inputs_of("dead_leg_returns"), Robot.load("go1"), tmp_path / "c")


def test_c_runs_on_a_robot_with_two_legs(tmp_path: Path) -> None:
    tree = yaml.safe_load((Path(gait.__file__).parent / "robot/go1.yaml").read_text())
    tree["legs"] = {name: tree["legs"][name] for name in ("FR", "RL")}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump({**tree, "name": "two"}, sort_keys=False))
    inputs = inputs_of("dead_leg_returns")
    for name in ("q", "dq", "q_des", "tau"):
        inputs.values[name] = np.ascontiguousarray(inputs.values[name][:, [0, 1, 2, 9, 10, 11]])
    inputs.values["contact"] = inputs.values["contact"][:, [0, 3]]
    same_bits(random_model("gait-legs"), inputs, Robot.load(tmp_path / "two.yaml"), tmp_path / "c")


def test_the_verb_takes_methods_and_robots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "gait-legs", "--format", "c", "--out", str(tmp_path / "legs")]
    assert main(words) == 0 and main([*words[:-1], str(tmp_path / "other"), "--robot", "go2"]) == 0
    assert "gait-legs" in capsys.readouterr().out
    assert "of go2" in (tmp_path / "other.h").read_text().splitlines()[0]
    weights, other = ((tmp_path / name).read_text() for name in ("legs.c", "other.c"))
    assert weights.replace("legs", "other") != other
    assert main(["export", "iekf", "--format", "c", "--robot", "go2", "--out", str(tmp_path / "iekf")]) == 0
    assert "iekf of go2" in (tmp_path / "iekf.h").read_text()
