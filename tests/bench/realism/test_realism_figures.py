"""What is injected into a log of formulas is found again; without it there is nothing to find."""

from functools import cache

import needs
import numpy as np
import pytest
from synthetic import walking_log

from gait import GaitError, Log, Robot, lie
from gait.bench.realism import leg_errors
from gait.bench.realism.body_motion import BodyMotion, body_motion
from gait.bench.realism.even_signals import delayed
from gait.bench.realism.measured_log import MeasuredLog, measure
from gait.bench.realism.stances import Stances
from gait.reference.chain import foot_jacobian
from gait.reference.flexure import bending_torque


@cache
def walk() -> Log:
    return walking_log(6.0)


@cache
def robot() -> Robot:
    return Robot.load("go1")


@cache
def clean() -> MeasuredLog:
    return measure(walk(), robot())


def found(**changes: object) -> dict[str, object]:
    return measure(walk().replace(**changes), robot()).values


def test_an_exact_log_has_next_to_no_errors() -> None:
    values = clean().values
    assert np.abs(values["residual_middle"]).max() < 0.002
    assert np.abs(values["accel_error"]).max() < 0.005 and np.abs(values["gyro_bias"]).max() < 1e-3
    assert np.abs(values["gyro_scale"]).max() < 0.2 and np.abs(values["gyro_mounting"]).max() < 0.1
    assert abs(values["joint_latency"]) < 0.3
    assert values["dq_lag"] == pytest.approx(1.0, abs=0.1), "in swing, dq is the difference to the sample before"
    assert values["sink_range"] < 0.5 and values["truth_outliers"] == 0.0
    assert np.abs(values["accel_long"]).max() < 0.005


def test_bias_scale_and_mounting_of_the_imu_are_recovered() -> None:
    R_bi = lie.so3_exp(np.radians([1.5, -1.0, 0.8]))
    log = walk()
    values = found(
        gyro=1.02 * log.gyro @ R_bi + np.array([0.01, -0.02, 0.03]), accel=log.accel + np.array([0.2, -0.1, 0.05])
    )
    np.testing.assert_allclose(values["gyro_mounting"], [1.5, -1.0, 0.8], atol=0.15)
    np.testing.assert_allclose(values["gyro_scale"], 2.0, atol=0.3)
    np.testing.assert_allclose(values["gyro_bias"], [0.01, -0.02, 0.03], atol=2e-3)
    np.testing.assert_allclose(values["accel_error"], [0.2, -0.1, 0.05], atol=0.01)


def test_latencies_are_recovered() -> None:
    log = walk()
    late = {name: delayed(getattr(log, name), 0.008, log.rate) for name in ("gyro", "accel")}
    values = found(**late)
    for name in ("gyro_latency", "accel_latency"):
        assert values[name] - clean().values[name] == pytest.approx(8.0, abs=0.5)
    values = found(q=delayed(log.q, 0.006, log.rate), dq=delayed(log.dq, 0.006, log.rate))
    assert values["joint_latency"] == pytest.approx(6.0, abs=0.6)


def test_the_filter_of_joint_velocities_and_steps_are_recovered() -> None:
    log = walk()
    share = 0.25
    filtered, last = np.empty_like(log.dq), log.dq[0]
    for k, row in enumerate(log.dq):
        last = last + share * (row - last)
        filtered[k] = last
    # Of such a filter of samples the group delay at low frequencies is (1 - share) / share samples.
    lag = 1e3 * (1.0 - share) / share / log.rate
    assert found(dq=filtered)["dq_lag"] - clean().values["dq_lag"] == pytest.approx(lag, abs=0.5)
    values = found(dq=np.round(log.dq / 0.05) * 0.05, q=np.round(log.q / 1e-3) * 1e-3)
    np.testing.assert_allclose(values["dq_step"], 0.05, rtol=1e-6)
    np.testing.assert_allclose(values["q_step"], 1.0, rtol=1e-6)
    assert isinstance(clean().values["dq_step"], str), "exact velocities have no step"
    assert isinstance(found(dq=log.dq.astype(np.float32))["dq_step"], str), "nor have those in single precision"


def test_white_noise_of_the_accelerometer_is_its_random_walk() -> None:
    log, density = walk(), 0.1
    noise = np.random.default_rng(3).normal(0.0, density * np.sqrt(log.rate), log.accel.shape)
    np.testing.assert_allclose(found(accel=log.accel + noise)["accel_long"], density, rtol=0.35)


def test_jumps_of_ground_truth_are_not_taken_for_errors_of_legs() -> None:
    """10 mm for 20 ms, as motion capture does: the derivative alone would be off by 0.5 m/s."""
    log, pos_w = walk(), np.array(walk().pos_w)
    jumps = range(400, len(log) - 400, 600)
    for row in jumps:
        pos_w[row : row + 10, :2] += 0.01
    motion = body_motion(log.replace(pos_w=pos_w), robot())
    assert all(motion.outlier[row : row + 10].all() for row in jumps) and motion.outlier.mean() < 0.03
    inside = slice(100, -100)
    assert np.abs(motion.vel_w - log.vel_w)[inside].max() < 0.01
    values = found(pos_w=pos_w)
    assert values["truth_outliers"] > 0.5 and np.abs(values["residual_middle"]).max() < 0.004


def coloured(std: float, seconds: float, rate: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """First-order Gauss-Markov noise."""
    keep = np.exp(-1.0 / (seconds * rate))
    out = np.empty(shape)
    out[0] = rng.normal(0.0, std, shape[1:])
    for k in range(1, len(out)):
        out[k] = keep * out[k - 1] + rng.normal(0.0, std * np.sqrt(1.0 - keep**2), shape[1:])
    return out


def made_stances(residual: np.ndarray, rate: float, height: np.ndarray | None = None) -> Stances:
    """Stances of 0.4 s, one after the other."""
    count, legs = residual.shape[:2]
    length = round(0.4 * rate)
    spans = [(leg, a, a + length) for leg in range(legs) for a in range(1, count - length, length + 20)]
    standing = np.zeros((count, legs), dtype=bool)
    for leg, a, b in spans:
        standing[a:b, leg] = True
    height = np.zeros((count, legs)) if height is None else height
    return Stances(rate, 0.4, residual, height, None, standing, np.array(spans))


def motion_of(count: int, rate: float) -> BodyMotion:
    nothing = np.zeros((count, 3))
    pos_w = np.sin(np.arange(count) / rate)[:, None] * np.ones(3)
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    return BodyMotion(rate, pos_w, quat, nothing, nothing, np.zeros(count, dtype=bool), True)


def test_size_and_correlation_time_of_the_residual_are_recovered() -> None:
    rate, rng = 200.0, np.random.default_rng(4)
    residual = coloured(0.05, 0.02, rate, (40_000, 2, 3), rng)
    values = leg_errors.residual_figures(made_stances(residual, rate), motion_of(40_000, rate))
    np.testing.assert_allclose(values["residual_middle"], 0.05, rtol=0.05)
    np.testing.assert_allclose(values["residual_time"], 20.0, rtol=0.2)
    np.testing.assert_allclose(values["residual_shared"], 0.0, atol=0.1)
    total = np.hypot(values["residual_between"], values["residual_within"])
    np.testing.assert_allclose(total, 0.05, rtol=0.05)


def test_what_two_legs_share_is_seen() -> None:
    rate, rng = 200.0, np.random.default_rng(5)
    own, shared = (coloured(0.03, 0.02, rate, (20_000, legs, 3), rng) for legs in (2, 1))
    values = leg_errors.residual_figures(made_stances(own + shared, rate), motion_of(20_000, rate))
    np.testing.assert_allclose(values["residual_shared"], 0.5, atol=0.1)


def test_a_foot_that_sinks_is_measured() -> None:
    rate = 200.0
    residual = np.zeros((4_000, 1, 3))
    stances = made_stances(residual, rate)
    height = np.zeros((4_000, 1))
    for _, a, b in stances.spans:
        height[a:b, 0] = 0.01 * np.exp(-np.linspace(0.0, 0.4, b - a) / 0.05)
    values = leg_errors.sink_figures(made_stances(residual, rate, height))
    # From phase 0.1, 40 ms, and 0.05, 20 ms, on.
    assert values["sink_range"] == pytest.approx(10.0 * np.exp(-0.8), rel=0.05)
    assert values["sink_settling"] == pytest.approx(10.0 * np.exp(-0.4) - 10.0 * np.exp(-4.0), rel=0.05)


def test_joints_that_give_way_are_measured() -> None:
    """By 20 mrad under a quarter of weight times leg length, while two legs carry the robot."""
    log, go1 = walk(), robot()
    load, q = 0.5 * go1.mass * 9.81, log.q.copy()
    compliance = 0.02 / bending_torque(go1)
    for leg, chain in enumerate(go1.chains):
        joints = slice(3 * leg, 3 * leg + 3)
        q[:, joints] -= compliance * load * np.array([foot_jacobian(chain, own)[2] for own in log.q[:, joints]])
    bent = found(q=q, dq=log.dq + np.gradient(q - log.q, 1.0 / log.rate, axis=0))
    assert np.abs(clean().values["flexure"][0]) < 2.0, "of a rigid robot"
    assert bent["flexure"][0] - clean().values["flexure"][0] == pytest.approx(20.0, abs=2.5)


def test_uneven_stamps_are_measured_and_resampled() -> None:
    log, rng = walk(), np.random.default_rng(6)
    t = log.t + np.clip(rng.normal(0.0, 2e-4, len(log)), -5e-4, 5e-4)
    taken = {name: np.stack([np.interp(t, log.t, one) for one in getattr(log, name).T], axis=1)
             for name in ("gyro", "accel", "q", "dq", "pos_w", "vel_w")}  # fmt: skip
    values = found(t=t, **taken)
    assert values["jitter"] == pytest.approx(0.2 * np.sqrt(2.0), rel=0.15)
    assert np.abs(values["residual_middle"]).max() < 0.02


def test_what_a_log_lacks_has_a_reason() -> None:
    values = found(tau=None, q_des=None, vel_w=None)
    assert values["residual_low_load"] == "neither torques nor joint targets"
    assert values["truth_velocity"] == "the log has no vel_w"
    made_up = measure(walk(), robot(), accelerometer=False)
    assert made_up.values["accel_long"] == "the accelerometer was not logged"
    assert "accel-spectrum" not in made_up.curves and "gyro-spectrum" in made_up.curves
    with pytest.raises(GaitError, match="no ground truth to measure it by"):
        found(pos_w=None, vel_w=None)
    with pytest.raises(GaitError, match="lasts 0.998 s"):
        measure(walk().slice(0.0, 1.0), robot())


def test_the_real_a1_is_what_the_page_says() -> None:
    """Residuals of legs several times those of the simulator, gaps in the IMU's samples, jumps of motion capture."""
    needs.shared("real/a1_walk.npz")
    import real_logs

    recording = real_logs.a1_walk(folder=needs.SHARED / "real")
    values = measure(recording.walking, recording.robot).values
    assert (np.array([0.02, 0.03, 0.015]) < values["residual_middle"]).all()
    assert (values["residual_middle"] < np.array([0.05, 0.06, 0.035])).all()
    assert values["imu_straight"] == pytest.approx(9.0, abs=1.0) and 2.0 < values["truth_outliers"] < 8.0
    assert (np.abs(values["accel_long"] - 0.06) < 0.03).all()
