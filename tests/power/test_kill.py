"""Killed at random moments, as by a power cut: nothing half-written is taken for whole, and the next run goes on.

GAIT_KILLS sets how often each verb is killed.
"""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import needs
import pytest

from gait import GaitError, Log
from gait.io import open_log, read
from gait.nets.model import load_model
from gait.samples import SAMPLE
from gait.sim.store import INDEX, read_index, sha256

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
KILLS = int(os.environ.get("GAIT_KILLS", "20"))
PATIENCE = 600.0
GAIT = (sys.executable, "-m", "gait")


def whole(words: list[str], folder: Path) -> float:
    """Run a command to its end; returns the seconds that it took."""
    began = time.monotonic()
    done = subprocess.run([*GAIT, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


def killed(words: list[str], folder: Path, seconds: float) -> bool:
    """Start a command and kill it after so many seconds; False if it had ended by then."""
    process = subprocess.Popen(
        [*GAIT, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return True
    assert process.returncode == 0, said
    return False


def kill_often(words: Callable[[], list[str]], folder: Path, longest: float, check: Callable[[], None]) -> int:
    """Kill a command at random moments, look at what it left each time; returns how often it was alive to be killed."""
    rng, count = random.Random(0), 0
    for _ in range(KILLS):
        count += killed(words(), folder, rng.uniform(0.1, 1.0) * longest)
        check()
    return count


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if path.name.endswith((".tmp", ".lock"))]


def test_sim(tmp_path: Path) -> None:
    needs.package("mujoco")
    words = ["sim", "--episodes", "16", "--seconds", "2", "--out"]
    longest = whole([*words, "reference"], tmp_path)
    folder = tmp_path / "killed"

    def check() -> None:
        for row in read_index(folder, missing_ok=True):
            data = (folder / row["file"]).read_bytes()
            assert sha256(data) == row["sha256"]
            assert len(open_log(folder / row["file"])) > 0
        if len(read_index(folder, missing_ok=True)) == 16:
            # Begin again.
            shutil.rmtree(folder)

    assert kill_often(lambda: [*words, "killed"], tmp_path, longest, check) >= 1
    whole([*words, "killed"], tmp_path)
    assert leftovers(tmp_path) == []
    assert (folder / INDEX).read_bytes() == (tmp_path / "reference" / INDEX).read_bytes(), "the same episodes"


def test_train(tmp_path: Path) -> None:
    needs.package("torch")
    needs.package("tensorboard")
    whole(["sim", "--episodes", "4", "--seconds", "4", "--sensors", "exact", "--out", "data"], tmp_path)
    small = ["--iterations", "60", "--sequences", "2", "--steps", "40", "--burn-in", "5", "--truncate", "20"]
    small += ["--validation-episodes", "1", "--validate-every", "20", "--checkpoint-seconds", "0.01"]
    words = ["train", "--network", "gait", "--data", "data", *small, "--l1-iterations", "20", "--out"]
    longest = whole([*words, "reference"], tmp_path)
    folder = tmp_path / "killed"

    def next_words() -> list[str]:
        begun = (folder / "checkpoint.safetensors").exists()
        return ["train", "--resume", "killed", "--checkpoint-seconds", "0.01"] if begun else [*words, "killed"]

    def check() -> None:
        model = folder / "model.safetensors"
        if model.exists():
            assert load_model(model)
            shutil.rmtree(folder)

    assert kill_often(next_words, tmp_path, longest, check) >= 1
    whole(next_words(), tmp_path)
    assert leftovers(folder) == []
    weights, wanted = (load_model(tmp_path / name / "model.safetensors").weights for name in ("killed", "reference"))
    assert all((weights[name] == wanted[name]).all() for name in wanted), "the weights of a run without a pause"


def test_run(tmp_path: Path) -> None:
    Log.load(SAMPLE).slice(0.0, 3.0).save(tmp_path / "walk.npz")
    words = ["run", "walk.npz"]
    longest = whole([*words, "--out", "reference"], tmp_path)
    names = sorted(path.name for path in (tmp_path / "reference").iterdir())

    def check() -> None:
        for folder in (tmp_path / "runs/run").glob("[0-9]*"):
            found = sorted(path.name for path in folder.iterdir())
            assert found in (names, []), "all of it, or the place for it"
        link = tmp_path / "runs/run/latest"
        assert not link.is_symlink() or sorted(path.name for path in link.iterdir()) == names

    assert kill_often(lambda: words, tmp_path, longest, check) >= 1
    whole(words, tmp_path)
    assert leftovers(tmp_path) == []
    assert sorted(path.name for path in (tmp_path / "runs/run/latest").iterdir()) == names


def test_live_recordings_can_be_read(tmp_path: Path) -> None:
    Log.load(SAMPLE).save(tmp_path / "walk.npz")
    rng, sizes = random.Random(1), []
    for number in range(KILLS):
        words = ["live", "walk.npz", "--odom", "none", "--tf", "none", "--record", f"{number}.mcap", "--json"]
        killed(words, tmp_path, rng.uniform(2.0, 15.0))
        path = tmp_path / f"{number}.mcap"
        if not path.exists() or not path.stat().st_size:
            continue
        try:
            sizes.append(len(read(path).log))
        except GaitError as error:
            assert "has no imu" in str(error), "killed before the first samples were on the disk"
    assert len(sizes) >= 1 and max(sizes) > 200


RECORDER = """
import mmap, sys, time
import numpy as np
from gait.io.ros.mcap_writer import McapRecorder
from gait.io.ros.odometry import WIDTH
with open(sys.argv[2], "r+b") as file, mmap.mmap(file.fileno(), 8) as last, McapRecorder(sys.argv[1]) as recorder:
    print("ready", flush=True)
    while True:
        ns = time.time_ns()
        recorder.write(ns, np.random.default_rng(ns).normal(size=WIDTH))
        last[:] = ns.to_bytes(8, "little")
        time.sleep(1.0 / float(sys.argv[3]))
"""


def test_a_recording_loses_at_most_a_second(tmp_path: Path) -> None:
    """Measured: from the last message that was handed over to the last one in the file, at any rate of messages."""
    from gait.io.format import Notes
    from gait.io.ros.containers import scan

    rng, lost = random.Random(2), []
    for number in range(KILLS):
        path, shared = tmp_path / f"{number}.mcap", tmp_path / f"{number}.last"
        shared.write_bytes(bytes(8))
        command = [sys.executable, "-c", RECORDER, str(path), str(shared), str(rng.choice((20, 200, 1000)))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(1.0, 3.0))
            process.kill()
        (last,) = struct.unpack("<Q", shared.read_bytes())
        stamps = [stamp for topic in scan(path, lambda kind: False, Notes()) for stamp in topic.stamps]
        lost.append((last - max(stamps)) / 1e9)
    print(json.dumps({"lost_s": [round(one, 3) for one in lost]}))
    assert max(lost) <= 1.0, lost
