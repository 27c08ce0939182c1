"""What real robots do to their readings: each effect against a closed form, and none of them where it is off."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gait import GaitError, Log, Robot, lie
from gait.log.imu_noise import SLOW, ImuNoise
from gait.sim.episode import Simulation, episode_body, episode_robot
from gait.sim.episode_sampling import draw_episode
from gait.sim.mismatch import TWINS, body_of, sensors_for, sensors_of
from gait.sim.plan import CollectConfig
from gait.sim.sensor_step import CREEP, GRAVITY, SAMPLE_DT, TAKE_UP, JointConfig, SensorConfig
from gait.sim.sensors import SensorStream, sense
from gait.sim.settings import EpisodeConfig

EXACT = SensorConfig()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def episode(seconds: float = 1.0) -> SimpleNamespace:
    """A body that rolls and heaves while its joints swing, every figure in closed form."""
    n = round(seconds * 1000) + 1
    t = np.arange(n) * 0.001
    phase, speed = rng(1).uniform(0.0, 6.0, 12), rng(2).uniform(5.0, 20.0, 12)
    turn = np.sin(7.0 * t)[:, None] * [0.2, 0.0, 0.0]
    return SimpleNamespace(
        t=t,
        pos_w=np.zeros((n, 3)),
        quat_wb_wxyz=np.array([lie.quat_from_rotation(lie.so3_exp(x)) for x in turn]),
        vel_w=np.stack([0.3 * np.cos(5.0 * t), 0.1 * np.sin(8.0 * t), 0.2 * np.sin(20.0 * t)], axis=1),
        omega_b=1.4 * np.cos(7.0 * t)[:, None] * [1.0, 0.0, 0.0],
        q=0.3 * np.sin(speed * t[:, None] + phase),
        dq=0.3 * speed * np.cos(speed * t[:, None] + phase),
        q_des=np.zeros((n, 12)),
        tau=10.0 * np.sin(30.0 * t[:, None] + phase),
        contact=np.zeros((n, 4), dtype=bool),
        foot_force_w=np.zeros((n, 4, 3)),
        foot_vel_w=np.zeros((n, 4, 3)),
    )


@pytest.fixture(scope="module")
def go1() -> Robot:
    return Robot.load("go1")


@pytest.fixture(scope="module")
def raw() -> SimpleNamespace:
    return episode()


def joints(raw: SimpleNamespace, robot: Robot, **errors: object) -> Log:
    return sense(raw, robot, SensorConfig(joints=JointConfig(**errors)), rng())


def imu(raw: SimpleNamespace, robot: Robot, **errors: object) -> Log:
    return sense(raw, robot, SensorConfig(imu=ImuNoise(**errors)), rng())


def test_readings_of_version_1_are_those_of_its_test_set(go1: Robot, raw: SimpleNamespace) -> None:
    """Figures from before there was a version 2: a draw more or another order would change them."""
    log = sense(raw, go1, sensors_of("twin"), rng(3))
    found = tuple(map(float, (log.accel[300, 2], log.gyro[499, 0], log.dq[321, 5], log.tau[400, 7])))
    assert found == pytest.approx((12.353860454502932, 1.0730240098474897, 4.7226252123720975, 9.19828125), abs=1e-9)


def test_own_generators_leave_all_other_draws_alone(go1: Robot, raw: SimpleNamespace) -> None:
    noisy = SensorConfig(imu=ImuNoise(1e-3, 1e-2, 0.01, 0.1), joints=JointConfig(torque_gain=0.1))
    one = sense(raw, go1, noisy, rng(4))
    more = replace(noisy, stamp_jitter=3e-4, joints=replace(noisy.joints, velocity_noise=0.2))
    two = sense(raw, go1, more, rng(4))
    for name in ("gyro", "accel", "q", "tau", "pos_w"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert (two.dq - one.dq).std() == pytest.approx(0.2, rel=0.05)
    late = two.t - one.t
    assert 2.9e-4 < np.abs(late).max() <= 3e-4 and abs(late.mean()) < 3e-5 and (np.diff(two.t) > 0.0).all()


def test_a_stream_with_every_error_gives_the_bits_of_the_whole(go1: Robot, raw: SimpleNamespace) -> None:
    config = sensors_of("twin2", seed=11)
    assert config.imu.ringing > 0.0 and config.joints.flexure > 0.0 and config.stamp_jitter > 0.0
    log, stream, samples = sense(raw, go1, config, rng(3)), SensorStream(go1, config, rng(3)), []
    for k in range(len(raw.t)):
        state = (raw.quat_wb_wxyz, raw.vel_w, raw.omega_b, raw.q, raw.dq, raw.q_des, raw.tau)
        sample = stream.step(*(x[k] for x in state))
        samples += [sample] if sample is not None else []
    for name in ("t", "gyro", "accel", "q", "dq", "q_des", "tau"):
        assert np.array_equal(np.array([getattr(one, name) for one in samples]), getattr(log, name)), name


def test_a_gear_gives_way_with_its_torque(go1: Robot, raw: SimpleNamespace) -> None:
    """The torque A sin(wt) through a first-order lag of 3 ms bends the gear; its velocity is read too."""
    log = joints(raw, go1, flexure=1e-3)
    bend, speed = log.q - raw.q[2::2], log.dq - raw.dq[2::2]
    gain = 1.0 / math.hypot(1.0, 30.0 * 0.003)
    assert np.abs(bend[50:]).max(axis=0) == pytest.approx(np.full(12, 1e-2 * gain), rel=0.01)
    assert np.abs(speed[50:]).max(axis=0) == pytest.approx(np.full(12, 30.0 * 1e-2 * gain), rel=0.01)
    late = np.interp(log.t - math.atan(30.0 * 0.003) / 30.0 + 0.0005, raw.t, raw.tau[:, 0])
    assert bend[50:, 0] == pytest.approx(1e-3 * gain * late[50:], abs=2e-4)


def test_play_lets_the_motor_rest_where_the_torque_presses(go1: Robot, raw: SimpleNamespace) -> None:
    still = SimpleNamespace(**vars(raw))
    still.tau = np.full_like(raw.tau, 5.0)
    still.tau[500:] = -5.0
    play = joints(still, go1, backlash=4e-3).q - raw.q[2::2]
    assert play[:240] == pytest.approx(np.full((240, 12), 2e-3)) and play[-200:] == pytest.approx(-2e-3)
    still.tau[:] = 0.2 * TAKE_UP
    assert joints(still, go1, backlash=4e-3).q - raw.q[2::2] == pytest.approx(4e-4)


def test_torque_readings_have_a_zero_and_friction(go1: Robot, raw: SimpleNamespace) -> None:
    offset = tuple(np.linspace(-0.3, 0.3, 12))
    off = joints(raw, go1, torque_offset=offset, torque_friction=0.4).tau - raw.tau[2::2]
    assert off == pytest.approx(np.array(offset) + 0.4 * np.tanh(raw.dq[2::2] / CREEP))
    with pytest.raises(GaitError, match="2 numbers but go1 has 12 joints"):
        joints(raw, go1, torque_offset=(0.1, 0.2))


def test_scales_turn_what_the_axes_read(go1: Robot, raw: SimpleNamespace) -> None:
    exact, log = (
        sense(raw, go1, EXACT, rng()),
        imu(raw, go1, gyro_scale=(0.01, 0.0, 0.0), accel_scale=(0.0, 0.0, -0.02)),
    )
    assert log.gyro == pytest.approx(exact.gyro * [1.01, 1.0, 1.0])
    assert log.accel == pytest.approx(exact.accel * [1.0, 1.0, 0.98])


def test_the_low_pass_of_an_imu_weakens_and_delays(go1: Robot, raw: SimpleNamespace) -> None:
    exact, log = sense(raw, go1, EXACT, rng()), imu(raw, go1, cutoff=10.0)
    assert np.array_equal(log.accel[0], exact.accel[0])
    gain = 1.0 / math.hypot(1.0, 7.0 / (2.0 * math.pi * 10.0))
    assert np.abs(log.gyro[200:, 0]).max() == pytest.approx(gain * np.abs(exact.gyro[200:, 0]).max(), rel=0.01)


def test_an_impact_rings_on_and_slow_motion_does_not(go1: Robot) -> None:
    """Against the impulse response of a damped oscillator, share * w * exp(-t / decay) sin(w t), by convolution."""
    still = episode(0.4)
    still.quat_wb_wxyz[:], still.omega_b[:], still.vel_w[:] = [1.0, 0.0, 0.0, 0.0], 0.0, 0.0
    still.vel_w[101:, 2] = 0.05  # 25 m/s^2 in the sample at 0.102 s
    mode = {"ringing": 0.2, "ringing_frequency": 40.0, "ringing_decay": 0.03, "ringing_cross": 0.5}
    log, exact = imu(still, go1, **mode), sense(still, go1, EXACT, rng()).accel[:, 2] - GRAVITY
    t, omega = SAMPLE_DT * np.arange(len(log)), 2.0 * math.pi * 40.0
    passed = math.exp(-SAMPLE_DT / SLOW)
    slow = np.convolve(exact, (1.0 - passed) * passed ** np.arange(len(log)))[: len(log)]
    kernel = 0.2 * omega * SAMPLE_DT * np.exp(-t / 0.03) * np.sin(omega * t)
    ring = np.convolve(exact - slow, kernel)[: len(log)]
    assert 1.0 < np.abs(ring).max() < 5.0 and np.abs(ring[100:]).max() < 0.1
    assert log.accel[:, 2] - GRAVITY == pytest.approx(exact + ring) and log.accel[:, 0] == pytest.approx(0.5 * ring)
    assert np.abs(log.gyro).max() == 0.0
    still.vel_w[:, 2] = 0.1 * np.sin(3.0 * still.t)
    moved = imu(still, go1, **mode).accel - sense(still, go1, EXACT, rng()).accel
    assert np.abs(moved).max() < 0.03
    with pytest.raises(GaitError, match="ringing_decay is 0.0: give a finite number above 0"):
        ImuNoise(ringing_decay=0.0)


def test_a_recording_rings_as_the_simulator_does(go1: Robot, raw: SimpleNamespace) -> None:
    noise = ImuNoise(
        mounting=(0.01, 0.0, -0.02), gyro_scale=(0.01, 0.02, 0.0), accel_scale=(0.0, 0.01, -0.02), cutoff=60.0,
        ringing=0.3, ringing_cross=0.7, ringing_frequency=30.0, ringing_decay=0.05,
    )  # fmt: skip
    ours, theirs = sense(raw, go1, EXACT, rng()).with_imu_noise(noise, 0), sense(raw, go1, SensorConfig(noise), rng())
    np.testing.assert_allclose(ours.gyro, theirs.gyro, atol=1e-9)
    np.testing.assert_allclose(ours.accel, theirs.accel, atol=1e-9)


def test_an_imu_that_does_not_average_reads_the_last_millisecond(go1: Robot, raw: SimpleNamespace) -> None:
    log = sense(raw, go1, SensorConfig(imu_window=1), rng())
    middle = log.t - 0.0005
    assert log.gyro[:, 0] == pytest.approx(1.4 * np.cos(7.0 * middle), abs=1e-4)
    with pytest.raises(GaitError, match="imu_window must be 1 to 2 ms, got 3"):
        sense(raw, go1, SensorConfig(imu_window=3), rng())
    with pytest.raises(GaitError, match="stamp_jitter must lie between 0 and 0.0005 s, got 0.001"):
        sense(raw, go1, SensorConfig(stamp_jitter=1e-3), rng())


def test_feet_have_another_radius_than_described() -> None:
    config = EpisodeConfig(foot_scale=0.8, seconds=0.1)
    described, true = episode_robot(config), episode_body(config)
    assert true.foot_radius == pytest.approx(0.8 * described.foot_radius)
    assert Simulation(config, 0).model.geom("FR_foot").size[0] == pytest.approx(true.foot_radius)


def test_version_2_is_another_robot_in_every_episode(go1: Robot) -> None:
    def robot(seed: int) -> tuple[EpisodeConfig, SensorConfig]:
        return body_of("twin2", EpisodeConfig(), seed=seed), sensors_of("twin2", seed=seed)

    assert robot(5) == robot(5) and robot(5)[0] != robot(6)[0] and robot(5)[1] != robot(6)[1]
    many = [robot(seed) for seed in range(60)]
    sinks, delays = [body.sink for body, _ in many], {sensors.joints.delay for _, sensors in many}
    assert 0.003 <= min(sinks) < 0.004 and 0.008 < max(sinks) <= 0.01 and delays == {1, 2, 3, 4, 5}
    assert np.shape(many[0][0].link_scale) == (4, 3) and len(many[0][1].joints.torque_offset) == 12
    # One imperfection alone is the one that the whole robot has.
    assert sensors_of("twin2", ["IMU offset"], 5).imu.accel_offset == robot(5)[1].imu.accel_offset
    assert sensors_of("twin") == sensors_of("twin", seed=9) and len(TWINS["twin2"]) > len(TWINS["twin"])
    longer = sensors_for("twin2", replace_joints(go1, 29), 5).joints
    assert len(longer.offset) == len(longer.torque_offset) == 29 and longer.offset[12] == longer.offset[0]


def replace_joints(robot: Robot, count: int) -> SimpleNamespace:
    return SimpleNamespace(name=robot.name, num_joints=count)


def test_a_collection_draws_body_and_sensors_of_one_robot() -> None:
    config = CollectConfig(sensors="twin2", seconds=1.0, seed=3)
    drawn, seed, _ = draw_episode(config, 0)
    assert drawn.sink == body_of("twin2", EpisodeConfig(), seed=seed).sink
    assert draw_episode(config, 0)[:2] == (drawn, seed) and draw_episode(config, 1)[0].sink != drawn.sink
