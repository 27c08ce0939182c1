"""It really walks: short episodes of every gait, what the record says about them, and that they can be repeated."""

from dataclasses import fields, replace
from pathlib import Path

import needs
import numpy as np
import pytest
import yaml

from gait import GaitError, Robot
from gait import robot as robots

mujoco = pytest.importorskip("mujoco", reason=needs.extra("mujoco"))
pytest.importorskip("daqp", reason=needs.extra("daqp"))

from gait.sim.episode import Fed, RawEpisode, run_episode  # noqa: E402
from gait.sim.gaits import GAIT_NAMES, GAITS  # noqa: E402
from gait.sim.settings import Command, EpisodeConfig, Push, randomise  # noqa: E402
from gait.sim.stepping import OMEGA, QUAT, VEL  # noqa: E402
from gait.sim.walkbench import WALKING_GAITS, figures, walk_config, walking_report  # noqa: E402
from gait.sim.world import CIRCLE_RADIUS, scaled_robot  # noqa: E402


def walk(gait: str = "trot", seconds: float = 3.0, seed: int = 0, **settings) -> RawEpisode:
    command = {key: settings.pop(key) for key in ("vx", "vy", "yaw_rate") if key in settings} or {"vx": 0.6}
    config = EpisodeConfig(gait=gait, seconds=seconds, commands=(Command(**command),))
    return run_episode(replace(config, **settings), seed)


@pytest.fixture(scope="module")
def trot() -> RawEpisode:
    return walk(control_rate=100, kp=35.0, kd=0.8, motor_strength=0.95)


@pytest.mark.parametrize("gait", WALKING_GAITS)
def test_gaits_walk_in_their_pattern_at_their_speed(gait: str) -> None:
    for seed in (0, 1):
        result = figures(run_episode(walk_config(gait, seed, 4.0), seed))
        assert not result.fell
        assert result.pair_agreement >= 0.9
        assert 0.85 <= result.speed_ratio <= 1.15
        assert result.peak_load < 7.0
        if gait == "pronk":
            assert result.flight_share > 0.3


@pytest.mark.parametrize(
    "command", [{"vx": -0.5}, {"vy": 0.4}, {"vy": -0.4}, {"vx": 0.3, "yaw_rate": 0.8}, {"vx": 0.5, "yaw_rate": -0.5}]
)
def test_trot_goes_backwards_sideways_and_round_bends(command: dict) -> None:
    episode = walk(**command)
    assert episode.fell_at is None
    assert figures(episode).speed_ratio == pytest.approx(1.0, abs=0.1)
    assert episode.omega_b[:, 2].mean() == pytest.approx(command.get("yaw_rate", 0.0), abs=0.05)


def go1_with_legs(folder: Path, **legs: str) -> Path:
    """The Go1 with its legs renamed, in this order: new name = name in the Go1."""
    tree = yaml.safe_load(Path(robots.__file__).with_name("go1.yaml").read_text())
    tree["legs"] = {name: tree["legs"][old] for name, old in legs.items()}
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False))
    return path


@pytest.mark.parametrize(("pattern", "together"), [("trot", ((0, 2), (1, 3))), ("bound", ((1, 2), (0, 3)))])
def test_a_gait_goes_by_the_places_of_the_legs_not_by_their_order(
    pattern: str, together: tuple[tuple[int, int], ...], tmp_path: Path
) -> None:
    robot = go1_with_legs(tmp_path, lh="RL", lf="FL", rf="FR", rh="RR")
    episode = walk(pattern, seconds=2.0, robot=str(robot))
    assert episode.fell_at is None
    for a, b in together:
        assert (episode.contact[:, a] == episode.contact[:, b]).mean() > 0.9
    assert (episode.contact[:, 0] == episode.contact[:, 1]).mean() < 0.3
    assert figures(episode).pair_agreement > 0.9


def test_a_robot_without_a_leg_at_each_corner_is_one_sentence(tmp_path: Path) -> None:
    for legs in ({"a": "FR", "b": "FL", "c": "RL"}, {"a": "FR", "b": "FL", "c": "RL", "d": "RL"}):
        robot = go1_with_legs(tmp_path, **legs)
        for name in ("trot", "stationary"):
            with pytest.raises(GaitError, match="needs four legs, one at each corner; go1 has a at .0.1881, -0.04675."):
                run_episode(EpisodeConfig(robot=str(robot), gait=name, seconds=0.5), 0)


def test_walk_moves_one_foot_at_a_time() -> None:
    episode = walk("walk", vx=0.4)
    assert episode.fell_at is None
    standing = episode.contact.sum(axis=1)
    assert (standing >= 2).mean() > 0.98 and (standing == 3).mean() > 0.3


@pytest.mark.parametrize(("kp", "kd", "rate"), [(20.0, 0.5, 50), (20.0, 0.5, 500), (100.0, 2.0, 50), (100.0, 1.0, 500)])
def test_weak_and_stiff_drives_walk_at_slow_and_fast_control(kp: float, kd: float, rate: int) -> None:
    result = figures(walk(kp=kp, kd=kd, control_rate=rate, seconds=2.5))
    assert not result.fell
    assert result.pair_agreement > 0.9 and result.speed_ratio == pytest.approx(1.0, abs=0.15)


def test_trot_changes_to_bound_while_walking() -> None:
    commands = (Command(vx=0.6), Command(start=1.5, vx=0.6, gait="bound"))
    episode = run_episode(EpisodeConfig(gait="trot", seconds=5.0, commands=commands), 0)
    assert episode.fell_at is None
    contact, before, after = episode.contact, episode.t < 1.5, episode.t > 3.2
    for pairs, part in ((GAITS["trot"].pairs, before), (GAITS["bound"].pairs, after)):
        for a, b in pairs:
            assert (contact[part, a] == contact[part, b]).mean() > 0.9
    assert set(episode.gait_id[before]) == {GAIT_NAMES.index("trot")}
    assert set(episode.gait_id[after]) == {GAIT_NAMES.index("bound")}
    assert episode.vel_w[:, 0].min() > 0.2


@pytest.mark.parametrize(
    ("first", "second"), [("pace", "stand"), ("stand", "pronk"), ("bound", "trot"), ("pronk", "pace")]
)
def test_other_transitions_are_survived(first: str, second: str) -> None:
    commands = (Command(vx=0.6), Command(start=0.8, vx=0.6, gait=second))
    episode = run_episode(EpisodeConfig(gait=first, seconds=4.0, control_rate=100, commands=commands), 0)
    assert episode.fell_at is None
    if second == "stand":
        assert episode.contact[episode.t > 3.0].all() and np.abs(episode.vel_w[-1]).max() < 0.05


def test_slippery_ground_makes_the_trot_slip_but_not_fall() -> None:
    results = [figures(run_episode(walk_config("trot", seed, 6.0, "slippery"), seed)) for seed in range(4)]
    assert not any(result.fell for result in results)
    assert np.mean([result.slip_share for result in results]) > 0.2
    # Few and short episodes scatter; the slow study holds the mean over many to 0.05.
    assert np.mean([result.slip_event_share for result in results]) > 0.03


def test_debris_moves_and_the_trot_crosses_it() -> None:
    episode = walk(terrain="debris", seconds=2.0, vx=0.4)
    assert episode.fell_at is None
    assert episode.pos_w[-1, 0] > 0.8
    # Feet stand on things: higher than the floor allows.
    standing = episode.contact & (np.linalg.norm(episode.foot_vel_w, axis=2) < 0.1)
    assert (episode.foot_pos_w[..., 2][standing] > 0.030).any()


@pytest.mark.parametrize("terrain", ["rough", "slope"])
def test_trot_crosses_uneven_ground(terrain: str) -> None:
    episode = walk(terrain=terrain, seconds=4.0, vx=0.5)
    assert episode.fell_at is None
    assert figures(episode).speed_ratio == pytest.approx(1.0, abs=0.1)
    if terrain == "slope":
        assert episode.pos_w[-1, 2] - episode.pos_w[0, 2] > 0.15


def test_circle_of_two_metres_crosses_rubber_and_plate() -> None:
    episode = walk(terrain="circular", seconds=13.0, vx=0.5, yaw_rate=0.5 / CIRCLE_RADIUS)
    assert episode.fell_at is None
    x = episode.pos_w[:, 0]
    assert x.max() > 0.7 and x.min() < -0.7
    assert np.ptp(episode.pos_w[:, 1]) == pytest.approx(2.0 * CIRCLE_RADIUS, abs=0.3)


def test_a_push_is_felt_and_survived() -> None:
    push = Push(1.0, 0.1, (0.0, 40.0, 0.0))
    calm, pushed = walk(seconds=2.5), walk(seconds=2.5, pushes=(push,))
    assert pushed.fell_at is None
    moment = calm.t <= 1.1
    np.testing.assert_array_equal(calm.pos_w[calm.t <= 1.0], pushed.pos_w[calm.t <= 1.0])
    assert pushed.vel_w[moment][-1, 1] - calm.vel_w[moment][-1, 1] > 0.15


def test_the_drive_follows_the_recorded_law_and_rate(trot: RawEpisode) -> None:
    robot = Robot.load("go1")
    want = 0.95 * np.clip(35.0 * (trot.q_des - trot.q) - 0.8 * trot.dq, -robot.torque_limit, robot.torque_limit)
    np.testing.assert_allclose(trot.tau, want, atol=1e-9)
    changes = np.flatnonzero(np.abs(np.diff(trot.q_des, axis=0)).max(axis=1) > 0.0) + 1
    assert (changes % 10 == 0).all() and len(changes) > 250
    # The target carries torque; it is no copy of the position.
    assert np.abs(trot.q_des - trot.q)[trot.contact.repeat(3, axis=1)].mean() > 0.05


def test_forces_carry_the_weight_and_stance_feet_hardly_sink(trot: RawEpisode) -> None:
    robot = Robot.load("go1")
    weight = robot.mass * 9.81
    assert trot.foot_force_w[..., 2].sum(axis=1).mean() == pytest.approx(weight, rel=0.02)
    assert trot.foot_pos_w[..., 2].min() > robot.foot_radius - 0.002
    assert trot.foot_force_w[..., 2].sum(axis=1).max() < 4.0 * weight
    assert (np.linalg.norm(trot.foot_force_w, axis=2)[~trot.contact] <= 1.0).all()
    # Well inside a stance the lowest point of a foot stands still, though its centre rolls on.
    speed = np.linalg.norm(trot.foot_vel_w, axis=2)
    assert np.median(speed[trot.contact]) < 0.02


def test_rows_are_consistent_in_time(trot: RawEpisode) -> None:
    assert len(trot.t) == 3001 and trot.t[0] == 0.0 and trot.t[-1] == pytest.approx(3.0)
    # Semi-implicit Euler: the position moves with the velocity after the step.
    np.testing.assert_allclose(np.diff(trot.pos_w, axis=0) / 1e-3, trot.vel_w[1:], atol=1e-6)
    np.testing.assert_allclose(np.diff(trot.q, axis=0) / 1e-3, trot.dq[1:], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(trot.quat_wb_wxyz, axis=1), 1.0, atol=1e-9)
    # A foot's centre moves as its recorded velocity says, apart from the rolling.
    centre = np.diff(trot.foot_pos_w, axis=0) / 1e-3
    np.testing.assert_allclose(centre[..., 2], trot.foot_vel_w[1:, :, 2], atol=0.05)


def test_same_seed_same_bytes() -> None:
    config = randomise(np.random.default_rng(5), EpisodeConfig(seconds=1.0, settle=0.5, terrain="rough"))
    first, second, other = run_episode(config, 1), run_episode(config, 1), run_episode(config, 2)
    for field in fields(RawEpisode):
        one, two = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, np.ndarray):
            assert one.tobytes() == two.tobytes(), field.name
    assert first.pos_w.tobytes() != other.pos_w.tobytes()


def test_true_feedback_in_the_loop_changes_nothing() -> None:
    class Truth:
        rows = 0

        def __call__(self, rows: np.ndarray) -> Fed:
            self.rows += len(rows)
            return Fed(rows[-1, VEL].copy(), rows[-1, QUAT].copy(), rows[-1, OMEGA].copy())

    config = EpisodeConfig(seconds=1.0, settle=0.5)
    truth = Truth()
    assert run_episode(config, 0, truth).q_des.tobytes() == run_episode(config, 0).q_des.tobytes()
    assert truth.rows == 1497  # every millisecond up to the last decision, once


def test_a_robot_unlike_its_model_walks(trot: RawEpisode) -> None:
    rng = np.random.default_rng(0)
    scale = rng.uniform(0.99, 1.01, size=(4, 3))
    links = tuple((float(a), float(b), float(c)) for a, b, c in scale)
    episode = walk(link_scale=links, motor_time_constant=0.004, joint_friction=1.5, payload_mass=1.0, seconds=2.0)
    assert episode.fell_at is None
    body = scaled_robot(Robot.load("go1"), scale)
    w, x, y, z = episode.quat_wb_wxyz[-1]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    np.testing.assert_allclose(episode.foot_pos_w[-1], body.feet(episode.q[-1]) @ R.T + episode.pos_w[-1], atol=1e-9)
    # The torque lags: it is no longer the PD law's own.
    law = 40.0 * (episode.q_des - episode.q) - episode.dq
    assert np.abs(episode.tau - law).max() > 1.0


def test_stationary_robots_lie_stand_and_stay() -> None:
    heights = []
    for seed in range(3):
        episode = run_episode(EpisodeConfig(gait="stationary", seconds=8.0, kp=60.0, kd=1.5), seed)
        assert episode.fell_at is None
        assert np.hypot(*episode.pos_w[-1, :2]) < 0.5
        assert (episode.gait_id == -1).all() and (episode.command == 0.0).all()
        heights += [episode.pos_w[:, 2].min(), episode.pos_w[:, 2].max()]
    assert min(heights) < 0.15 and max(heights) > 0.25


def test_a_fall_ends_the_episode_and_is_timed() -> None:
    push = Push(0.5, 0.2, (0.0, 400.0, 100.0))
    episode = walk(seconds=3.0, pushes=(push,))
    assert episode.fell_at is not None and 0.5 < episode.fell_at < 2.0
    assert episode.t[-1] == pytest.approx(episode.fell_at, abs=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"control_rate": 300}, "control_rate 300 must divide 1000"),
        ({"control_rate": 20}, "control_rate 20 must"),
        ({"seconds": 0.0}, "must be positive"),
        ({"gait": "hop"}, "unknown gait 'hop'"),
        ({"terrain": "moon"}, "unknown terrain 'moon'"),
        ({"robot": "rex"}, "unknown robot 'rex'"),
    ],
)
def test_bad_settings_say_what_to_fix(change: dict, message: str) -> None:
    with pytest.raises(GaitError, match=message):
        run_episode(replace(EpisodeConfig(seconds=0.1), **change), 0)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_whole_walking_study() -> None:
    rows = {row.name: row.value for row in walking_report()}
    for gait in WALKING_GAITS:
        assert rows[f"{gait}.falls"] <= 0.05
        assert rows[f"{gait}.pair_agreement"] >= 0.9
        assert 0.85 <= rows[f"{gait}.speed_ratio"] <= 1.15
    assert rows["pronk.flight_share"] > 0.3
    assert rows["trot_slippery.falls"] <= 0.05 and rows["trot_slippery.slip_share"] >= 0.2
    assert rows["trot_slippery.slip_event_share"] >= 0.05
    assert rows["trot_circular.falls"] <= 0.05 and rows["trot_debris.falls"] == 0.0
