"""Sensors against analytic motion, against the filter's integrator, and against the simulator's own truth."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from gait import GaitError, Log, Robot, lie, quaternions
from gait.log.imu_noise import ImuNoise
from gait.sim.episode import Simulation
from gait.sim.mismatch import TWINS, body_of, sensors_of
from gait.sim.sensor_step import GRAVITY, SAMPLE_DT, STRIDE, JointConfig, SensorConfig
from gait.sim.sensors import SensorStream, sense
from gait.sim.settings import Command, EpisodeConfig

EXACT = SensorConfig()
BAD = SensorConfig(
    imu=ImuNoise(2e-4, 2e-3, 0.01, 0.1, 1e-4, 1e-3, 3.0, 30.0, (0.01, 0.0, -0.01), delay=1),
    joints=JointConfig((0.01,) * 12, (1e-4, 1e-4, 1e-4), 80.0, 0.004, 0.05, 0.02, delay=2),
    foot_force=False,
)


@pytest.fixture(scope="module")
def go1() -> Robot:
    return Robot.load("go1")


def euler_rotation(rpy: np.ndarray) -> np.ndarray:
    """Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z = np.diag(rpy)
    return lie.so3_exp(z) @ lie.so3_exp(y) @ lie.so3_exp(x)


class Motion:
    """A body that sways, bounces and turns, with every derivative known in closed form."""

    amplitude = np.array([0.3, 0.2, 0.05])
    pulse = np.array([3.0, 4.0, 12.0])
    sway = np.array([0.2, 0.15, 0.8])
    beat = np.array([9.0, 13.0, 1.1])

    def pos(self, t: float) -> np.ndarray:
        return self.amplitude * np.sin(self.pulse * t) + np.array([0.5 * t, 0.0, 0.3])

    def vel(self, t: float) -> np.ndarray:
        return self.amplitude * self.pulse * np.cos(self.pulse * t) + np.array([0.5, 0.0, 0.0])

    def acc(self, t: float) -> np.ndarray:
        return -self.amplitude * self.pulse**2 * np.sin(self.pulse * t)

    def rot(self, t: float) -> np.ndarray:
        return euler_rotation(self.sway * np.sin(self.beat * t))

    def omega_b(self, t: float) -> np.ndarray:
        roll, pitch, _ = self.sway * np.sin(self.beat * t)
        dr, dp, dy = self.sway * self.beat * np.cos(self.beat * t)
        sr, cr, sp, cp = math.sin(roll), math.cos(roll), math.sin(pitch), math.cos(pitch)
        return np.array([dr - sp * dy, cr * dp + sr * cp * dy, -sr * dp + cr * cp * dy])


def synthetic(seconds: float = 2.0, seed: int = 0) -> SimpleNamespace:
    """An episode in the shape of `RawEpisode`: analytic base motion, joints on sinusoids."""
    motion, n = Motion(), round(seconds * 1000) + 1
    t = np.arange(n) * 0.001
    rng = np.random.default_rng(seed)
    phase, speed = rng.uniform(0, 6, 12), rng.uniform(5, 20, 12)
    q = 0.3 * np.sin(speed * t[:, None] + phase)
    return SimpleNamespace(
        t=t,
        pos_w=np.array([motion.pos(x) for x in t]),
        quat_wb_wxyz=np.array([lie.quat_from_rotation(motion.rot(x)) for x in t]),
        vel_w=np.array([motion.vel(x) for x in t]),
        omega_b=np.array([motion.omega_b(x) for x in t]),
        q=q,
        dq=0.3 * speed * np.cos(speed * t[:, None] + phase),
        q_des=q + 0.1,
        tau=rng.normal(size=(n, 12)),
        contact=rng.random((n, 4)) < 0.5,
        foot_force_w=rng.normal(size=(n, 4, 3)) * 50.0,
        foot_vel_w=rng.normal(size=(n, 4, 3)),
    )


@pytest.fixture(scope="module")
def raw() -> SimpleNamespace:
    return synthetic()


@pytest.fixture(scope="module")
def long_raw() -> SimpleNamespace:
    return synthetic(20.0)


def strapdown(raw: SimpleNamespace, log: Log, robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The filter's integrator from the true state at the first sample: R, velocity, position of the base at the end."""
    first, last, lever = STRIDE, STRIDE * len(log), robot.imu_position
    R = lie.rotation_from_quat(raw.quat_wb_wxyz[first])
    v = raw.vel_w[first] + R @ np.cross(raw.omega_b[first], lever)
    p = raw.pos_w[first] + R @ lever
    g = np.array([0.0, 0.0, -GRAVITY])
    for w, a in zip(log.gyro[1:], log.accel[1:], strict=True):
        turn, once, twice = lie.gammas(w * SAMPLE_DT)
        p = p + v * SAMPLE_DT + (R @ twice @ a + 0.5 * g) * SAMPLE_DT**2
        v = v + (R @ once @ a + g) * SAMPLE_DT
        R = R @ turn
    return R, v - R @ np.cross(raw.omega_b[last], lever), p - R @ lever


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_one_sample_for_every_two_rows_of_truth(go1: Robot, raw: SimpleNamespace) -> None:
    log = sense(raw, go1, EXACT, rng(), "a test")
    assert len(log) == 1000 and log.rate == 500.0 and log.source == "a test"
    assert log.t[0] == 0.002 and log.t[-1] == 2.0
    assert np.array_equal(log.pos_w, raw.pos_w[2::2]) and np.array_equal(log.vel_w, raw.vel_w[2::2])


def test_an_even_number_of_rows_ends_with_the_last_full_sample(go1: Robot, raw: SimpleNamespace) -> None:
    cut = SimpleNamespace(**{key: value[:-1] for key, value in vars(raw).items()})
    assert np.array_equal(sense(cut, go1, EXACT, rng()).gyro, sense(raw, go1, EXACT, rng()).gyro[:-1])


def test_everything_off_gives_exact_joints(go1: Robot, raw: SimpleNamespace) -> None:
    log = sense(raw, go1, EXACT, rng())
    for name in ("q", "dq", "q_des", "tau", "contact", "foot_vel_w", "quat_wb_wxyz"):
        assert np.array_equal(getattr(log, name), getattr(raw, name)[2::2]), name
    assert np.array_equal(log.foot_force, np.maximum(raw.foot_force_w[2::2, :, 2], 0.0))


def test_imu_is_rate_and_specific_force_at_its_mounting_point(go1: Robot, raw: SimpleNamespace) -> None:
    log, motion = sense(raw, go1, EXACT, rng()), Motion()
    h, lever = 1e-5, go1.imu_position
    for k in range(0, 1000, 37):
        t = log.t[k] - 0.5 * SAMPLE_DT
        assert np.allclose(log.gyro[k], motion.omega_b(t), atol=2e-4)

        def point(x: float) -> np.ndarray:
            return motion.pos(x) + motion.rot(x) @ lever

        acceleration = (point(t + h) - 2.0 * point(t) + point(t - h)) / h**2
        force = motion.rot(t).T @ (acceleration + np.array([0.0, 0.0, GRAVITY]))
        assert np.allclose(log.accel[k], force, atol=5e-3)


def test_imu_reads_in_its_own_axes(go1: Robot, raw: SimpleNamespace) -> None:
    """A chip that is mounted askew, by design or by mistake, reads the same vectors in turned axes."""
    straight, turn = sense(raw, go1, EXACT, rng()), np.array([1.0, 2.0, -0.5])
    turned = replace(go1, imu_quat_wxyz=lie.quat_from_rotation(lie.so3_exp(turn)))
    mistaken = SensorConfig(imu=ImuNoise(mounting=tuple(turn)))
    for log in (sense(raw, turned, EXACT, rng()), sense(raw, go1, mistaken, rng())):
        assert np.allclose(log.accel @ lie.so3_exp(turn).T, straight.accel, atol=1e-9)
        assert np.allclose(log.gyro @ lie.so3_exp(turn).T, straight.gyro, atol=1e-9)


def test_strapdown_of_exact_data_returns_the_true_pose(go1: Robot, long_raw: SimpleNamespace) -> None:
    raw = long_raw
    log = sense(raw, go1, EXACT, rng())
    R, v, p = strapdown(raw, log, go1)
    assert np.allclose(R, lie.rotation_from_quat(raw.quat_wb_wxyz[-1]), atol=1e-9)
    assert np.allclose(v, log.vel_w[-1], atol=1e-9)
    assert np.linalg.norm(p - log.pos_w[-1]) < 1e-3


def test_stream_and_whole_episode_agree_to_the_last_bit(go1: Robot, raw: SimpleNamespace) -> None:
    log = sense(raw, go1, BAD, rng(3))
    stream, samples = SensorStream(go1, BAD, rng(3)), []
    for k in range(len(raw.t)):
        state = (raw.quat_wb_wxyz, raw.vel_w, raw.omega_b, raw.q, raw.dq, raw.q_des, raw.tau)
        sample = stream.step(*(x[k] for x in state))
        assert (sample is None) == (k % 2 == 1 or k == 0)
        samples += [sample] if sample is not None else []
    for name in ("t", "gyro", "accel", "q", "dq", "q_des", "tau"):
        streamed = np.array([getattr(sample, name) for sample in samples])
        assert np.array_equal(streamed, getattr(log, name)), name


def test_noise_bias_and_walk_have_the_configured_size(go1: Robot, long_raw: SimpleNamespace) -> None:
    raw = long_raw
    exact = sense(raw, go1, EXACT, rng())
    white = sense(raw, go1, SensorConfig(imu=ImuNoise(gyro_noise=2e-4, accel_noise=2e-3)), rng())
    root = math.sqrt(500.0)
    assert (white.gyro - exact.gyro).std(axis=0) == pytest.approx([2e-4 * root] * 3, rel=0.03)
    assert (white.accel - exact.accel).std(axis=0) == pytest.approx([2e-3 * root] * 3, rel=0.03)
    assert np.array_equal(white.q, exact.q) and np.array_equal(white.dq, exact.dq)
    config = SensorConfig(imu=ImuNoise(gyro_bias=0.01, accel_bias=0.1))
    short = synthetic(0.02)
    none = sense(short, go1, EXACT, rng())
    draws = [sense(short, go1, config, rng(seed)) for seed in range(300)]
    gyro = np.array([log.gyro - none.gyro for log in draws])
    accel = np.array([log.accel - none.accel for log in draws])
    assert np.ptp(gyro, axis=1).max() < 1e-12 and np.ptp(accel, axis=1).max() < 1e-12
    assert gyro[:, 0].std() == pytest.approx(0.01, rel=0.1) and accel[:, 0].std() == pytest.approx(0.1, rel=0.1)
    walk = sense(raw, go1, SensorConfig(imu=ImuNoise(gyro_walk=1e-3, accel_walk=1e-2)), rng())
    steps = np.diff(walk.gyro - exact.gyro, axis=0)
    assert steps.std() == pytest.approx(1e-3 * math.sqrt(SAMPLE_DT), rel=0.02)
    assert np.diff(walk.accel - exact.accel, axis=0).std() == pytest.approx(1e-2 * math.sqrt(SAMPLE_DT), rel=0.02)


def test_a_recording_gets_the_errors_that_the_simulator_applies(go1: Robot, long_raw: SimpleNamespace) -> None:
    """`Log.with_imu_noise` against the sensors' own step: exact errors alike, random ones in their size."""
    exact = sense(long_raw, go1, EXACT, rng())
    skewed = {"mounting": (0.01, 0.0, -0.02), "gyro_range": 3.0, "accel_range": 30.0, "gyro_offset": (0.1, 0.0, -0.2)}
    noise = ImuNoise(**skewed, delay=2)
    ours, theirs = exact.with_imu_noise(noise, 0), sense(long_raw, go1, SensorConfig(imu=noise), rng())
    np.testing.assert_allclose(ours.gyro, theirs.gyro, atol=1e-9)
    np.testing.assert_allclose(ours.accel, theirs.accel, atol=1e-9)
    noise = ImuNoise(gyro_noise=2e-4, accel_noise=2e-3, gyro_walk=1e-3, accel_walk=1e-2)
    ours, theirs = exact.with_imu_noise(noise, 0), sense(long_raw, go1, SensorConfig(imu=noise), rng())
    for name in ("gyro", "accel"):
        sizes = [np.diff(getattr(log, name) - getattr(exact, name), axis=0).std() for log in (ours, theirs)]
        assert sizes[0] == pytest.approx(sizes[1], rel=0.03), name


def test_readings_saturate_in_the_axes_of_the_chip(go1: Robot, raw: SimpleNamespace) -> None:
    log = sense(raw, go1, SensorConfig(imu=ImuNoise(gyro_range=1.0, accel_range=8.0)), rng())
    assert np.abs(log.gyro).max() == 1.0 and np.abs(log.accel).max() == 8.0


def test_encoders_shift_round_and_lag(go1: Robot, raw: SimpleNamespace) -> None:
    offset = tuple(np.linspace(-0.02, 0.02, 12))
    joints = JointConfig(offset=offset, resolution=(1e-3, 2e-3, 5e-3), delay=2)
    log, step = sense(raw, go1, SensorConfig(joints=joints), rng()), np.tile([1e-3, 2e-3, 5e-3], 4)
    wanted = raw.q[2::2] + offset
    assert np.allclose(log.q / step, np.round(log.q / step), atol=1e-9)
    assert (np.abs(log.q[2:] - wanted[:-2]) <= 0.5 * step + 1e-12).all()
    assert np.array_equal(log.dq[2:], raw.dq[2::2][:-2]) and np.array_equal(log.tau[2:], raw.tau[2::2][:-2])
    assert np.array_equal(log.q[0], log.q[1]) and np.array_equal(log.q[0], log.q[2])
    # The target is sent, not measured: it is on time, and on the zero of the drive.
    assert np.array_equal(log.q_des, raw.q_des[2::2] + offset)


def test_imu_delay_shifts_the_imu_only(go1: Robot, raw: SimpleNamespace) -> None:
    exact, late = sense(raw, go1, EXACT, rng()), sense(raw, go1, SensorConfig(imu=ImuNoise(delay=1)), rng())
    assert np.array_equal(late.gyro[1:], exact.gyro[:-1]) and np.array_equal(late.accel[1:], exact.accel[:-1])
    assert np.array_equal(late.q, exact.q)


def test_drive_velocity_is_a_filtered_difference(go1: Robot, raw: SimpleNamespace) -> None:
    """A first-order low-pass at f turns A sin(wt) into one smaller by 1/sqrt(1+(w/2 pi f)^2), and late."""
    log = sense(raw, go1, SensorConfig(joints=JointConfig(velocity_cutoff=10.0, velocity_resolution=0.01)), rng())
    true = raw.dq[2::2]
    for j in range(12):
        speed = np.abs(true[200:, j]).max() / 0.3
        gain = 1.0 / math.hypot(1.0, speed / (2.0 * math.pi * 10.0))
        assert np.abs(log.dq[200:, j]).max() == pytest.approx(gain * np.abs(true[200:, j]).max(), rel=0.03, abs=0.01)
    assert np.allclose(log.dq * 100.0, np.round(log.dq * 100.0), atol=1e-9)


def test_torque_reading_has_a_gain_and_a_step(go1: Robot, raw: SimpleNamespace) -> None:
    log = sense(raw, go1, SensorConfig(joints=JointConfig(torque_gain=0.1)), rng())
    gain = log.tau / raw.tau[2::2]
    assert np.allclose(gain, gain[0]) and 0.02 < gain[0].std() < 0.2
    coarse = sense(raw, go1, SensorConfig(joints=JointConfig(torque_resolution=0.5)), rng())
    assert np.abs(coarse.tau - raw.tau[2::2]).max() <= 0.25 + 1e-12


def test_same_generator_same_bytes_and_no_foot_sensor(go1: Robot, raw: SimpleNamespace) -> None:
    assert sense(raw, go1, BAD, rng(5)) == sense(raw, go1, BAD, rng(5))
    assert sense(raw, go1, BAD, rng(5)) != sense(raw, go1, BAD, rng(6))
    assert sense(raw, go1, BAD, rng(5)).foot_force is None


def test_bad_configs_are_one_sentence(go1: Robot, raw: SimpleNamespace) -> None:
    with pytest.raises(GaitError, match="2 numbers but go1 has 12 joints"):
        sense(raw, go1, SensorConfig(joints=JointConfig(offset=(0.1, 0.2))), rng())
    with pytest.raises(GaitError, match="delay must be zero or more"):
        sense(raw, go1, SensorConfig(joints=JointConfig(delay=-1)), rng())
    with pytest.raises(GaitError, match="too short"):
        sense(SimpleNamespace(**{key: value[:3] for key, value in vars(raw).items()}), go1, EXACT, rng())


class Walk:
    """Twenty seconds of trot in MuJoCo, with what MuJoCo itself says about feet and velocity now and then."""

    def __init__(self) -> None:
        commands = (Command(vx=0.6, vy=0.1, yaw_rate=0.3), Command(start=8.0, vx=-0.4), Command(start=14.0, vx=0.8))
        self.config = EpisodeConfig(terrain="rubber", seconds=20.0, commands=commands)
        simulation = Simulation(self.config, seed=1)
        model, data = simulation.model, simulation.data
        base = model.body(simulation.robot.base_link).id
        feet = [model.geom(f"{leg}_foot").id for leg in simulation.robot.leg_names]
        self.seen: list[tuple[int, np.ndarray, np.ndarray]] = []
        count, twist = 0, np.empty(6)
        while not simulation.done:
            simulation.step()
            count += 1
            if count % 50 == 0 and simulation.time > 0.1:
                # A scratch copy of the state: looking must not disturb the simulation.
                copy = mujoco.MjData(model)
                copy.qpos[:], copy.qvel[:] = data.qpos, data.qvel
                mujoco.mj_forward(model, copy)
                mujoco.mj_objectVelocity(model, copy, mujoco.mjtObj.mjOBJ_XBODY, base, twist, 1)
                row = round(simulation.time * 1000)
                self.seen.append((row, copy.geom_xpos[feet].copy(), twist[3:].copy()))
        self.raw = simulation.episode()
        self.robot = simulation.robot
        self.log = sense(self.raw, self.robot, EXACT, rng())


@pytest.fixture(scope="module")
def walk() -> Walk:
    walk = Walk()
    assert walk.raw.fell_at is None and len(walk.seen) > 90
    return walk


def test_strapdown_of_a_simulated_walk_returns_the_true_pose(walk: Walk) -> None:
    R, v, p = strapdown(walk.raw, walk.log, walk.robot)
    assert np.allclose(R, lie.rotation_from_quat(walk.raw.quat_wb_wxyz[-1]), atol=1e-7)
    assert np.allclose(v, walk.log.vel_w[-1], atol=1e-7)
    assert np.linalg.norm(p - walk.log.pos_w[-1]) < 0.02


def test_forward_kinematics_of_exact_joints_meets_the_feet_of_mujoco(walk: Walk) -> None:
    for row, feet_w, _ in walk.seen:
        if row % 2 == 0:
            k = row // 2 - 1
            R = lie.rotation_from_quat(np.array(walk.log.quat_wb_wxyz[k]))
            feet = walk.log.pos_w[k] + walk.robot.feet(walk.raw.q[row]) @ R.T
            assert np.abs(feet - feet_w).max() < 1e-6
        assert np.abs(walk.raw.foot_pos_w[row] - feet_w).max() < 1e-6


def test_body_velocity_is_that_of_mujoco_in_the_base_frame(walk: Walk) -> None:
    for row, _, velocity_b in walk.seen:
        if row % 2 == 0:
            assert np.abs(walk.log.vel_b[row // 2 - 1] - velocity_b).max() < 1e-9


def test_mean_vertical_force_is_the_weight(walk: Walk) -> None:
    mean = walk.raw.foot_force_w[:, :, 2].sum(axis=1).mean()
    assert mean == pytest.approx(walk.robot.mass * GRAVITY, rel=0.02)
    assert walk.log.foot_force.sum(axis=1).mean() == pytest.approx(mean, rel=0.01)


def test_accelerometer_averages_to_gravity(walk: Walk) -> None:
    """Over many strides the mean force in the world is the weight: nothing is lost between impacts."""
    force_w = quaternions.rotate(walk.log.quat_wb_wxyz, walk.log.accel).mean(axis=0)
    assert np.allclose(force_w, [0.0, 0.0, GRAVITY], atol=0.1)


def test_twin_is_another_robot_and_says_where_each_figure_comes_from() -> None:
    config = EpisodeConfig(seconds=1.0)
    body, sensors = body_of("twin", config), sensors_of("twin")
    scale = np.array(body.link_scale)
    assert scale.shape == (4, 3) and 0.005 < np.abs(scale - 1.0).max() <= 0.01
    offset = np.array(sensors.joints.offset)
    assert np.sqrt(np.mean(offset**2)) == pytest.approx(0.01, rel=0.05) and np.abs(offset).max() <= 0.02
    assert {sensors.imu.delay, sensors.joints.delay} == {1, 2}
    assert body.joint_friction > 1.0 and body.motor_time_constant > 0.0 and body.payload_mass > 0.0
    assert body.contact_stiffness != 1.0 and np.linalg.norm(sensors.imu.mounting) > 0.005
    assert all(item.figures and item.source for twin in TWINS.values() for item in twin)
    assert body_of("training", config) == config and sensors_of("training").joints == JointConfig()
    assert sensors_of("exact") == EXACT
    with pytest.raises(GaitError, match="unknown sensors 'other': choose one of exact, training, twin"):
        sensors_of("other")


@pytest.mark.parametrize("twin", TWINS)
def test_each_imperfection_alone_changes_something_and_all_together_are_the_twin(twin: str) -> None:
    config, whole = EpisodeConfig(), (body_of(twin, EpisodeConfig()), sensors_of(twin))
    for item in TWINS[twin]:
        alone = (body_of(twin, config, [item.name]), sensors_of(twin, [item.name]))
        assert alone != (config, sensors_of(twin, [])) and alone != whole
    names = [item.name for item in TWINS[twin]]
    assert (body_of(twin, config, names), sensors_of(twin, names)) == whole
    with pytest.raises(GaitError, match="no imperfection 'rust'"):
        sensors_of(twin, ["rust"])


@pytest.mark.parametrize("twin", TWINS)
def test_the_documentation_lists_every_imperfection_as_it_is(twin: str) -> None:
    text = (Path(__file__).parents[2] / "docs/simulator.md").read_text(encoding="utf-8")
    for item in TWINS[twin]:
        assert f"| {item.name} | {item.figures} | {item.source} |" in text
        wanted = 1 if "<!-- imperfections of twin2:begin -->\n<!--" in text and twin == "twin2" else 2
        assert text.count(f"| {item.name} |") == wanted, "its figures, and what it does alone"
