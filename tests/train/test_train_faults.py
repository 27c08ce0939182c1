"""Faults of real robots on simulated recordings: each alone does what it says, and ground truth stays."""

from __future__ import annotations

from dataclasses import fields, replace

import needs
import numpy as np
import pytest

needs.package("torch")

from gait import Log, Robot  # noqa: E402
from gait.io import open_log  # noqa: E402
from gait.nets.features import PER_LEG, SHARED, VELOCITY, leg_features  # noqa: E402
from gait.samples import SAMPLE  # noqa: E402
from gait.train.faults import MILD, FaultRanges, delayed, lagged, with_faults  # noqa: E402

GO1 = Robot.load("go1")
NONE = FaultRanges(
    **{one.name: 0.0 for one in fields(FaultRanges) if one.type == "float"}, velocity_lag=(1e-6, 1e-6),
    angle_step=(1e-12, 1e-12), imu_cutoff=(1e9, 1e9), accel_window=(0.002, 0.002), rates=((500.0, 1.0),),
)  # fmt: skip


@pytest.fixture(scope="module")
def walked() -> Log:
    return open_log(SAMPLE).slice(t1=6.0)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_without_faults_nothing_changes(walked: Log) -> None:
    log, robot, late = with_faults(walked, GO1, rng(), NONE)
    for name in ("gyro", "accel", "q", "dq", "tau"):
        np.testing.assert_allclose(getattr(log, name), getattr(walked, name), atol=1e-8)
    assert late < 1e-5 and np.array_equal(robot.offsets, GO1.offsets)


@pytest.mark.parametrize("ranges", [FaultRanges(), MILD])
def test_ground_truth_and_stamps_stay_and_a_generator_decides(walked: Log, ranges: FaultRanges) -> None:
    first, again = (with_faults(walked, GO1, rng(3), ranges) for _ in range(2))
    for name in ("t", "pos_w", "quat_wb_wxyz", "vel_w", "contact"):
        assert np.array_equal(getattr(first.log, name), getattr(walked, name))
    assert np.array_equal(first.log.dq, again.log.dq) and np.array_equal(first.log.accel, again.log.accel)
    assert np.abs(first.log.q - walked.q).mean() > 0.001 and np.abs(first.robot.offsets - GO1.offsets).max() > 1e-4


def test_a_joint_that_gives_way_reads_the_motor_side(walked: Log) -> None:
    bent = [with_faults(walked, GO1, rng(i), replace(NONE, flexure=0.02)).log.q - walked.q for i in range(8)]
    slopes = [float((x * walked.tau).sum() / np.square(walked.tau).sum()) for x in bent]
    assert min(np.abs(slopes)) < 1e-9 and all(slope > -1e-9 for slope in slopes)  # some robots are stiff
    assert 1e-4 < max(slopes) < 0.02 / 13.0


def test_gaps_are_lines_or_steps(walked: Log) -> None:
    shares = []
    for i in range(24):
        accel = with_faults(walked, GO1, rng(i), replace(NONE, gaps=10.0)).log.accel
        straight = np.abs(np.diff(accel, 2, axis=0)).max(axis=1) < 1e-9
        shares.append(straight.mean())
    assert np.median(shares) < 0.01 < 0.05 < max(shares) < 0.5


def test_slow_logs_are_straight_between_samples(walked: Log) -> None:
    log = with_faults(walked, GO1, rng(), replace(NONE, rates=((100.0, 1.0),))).log
    between = log.q[:-5:5] + 0.4 * (log.q[5::5] - log.q[:-5:5])
    np.testing.assert_allclose(log.q[2:-3:5], between, atol=1e-9)
    assert np.abs(log.dq - walked.dq).max() > 0.1


def test_an_imu_rings_after_impacts_and_may_be_turned(walked: Log) -> None:
    turned = with_faults(walked, GO1, rng(), replace(NONE, imu_turn=0.01)).log
    np.testing.assert_allclose(np.linalg.norm(turned.accel, axis=1), np.linalg.norm(walked.accel, axis=1), atol=1e-8)
    assert 0.01 < np.abs(turned.accel - walked.accel).max() < 1.5
    rung = [with_faults(walked, GO1, rng(i), replace(NONE, ringing=0.3)).log.accel - walked.accel for i in range(8)]
    sizes = [np.sqrt(np.square(x).mean()) for x in rung]
    assert min(sizes) < 1e-9 and 0.1 < max(sizes) < 5.0


def test_a_low_pass_lags_by_its_time_constant() -> None:
    ramp = np.arange(1000.0)[:, None] * 0.002
    assert lagged(ramp, 0.01, 0.002)[500, 0] == pytest.approx(ramp[500, 0] - 0.01, abs=0.0011)
    np.testing.assert_allclose(delayed(ramp, 0.004, 0.002)[10:], ramp[8:-2], atol=1e-12)


def test_lateness_is_what_the_fault_says(walked: Log) -> None:
    """Shifted by `late`, the truth fits best what legs measure that were told so."""
    lates = []
    for seed in range(4):
        ranges = replace(NONE, joint_delay=0.012, velocity_lag=(0.002, 0.004))
        log, robot, late = with_faults(walked, GO1, rng(seed), ranges)
        measured = leg_features(log, robot, delay=late)[:, SHARED:].reshape(len(log), -1, PER_LEG)
        measured = measured[..., VELOCITY : VELOCITY + 3]
        assert walked.contact is not None
        still = np.all([np.roll(walked.contact, k, axis=0) for k in range(0, 16, 4)], axis=0)

        def misfit(seconds: float, measured: np.ndarray = measured, still: np.ndarray = still) -> float:
            error = np.linalg.norm(measured - delayed(walked.vel_b, seconds, 0.002)[:, None], axis=2)
            return float(error[20:][still[20:]].mean())

        lates.append(late)
        best = min(np.arange(-0.002, 0.02, 0.0005), key=misfit)
        # The sample's own robot reads its joints 4 ms late.
        assert best == pytest.approx(late + 0.004, abs=0.0025)
    assert np.ptp(lates) > 0.002
