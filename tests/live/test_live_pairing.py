"""Pairing of IMU, joints and commands by their stamps, and what the monitor makes of the clock."""

import itertools

import numpy as np
import pytest

from gait import Estimator
from gait.live.monitor import Latencies, Monitor
from gait.live.pairing import NS, Arrival, Pairing
from gait.log.sample import Sample

MS = 1_000_000
ONE = np.ones(2)
ZERO = np.zeros(3)


def pairing(commands: bool = False) -> Pairing:
    return Pairing(2, commands=commands)


def imu(to: Pairing, ms: float, now: float = 0.0) -> None:
    to.add_imu(int(ms * MS), ZERO, ZERO, 0, now)


def joints(to: Pairing, ms: float, value: float) -> None:
    to.add_joints(int(ms * MS), value * ONE, -value * ONE, 2.0 * value * ONE)


def taken(of: Pairing, now: float = 0.0) -> list[Sample]:
    return [arrival.sample for arrival in of.take(now)]


def test_messages_of_one_stamp_make_a_sample_whatever_their_order() -> None:
    for order in itertools.permutations("ijc"):
        pair = pairing(commands=True)
        for one in order:
            if one == "i":
                imu(pair, 10.0)
            elif one == "j":
                joints(pair, 10.0, 3.0)
            else:
                pair.add_targets(10 * MS, 7.0 * ONE)
        (sample,) = taken(pair)
        assert sample.t == 0.01 and sample.q.tolist() == [3, 3] and sample.dq.tolist() == [-3, -3]
        assert sample.tau.tolist() == [6, 6] and sample.q_des.tolist() == [7, 7]


def test_joints_between_two_messages_are_interpolated_and_waited_for() -> None:
    pair = pairing()
    joints(pair, 10.0, 1.0)
    for ms in (10.0, 12.5, 15.0):
        imu(pair, ms)
    assert [sample.q[0] for sample in taken(pair)] == [1.0], "the later two wait for joints of their time"
    assert pair.waiting
    joints(pair, 20.0, 2.0)
    assert [sample.q[0] for sample in taken(pair)] == [1.25, 1.5]


def test_a_sample_that_waited_long_enough_takes_the_last_joints_and_then_none() -> None:
    pair = pairing()
    joints(pair, 10.0, 1.0)
    imu(pair, 30.0, now=5.0)
    assert taken(pair, now=5.01) == []
    (sample,) = taken(pair, now=5.03)
    assert sample.q[0] == 1.0 and pair.unpaired == 0
    imu(pair, 90.0, now=6.0)
    (sample,) = taken(pair, now=6.1)
    assert np.isnan(sample.q).all() and sample.tau is None and pair.unpaired == 1


def test_nothing_is_interpolated_across_a_gap() -> None:
    pair = pairing()
    joints(pair, 0.0, 1.0)
    joints(pair, 1000.0, 2.0)
    for ms in (10.0, 500.0, 990.0):
        imu(pair, ms, now=0.0)
    found = [sample.q[0] for sample in taken(pair, now=1.0)]
    assert found[0] == 1.0 and np.isnan(found[1]) and found[2] == 2.0


def test_late_messages_are_left_out_and_a_clock_set_anew_is_not_late() -> None:
    pair = pairing()
    for ms in (5000.0, 5002.0, 5001.0, 5002.0):
        imu(pair, ms)
        joints(pair, ms, ms)
    assert [sample.t for sample in taken(pair)] == [5.0, 5.002] and pair.disordered == 4
    imu(pair, 10.0)
    assert taken(pair) == [], "joints of the old clock are not joints of the new one"
    joints(pair, 10.0, 1.0)
    assert [sample.q[0] for sample in taken(pair)] == [1.0]


def test_a_target_holds_until_the_next_but_not_for_ever() -> None:
    pair = pairing(commands=True)
    pair.add_targets(10 * MS, 1.0 * ONE)
    pair.add_targets(30 * MS, 2.0 * ONE)
    for ms in (5.0, 10.0, 29.0, 30.0, 229.0, 240.0):
        imu(pair, ms)
        joints(pair, ms, 0.0)
    targets = [sample.q_des[0] for sample in taken(pair)]
    assert targets[1:5] == [1.0, 1.0, 2.0, 2.0] and np.isnan(targets[0]) and np.isnan(targets[5])


def test_stamps_since_1970_pair_to_the_nanosecond() -> None:
    pair, start = pairing(), 1_794_000_000 * NS
    for i in range(50):
        pair.add_imu(start + i * 2_000_001, ZERO, ZERO, 0, 0.0)
        pair.add_joints(start + i * 2_000_001, i * ONE, i * ONE, None)
    assert [sample.q[0] for sample in taken(pair)] == list(range(50))


def test_a_backlog_is_paired_like_everything_else() -> None:
    pair = pairing(commands=True)
    for i in range(20_000):
        pair.add_imu(i * MS, ZERO, ZERO, 0, 0.0)
    for i in range(20_000):
        pair.add_joints(i * MS, i * ONE, i * ONE, None)
        pair.add_targets(i * MS, -i * ONE)
    found = taken(pair)
    assert [sample.q[0] for sample in found] == list(range(20_000)) and pair.unpaired == 0
    assert [sample.q_des[0] for sample in found] == [-i for i in range(20_000)]


# The monitor


def test_the_monitor_counts_what_stamps_say_is_missing() -> None:
    estimator = Estimator.load("go1", "iekf")
    q = estimator.robot.q_stand
    state = estimator.update(0.0, ZERO, np.array([0.0, 0.0, 9.81]), q, 0.0 * q, q)
    monitor = Monitor()
    steps = np.full(1000, 2 * MS)
    # One lost before the rate is known, three in a row and one after; a pause and a clock set back are gaps.
    steps[[10, 300, 500]] = 4 * MS, 8 * MS, 4 * MS
    steps[[600, 700]] = 500 * MS, -5000 * MS
    steps = steps + np.random.default_rng(1).integers(-300_000, 300_000, 1000)
    for ns in np.cumsum(steps).tolist():
        monitor.add(Arrival(None, ns, 0), state, MS // 2)
    found = {row.name: row.value for row in monitor.rows()}
    assert (found["samples"], found["lost"], found["gaps"]) == (1000, 5, 2)
    assert found["latency_p99"] == pytest.approx(0.5, rel=0.01) and found["latency_max"] == 0.5
    line = monitor.line()
    assert "lost 5" in line and "p99 0.50 ms" in line and "m/s, std" in line and line.endswith("starting")


def test_a_count_of_the_robot_tells_better_than_stamps_that_jitter() -> None:
    estimator = Estimator.load("go1", "iekf")
    q = estimator.robot.q_stand
    state = estimator.update(0.0, ZERO, np.array([0.0, 0.0, 9.81]), q, 0.0 * q, q)
    # Sent in bunches of five: steps of 10 ms and of nothing, but not one is missing, until three are.
    sent = [i // 5 * 10 * MS + i % 5 for i in range(1000)]
    counts = [2 * MS * i for i in range(1000)]
    monitor = Monitor()
    for ns, count in zip(sent, counts, strict=True):
        monitor.add(Arrival(None, ns, 0, count), state, 0)
    assert monitor.lost == 0 and monitor.gaps == 0
    monitor.add(Arrival(None, sent[-1] + 8 * MS, 0, counts[-1] + 8 * MS), state, 0)
    assert monitor.lost == 3


def test_latencies_are_right_to_a_per_cent() -> None:
    values = np.random.default_rng(2).lognormal(-7.0, 1.0, 20_000)
    latencies = Latencies()
    assert np.isnan(latencies.percentile(0.5))
    for value in values:
        latencies.add(value)
    for share in (0.01, 0.5, 0.99):
        assert latencies.percentile(share) == pytest.approx(np.quantile(values, share), rel=0.011)
    latencies.add(-1.0)
    assert latencies.greatest == values.max()
