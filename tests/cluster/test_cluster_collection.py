"""Collections on a Ray cluster: the bytes of a local one, whatever happens to the nodes."""

import hashlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import needs
import pytest
from policies import write_go1

from gait import GaitError
from gait.cli import main
from gait.cluster import tasks
from gait.cluster.collection import JOURNAL, Ledger, collect_on_cluster, record_remotely
from gait.cluster.luggage import pack, unpack
from gait.commands import sim
from gait.io.storage import Storage, location
from gait.robot import robot as robot_module
from gait.sim.collect import CollectionProgress, collect, collection_settings
from gait.sim.plan import CollectConfig
from gait.sim.policy.rig import rig_of
from gait.sim.store import INDEX, read_index

QUICK = CollectConfig(episodes=4, seconds=0.3, terrain="flat", stationary_share=0.25)


def contents(place: str | Path) -> dict[str, str]:
    storage = Storage(place)
    return {name: hashlib.sha256(storage.read(name)).hexdigest() for name in storage.names()}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    collect(QUICK, folder)
    return folder


def test_urls_survive_a_path() -> None:
    assert location(Path("s3://bucket/a/b")) == "s3://bucket/a/b" == location("s3://bucket/a/b")
    assert location("file:///tmp/x") == "/tmp/x" and location("runs/sim") == "runs/sim"


def test_object_storage_needs_a_cluster() -> None:
    with pytest.raises(GaitError, match="s3://bucket/a is object storage, which takes a cluster: add --ray"):
        sim.run(sim.SimOptions(out=Path("s3://bucket/a"), episodes=1))


@pytest.mark.parametrize(
    "words",
    [
        ["sim", "--episodes", "1", "--ray", "--out", "made"],
        ["train", "--data", "data", "--ray", "--out", "made"],
        ["eval", "walk.mcap", "--methods", "all", "--ray", "--out", "made"],
        ["sweep", "sweep.yaml", "--out", "made"],
    ],
)
def test_without_ray_one_line_names_the_command(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"gait: ray is not installed: run `pip install .*\[cluster\]'`", said)
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_a_journal_keeps_what_a_killed_process_had(reference: Path, tmp_path: Path) -> None:
    """The index comes last; until then finished episodes are in the journal."""
    settings = collection_settings(QUICK)
    ledger = Ledger(str(tmp_path), settings)
    ledger.begin(set())
    ledger._flushed = -1e9
    row = read_index(reference)[2]
    ledger.add(row)
    ledger.add(read_index(reference)[0])
    assert not (tmp_path / INDEX).exists() and len(list((tmp_path / JOURNAL).iterdir())) == 1
    # The process is killed here: what was not flushed is lost, and no more.
    again = Ledger(str(tmp_path), settings)
    assert again.rows == {2: row}
    again.begin({2})
    again.finish()
    assert read_index(tmp_path) == [row] and not (tmp_path / JOURNAL).exists()
    with pytest.raises(GaitError, match="holds a collection with seed = 0, not 1"):
        Ledger(str(tmp_path), {**settings, "seed": 1})


def test_robots_policies_and_scenes_travel(tmp_path: Path) -> None:
    """The settings come out of the luggage with files of the same contents in other places."""
    text = Path(robot_module.__file__).with_name("go1.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("name: go1", "name: mine", 1))
    config = CollectConfig(robot=str(tmp_path / "mine.yaml"), episodes=1, seconds=0.2, terrain="flat")
    there = unpack(pack(config))
    assert there.robot != config.robot and Path(there.robot).read_bytes() == Path(config.robot).read_bytes()
    assert replace(there, robot=config.robot) == config
    home = tmp_path / "policy"
    home.mkdir()
    files = write_go1(home)
    settings = {name: getattr(files, name) for name in ("policy", "model", "observation")}
    policy = CollectConfig(**settings, episodes=1, seconds=0.2, terrain="flat")
    there = unpack(pack(policy))
    assert Path(there.policy).parent != home and rig_of(there.files).digests() == rig_of(policy.files).digests()
    collect(policy, tmp_path / "local")
    (tmp_path / "node").mkdir()
    row, _ = record_remotely(pack(policy), str(tmp_path / "node"), 0)
    assert row == read_index(tmp_path / "local")[0]


def test_a_robot_of_its_own_is_recorded_with_the_same_bytes(tmp_path: Path) -> None:
    """Random robots name the file they come from, which lies elsewhere on a node."""
    text = Path(robot_module.__file__).with_name("go1.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("name: go1", "name: mine", 1))
    config = CollectConfig(
        robot=str(tmp_path / "mine.yaml"), random_robots=True, episodes=1, seconds=0.2, terrain="flat"
    )
    collect(config, tmp_path / "local")
    (tmp_path / "node").mkdir()
    row, _ = record_remotely(pack(config), str(tmp_path / "node"), 0)
    assert row == read_index(tmp_path / "local")[0]
    local = contents(tmp_path / "local")
    assert contents(tmp_path / "node") == {name: local[name] for name in (row["file"], row["robot_file"])}


def test_s3_holds_what_a_folder_holds(s3: Callable[[str], str], tmp_path: Path) -> None:
    place = f"{s3('storage')}/folder"
    for storage in (Storage(place), Storage(tmp_path / "folder")):
        assert storage.names() == [] and storage.names("journal") == []
        with pytest.raises(FileNotFoundError):
            storage.read("a")
        storage.write("a", b"1")
        storage.write("a", b"22")
        storage.write("journal/b", b"3")
        assert storage.read("a") == b"22" and storage.names() == ["a"] and storage.names("journal") == ["b"]
        storage.remove(["journal/b", "none"])
        assert storage.names("journal") == []
    with pytest.raises(GaitError, match="cannot write s3://no-such-bucket/x/a: "):
        Storage("s3://no-such-bucket/x").write("a", b"")


@pytest.mark.slow
def test_the_command_fills_a_bucket(
    cluster: Any, s3: Callable[[str], str], reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        cluster.processors()
    place = f"{s3('command')}/trot"
    words = ["sim", "--episodes", "4", "--seconds", "0.3", "--terrain", "flat", "--stationary-share", "0.25"]
    assert main([*words, "--out", place, "--ray", "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["episodes"] == 4 and rows["resumed"] == 0
    assert len([name for name in rows if name.startswith("node.")]) >= 1
    assert contents(place) == contents(reference)
    # A damaged object is found by the nodes and made again.
    storage = Storage(place)
    storage.write("episode_00001.npz", storage.read("episode_00001.npz")[:-10])
    assert main([*words, "--out", place, "--ray", cluster.address]) == 0
    printed = capsys.readouterr().out
    assert f"wrote {place}" in printed and "resumed" in printed
    assert contents(place) == contents(reference)


@pytest.mark.slow
def test_jobs_in_flight_are_bounded(cluster: Any) -> None:
    """However many there are, no more than two for each processor are begun ahead of their results."""
    for _ in range(2):
        cluster.processors()
    begun, taken, most = 0, set[int](), 0

    def jobs() -> Iterator[tuple[int, tuple[int]]]:
        nonlocal begun, most
        for number in range(300):
            begun += 1
            most = max(most, begun - len(taken))
            yield number, (-number,)

    def take(number: int, result: tasks.NodeResult) -> bool:
        assert result.value == number
        taken.add(number)
        return True

    with tasks.connected(cluster.address, 1) as ray:
        tasks.spread(ray, abs, jobs(), take)
    assert taken == set(range(300)) and most == 2 * tasks.AHEAD


@pytest.mark.slow
def test_a_node_is_killed_in_the_middle_of_a_collection(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(QUICK, episodes=24, seconds=2.0)
    collect(config, tmp_path / "local")
    nodes = [cluster.processors() for _ in range(2)]
    seen: list[CollectionProgress] = []

    def kill_one(now: CollectionProgress) -> None:
        seen.append(now)
        if now.finished >= 5 and len(nodes) == 2:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    end = collect_on_cluster(config, str(tmp_path / "ray"), cluster.address, on_progress=kill_one)
    assert end.finished == 24 and len(nodes) == 1
    assert [one.finished for one in seen] == sorted(one.finished for one in seen)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local"), "nothing missing, duplicated or damaged"
    assert not [path for path in (tmp_path / "ray").iterdir() if path.name.startswith(".")]
    assert capsys.readouterr().out == "", "what Ray says of it is none of our results"


@pytest.mark.slow
def test_an_episode_that_cannot_be_made_keeps_the_others(cluster: Any, tmp_path: Path) -> None:
    cluster.processors()
    config = replace(QUICK, episodes=2, seconds=1.5, stationary_share=0.5, payload=500.0)
    with pytest.raises(GaitError, match=r"fell in 20 attempts .*; \d of 2 episodes are safe in "):
        collect_on_cluster(config, str(tmp_path), cluster.address)
    assert (tmp_path / INDEX).exists()


@pytest.mark.slow
def test_ctrl_c_ends_the_tasks_and_keeps_finished_work(tmp_path: Path) -> None:
    needs.package("ray")
    config = replace(QUICK, episodes=40, seconds=2.0)
    words = ["sim", "--episodes", "40", "--seconds", "2", "--terrain", "flat", "--stationary-share", "0.25"]
    command = [sys.executable, "-m", "gait", *words, "--out", str(tmp_path / "ray"), "--ray", "local", "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "ray" / JOURNAL).glob("*")) and process.poll() is None:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    done = read_index(tmp_path / "ray")
    assert f"stopped: {len(done)} of 40 episodes are safe" in said and 0 < len(done) < 40
    collect(config, tmp_path / "local")
    assert collect(config, tmp_path / "ray").resumed == len(done), "a local run goes on with it"
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
