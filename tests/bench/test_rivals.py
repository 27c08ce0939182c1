"""Rivals: the unscented update against derivatives, the contact network against torch, gtsam's filters, the tables."""

import dataclasses
import json
import math
from pathlib import Path

import needs
import numpy as np
import pytest

from gait import Estimator, Log, Robot, lie
from gait.bench import rival_runs
from gait.bench.contest import SMOOTHED, Contest, Figures
from gait.bench.gtsam_legged import CLASSES, FootTrack
from gait.bench.rival_runs import Front, front_of, run_rival, settings_of, tuned
from gait.bench.rivals import MissingRivalError
from gait.cli import main
from gait.errors import GaitError
from gait.log.sample import Sample
from gait.metrics import nees, velocity_rmse
from gait.reference.contact_network import WINDOW, ContactNetwork, class_of, contact_features
from gait.reference.contacts import rolling_velocity, slip_velocity
from gait.reference.flat_feet import contact_lever
from gait.reference.unscented import STATES, UnscentedFeet, UnscentedSettings
from gait.samples import SAMPLE
from gait.state import State


@pytest.fixture(scope="module")
def robot() -> Robot:
    """A Go1 whose IMU is turned and far from the origin."""
    tilted = lie.quat_from_rotation(lie.so3_exp(np.array([0.3, -0.2, 0.5])))
    return dataclasses.replace(Robot.load("go1"), imu_quat_wxyz=tilted, imu_position=np.array([0.1, 0.05, -0.03]))


@pytest.fixture(scope="module")
def front() -> Front:
    log = Log.load(SAMPLE)
    return front_of(log.slice(2.0, 4.0), Robot.load("go1"), "truth")


@pytest.fixture(scope="module")
def moment(robot: Robot) -> tuple[Sample, State]:
    """A sample with two feet in contact, and the state that the IMU predicts for it."""
    rng = np.random.default_rng(3)
    estimator = Estimator.load(robot, "iekf")
    estimator.reset(
        quat_wb_wxyz=lie.quat_from_rotation(lie.so3_exp(np.array([0.1, -0.2, 0.7]))), vel_w=[0.5, 0.2, -0.1],
        pos_w=[1.0, 2.0, 0.3], gyro=[0.2, -0.3, 0.4],
    )  # fmt: skip
    q, dq = robot.q_stand + rng.normal(size=12) * 0.1, rng.normal(size=12)
    gyro, accel = np.array([0.2, -0.3, 0.4]), np.array([0.3, 0.2, 9.7])
    state = estimator.update(0.0, gyro, accel, q, dq, None, 0.0 * q)
    contact = np.array([1.0, 0.0, 0.0, 1.0])
    return Sample(0.002, gyro, accel, q, dq, contact=contact), state


def foot_velocities(method: UnscentedFeet, moment: tuple[Sample, State], xi: np.ndarray) -> np.ndarray:
    """h at the state exp(-xi) X_hat, for an error of rotation, velocity and gyro bias."""
    points = np.concatenate([xi, np.zeros(3)])[None]
    return method._foot_velocities([0, 3], *moment, points).ravel()


def test_the_unscented_model_is_the_velocity_of_the_foot(robot: Robot, moment: tuple[Sample, State]) -> None:
    """Without an error that of the reference; with one, that of the state which the group has there."""
    sample, state = moment
    method, R_bi = UnscentedFeet(robot), lie.rotation_from_quat(robot.imu_quat_wxyz)
    legs = list(zip(robot.chains, robot.by_leg(sample.q), robot.by_leg(sample.dq), strict=True))

    def direct(R_wb: np.ndarray, vel_w: np.ndarray, gyro: np.ndarray) -> np.ndarray:
        w_b, up_b, vel_b = R_bi @ gyro, R_wb.T @ [0.0, 0.0, 1.0], R_wb.T @ vel_w
        levers = {i: contact_lever(*legs[i][:2], up_b) for i in (0, 3)}
        found = [slip_velocity(*legs[i], w_b, vel_b, rolling_velocity(*legs[i], w_b, levers[i])) for i in (0, 3)]
        return (np.array(found) @ R_bi).ravel()

    gyro = sample.gyro - state.gyro_bias
    assert np.allclose(foot_velocities(method, moment, np.zeros(9)), direct(state.R_wb, state.vel_w, gyro), atol=1e-12)
    xi = np.array([0.2, -0.1, 0.3, 0.1, 0.2, -0.3, 0.02, -0.01, 0.03])
    lever = robot.imu_position
    v_imu = state.vel_w + state.R_wb @ np.cross(R_bi @ gyro, lever)
    turn, (shift,) = lie.sek3_exp(-xi[:6])
    R_wb, other = turn @ state.R_wb, gyro + xi[6:]
    vel_w = turn @ v_imu + shift - R_wb @ np.cross(R_bi @ other, lever)
    assert np.allclose(foot_velocities(method, moment, xi), direct(R_wb, vel_w, other), atol=1e-12)


def test_the_linear_model_has_the_derivatives_where_the_covariance_is_small(
    robot: Robot, moment: tuple[Sample, State], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, state = moment
    method = UnscentedFeet(robot, UnscentedSettings(velocity=0.3, threshold=1e9))
    method.t = 0.0
    monkeypatch.setattr(type(state), "cov", 1e-8 * np.eye(15), raising=True)
    ((z, H, N),) = method.step(sample, state)
    step = 1e-6
    numeric = np.array(
        [
            foot_velocities(method, moment, step * row) - foot_velocities(method, moment, -step * row)
            for row in np.eye(9)
        ]
    ).T / (2 * step)
    assert np.allclose(H[:, STATES], -numeric, atol=1e-6) and not H[:, [6, 7, 8, 12, 13, 14]].any()
    assert np.allclose(z, -foot_velocities(method, moment, np.zeros(9)), atol=1e-7)
    assert (np.linalg.eigvalsh(N) >= 0.3**2 - 1e-9).all(), "the noise of the feet, and that of the gyro"


def test_a_foot_that_moves_is_an_outlier(robot: Robot, moment: tuple[Sample, State]) -> None:
    sample, state = moment
    method = UnscentedFeet(robot, UnscentedSettings(velocity=0.3, threshold=1e9))
    counts = []
    for threshold in (1e9, 0.0):
        method.settings, method.t = UnscentedSettings(velocity=0.3, threshold=threshold), 0.0
        counts.append([len(z) for z, _, _ in method.step(sample, state)])
    assert counts == [[6], []]
    fast = sample._replace(dq=np.where(np.arange(12) < 3, 40.0, sample.dq))
    method.settings, method.t = UnscentedSettings(velocity=3.0, threshold=11.0), 0.0
    ((z, _, _),) = method.step(fast, state)
    assert len(z) == 3, "the one that does not stays"


def test_the_contact_network_is_that_of_torch() -> None:
    torch = needs.package("torch")
    rng = np.random.default_rng(0)
    sizes, weights = (54, 8, 8, 16, 16), {}
    for i in range(4):
        weights[f"conv{i}.weight"] = rng.normal(size=(sizes[i + 1], sizes[i], 3)) / np.sqrt(3 * sizes[i])
        weights[f"conv{i}.bias"] = rng.normal(size=sizes[i + 1])
    weights |= {"dense0.weight": rng.normal(size=(12, 16 * (WINDOW // 4))) / 10, "dense0.bias": rng.normal(size=12)}
    weights |= {"dense1.weight": rng.normal(size=(16, 12)), "dense1.bias": rng.normal(size=16)}
    weights |= {"mean": rng.normal(size=54), "std": rng.uniform(0.5, 2.0, size=54)}
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    windows = rng.normal(size=(7, WINDOW, 54)).astype(np.float32)
    x = torch.from_numpy((windows - weights["mean"]) / weights["std"]).transpose(1, 2)
    layer = {name: torch.from_numpy(value) for name, value in weights.items()}
    for i in range(4):
        x = torch.relu(torch.conv1d(x, layer[f"conv{i}.weight"], layer[f"conv{i}.bias"], padding=1))
        x = torch.max_pool1d(x, 2) if i % 2 else x
    x = torch.relu(x.flatten(1) @ layer["dense0.weight"].T + layer["dense0.bias"])
    wanted = (x @ layer["dense1.weight"].T + layer["dense1.bias"]).numpy()
    assert np.allclose(ContactNetwork(weights).classes(windows), wanted, atol=1e-4)


def test_features_of_the_contact_network_are_kinematics_and_classes_count_feet() -> None:
    log, robot = Log.load(SAMPLE).slice(0.0, 0.1), Robot.load("go1")
    features = contact_features(log, robot).reshape(len(log), -1)
    assert features.shape == (len(log), 54)
    leg = features[10, 6 + 12 : 6 + 24]
    assert np.allclose(leg[6:9], robot.feet(log.q[10])[1], atol=1e-6)
    later = np.diff([robot.feet(log.q[10] + k * 1e-5 * log.dq[10])[1] for k in (-1, 1)], axis=0)[0] / 2e-5
    assert np.allclose(leg[9:], later, atol=1e-3)
    assert class_of(np.array([[True, False, False, True]])).tolist() == [9]


def test_the_feet_of_gtsam_are_those_of_the_reference(robot: Robot) -> None:
    rng = np.random.default_rng(1)
    log = Log.load(SAMPLE).slice(0.0, 0.05)
    log = log.replace(q=log.q + rng.normal(size=log.q.shape) * 0.1)
    R_bi = lie.rotation_from_quat(robot.imu_quat_wxyz)
    track = FootTrack.of(log, robot)
    assert np.allclose(track.position_i[5] @ R_bi.T + robot.imu_position, robot.feet(log.q[5]))
    up_i = np.array([0.1, 0.2, 0.97])
    wanted = [
        rolling_velocity(chain, q, dq, R_bi @ log.gyro[5], contact_lever(chain, q, R_bi @ up_i))
        for chain, q, dq in zip(robot.chains, robot.by_leg(log.q[5]), robot.by_leg(log.dq[5]), strict=True)
    ]
    assert np.allclose(track.roll(5, log.gyro[5], up_i) @ R_bi.T, wanted)


@pytest.mark.parametrize("name", [*CLASSES, "ukf"])
def test_a_rival_follows_the_walk(name: str, front: Front) -> None:
    """As well as a filter on the same contacts should; its covariance is positive definite and not absurd."""
    if name in CLASSES:
        needs.package("gtsam")
    found, spent = run_rival(name, front, "truth")
    error = velocity_rmse(found, front.log)
    assert error.rmse < 0.08 and spent > 0.0
    assert np.linalg.norm(found.pos_w[-1] - front.log.pos_w[-1]) < 0.1
    if name not in ("gtsam-lag", "gtsam-lag-bias"):
        assert 0.02 < nees(error.errors_b, found.vel_cov).mean < 50.0


def test_a_rival_that_is_not_trained_is_left_out(front: Front, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rival_runs._contact_network.cache_clear()
    monkeypatch.setattr(rival_runs, "CONTACT_WEIGHTS", tmp_path / "none.safetensors")
    with pytest.raises(MissingRivalError, match="train_contacts"):
        run_rival("iekf-learned", front, "truth")
    rival_runs._contact_network.cache_clear()


def test_settings_are_those_of_the_file() -> None:
    assert set(tuned()) == set(rival_runs.RIVALS)
    assert tuned()["gtsam-ekf"] == rival_runs.settings_file()["gtsam-ekf"]
    with pytest.raises(GaitError, match="no setting 'sped'"):
        settings_of("ukf", {"sped": 1.0})


def test_a_contest_says_who_wins() -> None:
    figures = [
        Figures(course, f"{course}-{run}", name, *values)
        for course, scale in (("rubber", 1.0), ("ice", 2.0))
        for run in (0, 1)
        for name, values in {
            "gait-legs": (0.01 * scale, 0.02, 3.0, 5.0),
            "iekf": (0.03, 0.03 + run, 1.0, 6.0),
            SMOOTHED: (0.001, 0.001, 3.0, 20.0),
            "ukf": (0.015, 0.05, 2.0, 700.0),
            "gtsam-lag": (0.05, 0.01 * scale**2, math.nan, 200.0),
        }.items()
    ]
    contest = Contest(tuple(figures), {("nmn", "ice-0"): "no q_des", ("gait", "ice-0"): "no", ("gait", "ice-1"): "no"})
    assert contest.wins("velocity") == {"rubber": ("gait-legs", "ukf"), "ice": ("gait-legs", "ukf")}
    assert contest.lost("velocity") == [("ice", "gait-legs", "ukf")]
    assert contest.lost("drift") == [("rubber", "gait-legs", "gtsam-lag")], "what knows later samples does not count"
    assert contest.mean("iekf", "drift", "ice") == pytest.approx(0.53) and math.isnan(contest.mean("nmn", "drift"))
    notes = contest.notes()
    assert notes[0] == "velocity on ice: ukf wins, 0.0150 m/s against 0.0200 of gait-legs."
    assert notes[-2:] == ["Left out nmn on ice-0: no q_des.", "Left out gait on 2 walks: no."]
    rows = {row.name: row.value for row in contest.rows()}
    assert rows["rivals.ukf.step"] == 700.0 and rows["rivals_velocity.gait-legs.ice"] == 0.02


def test_the_command_runs_on_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs.package("gtsam")
    Log.load(SAMPLE).slice(0.0, 6.0).save(tmp_path / "walk.npz")
    words = ["bench", "rivals", str(tmp_path / "walk.npz"), "--out", str(tmp_path / "out"), "--workers", "1", "--json"]
    assert main([*words, "--methods", "iekf", "gtsam-ekf"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["rivals.iekf.velocity"] < 0.03 and rows["rivals.gtsam-ekf.drift"] < 0.2
    assert "gtsam-ekf" in (tmp_path / "out/rivals.md").read_text()
    assert main(["bench", "rivals", str(tmp_path / "walk.npz"), "--methods", "none"]) == 1
    assert "unknown method 'none'" in capsys.readouterr().err
