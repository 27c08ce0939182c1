"""Robots in torch do what the core does where measurements and IMU disagree, at rest, upside down and with noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from needs import extra

torch = pytest.importorskip("torch", reason=extra("torch"))
from test_torch_batch import FIELDS, Samples, difference, reset_both, tensors, walk  # noqa: E402

from gait import Batch, Log, Robot  # noqa: E402
from gait.health import Health  # noqa: E402
from gait.nets import TorchBatch  # noqa: E402
from gait.nets.torch_monitor import follow  # noqa: E402
from gait.samples import SAMPLE  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
SHARES = np.linspace(0.0, 1.0, 5)[:, None]
"""How much of a disturbance each of the five robots meets: the first one none."""
NOT_COVERED = Health.IMU_AXES | Health.BAD_TORQUE | Health.STALE_LEG | Health.IMU_STUCK | Health.IMU_UNITS
Change = Callable[[Samples, int], None]


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).reorder(Robot.load("go1"))


def run(
    batch: Batch,
    ours: TorchBatch,
    log: Log,
    steps: int,
    change: Change,
    *,
    stand: bool = False,
    fields: tuple[str, ...] = FIELDS,
    agree: float = 1e-5,
) -> tuple[Any, np.ndarray]:
    """Change each sample and see that both agree; the core's last states, and how long variances were inflated, s."""
    worst, seen, longest = 0.0, 0, np.zeros(5)
    for k in range(steps):
        given = walk(log, 0 if stand else k)
        change(given, k)
        states = batch.update(k * ours.step_dt, **{name: given[name] for name in fields})
        state = ours.update(**tensors(given, fields))
        seen |= int(np.bitwise_or.reduce(states.health))
        worst = max(worst, *difference(states, state).values())
        longest = np.maximum(longest, ours.monitor.duration.numpy())
    assert worst < agree, worst
    assert not seen & NOT_COVERED, "a check of sensors that torch does not have took part"
    return states, longest


@pytest.mark.parametrize(("method", "size"), [("gait-legs", 4.0), ("gait-legs", 12.0), ("gait", 6.0)])
def test_an_accelerometer_that_is_wrong_for_long(log: Log, method: str, size: float) -> None:
    """What lasts inflates the variances of the velocity; then it is reset."""
    batch, ours = Batch("go1", 5, method, threads=1), TorchBatch("go1", 5, method=method)

    def change(given: Samples, k: int) -> None:
        given["accel"][:, 0] += size * SHARES[:, 0] * (k > 100)

    # The fit of the noise to such errors amplifies the rounding of networks, in velocities to 2e-6 m/s and most in the
    # variance of the position, which adds up what is disputed for a second.
    states, longest = run(batch, ours, log, 650, change, agree=1e-4)
    assert longest[0] < 0.1 and states.resets[0] == 0 and ours.monitor.distrust[0] == 0.0
    if size > 6.0:
        assert states.resets[-1] > 0 and ours.monitor.distrust[-1] > 0.0
    else:
        assert longest.max() > 0.4


def test_a_gyro_that_is_wrong_about_z(log: Log) -> None:
    """Without what the monitor makes of the legs' rate, states differ by 1e-4."""
    batch, ours = Batch("go1", 5, threads=1), TorchBatch("go1", 5)

    def change(given: Samples, k: int) -> None:
        given["gyro"][:, 2] += 0.3 * SHARES[:, 0] * (k > 100)

    run(batch, ours, log, 300, change)


def test_biases_stay_those_of_sensors(log: Log) -> None:
    ours = TorchBatch("go1", 5)
    ours.update(**tensors(walk(log, 0)))
    ours.ekf.gyro_bias[1, 2], ours.ekf.accel_bias[0, 1] = -1.0, 5.0
    state = ours.update(**tensors(walk(log, 1)))
    assert state.gyro_bias[2, 1] == -0.2 and state.accel_bias[1, 0] == 1.5


@pytest.mark.parametrize("method", ["gait-legs", "gait"])
@pytest.mark.parametrize("step_ms", [2.0, 5.0])
def test_robots_at_rest(log: Log, method: str, step_ms: float) -> None:
    """After half a second they have no velocity; one that is moved has."""
    rng = np.random.default_rng(3)
    batch, ours = Batch("go1", 5, method, threads=1), TorchBatch("go1", 5, method=method, step_dt=1e-3 * step_ms)

    def change(given: Samples, k: int) -> None:
        given["gyro"] = 0.005 * rng.normal(size=(5, 3)) + 0.01
        given["accel"] = 0.05 * rng.normal(size=(5, 3)) + np.array([0.2, -0.1, 9.8])
        given["dq"] = 0.01 * rng.normal(size=(5, 12))
        given["q"] = given["q"] + 1e-4 * rng.normal(size=(5, 12))
        given["gyro"][4] *= 20.0 if k * step_ms > 800.0 else 1.0

    run(batch, ours, log, round(1200.0 / step_ms), change, stand=True)
    assert (ours.monitor.resting[:4] > 0.5).all() and ours.monitor.resting[4] == 0.0


@pytest.mark.parametrize("step_ms", [1.0, 2.0, 5.0])
def test_an_imu_with_noise_and_impacts(log: Log, step_ms: float) -> None:
    rng = np.random.default_rng(4)
    batch, ours = Batch("go1", 5, threads=1), TorchBatch("go1", 5, step_dt=1e-3 * step_ms)

    def change(given: Samples, k: int) -> None:
        given["gyro"] += 0.15 * SHARES * rng.normal(size=(5, 3))
        given["accel"] += 2.0 * SHARES * rng.normal(size=(5, 3))
        given["accel"][1, 2] += {70: 60.0, 90: 120.0, 91: -120.0}.get(k, 0.0)
        given["gyro"][2, 1] += {120: 3.5, 130: 8.0}.get(k, 0.0)

    run(batch, ours, log, round(250 * 2.0 / min(step_ms, 2.0)), change)
    assert (ours.sensors.noise[:, -1] > 3.0 * ours.sensors.noise[:, 0]).all()


def test_an_imu_that_is_slower_than_the_samples(log: Log) -> None:
    """Values that repeat for longer than 10 ms leave motion unmeasured."""
    batch, ours = Batch("go1", 5, threads=1), TorchBatch("go1", 5)
    held: Samples = {}

    def change(given: Samples, k: int) -> None:
        if k % 9 == 0:
            held.update({name: given[name].copy() for name in ("gyro", "accel")})
        for name, value in held.items():
            given[name][2:] = value[2:]

    run(batch, ours, log, 200, change)


def test_robots_on_their_back(log: Log) -> None:
    """No foot stands there, so no leg is fused."""
    batch, ours = Batch("go1", 5, threads=1, targets=False), TorchBatch("go1", 5, targets=False)
    turned = np.array([1.0, -1.0, -1.0])

    def change(given: Samples, k: int) -> None:
        given["gyro"][3:] *= turned
        given["accel"][3:] *= turned

    given = walk(log, 0)
    w, x, y, z = given["quat_wb_wxyz"][3:].T
    given["quat_wb_wxyz"][3:] = np.stack([-x, w, z, -y], 1)
    reset_both(batch, ours, [1, 1, 1, 1, 1], given)
    run(batch, ours, log, 150, change, fields=FIELDS[:4])
    assert (ours.ekf.P[3, 3, 3:] > 4.0 * ours.ekf.P[3, 3, :3].max()).all(), "their velocity is not measured"


def test_a_robot_starts_again_with_what_it_knows_of_no_sensor(log: Log) -> None:
    ours, fresh = TorchBatch("go1", 5), TorchBatch("go1", 5)
    rng = np.random.default_rng(5)
    for k in range(100):
        given = tensors(walk(log, k))
        given["accel"] += 3.0 * torch.from_numpy(rng.normal(size=(5, 3)))
        ours.update(**given)
    ours.reset(torch.tensor([True, False, True, False, True]))
    for k in range(100, 130):
        given = tensors(walk(log, k))
        state, want = ours.update(**given), fresh.update(**given)
        assert torch.equal(state.vel_b[::2], want.vel_b[::2]) and torch.equal(state.vel_cov[::2], want.vel_cov[::2])
    assert not torch.equal(state.vel_cov[1::2], want.vel_cov[1::2])


def test_what_lasts_rises_slowly_and_falls_at_once() -> None:
    now = torch.tensor([1.0, -1.0, 0.05, 0.3, -0.3])
    lasting = torch.tensor([0.0, -0.5, 0.5, -0.4, -0.5])
    assert torch.allclose(follow(lasting, now, 0.1), torch.tensor([0.1, -0.6, 0.05, 0.1, -0.3]))
