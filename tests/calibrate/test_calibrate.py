"""Calibration: derivatives, injected errors, what is not observable, and the robot file."""

import json
from pathlib import Path

import numpy as np
import pytest
from injected import KINDS, Errors

from gait import Estimator, Log, Robot, lie
from gait.calibrate import Calibrated, Unknowns, calibrate
from gait.calibrate.least_squares import jackknife
from gait.calibrate.residuals import PartModel, Point, ResidualRows, knots_of
from gait.calibrate.walk_parts import cut, stances, velocity_lag
from gait.cli import main
from gait.errors import GaitError
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load("go1")


@pytest.fixture(scope="module")
def plain(log: Log, robot: Robot) -> Calibrated:
    return calibrate([log], robot, truth=False)


def test_derivatives_are_those_of_the_residuals(log: Log, robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    part = cut([log.slice(t1=float(log.t[0]) + 8.0)], robot)[2]
    # Derivatives by zeros and links are at joint velocities that fit the trajectory; here at those that were read.
    monkeypatch.setattr(PartModel, "slip", lambda self: np.zeros((len(self.t), 4, 3)))
    unknowns, rng = Unknowns(robot, truth=True), np.random.default_rng(1)
    values = 0.1 * unknowns.prior * rng.standard_normal(unknowns.size)
    e = np.tile(rng.standard_normal(3), (len(knots_of(part)), 1))

    def rows(values: np.ndarray, R_ws: np.ndarray) -> dict[str, ResidualRows]:
        model = PartModel(part, Point(R_ws, e), values, unknowns, robot)
        return {"leg": model.legs(), **model.truth()}

    here = rows(values, part.R_ws)
    for group in unknowns.groups:
        k = unknowns[group.name].start + len(group.labels) // 2
        step = np.zeros(unknowns.size)
        step[k] = 1e-3 if group.unit == "s" else 1e-4 * group.prior
        ends = rows(values + step, part.R_ws), rows(values - step, part.R_ws)
        for kind, own in here.items():
            numeric = (ends[0][kind].r - ends[1][kind].r) / (2.0 * step[k])
            size = max(float(np.abs(own.by_unknown[..., k]).max()), 1e-2)
            assert np.abs(numeric - own.by_unknown[..., k]).max() < 0.03 * size, (group.name, kind)
    turns = [part.R_ws @ lie.so3_exp(s * 1e-5 * np.eye(3)[0]) for s in (1.0, -1.0)]
    ends = rows(values, turns[0]), rows(values, turns[1])
    numeric = (ends[0]["velocity"].r - ends[1]["velocity"].r) / 2e-5
    np.testing.assert_allclose(numeric, here["velocity"].by_nuisance[..., 0], atol=1e-6)


def test_errors_added_to_a_walk_are_found(log: Log, robot: Robot, plain: Calibrated) -> None:
    errors = Errors.draw(np.random.default_rng(4), *KINDS)
    found = calibrate([errors.read(log)], errors.described(robot), truth=False)
    scores = np.concatenate(list(errors.scores(found, 1.0 / log.rate, plain).values()))
    assert np.mean(np.abs(scores) < 2.0) >= 0.95
    truth = np.concatenate([np.ravel(getattr(errors, kind)) for kind in ("joint_zero", "gyro_bias", "mounting")])
    at = np.r_[tuple(found.unknowns[kind] for kind in ("joint_zero", "gyro_bias", "mounting"))]
    change = found.values[at] - plain.values[at]
    assert np.corrcoef(change, truth)[0, 1] > 0.9
    assert np.sqrt(np.mean((change - truth) ** 2)) < 0.6 * np.sqrt(np.mean(truth**2))


def test_the_lag_of_joint_velocities_is_found() -> None:
    t = np.arange(0.0, 6.0, 0.002)
    q = np.stack([np.sin(9.0 * t + k) for k in range(12)], 1)
    late = np.stack([9.0 * np.cos(9.0 * (t - 0.003) + k) for k in range(12)], 1)
    log = Log(t=t, gyro=np.zeros((len(t), 3)), accel=np.zeros((len(t), 3)), q=q, dq=late, robot="go1")
    assert velocity_lag(log) == pytest.approx(0.003, abs=2e-4)
    assert velocity_lag(log.replace(dq=np.gradient(q, t, axis=0))) == pytest.approx(0.0, abs=1e-4)


def test_stances_are_long_enough_and_lose_their_ends() -> None:
    speed = np.full((200, 1), 1.0)
    speed[50:100] = 0.1
    speed[150:155] = 0.1
    found = np.flatnonzero(stances(speed, 0.01)[:, 0])
    assert found[0] == 52 and found[-1] == 97 and len(found) == 46


def test_jackknife_of_a_mean() -> None:
    """Of the mean of numbers it is the usual variance, for many parts."""
    x = np.random.default_rng(0).normal(2.0, 3.0, 2000)
    S = np.array([[float(len(x))]])
    parts = [(np.eye(1), np.array([one - x.mean()])) for one in x]
    variance = jackknife(S, parts, np.zeros((1, 1)))[0, 0]
    assert variance == pytest.approx(x.var() / len(x), rel=0.03)


def test_a_short_walk_tells_less(log: Log, robot: Robot, plain: Calibrated) -> None:
    short = calibrate([log.slice(t1=float(log.t[0]) + 7.0)], robot, truth=False)
    assert (short.std > 0.9 * plain.std).mean() > 0.9
    assert sum(one.observable for one in short.findings) < sum(one.observable for one in plain.findings)
    assert (short.std < 1.05 * short.unknowns.prior + 0.01).all()


def test_the_robot_has_what_is_observable(log: Log, robot: Robot, plain: Calibrated, tmp_path: Path) -> None:
    better = plain.calibrated_robot()
    np.testing.assert_allclose(better.zeros, plain.observed("joint_zero"))
    scales = np.linalg.norm(better.offsets, axis=2) / np.linalg.norm(robot.offsets, axis=2) - 1.0
    np.testing.assert_allclose(scales[:, 1:].ravel(), plain.observed("link_scale"), atol=1e-12)
    turned = lie.rotation_from_quat(robot.imu_quat_wxyz).T @ lie.rotation_from_quat(better.imu_quat_wxyz)
    np.testing.assert_allclose(lie.so3_log(turned), plain.observed("mounting"), atol=1e-9)
    (delay,) = plain.observed("joint_delay")
    assert better.joint_delay == delay > 0.0
    engine = Estimator.load(better)._contexts[0].engine
    assert engine.config.settings.joint_delay == delay
    fixed = plain.corrected(log)
    np.testing.assert_allclose(
        fixed.gyro * (1.0 + plain.observed("gyro_scale")) + plain.observed("gyro_bias"), log.gyro, atol=1e-12
    )


def test_the_command_writes_a_robot_file(
    log: Log, robot: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "walk.npz", tmp_path / "mine.yaml"
    log.slice(t1=float(log.t[0]) + 12.0).save(path)
    assert main(["calibrate", str(path), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines()[:20])) <= 80
    assert "with ground truth" in printed and "joint zero, deg" in printed and f"wrote {out}" in printed
    text = out.read_text(encoding="utf-8")
    assert text.startswith("# Calibrated by `gait calibrate walk.npz`")
    loaded = Robot.load(out)
    assert loaded.joint_names == robot.joint_names and np.abs(loaded.zeros).max() > 0.0
    assert loaded.joint_delay is not None

    again = ["calibrate", str(path), "--out", str(out), "--robot", str(out), "--json"]
    assert main(again) == 1, "not over its own input"
    assert "--force" in capsys.readouterr().err
    assert main([*again, "--force"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["joint_zero_FR_hip"]["unit"] == "rad" and rows["joint_delay_std"]["value"] > 0.0
    assert rows["truth"]["value"] == "true"
    assert {rows[name]["value"] for name in rows if name.endswith("_observable")} <= {"yes", "no"} | {
        row["value"] for row in rows.values() if str(row["value"]).startswith("not apart from")
    }
    # What was found is in the file now: what is left is smaller than its uncertainty.
    zeros = [row for name, row in rows.items() if name.startswith("joint_zero") and row["unit"] == "rad"]
    left = [abs(a["value"]) / b["value"] for a, b in zip(zeros[::2], zeros[1::2], strict=True)]
    assert np.mean(np.array(left) < 1.0) > 0.8


def test_what_cannot_be_calibrated_is_one_sentence(log: Log, robot: Robot, tmp_path: Path) -> None:
    with pytest.raises(GaitError, match="give a walk of 10 s or more"):
        calibrate([log.slice(t1=float(log.t[0]) + 3.0)], robot)
    still = {name: np.repeat(getattr(log, name)[:1], len(log), 0) for name in ("q", "dq", "tau", "q_des")}
    still["dq"] = 0.0 * still["dq"]
    rest = log.replace(**still, gyro=0.0 * log.gyro, accel=np.tile([0.0, 0.0, 9.81], (len(log), 1)))
    with pytest.raises(GaitError, match=r"takes \d+ steps in 20 s, too few"):
        calibrate([rest], robot, truth=False)
    without = log.replace(pos_w=None, vel_w=None, quat_wb_wxyz=None)
    with pytest.raises(GaitError, match="no ground truth: leave it out"):
        calibrate([without], robot, truth=True)
    with pytest.raises(GaitError, match="only such legs can be calibrated"):
        cut([log], Robot.load("g1"))


@pytest.mark.slow
def test_standard_deviations_are_honest(robot: Robot, tmp_path: Path) -> None:
    """Of errors of one kind and of all kinds, about 95 % are found within two standard deviations."""
    pytest.importorskip("mujoco", reason="needs mujoco (pip install -e '.[sim]')")
    folder, rng = tmp_path / "walks", np.random.default_rng(11)
    words = ["--seconds", "40", "--episodes", "6", "--seed", "611", "--sensors", "training", "--out", str(folder)]
    assert main(["sim", *words]) == 0
    cases = [(kind,) for kind in KINDS] + [KINDS] * 4
    scores: dict[bool, list[np.ndarray]] = {False: [], True: []}
    for number, kinds in enumerate(cases):
        walk = Log.load(folder / f"episode_{number % 6:05d}.npz")
        errors = Errors.draw(rng, *kinds)
        for truth, kept in scores.items():
            found = calibrate([errors.read(walk)], errors.described(robot), truth=truth)
            own = np.concatenate(list(errors.scores(found, 1.0 / walk.rate).values()))
            assert np.mean(np.abs(own) < 2.0) >= 0.85, kinds
            kept.append(own)
    for kept in scores.values():
        every = np.concatenate(kept)
        assert np.mean(np.abs(every) < 2.0) >= 0.93
        # Not by claiming too little either.
        assert np.sqrt(np.mean(every**2)) > 0.3
