"""Robots with different numbers of legs in one training of `gait-legs`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_samples import smooth, write_collection

from gait import Log, Robot
from gait.errors import GaitError
from gait.nets import load_model
from gait.nets.architecture import architecture_of
from gait.nets.features import PER_LEG, SHARED
from gait.nets.legs import LegsNet
from gait.train import loop
from gait.train.config import TrainConfig
from gait.train.data import DataSet, leg_normaliser, padded, read_collection, read_episodes
from gait.train.leg_trainer import legs_in_use

G1 = Robot.load("g1")
QUICK: dict[str, Any] = {
    "network": "gait-legs", "iterations": 4, "l1_iterations": 2, "warmup": 1, "sequences": 4, "steps": 60,
    "validate_every": 2, "gyro_noise": 0.0, "accel_noise": 0.0, "faults": True,
}  # fmt: skip


def biped_log(seed: int, rows: int = 300) -> Log:
    rng = np.random.default_rng(seed)
    return Log(
        t=np.arange(rows) / 500.0,
        gyro=0.1 * smooth(rng, 3, rows),
        accel=[0.0, 0.0, 9.81] + 0.5 * smooth(rng, 3, rows),
        q=G1.q_stand + 0.1 * smooth(rng, 12, rows),
        dq=0.3 * smooth(rng, 12, rows),
        tau=5.0 * smooth(rng, 12, rows),
        pos_w=np.zeros((rows, 3)),
        quat_wb_wxyz=np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1)),
        vel_w=0.1 * smooth(rng, 3, rows),
        robot="g1",
        leg_names=G1.leg_names,
        joint_names=G1.joint_names,
    )


def write_bipeds(folder: Path, episodes: int = 4) -> Path:
    folder.mkdir()
    for i in range(episodes):
        biped_log(i).save(folder / f"episode_{i:05d}.npz")
    rows = (json.dumps({"episode": i, "file": f"episode_{i:05d}.npz"}) for i in range(episodes))
    (folder / "index.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "collection.json").write_text(json.dumps({"gait": "policy", "sensors": "exact"}))
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A collection of bipeds and one of quadrupeds."""
    folder = tmp_path_factory.mktemp("data")
    return str(write_bipeds(folder / "two")), str(write_collection(folder / "four", episodes=4))


def episodes_of(folder: str, legs: int) -> list[Any]:
    paths, _ = read_collection(folder)
    return read_episodes(paths, architecture_of({"kind": "gait-legs", "legs": legs}), [None] * len(paths))[0]


def test_missing_legs_are_padding(both: tuple[str, str]) -> None:
    own, wide = episodes_of(both[0], 2), episodes_of(both[0], 4)
    for two, four in zip(own, wide, strict=True):
        assert four.features.shape == (300, SHARED + 4 * PER_LEG)
        assert (four.features[:, : two.features.shape[1]] == two.features).all()
        assert (four.present == [True, True, False, False]).all() and not four.contact[:, 2:].any()
        assert (four.velocity == two.velocity).all() and padded(four, 4) is four
    with pytest.raises(GaitError, match="4 legs"):
        episodes_of(both[1], 2)


def test_padding_does_not_enter_the_normaliser(both: tuple[str, str]) -> None:
    four, two = (architecture_of({"kind": "gait-legs", "legs": legs}) for legs in (4, 2))
    wide, own = leg_normaliser(episodes_of(both[0], 4), four), leg_normaliser(episodes_of(both[0], 2), two)
    assert (np.array(wide) == np.array(own)).all()


def test_padding_changes_no_leg_of_the_robot(both: tuple[str, str]) -> None:
    """Outputs, loss and gradient of a padded biped are those of a network with two legs."""
    wide, own = (torch.from_numpy(episodes_of(both[0], legs)[0].features[None]).double() for legs in (4, 2))
    four = LegsNet(architecture_of({"kind": "gait-legs", "legs": 4}), np.zeros(15), np.ones(15)).double()
    two = LegsNet(architecture_of({"kind": "gait-legs", "legs": 2}), np.zeros(15), np.ones(15)).double()
    two.load_state_dict(four.state_dict())
    used = torch.tensor([[True, True, False, False]])
    a, b = four.legs(wide, used=used), two.legs(own)
    assert torch.allclose(a.log_std[:, :, :2], b.log_std, rtol=1e-12)
    (a.log_std * used[:, None, :, None]).sum().backward()
    b.log_std.sum().backward()
    for x, y in zip(four.parameters(), two.parameters(), strict=True):
        assert x.grad is not None and y.grad is not None
        assert torch.allclose(x.grad, y.grad, rtol=1e-9, atol=1e-9)


def test_hidden_legs_are_drawn_among_those_present() -> None:
    present = np.tile([True, True, False, False], (4000, 1))
    drawn = legs_in_use(present, 0.4, np.random.default_rng(0)).numpy()
    assert not drawn[:, 2:].any() and drawn.any(1).all()
    # Half of the sequences hide each leg with 0.4; where both would be hidden, none is.
    assert drawn[:, :2].mean() == pytest.approx(1.0 - 0.5 * (0.4 - 0.16), abs=0.02)
    assert (legs_in_use(present, 0.0, np.random.default_rng(0)).numpy() == present).all()


@pytest.mark.parametrize("memory", [0, 20])
def test_bipeds_and_quadrupeds_train_one_network(both: tuple[str, str], tmp_path: Path, memory: int) -> None:
    config = TrainConfig(**QUICK, data=both, memory=memory, hidden_legs=0.4, legs_apart=0.5)
    model = loop.train(config, tmp_path)
    assert model.architecture.legs == 4 and model.robot == "go1" and len(model.leg_names) == 4
    assert np.isfinite(model.results["validation_velocity_rmse"])
    assert load_model(tmp_path / "model.safetensors").for_robot(G1).architecture.legs == 2


def test_the_score_of_bipeds_is_that_of_their_legs(both: tuple[str, str]) -> None:
    """Validation of padded bipeds alone equals that of a training with two legs."""
    scores, weights = [], None
    for data in (both[:1], both):
        config = TrainConfig(**{**QUICK, "faults": False}, data=data, validation_episodes=2)
        source = loop.open_source(config)
        assert isinstance(source, DataSet)
        trainer = loop.trainer_of(config)(config, source)
        source.validation = source.validation[:1]
        weights = weights or trainer.net.state_dict()
        trainer.net.load_state_dict(weights)
        scores.append(trainer.score())
    assert scores[0].norm == pytest.approx(scores[1].norm, rel=1e-5)


def test_one_robot_at_one_rate_is_still_asked_of_the_others(both: tuple[str, str]) -> None:
    with pytest.raises(GaitError, match="another robot or rate"):
        loop.open_source(replace(TrainConfig(**QUICK, data=(both[1], both[0])), network="gait", faults=False))
