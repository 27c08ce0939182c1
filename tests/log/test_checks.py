"""`gait info` on logs: what is wrong with one is told, and nothing is told of a good one. The sample is such a one."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from gait import Log, quaternions
from gait.cli import main
from gait.log.checks import check_log
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(5.0, 11.0)


def wrong(log: Log) -> dict[str, str]:
    return {finding.name: finding.words for finding in check_log(log) if not finding.ok}


def test_a_good_log_passes_with_and_without_truth(log: Log) -> None:
    assert wrong(log) == {}
    # Without ground truth the robot must stand at first; this part of the sample begins in a trot.
    found = wrong(log.replace(pos_w=None, vel_w=None, quat_wb_wxyz=None))
    assert list(found) == ["start"] and "the robot moves at the first sample" in found["start"]


def test_clocks_of_a_log_that_is_too_short_are_not_judged(log: Log) -> None:
    brief = log.slice(5.0, 6.5)
    assert wrong(brief) == {}
    (clock,) = (finding for finding in check_log(brief) if finding.name == "truth_clock")
    assert "not compared" in clock.words


def test_the_sample_is_small_and_whole() -> None:
    assert SAMPLE.stat().st_size < 3_000_000
    whole = Log.load(SAMPLE)
    assert len(whole) == 10000 and whole.rate == 500.0 and whole.has_truth
    assert whole.contact is not None and whole.foot_vel_w is not None and whole.tau is not None


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        (lambda log: {"accel": -log.accel}, "gravity", "gravity points the wrong way"),
        (lambda log: {"accel": log.accel / 9.81}, "gravity", "so it is in g"),
        (lambda log: {"accel": log.accel - [0.0, 0.0, 9.81]}, "gravity", "gravity was taken out of it"),
        (lambda log: {"accel": log.accel[:, [2, 1, 0]]}, "gravity", "up is along x"),
        (lambda log: {"gyro": np.degrees(log.gyro)}, "gyro", "57 times the ground truth: it is in degrees"),
        (lambda log: {"q": np.degrees(log.q)}, "joints", "they are in degrees"),
        (lambda log: {"q_des": None}, "q_des", "gait-flat and nmn cannot run"),
        (lambda log: {"q_des": log.q}, "q_des", "equals q to the last bit"),
        (lambda log: {"quat_wb_wxyz": log.need("quat_wb_wxyz")[np.maximum(np.arange(len(log)) - 50, 0)]}, "truth_clock",
         "ahead by 97 ms, against the gyro; correct it with --align-clock"),
        (lambda log: {"vel_w": -log.need("vel_w")}, "truth_velocity", "check frame and unit of the velocity"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(log: Log, change: object, check: str, words: str) -> None:
    found = wrong(log.replace(**change(log)))  # type: ignore[operator]
    assert check in found
    assert re.search(words, found[check]), found


@pytest.mark.parametrize(("quat", "check"), [([0.5, -0.5, 0.5, -0.5], "gravity"), ([0.0, 0.0, 0.0, 1.0], "gyro")])
def test_an_imu_that_is_mounted_turned_is_judged_in_the_axes_of_the_body(
    log: Log, quat: list[float], check: str
) -> None:
    # On its edge, or looking backwards: v_i = R_bi^T v_b.
    R_bi = quaternions.rotate(np.tile(quat, (3, 1)), np.eye(3)).T
    turned = log.replace(gyro=log.gyro @ R_bi, accel=log.accel @ R_bi)
    robot = replace(log.load_robot(), imu_quat_wxyz=np.array(quat))
    assert [one.name for one in check_log(turned, robot) if not one.ok] == []
    assert check in wrong(turned)
    # All axes are turned in any frame; which one of a turned sensor is, is not named, since --scale has its axes.
    for signs, option in ((-1.0, "--scale gyro=-1"), (np.array([1.0, 1.0, -1.0]), "")):
        flipped = turned.replace(gyro=signs * turned.gyro)
        found = next(one for one in check_log(flipped, robot) if one.name == "gyro")
        assert "turn against the ground truth" in found.words and found.fix == option
        assert ("--scale" in found.words) == bool(option)


def test_info_tells_topics_guesses_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(SAMPLE)]) == 0
    text = capsys.readouterr().out
    assert "- time: stamps of the headers" in text and "ok   gravity:" in text and "LOOK" not in text
    assert main(["info", str(SAMPLE), "--truth", "none", "--json"]) == 0
    found = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found["truth"] == "no" and found["check_legs"] == "ok"
    assert found["/imu/data"] == "sensor_msgs/msg/Imu, 10000 samples, 500 Hz, used for imu"
    assert found["/ground_truth/odom"].endswith("not used")


def test_legs_in_the_wrong_order_are_noticed_with_and_without_truth() -> None:
    whole = Log.load(SAMPLE)
    names = [*whole.joint_names[3:6], *whole.joint_names[:3], *whole.joint_names[6:]]
    swapped = whole.replace(joint_names=names)
    for log in (swapped, swapped.replace(pos_w=None, vel_w=None, quat_wb_wxyz=None)):
        assert re.search("with the legs as .*: their order or signs are wrong", wrong(log)["legs"])
