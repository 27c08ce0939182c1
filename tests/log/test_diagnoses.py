"""Diagnoses of a log in words, as `gait run` and `gait info` print them."""

from __future__ import annotations

import numpy as np

from gait import Log
from gait.commands.info import input_checks
from gait.health import FIRST_LEG, Health
from gait.log.diagnoses import diagnoses
from gait.samples import SAMPLE


def test_a_diagnosis_is_one_line_with_its_time() -> None:
    t, health = np.arange(1000) / 500, np.zeros(1000, dtype=np.int64)
    health[100:200] = Health.BAD_TORQUE | Health.NO_MEASUREMENT
    health[150:300] |= Health.STALE_LEG | Health.BAD_SAMPLE | 1 << (FIRST_LEG + 1)
    health[400:403] = Health.IMU_SPIKE | Health.GYRO
    assert diagnoses(t, health, ("FR", "FL")) == [
        "torques do not support the robot's weight: ignored: for 0.2 s, first at 0.20 s",
        "leg FL stale: for 0.3 s, first at 0.30 s",
    ]
    assert not diagnoses(t, np.zeros(1000, dtype=np.uint32))


def test_a_log_is_checked_by_the_estimator() -> None:
    log = Log.load(SAMPLE).slice(0.0, 2.0)
    assert input_checks(log) == []
    (line,) = [one for one in input_checks(log.replace(dq=0.0 * log.dq)) if one.startswith("leg FR: dq")]
    assert "dq is zero while q moves: for" in line
    assert any("accelerometer in g?" in one for one in input_checks(log.replace(accel=log.accel / 9.81)))
