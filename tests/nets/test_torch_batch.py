"""Robots in torch do what robots in the core do, at any rate, with resets of some of them at different times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from needs import extra

torch = pytest.importorskip("torch", reason=extra("torch"))
from net_samples import random_model  # noqa: E402
from reference_samples import LEG_COUNTS, random_joints, random_robot  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from gait import Batch, GaitError, Log, Robot  # noqa: E402
from gait.nets import TorchBatch, load_model, torch_chain, torch_filter, torch_flexure, torch_legs  # noqa: E402
from gait.nets.schedule import FIRST, WAIT, schedule  # noqa: E402
from gait.parameters import Options  # noqa: E402
from gait.reference import contacts, filter, flexure, leg_velocity  # noqa: E402
from gait.samples import SAMPLE  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
FIELDS = ("gyro", "accel", "q", "dq", "q_des", "tau")
COMPARED = (
    "vel_b", "vel_w", "pos_w", "quat_wb_wxyz", "vel_cov", "pose_cov", "vel_b_std", "gyro_bias", "accel_bias",
)  # fmt: skip
STARTS = (0, 700, 1500, 3100, 5200)
Samples = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).reorder(Robot.load("go1"))


def walk(log: Log, k: int, every: int = 1) -> Samples:
    """Sample k of five robots, each at another place of the sample log."""
    rows = np.array(STARTS) + every * k
    names = (*FIELDS, "quat_wb_wxyz", "vel_w", "pos_w")
    return {name: np.asarray(getattr(log, name))[rows] for name in names}


def tensors(given: Samples, names: tuple[str, ...] = FIELDS) -> dict[str, Any]:
    return {name: torch.from_numpy(given[name].copy()) for name in names}


def difference(states: Any, ours: Any) -> dict[str, float]:
    return {name: float(np.abs(getattr(states, name) - getattr(ours, name).numpy()).max()) for name in COMPARED}


def reset_both(batch: Batch, ours: TorchBatch, flags: list[int], known: Samples | None = None) -> None:
    chosen = np.array(flags, dtype=bool)
    names = ("quat_wb_wxyz", "vel_w", "pos_w", "gyro")
    batch.reset(chosen, **({name: known[name][chosen] for name in names} if known else {}))
    ours.reset(torch.from_numpy(chosen), **(tensors(known, names) if known else {}))


def compare(
    batch: Batch, ours: TorchBatch, log: Log, steps: int, fields: tuple[str, ...] = FIELDS, every: int = 1
) -> float:
    """The largest difference, with resets from gravity and at known states on the way."""
    worst = 0.0
    for k in range(steps):
        given = walk(log, k, every)
        if k == steps // 3:
            reset_both(batch, ours, [0, 1, 0, 1, 0])
        if k == steps // 2:
            reset_both(batch, ours, [1, 0, 0, 1, 0], given)
        states = batch.update(k * ours.step_dt, **{name: given[name] for name in fields})
        worst = max(worst, *difference(states, ours.update(**tensors(given, fields))).values())
    assert np.linalg.norm(states.vel_b, axis=1).max() > 0.1, "robots that stand would agree whatever happens"
    return worst


@pytest.mark.parametrize("method", ["gait-legs", "gait", "gait-flat", "nmn"])
def test_robots_do_what_the_core_does(log: Log, method: str) -> None:
    assert compare(Batch("go1", 5, method, threads=1), TorchBatch("go1", 5, method=method), log, 150) < 1e-5


@pytest.mark.slow
def test_over_a_long_walk(log: Log) -> None:
    """Nothing adds up over 9 s, and single precision stays useful."""
    batch, ours = Batch("go1", 5, threads=1), TorchBatch("go1", 5)
    single = TorchBatch("go1", 5, precision=torch.float32)
    worst = {"double": 0.0, "single": 0.0}
    for k in range(4500):
        given = walk(log, k)
        states = batch.update(k * ours.step_dt, **{name: given[name] for name in FIELDS})
        worst["double"] = max(worst["double"], *difference(states, ours.update(**tensors(given))).values())
        worst["single"] = max(worst["single"], *difference(states, single.update(**tensors(given))).values())
    assert worst["double"] < 1e-5 and worst["single"] < 1e-3


@pytest.mark.parametrize(
    ("method", "step_ms"),
    [("gait-legs", 0.5), ("gait-legs", 1.9), ("gait-legs", 5.0), ("gait-legs", 20.0), ("gait", 1.0), ("gait", 5.0)],
)
def test_at_the_rate_of_a_simulator(log: Log, method: str, step_ms: float) -> None:
    ours = TorchBatch("go1", 5, method=method, step_dt=1e-3 * step_ms)
    every = max(round(step_ms / 2.0), 1)
    assert compare(Batch("go1", 5, method, threads=1), ours, log, 60, every=every) < 1e-5


@pytest.mark.parametrize("method", ["gait-legs", "gait"])
def test_without_targets(log: Log, method: str) -> None:
    batch, ours = Batch("go1", 5, method, threads=1, targets=False), TorchBatch("go1", 5, method=method, targets=False)
    assert compare(batch, ours, log, 60, FIELDS[:4]) < 1e-5


def test_a_humanoid_whose_joints_give_way() -> None:
    """Standing on one leg and the other; one robot of two is reset on the way."""
    robot, n, compliance = Robot.load("g1"), 2, 0.5e-3
    batch, ours = Batch(robot, n, threads=1), TorchBatch(robot, n)
    rng, up = np.random.default_rng(0), np.array([0.0, 0.0, 9.81])
    push = [chain.jacobians(q)[0][2] for chain, q in zip(robot.chains, robot.by_leg(robot.q_stand), strict=True)]
    push = [-9.81 * robot.mass * one for one in push]
    for k in range(120):
        sway, rate = 0.45 * np.sin(0.1 * k), 0.45 * 50.0 * np.cos(0.1 * k)
        tau = np.concatenate([(0.5 + sway) * push[0], (0.5 - sway) * push[1]])
        turning = compliance * rate * np.concatenate([push[0], -push[1]])
        given = {
            "gyro": rng.normal(size=(n, 3)) * 0.05,
            "accel": up + rng.normal(size=(n, 3)) * 0.1,
            "q": np.tile(robot.q_stand + compliance * tau, (n, 1)),
            "dq": turning + rng.normal(size=(n, len(tau))) * 0.01,
            "tau": np.tile(tau, (n, 1)),
        }
        if k == 40:
            reset_both(batch, ours, [1, 0])
        states = batch.update(k * ours.step_dt, **given)
        far = difference(states, ours.update(**tensors(given, tuple(given))))
        assert max(far.values()) < 1e-5, (k, far)


def test_compliance_is_fitted_as_in_the_reference() -> None:
    robot, n, rng, seen = Robot.load("g1"), 3, np.random.default_rng(1), np.ones(2, dtype=bool)
    ours = torch_flexure.TorchFlexure(robot, n, 0.002, torch.float64)
    theirs = [flexure.Flexure(robot) for _ in range(n)]
    for k in range(300):
        velocity, load = rng.normal(size=(3, 2, n)) * 600.0, rng.uniform(0.0, 1.0, (2, n))
        off = velocity * [0.0, 5e-4, 2.0] + rng.normal(size=velocity.shape) * 0.02
        off -= velocity * ours.compliance.numpy()
        chosen = np.array([True, k % 3 > 0, True])
        ours.learn(*(torch.from_numpy(x) for x in (off, velocity, load, chosen)))
        for i in np.flatnonzero(chosen):
            theirs[i].learn(off[..., i].T, velocity[..., i].T, load[:, i], seen, 0.002)
        np.testing.assert_allclose(ours.compliance, [one.compliance for one in theirs], rtol=1e-9, atol=1e-15)
    # Differences of hundreds of m/s hardly count.
    assert ours.compliance[0] < 1e-5 and 2.5e-4 < ours.compliance[1] < 5e-4
    assert ours.compliance[2] == pytest.approx(ours.first, rel=0.1)
    # However sure it is, it is not larger than joints can be flexible.
    certain = np.zeros((3, 2, n))
    ours.sums[:, 2], theirs[2]._told, theirs[2]._known = 1e12, 1e12, 1e12
    ours.learn(*(torch.from_numpy(x) for x in (certain, certain, load, np.array([False, False, True]))))
    theirs[2].learn(certain[..., 2].T, certain[..., 2].T, load[:, 2], seen, 0.002)
    most = flexure.MOST / flexure.bending_torque(robot)
    assert ours.compliance[2] == most == theirs[2].compliance
    ours.begin(torch.tensor([False, True, False]))
    assert ours.compliance[1] == ours.first > 0.0 and ours.compliance[2] == most


def test_torques_from_targets(log: Log) -> None:
    assert compare(Batch("go1", 5, threads=1), TorchBatch("go1", 5), log, 60, FIELDS[:5]) < 1e-5


@pytest.mark.parametrize("legs", LEG_COUNTS)
def test_random_robots_on_random_walks(legs: int) -> None:
    """An IMU that is mounted anyhow, joints that turn either way, and motion that no robot makes.

    After 0.1 s the core takes no torques that do not carry the robot, and those here do not: they are too small for
    the core to conclude that it stood once and was lifted, which it detects and torch does not.
    """
    robot, rng = random_robot(legs, 3), np.random.default_rng(legs)
    model = random_model("gait-legs", legs=legs, correction=True)
    model = replace(model, leg_names=robot.leg_names, joint_names=robot.joint_names)
    options = Options(joint_delay=0.003, exact_mean=legs != 2, exact_phi=legs != 4)
    n, t = 7, 0.0
    batch = Batch(robot, n, model, threads=1, options=options)
    ours = TorchBatch(robot, n, method=model, options=options)
    q = np.array([random_joints(robot, rng) for _ in range(n)])
    low, high = robot.q_lower, robot.q_upper
    for k in range(49):
        dq = rng.normal(size=q.shape) * 3.0
        q = np.clip(q + 0.002 * dq, low, high)
        given = {
            "gyro": rng.normal(size=(n, 3)),
            "accel": rng.normal(size=(n, 3)) + np.array([0.0, 0.0, 9.81]),
            "q": q,
            "dq": dq,
            "tau": rng.normal(size=q.shape) * 0.3,
        }
        chosen = rng.random(n) < 0.02
        batch.reset(chosen)
        ours.reset(torch.from_numpy(chosen))
        states = batch.update(t, **given)
        t += ours.step_dt
        far = difference(states, ours.update(**tensors(given, tuple(given))))
        assert max(far.values()) < 1e-5, (k, far)


def test_a_network_of_ones_own(log: Log, tmp_path: Any) -> None:
    model = random_model("gait", history=3, latents=1, hidden=8, mlp=12)
    model.save(tmp_path / "own.safetensors")
    path = tmp_path / "own.safetensors"
    assert compare(Batch("go1", 5, path, threads=1), TorchBatch("go1", 5, method=path), log, 60) < 1e-5
    assert compare(Batch("go1", 5, model, threads=1), TorchBatch("go1", 5, method=model), log, 60) < 1e-5


def test_a_start_from_gravity_waits_for_a_robot_at_rest(log: Log) -> None:
    """A simulator may drop its robots: in free fall nothing tells what is up."""
    batch, ours = Batch("go1", 5, threads=1), TorchBatch("go1", 5)
    for k in range(40):
        given = walk(log, k)
        given["accel"][1] *= 0.01 if k < 10 else 1.0
        states = batch.update(k * ours.step_dt, **{name: given[name] for name in FIELDS})
        state = ours.update(**tensors(given))
        assert state.started.tolist() == [True, k >= 10, True, True, True]
        assert max(difference(states, state).values()) < 1e-5


def test_a_sample_that_is_not_finite_concerns_its_robot_alone(log: Log) -> None:
    ours, other = TorchBatch("go1", 5), TorchBatch("go1", 5)
    for k in range(60):
        given = tensors(walk(log, k))
        want = other.update(**{name: value.clone() for name, value in given.items()})
        if 20 <= k < 30:
            given["gyro"][2], given["tau"][2, 4] = torch.nan, torch.inf
        before = ours.ekf.v[:, 2].clone()
        state = ours.update(**given)
        assert torch.equal(state.vel_b[[0, 1, 3, 4]], want.vel_b[[0, 1, 3, 4]])
        assert torch.isfinite(state.vel_b).all() and torch.isfinite(state.vel_cov).all()
        assert k == 0 or torch.equal(ours.ekf.v[:, 2], before) == (20 <= k < 30)


def test_a_state_out_of_all_bounds_starts_again(log: Log) -> None:
    batch, ours = Batch("go1", 5, threads=1), TorchBatch("go1", 5)
    for k in range(20):
        ours.update(**tensors(walk(log, k)))
    where = ours.ekf.p[:, 1].clone()
    ours.ekf.v[:, 1] = 1000.0
    state = ours.update(**tensors(walk(log, 20)))
    assert state.diverged.tolist() == [False, True, False, False, False]
    assert torch.allclose(ours.ekf.p[:, 1], where) and (ours.ekf.v[:, 1] == 0.0).all()
    assert not ours.update(**tensors(walk(log, 21))).diverged.any() and len(ours) == len(batch)


def test_what_a_state_holds(log: Log) -> None:
    ours = TorchBatch("go1", 5)
    for k in range(30):
        given = {name: value.float() for name, value in tensors(walk(log, k)).items()}
        state = ours(**given)
    assert state.vel_b.dtype == state.gravity_b.dtype == torch.float32 and state.vel_b.shape == (5, 3)
    assert torch.allclose(state.gravity_b, -state.R_wb.mT @ torch.tensor([0.0, 0.0, 1.0]))
    assert (state.gravity_b[:, 2] < -0.9).all(), "gravity points down"
    assert torch.allclose(state.ang_vel_b, given["gyro"] - state.gyro_bias, atol=1e-6), "the IMU of a Go1 is not turned"
    assert not state.vel_b.requires_grad


def test_a_module_is_saved_and_restored(log: Log) -> None:
    ours, other = TorchBatch("go1", 5), TorchBatch("go1", 5)
    for k in range(50):
        ours.update(**tensors(walk(log, k)))
    other.load_state_dict(ours.state_dict())
    for k in range(50, 60):
        given = tensors(walk(log, k))
        assert torch.equal(ours.update(**given).vel_w, other.update(**given).vel_w)


class OnTheDevice(TorchDispatchMode):
    """Raises for an operation that makes or reads a tensor with values on the host."""

    def __torch_dispatch__(self, op: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        result = op(*given, **(named or {}))
        for value in tree_leaves((given, named, result)):
            assert not isinstance(value, torch.Tensor) or value.is_meta or value.ndim == 0, op
        return result


@pytest.mark.parametrize("method", ["gait-legs", "gait", "nmn"])
def test_nothing_is_copied_between_host_and_device(log: Log, method: str) -> None:
    """On the device `meta` tensors have no values: whatever looks at one raises."""
    ours = TorchBatch("go1", 5, method=method, step_dt=0.005).to("meta")
    given = {name: value.to("meta") for name, value in tensors(walk(log, 0)).items()}
    flags, quat = torch.ones(5, dtype=torch.bool, device="meta"), torch.ones(5, 4, device="meta")
    with OnTheDevice():
        ours.reset(flags, quat_wb_wxyz=quat)
        ours.reset(flags)
        for _ in range(2):
            state = ours.update(**given)
        assert state.vel_b.shape == (5, 3) and state.vel_b.device.type == "meta"
        assert state.quat_wb_wxyz.shape == (5, 4) and state.vel_b_std.shape == (5, 3)
        with pytest.raises(AssertionError):
            torch.zeros(3)


def test_mistakes_are_told_in_a_sentence(log: Log) -> None:
    ours, given = TorchBatch("go1", 5), tensors(walk(log, 0))
    with pytest.raises(GaitError, match=r"q must be a tensor of shape \(5, 12\), got \(5, 11\)"):
        ours.update(**{**given, "q": given["q"][:, :11]})
    with pytest.raises(GaitError, match="gyro is on meta and the batch on cpu: move one of them"):
        ours.update(**{**given, "gyro": given["gyro"].to("meta")})
    with pytest.raises(GaitError, match="reads joint torques tau, or joint targets q_des, and neither is there"):
        ours.update(**{name: given[name] for name in FIELDS[:4]})
    with pytest.raises(GaitError, match="reads the joint targets q_des, which are not there"):
        TorchBatch("go1", 5, method="gait").update(**{name: given[name] for name in FIELDS[:4]})
    with pytest.raises(GaitError, match="robots must be 5 flags"):
        ours.reset(torch.tensor([1, 3]))
    with pytest.raises(GaitError, match="give quat_wb_wxyz too"):
        ours.reset(vel_w=torch.zeros(5, 3))
    with pytest.raises(GaitError, match="a batch of 0 robots"):
        TorchBatch("go1", 0)
    for method in ("iekf", "iekf-sr"):
        with pytest.raises(GaitError, match=f"method {method} has no network and does not run in torch"):
            TorchBatch("go1", 5, method=method)
    with pytest.raises(GaitError, match="unknown method 'gaitt'"):
        TorchBatch("go1", 5, method="gaitt")
    with pytest.raises(GaitError, match="method gait has no weights for go2"):
        TorchBatch("go2", 5, method="gait")
    with pytest.raises(GaitError, match=r"step_dt is 0.2 s: give seconds above 0 and up to 0.1"):
        TorchBatch("go1", 5, step_dt=0.2)
    with pytest.raises(GaitError, match="a step of 0.01 ms is too short for a network with a period of 2 ms"):
        TorchBatch("go1", 5, step_dt=1e-5)
    with pytest.raises(GaitError, match="unknown device 'gait': give cpu or cuda, and a method as method="):
        TorchBatch("go1", 5, "gait")
    with pytest.raises(GaitError, match="a filter in torch.float16"):
        TorchBatch("go1", 5, precision=torch.float16)


def test_the_pattern_of_a_schedule() -> None:
    same = schedule(0.002, 0.002)
    assert same.dt.shape == (3, 1) and same.following.tolist() == [WAIT, 2, 2]
    assert same.steps[:, 0].tolist() == [False, True, True] and same.dt[[WAIT, FIRST], 0].tolist() == [0.0, 0.0]
    fast = schedule(0.001, 0.002)
    assert fast.following.tolist() == [WAIT, 2, 3, 2] and fast.steps[2:, 0].tolist() == [False, True]
    # 5 ms and 2 ms: two steps, then three; what is left of the first sample is made up at its end.
    slow = schedule(0.005, 0.002)
    assert slow.steps.sum(1).tolist() == [0, 1, 2, 3] and slow.following.tolist() == [WAIT, 2, 3, 2]
    np.testing.assert_allclose(slow.dt[2:], [[0.002, 0.002, 0.0], [0.001, 0.002, 0.002]], atol=1e-12)
    np.testing.assert_allclose(slow.part[2:], [[0.4, 0.8, 1.0], [0.2, 0.6, 1.0]])
    np.testing.assert_allclose(slow.rest[2:], [0.001, 0.0], atol=1e-12)
    np.testing.assert_allclose(slow.dt.sum(1)[2:] + slow.rest[2:], 0.005)


def test_constants_are_those_of_the_reference() -> None:
    """`gait.reference` stands above `gait.nets`, which cannot import it."""
    names = (
        "SMOOTHING", "HISTORY", "YAW_BIAS_STD", "YAW_BIAS_PER_RATE", "YAW_BIAS_PER_ACCEL", "LARGEST_VARIANCE",
    )  # fmt: skip
    assert all(getattr(torch_legs, name) == getattr(leg_velocity, name) for name in names)
    assert torch_chain.SINGULAR == contacts.SINGULAR
    rows = (torch_filter.ROT, torch_filter.VEL, torch_filter.POS, torch_filter.GYRO_BIAS, torch_filter.ACCEL_BIAS)
    assert rows == (filter.ROT, filter.VEL, filter.POS, filter.GYRO_BIAS, filter.ACCEL_BIAS)


def test_weights_that_ship_fit(log: Log) -> None:
    assert isinstance(TorchBatch("go2", 2, method=load_model("gait-legs-1")), TorchBatch)
