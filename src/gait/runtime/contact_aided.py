"""The contact-aided filter on rows of samples: judge each, fill in torques, take a step, write what comes out."""

from __future__ import annotations

import math

from gait._compile import kernel, types
from gait.arrays import Array, BoolArray, IntArray
from gait.filters import output
from gait.filters.contact_kernels import MAX_SPEED, MAX_STD, MEMORY, MODEL, Memory, Model, bridge_gap, step_kernel
from gait.filters.start import align, start_covariance
from gait.health import Health
from gait.runtime.buffers import ALIGN, bounds_in, clean_in
from gait.runtime.contact_buffers import LEGS, guard_start, memory_in, model_in, rest_start
from gait.runtime.samples import AFTER_GAP, BLIND, CLEAN, DT, FIRST, GAP, REFUSED, STAMP, Clean, admit
from gait.runtime.velocity_aided import ATTENTIONS, GAP_LENGTH, HEALTH, LONGEST_GAP, PREDICTED, TIME

STARTING, NO_MEASUREMENT, DIVERGED = int(Health.STARTING), int(Health.NO_MEASUREMENT), int(Health.DIVERGED)
CONTACTS = ATTENTIONS
"""Where contacts (L) begin in a row of the output, in the place of the attention."""
_V, _M, _B = types.float64[::1], types.float64[:, ::1], types.boolean[::1]


@kernel(types.void(CLEAN, _M, _V, _V, _V, _V))
def _fill(clean: Clean, gains: Array, row: Array, q: Array, dq: Array, tau: Array) -> None:
    """Joints and torques of the clean sample; nan for legs that cannot be used.

    A torque that was not measured is what the joint's PD loop makes of the tracking error: gains are kp, kd and the
    torque limit (3, J).
    """
    joints = clean.q.size
    for j in range(joints):
        ok = clean.ok[j // 3]
        q[j], dq[j] = (clean.q[j], clean.dq[j]) if ok else (math.nan, math.nan)
        tau[j] = row[7 + 3 * joints + j]
        if not math.isfinite(tau[j]):
            wanted = gains[0, j] * clean.e[j] - gains[1, j] * clean.dq[j]
            tau[j] = max(-gains[2, j], min(gains[2, j], wanted))


@kernel(types.boolean(MODEL, MEMORY, _V, _V))
def _recover(model: Model, memory: Memory, safe: Array, std: Array) -> bool:
    """See that the state is one; if it is not, go back to the last good pose and begin again. True if it had to."""
    R, x, b, P = memory.R, memory.x, memory.b, memory.P
    total = 0.0
    for i in range(3):
        total += R[i, 0] + R[i, 1] + R[i, 2] + x[0, i] + x[1, i] + b[0, i] + b[1, i]
    for i in range(15):
        total += P[i, i]
    speed2 = x[0, 0] * x[0, 0] + x[0, 1] * x[0, 1] + x[0, 2] * x[0, 2]
    # Written so that a nan counts as diverged too.
    if (
        math.isfinite(total)
        and speed2 < MAX_SPEED * MAX_SPEED
        and P[3, 3] + P[4, 4] + P[5, 5] < MAX_STD * MAX_STD
    ):  # fmt: skip
        for i in range(3):
            safe[9 + i] = x[1, i]
            for j in range(3):
                safe[3 * i + j] = R[i, j]
        return False
    x[:] = 0.0
    b[:] = 0.0
    for i in range(3):
        x[1, i] = safe[9 + i]
        for j in range(3):
            R[i, j] = safe[3 * i + j]
    memory.active[:] = False
    memory.contact[:] = False
    start_covariance(x, P, std)
    return True


@kernel(types.void(_V, types.int64[::1], _B, _M, _M))
def run_contact_rows(floats: Array, ints: IntArray, flags: BoolArray, rows: Array, out: Array) -> None:
    """Take rows of samples (N, W) in turn, and write a row (N, O) for each."""
    legs, guard, rest = ints[LEGS], guard_start(ints[LEGS]), rest_start(ints[LEGS])
    joints = 3 * legs
    model, memory = model_in(floats, ints), memory_in(floats, ints, flags)
    bounds, clean = bounds_in(floats, guard, legs, False), clean_in(floats, flags, guard, legs)
    gains, std = floats[rest : rest + 3 * joints].reshape(3, joints), floats[rest + 3 * joints : rest + 3 * joints + 15]
    safe, scratch = floats[rest + 3 * joints + 15 : rest + 3 * joints + 27], floats[rest + 3 * joints + 27 :]
    q, dq, tau = scratch[9 : 9 + joints], scratch[9 + joints : 9 + 2 * joints], scratch[9 + 2 * joints :]
    first_leg = 7 + 4 * joints
    for k in range(rows.shape[0]):
        row, line = rows[k], out[k]
        verdict, bits = admit(bounds, clean, row)
        dt, blind = clean.clock[DT], clean.clock[BLIND] > 0.0
        if verdict == FIRST:
            bits |= STARTING
            if flags[ALIGN]:
                R, x, b, P = memory.R, memory.x, memory.b, memory.P
                mount, arm = model.imu_rotation, model.imu_position
                if blind or not align(R, x, b, P, mount, arm, std, clean.accel, model.gravity):
                    # Not a robot at rest: look again at the next sample.
                    clean.known[0] = False
                    bits |= NO_MEASUREMENT
                else:
                    flags[ALIGN] = False
        elif verdict == AFTER_GAP or (verdict != REFUSED and blind):
            bridge_gap(model, memory, min(dt, LONGEST_GAP))
            bits |= NO_MEASUREMENT
        elif verdict != REFUSED:
            _fill(clean, gains, row, q, dq, tau)
            for leg in range(legs):
                # A flag that is not there is no contact.
                memory.flags[leg] = row[first_leg + legs + leg] > 0.5
            force = row[first_leg : first_leg + legs]
            bits |= step_kernel(model, memory, dt, clean.gyro, clean.accel, q, dq, tau, force, memory.flags)
        if _recover(model, memory, safe, std):
            bits |= DIVERGED
        output.write_row(
            memory.R, memory.x, memory.b, memory.P, model.imu_rotation, model.imu_position, clean.gyro, scratch[:9],
            line[: output.WIDTH],
        )  # fmt: skip
        line[TIME], line[HEALTH], line[GAP_LENGTH] = clean.clock[STAMP], bits, clean.clock[GAP]
        for i in range(6):
            line[PREDICTED + i] = math.nan
        for leg in range(legs):
            line[CONTACTS + leg] = 1.0 if memory.contact[leg] else 0.0
