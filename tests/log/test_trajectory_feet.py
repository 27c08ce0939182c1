"""Feet and ground in a Trajectory: from an estimator, in files and back, with what nothing tells left open."""

from pathlib import Path

import numpy as np
import pytest
from log_samples import make_trajectory

from gait import Estimator, Log, Trajectory
from gait.errors import GaitError
from gait.samples import SAMPLE

FEET = ("contact", "slip", "foot_force", "foot_pos_w", "ground_height", "ground_slope")


@pytest.fixture(scope="module")
def log() -> Log:
    log = Log.load(SAMPLE)
    return log.slice(t1=float(log.t[0]) + 0.6)


def test_a_run_with_feet_has_them_and_another_has_not(log: Log) -> None:
    found, states = Estimator.load("go1", feet=True).run_with_details(log)
    assert found.leg_names == ("FR", "FL", "RR", "RL")
    for name in FEET:
        assert np.array_equal(getattr(found, name), getattr(states, name), equal_nan=True), name
    assert found.foot_pos_w is not None and found.foot_pos_w.shape == (len(log), 4, 3)
    # Four centimetres: the feet are where forward kinematics has them, and the ground is below.
    height = found.foot_pos_w[-1, :, 2].min() - found.ground_height[-1]
    assert 0.0 < height < 0.04
    # Of a long log a second copy would be large.
    assert np.shares_memory(found.pose_cov, states.pose_cov)
    without = Estimator.load("go1").run(log)
    assert all(getattr(without, name) is None for name in FEET) and without.leg_names == ()
    assert np.array_equal(without.vel_w, found.vel_w), "they change no number"


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_feet_come_back_from_a_file(log: Log, tmp_path: Path, suffix: str) -> None:
    blind = log.replace(tau=None, q_des=None)
    for i, one in enumerate((log, blind)):
        found = Estimator.load("go1", feet=True).run(one)
        path = tmp_path / f"walk{i}{suffix}"
        found.save(path)
        again = Trajectory.load(path)
        assert again == found and again.leg_names == found.leg_names
    assert np.isnan(again.contact).all() and np.isfinite(again.foot_pos_w).all(), "nothing tells forces"


def test_a_table_without_a_header_names_its_legs(log: Log, tmp_path: Path) -> None:
    found = Estimator.load("go1", feet=True).run(log)
    path = tmp_path / "walk.csv"
    found.save(path)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[1:]), encoding="utf-8")
    again = Trajectory.load(path)
    assert again.leg_names == found.leg_names and np.array_equal(again.slip, found.slip)


def test_the_rest_still_has_to_be_finite() -> None:
    with pytest.raises(GaitError, match="field vel_w is nan"):
        make_trajectory(vel_w=np.full_like(make_trajectory().vel_w, np.nan))
    with pytest.raises(GaitError, match="one per leg name"):
        make_trajectory(slip=np.zeros((len(make_trajectory()), 4)))
