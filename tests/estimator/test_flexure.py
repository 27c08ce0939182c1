"""Joints that give way under load: with torques the compliance is found, without them a usual one is taken."""

import numpy as np
import pytest

from gait import SAMPLE, Estimator, Log, Robot, open_log
from gait.moving_average import low_pass
from gait.parameters import Options
from gait.reference.flexure import bending_torque

GO1 = Robot.load("go1")


@pytest.fixture(scope="module")
def walk() -> Log:
    return open_log(SAMPLE).slice(0.0, 10.0)


def bent(log: Log, flexure: float) -> Log:
    """As encoders on the motors' side read it if joints give way by so many radians under a quarter of weight times leg
    length."""
    assert log.tau is not None
    turned = flexure / bending_torque(GO1) * low_pass(log.tau, 1.0 / log.rate, 0.003)
    return log.replace(q=log.q + turned, dq=log.dq + np.gradient(turned, 1.0 / log.rate, axis=0))


def scale(log: Log, options: Options | None = None) -> float:
    """Estimated over true velocity ahead."""
    estimate = Estimator.load("go1", options=options).run(log, start="truth")
    return float(np.sum(estimate.vel_b[:, 0] * log.vel_b[:, 0]) / np.sum(log.vel_b[:, 0] ** 2))


@pytest.mark.parametrize("torques", [True, False], ids=["torques", "no torques"])
def test_velocities_of_flexible_legs_are_less_short(walk: Log, torques: bool) -> None:
    log = bent(walk, 0.03)
    log = log if torques else log.replace(tau=None, q_des=None)
    with_it, without = scale(log), scale(log, Options(flexure=False))
    assert without < 0.99 and abs(1.0 - with_it) < 0.7 * abs(1.0 - without), (with_it, without)


def test_rigid_legs_with_torques_keep_their_velocity(walk: Log) -> None:
    assert scale(walk) == pytest.approx(scale(walk, Options(flexure=False)), abs=0.003)
