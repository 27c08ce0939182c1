"""Two engines behind one interface: rows of samples in, rows of states out.

`VelocityAided` is a network and the filter in one compiled call; `ContactAided` is the model-based filter.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from gait import lie
from gait._compile import RUNTIME, uncompiled
from gait.arrays import Array
from gait.errors import GaitError
from gait.filters.start import align, start_covariance
from gait.nets.architecture import Architecture, AttentionArchitecture, LegsArchitecture
from gait.nets.model import Model
from gait.parameters import LEGS_NOISE, Options, Prior, ProcessNoise
from gait.parameters import ContactAided as ContactAidedParams
from gait.robot import Robot
from gait.runtime import buffers as at
from gait.runtime.leg_buffers import LegRoom, count_room, forget_legs, put_robot
from gait.runtime.samples import Clean, Limits, bounds_of, forget
from gait.runtime.velocity_aided import ATTENTIONS, run_rows

AT_REST = Prior(rotation=0.1, velocity=0.5)
"""What is known after a start from gravity: the robot was at rest, more or less."""
JITTER = 0.2
"""A sample within this part of the network's period is its sample; otherwise its samples are interpolated."""


class Engine(Protocol):
    """What an estimator needs."""

    width: int
    """Numbers in a row of the output."""
    cov: Array
    """Covariance of the right-invariant error, live: rotation, velocity, position, biases, then feet."""
    clean: Clean
    """The last good sample, live."""

    def needs(self, given: Collection[str]) -> None:
        """Raise GaitError if what is given is not enough; otherwise make the best of it."""

    def start(self, R_wb: Array, vel_w: Array, pos_w: Array, omega_b: Array, std: Array | None) -> None:
        """Begin at a known state of base_link; `std` (15,) replaces the prior."""

    def start_at_rest(self, accel: Array | None) -> None:
        """Begin with roll and pitch from the specific force (3,), or from the next sample if None."""

    def run(self, rows: Array, out: Array) -> None:
        """Take rows of samples (N, W) and write rows (N, width)."""


def deviations(prior: Prior) -> Array:
    """Standard deviations of rotation, velocity, position, gyro bias and accelerometer bias (15,)."""
    p = prior
    std = [p.rotation, p.rotation, p.yaw, *[p.velocity] * 3, *[p.position] * 3]
    return np.array([*std, *[p.gyro_bias] * 3, *[p.accel_bias] * 3])


def _at_imu(robot: Robot, R_wb: Array, vel_w: Array, pos_w: Array, omega_b: Array) -> tuple[Array, Array]:
    """Orientation and (2, 3) velocity and position of the IMU from those of base_link."""
    arm = R_wb @ robot.imu_position
    place = np.array([vel_w + np.cross(R_wb @ omega_b, arm), pos_w + arm])
    return R_wb @ lie.rotation_from_quat(robot.imu_quat_wxyz), place


class VelocityAided:
    """A network's velocity and the invariant filter."""

    def __init__(
        self,
        robot: Robot,
        model: Model,
        noise: ProcessNoise | None,
        prior: Prior,
        options: Options,
        limits: Limits,
        attention: bool,
        dead_leg: Model | None = None,
    ) -> None:
        """Put the two together.

        Args:
            robot: whose sensors.
            model: the network.
            noise: of the IMU; by default what suits the network.
            prior: of the state that `start` gets.
            options: of the filter.
            limits: of the sensors.
            attention: whether rows tell where the network looked.
            dead_leg: network of the same kind that takes over while a leg is out of use.
        """
        if dead_leg is not None and dead_leg.architecture != model.architecture:
            raise GaitError("the network for a dead leg has another architecture: train both with the same settings")
        self._by_leg = _by_leg(model)
        if self._by_leg:
            model = model.for_robot(robot)
        if model.joint_names != robot.joint_names or model.leg_names != robot.leg_names:
            raise GaitError(
                f"the model was trained for joints {', '.join(model.joint_names)} and {robot.name} has"
                f" {', '.join(robot.joint_names)}: load weights of this robot, or train some with `gait train`"
            )
        a = model.architecture
        legs, features = robot.num_legs, 0 if self._by_leg else a.num_features
        self.shape, tokens = _attention_shape(a), len(a.tokens) if isinstance(a, AttentionArchitecture) else 0
        self.legs = legs if self._by_leg else 0
        self.reads = (("tau", "q_des") if self._by_leg else ("q_des",)) if a.targets else ()
        self._prior = deviations(prior)
        floats = np.zeros(at.count_floats(legs) + (count_room(legs) if self._by_leg else 0))
        # Of `gait-legs`, which legs are seen, and which were.
        flags = np.zeros(at.count_flags(legs, tokens + 2 * self.legs), dtype=np.bool_)
        singles, ints = _networks([model] if dead_leg is None else [model, dead_leg], 3 * features + 6 + 6 * self.legs)
        ints[at.LEGS], ints[at.FEATURES], ints[at.TOKENS] = legs, features, tokens
        ints[at.TARGETS], ints[at.BY_LEG], ints[at.ATTENTION] = a.targets, a.kind == "gait", attention
        self._robot, self._gravity = robot, options.gravity
        noise = noise or (LEGS_NOISE if self._by_leg else ProcessNoise())
        exact = (float(options.exact_mean), float(options.exact_phi))
        floats[at.SETTINGS : at.SETTINGS + 14] = [
            *noise.densities, options.gravity, options.gap_accel, options.gap_rate, *exact,
            1.0 / model.rate, JITTER / model.rate, limits.hold, options.inflation**2,
        ]  # fmt: skip
        floats[at.MOUNT : at.MOUNT + 9] = lie.rotation_from_quat(robot.imu_quat_wxyz).ravel()
        floats[at.MOUNT + 9 : at.MOUNT + 12] = robot.imu_position
        floats[at.START : at.START + 15] = deviations(AT_REST)
        at.put_bounds(floats, bounds_of(robot, limits, options.max_gap, a.targets), at.GUARD)
        self._buffers = at.Buffers(floats, singles, ints, flags)
        self._R, self._x = floats[at.R : at.R + 9].reshape(3, 3), floats[at.X : at.X + 6].reshape(2, 3)
        self._b = floats[at.B : at.B + 6].reshape(2, 3)
        self.cov = floats[at.P : at.P + 225].reshape(15, 15)
        self.clean = uncompiled(at.clean_in)(floats, flags, at.GUARD, legs)
        self.width = ATTENTIONS + (self.shape[0] * self.shape[1] + 6 * self.legs if attention else 0)
        self._room: LegRoom | None = None
        if self._by_leg:
            ints[at.ROOM] = at.count_floats(legs)
            mount = floats[at.MOUNT : at.MOUNT + 9].reshape(3, 3)
            self._room = put_robot(floats, at.count_floats(legs), mount, robot, options, limits.hold)
        self.start_at_rest(None)

    def needs(self, given: Collection[str]) -> None:
        """Joint targets, if the network reads them; to `gait-legs` torques are as good."""
        if not self.reads or any(name in given for name in self.reads):
            return
        if self._by_leg:
            raise GaitError(
                "this network reads joint torques tau, or joint targets q_des, and neither is there: give one of them,"
                " or load a method or a model without"
            )
        raise GaitError(
            "this network reads the joint targets q_des, which are not there: give them, or load a method or a"
            " model without"
        )

    def start(self, R_wb: Array, vel_w: Array, pos_w: Array, omega_b: Array, std: Array | None) -> None:
        """Begin at a known state of base_link."""
        self._begin(False)
        self._R[:], self._x[:] = _at_imu(self._robot, R_wb, vel_w, pos_w, omega_b)
        self._b[:] = 0.0
        start_covariance(self._x, self.cov, self._prior if std is None else std)
        self._keep()

    def start_at_rest(self, accel: Array | None) -> None:
        """Begin with roll and pitch from the specific force, or from the next sample."""
        floats = self._buffers.floats
        mount, arm = floats[at.MOUNT : at.MOUNT + 9].reshape(3, 3), floats[at.MOUNT + 9 : at.MOUNT + 12]
        std = floats[at.START : at.START + 15]
        level = np.array([0.0, 0.0, -self._gravity]) @ mount
        force = level if accel is None else accel
        if not align(self._R, self._x, self._b, self.cov, mount, arm, std, force, self._gravity):
            raise _not_at_rest(force)
        self._begin(accel is None)
        self._keep()

    def _begin(self, from_gravity: bool) -> None:
        self._buffers.flags[:] = False
        self._buffers.floats[at.BROKEN] = self._buffers.floats[at.WHOLE] = 0.0
        self._buffers.flags[at.ALIGN] = from_gravity
        forget(self.clean)
        if self._room is not None:
            forget_legs(self._room)

    def _keep(self) -> None:
        floats = self._buffers.floats
        floats[at.SAFE : at.SAFE + 9], floats[at.SAFE + 9 : at.SAFE + 12] = self._R.ravel(), self._x[1]

    def run(self, rows: Array, out: Array) -> None:
        """Take rows of samples and write rows."""
        run_rows(*self._buffers, rows, out)


class ContactAided:
    """The contact-aided filter, told by torques, foot forces or flags which feet stand."""

    def __init__(self, robot: Robot, params: ContactAidedParams, limits: Limits, contact_from: str | None) -> None:
        # Here and not above: who has a network need not wait until these are compiled.
        from gait.filters import ContactAidedFilter
        from gait.runtime import contact_buffers as kept
        from gait.runtime.contact_aided import CONTACTS, run_contact_rows

        self._filter, self._run_rows = ContactAidedFilter(robot, params, contact_from), run_contact_rows
        legs, options = robot.num_legs, params.options
        self._robot, self._gravity, self._prior = robot, options.gravity, deviations(params.prior)
        gains = np.array([robot.kp, robot.kd, robot.torque_limit])
        self._std = deviations(AT_REST)
        bounds = bounds_of(robot, limits, options.max_gap, False)
        self._buffers = kept.new_buffers(self._filter.model, bounds, gains, self._std)
        self._source = self._buffers.ints[kept.SOURCE : kept.SOURCE + 1]
        self._memory = uncompiled(kept.memory_in)(*self._buffers)
        safe = kept.rest_start(legs) + 9 * legs + 15
        self._safe = self._buffers.floats[safe : safe + 12]
        self.clean = uncompiled(at.clean_in)(self._buffers.floats, self._buffers.flags, kept.guard_start(legs), legs)
        self.cov = self._memory.P
        self.width = CONTACTS + legs
        self.start_at_rest(None)

    def needs(self, given: Collection[str]) -> None:
        """Something that tells contacts; torques may come from the joint targets and the robot's gains."""
        if "q_des" in given:
            given = {*given, "tau"}
        self._filter.take_contacts_from(given)
        self._source[:] = self._filter.model.contact_source

    def start(self, R_wb: Array, vel_w: Array, pos_w: Array, omega_b: Array, std: Array | None) -> None:
        """Begin at a known state of base_link, with no foot on the ground."""
        self._begin(False)
        m = self._memory
        m.R[:], m.x[:2] = _at_imu(self._robot, R_wb, vel_w, pos_w, omega_b)
        start_covariance(m.x, m.P, self._prior if std is None else std)
        self._keep()

    def start_at_rest(self, accel: Array | None) -> None:
        """Begin with roll and pitch from the specific force, or from the next sample."""
        self._begin(accel is None)
        m, mount = self._memory, lie.rotation_from_quat(self._robot.imu_quat_wxyz)
        force = np.array([0.0, 0.0, -self._gravity]) @ mount if accel is None else accel
        if not align(m.R, m.x, m.b, m.P, mount, self._robot.imu_position, self._std, force, self._gravity):
            raise _not_at_rest(force)
        self._keep()

    def _begin(self, from_gravity: bool) -> None:
        self._buffers.flags[:] = False
        self._buffers.flags[at.ALIGN] = from_gravity
        m = self._memory
        for array in (m.x, m.b, m.P, m.waiting, m.ddq, m.tau):
            array[...] = 0.0
        m.dq[:], m.walk[:] = np.nan, self._filter.model.contact_std
        forget(self.clean)

    def _keep(self) -> None:
        self._safe[:9], self._safe[9:] = self._memory.R.ravel(), self._memory.x[1]

    def run(self, rows: Array, out: Array) -> None:
        """Take rows of samples and write rows."""
        self._run_rows(*self._buffers, rows, out)


def _not_at_rest(force: Array) -> GaitError:
    return GaitError(
        f"specific force of {float(np.linalg.norm(force)):.2f} m/s^2 is not that of a robot at rest:"
        " give samples in m/s^2 from a moment when it stands or lies still"
    )


def _by_leg(model: Model) -> bool:
    return isinstance(model.architecture, LegsArchitecture)


def _attention_shape(a: Architecture) -> tuple[int, int]:
    """Of what a network tells of its attention; (0, 0) if it has none."""
    if isinstance(a, LegsArchitecture):
        return (a.legs, a.legs) if a.attention_width else (0, 0)
    return (a.history, len(a.tokens)) if isinstance(a, AttentionArchitecture) else (0, 0)


def _networks(models: Sequence[Model], room: int) -> tuple[at.Singles, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Single precision numbers (weights and memory of each network, room for samples and output) and integers."""
    ints = [np.zeros(at.SIZES, dtype=np.int64)]
    head = ints[0]
    if RUNTIME == "numpy":
        from gait.runtime.leg_network_numpy import NumpyLegs
        from gait.runtime.network_numpy import NumpyNetwork
        from gait.runtime.twin import buffer_of

        for i in range(len(models)):
            head[at.NETWORK + 5 * i : at.NETWORK + 5 * i + 3] = i, i, i + 1
        head[at.SAMPLES] = len(models)
        # Says that there is a second one.
        head[at.NETWORK + 5] = len(models) - 1
        twins = [NumpyLegs(model) if _by_leg(model) else NumpyNetwork(model) for model in models]
        return buffer_of(room, twins), head
    from gait.runtime.leg_pack import new_leg_memory, pack_legs
    from gait.runtime.network_pack import aligned, new_memory, pack

    singles: list[at.Singles] = []
    place, sizes = 0, at.SIZES
    for i, model in enumerate(models):
        packed = pack_legs(model) if _by_leg(model) else pack(model)
        ends = []
        for part in (packed.weights, new_leg_memory(packed) if _by_leg(model) else new_memory(packed)):
            # Each begins with a line of the cache, 16 numbers.
            singles.append(np.pad(part, (0, -len(part) % 16)))
            ends.append(place := place + len(singles[-1]))
        begin = ends[0] - len(singles[-2])
        ints.append(packed.sizes)
        head[at.NETWORK + 5 * i : at.NETWORK + 5 * i + 5] = begin, *ends, sizes, sizes + len(packed.sizes)
        sizes += len(packed.sizes)
    head[at.SAMPLES] = place
    singles.append(np.zeros(room, dtype=np.float32))
    return aligned(np.concatenate(singles)), np.concatenate(ints)
