"""Collections: the same bytes however they were made, nothing lost when they stop, and a sentence for what is wrong."""

import contextlib
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from gait import GaitError, Log, quaternions
from gait import robot as robots
from gait.cli import main
from gait.sim import collect as module
from gait.sim.collect import MAX_ATTEMPTS, CollectConfig, CollectionProgress, collect
from gait.sim.episode_sampling import draw_episode
from gait.sim.render import save
from gait.sim.settings import Push
from gait.sim.store import Store, read_index
from gait.sim.world import CIRCLE_RADIUS

QUICK = CollectConfig(episodes=4, seconds=0.3, terrain="flat", stationary_share=0.25)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection made in one go by one process."""
    folder = tmp_path_factory.mktemp("reference")
    end = collect(QUICK, folder)
    assert end.finished == 4 and end.resumed == 0 and end.recorded == pytest.approx(1.2)
    return folder


def test_a_collection_is_logs_an_index_and_settings(reference: Path) -> None:
    assert sorted(contents(reference)) == [
        "collection.json",
        *(f"episode_0000{i}.npz" for i in range(4)),
        "index.jsonl",
    ]
    rows = read_index(reference)
    assert [row["episode"] for row in rows] == [0, 1, 2, 3]
    assert [row["gait"] for row in rows] == ["trot", "trot", "trot", "stationary"]
    for row in rows:
        log = Log.load(reference / row["file"])
        assert len(log) == 150 and log.rate == 500.0 and log.has_truth
        assert row["sha256"] == contents(reference)[row["file"]]
        assert 0.3 <= row["friction"] <= 1.0 and row["falls"] == 0 and row["fell_at"] is None
    assert json.loads((reference / "collection.json").read_text())["seed"] == 0


def test_two_workers_write_the_same_bytes(reference: Path, tmp_path: Path) -> None:
    seen: list[CollectionProgress] = []
    end = collect(QUICK, tmp_path / "two", workers=2, on_progress=seen.append)
    assert contents(tmp_path / "two") == contents(reference)
    assert [progress.finished for progress in seen] == [0, 1, 2, 3, 4, 4]
    assert end.simulated == pytest.approx(4 * (0.3 + 1.5)) and end.realtime_factor > 0.0


def test_another_seed_is_another_collection(reference: Path, tmp_path: Path) -> None:
    collect(replace(QUICK, seed=1, episodes=1), tmp_path)
    assert contents(tmp_path)["episode_00000.npz"] != contents(reference)["episode_00000.npz"]


def test_episodes_do_not_depend_on_those_before(reference: Path, tmp_path: Path) -> None:
    """A collection can be made longer, and a lost file comes back as it was."""
    collect(replace(QUICK, episodes=2), tmp_path)
    (tmp_path / "episode_00001.npz").unlink()
    end = collect(QUICK, tmp_path)
    assert end.resumed == 1 and contents(tmp_path) == contents(reference)


def test_damaged_episodes_are_made_again(reference: Path, tmp_path: Path) -> None:
    collect(replace(QUICK, episodes=3), tmp_path)
    cut, flipped = tmp_path / "episode_00000.npz", tmp_path / "episode_00002.npz"
    cut.write_bytes(cut.read_bytes()[:-100])
    damaged = bytearray(flipped.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    flipped.write_bytes(damaged)
    end = collect(QUICK, tmp_path)
    assert end.resumed == 1 and contents(tmp_path) == contents(reference)


def test_a_failure_keeps_what_was_written(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.record_episode

    def fails_third(config: CollectConfig, number: int, path: Path) -> object:
        if number == 2:
            raise OSError(28, "No space left on device")
        return real(config, number, path)

    monkeypatch.setattr(module, "record_episode", fails_third)
    with pytest.raises(GaitError, match="no space left on device; 2 of 4 episodes are safe"):
        collect(QUICK, tmp_path)
    monkeypatch.undo()
    assert len(read_index(tmp_path)) == 2
    assert collect(QUICK, tmp_path).resumed == 2
    assert contents(tmp_path) == contents(reference)


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The operating system refuses to let any file grow beyond this, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_cleanly(reference: Path, tmp_path: Path) -> None:
    collect(replace(QUICK, episodes=2), tmp_path)
    before = contents(tmp_path)
    with largest_file(50_000), pytest.raises(GaitError) as caught:
        collect(QUICK, tmp_path)
    text = str(caught.value)
    assert "cannot write" in text and "2 of 4 episodes are safe" in text and "\n" not in text
    after = contents(tmp_path)
    after.pop("collection.json"), before.pop("collection.json")
    assert after == before, "nothing half-written may stay, nothing whole may go"
    collect(QUICK, tmp_path)
    assert contents(tmp_path) == contents(reference)


def test_a_full_disk_never_tears_the_index(tmp_path: Path) -> None:
    store = Store(tmp_path, {"a": 1, "episodes": 9})
    rows = [{"episode": i, "file": f"episode_{i:05d}.npz", "falls": 0, "seconds": 1.0} for i in range(3)]
    for row in rows:
        (tmp_path / str(row["file"])).write_bytes(b"x")
    store.add(rows[0])
    size = (tmp_path / "index.jsonl").stat().st_size
    with largest_file(size + 10), pytest.raises(GaitError, match="cannot write"):
        store.add(rows[1])
    assert (tmp_path / "index.jsonl").stat().st_size == size
    store.add(rows[2])
    assert [row["episode"] for row in read_index(tmp_path)] == [0, 2]


def test_what_a_crash_leaves_behind_is_tidied_up(reference: Path, tmp_path: Path) -> None:
    collect(replace(QUICK, episodes=2), tmp_path)
    index = tmp_path / "index.jsonl"
    index.write_text(index.read_text() + '{"episode": 2, "fi')
    (tmp_path / ".episode_00002.npz.1a2b3c4d.tmp").write_bytes(b"half")
    (tmp_path / "episode_00002.npz").write_bytes(b"written, but not in the index")
    assert len(read_index(tmp_path)) == 2
    assert collect(QUICK, tmp_path).resumed == 2
    assert contents(tmp_path) == contents(reference)


def test_a_damaged_index_is_one_sentence(reference: Path, tmp_path: Path) -> None:
    (tmp_path / "index.jsonl").write_text('{"episode": 0, "fi\n{"episode": 1, "file": "episode_00001.npz"}\n')
    with pytest.raises(GaitError, match="damaged at line 1"):
        read_index(tmp_path)
    with pytest.raises(GaitError, match="is not a collection"):
        read_index(tmp_path / "nowhere")


def start_collecting(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gait", "sim", "--terrain", "flat", "--episodes", "400", "--seconds", "0.3"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--out", str(folder), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def wait_for_episodes(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    deadline = time.monotonic() + 240.0
    while len(read_index(folder, missing_ok=True)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no episode was written"
        time.sleep(0.05)


def check_resumed(folder: Path) -> None:
    """The first episodes of a stopped collection are those of one that was never stopped."""
    done = len(read_index(folder))
    config = CollectConfig(terrain="flat", episodes=400, seconds=0.3)
    settings = json.loads((folder / "collection.json").read_text())
    settings["episodes"] = done + 1
    (folder / "collection.json").write_text(json.dumps(settings, indent=2) + "\n")
    missing = [n for n in range(done + 1) if n not in {row["episode"] for row in read_index(folder)}]
    end = collect(replace(config, episodes=done + 1), folder)
    assert end.resumed == done + 1 - len(missing)
    again = folder.parent / "again"
    collect(replace(config, episodes=2), again)
    for name in ("episode_00000.npz", "episode_00001.npz"):
        assert contents(folder)[name] == contents(again)[name]
    assert not list(folder.glob(".*")), "temporary files must not stay"


def test_ctrl_c_keeps_every_finished_episode(tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    process = start_collecting(folder)
    wait_for_episodes(process, folder, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == ""
    assert "Traceback" not in err and f"episodes are safe in {folder}" in err
    check_resumed(folder)


def wait_until_gone(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30.0
    while True:
        try:
            # The session's process group is empty once the workers have followed their parent.
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline, "workers outlived the collection"
        time.sleep(0.1)


def descendants(process: subprocess.Popen[str]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at the processes in /proc")
@pytest.mark.parametrize("working", [False, True])
def test_ctrl_c_stops_workers_at_once_without_a_word_from_them(working: bool, tmp_path: Path) -> None:
    """On a terminal Ctrl-C reaches every process; here while workers start, and amid episodes that take minutes."""
    folder = tmp_path / "stopped"
    process = start_collecting(folder, "--workers", "2", "--seconds", "3600")
    deadline = time.monotonic() + 240.0
    while len(descendants(process)) < 3:  # two workers, and multiprocessing's own helper
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    if working:
        time.sleep(8.0)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == ""
    *progress, stopped = err.splitlines()
    assert f"0 of 400 episodes are safe in {folder}" in stopped
    assert all(line.startswith(("simulating 400 episodes", "0 of 400 episodes")) for line in progress), err
    wait_until_gone(process)


def test_a_killed_collection_resumes_and_leaves_no_workers(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    process = start_collecting(folder, "--workers", "2")
    wait_for_episodes(process, folder, 2)
    process.kill()
    process.communicate(timeout=60)
    wait_until_gone(process)
    check_resumed(folder)


class Falling:
    """A simulator whose robot falls in the first attempts."""

    def __init__(self, times: int) -> None:
        self.real, self.times, self.calls = module.run_episode, times, 0

    def __call__(self, *args: object) -> object:
        self.calls += 1
        raw = self.real(*args)
        return replace(raw, fell_at=0.2) if self.calls <= self.times else raw


def test_falls_are_replaced_by_new_attempts(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(QUICK, episodes=1)
    monkeypatch.setattr(module, "run_episode", Falling(2))
    end = collect(config, tmp_path)
    row = read_index(tmp_path)[0]
    assert end.falls == 2 and row["falls"] == 2 and row["fell_at"] is None and row["seconds"] == 0.3
    assert contents(tmp_path)["episode_00000.npz"] != contents(reference)["episode_00000.npz"]
    assert "attempt 2" in Log.load(tmp_path / row["file"]).source


def test_falls_are_kept_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_episode", Falling(1))
    collect(replace(QUICK, episodes=1, keep_falls=True), tmp_path)
    row = read_index(tmp_path)[0]
    assert row["falls"] == 1 and row["fell_at"] == 0.2 and row["seconds"] == 0.3
    assert (
        draw_episode(QUICK, 0)[0].stop_at_fall and not draw_episode(replace(QUICK, keep_falls=True), 0)[0].stop_at_fall
    )


def upright(log: Log) -> np.ndarray:
    """Cosine of the tilt: 1 is level, 0 is on the side."""
    return quaternions.rotate(log.quat_wb_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]


def test_a_real_fall_never_enters_a_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push no robot stands up to in the first attempt: what is recorded is the second."""
    real = module.draw_episode

    def pushed(config: CollectConfig, number: int, attempt: int = 0) -> object:
        episode, seed, noise = real(config, number, attempt)
        if attempt == 0:
            episode = replace(episode, pushes=(Push(0.1, 0.2, (0.0, 200.0, 0.0)),))
        return episode, seed, noise

    monkeypatch.setattr(module, "draw_episode", pushed)
    config = CollectConfig(episodes=1, seconds=2.0, terrain="rubber", nominal=True)
    collect(config, tmp_path / "replaced")
    row = read_index(tmp_path / "replaced")[0]
    log = Log.load(tmp_path / "replaced" / row["file"])
    assert row["falls"] == 1 and row["seconds"] == 2.0
    assert upright(log).min() > 0.9
    collect(replace(config, keep_falls=True), tmp_path / "kept")
    row = read_index(tmp_path / "kept")[0]
    assert row["fell_at"] is not None and row["seconds"] == 2.0
    assert upright(Log.load(tmp_path / "kept" / row["file"])).min() < 0.5


def test_a_robot_that_always_falls_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    falling = Falling(10**6)
    monkeypatch.setattr(module, "run_episode", falling)
    with pytest.raises(GaitError, match=f"episode 0 fell in {MAX_ATTEMPTS} attempts .trot on flat."):
        collect(replace(QUICK, seconds=0.1), tmp_path)
    assert falling.calls == MAX_ATTEMPTS


def test_draws_depend_on_seed_number_and_attempt_only() -> None:
    episode, seed, noise = draw_episode(QUICK, 1)
    same, same_seed, same_noise = draw_episode(replace(QUICK, episodes=99), 1)
    assert (episode, seed, noise.random()) == (same, same_seed, same_noise.random())
    others = [draw_episode(QUICK, 2), draw_episode(QUICK, 1, attempt=1), draw_episode(replace(QUICK, seed=1), 1)]
    assert len({seed, *(other[1] for other in others)}) == 4 and all(other[0] != episode for other in others)


def test_the_stationary_share_holds_in_every_stretch() -> None:
    config = replace(QUICK, episodes=100, stationary_share=0.1)
    still = [draw_episode(config, number)[0].gait == "stationary" for number in range(100)]
    assert [sum(still[i : i + 20]) for i in range(0, 100, 20)] == [2] * 5


def test_routes_fit_their_terrain() -> None:
    for number in range(5):
        circle = draw_episode(CollectConfig(terrain="circular"), number)[0].commands
        assert len(circle) == 1 and circle[0].vx / circle[0].yaw_rate == pytest.approx(CIRCLE_RADIUS)
        (ahead,) = draw_episode(CollectConfig(terrain="slope"), number)[0].commands
        assert ahead.vx >= 0.3 and ahead.vy == ahead.yaw_rate == 0.0
        ahead, back, *_ = draw_episode(CollectConfig(terrain="debris", seconds=20.0), number)[0].commands
        assert ahead.vx == -back.vx and ahead.vx * back.start == pytest.approx(2.4)
    speeds = [c.vx for n in range(20) for c in draw_episode(CollectConfig(terrain="flat"), n)[0].commands]
    assert min(speeds) < -0.3 and max(speeds) > 0.6


def test_the_twin_keeps_its_own_body_whatever_is_drawn() -> None:
    twins = [draw_episode(CollectConfig(sensors="twin"), number)[0] for number in range(3)]
    assert {twin.payload_mass for twin in twins} == {1.5} and {twin.joint_friction for twin in twins} == {2.0}
    assert len({twin.commands for twin in twins}) == 3
    nominal = draw_episode(CollectConfig(nominal=True), 0)[0]
    assert nominal.pushes == () and nominal.payload_mass == 0.0 and nominal.friction is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"gait": "gallop"},
            "unknown gait 'gallop': choose one of stand, walk, trot, bound, pace, pronk, trot-to-bound, stationary",
        ),
        ({"terrain": "moon"}, "unknown terrain 'moon': choose one of flat, rubber, slippery, debris, circular, rough"),
        ({"sensors": "best"}, "unknown sensors 'best': choose one of exact, training, twin"),
        ({"feedback": "hope"}, "unknown feedback 'hope': choose one of truth, gait, gait-flat, nmn, iekf"),
        ({"episodes": 0}, "episodes must be 1 or more"),
        ({"seconds": 0.0}, "seconds must lie between"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"stationary_share": 1.5}, "stationary_share must lie between 0 and 1"),
    ],
)
def test_bad_settings_are_one_sentence(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(GaitError, match=sentence):
        replace(QUICK, **change)


def edited_go1(path: Path, **changes: object) -> str:
    """The Go1's YAML file with other entries."""
    tree = yaml.safe_load(Path(robots.__file__).with_name("go1.yaml").read_text())
    path.write_text(yaml.safe_dump({**tree, **changes}, sort_keys=False))
    return str(path)


def test_a_robot_that_cannot_be_simulated_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three = edited_go1(tmp_path / "three.yaml", legs={"a": [0.2, -0.1, 0], "b": [0.2, 0.1, 0], "c": [-0.2, 0.1, 0]})
    wrong = edited_go1(tmp_path / "wrong.yaml", colour="red")
    for robot, sentence in (
        ("rex", "unknown robot 'rex': choose one of a1"),
        (three, "the walking controller needs four legs, one at each corner; go1 has a at"),
        (wrong, "unknown key 'colour'"),
    ):
        assert main(["sim", "--robot", robot, "--episodes", "1", "--out", str(tmp_path / "out")]) == 1
        err = capsys.readouterr().err
        assert sentence in err.splitlines()[-1] and "are safe" not in err and err.count("gait:") == 1
        assert not (tmp_path / "out").exists()


def test_other_settings_in_the_same_folder_are_refused(reference: Path) -> None:
    before = contents(reference)
    for change, key in (({"gait": "pace"}, "gait = trot, not pace"), ({"episodes": 3}, "episodes = 4, not 3")):
        with pytest.raises(GaitError, match=f"holds a collection with {key}"):
            collect(replace(QUICK, **change), reference)
    with pytest.raises(GaitError, match="workers must be 1 or more"):
        collect(QUICK, reference, workers=0)
    assert contents(reference) == before


def test_a_robot_file_that_changed_is_refused(tmp_path: Path) -> None:
    file, folder = tmp_path / "mine.yaml", tmp_path / "out"
    config = replace(QUICK, episodes=1, robot=edited_go1(file))
    collect(config, folder)
    file.write_text(f"# A comment changes nothing.\n{file.read_text()}")
    assert collect(config, folder).resumed == 1
    before = contents(folder)
    edited_go1(file, imu={"position": [0.1, 0.0, 0.0], "quat_wxyz": [1.0, 0.0, 0.0, 0.0]})
    with pytest.raises(GaitError, match="a robot that .*mine.yaml no longer describes: choose another folder"):
        collect(replace(config, episodes=2), folder)
    assert contents(folder) == before


def test_a_collection_from_before_robots_had_a_digest_goes_on(tmp_path: Path, reference: Path) -> None:
    collect(replace(QUICK, episodes=1), tmp_path)
    settings = json.loads((tmp_path / "collection.json").read_text())
    assert len(settings.pop("robot_sha256")) == 64
    (tmp_path / "collection.json").write_text(json.dumps(settings, indent=2) + "\n")
    assert collect(QUICK, tmp_path).resumed == 1
    assert contents(tmp_path) == contents(reference)


def test_folders_that_cannot_be_used_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", Path("/proc/gait-collection")):
        with pytest.raises(GaitError, match="cannot use .* for a collection"):
            collect(QUICK, folder)
    (tmp_path / "index.jsonl").write_text("")
    with pytest.raises(GaitError, match="has an index.jsonl but no collection.json"):
        collect(QUICK, tmp_path)


@pytest.mark.parametrize("name", ["gait", "nmn", "gait-1", "iekf", "iekf-sr"])
def test_an_estimator_in_the_loop_walks(name: str, tmp_path: Path) -> None:
    config = CollectConfig(terrain="rubber", episodes=1, seconds=1.0, sensors="exact", feedback=name, nominal=True)
    collect(config, tmp_path)
    truth = Log.load(tmp_path / "episode_00000.npz")
    told = tmp_path / "truth"
    collect(replace(config, feedback="truth"), told)
    assert not np.array_equal(truth.q, Log.load(told / "episode_00000.npz").q), "the loop must really be closed"
    assert np.abs(truth.vel_w).max() < 2.0


def test_the_verb_prints_rows_and_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sim", "--terrain", "flat", "--episodes", "1", "--seconds", "0.3", "--out", str(tmp_path / "a")]
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    rows = {row["name"]: row["value"] for row in json.loads(out)["rows"]}
    assert rows["episodes"] == 1 and rows["recorded"] == 0.3 and rows["falls"] == 0 and rows["realtime_factor"] > 0
    assert err == "", "no progress bar where nobody watches"
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "realtime_factor" not in out, "nothing was simulated the second time"
    assert f"wrote {tmp_path / 'a'}" in out and "next: gait info" in out
    assert main(["sim", "--gait", "gallop"]) == 1
    assert "choose one of stand, walk, trot" in capsys.readouterr().err


def test_a_strip_says_how_many_frames_it_holds(tmp_path: Path) -> None:
    images = [np.full((10, 16, 3), i, dtype=np.uint8) for i in range(50)]
    assert save(images, tmp_path / "strip.png") == 8 and save(images[:3], tmp_path / "short.png") == 3
    assert save(images, tmp_path / "moving.gif") == 50
