"""Training: it learns, it resumes to the same bits, and its data are what they should be."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from net_samples import random_net
from policies import write_go1, write_observation, write_policy, write_table
from training_samples import ROWS, TINY, made_up_log, write_collection

from gait.cli import main
from gait.errors import GaitError
from gait.nets import architecture_of, load_model
from gait.nets.base import Outputs
from gait.nets.build import weights_of
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig
from gait.sim.settings import PolicyFiles
from gait.train import loop
from gait.train.config import TrainConfig, config_of, read_config, write_config
from gait.train.data import DataSet, Episode, noisy, normaliser
from gait.train.losses import loss_of, mean_absolute, negative_log_likelihood
from gait.train.rollouts import Rollouts, rollout
from gait.train.validate import evaluate_model, predict, score_of


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("data") / "trot")


def tiny(collection: Path, **changes: Any) -> TrainConfig:
    return TrainConfig(**{**TINY, "data": (str(collection),), **changes})


def run(config: TrainConfig, out: Path, **options: Any) -> dict[str, np.ndarray]:
    out.mkdir(exist_ok=True)
    return dict(loop.train(config, out, **options).weights)


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


@pytest.mark.parametrize("network", ["gait", "gait-flat", "nmn"])
def test_it_learns(network: str, collection: Path) -> None:
    settings = {"iterations": 40, "l1_iterations": 30, "sequences": 8, "steps": 50, "learning_rate": 3e-3, "warmup": 5}
    config = tiny(collection, network=network, contact_weight=0.0, **settings)
    source = loop.open_source(config)
    trainer = loop.Trainer(config, source)
    losses = np.array([trainer.iterate()["loss"] for _ in range(40)])
    assert losses[25:30].mean() < 0.75 * losses[:3].mean()
    # The second stage starts with a standard deviation that is a guess, and then learns it.
    assert losses[-3:].mean() < losses[30] - 0.5
    model = trainer.model()
    assert model.rate == 500.0 and model.robot == "go1" and model.training == config.as_dict()
    assert model.data[0]["gait"] == "trot" and len(model.data[0]["index_sha256"]) == 64


def test_a_run_leaves_its_files(collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny(collection)
    write_config(config, tmp_path / "tiny.yaml")
    words = ["train", "--config", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "run"), "--json"]
    assert main([*words, "--seed", "3"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["iterations"] == 6 and rows["validation_velocity_rmse"] > 0.0
    names = sorted(path.name.split(".")[0] for path in (tmp_path / "run").iterdir())
    assert names == ["checkpoint", "config", "curves", "curves", "events", "model"]
    assert config_of(read_config(tmp_path / "run/config.yaml"), "") == tiny(collection, seed=3)
    assert load_model(tmp_path / "run/model.safetensors").training["seed"] == 3
    assert (tmp_path / "run/curves.png").read_bytes().startswith(b"\x89PNG")
    events = next((tmp_path / "run").glob("events*")).read_bytes()
    assert b"validation/velocity_rmse" in events and b"training/loss" in events
    assert main(words) == 1
    assert "--resume" in capsys.readouterr().err


def test_a_training_can_go_on_from_a_model(collection: Path, tmp_path: Path) -> None:
    config = tiny(collection)
    first = run(config, tmp_path / "first")
    model = str(tmp_path / "first/model.safetensors")
    source = loop.open_source(config)
    began = weights_of(loop.Trainer(replace(config, init=model), source).net)
    assert same(began, first)
    after = run(replace(config, init=model), tmp_path / "second")
    assert not same(after, first) and np.array_equal(after["mean"], first["mean"])
    with pytest.raises(GaitError, match="is not the network that is to be trained"):
        loop.Trainer(replace(config, init=model, targets=False), source)


def test_the_same_seed_gives_the_same_weights(collection: Path, tmp_path: Path) -> None:
    one, two = (run(tiny(collection), tmp_path / name) for name in "ab")
    other = run(tiny(collection, seed=1), tmp_path / "c")
    assert same(one, two) and not same(one, other)


KILLED = """
import os, signal, sys
from pathlib import Path
from gait.train import loop
from gait.train.config import config_of, read_config
folder = Path(sys.argv[1])
keep = loop.save_checkpoint
# A checkpoint after iteration 4 only, as if two minutes had passed then; the work of the fifth is lost.
loop.save_checkpoint = lambda path, trainer: keep(path, trainer) if len(trainer.history) == 4 else None
def die(progress):
    if progress.iteration == 5:
        os.kill(os.getpid(), signal.SIGKILL)
loop.train(config_of(read_config(folder / "config.yaml"), ""), folder, checkpoint_seconds=0.0, on_progress=die)
"""


def test_a_killed_training_resumes_to_the_same_bits(collection: Path, tmp_path: Path) -> None:
    config = tiny(collection)
    whole = run(config, tmp_path / "whole")
    broken = tmp_path / "broken"
    broken.mkdir()
    write_config(config, broken / "config.yaml")
    done = subprocess.run([sys.executable, "-c", KILLED, str(broken)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (broken / "model.safetensors").exists()
    assert main(["train", "--resume", str(broken)]) == 0
    assert same(whole, dict(load_model(broken / "model.safetensors").weights))


def test_resuming_refuses_other_settings_and_damage(collection: Path, tmp_path: Path, capsys: Any) -> None:
    run(tiny(collection), tmp_path / "run")
    assert main(["train", "--resume", str(tmp_path / "run"), "--seed", "2"]) == 1
    assert "leave out all others" in capsys.readouterr().err
    with pytest.raises(GaitError, match="other settings"):
        run(tiny(collection, seed=5), tmp_path / "run", resume=True)
    checkpoint = tmp_path / "run/checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(GaitError, match="damaged"):
        run(tiny(collection), tmp_path / "run", resume=True)


def test_the_losses_are_those_of_the_paper() -> None:
    residual, log_std = torch.randn(2, 2, 5, 3, generator=torch.Generator().manual_seed(0))
    assert mean_absolute(residual).item() == pytest.approx(residual.abs().sum().item() / 10)
    gaussian = torch.distributions.MultivariateNormal(torch.zeros(3), torch.eye(3))
    expected = []
    for r, u in zip(residual.reshape(-1, 3), log_std.reshape(-1, 3), strict=True):
        gaussian = torch.distributions.MultivariateNormal(torch.zeros(3), torch.diag(torch.exp(2 * u)))
        expected.append(-gaussian.log_prob(r).item() - 1.5 * np.log(2 * np.pi))
    assert negative_log_likelihood(residual, log_std).item() == pytest.approx(np.mean(expected), rel=1e-4)
    state: Any = None
    assert loss_of(Outputs(residual, None, state), torch.zeros(2, 5, 3), torch.zeros(2, 5, 4), 1.0).item() == (
        pytest.approx(mean_absolute(residual).item())
    )
    contact = torch.zeros(2, 5, 4)
    with_contact = loss_of(Outputs(residual, None, state, contact), torch.zeros(2, 5, 3), contact, 0.5)
    assert with_contact.item() == pytest.approx(mean_absolute(residual).item() + 0.5 * np.log(2), rel=1e-5)


def test_the_learning_rate_rises_and_falls() -> None:
    config = TrainConfig()
    rates = np.array([loop.learning_rate(config, i) for i in range(1000)])
    assert rates[0] == pytest.approx(5e-6) and rates[99] == rates[100] == rates.max() == 5e-4
    assert np.allclose(np.diff(rates[:100]), 5e-6) and np.allclose(np.diff(rates[100:]), -5e-4 / 900)
    assert 0.0 < rates[-1] < 1e-6


def test_the_normaliser_is_shared_by_legs_and_leaves_gravity_out() -> None:
    architecture = architecture_of({"kind": "gait"})
    rng = np.random.default_rng(0)
    features = rng.normal(2.0, 3.0, (500, 42)).astype(np.float32)
    features[:, 5] = 9.81 + 0.5 * rng.standard_normal(500)
    features[:, 3] = 7.0
    empty = np.zeros((500, 0), np.float32)
    mean, std = normaliser([Episode(features, empty, empty, empty.astype(bool))], architecture)
    hips = features[:, [6, 9, 12, 15]].astype(np.float64)
    assert mean[6] == mean[9] == mean[12] == mean[15] == pytest.approx(hips.mean())
    assert std[6] == std[15] == pytest.approx(hips.std(), rel=1e-6)
    assert (mean[:6] == [0, 0, 0, 0, 0, 9.81]).all()
    assert std[5] == pytest.approx(0.5, rel=0.1) and std[3] == pytest.approx(7.0)


def test_validation_episodes_never_train(collection: Path) -> None:
    data = DataSet(tiny(collection, validation_share=0.3), architecture_of({"kind": "gait"}))
    assert len(data.training) == 6 and len(data.validation) == 2
    joints = {episode.features[:, 6:].tobytes() for episode in data.training}
    assert len(joints) == 6
    assert not joints & {episode.features[:, 6:].tobytes() for episode in data.validation}
    batch = data.batch(7)
    assert batch.features.shape == (4, 60, 42) and batch.velocity.shape == (4, 60, 3)
    assert (batch.features == data.batch(7).features).all() and (batch.features != data.batch(8).features).any()
    # Every piece is a stretch of a training episode, with its own truth.
    for x, v in zip(batch.features, batch.velocity, strict=True):
        match = [
            i
            for episode in data.training
            for i in range(ROWS - 59)
            if (episode.features[i, 6:] == x[0, 6:]).all() and (episode.velocity[i : i + 60] == v).all()
        ]
        assert len(match) == 1


def test_noise_is_on_the_imu_only() -> None:
    config = TrainConfig(gyro_noise=0.01, accel_noise=0.1, accel_bias=1.0)
    clean = np.zeros((40, 500, 42), np.float32)
    errors = noisy(config, clean, np.random.default_rng(0))
    assert (errors[..., 6:] == 0.0).all() and (clean == 0.0).all()
    assert errors[..., :3].std() == pytest.approx(0.01, rel=0.02) and abs(errors[..., :3].mean()) < 2e-4
    assert errors[..., 3:6].std(1).mean() == pytest.approx(0.1, rel=0.02)
    assert errors[..., 3:6].mean(1).std() == pytest.approx(1.0, rel=0.2)


def test_noisy_and_benchmark_collections_are_refused(tmp_path: Path) -> None:
    architecture = architecture_of({"kind": "gait"})
    noisy_one = write_collection(tmp_path / "noisy", "training", 2)
    with pytest.raises(GaitError, match="noisy already"):
        DataSet(tiny(noisy_one), architecture)
    assert DataSet(tiny(noisy_one, gyro_noise=0.0, accel_noise=0.0), architecture).batch(0)
    with pytest.raises(GaitError, match="must not enter a training"):
        DataSet(tiny(write_collection(tmp_path / "twin", "twin", 2)), architecture)
    with pytest.raises(GaitError, match="no training episode of 1000 steps"):
        DataSet(tiny(noisy_one, gyro_noise=0.0, accel_noise=0.0, steps=1000), architecture)
    with pytest.raises(GaitError, match="not a collection"):
        DataSet(tiny(tmp_path), architecture)


def test_folders_get_equal_shares(collection: Path, tmp_path: Path) -> None:
    small = write_collection(tmp_path / "small", episodes=2)
    config = tiny(collection, data=(str(collection), str(small)), sequences=6)
    data = DataSet(config, architecture_of({"kind": "gait"}))
    of_small = {row[6:].tobytes() for episode in data.folders[1] for row in episode.features}
    assert [x[0, 6:].tobytes() in of_small for x in data.batch(0).features][1::2] == [True, True, True]


def test_walks_of_several_controllers_train_one_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A collection of our controller and one of a policy on the same robot; one of another robot is refused."""
    ours = CollectConfig(terrain="flat", sensors="exact", seconds=0.4, episodes=3)
    policy = write_go1(tmp_path)
    theirs = replace(ours, policy=policy.policy, observation=policy.observation)
    folders = [tmp_path / "trot", tmp_path / "policy"]
    for plan, folder in zip((ours, theirs), folders, strict=True):
        collect(plan, folder)
    config = TrainConfig(data=tuple(map(str, folders)), **TINY)
    (tmp_path / "run").mkdir()
    model = loop.train(config, tmp_path / "run")
    assert [data["gait"] for data in model.data] == ["trot", "policy"]
    assert model.data[1]["policy"] == "stand.onnx", "no path of this machine"
    table = PolicyFiles(
        str(write_policy(tmp_path / "t.onnx", np.zeros((24, 4)), np.zeros(4))),
        str(write_table(tmp_path)),
        str(write_observation(tmp_path)),
    )
    other = replace(ours, policy=table.policy, model=table.model, observation=table.observation)
    collect(other, tmp_path / "table")
    with pytest.raises(GaitError, match="another robot"):
        DataSet(replace(config, data=(str(folders[0]), str(tmp_path / "table"))), architecture_of({"kind": "gait"}))
    collect(replace(theirs, sensors="twin"), tmp_path / "twin")
    with pytest.raises(GaitError, match="benchmark's robot"):
        DataSet(replace(config, data=(str(tmp_path / "twin"),)), architecture_of({"kind": "gait"}))


def test_the_mask_hides_a_fifth(collection: Path) -> None:
    config = tiny(collection, steps=200, sequences=8)
    source = loop.open_source(config)
    trainer = loop.Trainer(config, source)
    keep = trainer._keep(0)
    assert keep is not None and keep.shape == (8, 200, 7, 6)
    assert keep.float().mean().item() == pytest.approx(0.8, abs=0.01)
    assert (keep != trainer._keep(1)).any() and (keep == trainer._keep(0)).all()


def test_burn_in_steps_do_not_count(collection: Path) -> None:
    weights = []
    for wrong in (0.0, 5.0):
        config = tiny(collection, burn_in=30, steps=50, truncate=20)
        source = loop.open_source(config)
        assert isinstance(source, DataSet)
        trainer, batch = loop.Trainer(config, source), source.batch(0)
        batch.velocity[:, :30] += wrong
        source.batch = lambda iteration, batch=batch: batch  # type: ignore[method-assign, misc]
        trainer.iterate()
        weights.append(dict(trainer.model().weights))
    assert same(*weights)


def test_scores() -> None:
    rng = np.random.default_rng(0)
    truth = [rng.normal(size=(4000, 3)), rng.normal(size=(100, 3))]
    std = np.array([0.1, 0.2, 0.3])
    results = [(v + std * rng.standard_normal(v.shape), np.log(std) + np.zeros(v.shape)) for v in truth]
    score = score_of(results, truth)
    assert score.rmse == pytest.approx(std, rel=0.05) and score.std == pytest.approx(std)
    assert score.within == pytest.approx((0.683, 0.954), abs=0.02)
    assert score.norm == pytest.approx(np.linalg.norm(std), rel=0.05) and score.samples == 4100
    assert score.nll == pytest.approx(np.log(std).sum() + 1.5, rel=0.05)


def test_validation_carries_the_state_through_whole_episodes(collection: Path, tmp_path: Path) -> None:
    net = random_net("gait")
    lengths = (1300, 700)
    inputs = [np.random.default_rng(n).normal(size=(n, 42)) for n in lengths]
    together = predict(net, inputs)
    for x, (velocity, log_std) in zip(inputs, together, strict=True):
        with torch.no_grad():
            alone = net(torch.from_numpy(x[None].astype(np.float32)))
        assert np.abs(alone[0][0].numpy() - velocity).max() < 1e-5
        assert np.abs(alone[1][0].numpy() - log_std).max() < 1e-5
    model = loop.train(tiny(collection), tmp_path)
    score = evaluate_model(model, [made_up_log(1), made_up_log(2)])
    assert score.samples == 2 * ROWS and score.norm > 0.0
    with pytest.raises(GaitError, match="log.resample"):
        evaluate_model(model, [made_up_log(1).resample(200.0)])


def test_configurations(tmp_path: Path, collection: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("sequences: 16\nlearning_rate: 1\ndata: [a, b]\n")
    assert read_config(path) == {"sequences": 16, "learning_rate": 1.0, "data": ("a", "b")}
    for text, words in (
        ("sequence: 16", "unknown key 'sequence'"),
        ("sequences: many", "sequences must be int"),
        ("sequences: true", "sequences must be int"),
        ("data: 3", "data must be a list of names"),
        ("- 1", "must map names"),
        ("a: [", "not valid YAML"),
        ("iterations: 0", "iterations must be 1 or more"),
        ("network: lstm", "choose one of gait, gait-flat, nmn"),
    ):
        path.write_text(text)
        with pytest.raises(GaitError, match=words):
            read_config(path)
    for shipped in sorted((Path(__file__).parents[2] / "configs").glob("*.yaml")):
        config_of(read_config(shipped), str(shipped))


def test_fresh_rollouts_train_and_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    changes = {"iterations": 2, "l1_iterations": 1, "sequences": 2, "steps": 50, "validation_episodes": 1}
    config = TrainConfig(**{**TINY, **changes, "fresh": True, "validate_every": 2, "gaits": ("trot", "pace")})
    source = Rollouts(config, architecture_of({"kind": "gait"}), workers=2)
    try:
        batch = source.batch(1)
        # The fourth rollout of all: the second pace. What one process makes of it here, two made in the background.
        here = rollout(source._plans[1], 1)
        assert (batch.features[1, :, 6:18] == here.q[:50].astype(np.float32)).all()
        assert (batch.velocity[1] == here.vel_b[:50].astype(np.float32)).all()
        assert source.subject.rate == 500.0
        trainer = loop.Trainer(config, source)
        trainer.iterate()
        trainer.iterate()
        trainer.validate()
    finally:
        source.close()
    assert trainer.model().data[1]["fresh"] and trainer.model().data[1]["gait"] == "pace"


def test_a_dead_leg_is_hidden_throughout_its_sequences(collection: Path) -> None:
    config = replace(tiny(collection), sequences=40, dead_leg=0.5)
    source = loop.open_source(config)
    keep = loop.Trainer(config, source)._keep(0)
    assert keep is not None
    dead = (~keep).flatten(1, 2).all(1)  # (B, C)
    assert not dead[:, :2].any() and dead.sum(1).max() == 1 and 8 <= dead.any(1).sum() <= 32
    assert dead[:, 2:].any(0).all()
    keep = loop.Trainer(replace(config, dead_leg=0.0), source)._keep(0)
    assert keep is not None and keep.flatten(1, 2).any(1).all()


def test_a_resumed_training_names_the_commit_it_began_with(collection: Path, tmp_path: Path, monkeypatch: Any) -> None:
    config = tiny(collection)
    monkeypatch.setattr(loop, "commit", lambda: "first")

    def stop(progress: Any) -> None:
        raise KeyboardInterrupt

    write_config(config, tmp_path / "config.yaml")
    with pytest.raises(KeyboardInterrupt):
        loop.train(config, tmp_path, on_progress=stop)
    monkeypatch.setattr(loop, "commit", lambda: "second")
    assert loop.train(config, tmp_path, resume=True).commit == "first"
