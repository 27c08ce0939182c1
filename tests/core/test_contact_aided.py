"""The contact-aided filter on a walk whose every number is known: rolling feet, contacts from torque, slips."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from core_calls import at, inner, numbers
from synthetic import free_torque, walking_log

import gait
from gait import Estimator, GaitError, Log, Robot, lie
from gait.binding import pointer
from gait.core_config import core_robot
from gait.engine import Engine
from gait.health import Health
from gait.parameters import ContactAided, ContactDetection, SlipRejection


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load("go1")


@pytest.fixture(scope="module")
def walk() -> Log:
    return walking_log(5.0)


def contact_aided(robot: Robot, params: ContactAided | None = None, contact_from: str | None = None) -> Estimator:
    return Estimator(robot, Engine(robot, contacts=params or ContactAided(), contact_from=contact_from), "iekf")


def velocity_rmse(estimator: Estimator, log: Log) -> float:
    return float(np.sqrt(np.mean(np.sum((estimator.run(log).vel_b - log.vel_b) ** 2, axis=1))))


def test_contacts_from_torque_are_the_true_ones(robot: Robot, walk: Log) -> None:
    guess = contact_aided(robot).run_with_details(walk)[1].contact
    agreement = (guess == walk.contact).mean()
    assert agreement > 0.95  # the rest is the dwell of 10 ms after each touch-down


def test_modelling_the_rolling_foot_matters(robot: Robot, walk: Log) -> None:
    rolling = velocity_rmse(contact_aided(robot, contact_from="contact"), walk)
    fixed = velocity_rmse(contact_aided(robot, ContactAided(rolling=False), contact_from="contact"), walk)
    assert rolling < 1e-3
    assert fixed > 0.02


def test_steps_and_run_give_the_same_bits(robot: Robot, walk: Log) -> None:
    log = walk.slice(0.0, 2.0)
    estimator = contact_aided(robot)
    trajectory, details = estimator.run_with_details(log)
    estimator.start_as(log)
    assert details.contact is not None and details.contact.any()
    for k, row in enumerate(log.rows()):
        state = estimator.update(row)
        np.testing.assert_array_equal(state.vel_w, trajectory.vel_w[k])
        np.testing.assert_array_equal(state.pos_w, trajectory.pos_w[k])
        np.testing.assert_array_equal(state.quat_wb_wxyz, trajectory.quat_wb_wxyz[k])


def test_force_and_flags_work_where_torque_is_missing(robot: Robot, walk: Log) -> None:
    force = walk.contact * robot.mass * 9.81 / 2
    bare = walk.replace(tau=None, contact=None, foot_force=force)
    assert velocity_rmse(contact_aided(robot), bare) < 0.01
    assert velocity_rmse(Estimator.load("go1", "iekf"), walk.replace(tau=None)) < 0.01
    # Asked for by name, a source is not swapped for another without a word.
    assert velocity_rmse(contact_aided(robot, contact_from="contact"), walk) < 0.01
    with pytest.raises(GaitError, match="there is no tau"):
        contact_aided(robot, contact_from="tau").run(bare)
    with pytest.raises(GaitError, match="none of tau, foot_force, contact is there"):
        contact_aided(robot).run(walk.replace(tau=None, contact=None))
    with pytest.raises(GaitError, match="choose one of tau"):
        contact_aided(robot, contact_from="camera")


def test_a_gap_is_flagged_and_bridged(robot: Robot, walk: Log) -> None:
    """Half a second is missing: the velocity is held, the filter is less sure, says so, and finds back."""
    cut = (walk.t < 2.0) | (walk.t >= 2.5)
    log = Log(**{name: array[cut] for name, array in walk.arrays().items()}, robot=robot)
    trajectory = contact_aided(robot).run(log)
    gap = int(np.flatnonzero(np.diff(log.t) > 0.1)[0]) + 1
    assert list(np.flatnonzero(trajectory.health & Health.TIME_GAP)) == [gap]
    assert np.trace(trajectory.vel_cov[gap]) > 1.0 > np.trace(trajectory.vel_cov[gap - 1])
    error = np.linalg.norm(trajectory.vel_b - log.vel_b, axis=1)
    assert error[gap] < 0.3  # what the walk itself varies by
    assert error[gap + 25 :].max() < 0.05
    assert not (trajectory.health & (Health.DIVERGED | Health.BAD_SAMPLE)).any()
    assert trajectory.health[1] & Health.STARTING and not (trajectory.health[50:] & Health.STARTING).any()


def with_slips(walk: Log, leg: int = 0) -> Log:
    """For 60 ms in every stance of one leg its foot slides: its encoders report 1 m/s more than the ground would."""
    robot = Robot.load("go1")
    q, dq = walk.q.copy(), walk.dq.copy()
    shift = np.zeros(3)
    dt = 1 / walk.rate
    for k in range(len(walk)):
        i = slice(3 * leg, 3 * leg + 3)
        inside = walk.contact[k, leg] and (walk.t[k] * 2.5) % 1.0 > 0.2 and (walk.t[k] * 2.5) % 1.0 < 0.35
        jac = robot.jacobian(q[k])[leg]
        slide = np.array([1.0, 0.0, 0.0]) if inside else np.zeros(3)
        rate = np.linalg.solve(jac, slide)
        shift = shift + rate * dt if walk.contact[k, leg] else np.zeros(3)
        q[k, i] += shift
        dq[k, i] += rate
    return walk.replace(q=q, dq=dq)


def test_slip_rejection_helps_where_a_foot_slides(robot: Robot, walk: Log) -> None:
    slipping = with_slips(walk)
    careful = ContactAided(slip=SlipRejection(enabled=True))
    rejecting = contact_aided(robot, careful)
    assert velocity_rmse(rejecting, slipping) < 0.7 * velocity_rmse(contact_aided(robot), slipping)
    health = rejecting.run(slipping).health
    assert (health & Health.SLIP).any()
    # Guessed contacts end a few samples late, and a foot that has left does move; true ones never slip here.
    exact = contact_aided(robot, careful, contact_from="contact")
    assert not (exact.run(walk).health & Health.SLIP).any()
    assert (rejecting.run(walk).health & Health.SLIP > 0).mean() < 0.05


def test_slip_rejection_does_not_take_vibrating_legs_for_slips(robot: Robot) -> None:
    """The motors' side of the legs vibrates at 43 Hz by 2 mrad, as on a real Go2: feet seem to move at 0.2 m/s."""
    walk, rng = walking_log(10.0), np.random.default_rng(6)
    turns = 2.0 * np.pi * 43.0 * walk.t[:, None] + rng.uniform(0.0, 6.28, 12)
    shaken = walk.replace(q=walk.q + 0.002 * np.sin(turns), dq=walk.dq + 0.002 * 2.0 * np.pi * 43.0 * np.cos(turns))
    rejecting = contact_aided(robot, ContactAided(slip=SlipRejection(enabled=True)))
    assert velocity_rmse(rejecting, shaken) < 1.1 * velocity_rmse(contact_aided(robot), shaken)
    slips = rejecting.run(shaken).health & Health.SLIP > 0
    assert slips[:500].mean() > 0.9 and slips[3000:].mean() < 0.5


def test_start_without_truth(robot: Robot) -> None:
    """A robot that stands: level it by gravity, and it stays where it is."""
    count, pitch = 2000, 0.1
    R = lie.so3_exp(np.array([0.0, pitch, 0.0]))
    force = R.T @ np.array([0.0, 0.0, 9.81])
    q = np.tile(robot.q_stand, (count, 1))
    tau = np.empty(12)
    jac = robot.jacobian(robot.q_stand)
    for i in range(4):
        holds = free_torque(robot, i, q[0, :3], np.zeros(3), np.zeros(3), force / 9.81)
        tau[3 * i : 3 * i + 3] = holds - jac[i].T @ (force * robot.mass / 4)
    log = Log(
        t=np.arange(count) / 500, gyro=np.zeros((count, 3)), accel=np.tile(force, (count, 1)), q=q, dq=q * 0,
        tau=np.tile(tau, (count, 1)),
    )  # fmt: skip
    trajectory = contact_aided(robot).run(log, start="gravity")
    assert np.abs(trajectory.vel_w).max() < 1e-3
    assert np.abs(trajectory.pos_w).max() < 1e-3
    np.testing.assert_allclose(lie.rotation_from_quat(trajectory.quat_wb_wxyz[-1].copy()), R, atol=1e-6)
    assert not (trajectory.health[20:] & Health.NO_MEASUREMENT).any()
    with pytest.raises(GaitError, match="no ground truth to start from"):
        contact_aided(robot).run(log, start="truth")
    with pytest.raises(GaitError, match="choose auto, truth or gravity"):
        contact_aided(robot).run(log, start="guess")


def test_an_imu_mounted_elsewhere_gives_the_same_base(robot: Robot, walk: Log, tmp_path: Path) -> None:
    """Turn and move the IMU: the same motion seen from there must come out as the same base velocity."""
    tree = yaml.safe_load((Path(gait.__file__).parent / "robot/go1.yaml").read_text())
    turn = lie.so3_exp(np.array([0.3, -0.5, 1.2]))
    tree["imu"]["quat_wxyz"] = [float(c) for c in lie.quat_from_rotation(turn)]
    path = tmp_path / "turned.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False))
    turned = Robot.load(path)
    log = walk.replace(gyro=walk.gyro @ turn, accel=walk.accel @ turn)
    straight = contact_aided(robot).run(walk)
    # The prior on roll, pitch and yaw is not the same in other axes, so agreement is to the size of that, not to bits.
    np.testing.assert_allclose(contact_aided(turned).run(log).vel_w, straight.vel_w, atol=2e-3)


def test_broken_samples_do_not_spread(robot: Robot, walk: Log) -> None:
    """Streaming with NaN in one leg, then in the IMU: the output stays finite and recovers."""
    estimator = contact_aided(robot)
    estimator.start_as(walk)
    for k, row in zip(range(2000), walk.rows(), strict=False):
        gyro, q = row.gyro.copy(), row.q.copy()
        if 500 < k < 520:
            q[4] = np.nan
        if 900 < k < 905:
            gyro[1] = np.inf
        state = estimator.update(row._replace(gyro=gyro, q=q))
        assert np.isfinite(state.vel_w).all()
        assert np.isfinite(state.pos_w).all()
        assert np.isfinite(state.quat_wb_wxyz).all()
        assert bool(state.health.flags & Health.BAD_IMU) == (900 < k < 905)
        assert bool(state.health.flags & Health.STALE_LEG) == (500 < k < 520)
        assert bool(state.health.flags & Health.BAD_SAMPLE) == (500 < k < 520 or 900 < k < 905)
    assert np.linalg.norm(state.vel_w - walk.vel_w[1999]) < 0.05
    with pytest.raises(GaitError, match="q must be 12 numbers"):
        estimator.update(row._replace(t=9.0, q=row.q[:3]))
    estimator.reset()
    # Without anything that tells contacts it waits, and says so.
    state = estimator.update(row._replace(tau=None, contact=None))
    assert np.isfinite(state.cov).all() and not state.health.ok


def test_ground_force_inverts_the_leg(robot: Robot) -> None:
    rng, described = np.random.default_rng(0), core_robot(robot)

    def core_ground_force(q: np.ndarray, tau: np.ndarray, tau_free: np.ndarray, out: np.ndarray) -> bool:
        arrays = [numbers(array) for array in (q, tau, tau_free)]
        return bool(inner().gait_leg_force(at(described), 0, *map(pointer, arrays), pointer(out)))

    for _ in range(50):
        q = robot.q_stand + rng.normal(size=12) * 0.2
        want, holds, got = rng.normal(size=3) * 50, rng.normal(size=3), np.empty(3)
        assert core_ground_force(q[:3], holds - robot.jacobian(q)[0].T @ want, holds, got)
        np.testing.assert_allclose(got, want, atol=1e-9)
    # Of a leg that is stretched, torques do not tell the force along it.
    assert not core_ground_force(np.zeros(3), np.ones(3), np.zeros(3), got)
    assert not got.any()


def test_hysteresis_and_dwell(robot: Robot) -> None:
    """A leg whose foot force is given; the three others stand."""
    detection = ContactDetection(touch_down=0.2, lift_off=0.1, touch_down_dwell=0.01, lift_off_dwell=0.004)
    estimator = contact_aided(robot, ContactAided(detection=detection), "foot_force")
    q, zero, t = robot.q_stand, np.zeros(3), 0.0

    def feed(share: float, samples: int) -> bool:
        nonlocal t
        for _ in range(samples):
            t += 0.002
            force = robot.mass * 9.81 * np.array([share, 0.3, 0.3, 0.3])
            state = estimator.update(t, zero, np.array([0.0, 0.0, 9.81]), q, q * 0.0, foot_force=force)
        assert state.contact is not None
        return bool(state.contact[0])

    assert not feed(0.0, 1)  # sets the clock
    assert not feed(0.3, 4)  # too short
    assert not feed(0.0, 1)
    assert not feed(0.3, 4)  # the wait began again
    assert feed(0.3, 1)
    assert feed(0.15, 50)  # between the thresholds nothing changes
    assert feed(0.05, 1)
    assert not feed(0.05, 1)
    assert not feed(0.15, 50)


def test_parameters_reach_the_filter(robot: Robot, walk: Log) -> None:
    log = walk.slice(0.0, 3.0)
    base = contact_aided(robot).run(log)
    for changed in (
        ContactAided(contact=0.5),
        ContactAided(kinematics=0.05),
        ContactAided(detection=replace(ContactAided().detection, touch_down=0.4)),
        ContactAided(imu=replace(ContactAided().imu, accel=0.5)),
        ContactAided(prior=replace(ContactAided().prior, velocity=1.0)),
        ContactAided(options=replace(ContactAided().options, exact_mean=False)),
        ContactAided(options=replace(ContactAided().options, exact_phi=False)),
    ):
        assert not np.array_equal(contact_aided(robot, changed).run(log).vel_w, base.vel_w)
