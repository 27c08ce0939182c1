"""`gait run --fuse` on bags with LiDAR odometry, poses and fixes beside the samples, as rosbags encodes them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import bags
import numpy as np
import pytest
from cli_samples import rows

import gait
from gait import Log, lie
from gait.cli import main
from gait.external import ExternalSensor
from gait.io.ros.fused import FixOrigin
from gait.live.external_topics import DdsTopics
from gait.samples import SAMPLE

SHIFT, TURN = np.array([12.0, -3.0, 1.0]), lie.so3_exp(np.array([0.0, 0.0, 0.7]))
LEVER = np.array([0.1, 0.0, 0.2])


@pytest.fixture(scope="module")
def walk() -> Log:
    return gait.open_log(SAMPLE).reorder("go1").slice(0.0, 10.0).resample(250.0)


def messages(log: Log) -> list[bags.Message]:
    """The walk with joints that read 5 % too fast, its ground truth, and a LiDAR's odometry, 80 ms late."""
    make, rng, found = bags.Make(), np.random.default_rng(0), []
    for k in range(len(log)):
        ns = bags.EPOCH + round(log.t[k] * 1e9)
        found.append(("/imu", ns, make.imu(ns, log.gyro[k], log.accel[k])))
        found.append(("/joint_states", ns, make.joints(ns, log.joint_names, log.q[k], 1.05 * log.dq[k], log.tau[k])))
        if k % 5 == 0:
            found.append(("/ground_truth", ns, make.odometry(ns, log.pos_w[k], log.quat_wb_wxyz[k], log.vel_b[k])))
        if k % 25 == 0:
            R = lie.rotation_from_quat(log.quat_wb_wxyz[k])
            p = TURN @ (log.pos_w[k] + R @ LEVER) + SHIFT + 0.02 * rng.normal(size=3)
            message = make.odometry(ns, p, lie.quat_from_rotation(TURN @ R), np.zeros(3))
            message.pose.covariance[::7] = [4e-4] * 3 + [1e-4] * 3
            found.append(("/lidar/odom", ns + 80_000_000, message))
    return sorted(found, key=lambda one: one[1])


@pytest.fixture(scope="module")
def bag(walk: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuse") / "walk.mcap"
    bags.write_plain_mcap(path, messages(walk))
    return path


def test_run_fuses_a_topic(bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sensors = tmp_path / "sensors.yaml"
    sensors.write_text(f"/lidar/odom:\n  p_bs: {LEVER.tolist()}\n")
    command = ["run", str(bag), "--json", "--out"]
    assert main([*command, str(tmp_path / "alone")]) == 0
    alone = rows(capsys)
    fused = ["--fuse", "/lidar/odom", "--sensors", str(sensors)]
    assert main([*command, str(tmp_path / "fused"), *fused]) == 0
    with_lidar = rows(capsys)
    assert with_lidar["duration"] == alone["duration"]
    truth, ends = gait.open_log(bag), {}
    for name in ("alone", "fused"):
        found = gait.Trajectory.load(tmp_path / name / "trajectory.csv")
        ends[name] = np.linalg.norm(found.pos_w - truth.pos_w, axis=1)[len(truth) // 2 :].mean()
    assert ends["fused"] < 0.7 * ends["alone"]
    assert main(["run", str(bag), "--out", str(tmp_path / "words"), *fused]) == 0
    printed = capsys.readouterr().out
    assert "/lidar/odom: " in printed and "measurements fused" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fuse", "/lidar"], "did you mean --fuse /lidar/odom"),
        (["--fuse", "/imu"], "tells nothing of fuse"),
        (["--fuse", "/lidar/odom:Image"], "cannot be fused"),
        (["--sensors", "x.yaml"], "give --fuse TOPIC too"),
        (["--fuse", "/lidar/odom", "--sensors", "missing.yaml"], "missing.yaml"),
    ],
)
def test_mistakes_say_what_to_type(
    bag: Path, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(bag), "--out", str(tmp_path / "x"), *words]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_what_is_fused_is_not_ground_truth(walk: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.mcap"
    bags.write_plain_mcap(path, [one for one in messages(walk)[:2000] if one[0] != "/ground_truth"])
    assert main(["run", str(path), "--json", "--out", str(tmp_path / "run"), "--fuse", "/lidar/odom"]) == 0
    assert "velocity_rmse" not in rows(capsys)


def test_fixes_become_metres() -> None:
    """Against the length of a degree on the ellipsoid, and back to zero at the first fix."""
    origin = FixOrigin()
    np.testing.assert_allclose(origin.enu(np.array([48.0, 11.0, 500.0])), 0.0, atol=1e-9)
    east, north = origin.enu(np.array([48.0, 11.001, 500.0])), origin.enu(np.array([48.001, 11.0, 500.0]))
    # 111.4 km cos(48 deg) of a degree of longitude and 111.19 km of latitude at 48 degrees, plus the height.
    np.testing.assert_allclose(east[:2], [74.634, 0.0], atol=0.02)
    np.testing.assert_allclose(north[:2], [0.0, 111.209], atol=0.02)
    up = origin.enu(np.array([48.0, 11.0, 507.0]))
    np.testing.assert_allclose(up, [0.0, 0.0, 7.0], atol=1e-6)


def test_a_bag_is_played_back_with_its_sensors(bag: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["live", str(bag), "--odom", "none", "--tf", "none", "--speed", "20", "--fuse", "/lidar/odom"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "/lidar/odom: 9" in printed and "aligning" in printed


def test_topics_of_ros_2_are_fused_as_they_come(walk: Log) -> None:
    """Messages by rosbags through a reader that holds them; one that is cut short is counted and ends nothing."""
    make, est = bags.Make(), gait.Estimator.load("go1", sensors={"/pose": ExternalSensor(), "/fix": ExternalSensor()})
    est.start_as(walk)
    row = next(iter(walk.rows()))
    est.update(row)
    ns = bags.EPOCH
    status = make.new("sensor_msgs/msg/NavSatStatus", status=-1)
    messages = {
        "rt/pose": ("PoseStamped", make.pose(ns, walk.pos_w[0], walk.quat_wb_wxyz[0])),
        "rt/fix": ("NavSatFix", make.new("sensor_msgs/msg/NavSatFix", header=make.header(ns), status=status)),
    }

    class Held:
        def reader(self, topic: str, kind: str) -> object:
            data = bytes(bags.store().serialize_cdr(messages[topic][1], kind))
            return SimpleNamespace(take=lambda: [(data, ns), (data[:20], ns)])

    topics = DdsTopics(Held(), ["/pose:PoseStamped", "/fix:NavSatFix"])  # type: ignore[arg-type]
    topics.correct(est, ns - round(row.t * 1e9), ns)
    assert [(name, bool(result)) for name, result in topics.results] == [("/pose", True)], "a receiver without a fix"
    assert len(topics.notes()) >= 2
