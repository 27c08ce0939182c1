"""One compiled step of the contact-aided filter: legs to contacts, IMU and feet to state, state to output.

The filter's own body frame is the IMU's; what comes out is base_link. `contact_aided.py` is the object around it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gait._compile import kernel, types
from gait.arrays import AnyArray, Array, BoolArray
from gait.filters import contacts, correction, output, propagation
from gait.health import Health
from gait.robot import dynamics, kinematics

FROM_TORQUE, FROM_FORCE, FROM_FLAGS = 0, 1, 2
SLIP, BAD_SAMPLE = int(Health.SLIP), int(Health.BAD_SAMPLE)
NO_MEASUREMENT, REJECTED = int(Health.NO_MEASUREMENT), int(Health.REJECTED)
STARTING, TIME_GAP, DIVERGED = int(Health.STARTING), int(Health.TIME_GAP), int(Health.DIVERGED)
# No legged robot moves faster, and a filter less sure than this knows nothing.
MAX_SPEED, MAX_STD = 30.0, 10.0


class Model(NamedTuple):
    """What the compiled step knows and never changes."""

    offsets: Array
    signs: Array
    inertial: Array
    armature: Array
    imu_rotation: Array
    """IMU axes in the base frame (3, 3)."""
    imu_position: Array
    noise: Array
    kin_cov: Array
    """Covariance of forward kinematics for each foot (L, 3, 3)."""
    radius: float
    """Foot radius, zero where rolling is not modelled."""
    weight: float
    touch_down: float
    lift_off: float
    smoothing: float
    touch_down_dwell: float
    lift_off_dwell: float
    contact_std: float
    slip_speed: float
    """Infinite where slip rejection is off."""
    slip_inflation: float
    gravity: float
    exact_mean: bool
    exact_phi: bool
    max_gap: float
    gap_accel: float
    gap_rate: float
    contact_source: int


class Memory(NamedTuple):
    """What the compiled step keeps from sample to sample, and its buffers."""

    R: Array
    x: Array
    b: Array
    P: Array
    active: BoolArray
    work: Array
    slots: AnyArray
    contact: BoolArray
    waiting: Array
    dq: Array
    """Joint velocities of the last sample (J,), nan where there is none."""
    ddq: Array
    """Joint accelerations, smoothed (J,)."""
    tau: Array
    """Joint torques, smoothed alike (J,)."""
    walk: Array
    """Contact noise density of each foot (L,)."""
    roll: Array
    """Velocity of each contact point in the IMU frame (L, 3)."""
    feet: Array
    """Contact points in the IMU frame (L, 3)."""
    scratch: Array
    """(8, 3)"""
    jac: Array
    gap_noise: Array
    """Process noise of a gap (5,); the last stays zero."""
    measured: BoolArray
    """Whether a foot has measured anything since the start (1,)."""
    flags: BoolArray
    """Contacts as they are told (L,)."""


class Out(NamedTuple):
    """What comes out, one row for each sample."""

    rows: Array
    """As `output.py` lays them out (N, WIDTH)."""
    health: AnyArray
    contact: BoolArray


def _example(legs: int = 1) -> tuple[Model, Memory, Out]:
    """Instances whose types are the signature of the compiled functions."""
    m3, row = np.zeros((3, 3)), np.zeros(3)
    model = Model(
        np.zeros((legs, 4, 3)), np.zeros((legs, 3)), np.zeros((legs, 3, 10)), row, m3, row, np.zeros(4),
        np.zeros((legs, 3, 3)), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, True, True, 0.0, 0.0, 0.0, 0,
    )  # fmt: skip
    memory = Memory(
        m3, m3, m3, m3, np.zeros(legs, np.bool_), np.zeros((1, 1, 1)), np.zeros((1, 2), np.int64),
        np.zeros(legs, np.bool_), row, row, row, row, row, m3, m3, m3, m3, row,
        np.zeros(1, np.bool_), np.zeros(legs, np.bool_),
    )  # fmt: skip
    out = Out(m3, np.zeros(1, np.uint32), m3 > 0)
    return model, memory, out


MODEL, MEMORY, _OUT = (types.typeof(example) for example in _example())
_V = types.float64[::1]
_M = types.float64[:, ::1]
_FLAG_ROW, _FLAGS = types.boolean[::1], types.boolean[:, ::1]


@kernel(types.void(MEMORY, types.int64, _V, _V, types.float64, types.float64))
def _smooth(memory: Memory, leg: int, dq: Array, tau: Array, dt: float, time_constant: float) -> None:
    """Joint accelerations by differences, and torques, through the same low-pass so that both lag alike."""
    fresh = not math.isfinite(memory.dq[3 * leg])
    share = 1.0 if fresh else 1.0 - math.exp(-dt / max(time_constant, 1e-9))
    for i in range(3):
        j = 3 * leg + i
        difference = 0.0 if fresh or dt <= 0.0 else (dq[i] - memory.dq[j]) / dt
        memory.ddq[j] += share * (difference - memory.ddq[j])
        # A torque that is not finite says nothing: the last good one stands.
        if math.isfinite(tau[i]):
            memory.tau[j] += share * (tau[i] - memory.tau[j])
        memory.dq[j] = dq[i]


@kernel(types.boolean(MODEL, MEMORY, types.int64, _V, _V, _V, types.float64, types.boolean, types.float64))
def _take_leg(
    model: Model, memory: Memory, leg: int, q: Array, dq: Array, tau: Array, foot_force: float, flag: bool, dt: float
) -> bool:
    """Kinematics, contact and slip of one leg into `memory`; true if a foot in contact slips."""
    total = q[0] + q[1] + q[2] + dq[0] + dq[1] + dq[2]
    if not math.isfinite(total):
        memory.contact[leg] = False
        memory.dq[3 * leg] = math.nan
        return False
    Rbi, R = model.imu_rotation, memory.R
    omega, up, foot, torque, force = (
        memory.scratch[0], memory.scratch[1], memory.scratch[2], memory.scratch[3], memory.scratch[4],
    )  # fmt: skip
    rate, moving = memory.scratch[5], memory.scratch[6]
    kinematics.leg_fk(model.offsets, model.signs, leg, q, foot, memory.jac)
    kinematics.foot_velocity(memory.jac, dq, omega, foot, moving)
    kinematics.calf_rate(model.signs, leg, q, dq, omega, rate)
    r = model.radius
    roll0 = r * (rate[1] * up[2] - rate[2] * up[1])
    roll1 = r * (rate[2] * up[0] - rate[0] * up[2])
    roll2 = r * (rate[0] * up[1] - rate[1] * up[0])
    low0 = foot[0] - r * up[0] - model.imu_position[0]
    low1 = foot[1] - r * up[1] - model.imu_position[1]
    low2 = foot[2] - r * up[2] - model.imu_position[2]
    for i in range(3):
        memory.feet[leg, i] = Rbi[0, i] * low0 + Rbi[1, i] * low1 + Rbi[2, i] * low2
        memory.roll[leg, i] = Rbi[0, i] * roll0 + Rbi[1, i] * roll1 + Rbi[2, i] * roll2

    if model.contact_source == FROM_FLAGS:
        memory.contact[leg] = flag
    else:
        if model.contact_source == FROM_TORQUE:
            _smooth(memory, leg, dq, tau, dt, model.smoothing)
            for i in range(3):
                rate[i] = model.gravity * up[i]
            one = slice(3 * leg, 3 * leg + 3)
            dynamics.leg_torque(
                model.offsets, model.signs, model.inertial, model.armature, leg, q, dq, memory.ddq[one], rate, torque
            )
            contacts.ground_force(memory.jac, memory.tau[one], torque, force)
            normal = force[0] * up[0] + force[1] * up[1] + force[2] * up[2]
        else:
            normal = foot_force
        share = normal / model.weight if math.isfinite(normal) else 0.0
        contacts.update_contact(
            share,
            model.touch_down,
            model.lift_off,
            model.touch_down_dwell,
            model.lift_off_dwell,
            dt,
            leg,
            memory.contact,
            memory.waiting,
        )

    # Speed of the foot over the ground, as the filter sees it: base velocity plus leg motion less rolling.
    arm = model.imu_position
    v0 = moving[0] - roll0 - (omega[1] * arm[2] - omega[2] * arm[1])
    v1 = moving[1] - roll1 - (omega[2] * arm[0] - omega[0] * arm[2])
    v2 = moving[2] - roll2 - (omega[0] * arm[1] - omega[1] * arm[0])
    for i in range(3):
        along = memory.x[0, 0] * R[0, i] + memory.x[0, 1] * R[1, i] + memory.x[0, 2] * R[2, i]
        v0 += Rbi[0, i] * along
        v1 += Rbi[1, i] * along
        v2 += Rbi[2, i] * along
    slips = memory.contact[leg] and math.sqrt(v0 * v0 + v1 * v1 + v2 * v2) > model.slip_speed
    memory.walk[leg] = model.contact_std * (model.slip_inflation if slips else 1.0)
    return slips


@kernel(types.void(MODEL, MEMORY, types.float64))
def bridge_gap(model: Model, memory: Memory, dt: float) -> None:
    """Nothing is known of the last `dt` seconds: let go of the feet, hold the velocity, and become less sure."""
    R, b = memory.R, memory.b
    for leg in range(memory.active.size):
        if memory.active[leg]:
            correction.remove_foot(memory.P, memory.active, leg)
        memory.contact[leg] = False
        memory.waiting[leg] = 0.0
        memory.dq[3 * leg] = math.nan
    # An IMU that feels nothing but gravity, and densities whose variance over the step is (rate dt)^2 and (accel dt)^2.
    gyro, accel = memory.scratch[6], memory.scratch[7]
    for i in range(3):
        gyro[i] = b[0, i]
        accel[i] = b[1, i] - model.gravity * R[2, i]
    memory.gap_noise[0], memory.gap_noise[1] = model.gap_rate * math.sqrt(dt), model.gap_accel * math.sqrt(dt)
    memory.gap_noise[2], memory.gap_noise[3] = model.noise[2], model.noise[3]
    propagation.propagate(
        R, memory.x, b, memory.P, memory.active, memory.work, memory.slots, memory.gap_noise, memory.walk, memory.roll,
        gyro, accel, model.gravity, dt, model.exact_mean, model.exact_phi,
    )  # fmt: skip


@kernel(types.uint32(MODEL, MEMORY, types.float64, _V, _V, _V, _V, _V, _V, _FLAG_ROW))
def step_kernel(
    model: Model, memory: Memory, dt: float, gyro: Array, accel: Array, q: Array, dq: Array,
    tau: Array, foot_force: Array, flags: BoolArray,
) -> int:  # fmt: skip
    """Take one sample that ends `dt` seconds after the one before; returns bits of `Health`."""
    R, x, b, P, active = memory.R, memory.x, memory.b, memory.P, memory.active
    work, slots, contact = memory.work, memory.slots, memory.contact
    Rbi = model.imu_rotation
    health = 0 if memory.measured[0] else STARTING
    if dt > model.max_gap:
        bridge_gap(model, memory, dt)
        return health | TIME_GAP | NO_MEASUREMENT
    for i in range(3):
        memory.scratch[0, i] = (
            Rbi[i, 0] * (gyro[0] - b[0, 0]) + Rbi[i, 1] * (gyro[1] - b[0, 1]) + Rbi[i, 2] * (gyro[2] - b[0, 2])
        )
        memory.scratch[1, i] = Rbi[i, 0] * R[2, 0] + Rbi[i, 1] * R[2, 1] + Rbi[i, 2] * R[2, 2]
    for leg in range(active.size):
        one = slice(3 * leg, 3 * leg + 3)
        if _take_leg(model, memory, leg, q[one], dq[one], tau[one], foot_force[leg], flags[leg], dt):
            health |= SLIP
    moved = propagation.propagate(
        R, x, b, P, active, work, slots, model.noise, memory.walk, memory.roll,
        gyro, accel, model.gravity, dt, model.exact_mean, model.exact_phi,
    )  # fmt: skip
    if not moved:
        return health | BAD_SAMPLE
    for leg in range(active.size):
        if active[leg] and not contact[leg]:
            correction.remove_foot(P, active, leg)
    if not correction.correct_feet(R, x, b, P, active, work, slots, memory.feet, model.kin_cov):
        health |= REJECTED
    standing = 0
    for leg in range(active.size):
        if active[leg]:
            standing += 1
        elif contact[leg]:
            correction.add_foot(R, x, P, active, leg, memory.feet[leg], model.kin_cov[leg])
    if standing > 0:
        memory.measured[0] = True
    else:
        health |= NO_MEASUREMENT
    speed2 = x[0, 0] * x[0, 0] + x[0, 1] * x[0, 1] + x[0, 2] * x[0, 2]
    # Written so that a nan counts as diverged too.
    if not (speed2 < MAX_SPEED * MAX_SPEED and P[3, 3] + P[4, 4] + P[5, 5] < MAX_STD * MAX_STD):
        health |= DIVERGED
    return health


@kernel(types.void(MODEL, MEMORY, _OUT, types.int64, _V, types.uint32))
def write_out(model: Model, memory: Memory, out: Out, k: int, gyro: Array, health: int) -> None:
    """The state of base_link into row k of `out`."""
    output.write_row(
        memory.R, memory.x, memory.b, memory.P, model.imu_rotation, model.imu_position,
        gyro, memory.scratch.reshape(-1), out.rows[k],
    )  # fmt: skip
    out.health[k] = health
    for leg in range(memory.contact.size):
        out.contact[k, leg] = memory.contact[leg]


@kernel(types.void(MODEL, MEMORY, _OUT, _V, _M, _M, _M, _M, _M, _M, _FLAGS))
def run_kernel(
    model: Model, memory: Memory, out: Out, t: Array, gyro: Array, accel: Array, q: Array, dq: Array,
    tau: Array, foot_force: Array, flags: BoolArray,
) -> None:  # fmt: skip
    """A whole log; row 0 is the start itself."""
    write_out(model, memory, out, 0, gyro[0], 0)
    for k in range(1, t.size):
        health = step_kernel(
            model, memory, t[k] - t[k - 1], gyro[k], accel[k], q[k], dq[k], tau[k], foot_force[k], flags[k]
        )
        write_out(model, memory, out, k, gyro[k], health)
