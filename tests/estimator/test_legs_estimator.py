"""`gait-legs` in the estimator: the network of the core says what torch says, and its legs are weighed as written."""

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from core_calls import CMeasurement, CoreLegs, at, inner, inside
from log_samples import rubbish_rows
from net_samples import legs_model

import gait
from gait import Estimator, GaitError, Log, Robot, lie
from gait.binding import fill
from gait.engine import Engine
from gait.nets import Model
from gait.nets.build import network_of
from gait.nets.features import FOOT_ACCEL, PER_LEG, POSITION, SHARED
from gait.nets.legs import LegsNet
from gait.parameters import LEGS_NOISE, Options, Prior, ProcessNoise
from gait.reference.disagreement import Consensus, ConsistencyMonitor
from gait.reference.filter import ReferenceFilter, imu_state, prior_std
from gait.reference.network import NumpyLegs
from gait.train.validate import predict

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"
VARIANTS: list[dict[str, Any]] = [
    {},
    {"legs": 2},
    {"targets": False},
    {"legs": 6, "position": False, "correction": False},
    {"head_width": 0},
    {"frames": 1, "hidden": 70, "mlp": 20, "heads": 3, "head_width": 5},
    {"frames": 3, "stride": 3, "hidden": 10, "mlp": 100, "heads": 1, "head_width": 40},
]


def sober_model(**values: Any) -> Model:
    """One whose legs say what they measure, all equally sure: to within 0.1 m/s."""
    model = legs_model(**values)
    weights = {name: np.array(array) for name, array in model.weights.items()}
    weights["output.weight"][:] = 0.0
    weights["output.bias"][:] = 0.0
    low, high = model.architecture.log_std_min, model.architecture.log_std_max
    share = (np.log(0.1) - low) / (high - low)
    weights["output.bias"][:3] = np.log(share / (1.0 - share))
    return replace(model, weights=weights)


def torch_legs(model: Model, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and log-std (T, L, 6), and attention averaged over heads (T, L, L)."""
    net = network_of(model)
    assert isinstance(net, LegsNet)
    with torch.no_grad():
        velocity, log_std, _, attention = net.legs(torch.from_numpy(features.astype(np.float32))[None])
    looks = np.zeros((len(features), 0, 0)) if attention is None else attention[0].mean(1).numpy()
    return torch.cat([velocity, log_std], -1)[0].numpy(), looks


def stepped(model: Model, features: np.ndarray, seen: np.ndarray, before: np.ndarray) -> list[np.ndarray]:
    """The same by the core, and by the reference."""
    network, twin = CoreLegs(model), NumpyLegs(model)
    rows: list[list[np.ndarray]] = [[], [], [], []]
    for x, now, then in zip(features, seen, before, strict=True):
        out, said = network.step(x, now, then), np.hstack(twin.step(x, now, then))
        for row, values in zip(rows, (out, network.attention(), said, twin.attention), strict=True):
            row.append(np.array(values))
    return [np.array(row) for row in rows]


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(0.0, 3.0)


def error(trajectory: gait.Trajectory, log: Log) -> float:
    return float(np.sqrt(np.square(trajectory.vel_b - log.vel_b).sum(1).mean()))


def feed(estimator: Estimator, log: Log, **flags: Any) -> list[gait.State]:
    estimator.start_as(log, "truth")
    return [estimator.update(*row, **flags) for row in log.rows()]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_steps_equal_the_torch_network(variant: dict[str, Any]) -> None:
    model = legs_model(**variant)
    legs = model.architecture.legs
    features = np.random.default_rng(1).normal(size=(40, SHARED + PER_LEG * legs)).cumsum(0) / 5.0
    every = np.ones((40, legs), dtype=bool)
    truth, attention = torch_legs(model, features)
    said, looks, twin, twin_looks = stepped(model, features, every, every)
    assert truth[..., 3:].std((0, 1)).min() > 0.01  # it does not say the same whatever it sees
    assert np.abs(said - truth).max() < 1e-5 and np.abs(twin - truth).max() < 1e-5
    if attention.size:
        assert np.abs(looks - attention).max() < 1e-5 and np.abs(twin_looks - attention).max() < 1e-5


def test_a_hidden_leg_is_as_one_that_the_robot_does_not_have() -> None:
    model, fewer = legs_model(), legs_model(legs=3)
    features = np.random.default_rng(1).normal(size=(30, SHARED + PER_LEG * 4)).cumsum(0) / 5.0
    seen = np.tile([True, False, True, True], (30, 1))
    three = np.delete(features, np.arange(SHARED + PER_LEG, SHARED + 2 * PER_LEG), axis=1)
    truth, attention = torch_legs(fewer, three)
    said, looks, twin, twin_looks = stepped(model, features, seen, seen)
    for out, found in ((said, looks), (twin, twin_looks)):
        assert np.abs(out[:, [0, 2, 3]] - truth).max() < 1e-5
        assert np.abs(found[:, [0, 2, 3]][:, :, [0, 2, 3]] - attention).max() < 1e-5
        assert (found[:, 1] == 0.0).all() and (found[:, :, 1] == 0.0).all()
        assert np.allclose(out[:, 1, 3:], model.architecture.log_std_max)  # type: ignore[attr-defined]


def test_a_leg_that_comes_back_has_no_past_and_so_has_a_log() -> None:
    model = legs_model()
    rng = np.random.default_rng(1)
    features = rng.normal(size=(30, SHARED + PER_LEG * 4)).cumsum(0) / 5.0
    seen = np.ones((30, 4), dtype=bool)
    seen[:20, 1] = False
    before = np.concatenate([seen[:1], seen[:-1]])
    own = slice(SHARED + PER_LEG, SHARED + 2 * PER_LEG)
    as_if = features.copy()
    as_if[:20, own] = features[20, own]
    truth, _ = torch_legs(model, as_if)
    said, _, twin, _ = stepped(model, features, seen, before)
    assert np.abs(said[20:] - truth[20:]).max() < 1e-5 and np.abs(twin[20:] - truth[20:]).max() < 1e-5
    network, everything = CoreLegs(model), np.ones(4, dtype=bool)
    for x in rng.normal(size=(20, features.shape[1])):
        network.step(x, everything, everything)
    network.reset()
    out = network.step(features[0], everything, everything)
    assert np.abs(out - torch_legs(model, features[:1])[0][0]).max() < 1e-5


def fused(
    log: Log, robot: Robot, features: np.ndarray, said: np.ndarray, options: Options, used: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The filter and the fusion of legs, written down once more: velocity, combined velocity and its log-std."""
    R_bi, arm = lie.rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
    R_wb, ekf = lie.rotation_from_quat(log.quat_wb_wxyz[0]), ReferenceFilter(LEGS_NOISE, options)
    ekf.start(*imu_state(R_wb, log.vel_w[0], log.pos_w[0], log.gyro[0], R_bi, arm), prior_std(Prior()))
    length = float(np.linalg.norm(robot.offsets[:, 2:], axis=2).sum(1).max())
    own = features[:, SHARED:].reshape(len(log), -1, PER_LEG)[:, used]
    hips = (robot.offsets[:, 0] + robot.offsets[:, 1])[used]
    feet = hips + length * own[..., POSITION : POSITION + 3]
    d, rows, monitor = options.joint_delay, [], ConsistencyMonitor(ekf, R_bi)
    for k in range(1, len(log)):
        ekf.propagate(log.gyro[k], log.accel[k], log.t[k] - log.t[k - 1])
        bias = R_bi @ ekf.gyro_bias
        w, base = R_bi @ log.gyro[k] - bias, ekf.R @ R_bi.T
        v = base.T @ ekf.v - np.cross(w, arm)
        pv = np.diag(base.T @ ekf.P[3:6, 3:6] @ base)
        a = R_bi @ (log.accel[k] - ekf.accel_bias) + base.T @ [0.0, 0.0, options.gravity] - np.cross(w, v)
        z = said[k, used, :3].astype(np.float64) + np.cross(bias, feet[k])
        r = np.exp(2.0 * said[k, used, 3:].astype(np.float64)) * options.leg_inflation**2
        r += (7.0 * options.joint_delay_std * own[k, :, FOOT_ACCEL : FOOT_ACCEL + 3]) ** 2
        r = r * ekf.adapted.factor
        s, mean = (1.0 / r).sum(0), (z / r).sum(0) / (1.0 / r).sum(0)
        spread = ((z - mean) ** 2 / r).sum(0) / s
        monitor.consensus(Consensus(mean + d * a - v, 1.0 / s / 49.0, spread, 1.0 / s), pv, 0.002)
        far = np.mean((z + d * a - v) ** 2 / (pv + r / 49.0), axis=1) / options.leg_guard**2
        r = r * np.maximum(far, 1.0)[:, None]
        s = (1.0 / r).sum(0)
        mean = (z / r).sum(0) / s
        # All legs at once, least squares for the velocity along x and y and the bias about z.
        A = np.zeros((2 * len(z), 3))
        A[: len(z), 0] = A[len(z) :, 1] = 1.0
        A[:, 2] = np.concatenate([feet[k, :, 1], -feet[k, :, 0]])
        weight = np.concatenate([1.0 / r[:, 0], 1.0 / r[:, 1]])
        information = (A.T * weight) @ A
        off = np.linalg.solve(information, (A.T * weight) @ np.concatenate([z[:, 0], z[:, 1]]))[2]
        uneven = 1.5**2 + 3.0**2 * (w @ w) + 0.3**2 * (a @ a)
        variance = uneven * np.linalg.inv(information)[2, 2]
        monitor.rate(off, variance / 49.0, 0.002)
        ekf.correct_gyro_bias(R_bi[2], off, variance)
        ekf.correct_velocity(R_bi.T @ (mean + d * a + np.cross(w, arm)), R_bi.T @ np.diag(1.0 / s) @ R_bi)
        w, base = R_bi @ (log.gyro[k] - ekf.gyro_bias), ekf.R @ R_bi.T
        rows.append([base.T @ ekf.v - np.cross(w, arm), mean, -0.5 * np.log(s)])
    velocity, mean_rows, log_std = np.array(rows).swapaxes(0, 1)
    return velocity, mean_rows, log_std


@pytest.mark.parametrize("turned", [False, True], ids=["level IMU", "turned IMU"])
def test_legs_are_weighed_as_it_is_written(log: Log, tmp_path: Path, turned: bool) -> None:
    robot, part = Robot.load("go1"), log.slice(0.0, 1.0)
    if turned:
        tree = yaml.safe_load((Path(gait.__file__).parent / "robot/go1.yaml").read_text())
        tree["imu"]["quat_wxyz"] = [float(np.sqrt(0.5)), 0.0, 0.0, float(np.sqrt(0.5))]
        (tmp_path / "turned.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
        robot = Robot.load(tmp_path / "turned.yaml")
        R_bi = lie.rotation_from_quat(robot.imu_quat_wxyz)
        part = part.replace(gyro=part.gyro @ R_bi, accel=part.accel @ R_bi)
    model = legs_model()
    options = Options(leg_inflation=1.5, leg_guard=2.0, flexure=False)
    estimator = Estimator.load(robot, model, options=options, attention=True)
    trajectory, details = estimator.run_with_details(part)
    truth, attention = torch_legs(model, model.features(part, robot))
    assert details.legs is not None and details.attention is not None
    np.testing.assert_allclose(details.legs[0], truth[..., :3], atol=1e-5)
    np.testing.assert_allclose(np.log(details.legs[1]), truth[..., 3:], atol=1e-5)
    np.testing.assert_allclose(details.attention, attention, atol=1e-5)
    said = np.concatenate([details.legs[0], np.log(details.legs[1])], -1)
    features = model.features(part, robot)
    velocity, mean, log_std = fused(part, robot, features, said, options, np.ones(4, dtype=bool))
    np.testing.assert_allclose(details.predicted[0][1:], mean, atol=1e-5)
    np.testing.assert_allclose(np.log(details.predicted[1][1:]), log_std, atol=1e-5)
    np.testing.assert_allclose(trajectory.vel_b[1:], velocity, atol=1e-6)


def test_a_loop_of_updates_gives_the_bits_of_run(log: Log) -> None:
    estimator = Estimator.load("go1", sober_model(), attention=True)
    trajectory, details = estimator.run_with_details(log)
    states = feed(estimator, log)
    for name in ("vel_w", "vel_b", "pos_w", "quat_wb_wxyz", "vel_cov", "pose_cov", "gyro_bias", "accel_bias"):
        assert np.array_equal([getattr(state, name) for state in states], getattr(trajectory, name)), name
    assert [state.health.bits for state in states] == trajectory.health.tolist()
    assert details.legs is not None and details.attention is not None
    for state, velocity, std, looks in zip(states, *details.legs, details.attention, strict=True):
        assert state.legs is not None and state.attention is not None
        assert np.array_equal(state.legs[0], velocity) and np.array_equal(state.legs[1], std)
        assert np.array_equal(state.attention, looks) and state.attention.shape == (4, 4)
    assert Estimator.load("go1", "gait", attention=True).run_with_details(log.slice(0.0, 0.1))[1].legs is None


def test_torques_may_come_from_targets_and_are_needed_by_some(log: Log) -> None:
    model, rigid = legs_model(), Options(flexure=False)
    estimator = Estimator.load("go1", model, attention=True, options=rigid)
    for part in (log.replace(q_des=None), log.replace(tau=None)):
        _, details = estimator.run_with_details(part)
        assert details.legs is not None
        np.testing.assert_allclose(details.legs[0], torch_legs(model, model.features(part))[0][..., :3], atol=1e-5)
    bare = log.replace(tau=None, q_des=None)
    with pytest.raises(GaitError, match="reads joint torques tau, or joint targets q_des"):
        estimator.run(bare)
    kinematic = legs_model(targets=False)
    _, details = Estimator.load("go1", kinematic, attention=True).run_with_details(bare)
    assert details.legs is not None
    np.testing.assert_allclose(details.legs[0], torch_legs(kinematic, kinematic.features(bare))[0][..., :3], atol=1e-5)
    robot = estimator.robot
    engines = [Engine(robot, model=one, options=rigid) for one in (model, kinematic)]
    both = Estimator(robot, engines[0], "both", without_targets=engines[1])
    assert np.array_equal(both.run(bare).vel_w, Estimator.load("go1", kinematic, options=rigid).run(bare).vel_w)
    assert np.array_equal(both.run(log).vel_w, estimator.run(log).vel_w)


def test_a_torque_may_fail_for_a_moment_but_not_for_long(log: Log) -> None:
    estimator = Estimator.load("go1", sober_model())
    rows = [row._replace(q_des=None) for row in log.slice(0.0, 0.6).rows()]
    estimator.start_as(log, "truth")
    words = []
    for k, row in enumerate(rows):
        tau = np.array(row.tau)
        if 100 <= k < 200:
            tau[4] = (np.nan, 1e9)[k % 2]
        words.append(str(estimator.update(row._replace(tau=tau)).health))
    assert set(words[1:149]) == {"ok"} and set(words[151:200]) == {"leg FL stale"} and set(words[200:]) == {"ok"}


def test_a_flagged_leg_is_left_out_and_the_rest_goes_on(log: Log) -> None:
    robot = Robot.load("go1")
    part = log.slice(0.0, 1.0)
    estimator = Estimator.load("go1", legs_model(), attention=True, options=Options(flexure=False))
    ok = np.array([True, True, False, True])
    broken = part.replace(q=np.where(np.arange(12) // 3 == 2, 9.0, part.q))
    for states in (feed(estimator, part, leg_ok=ok), feed(estimator, broken)):
        assert str(states[-1].health) == "leg RR stale"
        said = np.array([np.concatenate([s.legs[0], np.log(s.legs[1])], -1) for s in states])  # type: ignore[index]
        velocity, mean, _ = fused(part, robot, legs_model().features(part), said, Options(), ok)
        np.testing.assert_allclose([state.predicted[0] for state in states][1:], mean, atol=1e-5)
        np.testing.assert_allclose([state.vel_b for state in states][1:], velocity, atol=1e-6)
        assert all(state.attention[:, 2].max() == 0.0 for state in states)  # type: ignore[index]
    states = feed(estimator, part, leg_ok=np.zeros(4, dtype=bool))
    assert "no measurement" in str(states[-1].health) and np.isfinite(states[-1].cov).all()


@pytest.mark.parametrize("rate", [1000.0, 400.0, 200.0])
def test_other_rates_cost_little(log: Log, rate: float) -> None:
    estimator = Estimator.load("go1", sober_model())
    other = log.resample(rate)
    ours, usual = estimator.run(other), estimator.run(log)
    at = np.interp(log.t, other.t, ours.vel_b[:, 0])
    assert np.sqrt(np.mean((at - usual.vel_b[:, 0]) ** 2)) < 0.02 and error(ours, other) < 1.3 * error(usual, log)


def test_a_sample_that_stands_for_longer_has_more_noise(log: Log) -> None:
    estimator = Estimator.load("go1", sober_model())

    def spread(rate: float) -> float:
        """Of the velocity in the filter, without what is only reported."""
        estimator.start_as(log)
        return float(np.mean([np.trace(estimator.update(row).cov[3:6, 3:6]) for row in log.resample(rate).rows()]))

    at_1000, at_500, at_200 = (spread(rate) for rate in (1000.0, 500.0, 200.0))
    assert at_1000 == pytest.approx(at_500, rel=0.02) and at_200 > 1.2 * at_500


def test_nothing_a_sensor_says_makes_nan_or_raises(log: Log) -> None:
    estimator = Estimator.load("go1", legs_model(), attention=True)
    estimator.start_as(log, "truth")
    for row in rubbish_rows(log):
        state = estimator.update(row)
        assert state.legs is not None and state.attention is not None
        parts = (state.vel_b, state.pos_w, state.quat_wb_wxyz, state.cov, *state.predicted, *state.legs)
        assert all(np.isfinite(part).all() for part in (*parts, state.attention)) and np.linalg.norm(state.vel_b) < 40.0


def test_one_set_of_weights_runs_on_other_robots(log: Log, tmp_path: Path) -> None:
    """Here one with two legs: as the four-legged one whose other legs are out of use, but for the load of each."""
    tree = yaml.safe_load((Path(gait.__file__).parent / "robot/go1.yaml").read_text())
    tree["legs"] = {name: tree["legs"][name] for name in ("FR", "RL")}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump({**tree, "name": "two"}, sort_keys=False))
    two, columns = Robot.load(tmp_path / "two.yaml"), [0, 1, 2, 9, 10, 11]
    model = legs_model(targets=False)
    short = log.slice(0.0, 0.5)
    arrays = {name: getattr(short, name)[:, columns] for name in ("q", "dq", "q_des", "tau")}
    rigid = Options(flexure=False)
    estimator = Estimator.load(two, model, attention=True, options=rigid)
    estimator.start_as(short, "truth")
    velocity = []
    for k, row in enumerate(short.rows()):
        state = estimator.update(row.t, row.gyro, row.accel, **{n: a[k] for n, a in arrays.items()})
        velocity.append(state.vel_b)
    ok = np.array([True, False, False, True])
    expected = [state.vel_b for state in feed(Estimator.load("go1", model, options=rigid), short, leg_ok=ok)]
    np.testing.assert_allclose(velocity, expected, atol=1e-6)
    assert two.leg_names == ("FR", "RL") and state.attention is not None and state.attention.shape == (2, 2)


def test_a_model_reads_its_features_from_a_log(log: Log) -> None:
    model = legs_model()
    _, details = Estimator.load("go1", model).run_with_details(log)
    features = model.features(log)
    assert features.shape == (len(log), SHARED + 4 * PER_LEG)
    backwards = list(reversed(range(12)))
    shuffled = log.replace(
        joint_names=tuple(reversed(log.joint_names)),
        **{name: getattr(log, name)[:, backwards] for name in ("q", "dq", "q_des", "tau")},
    )
    assert np.array_equal(model.features(shuffled), features)
    ((velocity, _),) = predict(network_of(model), [features])
    # Without what the fusion adds to the network: gate, inflation by foot acceleration, gyro bias, which is known until
    # random weights have disagreed with the gyro for long.
    options = Options(leg_guard=1e6, joint_delay_std=0.0, leg_inflation=1.5, flexure=False)
    known = Prior(gyro_bias=1e-9)
    plain = Estimator.load("go1", model, options=options, prior=known, noise=ProcessNoise(gyro_bias=0.0))
    np.testing.assert_allclose(plain.run_with_details(log)[1].predicted[0][1:60], velocity[1:60], atol=1e-5)
    assert not np.allclose(details.predicted[0], velocity, atol=1e-3)
    with pytest.raises(GaitError, match="runs only on go1"):
        gait.nets.load_model("gait-0").for_robot(Robot.load("go1"))  # type: ignore[attr-defined]


def fused_at_rest(
    said: np.ndarray,
    options: Options,
    foot_accel: float = 0.0,
    bias: float = 0.0,
    force: float = 0.0,
    speed: float = 0.0,
) -> CMeasurement:
    """The measurement of a level Go1 whose first legs say this (L, 6), in a filter with a `bias` about z."""
    robot, legs = Robot.load("go1"), len(said)
    estimator = Estimator.load(replace(robot, imu_position=np.zeros(3)), legs_model(), options=options)
    g = inside(estimator._context)
    estimator.reset(quat_wb_wxyz=(1.0, 0.0, 0.0, 0.0), vel_w=(speed, 0.0, 0.0))
    fill(g.filter.b, [[0.0, 0.0, bias], [0.0, 0.0, 0.0]])
    np.ctypeslib.as_array(g.filter.P)[: 15 * 16].reshape(15, 16)[:, :15] = np.eye(15) * 1e-4
    fill(g.input.gyro, [0.0, 0.0, bias])
    fill(g.input.accel, [force, 0.0, 9.81])
    features = np.zeros(SHARED + PER_LEG * legs)
    features[SHARED:].reshape(legs, PER_LEG)[:, FOOT_ACCEL] = foot_accel
    fill(g.legs.features, features)
    fill(g.legs.out, said.ravel())
    g.legs.seen[:legs] = [1] * legs
    m, health = CMeasurement(), ctypes.c_uint32()
    assert inner().legs_fuse(at(g), at(m), 0, ctypes.addressof(health))
    return m


LAX = 1e9
"""A gate beyond which no leg ever lies."""


def sure(velocity: Any, log_std: float = -2.0) -> np.ndarray:
    velocity = np.asarray(velocity, dtype=np.float64)
    return np.concatenate([velocity, np.full_like(velocity, log_std)], axis=1)


def test_the_delay_of_joints_is_allowed_for() -> None:
    """A level body that accelerates, whose two legs tell how fast it was 8 ms ago."""
    said = sure([[0.5 - 0.008 * 2.0, 0.0, 0.0]] * 2, -4.0)
    options = Options(leg_inflation=1.0, leg_guard=LAX, joint_delay=0.008, joint_delay_std=0.0)
    assert fused_at_rest(said, options, force=2.0, speed=0.5).velocity[0] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    "values", [{"joint_delay": -1.0}, {"joint_delay": np.nan}, {"joint_delay_std": np.inf}, {"leg_guard": 0.0}], ids=str
)
def test_options_that_the_core_cannot_take_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(GaitError, match=f"{next(iter(values))} is .*: give a finite number"):
        Estimator.load("go1", legs_model(), options=Options(**values))


def test_a_leg_that_is_sure_and_wrong_counts_for_little() -> None:
    """Three legs at rest and one that claims 1 m/s, all equally sure of themselves."""
    said = sure([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for guard, drawn in ((1.0, 0.0005), (1e9, 0.25)):
        options = Options(leg_inflation=1.0, leg_guard=guard, joint_delay=0.004, joint_delay_std=0.0)
        assert fused_at_rest(said, options).velocity[0] == pytest.approx(drawn, rel=0.1)


def test_joints_that_change_their_speed_make_a_leg_unsure() -> None:
    said, options = sure(np.zeros((4, 3))), Options(leg_inflation=1.0, joint_delay=0.004, joint_delay_std=0.03 / 7.0)
    calm, hasty = (fused_at_rest(said, options, foot_accel=value).variance for value in (0.0, 10.0))
    assert hasty[0] - calm[0] == pytest.approx((0.03 * 10.0) ** 2 / 4.0) and hasty[1] == calm[1]


def test_legs_tell_the_bias_about_the_vertical() -> None:
    """A robot at rest with a gyro that says 0.02 rad/s: legs say what that makes of them, and the bias is found."""
    robot = Robot.load("go1")
    hips = robot.offsets[:, 0] + robot.offsets[:, 1]
    options = Options(leg_inflation=1.0, leg_guard=LAX, joint_delay=0.004, joint_delay_std=0.0)
    said = sure(-np.cross([0.0, 0.0, 0.02], hips))
    measured = fused_at_rest(said, options)
    assert measured.bias == pytest.approx(0.02, rel=1e-5) and list(measured.velocity) == pytest.approx(
        [0.0] * 3, abs=1e-9
    )
    spread = np.exp(-4.0) * 1.5**2 / np.square(hips[:, :2]).sum()
    assert measured.bias_variance == pytest.approx(spread, rel=1e-5)
    # A body that is pushed tells less of it.
    assert fused_at_rest(said, options, force=5.0).bias_variance == pytest.approx(spread * 2.0, rel=1e-5)
    known = fused_at_rest(said, options, bias=0.02)
    assert known.bias == pytest.approx(0.0, abs=1e-8) and np.abs(list(known.velocity)).max() < 1e-8
    # One leg alone cannot tell turning from moving.
    assert fused_at_rest(said[:1], options).bias_variance == 0.0


def test_a_bias_about_the_vertical_is_found_on_the_way() -> None:
    """A gyro whose bias neither a velocity nor gravity tells."""
    log = Log.load(SAMPLE)
    turned, found = log.replace(gyro=log.gyro + np.array([0.0, 0.0, 0.02])), {}
    for method in ("gait-legs", "gait"):
        biases = [Estimator.load("go1", method).run(part).gyro_bias[-1, 2] for part in (log, turned)]
        found[method] = (biases[1] - biases[0]) / 0.02
    assert found["gait-legs"] > 0.5 > 0.3 > found["gait"]


@pytest.mark.parametrize("method", ["gait-legs", "gait"])
def test_stamps_in_which_a_period_is_lost_do_no_harm(log: Log, method: str) -> None:
    """At 1e14 s two numbers lie 16 ms apart, and adding 2 ms to one changes nothing."""
    estimator = Estimator.load("go1", method)
    estimator.start_as(log, "truth")
    for k, row in enumerate(log.slice(0.0, 0.1).rows()):
        state = estimator.update(row._replace(t=1e14 + k / 64.0))
        assert np.isfinite(state.vel_b).all()
