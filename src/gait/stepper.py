"""One sample after the other: contexts of the core, the row that a sample is put into, and steps of them."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gait.arrays import Array
from gait.binding import CPython, CSample, builtin_step, core, core_holding_gil, pointer
from gait.engine import Context, Engine
from gait.errors import GaitError
from gait.log.sample import Sample
from gait.methods import python_method
from gait.python_step import PythonSteps
from gait.robot import Robot
from gait.sample_rows import BY_JOINT, FIELDS, OPTIONAL, joint_order, row_parts, stamp_of, start_of, vector_of
from gait.state import RowLayout, State


class Prepared(NamedTuple):
    """Arguments of a step of a context from Python."""

    caller: CPython
    out: Array
    """Room for state and covariance."""
    step: Callable[..., State | None]
    layout: RowLayout


class Turn:
    """One thread at a time uses an estimator. The core sees it as a number, not zero while it is taken."""

    def __init__(self) -> None:
        self._lock, self._depth = threading.RLock(), ctypes.c_int32(0)
        self.at = ctypes.addressof(self._depth)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth.value += 1

    def __exit__(self, *_: object) -> None:
        self._depth.value -= 1
        self._lock.release()


class Stepper:
    """What an `Estimator` does with samples: it starts, takes them, and predicts."""

    def __init__(
        self,
        robot: Robot,
        engine: Engine,
        method: str,
        *,
        without_targets: Engine | None = None,
        joint_names: Sequence[str] | None = None,
    ) -> None:
        """Put an estimator together; `Estimator.load` is the usual way.

        Args:
            robot: whose sensors.
            engine: of the method.
            method: its name.
            without_targets: engine that takes over for samples without what `engine` reads.
            joint_names: order in which joints will come; the robot's own by default.
        """
        self.robot, self.method = robot, method
        self._contexts = [Context(one) for one in (engine, without_targets) if one is not None]
        self._order = joint_order(robot, joint_names)
        written = python_method(method, robot)
        self._python = None if written is None else PythonSteps(method, written, robot)
        width = len(robot.encoder_names if joint_names is None else joint_names)
        legs = robot.num_legs
        self._sizes = (3, 3, width, width, width, width, legs, legs)
        self._turn, self._prepared = Turn(), dict[Context, Prepared]()
        # One row of the core: the stamp, the fields, and which legs are fine.
        self._row = np.full(engine.row_doubles, np.nan)
        self._row_at = pointer(self._row)
        self._parts = row_parts(self._row, robot)
        self._fields_at = {name: pointer(part) for name, part in self._parts.items() if name != "t"}
        self._leg_ok = self._parts["leg_ok"]
        self._leg_ok[:] = 1.0
        self._use(self._contexts[0])
        self.reset()

    @property
    def by_leg(self) -> bool:
        """Whether the network measures with each leg, so that only the filter has one velocity of the body."""
        return self._contexts[0].engine.by_leg

    def reset(
        self,
        *,
        quat_wb_wxyz: npt.ArrayLike | None = None,
        vel_w: npt.ArrayLike | None = None,
        pos_w: npt.ArrayLike | None = None,
        gyro: npt.ArrayLike | None = None,
        accel: npt.ArrayLike | None = None,
    ) -> None:
        """Forget everything and start again.

        Without arguments, roll and pitch come from the accelerometer at the next sample, as of a robot at rest; with
        `accel`, from these samples. With `quat_wb_wxyz`, the state of base_link is the given one.

        Args:
            quat_wb_wxyz: orientation.
            vel_w: velocity, with an orientation; zero by default.
            pos_w: position, with an orientation; the origin by default.
            gyro: angular rate of that moment as the IMU measures it, zero by default: the IMU is not at the base's
                origin.
            accel: specific force at rest (3,) or (N, 3), as the IMU measures it.
        """
        with self._turn:
            start = start_of(quat_wb_wxyz, vel_w, pos_w, gyro, accel)
            for context in self._contexts:
                if isinstance(start, tuple):
                    context.reset(*start)
                else:
                    context.reset_gravity(start)
            if self._python is not None:
                self._python.method.reset()
            self._forget_past(everything=True)
            self._know(None)

    def update(
        self,
        t: float | Sample,
        gyro: npt.ArrayLike = (),
        accel: npt.ArrayLike = (),
        q: npt.ArrayLike = (),
        dq: npt.ArrayLike = (),
        q_des: npt.ArrayLike | None = None,
        tau: npt.ArrayLike | None = None,
        foot_force: npt.ArrayLike | None = None,
        contact: npt.ArrayLike | None = None,
        leg_ok: npt.ArrayLike | None = None,
    ) -> State:
        """Take one sample.

        Args:
            t: stamp, s; or a whole row of a Log (`log.rows()`), and nothing else.
            gyro: angular rate (3,), rad/s, in IMU axes.
            accel: specific force (3,), m/s^2, in IMU axes.
            q: joint angles (J,), rad.
            dq: joint velocities (J,), rad/s.
            q_des: joint targets (J,), rad.
            tau: joint torques (J,), N m.
            foot_force: force of the ground on each foot (L,), N.
            contact: whether each foot is on the ground (L,).
            leg_ok: False for legs whose encoders are known to be broken (L,).

        Returns:
            The state at that moment.
        """
        if leg_ok is None:
            # The core reads samples and arrays by itself; all else is converted or refused below.
            state = self._quick_step(t, gyro, accel, q, dq, q_des, tau, foot_force, contact)
            if state is not None:
                return state
        if isinstance(t, Sample):
            t, gyro, accel, q, dq, q_des, tau, foot_force, contact = t
        with self._turn:
            self._fill(t, gyro, accel, q, dq, q_des, tau, foot_force, contact, leg_ok)
            if self._python is not None:
                state = self._python.step(self._context, self._sample(), self._parts, self._given or (), self._layout)
                self._leg_ok[:] = 1.0
                return state
            self._take_row(0)
            self._leg_ok[:] = 1.0
            return self._state()

    def update_joints(
        self,
        t: float,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        q_des: npt.ArrayLike | None = None,
        tau: npt.ArrayLike | None = None,
        foot_force: npt.ArrayLike | None = None,
        contact: npt.ArrayLike | None = None,
        leg_ok: npt.ArrayLike | None = None,
    ) -> None:
        """Take joints by themselves, on robots whose IMU comes at another rate; see `update_imu`.

        They are kept for the IMU samples that follow, up to `Limits.hold` seconds. Arguments as for `update`.
        """
        self._refuse_parts()
        with self._turn:
            still = np.zeros(3)
            self._fill(t, still, still, q, dq, q_des, tau, foot_force, contact, leg_ok)
            if self._history:
                self._take_row(1)
            else:
                sample = self._sample()
                core().gait_update_joints(self._context_at, ctypes.addressof(sample))
            self._leg_ok[:] = 1.0

    def update_imu(self, t: float, gyro: npt.ArrayLike, accel: npt.ArrayLike) -> State:
        """Take an IMU sample by itself: a step with the joints of the last `update_joints`."""
        self._refuse_parts()
        with self._turn:
            stamp, w, a = stamp_of(t), vector_of(gyro, "gyro", 3), vector_of(accel, "accel", 3)
            step = core_holding_gil().gait_step_imu
            if self._given is None:
                # The first joints decide which weights are used: until then all of them follow the IMU.
                for context in self._contexts:
                    out = np.empty(context.engine.state_doubles + context.engine.cov_size**2)
                    if context is not self._context:
                        step(context.at, stamp, pointer(w), pointer(a), pointer(out))
            if self._history:
                self._row[:7] = stamp, *w, *a
                self._take_row(2)
            else:
                step(self._context_at, stamp, pointer(w), pointer(a), self._out_at)
            return self._state()

    def predict(self, t: float) -> State:
        """The state carried on to a later time by the last IMU sample, for control; the estimator does not change."""
        with self._turn:
            scratch, out = self._context.memory.copy(), np.empty_like(self._out)
            core().gait_predict(self._context_at, stamp_of(t), pointer(scratch), pointer(out))
            return State(out, self._layout)

    def _take_row(self, kind: int) -> None:
        """A step with the row, through the history if one is kept; kind as in `gait_history_step`."""
        if self._history:
            core_holding_gil().gait_history_step(self._history, self._context_at, kind, self._row_at, self._out_at)
        else:
            self._step(self._context_at, self._row_at, self._out_at)

    def _refuse_parts(self) -> None:
        if self._python is not None:
            raise GaitError(f"method {self.method} is written in Python and takes whole samples: use update")

    def _history_of(self, context: Context) -> int:
        """Address of the history of a context; 0: none is kept."""
        return 0

    def _forget_past(self, everything: bool = False) -> None:
        """The state was set from outside: what is kept of the past does not lead to it; everything: it starts again."""

    def _use(self, context: Context) -> None:
        """Let a context take the samples that follow."""
        if context not in self._prepared:
            # Kept for good: another thread may be about to call the step.
            engine = context.engine
            out, config = np.empty(engine.state_doubles + engine.cov_size**2), ctypes.addressof(engine.config)
            width = self._sizes[2]
            order = None if np.array_equal(self._order, np.arange(width)) else pointer(self._order)
            caller = CPython(
                context.at, self._history_of(context), config, self._row_at, out.nbytes, width, order, self._turn.at
            )
            layout = RowLayout(self.robot.leg_names, engine.shape, engine.cov_size)
            step = builtin_step(caller, Sample, State, layout) if self._python is None else _no_step
            self._prepared[context] = Prepared(caller, out, step, layout)
        self._context, self._context_at, self._step = context, context.at, context.step
        self._now = self._prepared[context]
        self._out, self._layout = self._now.out, self._now.layout
        self._out_at, self._history = pointer(self._out), self._now.caller.history or 0

    def _choose(self, given: Collection[str]) -> None:
        """Take the weights that go with what is there, and see that it is enough."""
        full, *less = self._contexts
        enough = not full.engine.reads or any(name in given for name in full.engine.reads)
        context = full if enough or not less else less[0]
        context.take_contacts_from(context.engine.needs(given))
        if context is not self._context:
            self._use(context)
        self._know(frozenset(given))

    def _know(self, given: frozenset[str] | None) -> None:
        """Fields that samples have; None until the first one, which is converted here."""
        self._given = given
        self._quick_step = _no_step if given is None else self._now.step

    def _fill(self, t: float, *values: Any) -> None:
        """A sample into the row of the core."""
        *fields, leg_ok = values
        flags = np.ones(self.robot.num_legs) if leg_ok is None else vector_of(leg_ok, "leg_ok", self.robot.num_legs)
        arrays = [
            None if value is None and name in OPTIONAL else vector_of(value, name, size)
            for name, value, size in zip(FIELDS, fields, self._sizes, strict=True)
        ]
        if self._given is None:
            there = [name for name, array in zip(FIELDS, arrays, strict=True) if array is not None]
            # Until a sample has what contacts come from, a contact-aided filter propagates by the IMU alone, and health
            # says so.
            if self._context.engine.tells_contacts(there):
                self._choose(there)
        self._row[0] = stamp_of(t)
        for name, array in zip(FIELDS, arrays, strict=True):
            part = self._parts[name]
            part[:] = np.nan if array is None else array[self._order] if name in BY_JOINT else array
        self._leg_ok[:] = flags

    def _sample(self) -> CSample:
        """The row as the core's struct."""
        return CSample(t=self._row[0], **self._fields_at)

    def _state(self) -> State:
        return State(self._out.copy(), self._layout)


def _no_step(*_: object) -> State | None:
    """In place of a step that reads samples by itself."""
    return None
