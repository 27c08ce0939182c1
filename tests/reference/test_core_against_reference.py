"""The core against the reference, over random states, masks and robots with two, four and six legs.

`Core` at the top is the only part that knows how the core is called; core_calls.py has its inner structs.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import addressof, c_uint32
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from core_calls import CMeasurement, CoreLegs, CoreNetwork, at, inner, inside, numbers
from net_samples import random_model
from reference_samples import LEG_COUNTS, random_covariance, random_joints, random_robot, random_sample

from gait import Estimator, Log, Robot
from gait.binding import CFilter, CRobot, CState, core, fill, pointer
from gait.core_config import core_robot
from gait.engine import Engine
from gait.invariant_ekf import InvariantEKF
from gait.lie import rotation_from_quat, so3_exp
from gait.log.sample import Sample
from gait.nets import Model
from gait.nets.features import PER_LEG, SHARED
from gait.nets.model import load_model
from gait.parameters import BASELINES, LEG_INSTANT, LEGS_NOISE, ContactAided, Options, Prior, ProcessNoise
from gait.reference.chain import chains_of, foot_jacobian, foot_position, foot_rate, joint_torques
from gait.reference.contact_aided import ReferenceContactAided
from gait.reference.contacts import ground_force
from gait.reference.disagreement import ConsistencyMonitor
from gait.reference.filter import BaseState, ReferenceFilter, base_state
from gait.reference.leg_velocity import (
    LegFeatures,
    LegGeometry,
    VelocityMeasurement,
    consensus_of,
    fuse_legs,
    gate_legs,
    measure_legs,
    predicted_motion,
)
from gait.reference.network import NumpyLegs, NumpyNetwork
from gait.reference.velocity_aided import LegsVelocity, NetworkVelocity, ReferenceVelocityAided
from gait.samples import SAMPLE

Arrays = dict[str, np.ndarray]
State = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""R (3, 3); v, p (2, 3); biases (2, 3); P (15, 15)."""
NOISE = ProcessNoise(gyro=0.01, accel=0.1, gyro_bias=1e-3, accel_bias=1e-2, accel_share=0.02)
BITS = {"rtol": 1e-9, "atol": 1e-9}
SINGLE = {"rtol": 1e-5, "atol": 1e-5}


GAP = 97
"""Sample of 100 after a gap. Only near the end: after one the textbook Joseph form rounds at 1e-11, 200 times more
coarsely than the core, and feet that jump about at random amplify that tenfold a step. The walk of a log does not."""
COMPARED = ("quat_wb_wxyz", "vel_w", "pos_w", "vel_b", "vel_cov", "pose_cov")


class Core:
    """What runs, called one equation at a time."""

    def __init__(self, robot: Robot, noise: ProcessNoise = NOISE, options: Options | None = None) -> None:
        self.robot, self.noise, self.options = robot, noise, options or Options()
        self.ekf = InvariantEKF(robot.num_legs, noise, options=self.options)
        self.described = core_robot(robot)

    def set_state(self, state: State) -> None:
        R, x, b, P = state
        self.ekf.reset(R, x[0], x[1], P)
        self.ekf.gyro_bias[:], self.ekf.accel_bias[:] = b

    def state(self) -> tuple[State, dict[int, np.ndarray]]:
        """And the contact points in the world; P has those of the feet in the state, in the order of legs."""
        e, feet = self.ekf, [int(leg) for leg in np.flatnonzero(self.ekf.active)]
        rows = [*range(15), *(15 + 3 * leg + i for leg in feet for i in range(3))]
        state = e.R_wb.copy(), np.array([e.vel_w, e.pos_w]), np.array([e.gyro_bias, e.accel_bias])
        return (*state, e.cov[np.ix_(rows, rows)]), {leg: e.feet_w[leg].copy() for leg in feet}

    def start_covariance(self, vectors: np.ndarray, std: np.ndarray) -> np.ndarray:
        f, std = filter_of((np.eye(3), vectors, np.zeros((2, 3)), np.zeros((15, 15)))), numbers(std)
        inner().filter_prior(at(f), pointer(std))
        return state_of(f)[3]

    def align(self, accel: np.ndarray, R_bi: np.ndarray, p_bi: np.ndarray, std: np.ndarray) -> State | None:
        f, robot, (std, accel) = filter_of(), mounted(R_bi, p_bi), (numbers(std), numbers(accel))
        taken = inner().filter_align(at(f), at(robot), pointer(std), pointer(accel), self.options.gravity)
        return state_of(f) if taken else None

    def base_state(self, state: State, gyro: np.ndarray, R_bi: np.ndarray, p_bi: np.ndarray) -> Arrays:
        f, robot, out, gyro = filter_of(state), mounted(R_bi, p_bi), CState(), numbers(gyro)
        inner().filter_output(at(f), at(robot), pointer(gyro), at(out))
        return {name: np.array(getattr(out, name)) for name in COMPARED}

    def propagate(self, gyro: np.ndarray, accel: np.ndarray, dt: float, std: np.ndarray, vel: np.ndarray) -> None:
        assert self.ekf.propagate(gyro, accel, dt, std, vel)

    def correct_velocity(self, vel_i: np.ndarray, cov_i: np.ndarray) -> None:
        assert self.ekf.correct_velocity(vel_i, cov_i)

    def correct_gyro_bias(self, axis_i: np.ndarray, innovation: float, variance: float) -> None:
        assert self.ekf.correct_gyro_bias(axis_i, innovation, variance)

    def correct_feet(self, feet_i: np.ndarray, cov_i: np.ndarray) -> None:
        assert self.ekf.correct_feet(feet_i, cov_i)

    def add_foot(self, leg: int, foot_i: np.ndarray, cov_i: np.ndarray) -> None:
        self.ekf.add_foot(leg, foot_i, cov_i)

    def remove_foot(self, leg: int) -> None:
        self.ekf.remove_foot(leg)

    def fk(self, leg: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        foot, jac, angular, q = np.zeros(3), np.zeros((len(q), 3)), np.zeros((len(q), 3)), numbers(q)
        inner().gait_leg_forward(at(self.described), leg, *map(pointer, (q, foot, jac, angular)))
        return foot, jac.T, angular.T

    def leg_torque(self, leg: int, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, g: np.ndarray) -> np.ndarray:
        arrays = *map(numbers, (q, dq, ddq, g)), np.zeros(len(q))
        inner().gait_leg_torque(at(self.described), leg, *map(pointer, arrays))
        return arrays[-1]

    def ground_force(self, leg: int, q: np.ndarray, tau: np.ndarray, tau_free: np.ndarray) -> np.ndarray:
        arrays = *map(numbers, (q, tau, tau_free)), np.zeros(3)
        inner().gait_leg_force(at(self.described), leg, *map(pointer, arrays))
        return arrays[-1]

    def contact_aided(
        self, params: ContactAided, source: str, start: BaseState, gyro: np.ndarray
    ) -> Callable[..., Any]:
        """A function of a sample, dt and usable legs that returns base_link, contacts and slips."""
        settings = {"noise": params.imu, "prior": params.prior, "options": params.options}
        engine = Engine(self.robot, contacts=params, contact_from=source, **settings)
        estimator = Estimator(self.robot, engine, "contacts")
        estimator.reset(quat_wb_wxyz=start.quat_wb_wxyz, vel_w=start.vel_w, pos_w=start.pos_w, gyro=gyro)
        rng, middle = np.random.default_rng(0), (self.robot.q_lower + self.robot.q_upper) / 2
        sample = plausible(random_sample(self.robot, rng), middle, 0.0, self.robot, rng)
        estimator.update(sample)  # the first one only sets the clock
        t = 0.0

        def step(sample: Sample, dt: float, leg_ok: np.ndarray) -> tuple[Arrays, np.ndarray, bool]:
            nonlocal t
            t += dt
            state = estimator.update(sample._replace(t=t), leg_ok=leg_ok)
            contact = np.array(inside(estimator._context).contacts.contact[: self.robot.num_legs], dtype=bool)
            return {name: getattr(state, name) for name in COMPARED}, contact, bool(state.health.bits & 32)

        return step

    def leg_features(
        self, latency: float, samples: list[Sample], dt: np.ndarray, compliance: float = 0.0
    ) -> np.ndarray:
        out = np.zeros((len(samples), SHARED + PER_LEG * self.robot.num_legs))
        fields = [numbers([getattr(s, name) for s in samples]) for name in ("gyro", "accel", "q", "dq", "tau")]
        arrays = map(pointer, (*fields, numbers(dt), out))
        core().gait_leg_features(at(self.described), latency, compliance, len(dt), *arrays)
        return out

    def fuse_legs(
        self, state: State, gyro: np.ndarray, accel: np.ndarray, features: np.ndarray, said: np.ndarray, ok: np.ndarray
    ) -> tuple[VelocityMeasurement | None, np.ndarray, State]:
        """The measurement, the test ratio of each leg, and the filter, whose variances the monitor may have changed."""
        estimator = Estimator.load(self.robot, "gait-legs", noise=self.noise, options=self.options)
        g = inside(estimator._context)
        put_state(g.filter, state)
        fill(g.input.gyro, gyro)
        fill(g.input.accel, accel)
        fill(g.legs.features, features)
        fill(g.legs.out, said.ravel())
        g.legs.seen[: len(ok)] = ok.tolist()
        m, health = CMeasurement(), c_uint32()
        fused = inner().legs_fuse(at(g), at(m), 0, addressof(health))
        numbers_of = (np.array(m.velocity), np.array(m.variance), m.bias, m.bias_variance, np.array(g.predicted[:3]))
        ratios = np.array(g.monitor.leg_ratio[: len(ok)])
        return VelocityMeasurement(*numbers_of) if fused else None, ratios, state_of(g.filter)

    @staticmethod
    def network(model: Model) -> Callable[..., Any]:
        network = CoreNetwork(model)

        def step(features: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            out = network.step(features, seen)
            return out[:3], out[3:], network.attention()

        return step

    @staticmethod
    def legs_network(model: Model) -> Callable[..., Any]:
        network = CoreLegs(model)

        def step(features: np.ndarray, ok: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            out = network.step(features, ok, known)
            return out[:, :3], out[:, 3:], network.attention()

        return step


def mounted(R_bi: np.ndarray, p_bi: np.ndarray) -> CRobot:
    """A robot of which nothing but the place of its IMU is known."""
    robot = CRobot()
    fill(robot.R_bi, R_bi.ravel())
    fill(robot.p_bi, p_bi)
    return robot


def put_state(f: CFilter, state: State) -> None:
    """Write a state without feet into a filter of the core."""
    R, x, b, P = state
    fill(f.R, R.ravel())
    fill(f.x, x)
    fill(f.b, b)
    np.ctypeslib.as_array(f.P)[: 15 * 16].reshape(15, 16)[:, :15] = P


def filter_of(state: State | None = None) -> CFilter:
    f = CFilter()
    inner().filter_init(at(f), 0)
    if state is not None:
        put_state(f, state)
    return f


def state_of(f: CFilter) -> State:
    P = np.ctypeslib.as_array(f.P)[: 15 * 16].reshape(15, 16)[:, :15]
    return np.array(f.R).reshape(3, 3), np.array(f.x)[:2], np.array(f.b), P.copy()


def assert_base(ours: Arrays, want: BaseState, tolerance: dict[str, float] = BITS) -> None:
    for name in COMPARED:
        np.testing.assert_allclose(ours[name], getattr(want, name), **tolerance, err_msg=name)


def random_state(rng: np.random.Generator) -> State:
    x, b = rng.normal(size=(2, 3)), rng.normal(size=(2, 3)) * 0.1
    return so3_exp(rng.normal(size=3)), x, b, random_covariance(rng, 15, 0.1)


def put(ekf: ReferenceFilter, state: State) -> ReferenceFilter:
    ekf.start(state[0], state[1][0], state[1][1], np.ones(15))
    (ekf.gyro_bias, ekf.accel_bias), ekf.P = state[2], state[3].copy()
    return ekf


def assert_state(core: Core, ekf: ReferenceFilter) -> None:
    (R, x, b, P), feet = core.state()
    for ours, want in ((R, ekf.R), (x, [ekf.v, ekf.p]), (b, [ekf.gyro_bias, ekf.accel_bias])):
        np.testing.assert_allclose(ours, want, **BITS)
    assert sorted(feet) == sorted(ekf.feet)
    for leg, d in feet.items():
        np.testing.assert_allclose(d, ekf.feet[leg], **BITS)
    order = [*range(15), *(i for leg in feet for i in range(ekf.rows(leg).start, ekf.rows(leg).stop))]
    np.testing.assert_allclose(P, ekf.P[np.ix_(order, order)], **BITS)


@pytest.mark.parametrize("legs", LEG_COUNTS)
@pytest.mark.parametrize("exact", [(True, True), (True, False), (False, True)], ids=["exact", "first order", "held"])
def test_filter(legs: int, exact: tuple[bool, bool]) -> None:
    rng, options = np.random.default_rng(legs), Options(exact_mean=exact[0], exact_phi=exact[1])
    core, ekf = Core(random_robot(legs, 0), options=options), ReferenceFilter(NOISE, options)
    state = random_state(rng)
    core.set_state(state)
    put(ekf, state)
    for k in range(120):
        gyro, accel, dt = rng.normal(size=3) * 2, rng.normal(size=3) * 3 + [0, 0, 9.81], rng.uniform(0.001, 0.01)
        std, roll = rng.uniform(0.0, 0.1, legs), rng.normal(size=(legs, 3)) * 0.1
        core.propagate(gyro, accel, dt, std, roll)
        ekf.propagate(gyro, accel, dt, dict(enumerate(std)), dict(enumerate(roll)))
        feet, covs = rng.normal(size=(legs, 3)), np.array([random_covariance(rng, 3, 0.05) for _ in range(legs)])
        if k % 2:
            core.correct_velocity(feet[0], covs[0])
            ekf.correct_velocity(feet[0], covs[0])
        if k % 5 == 0:
            core.correct_gyro_bias(feet[1], 0.01, 1e-4)
            ekf.correct_gyro_bias(feet[1], 0.01, 1e-4)
        if k % 3 == 0:
            core.correct_feet(feet, covs)
            ekf.correct_feet(dict(enumerate(feet)), dict(enumerate(covs)))
        leg = int(rng.integers(legs))
        if leg in ekf.feet:
            core.remove_foot(leg)
            ekf.remove_foot(leg)
        else:
            core.add_foot(leg, feet[leg], covs[leg])
            ekf.add_foot(leg, feet[leg], covs[leg])
        assert_state(core, ekf)


def test_start_and_output() -> None:
    rng = np.random.default_rng(1)
    core, ekf = Core(Robot.load("go1")), ReferenceFilter(NOISE)
    for _ in range(20):
        state, gyro, std = random_state(rng), rng.normal(size=3), rng.uniform(0.01, 1.0, 15)
        R_bi, p_bi = so3_exp(rng.normal(size=3)), rng.normal(size=3) * 0.2
        assert_base(core.base_state(state, gyro, R_bi, p_bi), base_state(put(ekf, state), gyro, R_bi, p_bi))
        ekf.start(state[0], *state[1], std)
        np.testing.assert_allclose(core.start_covariance(state[1], std), ekf.P, **BITS)
        accel = rng.normal(size=3)
        accel *= rng.uniform(0.3, 1.8) * 9.81 / np.linalg.norm(accel)
        ours = core.align(accel, R_bi, p_bi, std)
        assert (ours is not None) == ekf.start_at_rest(accel, R_bi, p_bi, std)
        if ours is not None:
            for mine, want in zip(ours, (ekf.R, [ekf.v, ekf.p], np.zeros((2, 3)), ekf.P), strict=True):
                np.testing.assert_allclose(mine, want, **BITS)


@pytest.mark.parametrize("legs", LEG_COUNTS)
def test_kinematics_and_torques(legs: int) -> None:
    rng, robot = np.random.default_rng(legs), random_robot(legs, 1)
    core = Core(robot)
    for _ in range(20):
        q, dq, ddq = random_joints(robot, rng), rng.normal(size=3) * 10, rng.normal(size=3) * 200
        w, g, tau = rng.normal(size=(3, 3)) * 5
        for i, chain in enumerate(chains_of(robot)):
            own = q[3 * i : 3 * i + 3]
            foot, jac, angular = core.fk(i, own)
            np.testing.assert_allclose(foot, foot_position(chain, own), **BITS)
            np.testing.assert_allclose(jac, foot_jacobian(chain, own), **BITS)
            np.testing.assert_allclose(w + angular @ dq, foot_rate(chain, own, dq, w), **BITS)
            torque = joint_torques(chain, own, dq, ddq, g)
            np.testing.assert_allclose(core.leg_torque(i, own, dq, ddq, g), torque, **BITS)
            want = ground_force(chain, own, tau, torque, robot.leg_length)
            np.testing.assert_allclose(core.ground_force(i, own, tau, torque), want, rtol=1e-7, atol=1e-9)


def plausible(sample: Sample, last_q: np.ndarray, dt: float, robot: Robot, rng: np.random.Generator) -> Sample:
    """A sample that the core's input checks let pass: angles that follow velocities, torques that carry the robot."""
    R_bi, g = rotation_from_quat(robot.imu_quat_wxyz), np.array([0.0, 0.0, -9.81])
    q = last_q + sample.dq * min(dt, 0.01)
    loads = rng.choice([0.0, 2.0], robot.num_legs) * robot.mass / robot.num_legs
    tau = [
        joint_torques(chain, q[j], sample.dq[j], np.zeros(3), g) + foot_jacobian(chain, q[j]).T @ g * load
        for chain, load, j in zip(chains_of(robot), loads, np.arange(len(q)).reshape(-1, 3), strict=True)
    ]
    return sample._replace(q=q, q_des=None, tau=np.concatenate(tau), accel=R_bi.T @ (0.1 * rng.normal(size=3) - g))


@pytest.mark.parametrize("legs", LEG_COUNTS)
@pytest.mark.parametrize("source", ["tau", "foot_force", "contact"])
@pytest.mark.parametrize("method", sorted(BASELINES))
def test_contact_aided_step(legs: int, source: str, method: str) -> None:
    rng, robot = np.random.default_rng(legs), random_robot(legs, 2)
    d = BASELINES[method].detection
    params = replace(BASELINES[method], detection=replace(d, touch_down_dwell=0.004, lift_off_dwell=0.004))
    ours = ReferenceContactAided(robot, params, source)
    gyro, R_wb = rng.normal(size=3), so3_exp(rng.normal(size=3) * 0.2)
    nothing = np.zeros((3, 3))
    start = BaseState(R_wb, rng.normal(size=3), rng.normal(size=3), nothing[0], nothing, nothing)
    ours.start(start.R_wb, start.vel_w, start.pos_w, gyro)
    step = Core(robot).contact_aided(params, source, start, gyro)
    sample, changes, slips = random_sample(robot, rng)._replace(q=(robot.q_lower + robot.q_upper) / 2), 0, 0
    for k in range(100):
        other = random_sample(robot, rng)
        dq, gyro, force = (0.97 * getattr(sample, n) + 0.03 * getattr(other, n) for n in ("dq", "gyro", "foot_force"))
        dt = 0.5 if k == GAP else rng.uniform(0.002, 0.003)
        sample = plausible(other._replace(dq=dq, gyro=gyro, foot_force=force), sample.q, dt, robot, rng)
        if source == "tau" and k % 7 == 0:
            sample.tau[1] = np.nan  # type: ignore[index]
        ok = rng.random(legs) > 0.1
        before = ours.contact
        state = ours.step(sample, dt, ok)
        row, contact, slip = step(sample, dt, ok)
        np.testing.assert_array_equal(contact, ours.contact)
        assert slip == (ours.slips.any() and k != GAP)
        assert_base(row, state)
        changes, slips = changes + int((before != contact).any()), slips + slip
    assert changes > 5 and (slips > 0) == (method == "iekf-sr")


@pytest.mark.parametrize("legs", LEG_COUNTS)
@pytest.mark.parametrize("latency", [0.0, 0.005, 0.1])
@pytest.mark.parametrize("compliance", [0.0, 1e-3, -1.0])
def test_leg_features(legs: int, latency: float, compliance: float) -> None:
    """With a compliance that is taken off; -1 is a robot whose torques are not known."""
    rng, robot = np.random.default_rng(legs), random_robot(legs, 3)
    ours, samples = LegFeatures(robot, latency, compliance >= 0.0), [random_sample(robot, rng) for _ in range(30)]
    ours.compliance = compliance
    samples = samples if compliance >= 0.0 else [s._replace(tau=np.zeros_like(s.q)) for s in samples]
    dt = rng.uniform(0.001, 0.004, 30)
    rows = Core(robot).leg_features(latency, samples, dt, compliance)
    for s, step, row in zip(samples, dt, rows, strict=True):
        x = ours.step(s.gyro, s.accel, s.q, s.dq, np.asarray(s.tau), step)
        np.testing.assert_allclose(row, x, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("legs", LEG_COUNTS)
def test_leg_fusion(legs: int) -> None:
    rng, robot = np.random.default_rng(legs), random_robot(legs, 4)
    options = Options(leg_inflation=1.3, leg_guard=0.8, joint_delay=0.005, joint_delay_std=0.003)
    core, ekf, geometry = Core(robot, options=options), ReferenceFilter(NOISE, options), LegGeometry(robot)
    fused = 0
    for _ in range(50):
        state, (gyro, accel) = random_state(rng), rng.normal(size=(2, 3)) * 3
        features = rng.normal(size=SHARED + PER_LEG * legs)
        said = rng.normal(size=(legs, 6)).astype(np.float32)
        ok = rng.random(legs) > 0.4
        ok[rng.integers(legs)] = True
        ours, ratios, after = core.fuse_legs(state, gyro, accel, features, said, ok)
        motion = predicted_motion(put(ekf, state), gyro, accel, geometry.R_bi, geometry.p_bi)
        usable = measure_legs(
            ekf, features, *np.split(said.astype(np.float64), 2, axis=1), ok & motion.upright, geometry
        )
        assert (ours is not None) == usable.used.any()
        np.testing.assert_array_equal(ratios > 0.0, usable.used)
        if ours is None:
            continue
        monitor = ConsistencyMonitor(ekf, geometry.R_bi)
        monitor.consensus(consensus_of(usable, motion, options), motion.variance, 1.0 / 500.0)
        usable, gated = gate_legs(usable, motion, options)
        np.testing.assert_allclose(ratios[usable.used], gated, **BITS)
        want, fused = fuse_legs(usable, motion, options), fused + 1
        monitor.rate(want.gyro_bias_z, LEG_INSTANT**2 * want.gyro_bias_z_var, 1.0 / 500.0)
        np.testing.assert_allclose(after[3], ekf.P, **BITS)
        for mine, theirs in zip(ours[:4], want[:4], strict=True):
            np.testing.assert_allclose(mine, theirs, **BITS)
        assert (want.gyro_bias_z_var > 0.0) == (usable.used.sum() > 1)
        np.testing.assert_allclose(ours.mean_b, want.mean_b, **SINGLE)
    assert 10 < fused < 50


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
@pytest.mark.parametrize("legs", [2, 4])
def test_network_step(kind: str, legs: int) -> None:
    model, rng = random_model(kind, legs=legs), np.random.default_rng(5)
    ours, step = NumpyNetwork(model), Core.network(model)
    tokens = ours.attention().shape[1]
    for k in range(40):
        x = rng.normal(size=model.architecture.num_features) * 2
        # For some steps nothing at all is to be seen.
        seen = rng.random(tokens) > 0.4 if k % 20 < 12 else np.zeros(tokens, dtype=bool)
        *said, looks = step(x, seen)
        np.testing.assert_allclose(said, ours.step(x, seen if tokens else None), **SINGLE)
        np.testing.assert_allclose(looks, ours.attention(), **SINGLE)


@pytest.mark.parametrize("legs", LEG_COUNTS)
def test_legs_network_step(legs: int) -> None:
    model, rng = random_model("gait-legs", legs=legs, correction=legs == 4), np.random.default_rng(6)
    ours, step = NumpyLegs(model), Core.legs_network(model)
    known = np.zeros(legs, dtype=bool)
    for _ in range(40):
        x, ok = rng.normal(size=SHARED + PER_LEG * legs), rng.random(legs) > 0.3
        ok[rng.integers(legs)] = True
        *said, looks = step(x, ok, known)
        np.testing.assert_allclose(said, ours.step(x, ok, known), **SINGLE)
        np.testing.assert_allclose(looks, ours.attention, **SINGLE)
        known = ok


@pytest.fixture(scope="module")
def log() -> Log:
    """With a gap of 0.2 s."""
    log = Log.load(SAMPLE).slice(0.0, 0.6)
    keep = (log.t - log.t[0] < 0.2) | (log.t - log.t[0] > 0.4)
    return Log(**{name: array[keep] for name, array in log.arrays().items()}, robot=Robot.load("go1"))


def compare(estimator: Estimator, ours: Any, log: Log, tolerance: dict[str, float]) -> None:
    """The whole estimator through its public interface; a leg is lost for 40 samples."""
    estimator.start_as(log, "truth")
    ours.start(rotation_from_quat(log.quat_wb_wxyz[0]), log.vel_w[0], log.pos_w[0], log.gyro[0])
    rows = list(log.rows())
    estimator.update(rows[0])
    if isinstance(ours, ReferenceVelocityAided):
        ours.step(rows[0], 0.0)
    for k, (last, row) in enumerate(pairwise(rows)):
        ok = np.array([True, not 30 < k < 70, True, True])
        if not ok[1]:  # an admitted sample has the last good joints in the place of lost ones
            lost = np.arange(12) // 3 == 1
            held = {name: np.where(lost, getattr(rows[31], name), getattr(row, name)) for name in ("q", "dq", "q_des")}
            row = row._replace(**held)
        state = estimator.update(row, leg_ok=ok)
        want = ours.step(row, row.t - last.t, ok)
        assert_base({name: getattr(state, name) for name in COMPARED}, want, tolerance)
        np.testing.assert_allclose(state.test_ratio, ours.monitor.ratio, **tolerance)
        assert state.resets == ours.monitor.resets
        if state.leg_test_ratio is not None:
            ratios = ours.source.ratios if isinstance(ours, ReferenceVelocityAided) else ours.ratios
            np.testing.assert_allclose(state.leg_test_ratio, ratios, **tolerance)
    assert "diverged" not in str(state.health)


@pytest.fixture(scope="module")
def shaken() -> Log:
    """Three seconds with an accelerometer that is off for tenths of a second: noise that only long differences show."""
    log, rng = Log.load(SAMPLE).slice(0.0, 3.0), np.random.default_rng(2)
    held = np.repeat(rng.normal(0.0, 1.5, (len(log) // 40 + 1, 3)), 40, axis=0)[: len(log)]
    return log.replace(accel=log.accel + held)


@pytest.mark.parametrize("method", ["iekf", "gait-legs"])
def test_noise_that_is_estimated(method: str, shaken: Log) -> None:
    robot, options = Robot.load("go1"), Options()
    model = load_model("gait-legs-all-0").for_robot(robot)
    ours: Any = ReferenceContactAided(robot, BASELINES["iekf"])
    if method == "gait-legs":
        ours = ReferenceVelocityAided(robot, LegsVelocity(model, robot, options), LEGS_NOISE, Prior(), options)
    compare(Estimator.load(robot, model if method == "gait-legs" else method), ours, shaken, SINGLE)
    assert ours.ekf.adapted.density > 0.05


@pytest.mark.parametrize("method", sorted(BASELINES))
def test_estimator_with_contacts(method: str, log: Log) -> None:
    robot = Robot.load("go1")
    compare(Estimator.load(robot, method), ReferenceContactAided(robot, BASELINES[method]), log, BITS)


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_estimator_with_a_network(kind: str, log: Log) -> None:
    # Random weights contradict the IMU: with their own variance they would turn the robot upside down.
    robot, model, options = Robot.load("go1"), random_model(kind), Options(inflation=100.0)
    ours = ReferenceVelocityAided(robot, NetworkVelocity(model, robot, options), ProcessNoise(), Prior(), options)
    compare(Estimator.load(robot, model, options=options), ours, log, SINGLE)


def test_estimator_with_legs(log: Log) -> None:
    robot, options = Robot.load("go1"), Options()
    model = replace(random_model("gait-legs"), leg_names=robot.leg_names, joint_names=robot.joint_names)
    ours = ReferenceVelocityAided(robot, LegsVelocity(model, robot, options), LEGS_NOISE, Prior(), options)
    compare(Estimator.load(robot, model), ours, log, SINGLE)
