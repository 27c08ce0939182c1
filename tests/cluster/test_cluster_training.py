"""Training on a Ray cluster, and on data sets larger than memory."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import needs
import numpy as np
import pytest
from training_samples import TINY, write_collection

from gait import GaitError
from gait.cluster import training
from gait.cluster.tasks import RETRIES
from gait.cluster.training import train_on_cluster
from gait.io.storage import Storage
from gait.nets import load_model
from gait.train import loop
from gait.train.config import TrainConfig
from gait.train.data import DataSet
from gait.train.episode_pool import EpisodePool


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("data") / "trot")


def tiny(collection: Path | str, **changes: Any) -> TrainConfig:
    return TrainConfig(**{**TINY, "data": (str(collection),), **changes})


def history(place: str | Path, tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / f"{time.time_ns()}.safetensors"
    path.write_bytes(Storage(place).read(loop.CHECKPOINT))
    from gait.nets.model import read_arrays

    rows: list[dict[str, Any]] = json.loads(read_arrays(path)[0]["header"])["history"]
    return rows


def losses(place: str | Path, tmp_path: Path) -> np.ndarray:
    return np.array([row["loss"] for row in history(place, tmp_path)])


def architecture(config: TrainConfig) -> Any:
    return loop.architecture_of({**config.architecture, "legs": 4})


def test_a_pool_with_room_for_all_is_the_data_set(collection: Path) -> None:
    config = tiny(collection, memory=100)
    pool, whole = EpisodePool(config, architecture(config)), DataSet(config, architecture(config))
    for number in (0, 3):
        for a, b in zip(pool.batch(number), whole.batch(number), strict=True):
            assert np.array_equal(a, b)
    for a, b in zip([*pool.training, *pool.validation], [*whole.training, *whole.validation], strict=True):
        assert np.array_equal(a.features, b.features)
    pool.close()


def test_pools_go_through_everything_in_shuffled_order(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(collection, memory=1, iterations=20)
    # An episode of 300 rows has 0.07 MB: make room for two a pool.
    monkeypatch.setattr(TrainConfig, "memory", 0.3, raising=False)
    object.__setattr__(config, "memory", 0.3)
    pool = EpisodePool(config, architecture(config))
    assert pool.sizes == [2] and pool.lasting >= 1
    passes = [[one.number for number in range(3 * k, 3 * k + 3) for one in pool.shards(number)[0]] for k in range(2)]
    held = len(pool.validation)
    assert held == 1 and all(len(numbers) == 6 for numbers in passes) and passes[0] != passes[1]
    first = [pool.batch(number).features for number in range(6)]
    pool.close()
    again = EpisodePool(config, architecture(config))
    # Any iteration without those before it, as a resumed training asks for it.
    assert np.array_equal(again.batch(5).features, first[5]) and not np.array_equal(first[4], first[5])
    again.close()
    object.__setattr__(config, "memory", 0.01)
    with pytest.raises(GaitError, match=r"has no room for two pools of 1 episodes of 0\.1 MB: raise it"):
        EpisodePool(config, architecture(config))


def test_what_cannot_be_shared_is_said(collection: Path, tmp_path: Path) -> None:
    with pytest.raises(GaitError, match="3 workers cannot share 4 sequences evenly"):
        train_on_cluster(tiny(collection), str(tmp_path), workers=3)
    with pytest.raises(GaitError, match="--ray trains on a data set"):
        train_on_cluster(tiny(collection, fresh=True), str(tmp_path), workers=2)


def test_a_worker_tells_the_command_what_is_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs.package("ray"), "get", lambda told: told)
    kept = training.Board()
    board = SimpleNamespace(fail=SimpleNamespace(remote=kept.fail))
    config = tiny(tmp_path / "none")
    job = training.TrainJob(config, training.Parcel(), "", str(tmp_path), 1.0, str(tmp_path), gpu=False)
    monkeypatch.setattr(training, "_train", lambda words: loop.open_source(words["job"].config))
    with pytest.raises(GaitError, match="none") as error:
        training.train_worker({"job": job, "board": board})
    assert kept.get() == (None, str(error.value))
    # Anything else is for Ray Train, which starts the workers again.
    monkeypatch.setattr(training, "_train", lambda _: 1 / 0)
    kept.failure = ""
    with pytest.raises(ZeroDivisionError):
        training.train_worker({"job": job, "board": board})
    assert kept.get() == (None, "")


CAPPED = """
import resource, sys, threading, time
from pathlib import Path
from gait.train import loop
from gait.train.config import TrainConfig
folder, memory = sys.argv[1], int(sys.argv[2])
config = TrainConfig(data=(folder,), memory=memory, iterations=1000, sequences=16, steps=250, validation_episodes=2)
def now():
    return 1e3 * int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])
import gait.nets.build  # all that training imports
before = now()
peak = 0
source = loop.open_source(config)
seen = set()
for i in range(6 * source.lasting):
    source.batch(i)
    seen |= {one.number for one in source.shards(i // source.lasting)[0]}
    peak = max(peak, now())
source.close()
print((peak - before) / 1e6, len(seen), source.sizes[0], source.lasting)
"""


@pytest.mark.slow
def test_memory_is_bounded_on_a_set_ten_times_as_large(tmp_path: Path) -> None:
    """200 MB of episodes under a cap of 20 MB."""
    folder = write_collection(tmp_path / "large", episodes=1100, rows=1000)
    done = subprocess.run([sys.executable, "-c", CAPPED, str(folder), "20"], capture_output=True, text=True, check=True)
    grown, seen, size, lasting = map(float, done.stdout.split())
    print(f"{grown:.1f} MB more, {seen:.0f} episodes seen, {size:.0f} in a pool for {lasting:.0f} iterations")
    width = 42 + 3 + 4
    assert 1100 * 1000 * width * 4 > 200e6, "ten times the cap"
    # Beside the pools: validation, a batch with its noise, one episode that is being read.
    assert grown < 20 + 25


@pytest.mark.slow
@pytest.mark.parametrize("network", ["gait", "gait-legs"])
def test_two_workers_learn_what_one_does(network: str, cluster: Any, tmp_path: Path, collection: Path) -> None:
    """With the same global batch: the loss curve to 1e-5."""
    for _ in range(2):
        cluster.processors()
    config = tiny(collection, network=network, iterations=30, l1_iterations=15, sequences=8)
    curves = {}
    for workers in (1, 2):
        out = tmp_path / str(workers)
        out.mkdir()
        model = train_on_cluster(config, str(out), cluster.address, workers)
        curves[workers] = losses(out, tmp_path)
        assert len(curves[workers]) == 30 and model.results["validation_velocity_rmse"] > 0.0
    (tmp_path / "local").mkdir()
    loop.train(config, tmp_path / "local")
    local = losses(tmp_path / "local", tmp_path)
    print("largest difference", np.abs(curves[1] - curves[2]).max(), np.abs(curves[1] - local).max())
    assert np.abs(curves[1] - curves[2]).max() < 1e-5 * max(1.0, np.abs(local).max())
    assert np.abs(curves[1] - local).max() < 1e-5 * max(1.0, np.abs(local).max())
    names = {path.name.split(".")[0] for path in (tmp_path / "2").iterdir()}
    assert names == {"checkpoint", "config", "curves", "events", "model"}


@pytest.mark.slow
def test_a_node_is_killed_in_the_middle_of_a_training(
    cluster: Any, s3: Callable[[str], str], tmp_path: Path, collection: Path
) -> None:
    """Data, checkpoints and model are in object storage; a worker and its node are lost, and training goes on."""
    place = s3("training")
    data, out = Storage(f"{place}/data"), f"{place}/run"
    for path in collection.iterdir():
        data.write(path.name, path.read_bytes())
    config = tiny(f"{place}/data", iterations=60, l1_iterations=30, sequences=4, validate_every=20)
    (tmp_path / "local").mkdir()
    loop.train(config, tmp_path / "local")
    nodes = [cluster.processors() for _ in range(3)]
    killed: list[int] = []

    def kill_one(now: loop.TrainingProgress) -> None:
        if now.iteration >= 5 and not killed:
            busy = next(node for node in nodes if has_worker(node))
            killed.append(now.iteration)
            cluster.remove_node(busy, allow_graceful=False)

    model = train_on_cluster(config, out, cluster.address, 2, checkpoint_seconds=0.0, on_progress=kill_one)
    assert killed and killed[0] < 60, "the node was lost on the way"
    assert [row["iteration"] for row in history(out, tmp_path)] == list(range(60)), "none missing, none twice"
    assert np.abs(losses(out, tmp_path) - losses(tmp_path / "local", tmp_path)).max() < 1e-5
    assert load_model(tmp_path / "local/model.safetensors").architecture == model.architecture


@pytest.mark.slow
def test_data_at_fault_is_said_without_a_repetition(cluster: Any, tmp_path: Path, collection: Path) -> None:
    """A worker that is lost starts again, up to 20 times; a data set that cannot be read does not become better."""
    cluster.processors()
    bad = tmp_path / "bad"
    shutil.copytree(collection, bad)
    for path in bad.glob("*.npz"):
        path.write_bytes(b"PK nothing")
    out = tmp_path / "run"
    out.mkdir()
    with pytest.raises(GaitError, match=r"episode_0000\d\.npz is damaged or cut short"):
        train_on_cluster(tiny(bad), str(out), cluster.address)
    logs = Path(cluster.head_node.get_logs_dir_path())
    assert 0 < len(list(logs.glob("python-core-worker-*.log"))) < RETRIES, "each start of a worker leaves one"
    assert not (out / loop.CHECKPOINT).exists()


def has_worker(node: Any) -> bool:
    """Whether a worker of the training runs on a node: Ray names the processes that it starts."""
    psutil = needs.package("psutil")
    (raylet,) = node.all_processes["raylet"]
    return any("RayTrainWorker" in " ".join(child.cmdline()) for child in psutil.Process(raylet.process.pid).children())


@pytest.mark.slow
def test_the_command_trains_stops_and_goes_on(tmp_path: Path, collection: Path) -> None:
    needs.package("ray")
    words = [f"--{name.replace('_', '-')}={value}" for name, value in {**TINY, "iterations": 4000}.items()]
    out = tmp_path / "run"
    command = [sys.executable, "-m", "gait", "train", "--data", str(collection), *words, "--out", str(out)]
    command += ["--ray", "local", "--workers", "2", "--checkpoint-seconds", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    checkpoint = out / loop.CHECKPOINT
    while process.poll() is None and not (checkpoint.exists() and history(out, tmp_path)):
        time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130 and f"gait train --resume {out} --ray local --workers 2` goes on" in said, said
    assert 0 < len(history(out, tmp_path)) < 4000
    config = tiny(collection, iterations=4000)
    trainer = loop.Trainer(config, loop.open_source(config))
    loop.load_checkpoint(checkpoint, trainer)
    assert np.isfinite(trainer.iterate()["loss"])
