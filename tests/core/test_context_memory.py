"""A context keeps to the bytes that gait_bytes tells: it has just the rows of the covariance that its method uses."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from gait import Log, Robot
from gait.binding import CExternal, aligned_bytes, core, doubles, fill, pointer
from gait.engine import engines_of
from gait.external import KINDS
from gait.methods import METHODS
from gait.sample_rows import rows_of
from gait.samples import SAMPLE

GUARD, BEHIND = 0xA5, 1 << 14


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_written_behind_a_context(method: str) -> None:
    robot = Robot.load("go1")
    engine = engines_of(method, robot, {})[0]
    log = Log.load(SAMPLE).reorder(robot).slice(0.0, 0.5)
    memory, rows, gait = aligned_bytes(engine.bytes + BEHIND), rows_of(log, robot), core()
    memory[:] = GUARD
    g, states = pointer(memory), np.empty((len(rows), engine.state_doubles))
    gait.gait_init(g, ctypes.addressof(engine.config))
    gait.gait_run(g, pointer(rows), len(rows), pointer(states))
    before = states[-1].copy()
    measured = CExternal(kind=KINDS["pose"].number, t=rows[-1, 0], gate=100.0)
    fill(measured.value, np.r_[before[7:10] + 0.3, before[:4]])
    fill(measured.cov, 1e-6 * np.eye(6).ravel())
    fill(measured.quat_bs_wxyz, [1.0, 0.0, 0.0, 0.0])
    assert gait.gait_correct_external(g, ctypes.addressof(measured), pointer(np.empty(1))) == 0
    quat, pos, std = doubles([1.0, 0.0, 0.0, 0.0]), doubles(np.ones(3)), doubles(np.full(6, 0.1))
    gait.gait_reset_pose(g, pointer(quat), pointer(pos), pointer(std))
    gait.gait_reset(g, pointer(quat), pointer(pos), pointer(pos), pointer(pos), None)
    gait.gait_run(g, pointer(rows), len(rows), pointer(states))
    assert np.isfinite(states[-1, :13]).all()
    assert (memory[engine.bytes :] == GUARD).all()
