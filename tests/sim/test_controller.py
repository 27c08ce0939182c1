"""The walking controller's parts: gait clock, leg dynamics, force planner, joint targets."""

import needs
import numpy as np
import pytest

from gait import GaitError, Robot

mujoco = pytest.importorskip("mujoco", reason=needs.extra("mujoco"))
pytest.importorskip("daqp", reason=needs.extra("daqp"))

from gait.sim.episode import run_episode  # noqa: E402
from gait.sim.gaits import GAITS, GaitClock, find_gait  # noqa: E402
from gait.sim.kernels import Legs, leg_torque  # noqa: E402
from gait.sim.mpc.controller import Controller, rigid_body  # noqa: E402
from gait.sim.mpc.footwork import step_phases, swing_point, turned  # noqa: E402
from gait.sim.mpc.planner import GRAVITY, HORIZON, Cost, ForcePlanner, assemble  # noqa: E402
from gait.sim.mpc.walk_state import Pattern, Preview, Swing, WalkState  # noqa: E402
from gait.sim.proportions import Proportions  # noqa: E402
from gait.sim.settings import (  # noqa: E402
    VARIED,
    Command,
    CommandRanges,
    EpisodeConfig,
    check_schedule,
    random_pushes,
    random_schedule,
)
from gait.sim.world import build_model, stand_state  # noqa: E402

HIPS = np.array([[0.19, -0.127, -0.28], [0.19, 0.127, -0.28], [-0.19, -0.127, -0.28], [-0.19, 0.127, -0.28]])


@pytest.fixture(scope="module")
def go1() -> Robot:
    return Robot.load("go1")


def test_leg_torque_equals_mujoco(go1: Robot) -> None:
    """The dynamics that controller and contact estimator share, on the robot that is simulated."""
    model = build_model(go1, EpisodeConfig())
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        data.qpos[:] = stand_state(go1)
        data.qpos[7:], data.qvel[6:] = rng.uniform(go1.q_lower, go1.q_upper), 10.0 * rng.normal(size=12)
        mujoco.mj_forward(model, data)
        full = np.empty((18, 18))
        mujoco.mj_fullM(model, data, full)
        for leg in range(4):
            joints = slice(6 + 3 * leg, 9 + 3 * leg)
            q, dq = data.qpos[7:].reshape(4, 3)[leg].copy(), data.qvel[6:].reshape(4, 3)[leg].copy()
            ddq = 50.0 * rng.normal(size=3)
            tau = leg_torque(Legs.of(go1), leg, q, dq, ddq, model.opt.gravity.copy())
            np.testing.assert_allclose(tau, full[joints, joints] @ ddq + data.qfrc_bias[joints], atol=1e-9)


def test_rigid_body_equals_mujoco(go1: Robot) -> None:
    model = build_model(go1, EpisodeConfig())
    data = mujoco.MjData(model)
    data.qpos[:] = stand_state(go1)
    data.qpos[:3] = 0.0
    mujoco.mj_forward(model, data)
    body = rigid_body(go1, go1.q_stand)
    com, inertia = body.com, body.inertia
    np.testing.assert_allclose(com, data.subtree_com[1], atol=1e-9)
    # Spinning the frozen robot about its centre of mass: kinetic energy tells its inertia.
    full = np.empty((18, 18))
    mujoco.mj_fullM(model, data, full)
    about_base = inertia + go1.mass * (com @ com * np.eye(3) - np.outer(com, com))
    np.testing.assert_allclose(full[3:6, 3:6], about_base, atol=1e-9)


def random_problem(rng: np.random.Generator):
    share = rng.choice([0.0, 0.4, 1.0], size=(HORIZON, 4))
    arms = HIPS + 0.05 * rng.normal(size=(HORIZON, 4, 3))
    return share, arms, rng.normal(size=12), rng.normal(size=(HORIZON, 12))


def test_assembled_cost_is_that_of_the_rolled_out_body() -> None:
    rng = np.random.default_rng(1)
    dt, mass, inertia_inv = 0.04, 13.0, np.linalg.inv(np.diag([0.1, 0.25, 0.28]))
    weights, force_weight = rng.uniform(0.1, 2.0, 12), 1e-3
    share, arms, state, reference = random_problem(rng)
    count = int((share > 0).sum())
    H, g = np.empty((3 * count, 3 * count)), np.empty(3 * count)
    index = np.ascontiguousarray(np.argwhere(share > 0))
    view = Preview(share=share, arms=arms, state=state, reference=reference)
    assemble(dt, Cost(mass, inertia_inv, weights, force_weight), view, index, H, g)

    def cost(forces: np.ndarray) -> float:
        angle, pos, rate, vel = (state[i : i + 3].copy() for i in (0, 3, 6, 9))
        total = 0.5 * force_weight * forces @ forces
        per = forces.reshape(count, 3)
        for k in range(HORIZON):
            alpha, acc = np.zeros(3), np.array([0.0, 0.0, -GRAVITY])
            for c in range(count):
                if index[c, 0] == k:
                    leg = index[c, 1]
                    alpha += share[k, leg] * inertia_inv @ np.cross(arms[k, leg], per[c])
                    acc += share[k, leg] * per[c] / mass
            angle, pos = angle + dt * rate + 0.5 * dt**2 * alpha, pos + dt * vel + 0.5 * dt**2 * acc
            rate, vel = rate + dt * alpha, vel + dt * acc
            error = np.concatenate([angle, pos, rate, vel]) - reference[k]
            total += 0.5 * error @ (weights * error)
        return total

    np.testing.assert_allclose(H, H.T)
    base = cost(np.zeros(3 * count))
    for _ in range(5):
        f = 20.0 * rng.normal(size=3 * count)
        assert cost(f) - base == pytest.approx(0.5 * f @ H @ f + g @ f, rel=1e-9)


@pytest.mark.parametrize("mu", [0.1, 0.5])
def test_planned_forces_carry_the_robot_inside_the_friction_pyramid(mu: float) -> None:
    planner = ForcePlanner(Cost.of(13.0, np.diag([0.1, 0.25, 0.28]), Proportions()), 180.0)
    rng = np.random.default_rng(2)
    forces, acceleration = np.zeros((4, 3)), np.zeros(3)
    for trial in range(30):
        share = np.zeros((HORIZON, 4))
        share[:, [0, 3] if trial % 2 else [0, 1, 2, 3]] = 1.0
        state = np.concatenate([0.1 * rng.normal(size=3), [0, 0, 0.28], rng.normal(size=3), rng.normal(size=3)])
        reference = np.tile(np.concatenate([np.zeros(5), [0.28], np.zeros(6)]), (HORIZON, 1))
        arms = np.ascontiguousarray(np.broadcast_to(HIPS, (HORIZON, 4, 3)))
        assert planner.plan(0.04, mu, 0.0, Preview(share, arms, state, reference), forces, acceleration)
        assert (forces[share[0] == 0.0] == 0.0).all()
        assert (np.abs(forces[:, :2]) <= mu * forces[:, 2:] + 1e-5).all()
        assert (forces[:, 2] <= 180.0 + 1e-5).all()
        np.testing.assert_allclose(acceleration, forces.sum(axis=0) / 13.0 - [0, 0, GRAVITY], atol=1e-9)
    # At rest where it should be, it just carries its weight; turned by 90 degrees, the same in the world frame.
    still = reference[0].copy()
    view = Preview(np.ones((HORIZON, 4)), arms, still, reference)
    for yaw in (0.0, np.pi / 2):
        planner.plan(0.04, mu, yaw, view, forces, acceleration)
        np.testing.assert_allclose(forces.sum(axis=0), [0, 0, 13.0 * GRAVITY], atol=2.0)


def test_joint_targets_carry_the_stance_torque(go1: Robot) -> None:
    kp, kd = 40.0, 1.0
    height = -float(go1.feet(go1.q_stand)[:, 2].mean())
    controller = Controller(go1, "stand", kp, kd, 0.004)
    controller.height = height
    q, still = go1.q_stand, np.zeros(12)
    for _ in range(3):
        q_des = controller.step(q, still, np.array([1.0, 0, 0, 0]), np.zeros(3), np.zeros(3)).ravel()
    torque = kp * (q_des - q)
    ground = -np.einsum("lij,li->lj", go1.jacobian(q), controller.state.forces).ravel()
    assert controller.state.forces[:, 2].sum() == pytest.approx(go1.mass * GRAVITY, rel=0.02)
    assert np.abs(torque).max() > 2.0
    # What is left is the weight of the legs themselves.
    assert np.abs(torque - ground).max() < 1.0


def test_swing_starts_and_ends_at_rest() -> None:
    start, target = np.array([0.0, 0.1, 0.0]), np.array([0.2, 0.1, 0.02])
    path = np.array([swing_point(s, start, target, Swing(lift=0.07), np.ones(3)) for s in np.linspace(0.0, 1.0, 101)])
    np.testing.assert_allclose(path[[0, -1]], [start, target], atol=1e-12)
    assert np.abs(path[1] - path[0]).max() < 2e-4 and np.abs(path[-1] - path[-2]).max() < 2e-4
    assert 0.07 < path[:, 2].max() < 0.09


def test_swing_in_the_frame_of_the_body_ends_with_its_velocity() -> None:
    """Carried along with the body a foot lands and lifts off at its velocity, and an abrupt one has vertical speed."""
    start, target, way = np.zeros(3), np.array([0.2, 0.1, 0.0]), np.array([0.1, -0.04, 0.0])
    path = np.array([swing_point(s, start, target, Swing(1.0, 0.5, 0.07), way) for s in np.linspace(0.0, 1.0, 1001)])
    np.testing.assert_allclose(path[[0, -1]], [start, target], atol=1e-12)
    ends = 1000.0 * (path[[1, -1]] - path[[0, -2]])
    np.testing.assert_allclose(ends[:, :2], [way[:2]] * 2, atol=1e-3)
    np.testing.assert_allclose(ends[:, 2], [4.0 * 0.5 * 0.07, -4.0 * 0.5 * 0.07], rtol=0.01)


def test_turned_is_the_exponential() -> None:
    out = turned(np.eye(3), np.array([0.3, -0.2, 0.9]), 0.5)
    K = 0.5 * np.array([[0, -0.9, -0.2], [0.9, 0, -0.3], [0.2, 0.3, 0]])
    series, term = np.eye(3), np.eye(3)
    for n in range(1, 15):
        term = term @ K / n
        series = series + term
    np.testing.assert_allclose(out, series, atol=1e-12)


def test_legs_lift_and_land_by_their_phase_and_late_ones_stay_down() -> None:
    def legs(phase: float, duty: float, standing: int, lifted: float) -> int:
        state = WalkState.of(1)
        state.stance[0], state.lifted[0] = standing, lifted
        step_phases(Pattern(np.array([phase]), duty, 0.4), state)
        return int(state.stance[0])

    assert legs(0.4, 0.5, 1, 0.0) == 1
    assert legs(0.52, 0.5, 1, 0.0) == 0
    assert legs(0.9, 0.5, 1, 0.0) == 1  # most of the swing has passed: wait for the next cycle
    assert legs(0.9, 0.5, 0, 0.5) == 0
    assert legs(0.01, 0.5, 0, 0.5) == 1


@pytest.mark.parametrize(
    ("first", "second"), [("trot", "bound"), ("bound", "pace"), ("pronk", "trot"), ("walk", "stand")]
)
def test_gait_transitions_are_continuous_and_arrive(first: str, second: str) -> None:
    clock = GaitClock(GAITS[first])
    for _ in range(37):
        clock.advance(0.01)
    clock.switch(GAITS[second])
    before = clock.phases.copy()
    for _ in range(200):
        clock.advance(0.01)
        step = (clock.phases - before + 0.5) % 1.0 - 0.5
        assert (step >= -1e-9).all() and (step < 0.1).all()
        before = clock.phases.copy()
    assert clock.duty == pytest.approx(GAITS[second].duty)
    assert clock.period == pytest.approx(GAITS[second].period)
    if second != "stand":
        np.testing.assert_allclose((clock.offsets - GAITS[second].offsets + 0.5) % 1.0, 0.5, atol=1e-9)


def test_random_commands_and_pushes_follow_their_ranges() -> None:
    rng = np.random.default_rng(0)
    schedule = random_schedule(rng, 60.0, "trot")
    check_schedule(schedule)
    assert schedule[0].start == 0.0 and schedule[-1].start < 60.0
    assert all(-0.6 <= command.vx <= 1.0 for command in schedule)
    pushes = random_pushes(rng, 600.0, 6.0, (1.0, 5.0))
    assert 60 < len(pushes) < 140
    assert all(0.99 <= np.linalg.norm(push.force_w) * push.duration <= 5.01 for push in pushes)
    assert random_pushes(rng, 60.0, 0.0, (1.0, 5.0)) == ()


def test_bad_schedules_and_gaits_say_what_to_fix() -> None:
    with pytest.raises(GaitError, match="must begin with an entry whose start is 0"):
        check_schedule([Command(start=1.0)])
    with pytest.raises(GaitError, match="strictly increasing"):
        check_schedule([Command(), Command(start=2.0), Command(start=1.0)])
    with pytest.raises(GaitError, match="unknown gait 'hop': choose one of stand, walk, trot, bound, pace, pronk"):
        find_gait("hop")


def test_postures_are_drawn_once_and_other_draws_stay() -> None:
    """A varied walk keeps its posture; schedules without postures are what they were before there were any."""
    plain = CommandRanges(height=(-0.01, 0.01))
    free = random_schedule(np.random.default_rng(5), 20.0, "trot", plain)
    assert {(command.shift, command.spread) for command in free} == {(0.0, 0.0)}
    walks = [random_schedule(np.random.default_rng(k), 20.0, "trot", VARIED) for k in range(40)]
    assert all(len({(command.shift, command.spread) for command in walk}) == 1 for walk in walks)
    assert max(np.ptp([command.height for command in walk]) for walk in walks) < 0.031
    heights = [walk[0].height for walk in walks]
    assert min(heights) < -0.05 and max(heights) > 0.06


def test_feet_land_where_the_posture_has_them() -> None:
    """Further apart, further ahead, and on longer legs."""
    wanted = {"height": 0.06, "shift": 0.03, "spread": 0.04}
    usual = walk(Command(), seconds=2.0)
    other = walk(Command(**wanted), seconds=2.0)
    moved = other - usual
    outward = np.sign(usual[:, 1])
    assert moved[:, 0].mean() == pytest.approx(wanted["shift"], abs=0.012)
    assert (outward * moved[:, 1]).mean() == pytest.approx(wanted["spread"], abs=0.012)
    assert moved[:, 2].mean() == pytest.approx(-wanted["height"], abs=0.015)


def walk(command: Command, seconds: float) -> np.ndarray:
    """Mean places of the standing feet in the base frame (L, 3) of a Go1 that steps on the spot."""
    raw, robot = run_episode(EpisodeConfig(seconds=seconds, commands=(command,)), 0), Robot.load("go1")
    late = raw.t > 1.0
    feet, stands = robot.feet(raw.q[late]), raw.contact[late]
    return np.stack([feet[stands[:, leg], leg].mean(axis=0) for leg in range(4)])
