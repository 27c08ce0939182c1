"""From a clean sample to the velocities of the legs: torques, samples at the network's instants, features, network."""

from __future__ import annotations

from gait._compile import RUNTIME, kernel, types
from gait.arrays import Array, BoolArray, IntArray
from gait.health import FIRST_LEG
from gait.nets.leg_features import SHARED, leg_features_into
from gait.runtime.buffers import Singles
from gait.runtime.leg_buffers import ROOM, TAU_MARGIN, LegRoom
from gait.runtime.samples import BAD_SAMPLE, CLEAN, DT, STALE_LEG, Clean

if RUNTIME == "numba":
    from gait.runtime.leg_network import leg_step
else:
    from gait.runtime.twin import leg_step

_V, _S, _I, _B = types.float64[::1], types.float32[::1], types.int64[::1], types.boolean[::1]


@kernel(types.int64(ROOM, CLEAN, _V, types.boolean))
def gather_legs(room: LegRoom, clean: Clean, row: Array, forces: bool) -> int:
    """The clean sample; the one before moves back a place. Returns health bits.

    A torque that was not measured is what the joint's PD loop makes of the tracking error. One that is missing for a
    moment stays as it was; then the leg is out of use.
    """
    joints = clean.q.size
    last, now = room.samples[0], room.samples[1]
    for i in range(now.size):
        last[i] = now[i]
    for i in range(3):
        now[i], now[3 + i] = clean.gyro[i], clean.accel[i]
    for j in range(joints):
        now[SHARED + j], now[SHARED + joints + j] = clean.q[j], clean.dq[j]
    bits = 0
    if not forces:
        return bits
    for leg in range(clean.ok.size):
        measured, aimed = True, True
        for j in range(3 * leg, 3 * leg + 3):
            # Written so that a nan is not measured either.
            measured = measured and abs(row[7 + 3 * joints + j]) <= TAU_MARGIN * room.gains[2, j]
            aimed = aimed and abs(row[7 + 2 * joints + j]) < 100.0
        room.age[leg] = 0.0 if measured or aimed else room.age[leg] + clean.clock[DT]
        if clean.ok[leg] and room.age[leg] > room.clock[1]:
            clean.ok[leg] = False
            bits |= STALE_LEG | BAD_SAMPLE | (1 << (FIRST_LEG + leg))
        for j in range(3 * leg, 3 * leg + 3):
            if measured:
                now[SHARED + 2 * joints + j] = row[7 + 3 * joints + j]
            elif aimed and clean.ok[leg]:
                wanted = room.gains[0, j] * clean.e[j] - room.gains[1, j] * clean.dq[j]
                now[SHARED + 2 * joints + j] = max(-room.gains[2, j], min(room.gains[2, j], wanted))
    return bits


@kernel(types.void(ROOM, CLEAN, types.float64, types.float64, _I, _S, _S, _B, _B, _S))
def sense_legs(
    room: LegRoom, clean: Clean, part: float, moment: float, sizes: IntArray, weights: Singles, memory: Singles,
    seen: BoolArray, before: BoolArray, said: Singles,
) -> None:  # fmt: skip
    """One step of the network at a moment between the last sample (part 0) and this one (part 1)."""
    joints, motion = clean.q.size, room.motion
    last, now, mixed = room.samples[0], room.samples[1], room.samples[2]
    for i in range(now.size):
        mixed[i] = now[i] if part == 1.0 else last[i] + part * (now[i] - last[i])
    q, dq = mixed[SHARED : SHARED + joints], mixed[SHARED + joints : SHARED + 2 * joints]
    tau = mixed[SHARED + 2 * joints :]
    for leg in range(seen.size):
        seen[leg] = clean.ok[leg]
        if not before[leg]:
            # Back in use: it does not accelerate from where it was left.
            for j in range(3 * leg, 3 * leg + 3):
                motion.dq[j], motion.ddq[j], motion.tau[j] = dq[j], 0.0, tau[j]
    leg_features_into(
        room.body, motion, mixed[0:3], mixed[3:6], q, dq, tau, moment - room.clock[0], room.features
    )  # fmt: skip
    leg_step(sizes, weights, memory, room.features, seen, before, said)
    room.clock[0] = moment
    for leg in range(seen.size):
        before[leg] = seen[leg]
