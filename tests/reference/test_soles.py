"""Flat feet: the centre of pressure, soles that rest, and the core against the reference on a humanoid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from core_calls import inside

from gait import Estimator, Log, Robot
from gait.engine import Engine
from gait.lie import rotation_from_quat, so3_exp
from gait.log.sample import Sample
from gait.nets.features import leg_features
from gait.nets.model import load_model
from gait.parameters import BASELINES, LEGS_NOISE, Options, Prior
from gait.reference.chain import chains_of, joint_torques, per_leg
from gait.reference.contact_aided import ReferenceContactAided
from gait.reference.contacts import ground_wrench
from gait.reference.filter import BaseState
from gait.reference.flat_feet import BIAS_STD, contact_lever, sole_bias_variance, sole_rests
from gait.reference.leg_velocity import LegFeatures
from gait.reference.velocity_aided import LegsVelocity, ReferenceVelocityAided

G1 = Robot.load("g1")
WEIGHT = G1.mass * 9.81
UP = np.array([0.0, 0.0, 1.0])
FLAT = np.array([-0.3, 0.0, 0.0, 0.6, -0.3, 0.0])
"""Angles of a leg whose sole is level below a level base."""


def samples(count: int, seed: int = 0) -> list[Sample]:
    """Smooth motion around the stance, with weight that moves from foot to foot and about the soles."""
    rng, t = np.random.default_rng(seed), np.arange(count) * 0.002
    R_bi, found = rotation_from_quat(G1.imu_quat_wxyz), []

    def waves(columns: int, size: float) -> tuple[np.ndarray, np.ndarray]:
        w, phase = rng.uniform(4.0, 15.0, columns), rng.uniform(0.0, 6.0, columns)
        return size * np.sin(np.outer(t, w) + phase), size * w * np.cos(np.outer(t, w) + phase)

    q, dq = waves(12, 0.06)
    gyro, accel, spots = waves(3, 0.1)[0], waves(3, 0.3)[0], waves(4, 1.0)[0]
    for k in range(count):
        left = 0.5 + 0.6 * np.sin(9.0 * t[k])
        taus = []
        for i, (chain, own, rate) in enumerate(
            zip(chains_of(G1), *(per_leg(list(G1.chains), x) for x in (np.tile(FLAT, 2) + q[k], dq[k])), strict=True)
        ):
            force = max(left if i == 0 else 1.0 - left, 0.0) * WEIGHT * np.array([0.05, -0.03, 1.0])
            spot = np.array([0.09, 0.03, 0.0]) * np.append(spots[k, 2 * i : 2 * i + 2], 0.0)
            jacobian, angular = chain.jacobians(own)
            push = jacobian.T @ force + angular.T @ np.cross(spot, force)
            taus.append(joint_torques(chain, own, rate, np.zeros(6), -9.81 * UP) - push)
        loads = np.clip([left, 1.0 - left], 0.0, None)
        found.append(
            Sample(
                t=t[k],
                gyro=gyro[k],
                accel=R_bi.T @ (accel[k] + 9.81 * UP),
                q=np.tile(FLAT, 2) + q[k],
                dq=dq[k],
                tau=np.concatenate(taus),
                foot_force=loads * WEIGHT,
                contact=loads > 0.1,
            )
        )
    return found


def test_the_centre_of_pressure_is_where_the_force_acts() -> None:
    chain = G1.chains[0]
    tau_free = joint_torques(chain, FLAT, np.zeros(6), np.zeros(6), -9.81 * UP)
    jacobian, angular = chain.jacobians(FLAT)
    force = 0.6 * WEIGHT * np.array([0.05, 0.1, 1.0])
    for spot in ([0.05, -0.02, 0.0], [0.0, 0.0, 0.0], [-0.08, 0.03, 0.0]):
        tau = tau_free - jacobian.T @ force - angular.T @ np.cross(spot, force)
        wrench = ground_wrench(chain, FLAT, tau, tau_free, G1.leg_length)
        np.testing.assert_allclose(wrench[:3], force, rtol=0.02, atol=0.02 * WEIGHT)
        lever = contact_lever(chain, FLAT, UP, wrench, WEIGHT)
        np.testing.assert_allclose(-lever, spot, atol=2e-3)
        inside_edges = abs(spot[0]) < 0.072 and abs(spot[1]) < 0.024
        assert sole_rests(chain, FLAT, UP, lever, 0.6) == inside_edges
    far = contact_lever(chain, FLAT, UP, np.append(force, np.cross([0.5, 0.0, 0.0], force)), WEIGHT)
    assert -far[0] == pytest.approx(0.09)


def test_a_light_foot_turns_about_its_lowest_corners() -> None:
    chain, tipped = G1.chains[0], FLAT + np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.0])
    light = np.array([0.0, 0.0, 0.05 * WEIGHT, 0.0, -0.05 * WEIGHT * 0.05, 0.0])
    toe = contact_lever(chain, tipped, UP)
    np.testing.assert_array_equal(contact_lever(chain, tipped, UP, light, WEIGHT), toe)
    corners = chain.foot.corners @ chain.link_poses(tipped)[0][-1].T
    assert -toe[2] == pytest.approx(corners[:, 2].min(), abs=1e-3)
    assert not sole_rests(chain, tipped, UP, toe, 0.6)
    level = contact_lever(chain, FLAT, UP)
    assert sole_rests(chain, FLAT, UP, level, 0.6) and not sole_rests(chain, FLAT, UP, level, 0.1)
    go1 = Robot.load("go1").chains[0]
    ball = contact_lever(go1, np.array([0.0, 0.8, -1.5]), UP, light, WEIGHT)
    np.testing.assert_array_equal(ball, go1.foot.radius * UP)


@pytest.mark.parametrize("source", ["tau", "foot_force", "contact"])
@pytest.mark.parametrize("method", ["iekf", "iekf-sr"])
def test_the_core_steps_as_the_reference_on_soles(source: str, method: str) -> None:
    params, walk = BASELINES[method], samples(100)
    params = replace(params, detection=replace(params.detection, touch_down_dwell=0.004, lift_off_dwell=0.004))
    nothing = np.zeros((3, 3))
    start = BaseState(so3_exp(np.array([0.02, -0.03, 0.4])), np.zeros(3), np.zeros(3), np.zeros(3), nothing, nothing)
    ours = ReferenceContactAided(G1, params, source)
    ours.start(start.R_wb, start.vel_w, start.pos_w, walk[0].gyro)
    settings = {"noise": params.imu, "prior": params.prior, "options": params.options}
    estimator = Estimator(G1, Engine(G1, contacts=params, contact_from=source, **settings), "contacts")
    estimator.reset(quat_wb_wxyz=start.quat_wb_wxyz, vel_w=start.vel_w, pos_w=start.pos_w, gyro=walk[0].gyro)
    estimator.update(walk[0])
    rested = 0
    for sample in walk[1:]:
        state, mine = ours.step(sample, 0.002), estimator.update(sample)
        contacts = inside(estimator._context).contacts
        np.testing.assert_array_equal(np.array(contacts.contact[:2], dtype=bool), ours.contact)
        rested += sum(contacts.rests[:2])
        np.testing.assert_allclose(mine.vel_w, state.vel_w, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(mine.gyro_bias, ours.ekf.gyro_bias, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(mine.quat_wb_wxyz, state.quat_wb_wxyz, rtol=1e-6, atol=1e-8)
    assert 20 < rested < 198, "soles must rest for a part of it"


def test_features_of_the_core_are_the_references_on_soles() -> None:
    walk = samples(40)
    log = Log(
        **{name: np.array([getattr(s, name) for s in walk]) for name in ("t", "gyro", "accel", "q", "dq", "tau")},
        robot=G1,
    )
    for one in (log, log.replace(tau=np.zeros_like(log.q))):
        ours = LegFeatures(G1, 0.004)
        rows = [ours.step(s.gyro, s.accel, s.q, s.dq, np.asarray(s.tau), 0.002) for s in one.rows()]
        np.testing.assert_allclose(leg_features(one, G1, delay=0.004), rows, rtol=1e-6, atol=1e-8)


def bent(walk: list[Sample], compliance: float) -> list[Sample]:
    """What encoders on the motors' side read of joints that give way under load."""
    tau = np.array([s.tau for s in walk])
    rates = np.gradient(tau, 0.002, axis=0)
    return [
        s._replace(q=s.q + compliance * t, dq=s.dq + compliance * r) for s, t, r in zip(walk, tau, rates, strict=True)
    ]


def swaying(count: int, compliance: float) -> list[Sample]:
    """Weight that moves from foot to foot of a body that hardly moves."""
    t, R_bi, taus = np.arange(count) * 0.002, rotation_from_quat(G1.imu_quat_wxyz), []
    share = 0.5 + 0.45 * np.sin(50.0 * t)
    for chain, own in zip(chains_of(G1), (share, 1.0 - share), strict=True):
        still = joint_torques(chain, FLAT, np.zeros(6), np.zeros(6), -9.81 * UP)
        taus.append(still - own[:, None] * WEIGHT * UP @ chain.jacobians(FLAT)[0])
    waves = np.sin(np.outer(t, np.linspace(60.0, 90.0, 18)))
    gyro, accel = 0.1 * waves[:, :3], (9.81 * UP + 0.5 * waves[:, 3:6]) @ R_bi
    q, dq = np.tile(FLAT, 2) + 1e-4 * waves[:, 6:], 1e-2 * waves[:, 6:]
    walk = [
        Sample(t=t[k], gyro=gyro[k], accel=accel[k], q=q[k], dq=dq[k], tau=tau) for k, tau in enumerate(np.hstack(taus))
    ]
    return bent(walk, compliance)


def test_the_compliance_of_joints_is_found_and_taken_off() -> None:
    found, speed = dict[float, float](), dict[float, float]()
    for compliance in (0.0, 0.4e-3):
        estimator = Estimator.load(G1, "gait-legs")
        speeds = [estimator.update(s).vel_b for s in swaying(1500, compliance)]
        found[compliance] = inside(estimator._context).legs.flexure.compliance
        speed[compliance] = float(np.sqrt(np.mean(np.square(speeds[1000:]))))
    # Never more than there is, and less, since the filter follows the legs by a part,
    # and the more the larger the weight of soles is.
    assert found[0.0] == 0.0 and 0.2 < found[0.4e-3] / 0.4e-3 < 1.0
    assert speed[0.4e-3] < speed[0.0] + 0.01, speed


def test_the_core_finds_the_compliance_of_the_reference() -> None:
    model, walk = load_model("gait-legs-all-0").for_robot(G1), swaying(400, 0.5e-3)
    options, nothing = Options(), np.zeros((3, 3))
    source = LegsVelocity(model, G1, options)
    ours = ReferenceVelocityAided(G1, source, LEGS_NOISE, Prior(), options)
    start = BaseState(so3_exp(np.array([0.02, -0.03, 0.4])), np.zeros(3), np.zeros(3), np.zeros(3), nothing, nothing)
    ours.start(start.R_wb, start.vel_w, start.pos_w, walk[0].gyro)
    estimator = Estimator.load(G1, model)
    estimator.reset(quat_wb_wxyz=start.quat_wb_wxyz, vel_w=start.vel_w, pos_w=start.pos_w, gyro=walk[0].gyro)
    ours.step(walk[0], 0.0)
    estimator.update(walk[0])
    for sample in walk[1:]:
        state, mine = ours.step(sample, 0.002), estimator.update(sample)
        learned = inside(estimator._context).legs.flexure
        assert learned.compliance == pytest.approx(
            source.flexure.compliance, rel=5e-4, abs=1e-10
        )  # of a network in single precision
        np.testing.assert_allclose(mine.vel_w, state.vel_w, atol=1e-6)
    assert learned.compliance > 0.02e-3


def test_a_sole_at_rest_finds_the_gyro_bias() -> None:
    """On one foot nothing else tells the bias about the vertical."""
    rows, R_bi = 3000, rotation_from_quat(G1.imu_quat_wxyz)
    points = replace(G1, legs=tuple(replace(leg, foot=replace(leg.foot, corners=np.zeros((0, 3)))) for leg in G1.legs))
    sway = 0.02 * np.sin(np.arange(rows) * 0.01)[:, None] * np.array([1.0, 0.0, 0.0, -1.0, 0.0, 0.0])
    q = np.tile(FLAT, 2) + np.hstack([sway, sway])
    bias = {}
    for name, robot in (("sole", G1), ("point", points)):
        log = Log(
            t=np.arange(rows) * 0.002,
            gyro=np.tile(R_bi.T @ UP * 0.02, (rows, 1)),
            accel=np.tile(R_bi.T @ UP * 9.81, (rows, 1)),
            q=q,
            dq=np.gradient(q, 0.002, axis=0),
            contact=np.tile([True, False], (rows, 1)),
            robot=robot,
        )
        estimator = Estimator.load(robot, "iekf")
        for sample in log.rows():
            state = estimator.update(sample)
        bias[name] = float((R_bi @ state.gyro_bias)[2])
    assert abs(bias["point"]) < 0.001 and 0.002 < bias["sole"] < 0.021, bias


def test_variance_of_the_bias_grows_in_a_turn() -> None:
    assert sole_bias_variance(0.0) == BIAS_STD**2 and sole_bias_variance(0.1) > 10.0 * BIAS_STD**2
