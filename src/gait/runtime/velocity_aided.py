"""One compiled call a sample: judge it, run the network, run the filter, write what comes out.

The network has a rate of its own. Where samples come at that rate (a fifth of a period of jitter is nothing), each is
one step of the network. Where they come at another, the network's samples are interpolated at its own instants, and the
filter is stopped there to take the network's velocity: nothing is late, and the IMU is used at its full rate.
"""

from __future__ import annotations

import math

import numpy as np

from gait._compile import RUNTIME, kernel, types
from gait.arrays import Array, BoolArray, IntArray
from gait.filters import output
from gait.filters.start import align, start_covariance
from gait.health import Health
from gait.runtime import buffers as at
from gait.runtime.buffers import Singles, bounds_in, clean_in
from gait.runtime.leg_buffers import ROOM, LegRoom, room_in
from gait.runtime.leg_fusion import MEASURED, fuse_legs
from gait.runtime.leg_samples import gather_legs, sense_legs
from gait.runtime.samples import AFTER_GAP, BLIND, DT, FIRST, GAP, REFUSED, STAMP, admit

if RUNTIME == "numba":
    from gait.filters.correction import correct_gyro_bias, correct_velocity
    from gait.filters.propagation import propagate
    from gait.runtime.leg_network import leg_attention_into, leg_reset
    from gait.runtime.network import attention_into, network_reset, network_step
else:
    from gait.runtime.twin import (
        attention_into,
        correct_gyro_bias,
        correct_velocity,
        leg_attention_into,
        leg_reset,
        network_reset,
        network_step,
        propagate,
    )

TIME, HEALTH, GAP_LENGTH, PREDICTED = output.WIDTH, output.WIDTH + 1, output.WIDTH + 2, output.WIDTH + 3
"""Behind the state in a row of the output: stamp, health bits, length of a gap, velocity and log-std of the network."""
ATTENTIONS = PREDICTED + 6
"""Then, on request, the attention (Nt C); of `gait-legs` that of legs to legs (L L), velocity and log-std of each."""
STARTING, NO_MEASUREMENT = int(Health.STARTING), int(Health.NO_MEASUREMENT)
REJECTED, DIVERGED, IMU_SATURATED = int(Health.REJECTED), int(Health.DIVERGED), int(Health.IMU_SATURATED)
# No legged robot moves faster, and a filter less sure than this knows nothing.
MAX_SPEED, MAX_STD, LONGEST_GAP = 30.0, 10.0, 10.0
SWITCH_AFTER, BACK_AFTER = 0.05, 0.5
"""Seconds with a leg out of use until the second network takes over, and without until the first returns."""
_F, _F2, _S, _I, _B = "float64[::1]", "float64[:, ::1]", "float32[::1]", "int64[::1]", "boolean[::1]"
_ALL = f"{_F}, {_S}, {_I}, {_B}"


@kernel(f"void({_ALL}, float64, boolean, boolean)")
def _advance(
    floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, dt: float, blind: bool, struck: bool
) -> None:
    """Carry the filter over `dt` seconds: by the IMU, or blindly, with the velocity held and less and less sure.

    A body that was struck so hard that the IMU could not tell has been accelerated by more than its range. A sample
    that stands for longer than those of the network says less of what happened in between: what a step is off by
    goes with the square of its length, and its density with the power of 3/2.
    """
    turn, x = floats[at.R : at.R + 9].reshape(3, 3), floats[at.X : at.X + 6].reshape(2, 3)
    bias, cov = floats[at.B : at.B + 6].reshape(2, 3), floats[at.P : at.P + 225].reshape(15, 15)
    work, slots = floats[at.WORK : at.WORK + 450].reshape(5, 6, 15), ints[at.SLOTS : at.SLOTS + 12].reshape(6, 2)
    settings = floats[at.SETTINGS : at.SETTINGS + 12]
    noise = settings[0:5]
    clean = clean_in(floats, flags, at.GUARD, ints[at.LEGS])
    gyro, accel = clean.gyro, clean.accel
    if not blind and settings[4] > 0.0 and clean.clock[DT] > settings[10] + settings[11]:
        slow = clean.clock[DT] / settings[10]
        noise = floats[at.SCRATCH + 6 : at.SCRATCH + 11]
        for i in range(4):
            noise[i] = settings[i]
        noise[4] = settings[4] * slow * math.sqrt(slow)
    if blind:
        gyro, accel = floats[at.SCRATCH : at.SCRATCH + 3], floats[at.SCRATCH + 3 : at.SCRATCH + 6]
        noise = floats[at.SCRATCH + 6 : at.SCRATCH + 11]
        for i in range(3):
            gyro[i] = bias[0, i]
            accel[i] = bias[1, i] - settings[5] * turn[2, i]
        # Densities whose variance over the step is (rate dt)^2 and (accel dt)^2.
        pushed = floats[at.GUARD + 1] if struck else settings[6]
        noise[0], noise[1] = settings[7] * math.sqrt(dt), pushed * math.sqrt(dt)
        noise[2], noise[3], noise[4] = settings[2], settings[3], 0.0
    nothing = floats[0:0]
    propagate(
        turn, x, bias, cov, flags[0:0], work, slots, noise, nothing, nothing.reshape(0, 3),
        gyro, accel, settings[5], dt, settings[8] != 0.0, settings[9] != 0.0,
    )  # fmt: skip


@kernel(ROOM(types.float64[::1], types.int64[::1]))
def _room(floats: Array, ints: IntArray) -> LegRoom:
    """What only `gait-legs` keeps."""
    return room_in(floats, ints[at.ROOM], ints[at.LEGS], floats[at.MOUNT : at.MOUNT + 9].reshape(3, 3))


@kernel(f"void({_ALL}, {_S})")
def _weigh(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, predicted: Singles) -> None:
    """Make what the network says a measurement of base_link's velocity with its variances."""
    measured = floats[at.SCRATCH + 32 : at.SCRATCH + 32 + MEASURED]
    if ints[at.ROOM] == 0:
        measured[7] = 0.0
        for i in range(3):
            measured[i] = predicted[i]
            measured[3 + i] = floats[at.SETTINGS + 13] * math.exp(2.0 * np.float64(predicted[3 + i]))
        return
    legs, said = ints[at.LEGS], ints[at.SAMPLES] + 6
    room, clean = _room(floats, ints), clean_in(floats, flags, at.GUARD, legs)
    fuse_legs(
        floats[at.R : at.R + 9].reshape(3, 3), floats[at.X : at.X + 6].reshape(2, 3),
        floats[at.B : at.B + 6].reshape(2, 3), floats[at.P : at.P + 225].reshape(15, 15),
        room.body, floats[at.MOUNT + 9 : at.MOUNT + 12], clean.gyro, clean.accel, floats[at.SETTINGS + 5],
        room.features, singles[said : said + 6 * legs], flags[flags.size - legs :], room.settings, room.work,
        measured, predicted,
    )  # fmt: skip


@kernel(f"boolean({_ALL}, {_S})")
def _correct(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, predicted: Singles) -> bool:
    """Give the filter what the network says: the velocity of base_link, moved to the IMU and into its axes."""
    _weigh(floats, singles, ints, flags, predicted)
    turn, x = floats[at.R : at.R + 9].reshape(3, 3), floats[at.X : at.X + 6].reshape(2, 3)
    bias, cov = floats[at.B : at.B + 6].reshape(2, 3), floats[at.P : at.P + 225].reshape(15, 15)
    work, slots = floats[at.WORK : at.WORK + 450].reshape(5, 6, 15), ints[at.SLOTS : at.SLOTS + 12].reshape(6, 2)
    mount, arm = floats[at.MOUNT : at.MOUNT + 9].reshape(3, 3), floats[at.MOUNT + 9 : at.MOUNT + 12]
    clean = clean_in(floats, flags, at.GUARD, ints[at.LEGS])
    velocity, noise = floats[at.SCRATCH + 11 : at.SCRATCH + 14], floats[at.SCRATCH + 14 : at.SCRATCH + 23].reshape(3, 3)
    w0 = w1 = w2 = 0.0
    for j in range(3):
        rate = clean.gyro[j] - bias[0, j]
        w0 += mount[0, j] * rate
        w1 += mount[1, j] * rate
        w2 += mount[2, j] * rate
    measured = floats[at.SCRATCH + 32 : at.SCRATCH + 32 + MEASURED]
    v0 = measured[0] + (w1 * arm[2] - w2 * arm[1])
    v1 = measured[1] + (w2 * arm[0] - w0 * arm[2])
    v2 = measured[2] + (w0 * arm[1] - w1 * arm[0])
    s0, s1, s2 = measured[3], measured[4], measured[5]
    for i in range(3):
        velocity[i] = mount[0, i] * v0 + mount[1, i] * v1 + mount[2, i] * v2
        for j in range(3):
            noise[i, j] = (
                mount[0, i] * s0 * mount[0, j] + mount[1, i] * s1 * mount[1, j] + mount[2, i] * s2 * mount[2, j]
            )
    if measured[7] > 0.0:
        correct_gyro_bias(turn, x, bias, cov, flags[0:0], work, slots, mount[2], measured[6], measured[7])
    return correct_velocity(turn, x, bias, cov, flags[0:0], work, slots, velocity, noise)


@kernel(f"void({_ALL}, {_S}, float64)")
def _mix(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, features: Singles, part: float) -> None:
    """Features and tokens at a moment between the last sample (part 0) and this one (part 1)."""
    count, legs, tokens = ints[at.FEATURES], ints[at.LEGS], ints[at.TOKENS]
    last = singles[ints[at.SAMPLES] : ints[at.SAMPLES] + count]
    now = singles[ints[at.SAMPLES] + count : ints[at.SAMPLES] + 2 * count]
    for i in range(count):
        features[i] = now[i] if part == 1.0 else last[i] + np.float32(part) * (now[i] - last[i])
    clean = clean_in(floats, flags, at.GUARD, legs)
    seen = flags[flags.size - tokens :]
    for token in range(tokens):
        seen[token] = True
    if ints[at.BY_LEG]:
        seen[0] = seen[1] = clean.clock[BLIND] == 0.0
        for leg in range(legs):
            seen[2 + leg] = clean.ok[leg]


@kernel(f"int64({_ALL}, {_F})")
def _gather(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, row: Array) -> int:
    """The features of the clean sample; those of the one before move back a place. Returns health bits."""
    count, legs = ints[at.FEATURES], ints[at.LEGS]
    clean, start = clean_in(floats, flags, at.GUARD, legs), ints[at.SAMPLES]
    if ints[at.ROOM]:
        return gather_legs(_room(floats, ints), clean, row, ints[at.TARGETS] != 0)
    for i in range(count):
        singles[start + i] = singles[start + count + i]
    now = singles[start + count : start + 2 * count]
    for i in range(3):
        now[i], now[3 + i] = clean.gyro[i], clean.accel[i]
    for j in range(3 * legs):
        now[6 + j], now[6 + 3 * legs + j] = clean.q[j], clean.dq[j]
        if ints[at.TARGETS]:
            now[6 + 6 * legs + j] = clean.e[j]
    return 0


@kernel(f"void({_ALL}, float64, float64)")
def _predict(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, part: float, moment: float) -> None:
    """One step of the network in use at a moment between the last sample (part 0) and this one (part 1)."""
    n, start, count = at.NETWORK + (5 if flags[at.SPARE] else 0), ints[at.SAMPLES], ints[at.FEATURES]
    if ints[at.ROOM]:
        legs, size = ints[at.LEGS], flags.size
        sense_legs(
            _room(floats, ints), clean_in(floats, flags, at.GUARD, legs), part, moment,
            ints[ints[n + 3] : ints[n + 4]], singles[ints[n] : ints[n + 1]], singles[ints[n + 1] : ints[n + 2]],
            flags[size - legs :], flags[size - 2 * legs : size - legs], singles[start + 6 : start + 6 + 6 * legs],
        )  # fmt: skip
        return
    _mix(floats, singles, ints, flags, singles[start + 2 * count : start + 3 * count], part)
    network_step(
        ints[ints[n + 3] : ints[n + 4]], singles[ints[n] : ints[n + 1]], singles[ints[n + 1] : ints[n + 2]],
        singles[start + 2 * count : start + 3 * count], flags[flags.size - ints[at.TOKENS] :],
        singles[start + 3 * count : start + 3 * count + 6],
    )  # fmt: skip


@kernel(f"void({_ALL})")
def _forget(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray) -> None:
    """The memory of the network in use ends here: it knows only samples that follow each other."""
    n = at.NETWORK + (5 if flags[at.SPARE] else 0)
    sizes, memory = ints[ints[n + 3] : ints[n + 4]], singles[ints[n + 1] : ints[n + 2]]
    if ints[at.ROOM] == 0:
        network_reset(sizes, memory)
        return
    leg_reset(sizes, memory)
    _room(floats, ints).motion.begun[0] = 0.0
    for i in range(flags.size - 2 * ints[at.LEGS], flags.size):
        flags[i] = False


@kernel(f"void({_ALL}, boolean, float64)")
def _choose(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, whole: bool, dt: float) -> None:
    """Change to the network that was trained with a leg hidden while one is out of use, and back."""
    floats[at.BROKEN] = 0.0 if whole else floats[at.BROKEN] + dt
    floats[at.WHOLE] = floats[at.WHOLE] + dt if whole else 0.0
    late = floats[at.WHOLE] > BACK_AFTER if flags[at.SPARE] else floats[at.BROKEN] > SWITCH_AFTER
    if late and ints[at.NETWORK + 5] > 0:
        flags[at.SPARE] = not flags[at.SPARE]
        _forget(floats, singles, ints, flags)


@kernel(f"int64({_ALL}, {_F}, int64, int64)")
def _step(
    floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, row: Array, verdict: int, bits: int
) -> int:
    """Carry the state to the sample that was just admitted; returns health bits."""
    legs, count = ints[at.LEGS], ints[at.FEATURES]
    clean = clean_in(floats, flags, at.GUARD, legs)
    predicted = singles[ints[at.SAMPLES] + 3 * count : ints[at.SAMPLES] + 3 * count + 6]
    period, tolerance, hold = floats[at.SETTINGS + 10], floats[at.SETTINGS + 11], floats[at.SETTINGS + 12]
    t, dt = clean.clock[STAMP], clean.clock[DT]
    blind = clean.clock[BLIND] > 0.0
    struck = (bits & IMU_SATURATED) != 0
    bits |= _gather(floats, singles, ints, flags, row)
    usable = clean.known[1] and clean.clock[BLIND] <= hold
    standing, whole = False, True
    for leg in range(legs):
        standing = standing or clean.ok[leg]
        whole = whole and clean.ok[leg]
    usable = usable and standing
    _choose(floats, singles, ints, flags, whole, dt)
    if verdict == FIRST and flags[at.ALIGN]:
        turn, x = floats[at.R : at.R + 9].reshape(3, 3), floats[at.X : at.X + 6].reshape(2, 3)
        bias, cov = floats[at.B : at.B + 6].reshape(2, 3), floats[at.P : at.P + 225].reshape(15, 15)
        mount, arm = floats[at.MOUNT : at.MOUNT + 9].reshape(3, 3), floats[at.MOUNT + 9 : at.MOUNT + 12]
        std, gravity = floats[at.START : at.START + 15], floats[at.SETTINGS + 5]
        if blind or not align(turn, x, bias, cov, mount, arm, std, clean.accel, gravity):
            # Not a robot at rest: look again at the next sample.
            clean.known[0] = False
            return bits | STARTING | NO_MEASUREMENT
        flags[at.ALIGN] = False
    if verdict == AFTER_GAP:
        _advance(floats, singles, ints, flags, min(dt, LONGEST_GAP), True, False)
    if verdict != FIRST and verdict != AFTER_GAP and usable:
        covered = t - dt
        while floats[at.CLOCK] <= t + tolerance:
            late = abs(t - floats[at.CLOCK]) <= tolerance
            moment = t if late else floats[at.CLOCK]
            if moment > covered:
                _advance(floats, singles, ints, flags, moment - covered, blind, struck)
                covered = moment
            _predict(floats, singles, ints, flags, 1.0 if late else (moment - t + dt) / dt, moment)
            if _correct(floats, singles, ints, flags, predicted):
                flags[at.MEASURED] = True
            else:
                bits |= REJECTED
            floats[at.CLOCK] = moment + period
            if floats[at.CLOCK] <= moment:
                # Stamps so large that a period is lost in their rounding.
                break
        if t > covered:
            _advance(floats, singles, ints, flags, t - covered, blind, struck)
    else:
        if verdict != FIRST and verdict != AFTER_GAP:
            _advance(floats, singles, ints, flags, dt, blind, struck)
        _forget(floats, singles, ints, flags)
        floats[at.CLOCK] = t + period
        if usable:
            _predict(floats, singles, ints, flags, 1.0, t)
            if verdict == AFTER_GAP:
                if _correct(floats, singles, ints, flags, predicted):
                    flags[at.MEASURED] = True
                else:
                    bits |= REJECTED
        else:
            bits |= NO_MEASUREMENT
    return bits


@kernel(f"boolean({_F})")
def _recover(floats: Array) -> bool:
    """See that the state is one; if it is not, go back to the last good pose and begin again. True if it had to."""
    x, cov = floats[at.X : at.X + 6].reshape(2, 3), floats[at.P : at.P + 225].reshape(15, 15)
    total = 0.0
    for i in range(at.P):
        total += floats[i]
    for i in range(15):
        total += cov[i, i]
    speed2 = x[0, 0] * x[0, 0] + x[0, 1] * x[0, 1] + x[0, 2] * x[0, 2]
    # Written so that a nan counts as diverged too.
    if (
        math.isfinite(total)
        and speed2 < MAX_SPEED * MAX_SPEED
        and cov[3, 3] + cov[4, 4] + cov[5, 5] < MAX_STD * MAX_STD
    ):
        for i in range(9):
            floats[at.SAFE + i] = floats[at.R + i]
        for i in range(3):
            floats[at.SAFE + 9 + i] = x[1, i]
        return False
    for i in range(9):
        floats[at.R + i] = floats[at.SAFE + i]
    for i in range(3):
        x[0, i] = 0.0
        x[1, i] = floats[at.SAFE + 9 + i]
    for i in range(6):
        floats[at.B + i] = 0.0
    start_covariance(x, cov, floats[at.START : at.START + 15])
    return True


@kernel(f"void({_ALL}, {_F2}, {_F2})")
def run_rows(floats: Array, singles: Singles, ints: IntArray, flags: BoolArray, rows: Array, out: Array) -> None:
    """Take rows of samples (N, W) in turn, and write a row (N, O) for each."""
    legs, count = ints[at.LEGS], ints[at.FEATURES]
    # A leg without joint targets is of use to `gait-legs`: it may have torques.
    targets = ints[at.TARGETS] != 0 and ints[at.ROOM] == 0
    bounds, clean = bounds_in(floats, at.GUARD, legs, targets), clean_in(floats, flags, at.GUARD, legs)
    predicted = singles[ints[at.SAMPLES] + 3 * count : ints[at.SAMPLES] + 3 * count + 6]
    turn, x = floats[at.R : at.R + 9].reshape(3, 3), floats[at.X : at.X + 6].reshape(2, 3)
    bias, cov = floats[at.B : at.B + 6].reshape(2, 3), floats[at.P : at.P + 225].reshape(15, 15)
    mount, arm = floats[at.MOUNT : at.MOUNT + 9].reshape(3, 3), floats[at.MOUNT + 9 : at.MOUNT + 12]
    scratch = floats[at.SCRATCH + 23 : at.SCRATCH + 32]
    for k in range(rows.shape[0]):
        verdict, bits = admit(bounds, clean, rows[k])
        if verdict != REFUSED:
            bits = _step(floats, singles, ints, flags, rows[k], verdict, bits)
            if _recover(floats):
                bits |= DIVERGED
        if not flags[at.MEASURED]:
            bits |= STARTING
        row = out[k]
        output.write_row(turn, x, bias, cov, mount, arm, clean.gyro, scratch, row[: output.WIDTH])
        row[TIME], row[HEALTH], row[GAP_LENGTH] = clean.clock[STAMP], bits, clean.clock[GAP]
        for i in range(6):
            row[PREDICTED + i] = predicted[i]
        if ints[at.ATTENTION]:
            n = at.NETWORK + (5 if flags[at.SPARE] else 0)
            sizes, memory = ints[ints[n + 3] : ints[n + 4]], singles[ints[n + 1] : ints[n + 2]]
            if ints[at.ROOM]:
                leg_attention_into(sizes, memory, flags[flags.size - legs :], row[ATTENTIONS:])
                for i in range(6 * legs):
                    row[row.size - 6 * legs + i] = singles[ints[at.SAMPLES] + 6 + i]
            else:
                attention_into(sizes, memory, row[ATTENTIONS:])
