"""Injectors: each changes what it says, when it says, and nothing else."""

from fnmatch import fnmatchcase

import numpy as np
import pytest
from log_samples import make_log

from gait import Log
from gait.bench.faults.conditions import on_cart, start_moving, start_tilted, swing_legs
from gait.bench.faults.fault import AFTER, BEFORE, Fault, Span, matching, nothing
from gait.bench.faults.feed import SENSORS, Feed
from gait.bench.faults.imu_faults import G
from gait.bench.faults.joint_faults import GEAR, THIGH
from gait.bench.faults.run_faults import FAULTS, generator, injected
from gait.errors import GaitError
from gait.robot import Robot

BY_ID = {fault.id: fault for fault in FAULTS}
TOUCHES = {
    "none": "",
    "gyro-*": "gyro",
    "accel-*": "accel",
    "imu-*": "gyro accel",
    "mounting-*": "gyro accel",
    "vibration*": "accel",
    "q-*": "q",
    "dq-*": "dq",
    "tau-nan*": "tau",
    "tau-inf": "tau",
    "tau-missing*": "tau",
    "tau-and*": "tau q_des",
    "tau-*": "tau",
    "q_des-*": "q_des",
    "encoder-stuck-q": "q",
    "encoder-offset*": "q",
    "encoder-*": "q dq",
    "leg-*": "q dq tau",
    "legs-*": "q dq tau",
    "first-*": "tau q_des",
    "jitter-*": "stamps",
    "latency-*": "q dq tau",
    "clock-*": "stamps",
}
"""Fields that faults change in place, by id; the first pattern that fits counts. Others choose rows."""
CHOOSES_ROWS = ("lost-*", "gap-*", "gaps-*", "duplicated", "reordered", "rate-*", "start-*", "cart", "lying-legs")
ON_LOGS = [fault for fault in FAULTS if fault.inject is not nothing]


@pytest.fixture(scope="module")
def log() -> Log:
    """25 s of noise, strong enough to be clipped."""
    log = make_log(count=12500, seed=3)
    return log.replace(accel=3.0 * log.accel)


def span_of(fault: Fault, log: Log) -> Span:
    span = fault.span(float(log.t[0]), float(log.t[-1]))
    assert span is not None
    return span


def changed_rows(feed: Feed, clean: Feed) -> dict[str, np.ndarray]:
    """By field, the rows that differ."""
    found = {"stamps": np.flatnonzero(~_same(feed.stamps, clean.stamps))}
    for name in SENSORS:
        differs = ~_same(feed.values[name], clean.values[name]).all(1)
        if name in feed.absent:
            differs |= feed.absent[name]
        found[name] = np.flatnonzero(differs)
    return {name: rows for name, rows in found.items() if rows.size}


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def touched(fault: Fault) -> set[str]:
    return set(next(fields for pattern, fields in TOUCHES.items() if fnmatchcase(fault.id, pattern)).split())


def test_ids_are_unique_and_fit_the_table() -> None:
    assert len(BY_ID) == len(FAULTS)
    assert all(len(fault.id) <= 18 and fault.words for fault in FAULTS)
    assert all(not (fault.flag and fault.quiet) for fault in FAULTS)


@pytest.mark.parametrize("fault", ON_LOGS, ids=lambda fault: fault.id)
def test_a_fault_changes_what_it_says(fault: Fault, log: Log) -> None:
    if any(fnmatchcase(fault.id, pattern) for pattern in CHOOSES_ROWS):
        return
    span = span_of(fault, log)
    clean, feed = Feed.of(log.slice(None, span.stop)), injected(fault, log, span)
    assert len(feed) == len(clean) and np.array_equal(feed.time, clean.time)
    assert all(np.array_equal(feed.truth[name], clean.truth[name]) for name in clean.truth)
    changed = changed_rows(feed, clean)
    # Clipping and noise may leave a row alone; the fields are those of the fault.
    assert set(changed) == touched(fault)
    inside = clean.rows(span.begin, span.end)
    for rows in changed.values():
        if fault.id.startswith("clock-") and fault.id not in ("clock-1e300", "clock-nan"):
            assert rows[0] == inside.start and rows[-1] == len(clean) - 1
        elif fault.id.startswith("clock-"):
            assert rows.tolist() == [inside.start]
        elif fault.id == "first-without-tau":
            assert rows.tolist() == [0]
        else:
            assert inside.start <= rows[0] and rows[-1] < inside.stop
    first = feed.first_changed(clean, inside.start)
    assert first == min(rows[rows >= inside.start].min(initial=len(clean)) for rows in changed.values())


@pytest.mark.parametrize("fault", ON_LOGS, ids=lambda fault: fault.id)
def test_a_fault_is_the_same_each_time(fault: Fault, log: Log) -> None:
    if fault.id == "gap-30s":
        assert fault.span(0.0, 25.0) is None
        return
    if fault.id.startswith("rate-"):
        return
    one, two = (injected(fault, log, span_of(fault, log)) for _ in range(2))
    assert np.array_equal(one.stamps, two.stamps, equal_nan=True)
    assert all(np.array_equal(one.values[name], two.values[name], equal_nan=True) for name in one.values)


def test_where_a_fault_lies_in_a_log() -> None:
    fault = BY_ID["gyro-nan"]
    assert fault.span(0.0, 60.0) == Span(BEFORE, BEFORE + 2.0, BEFORE + 2.0 + AFTER)
    assert fault.span(0.0, 10.0) == Span(3.0, 5.0, 14.0)
    assert fault.span(0.0, 8.0) is None
    lasting = BY_ID["gyro-bias-on"].span(0.0, 60.0)
    assert lasting is not None and lasting.begin == BEFORE and lasting.end > lasting.stop
    assert [one.id for one in matching(FAULTS, ("gap-*", "none"))][:2] == ["none", "gap-20ms"]
    assert len(matching(FAULTS, ())) == len(FAULTS)


def feed_of(name: str, log: Log) -> tuple[Feed, Feed, slice]:
    fault = BY_ID[name]
    span = span_of(fault, log)
    clean = Feed.of(log.slice(None, span.stop))
    return injected(fault, log, span), clean, clean.rows(span.begin, span.end)


def test_units_scales_and_signs(log: Log) -> None:
    feed, clean, rows = feed_of("accel-in-g", log)
    np.testing.assert_allclose(feed.values["accel"][rows] * G, clean.values["accel"][rows])
    feed, clean, rows = feed_of("gyro-in-deg", log)
    np.testing.assert_allclose(np.radians(feed.values["gyro"][rows]), clean.values["gyro"][rows])
    feed, clean, rows = feed_of("tau-gear", log)
    np.testing.assert_allclose(feed.values["tau"] * GEAR, clean.values["tau"])
    feed, clean, rows = feed_of("encoder-offset", log)
    off = feed.values["q"] - clean.values["q"]
    np.testing.assert_allclose(off[rows, THIGH], 0.05)
    assert np.count_nonzero(off) == rows.stop - rows.start
    feed, clean, rows = feed_of("accel-bias-x", log)
    np.testing.assert_allclose((feed.values["accel"] - clean.values["accel"])[rows], [[0.5, 0.0, 0.0]] * 1000)


def test_clipping_and_sticking(log: Log) -> None:
    feed, clean, rows = feed_of("gyro-clipped", log)
    assert np.abs(feed.values["gyro"][rows]).max() == 0.5
    assert np.array_equal(np.sign(feed.values["gyro"]), np.sign(clean.values["gyro"]))
    feed, clean, rows = feed_of("imu-stuck", log)
    assert (feed.values["gyro"][rows] == clean.values["gyro"][rows.start - 1]).all()
    feed, clean, rows = feed_of("encoder-stuck", log)
    assert (feed.values["q"][rows, THIGH] == clean.values["q"][rows.start - 1, THIGH]).all()
    assert (feed.values["dq"][rows, THIGH] == 0.0).all()


def test_mounting_is_a_rotation_by_its_angle(log: Log) -> None:
    feed, clean, _ = feed_of("mounting-5", log)
    for name in ("gyro", "accel"):
        a, b = feed.values[name], clean.values[name]
        np.testing.assert_allclose(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    # The rotation that turns one into the other, by least squares.
    u, _, vt = np.linalg.svd(clean.values["accel"].T @ feed.values["accel"])
    angle = np.degrees(np.arccos((np.trace(u @ vt) - 1.0) / 2.0))
    assert angle == pytest.approx(5.0, abs=1e-6)


@pytest.mark.parametrize(("name", "seconds"), [("gap-20ms", 0.02), ("gap-90ms", 0.09), ("gap-2s", 2.0)])
def test_a_gap_is_as_long_as_its_name(name: str, seconds: float, log: Log) -> None:
    feed, clean, rows = feed_of(name, log)
    longest = np.diff(feed.stamps).max()
    assert longest == pytest.approx(seconds + 0.002)
    assert len(clean) - len(feed) == round(seconds * 500)
    assert np.array_equal(feed.truth["pos_w"][: rows.start], clean.truth["pos_w"][: rows.start])


def test_gaps_come_again(log: Log) -> None:
    feed, _, rows = feed_of("gaps-90ms", log)
    pauses = np.flatnonzero(np.diff(feed.stamps) > 0.05)
    np.testing.assert_allclose(np.diff(feed.stamps)[pauses], 0.092, atol=1e-9)
    np.testing.assert_allclose(np.diff(feed.stamps[pauses]), 0.43, atol=0.002)
    assert len(pauses) == 5 and pauses[0] == rows.start - 1


def test_samples_lost_doubled_and_swapped(log: Log) -> None:
    feed, clean, _ = feed_of("lost-10", log)
    assert len(feed) / len(clean) == pytest.approx(0.9, abs=0.01)
    assert np.isin(feed.stamps, clean.stamps).all() and feed.stamps[0] == clean.stamps[0]
    feed, clean, rows = feed_of("duplicated", log)
    assert len(feed) - len(clean) == 1000
    assert (np.diff(feed.stamps) == 0.0).sum() == 1000
    feed, clean, rows = feed_of("reordered", log)
    assert np.array_equal(np.sort(feed.stamps), clean.stamps) and np.array_equal(feed.time, clean.time)
    assert np.array_equal(feed.truth["vel_w"], clean.truth["vel_w"])
    back = np.flatnonzero(np.diff(feed.stamps) < 0.0)
    assert 100 < len(back) < 300
    assert rows.start - 1 <= back[0] and back[-1] < rows.stop
    # A sample stays whole: values go with their stamp.
    order = np.searchsorted(clean.stamps, feed.stamps)
    assert np.array_equal(feed.values["q"], clean.values["q"][order])


def test_latency_shifts_joints_alone(log: Log) -> None:
    feed, clean, _ = feed_of("latency-10ms", log)
    np.testing.assert_allclose(feed.values["q"][5:], clean.values["q"][:-5], atol=1e-9)
    assert np.array_equal(feed.values["q_des"], clean.values["q_des"])


@pytest.mark.parametrize(("name", "by"), [("clock-back-0.5s", -0.5), ("clock-ahead-1s", 1.0)])
def test_clocks_jump(name: str, by: float, log: Log) -> None:
    feed, clean, rows = feed_of(name, log)
    np.testing.assert_allclose(feed.stamps[rows.start :] - clean.stamps[rows.start :], by)
    assert np.array_equal(feed.stamps[: rows.start], clean.stamps[: rows.start])


def test_other_rates(log: Log) -> None:
    feed, _, _ = feed_of("rate-200", log)
    np.testing.assert_allclose(np.diff(feed.stamps), 0.005)
    assert np.array_equal(feed.time, feed.stamps)


def test_what_is_hidden_comes_as_none(log: Log) -> None:
    feed, _, rows = feed_of("tau-missing-2s", log)
    samples = list(feed.samples())
    gone = np.array([sample[6] is None for sample in samples])
    assert np.array_equal(np.flatnonzero(gone), np.arange(rows.start, rows.stop))
    assert not feed.lacks()
    whole, _, _ = feed_of("tau-missing", log)
    assert whole.lacks() == ["tau"]


def test_a_log_without_truth_is_refused() -> None:
    with pytest.raises(GaitError, match="ground truth"):
        Feed.of(make_log(vel_w=None))


def resting_log(seconds: float = 20.0) -> Log:
    """A robot that stands still on level ground, exactly."""
    count, robot = round(500 * seconds), Robot.load("go1")
    still = {"gyro": np.zeros((count, 3)), "accel": np.tile([0.0, 0.0, 9.81], (count, 1))}
    joints = {"q": np.tile(robot.q_stand, (count, 1)), "dq": np.zeros((count, 12)), "tau": np.ones((count, 12))}
    truth = {"pos_w": np.zeros((count, 3)), "vel_w": np.zeros((count, 3))}
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    return Log(
        t=np.arange(count) / 500.0, **still, **joints, q_des=joints["q"].copy(), **truth, quat_wb_wxyz=quat, robot=robot
    )


def test_a_cart_moves_as_its_accelerometer_says() -> None:
    log = resting_log()
    feed = on_cart(1.0)(Feed.of(log), slice(3000, 6000), generator(BY_ID["cart"]))
    accel, velocity = feed.values["accel"][:, 0], feed.truth["vel_w"][:, 0]
    np.testing.assert_allclose(np.cumsum(accel) / 500.0, velocity, atol=0.004)
    np.testing.assert_allclose(np.cumsum(velocity) / 500.0, feed.truth["pos_w"][:, 0], atol=0.004)
    assert velocity.max() == pytest.approx(1.0) and velocity[:3000].max() == 0.0 and velocity[-1] == 0.0
    assert np.array_equal(feed.values["q"], log.q) and np.array_equal(feed.values["gyro"], log.gyro)


def test_swinging_legs_have_the_velocity_of_their_angles() -> None:
    feed = swing_legs(Feed.of(resting_log()), slice(3000, 6000), generator(BY_ID["lying-legs"]))
    slope = np.gradient(feed.values["q"], 1.0 / 500.0, axis=0)
    np.testing.assert_allclose(slope[1:-1], feed.values["dq"][1:-1], atol=0.02)
    assert np.abs(feed.values["dq"][3500:5500]).max() > 3.0 and not feed.values["dq"][:3000].any()
    assert np.abs(feed.values["tau"][4000:5000]).max() < 0.31 and (feed.values["tau"][:3000] == 1.0).all()


def test_a_tilted_start_measures_gravity_in_its_own_axes() -> None:
    feed = start_tilted(30.0, 0.0)(Feed.of(resting_log()), slice(0, 10), generator(BY_ID["start-tilted"]))
    expected = 9.81 * np.array([0.0, np.sin(np.radians(30.0)), np.cos(np.radians(30.0))])
    np.testing.assert_allclose(feed.values["accel"][0], expected, atol=1e-9)
    assert feed.start == "gravity"


def test_a_start_in_motion_begins_at_the_fault(log: Log) -> None:
    feed = start_moving(Feed.of(log), slice(4500, 5000), generator(BY_ID["start-moving"]))
    assert feed.time[0] == log.t[4500] and feed.start == "gravity"
