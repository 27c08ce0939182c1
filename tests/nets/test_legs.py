"""gait-legs: its features are physics, its network is the same for every leg, and its training is honest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from net_samples import random_net
from synthetic import walking_log

from gait import Log, Robot
from gait.errors import GaitError
from gait.nets import architecture_of, load_model
from gait.nets.architecture import LegsArchitecture
from gait.nets.cost import folded_multiply_adds, multiply_adds
from gait.nets.features import (
    FOOT_ACCEL,
    FORCE,
    PER_LEG,
    POSITION,
    SHARED,
    VELOCITY,
    flipped,
    leg_features,
)
from gait.nets.legs import LegOutputs, LegsNet
from gait.train import checkpoint, loop, losses
from gait.train.config import TrainConfig
from gait.train.data import DataSet
from gait.train.faults import delayed
from gait.train.leg_trainer import legs_apart, legs_in_use, mirrored, stances_moved, velocities_moved
from gait.train.losses import carried_likelihood, carry, leg_likelihood, variances

GO1 = Robot.load("go1")
GENTLE: dict[str, Any] = {
    "network": "gait-legs", "iterations": 6, "l1_iterations": 3, "warmup": 2, "sequences": 4, "steps": 60,
    "validate_every": 3, "gyro_noise": 0.0, "accel_noise": 0.0, "faults": True,
}  # fmt: skip


def per_leg(features: np.ndarray, part: int) -> np.ndarray:
    """One part of the features of all legs (N, L, 3)."""
    return features[:, SHARED:].reshape(len(features), -1, PER_LEG)[..., part : part + 3]


@pytest.fixture(scope="module")
def walked() -> Log:
    return walking_log(1.5)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory, walked: Log) -> Path:
    folder = tmp_path_factory.mktemp("data") / "trot"
    folder.mkdir()
    rows = []
    for i in range(6):
        walked.slice(0.1 * i, 0.1 * i + 0.8).save(folder / f"episode_{i:05d}.npz")
        rows.append(json.dumps({"episode": i, "file": f"episode_{i:05d}.npz"}))
    (folder / "index.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "collection.json").write_text(json.dumps({"gait": "trot", "sensors": "exact"}))
    return folder


def legs_net(**values: Any) -> LegsNet:
    net = random_net("gait-legs", **values)
    assert isinstance(net, LegsNet)
    return net


def test_a_leg_that_stands_measures_the_velocity(walked: Log) -> None:
    error = np.linalg.norm(per_leg(leg_features(walked, GO1, delay=0.0), VELOCITY) - walked.vel_b[:, None], axis=2)
    assert walked.contact is not None
    assert error[walked.contact].max() < 0.01
    assert np.median(error[~walked.contact]) > 0.2


def test_late_joints_meet_the_turning_rate_of_their_own_moment(walked: Log) -> None:
    """A body that pitches: with the present rate the legs would seem to move it to and fro."""
    late = 0.005
    old = {name: delayed(getattr(walked, name), late, 0.002) for name in ("q", "dq", "tau")}
    gyro = walked.gyro + np.sin(30.0 * walked.t)[:, None] * [0.3, 2.0, 0.5]
    exact = leg_features(walked.replace(gyro=gyro), GO1, delay=0.0)
    found = leg_features(walked.replace(gyro=gyro, **old), GO1, delay=late)
    expected = delayed(exact, late, 0.002)
    error = np.abs(per_leg(found, VELOCITY) - per_leg(expected, VELOCITY))[10:]
    careless = leg_features(walked.replace(gyro=gyro, **old), GO1, delay=0.0)
    assert np.median(error) < 1e-3 < 0.02 < np.median(np.abs(per_leg(careless - expected, VELOCITY))[10:])
    assert (found[:, :3] == exact[:, :3]).all()


def test_foot_acceleration_is_how_fast_the_joints_change_a_foot(walked: Log) -> None:
    """Joints that stay where they are while their speed grows evenly."""
    ramp = np.linspace(0.0, 3.0, len(walked))[:, None] * np.linspace(-1.0, 1.0, 12)
    log = walked.replace(q=np.tile(walked.q[:1], (len(walked), 1)), dq=ramp, gyro=np.zeros_like(walked.gyro))
    features = leg_features(log, GO1)
    grown = -np.gradient(per_leg(features, VELOCITY), 0.002, axis=0)[50:-1]
    # What rolls is seen along x and y alone.
    np.testing.assert_allclose(per_leg(features, FOOT_ACCEL)[50:-1, :, 2], grown[..., 2], atol=1e-6)
    assert np.abs(grown[..., 2]).min() > 0.05


def test_the_ground_carries_the_robot(walked: Log) -> None:
    features = leg_features(walked, GO1)
    assert walked.contact is not None
    force = per_leg(features, FORCE)[50:, :, 2]
    standing, swinging = force[walked.contact[50:]], force[~walked.contact[50:]]
    assert np.median(standing) > 0.1 > abs(np.median(swinging))
    position = per_leg(features, POSITION)
    assert (position[..., 2] > -1.1).all() and (position[..., 2] < -0.3).all()


def test_forces_come_from_targets_where_torques_are_missing(walked: Log) -> None:
    bare = walked.replace(tau=None, q_des=walked.q + 0.05)
    force = per_leg(leg_features(bare, GO1), FORCE)
    assert np.isfinite(force).all() and np.abs(force).max() > 0.05
    with pytest.raises(GaitError, match="neither joint torques nor joint targets"):
        leg_features(walked.replace(tau=None), GO1)


def test_every_leg_is_treated_alike() -> None:
    net = legs_net()
    inputs = torch.randn(2, 20, net.architecture.num_features, generator=torch.Generator().manual_seed(1))
    own = inputs[..., SHARED:].reshape(2, 20, 4, PER_LEG)
    order = [2, 0, 3, 1]
    shuffled = torch.cat([inputs[..., :SHARED], own[:, :, order].flatten(2)], -1)
    a, b = net.legs(inputs), net.legs(shuffled)
    assert torch.allclose(a.velocity[:, :, order], b.velocity, atol=1e-5)
    assert torch.allclose(a.log_std[:, :, order], b.log_std, atol=1e-5)


def test_one_set_of_weights_serves_any_number_of_legs() -> None:
    four, six = legs_net(), legs_net(legs=6)
    six.load_state_dict(four.state_dict())
    alone = legs_net(head_width=0), legs_net(legs=6, head_width=0)
    alone[1].load_state_dict(alone[0].state_dict())
    inputs = torch.randn(1, 20, six.architecture.num_features, generator=torch.Generator().manual_seed(1))
    few = inputs[..., : SHARED + 4 * PER_LEG]
    # Without attention the legs that others lack change nothing.
    assert torch.allclose(alone[0].legs(few).velocity, alone[1].legs(inputs).velocity[:, :, :4], atol=1e-6)
    assert six.legs(inputs).velocity.shape == (1, 20, 6, 3)


def test_a_sequence_in_pieces_gives_the_same() -> None:
    net = legs_net()
    inputs = torch.randn(2, 40, net.architecture.num_features, generator=torch.Generator().manual_seed(1))
    whole = net.run(inputs)
    state, pieces = None, []
    for k in (slice(0, 3), slice(3, 10), slice(10, 40)):
        outputs = net.run(inputs[:, k], state)
        state = outputs.state
        pieces.append(outputs.velocity)
    assert torch.allclose(torch.cat(pieces, 1), whole.velocity, atol=1e-5)
    sparse = net.legs(inputs, steps=slice(2, None, 5))
    assert torch.allclose(sparse.log_std, net.legs(inputs).log_std[:, 2::5], atol=1e-5)


def test_a_leg_out_of_use_changes_nothing_for_the_others() -> None:
    net = legs_net()
    inputs = torch.randn(2, 20, net.architecture.num_features, generator=torch.Generator().manual_seed(1))
    used = torch.tensor([[True, False, True, True], [True, True, True, True]])
    broken = inputs.clone()
    broken[:, :, SHARED + PER_LEG : SHARED + 2 * PER_LEG] = 7.0
    a, b = net.legs(inputs, used=used), net.legs(broken, used=used)
    assert torch.equal(a.log_std[0, :, [0, 2, 3]], b.log_std[0, :, [0, 2, 3]])
    assert not torch.allclose(a.log_std[1, :, [0, 2, 3]], b.log_std[1, :, [0, 2, 3]])
    drawn = legs_in_use(np.ones((4000, 4), dtype=bool), 0.4, np.random.default_rng(0))
    assert drawn.any(1).all() and float(drawn.float().mean()) == pytest.approx(0.8, abs=0.03)


def test_the_mirror_changes_what_it_should(walked: Log) -> None:
    """The features of the mirrored walk, computed from mirrored sensors, are the flipped features."""
    features = leg_features(walked, GO1)
    swap = [GO1.leg_names.index(name) for name in ("FL", "FR", "RL", "RR")]
    order = [GO1.leg_names.index(name) for name in ("FR", "FL", "RR", "RL")]
    partner = [swap[order.index(i)] for i in range(4)]
    joints = np.concatenate([[3 * leg, 3 * leg + 1, 3 * leg + 2] for leg in partner])
    hip = np.tile([-1.0, 1.0, 1.0], 4)
    other = walked.replace(
        gyro=walked.gyro * [-1, 1, -1],
        accel=walked.accel * [1, -1, 1],
        q=walked.q[:, joints] * hip,
        dq=walked.dq[:, joints] * hip,
        tau=None if walked.tau is None else walked.tau[:, joints] * hip,
    )
    expected = leg_features(other, GO1)
    flip = np.where(flipped(4 * 4), -1.0, 1.0)
    own = (features * flip)[:, SHARED:].reshape(-1, 4, PER_LEG)[:, partner]
    off = np.abs(expected[:, SHARED:].reshape(-1, 4, PER_LEG) - own)
    assert off[..., :FORCE].max() < 1e-9 and off[..., FOOT_ACCEL:].max() < 1e-7
    assert np.abs(expected[:, :SHARED] - (features * flip)[:, :SHARED]).max() < 1e-12
    x, v = mirrored(torch.ones(8, 2, 54), torch.ones(8, 2, 3), np.random.default_rng(0))
    assert set(v[..., 1].ravel().tolist()) == {-1.0, 1.0} and (v[..., [0, 2]] == 1.0).all()
    assert (x[..., 4] == v[..., 1]).all()


def outputs_of(error: torch.Tensor, log_std: float) -> LegOutputs:
    return LegOutputs(
        error[:, :, None], torch.full((*error.shape[:2], 1, 3), log_std), torch.zeros(*error.shape[:2], 1, 3), None
    )


def test_the_filter_punishes_trust_in_errors_that_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """White errors may be claimed at their size, or at half of it, since the gate inflates the larger ones; errors that
    stay must be claimed far larger."""
    monkeypatch.setattr(losses, "DRIFT", (0.03, 0.03))
    rng = np.random.default_rng(0)
    white = torch.from_numpy(rng.normal(0.0, 0.1, (64, 400, 3)).astype(np.float32))
    lasting = white[:, :1].expand_as(white)
    truth = torch.zeros(64, 400, 3)

    def best(error: torch.Tensor) -> float:
        def loss(log_std: float) -> float:
            used = torch.ones(64, 1).bool()
            carried = carry(outputs_of(error, log_std), truth, truth, used, 0.002, 1, np.random.default_rng(1))
            return float(carried_likelihood(carried))

        return float(min(np.arange(-4.0, 3.0, 0.25), key=loss))

    assert best(white) == pytest.approx(np.log(0.1), abs=0.7)
    assert best(lasting) > np.log(0.1) + 1.0


def test_likelihood_of_a_leg_is_least_at_its_error() -> None:
    error = torch.from_numpy(np.random.default_rng(0).normal(0.0, 0.05, (4, 500, 3)).astype(np.float32))
    truth, used = torch.zeros(4, 500, 3), torch.ones(4, 1).bool()
    losses = {u: float(leg_likelihood(outputs_of(error, u), truth, used)) for u in np.arange(-4, 2, 0.25)}
    assert min(losses, key=lambda u: losses[u]) == pytest.approx(np.log(14.0 * 0.05), abs=0.25)


def test_a_leg_whose_foot_accelerates_has_a_larger_variance() -> None:
    """As in use: 4 ms of change in a sample, seven times that in what lasts."""
    calm = outputs_of(torch.zeros(1, 5, 3), -3.0)
    hasty = calm._replace(foot_accel=torch.full_like(calm.foot_accel, 10.0))
    grown = torch.sqrt(variances(hasty) - variances(calm))
    assert torch.allclose(grown, torch.tensor(7.0 * 0.004 * 10.0))


def test_it_trains_resumes_and_is_written(collection: Path, tmp_path: Path) -> None:
    config = TrainConfig(**GENTLE, data=(str(collection),))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = loop.train(config, tmp_path / "a")
    source = loop.open_source(config)
    trainer = loop.trainer_of(config)(config, source)
    for _ in range(4):
        trainer.iterate()
        if len(trainer.history) == 3:
            trainer.validate()
    checkpoint.save_checkpoint(tmp_path / "b/checkpoint.safetensors", trainer)
    resumed = loop.train(config, tmp_path / "b", resume=True)
    assert all((whole.weights[name] == resumed.weights[name]).all() for name in whole.weights)
    model = load_model(tmp_path / "a/model.safetensors")
    assert isinstance(model.architecture, LegsArchitecture) and model.results["validation_velocity_rmse"] > 0.0
    assert model.weights["mean"].shape == (15,)


def test_it_learns_which_legs_are_informative(collection: Path) -> None:
    settings = {**GENTLE, "iterations": 120, "l1_iterations": 90, "warmup": 5, "learning_rate": 3e-3, "sequences": 8}
    config = TrainConfig(**{**settings, "steps": 120, "faults": False}, data=(str(collection),))
    source = loop.open_source(config)
    trainer = loop.trainer_of(config)(config, source)
    losses = [trainer.iterate()["loss"] for _ in range(120)]
    assert np.mean(losses[80:90]) < np.mean(losses[:5]) - 1.0
    assert isinstance(source, DataSet) and isinstance(trainer.net, LegsNet)
    episode = source.validation[0]
    with torch.no_grad():
        log_std = trainer.net.legs(torch.from_numpy(episode.features[None])).log_std[0].mean(-1).numpy()
    contact = episode.contact > 0.5
    assert log_std[contact].mean() < log_std[~contact].mean() - 1.0


def test_episodes_can_be_capped_and_fresh_rollouts_are_refused(collection: Path) -> None:
    config = TrainConfig(**GENTLE, data=(str(collection),), episodes=3)
    source = loop.open_source(config)
    assert len(source.training) + len(source.validation) == 3
    with pytest.raises(GaitError, match="data set"):
        TrainConfig(network="gait-legs", fresh=True)


def test_cost_is_counted() -> None:
    a = architecture_of({"kind": "gait-legs", "correction": True})
    by_hand = 4 * (7 * 15 * 64 + 64 * 64 + 3 * 64 * 32 + 2 * 4 * 32 + 96 * 64 + 64 * 4)
    assert multiply_adds(a) == by_hand
    assert folded_multiply_adds(a) == by_hand - 3 * 7 * 6 * 64


def test_legs_of_other_moments_keep_their_errors() -> None:
    """Each leg is as wrong as it was at its own moment, the others are not, and the IMU stays."""
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.normal(size=(6, 40, SHARED + 4 * PER_LEG)).astype(np.float32))
    velocity = torch.from_numpy(rng.normal(size=(6, 40, 3)).astype(np.float32))
    moved = legs_apart(features, velocity, 0.5, np.random.default_rng(1))
    still = [bool(torch.allclose(a, b, atol=1e-6)) for a, b in zip(features, moved, strict=True)]
    assert 0 < sum(still) < 6 and torch.equal(moved[..., :SHARED], features[..., :SHARED])

    def parts(values: torch.Tensor) -> torch.Tensor:
        own = values[..., SHARED:].reshape(6, 40, 4, PER_LEG)
        errors = own[..., VELOCITY : VELOCITY + 3] - velocity[:, :, None]
        return torch.cat([errors, own[..., :VELOCITY], own[..., FORCE:]], -1)

    before, after = parts(features), parts(moved)
    for k in range(6):
        for leg in range(4):
            offsets = [
                j for j in range(40) if torch.allclose(after[k, :, leg], before[k, :, leg].roll(-j, 0), atol=1e-5)
            ]
            assert len(offsets) == 1
    assert torch.equal(legs_apart(features, velocity, 0.0, rng), features)


def test_stances_are_moved_as_a_whole() -> None:
    """Where feet stand changes by the same in all samples of a sequence, and nothing else does."""
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.normal(size=(50, 9, SHARED + 4 * PER_LEG)).astype(np.float32))
    before = features.clone()
    moved = stances_moved(features, 0.1, np.random.default_rng(1))
    own = (moved - features)[..., SHARED:].reshape(50, 9, 4, PER_LEG)
    shift = own[..., :VELOCITY]
    assert torch.equal(features, before) and torch.equal(moved[..., :SHARED], features[..., :SHARED])
    assert torch.equal(own[..., VELOCITY:], torch.zeros_like(own[..., VELOCITY:]))
    assert torch.allclose(shift, shift[:, :1].expand_as(shift), atol=1e-6)
    common = shift[:, 0].mean(1)
    assert 0.08 < float(common.std()) < 0.12 and 0.02 < float((shift[:, 0] - common[:, None]).std()) < 0.04
    assert torch.equal(stances_moved(features, 0.0, rng), features)


def test_velocities_are_moved_with_ground_truth() -> None:
    """By one velocity along the ground for a sequence: the error of each leg stays what it was, and all else too."""
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.normal(size=(200, 5, SHARED + 4 * PER_LEG)).astype(np.float32))
    velocity = torch.from_numpy(rng.normal(size=(200, 5, 3)).astype(np.float32))
    moved, truth = velocities_moved(features, velocity, 0.3, np.random.default_rng(1))
    shift = truth - velocity
    own = (moved - features)[..., SHARED:].reshape(200, 5, 4, PER_LEG)
    assert torch.allclose(shift, shift[:, :1].expand_as(shift), atol=1e-6) and not shift[..., 2].any()
    assert 0.25 < float(shift[:, 0, :2].std()) < 0.35
    assert torch.allclose(own[..., VELOCITY:FORCE], shift[:, :, None].expand(-1, -1, 4, -1), atol=1e-6)
    assert not own[..., :VELOCITY].any() and not own[..., FORCE:].any()
    assert torch.equal(moved[..., :SHARED], features[..., :SHARED])
    assert velocities_moved(features, velocity, 0.0, rng)[0] is features
