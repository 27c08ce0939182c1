"""`gait live` as a robot meets it: processes, DDS, UDP, a publisher that dies, Ctrl-C."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import needs
import numpy as np
import pytest

from gait import Estimator, Log, Robot, Trajectory, open_log
from gait.cli import main
from gait.errors import GaitError, install_hint
from gait.health import Health
from gait.io.ros import messages
from gait.io.ros.definitions import IMU, ODOMETRY, TRANSFORMS
from gait.io.ros.odometry import TWIST
from gait.live import play
from gait.live.go1 import Go1Source, size_of
from gait.live.monitor import Monitor, StatusLine
from gait.live.pairing import NS, Arrival
from gait.live.session import WITHOUT_TARGETS, run_live
from gait.live.sources import ReplaySource
from gait.samples import SAMPLE

SECONDS = 2.0
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
DOMAIN = 60 + WORKER
NETWORK = ["--domain", str(DOMAIN), "--interface", "lo"]
PATIENCE = 120.0
"""A loaded machine is slow, not wrong."""


@pytest.fixture(scope="module")
def log() -> Log:
    whole = Log.load(SAMPLE)
    return whole.slice(t1=float(whole.t[0]) + SECONDS)


def stamped(log: Log, start: float) -> tuple[Log, list[int]]:
    """The log with the stamps that `play` gives its rows, and those in ns."""
    ns = [round(start * NS) + round((t - float(log.t[0])) * NS) for t in log.t.tolist()]
    return log.replace(t=np.array(ns) / NS), ns


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


# Over DDS, in processes


@dataclass
class Story:
    """What happened to one process of `gait live`, from its start to Ctrl-C."""

    code: int
    rows: dict[str, float]
    said: str
    record: Path
    odometry: list[bytes] = field(default_factory=list)
    transforms: list[bytes] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A publisher plays 2 s; another is killed in the middle of a walk; a third goes on; then Ctrl-C."""
    needs.package("cyclonedds")
    from gait.live.dds import Node

    folder = tmp_path_factory.mktemp("live")
    record, said, walk = folder / "live.mcap", folder / "said.txt", folder / "walk.npz"
    Log.load(SAMPLE).save(walk)
    command = [sys.executable, "-m", "gait", "live", "ros", "--targets", "/joint_targets", *NETWORK]
    with said.open("w") as file:
        live = subprocess.Popen(
            [*command, "--record", record, "--every", "0.1", "--json"], stdout=subprocess.PIPE, stderr=file, text=True
        )
        node = Node(DOMAIN, "lo")
        odometry, transforms = node.reader("rt/odom", ODOMETRY), node.reader("rt/tf", TRANSFORMS)
        publishers: list[subprocess.Popen[bytes]] = []
        found = Story(-1, {}, "", record)

        def publisher(start: float, *more: object) -> subprocess.Popen[bytes]:
            words = [sys.executable, "-m", "gait.live.play", "ros", walk, *NETWORK, "--stamp", start, *more]
            publishers.append(subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL))
            return publishers[-1]

        def samples_received() -> int:
            found.odometry += [data for data, _ in odometry.take()]
            found.transforms += [data for data, _ in transforms.take()]
            return len(found.odometry)

        try:
            assert publisher(1000.0, "--seconds", SECONDS, "--wait", PATIENCE).wait(PATIENCE) == 0
            until(lambda: samples_received() >= SECONDS * 500, "the first walk")
            killed = publisher(2000.0)
            until(lambda: samples_received() >= SECONDS * 500 + 200, "the second walk")
            killed.kill()
            until(lambda: "no samples for" in said.read_text(), "the silence to be told")
            before = samples_received()
            assert publisher(2010.0, "--begin", 5.0, "--seconds", 1.0).wait(PATIENCE) == 0
            until(lambda: samples_received() >= before + 500, "the third walk")
            live.send_signal(signal.SIGINT)
            out, _ = live.communicate(timeout=PATIENCE)
        finally:
            for process in (live, *publishers):
                process.kill()
                process.communicate()
            node.close()
    found.code, found.said = live.returncode, said.read_text()
    found.rows = {row["name"]: row["value"] for row in json.loads(out)["rows"]}
    return found


def numbers(message: bytes) -> tuple[int, np.ndarray]:
    """Stamp and numbers of an odometry message between odom and base_link."""
    sec, nanosec = np.frombuffer(message, "<i4", 2, 4)
    return int(sec) * NS + int(nanosec), np.frombuffer(message, "<f8", 85, len(message) - 85 * 8)


def test_odometry_over_dds_is_that_of_the_offline_run(story: Story, log: Log) -> None:
    same, stamps = stamped(log, 1000.0)
    offline = Estimator.load("go1").run(same, "gravity")
    received = [numbers(message) for message in story.odometry[: len(log)]]
    assert [ns for ns, _ in received] == stamps, "every sample, in order"
    values = np.array([values for _, values in received])
    assert np.allclose(values[:, TWIST : TWIST + 3], offline.vel_b, atol=1e-9)
    assert np.allclose(values[:, :3], offline.pos_w, atol=1e-9)
    assert np.allclose(values[:, [6, 3, 4, 5]], offline.quat_wb_wxyz, atol=1e-9)
    assert np.allclose(values[:, 7:43].reshape(-1, 6, 6), offline.pose_cov, rtol=1e-6, atol=1e-12)
    assert np.abs(values[-100:, TWIST]).max() > 0.05, "it walks"


def test_ros_reads_what_was_sent(story: Story) -> None:
    typesys = needs.package("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    message = store.deserialize_cdr(story.odometry[-1], "nav_msgs/msg/Odometry")
    (transform,) = store.deserialize_cdr(story.transforms[-1], "tf2_msgs/msg/TFMessage").transforms
    assert (message.header.frame_id, message.child_frame_id) == ("odom", "base_link")
    assert transform.header.stamp == message.header.stamp and transform.child_frame_id == "base_link"
    assert transform.transform.translation.x == message.pose.pose.position.x
    assert np.all(np.array(message.twist.covariance).reshape(6, 6).diagonal() > 0.0)


def test_nothing_is_lost_and_the_latency_is_told(story: Story) -> None:
    assert story.code == 0
    assert story.rows["samples"] == len(story.odometry) and story.rows["lost"] == 0 and story.rows["dropped"] == 0
    assert 0.0 < story.rows["latency_p50"] <= story.rows["latency_p99"] <= story.rows["latency_max"]
    assert " Hz | p99 " in story.said and " | lost 0 | ok" in story.said


def test_a_publisher_may_die_and_come_back(story: Story) -> None:
    stamps = [numbers(message)[0] / NS for message in story.odometry]
    assert story.rows["gaps"] == 2 and max(np.diff(stamps)) > 5.0
    third = [numbers(message)[1] for message in story.odometry if numbers(message)[0] >= 2010 * NS]
    assert len(third) == 500 and np.isfinite(third).all()
    truth = Log.load(SAMPLE)
    truth = truth.slice(float(truth.t[0]) + 5.0, float(truth.t[0]) + 6.0)
    error = np.array(third)[-100:, TWIST : TWIST + 3] - truth.vel_b[-100:]
    assert np.sqrt((error**2).sum(1).mean()) < 0.1, "half a second after it came back it is right again"


def test_ctrl_c_leaves_a_recording_of_everything(story: Story) -> None:
    reader = needs.package("mcap.reader")
    with story.record.open("rb") as file:
        opened = reader.make_reader(file)
        recorded = [message.data for _, channel, message in opened.iter_messages(topics=["/odom"])]
        channels = {channel.id: channel.topic for channel in opened.get_summary().channels.values()}
        counts = {channels[i]: count for i, count in opened.get_summary().statistics.channel_message_counts.items()}
    assert counts.pop("/tf_static") == 1 and 2 <= counts.pop("/diagnostics") <= len(story.odometry) // 50
    assert len(counts) == 5 and set(counts.values()) == {len(story.odometry)}
    # A file is read in the order of its stamps, and so were these sent.
    assert recorded == story.odometry


# Over DDS, in this process


def test_a_go2_is_read_with_the_command_before_each_state(log: Log) -> None:
    needs.package("cyclonedds")
    from gait.live.dds import Node
    from gait.live.sources import UnitreeSource

    node, rows = Node(DOMAIN, "lo"), list(log.rows())[:50]
    source = UnitreeSource(node, Robot.load("go1"))
    robot = play.UnitreeRobot(node)
    until(robot.discovered, "the reader to be found")
    arrivals: list[Arrival] = []

    def received() -> bool:
        arrivals.extend(source.poll(0.01))
        return len(arrivals) == len(rows)

    before = time.time_ns()
    for row in rows:
        robot.send(row, 0)
        time.sleep(0.0005)
    until(received, "all states")
    for row, (sample, ns, sent, _) in zip(rows, arrivals, strict=True):
        for name in ("gyro", "accel", "q", "dq", "q_des", "tau"):
            assert np.allclose(getattr(sample, name), getattr(row, name), rtol=1e-6, atol=1e-6), name
        assert before <= ns == sent <= time.time_ns() and sample.t == ns / NS
    assert source.status() == ""
    node.close()


def test_best_effort_publishers_are_received(log: Log) -> None:
    needs.package("cyclonedds")
    from cyclonedds.pub import DataWriter
    from cyclonedds.qos import Policy, Qos
    from cyclonedds.topic import Topic

    from gait.live import idl
    from gait.live.dds import Node

    node = Node(DOMAIN, "lo")
    reader = node.reader("rt/imu_best_effort", IMU)
    qos = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(1))
    topic = Topic(node._participant, "rt/imu_best_effort", idl.raw(IMU))
    writer = DataWriter(node._participant, topic, qos=qos)
    until(lambda: reader.writers == 1, "the writer to be found")
    writer.write(idl.raw(IMU).of(messages.encode_imu(5, np.ones(3), np.ones(3))))
    node.wait(10.0)
    assert len(list(reader.take())) == 1
    node.close()


# UDP


class Kept:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.states: list[object] = []
        self.closed = False

    def put(self, arrival: Arrival, state: object) -> None:
        self.stamps.append(arrival.ns)
        self.states.append(state)

    def close(self) -> None:
        self.closed = True


def receive_go1(log: Log, path: Path) -> tuple[Kept, Monitor, str, int]:
    """What comes of the packets of a played Go1: states, counts, the status, and ns of a tick as they were judged."""
    robot = Robot.load("go1")
    source, kept, monitor = Go1Source(robot, 0, "127.0.0.1"), Kept(), Monitor()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"noise", ("127.0.0.1", source.port))
    estimator = Estimator.load(robot)
    words = [sys.executable, "-m", "gait.live.play", "go1", str(path), "--port", str(source.port)]
    sender = subprocess.Popen([*words, "--stamp", "1000"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE

    def stop() -> bool:
        return monitor.samples == len(log) or time.monotonic() > deadline

    run_live(source, estimator, [kept], monitor, StatusLine(False), stop)
    assert sender.wait(PATIENCE) == 0
    said, unit = source.status(), source._clock.unit
    source.close()
    return kept, monitor, said, unit


def test_packets_of_a_go1_give_the_offline_result(log: Log, tmp_path: Path) -> None:
    robot = Robot.load("go1")
    log.save(tmp_path / "walk.npz")
    for _ in range(3):
        kept, monitor, said, unit = receive_go1(log, tmp_path / "walk.npz")
        if unit:  # a machine that holds the first packets up for half a second leaves the unit of a tick open
            break
    assert set(np.diff(kept.stamps)) == {2_000_000}, "ticks have no jitter"
    assert monitor.samples == len(log) and kept.closed, "the kernel keeps all of it until we read"
    assert "1 packets left out, the last of 5 bytes" in said and str(size_of("LowState")) in said

    def rounded(name: str) -> np.ndarray:
        return getattr(log, name).astype(np.float32).astype(np.float64)

    parts = {name: rounded(name) for name in ("gyro", "accel", "q", "dq", "q_des", "tau")}
    offline = Estimator.load(robot).run(log.replace(t=np.arange(len(log)) * 0.002, **parts), "gravity")
    velocities = np.array([state.vel_b for state in kept.states])
    assert np.allclose(velocities, offline.vel_b, atol=1e-9)


def test_a_port_that_is_taken_is_told() -> None:
    source = Go1Source(Robot.load("go1"), 0, "127.0.0.1")
    with pytest.raises(GaitError, match=f"UDP port {source.port}"):
        Go1Source(Robot.load("go1"), source.port, "127.0.0.1")
    source.close()


# A log, and what is missing


def test_a_log_is_played_and_recorded(log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader = needs.package("mcap.reader")
    short = log.slice(t1=float(log.t[0]) + 0.5)
    short.save(tmp_path / "walk.npz")
    record = tmp_path / "walk.mcap"
    words = ["live", str(tmp_path / "walk.npz"), "--odom", "none", "--tf", "none", "--record", str(record)]
    assert main([*words, "--json"]) == 0
    found = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found["samples"] == len(short) and found["lost"] == 0 and found["duration"] > 0.4
    with record.open("rb") as file:
        recorded = [message.data for _, _, message in reader.make_reader(file).iter_messages(topics=["/odom"])]
    offline = Estimator.load("go1").run(short, "gravity")
    assert np.allclose([numbers(message)[1][TWIST : TWIST + 3] for message in recorded], offline.vel_b, atol=1e-9)
    assert open_log(record).replace(t=short.t).q.tolist() == short.q.tolist()
    assert main(["run", str(record), "--start", "gravity", "--out", str(tmp_path / "again"), "--truth", "none"]) == 0
    again = Trajectory.load(tmp_path / "again/trajectory.csv")
    assert np.allclose(again.vel_b, offline.vel_b, atol=1e-6), "a recording can be run again"
    capsys.readouterr()
    assert main(words) == 1, "a recording is not overwritten"
    assert f"{record} exists" in capsys.readouterr().err


def test_without_commands_it_goes_on_with_weights_that_need_none(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    from gait.live import session

    monkeypatch.setattr(session, "PATIENCE", 0.1)
    robot = Robot.load("go1")
    source, kept, monitor = ReplaySource(log.replace(q_des=None), robot, speed=5.0), Kept(), Monitor()
    source.wants_targets = True
    run_live(source, Estimator.load(robot), [kept], monitor, StatusLine(False))
    assert monitor.notes == [WITHOUT_TARGETS] and 0 < len(kept.states) < len(log)
    assert np.isfinite([state.vel_b for state in kept.states]).all()
    assert not kept.states[-1].health.flags & (Health.NO_MEASUREMENT | Health.STALE_LEG)


def test_an_error_in_the_middle_still_completes_the_recording(log: Log) -> None:
    robot, kept = Robot.load("go1"), Kept()
    source = ReplaySource(log, robot, speed=100.0)

    class Broken:
        def put(self, arrival: Arrival, state: object) -> None:
            raise GaitError("the disk is full")

        def close(self) -> None: ...

    with pytest.raises(GaitError, match="disk"):
        run_live(source, Estimator.load(robot), [kept, Broken()], Monitor(), StatusLine(False))
    assert kept.closed and len(kept.states) == 1


def test_what_is_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "cyclonedds.domain", None)
    assert main(["live", "ros"]) == 1
    assert install_hint("live") in capsys.readouterr().err
    assert main(["live", "nowhere.npz", "--odom", "none", "--tf", "none"]) == 1
    assert "there is no file nowhere.npz" in capsys.readouterr().err
    assert main(["live", "ros", "--record", "a.bag"]) == 1
    assert "end in .mcap" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("ROS_DOMAIN_ID", "many")
    if importlib.util.find_spec("cyclonedds") is None:
        return
    assert main(["live", "ros"]) == 1
    assert "ROS_DOMAIN_ID is 'many'" in capsys.readouterr().err


# Strangers


def test_random_packets_do_not_stop_it_and_are_counted(log: Log) -> None:
    robot, rng = Robot.load("go1"), np.random.default_rng(0)
    source, kept, monitor = Go1Source(robot, 0), Kept(), Monitor()
    assert source.listens == (f"UDP 127.0.0.1:{source.port}",), "nothing but what it was told to"
    rows, sent = list(log.rows())[:100], 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for i, row in enumerate(rows):
            stranger.sendto(play.encode_state("unitree_legged_sdk", row, 2000 * i), ("127.0.0.1", source.port))
            for size in (0, 1, 736, 1500, 60000):
                stranger.sendto(rng.bytes(size), ("127.0.0.1", source.port))
                sent += 1
    deadline = time.monotonic() + PATIENCE
    source.wants_targets = False
    run_live(
        source, Estimator.load(robot), [kept], monitor, StatusLine(False),
        lambda: monitor.samples >= len(rows) or time.monotonic() > deadline,
    )  # fmt: skip
    said = source.status()
    source.close()
    assert monitor.samples == len(rows) and np.isfinite([state.vel_b for state in kept.states]).all()
    assert "packets left out" in said and int(said.split()[0]) > sent // 2


def test_random_datagrams_to_the_ports_of_dds_do_not_stop_it() -> None:
    needs.package("cyclonedds")
    from gait.live.dds import Node

    domain, rng = DOMAIN + 20, np.random.default_rng(1)
    node = Node(domain, "lo")
    reader, writer = node.reader("rt/imu", IMU), node.writer("rt/imu", IMU, 10)
    until(lambda: reader.writers == 1, "the writer to be found")
    base = 7400 + 250 * domain
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for i in range(2000):
            head = b"RTPS\x02\x02\x01\x10" + rng.bytes(12) if i % 2 else b""
            stranger.sendto(head + rng.bytes(int(rng.integers(0, 400))), ("127.0.0.1", base + 10 + i % 2))
    writer.write(messages.encode_imu(5, np.ones(3), np.ones(3)))
    node.wait(10.0)
    assert len(list(reader.take())) == 1, "it still works"
    node.close()


def test_what_is_open_is_printed(log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs.package("cyclonedds")
    log.slice(t1=float(log.t[0]) + 0.1).save(tmp_path / "walk.npz")
    assert main(["live", str(tmp_path / "walk.npz"), *NETWORK]) == 0
    first = 7400 + 250 * DOMAIN
    assert (
        f"DDS domain {DOMAIN}, interface lo, UDP ports {first} to {first + 249}\n"
        "sends rt/odom, rt/tf, rt/tf_static, rt/diagnostics\n" in capsys.readouterr().err
    )
    assert main(["live", str(tmp_path / "walk.npz"), "--odom", "none", "--tf", "none"]) == 0
    assert "listens to nothing, sends nothing" in capsys.readouterr().err
    assert (
        main(
            ["live", "ros", "--interface", '"/><x'],
        )
        == 1
    )
    assert "is no network interface" in capsys.readouterr().err
