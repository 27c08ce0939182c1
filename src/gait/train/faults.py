"""What a real robot's sensors do to a recording, drawn for each episode: without, a network would be overconfident.

Ranges bracket what was measured on real robots (docs/realism.md): none of the figures is the benchmark twin's. Encoders
sit on the motor's side of gears that have play and give way; joint velocities are filtered, differenced or quantised;
joints are read later than the IMU; links, feet and torques differ from their description; the IMU has biases, scales
and a rotation, rings after impacts, and is filtered, aliased or averaged; samples come at 100 to 500 Hz with jitter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.log.log import Log
from gait.robot import Robot

GRAVITY = 9.81
SENSORS = ("gyro", "accel", "q", "dq", "q_des", "tau")


@dataclass(frozen=True)
class FaultRanges:
    """How large faults may be: at most, and evenly, unless it says standard deviation."""

    joint_zero: float = 0.012
    """Radians, standard deviation."""
    link: float = 0.01
    """Length of a link relative to the described one, standard deviation."""
    foot_radius: float = 0.2
    """Radius of the feet relative to the described one, either way."""
    flexure: float = 0.02
    """Radians by which a joint gives way under a torque of a quarter of weight times leg length; half of the robots."""
    backlash: float = 0.004
    """Radians of play in a joint, either way; half of the robots."""
    torque_gain: float = 0.1
    """Standard deviation."""
    torque_offset: float = 0.03
    """Share of a quarter of weight times leg length, standard deviation."""
    torque_friction: float = 0.04
    """Dry friction that the torque reading contains, as such a share, either way."""
    angle_step: tuple[float, float] = (1e-5, 5e-4)
    """Quantisation of joint angles, rad, evenly in the logarithm."""
    joint_delay: float = 0.008
    """Latency of joint readings, s; of `late_share` of the robots, `most_delay`."""
    most_delay: float = 0.02
    late_share: float = 0.15
    velocity_lag: tuple[float, float] = (0.001, 0.015)
    """Time constant of the low-pass on joint velocities, s, evenly in the logarithm; half of the robots have one."""
    delay_jitter: float = 0.004
    """How much that latency changes from moment to moment, s; half of the robots."""
    velocity_noise: float = 0.3
    """White noise of a joint velocity, rad/s; most robots have much less."""
    velocity_drift: float = 0.25
    """Noise of a joint velocity that lasts for 10 to 60 ms, rad/s: feet that creep; most robots have much less."""
    vibration: float = 0.006
    """Of the motor's side at 25 to 55 Hz, rad, which the foot does not make; two thirds of the robots."""
    velocity_step: float = 0.05
    """Quantisation of joint velocities, rad/s; a quarter of the robots."""
    differenced_share: float = 0.2
    """Share of the robots whose joint velocities are differences of quantised angles."""
    gyro_noise: float = 0.02
    """Of a sample, rad/s."""
    accel_noise: float = 0.4
    """Of a sample, m/s^2."""
    gyro_bias: float = 0.01
    """Rad/s, standard deviation."""
    accel_bias: float = 0.15
    """m/s^2, standard deviation."""
    imu_scale: float = 0.015
    """Relative, standard deviation."""
    imu_turn: float = 0.012
    """How far the IMU is turned against its description, rad, about each axis, standard deviation."""
    ringing: float = 0.3
    """Amplitude after an impact as a share of it; 15 to 100 Hz, gone after 10 to 60 ms; half of the robots."""
    gaps: float = 10.0
    """Gaps in the IMU's samples a second, 10 to 45 ms each, interpolated or held; a third of the robots."""
    imu_cutoff: tuple[float, float] = (20.0, 200.0)
    """Low-pass of the IMU, Hz, evenly in the logarithm; a third of the robots."""
    accel_window: tuple[float, float] = (0.02, 0.12)
    """Centred window over which the recorded accelerometer was smoothed, s; a sixth of the robots."""
    rates: tuple[tuple[float, float], ...] = ((500.0, 0.45), (400.0, 0.1), (250.0, 0.1), (200.0, 0.25), (100.0, 0.1))
    """Sample rates in Hz and how often they come; half of the slower ones average the IMU over a sample."""
    jitter: float = 0.0007
    """Of the time at which a sample is taken, s."""


MILD = FaultRanges(
    joint_zero=0.01, link=0.008, foot_radius=0.0, flexure=0.0, backlash=0.0, torque_gain=0.06, torque_offset=0.0,
    torque_friction=0.022, angle_step=(1e-5, 1e-4), joint_delay=0.006, late_share=0.0, velocity_lag=(0.0008,
    0.0032), velocity_noise=0.02, delay_jitter=0.0, velocity_drift=0.0, vibration=0.0, gaps=0.0,
    velocity_step=0.0, differenced_share=0.0, gyro_noise=0.01, accel_noise=0.1, gyro_bias=0.003, accel_bias=0.1,
    imu_scale=0.0, imu_turn=0.008, ringing=0.0, imu_cutoff=(1e6, 1e6), accel_window=(0.002, 0.002), rates=((500.0,
    1.0),), jitter=0.001,
)  # fmt: skip
"""A well-kept robot in ordinary order."""
MILD_SHARE = 0.5
"""Of the episodes of a training: a network must distinguish good robots from bad ones by its inputs."""


class Faulty(NamedTuple):
    """A recording as a robot with faults would have made it."""

    log: Log
    robot: Robot
    """With links as a faulty description has them."""
    late: float
    """Delay of the joint readings in seconds, filters included."""


def with_faults(log: Log, robot: Robot, rng: np.random.Generator, ranges: FaultRanges | None = None) -> Faulty:
    """The Log with faults on its sensors; its ground truth is unchanged."""
    r, dt = ranges or FaultRanges(), 1.0 / log.rate
    q, dq, tau = _drives(log, robot, rng, r, dt)
    q, dq, late = _readings(q, dq, rng, r, dt)
    delay = rng.uniform(0.0, r.most_delay if rng.random() < r.late_share else r.joint_delay)
    varying = delay + _some(rng) * r.delay_jitter * rng.uniform(0.0, 1.0, len(q))
    joints = {"q": delayed(q + rng.normal(0.0, r.joint_zero, q.shape[1]), varying, dt), "dq": delayed(dq, varying, dt)}
    if log.tau is not None:
        joints["tau"] = delayed(tau, varying, dt)
    gyro, accel = _with_gaps(_imu(log, rng, r, dt), _some(rng, 1.0 / 3.0) * r.gaps, rng, dt)
    taken = _sampled(log.replace(gyro=gyro, accel=accel, **joints), rng, r, dt)
    links = [rng.normal(1.0, r.link, (len(leg.axes), 1)) for leg in robot.legs]
    radius = 1.0 + rng.uniform(-1.0, 1.0) * r.foot_radius
    return Faulty(taken, robot.with_links(links, radius), late + delay)


def _some(rng: np.random.Generator, share: float = 0.5) -> float:
    """0 for those robots that do not have a fault, else how large it is, from 0 to 1."""
    return float(rng.random() < share) * float(rng.random())


def _drives(log: Log, robot: Robot, rng: np.random.Generator, r: FaultRanges, dt: float) -> tuple[Array, Array, Array]:
    """Angles, velocities and torques on the motor's side of the gears (N, J)."""
    joints, load = log.q.shape[1], 0.25 * robot.mass * GRAVITY * robot.leg_length
    tau = np.zeros_like(log.dq) if log.tau is None else log.tau
    bent = _some(rng) * r.flexure / load * lagged(tau, 0.003, dt)
    bent = bent + _some(rng) * r.backlash * np.tanh(tau / (0.05 * load))
    bent = bent + _some(rng, 2.0 / 3.0) * r.vibration * _hum(log.q.shape, rng, dt)
    friction = rng.uniform(-1.0, 1.0) * r.torque_friction * load * np.tanh(log.dq / 0.1)
    read = tau * rng.normal(1.0, r.torque_gain, joints) + rng.normal(0.0, r.torque_offset * load, joints) + friction
    return log.q + bent, log.dq + np.gradient(bent, dt, axis=0), read


def _hum(shape: tuple[int, ...], rng: np.random.Generator, dt: float) -> Array:
    """Oscillations of unit variance (N, J) in a narrow band, each joint with amplitudes and phases that come and go."""
    frequency, time = rng.uniform(25.0, 55.0), rng.uniform(0.05, 0.2)
    turning = 2.0 * np.pi * frequency * dt * np.arange(shape[0])[:, None]
    parts = lagged(rng.normal(0.0, np.sqrt(2.0 * time / dt), (shape[0], 2 * shape[1])), time, dt)
    return np.asarray(parts[:, : shape[1]] * np.cos(turning) + parts[:, shape[1] :] * np.sin(turning))


def _readings(q: Array, dq: Array, rng: np.random.Generator, r: FaultRanges, dt: float) -> tuple[Array, Array, float]:
    """Angles and velocities as drives report them (N, J), and the latency of the velocities, s."""
    step = float(np.exp(rng.uniform(*np.log(r.angle_step))))
    coarse = step * np.round(q / step)
    lag = float(np.exp(rng.uniform(*np.log(r.velocity_lag))))
    late = 0.0
    if rng.random() < r.differenced_share:
        dq, late, lag = np.diff(coarse, axis=0, prepend=coarse[:1]) / dt, 0.5 * dt, max(lag, 0.003)
    elif rng.random() < 0.5:
        lag = 0.0
    if lag > 0.0:
        dq, late = lagged(dq, lag, dt), late + lag
    dq = dq + rng.normal(0.0, r.velocity_noise * rng.random() ** 2, dq.shape)
    time = rng.uniform(0.01, 0.06)
    slow = rng.normal(0.0, r.velocity_drift * rng.random() ** 2 * np.sqrt(2.0 * time / dt), dq.shape)
    dq = dq + lagged(slow, time, dt)
    fine = _some(rng, 0.25) * r.velocity_step
    return coarse, fine * np.round(dq / fine) if fine > 1e-4 else dq, late


def _imu(log: Log, rng: np.random.Generator, r: FaultRanges, dt: float) -> tuple[Array, Array]:
    """Gyro and accelerometer (N, 3)."""
    cutoff = np.exp(rng.uniform(*np.log(r.imu_cutoff))) if rng.random() < 1.0 / 3.0 else np.inf
    turn, ringing = lie.so3_exp(rng.normal(0.0, r.imu_turn, 3)), _some(rng) * r.ringing
    noise = {"gyro": (r.gyro_noise, r.gyro_bias), "accel": (r.accel_noise, r.accel_bias)}
    found = []
    for name, (white, bias) in noise.items():
        values = getattr(log, name) @ turn
        values = values + ringing * _rung(values, rng, dt)
        values = lagged(values, 1.0 / (2.0 * np.pi * cutoff), dt)
        values = values * (1.0 + rng.normal(0.0, r.imu_scale, 3)) + rng.normal(0.0, bias, 3)
        found.append(values + rng.normal(0.0, white * rng.random() ** 2, values.shape))
    window = round(rng.uniform(*r.accel_window) / dt) if rng.random() < 1.0 / 6.0 else 1
    smooth = averaged_over(found[1], window)[window // 2 :]
    return found[0], np.concatenate([smooth, np.repeat(smooth[-1:], len(found[1]) - len(smooth), axis=0)])


def _with_gaps(imu: tuple[Array, Array], often: float, rng: np.random.Generator, dt: float) -> tuple[Array, Array]:
    """Gyro and accelerometer with samples lost `often` a second, and filled in by the recorder."""
    count = len(imu[0])
    known = np.ones(count, dtype=bool)
    for start in rng.integers(count, size=rng.poisson(often * count * dt)):
        known[start : start + int(rng.uniform(0.01, 0.045) / dt)] = False
    known[0] = True
    rows, kept, held = np.arange(count), np.flatnonzero(known), rng.random() < 0.5
    last = kept[np.searchsorted(kept, rows, side="right") - 1]
    gyro, accel = (
        one[last] if held else np.stack([np.interp(rows, kept, x[kept]) for x in one.T], axis=1) for one in imu
    )
    return gyro, accel


def _rung(values: Array, rng: np.random.Generator, dt: float) -> Array:
    """How a body rings after what is quick in values (N, 3), each axis with those of the others."""
    frequency, decay = np.exp(rng.uniform(*np.log((15.0, 100.0)))), np.exp(rng.uniform(*np.log((0.01, 0.06))))
    after = np.arange(dt, 5.0 * decay, dt)
    kernel = np.exp(-after / decay) * np.sin(2.0 * np.pi * frequency * after)
    quick = (values - lagged(values, 0.01, dt)) @ rng.normal(0.0, 0.6, (3, 3))
    return convolved(quick, kernel)


def _sampled(log: Log, rng: np.random.Generator, r: FaultRanges, dt: float) -> Log:
    """The sensors at another rate and with jitter, back at the instants of the Log as estimators interpolate them."""
    rates, chances = np.array(r.rates).T
    rate, jitter = float(rng.choice(rates, p=chances)), r.jitter * rng.random()
    now = log.t - log.t[0]
    stamps = np.arange(0.0, now[-1] + 0.5 * dt, 1.0 / rate)
    taken = np.clip(stamps + rng.uniform(-jitter, jitter, len(stamps)), 0.0, now[-1])
    averaged = rate < 0.99 / dt and rng.random() < 0.5
    arrays = {}
    for name in SENSORS:
        values = getattr(log, name)
        if values is None:
            continue
        if averaged and name in ("gyro", "accel"):
            values = averaged_over(values, round(1.0 / (rate * dt)))
        held = np.stack([np.interp(taken, now, column) for column in values.T])
        arrays[name] = np.stack([np.interp(now, stamps, column) for column in held], axis=1)
    return log.replace(**arrays)


def averaged_over(values: Array, count: int) -> Array:
    """The mean over the last `count` rows (N, C)."""
    padded = np.concatenate([np.repeat(values[:1], count - 1, axis=0), values])
    total = np.cumsum(np.concatenate([np.zeros_like(values[:1]), padded]), axis=0)
    return np.asarray((total[count:] - total[:-count]) / count)


def convolved(values: Array, kernel: Array) -> Array:
    """Rows (N, C) through a causal kernel, zero before the first."""
    size = 1 << (len(values) + len(kernel) - 2).bit_length()
    product = np.fft.rfft(values, size, axis=0) * np.fft.rfft(kernel, size)[:, None]
    return np.asarray(np.fft.irfft(product, size, axis=0)[: len(values)])


def lagged(values: Array, time: float, dt: float) -> Array:
    """Rows (N, C) through a first-order low-pass of that time constant, s, at rest before the first."""
    if time < 0.05 * dt:
        return values
    share = 1.0 - np.exp(-dt / time)
    kernel = share * (1.0 - share) ** np.arange(int(np.ceil(10.0 * time / dt)) + 1)
    return np.asarray(values[0] + convolved(values - values[0], kernel))


def delayed(values: Array, seconds: float | Array, dt: float) -> Array:
    """Rows (N, C) as they were some time before, one for all or for each (N,), linearly between samples."""
    now = np.arange(len(values)) * dt
    return np.stack([np.interp(now - seconds, now, column) for column in values.T], axis=1)
