"""The streaming estimator: samples of an IMU and joint encoders in, the state of the robot out.

est = gait.Estimator.load("go1")
for t, gyro, accel, q, dq, q_des in robot:
    state = est.update(t, gyro, accel, q, dq, q_des)
    policy(state.vel_b)
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import Array
from gait.binding import CPython, CSample, aligned_bytes, builtin_step, core, core_holding_gil, pointer
from gait.engine import Context, Engine, engines_of
from gait.errors import GaitError
from gait.external import Correction, ExternalSensor, Fusion, Measured
from gait.health import Health
from gait.log.log import Log
from gait.log.sample import Sample
from gait.log.trajectory import Trajectory
from gait.methods import DEFAULT, METHODS, Method, python_method
from gait.nets.model import Model
from gait.parameters import Limits, Options, Prior, ProcessNoise
from gait.robot import Robot
from gait.state import RowLayout, State, StateArrays

__all__ = ["DEFAULT", "METHODS", "Estimator", "Method", "State", "StateArrays"]

FIELDS = ("gyro", "accel", "q", "dq", "q_des", "tau", "foot_force", "contact")
"""What a sample is made of, in the order in which the core takes it."""
MOST_LAG = 2.0
"""Seconds of the longest lag."""
_OPTIONAL, _BY_JOINT = FIELDS[4:], FIELDS[2:6]


class Prepared(NamedTuple):
    """What a step of a context from Python needs."""

    caller: CPython
    out: Array
    """Room for state and covariance."""
    step: Callable[..., State | None]
    layout: RowLayout


class Turn:
    """Whoever has the turn with an estimator; others wait. The core sees it as a number, not zero while it is taken."""

    def __init__(self) -> None:
        self._lock, self._depth = threading.RLock(), ctypes.c_int32(0)
        self.at = ctypes.addressof(self._depth)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth.value += 1

    def __exit__(self, *_: object) -> None:
        self._depth.value -= 1
        self._lock.release()


class Estimator:
    """Velocity, orientation and position of a robot, sample by sample or for a whole Log.

    `load` makes one. `update` never raises for what a sensor says and never returns nan: what is bad is left out, the
    state goes on with the rest, and `state.health` says so. An estimator may be used from several threads, which then
    take turns; `copy.deepcopy` and `pickle` work, with everything it remembers.
    """

    def __init__(
        self,
        robot: Robot,
        engine: Engine,
        method: str,
        *,
        without_targets: Engine | None = None,
        joint_names: Sequence[str] | None = None,
    ) -> None:
        """Put an estimator together; `load` is the usual way.

        Args:
            robot: whose sensors.
            engine: of the method.
            method: its name.
            without_targets: engine that takes over for samples without what `engine` reads.
            joint_names: order in which joints will come; the robot's own by default.
        """
        self.robot, self.method = robot, method
        self._recipe: dict[str, Any] = {}
        self._fusion: Fusion | None = None
        self.lag, self._recorders = 0.0, dict[Context, Any]()
        self._contexts = [Context(one) for one in (engine, without_targets) if one is not None]
        self._order = _order(robot, joint_names)
        self._python = python_method(method, robot)
        width = len(robot.encoder_names if joint_names is None else joint_names)
        legs = robot.num_legs
        self._sizes = (3, 3, width, width, width, width, legs, legs)
        self._turn, self._prepared = Turn(), dict[Context, Prepared]()
        # One row of the core: the stamp, the fields, and which legs are fine.
        self._row = np.full(engine.row_doubles, np.nan)
        self._row_at = pointer(self._row)
        *parts, self._leg_ok = np.split(self._row[1:], np.cumsum([width_of(name, robot) for name in FIELDS]))
        self._parts = dict(zip(FIELDS, parts, strict=True))
        self._leg_ok[:] = 1.0
        self._use(self._contexts[0])
        self.reset()

    @staticmethod
    def load(
        robot: str | Path | Robot = "go1",
        method: str | Path | Model = DEFAULT,
        *,
        joint_names: Sequence[str] | None = None,
        attention: bool = False,
        feet: bool = False,
        noise: ProcessNoise | None = None,
        prior: Prior | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        contact_from: str | None = None,
        sensors: Mapping[str, ExternalSensor] | None = None,
        lag: float = 0.0,
    ) -> Estimator:
        """An estimator, ready for its first sample.

        Args:
            robot: name of a robot, the path of its YAML, URDF or MJCF file, or a `Robot`.
            method: `gait-legs`, `gait`, `gait-flat`, `nmn`, `iekf` or `iekf-sr`; or a model: its name, the path of its
                file, or a `Model`; or a method of your own (docs/extending.md).
            joint_names: order in which joints will come; the robot's own by default. More than the robot has is fine.
            attention: let states carry where the network looks (`state.attention`) and what legs measure.
            feet: let states carry contact, slip, force and position of each foot, and the ground (docs/feet.md).
            noise: of the IMU, as the filter models it; by default what suits the method.
            prior: how well the state given to `reset` is known.
            options: how the filter treats time.
            limits: ranges of the sensors.
            contact_from: for model-based methods: `tau`, `foot_force` or `contact`; the best there is by default.
            sensors: other sensors by name, whose measurements `correct` will take (docs/fusion.md).
            lag: seconds, up to 2, of which `lagged` gives the smoothed state (docs/smoothing.md).
        """
        robot = robot if isinstance(robot, Robot) else Robot.load(robot)
        settings = {
            "attention": attention, "feet": feet, "noise": noise, "prior": prior, "options": options, "limits": limits,
            "contact_from": contact_from,
        }  # fmt: skip
        engine, less, name = engines_of(method, robot, settings)
        estimator = Estimator(robot, engine, name, without_targets=less, joint_names=joint_names)
        estimator._recipe = {
            "robot": robot,
            "method": method,
            "joint_names": joint_names,
            "sensors": sensors,
            "lag": lag,
            **settings,
        }
        if sensors:
            estimator._begin_fusion(sensors)
        if lag:
            estimator._begin_lag(lag)
        return estimator

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
                self._python.reset()
            if self._fusion is not None:
                self._fusion.clear()
            self._forget_past()
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
                return self._update_python()
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
            stamp, w, a = _stamp(t), _vector(gyro, "gyro", 3), _vector(accel, "accel", 3)
            step = core_holding_gil().gait_step_imu
            if self._given is None:
                # The first joints will say which weights go on: until then all of them follow the IMU.
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

    def _take_row(self, kind: int) -> None:
        """A step with the row, through the history if one is kept; kind as in `gait_history_step`."""
        if self._history:
            core_holding_gil().gait_history_step(self._history, self._context_at, kind, self._row_at, self._out_at)
        else:
            self._step(self._context_at, self._row_at, self._out_at)

    def correct(
        self,
        kind: str,
        t: float,
        value: Measured = (),
        noise: npt.ArrayLike | None = None,
        sensor: str = "",
    ) -> Correction:
        """Take a measurement of another sensor, up to 0.5 s old: it is inserted at its time (docs/fusion.md).

        Args:
            kind: `pose`, `position`, `velocity_w`, `velocity_b`, `heading`, `height`, `gravity`, `orientation` or
                `zero_velocity`.
            t: stamp, s, on the clock of the samples.
            value: what was measured: of a pose position (3,) and quaternion (4,) w first; of `gravity` the upward
                vertical (3,) in axes of the sensor; nothing for `zero_velocity`.
            noise: covariance (n, n), or standard deviations: one, one a number, or of a pose position and rotation;
                by default those of the sensor.
            sensor: its name in `load(sensors=...)`, which says where it is mounted; by default it is at base_link.

        Returns:
            Whether it was taken, its test ratio, and why not. What a sensor says never raises.
        """
        with self._turn:
            if self._fusion is None:
                self._begin_fusion({})
            fusion = self._fusion
            assert fusion is not None
            done = fusion.correct(self._context_at, self._history or None, kind, t, value, noise, sensor)
            if not done and fusion.due(kind, sensor, t):
                present = self.predict(-np.inf)
                R_wb, pos_w = fusion.present_pose(kind, sensor, t, value, self._history, present.R_wb, present.pos_w)
                self.reset_pose(lie.quat_from_rotation(R_wb), pos_w)
                return Correction(True, done.test_ratio, "pose reset: nothing but outliers for a while")
            return done

    def reset_pose(
        self,
        quat_wb_wxyz: npt.ArrayLike,
        pos_w: npt.ArrayLike = (0.0, 0.0, 0.0),
        *,
        rotation_std: float = 0.03,
        position_std: float = 0.05,
    ) -> None:
        """Put base_link elsewhere in the world; velocity in the body and biases stay, with their covariance.

        Args:
            quat_wb_wxyz: orientation.
            pos_w: position.
            rotation_std: of each axis, rad.
            position_std: of each axis, m.
        """
        start = start_of(quat_wb_wxyz, None, pos_w, None, None)
        assert isinstance(start, tuple)
        std = np.repeat([float(rotation_std), float(position_std)], 3)
        with self._turn:
            for context in self._contexts:
                core().gait_reset_pose(context.at, pointer(start[0]), pointer(start[2]), pointer(std))
            self._forget_past()

    def lagged(self) -> State:
        """The state `lag` seconds ago, smoothed by all samples since then; at the start the earliest there is."""
        with self._turn:
            if not self._recorders:
                raise GaitError("the estimator keeps no lag: load it with one, Estimator.load(..., lag=0.2)")
            state, room = self.predict(-np.inf), self._recorders[self._context]
            carry = np.empty(core().gait_carry_bytes(), dtype=np.uint8)
            core().gait_lagged(pointer(room), self._context_at, self.lag, pointer(carry), pointer(state._row))
            return state

    def _begin_lag(self, lag: float) -> None:
        """Record the steps of the filter, for so many seconds at up to 1 kHz."""
        if not 0.0 < lag <= MOST_LAG:
            raise GaitError(f"lag is {lag:g} s: give a number above 0, and at most {MOST_LAG:g}")
        self.lag, records = float(lag), int(2000 * lag) + 64
        for context in self._contexts:
            at = context.engine.config_at
            self._recorders[context] = aligned_bytes(core().gait_recorder_bytes(at, records))
            core().gait_recorder_init(pointer(self._recorders[context]), at, records)
        self._forget_past()

    def _forget_past(self) -> None:
        """The state was set from outside: what was recorded before does not lead to it."""
        if self._fusion is not None:
            self._fusion.clear_history()
        for context, room in self._recorders.items():
            core().gait_record(context.at, pointer(room))

    def _begin_fusion(self, sensors: Mapping[str, ExternalSensor]) -> None:
        """Keep a history of samples from now on, for measurements that arrive late."""
        self._fusion = Fusion(sensors)
        if self._python is None:  # a method in Python keeps a state of its own, which no history can take back
            for context, prepared in self._prepared.items():
                prepared.caller.history = self._fusion.history(context.at, ctypes.addressof(context.engine.config))
            self._history = self._now.caller.history or 0

    def _refuse_parts(self) -> None:
        if self._python is not None:
            raise GaitError(f"method {self.method} is written in Python and takes whole samples: use update")

    def predict(self, t: float) -> State:
        """The state carried on to a later time by the last IMU sample, for control; the estimator does not change."""
        with self._turn:
            scratch, out = self._context.memory.copy(), np.empty_like(self._out)
            core().gait_predict(self._context_at, _stamp(t), pointer(scratch), pointer(out))
            return State(out, self._layout)

    def run(self, log: Log, start: str = "auto") -> Trajectory:
        """A whole Log in one call: the same numbers, bit for bit, as `update` on each of its rows.

        Args:
            log: the samples.
            start: `truth` (row 0 of the ground truth), `gravity` (at rest at the start), or `auto`: ground truth if the
                log has it.
        """
        return self.run_with_details(log, start)[0]

    def run_with_details(self, log: Log, start: str = "auto") -> tuple[Trajectory, StateArrays]:
        """As `run`, and the states themselves, with what the method computed on the way."""
        log = log.reorder(self.robot)
        with self._turn:
            context, _ = self.begin_log(log, start)
            if context is None:
                states = self.stack([self.update(row) for row in log.rows()])
            else:
                states = StateArrays(context.run(rows_of(log, self.robot)), self._layout)
                self._forget_past()
            return states.trajectory(log.t, self.method), states

    def begin_log(self, log: Log, start: str = "auto") -> tuple[Context | None, RowLayout]:
        """Reset to where a Log begins, and choose the context that takes it; None of a method in Python."""
        with self._turn:
            self.start_as(log, start)
            self._choose([name for name in _OPTIONAL if getattr(log, name) is not None])
            return (self._context if self._python is None else None), self._layout

    def stack(self, states: Sequence[State]) -> StateArrays:
        """States of `update`, one after the other, as those of a whole log."""
        width = self._context.engine.state_doubles
        return StateArrays(np.array([state._row[:width] for state in states]).reshape(len(states), -1), self._layout)

    def start_as(self, log: Log, start: str = "auto") -> None:
        """Reset to where a Log begins: `truth`, `gravity`, or `auto`: ground truth if the log has it."""
        if start == "auto":
            start = "truth" if log.has_truth else "gravity"
        if start == "truth":
            if not log.has_truth:
                raise GaitError("the log has no ground truth to start from: use start='gravity' (--start gravity)")
            assert log.vel_w is not None and log.pos_w is not None and log.quat_wb_wxyz is not None
            self.reset(quat_wb_wxyz=log.quat_wb_wxyz[0], vel_w=log.vel_w[0], pos_w=log.pos_w[0], gyro=log.gyro[0])
        elif start == "gravity":
            self.reset()
        else:
            raise GaitError(f"unknown start '{start}': choose auto, truth or gravity")

    def save_state(self) -> bytes:
        """Everything it remembers, for `restore_state` of an estimator that was loaded in the same way."""
        if self._python is not None:
            raise GaitError(f"method {self.method} is written in Python: its state cannot be saved")
        with self._turn:
            given = b"-" if self._given is None else ",".join(sorted(self._given)).encode()
            return b"".join([self._context.engine.digest, len(given).to_bytes(1, "little"), given, *self._snapshots()])

    def restore_state(self, saved: bytes) -> None:
        """Go on from where `save_state` was called."""
        snapshots = self._snapshots()
        given = saved[33 : 33 + saved[32]] if len(saved) > 32 else b""
        rest = saved[33 + len(given) :]
        digests = [context.engine.digest for context in self._contexts]
        if len(rest) != sum(map(len, snapshots)) or saved[:32] not in digests:
            raise GaitError(
                "this state was saved by another kind of estimator: load the same robot, method and options"
            )
        with self._turn:
            for context, old in zip(self._contexts, snapshots, strict=True):
                context.snapshot, rest = rest[: len(old)], rest[len(old) :]
            self._forget_past()
            self._use(self._contexts[digests.index(saved[:32])])
            self._know(None if given == b"-" else frozenset(filter(None, given.decode().split(","))))

    def __getstate__(self) -> dict[str, Any]:
        if not self._recipe:
            raise GaitError("only an estimator from `Estimator.load` can be copied or pickled")
        return {"recipe": self._recipe, "state": self.save_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(Estimator.load(**state["recipe"]).__dict__)
        self.restore_state(state["state"])

    def _snapshots(self) -> list[bytes]:
        return [context.snapshot for context in self._contexts]

    def _use(self, context: Context) -> None:
        """Let a context take the samples that follow."""
        if context not in self._prepared:
            # Kept for good: another thread may be about to call the step.
            engine = context.engine
            out, config = np.empty(engine.state_doubles + engine.cov_size**2), ctypes.addressof(engine.config)
            width = self._sizes[2]
            order = None if np.array_equal(self._order, np.arange(width)) else pointer(self._order)
            past = 0 if self._fusion is None or self._python is not None else self._fusion.history(context.at, config)
            caller = CPython(context.at, past, config, self._row_at, out.nbytes, width, order, self._turn.at)
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
        """What samples are made of; None until the first one says so, which takes the long way."""
        self._given = given
        self._quick_step = _no_step if given is None else self._now.step

    def _fill(self, t: float, *values: Any) -> None:
        """A sample into the row of the core."""
        *fields, leg_ok = values
        flags = np.ones(self.robot.num_legs) if leg_ok is None else _vector(leg_ok, "leg_ok", self.robot.num_legs)
        arrays = [
            None if value is None and name in _OPTIONAL else _vector(value, name, size)
            for name, value, size in zip(FIELDS, fields, self._sizes, strict=True)
        ]
        if self._given is None:
            self._choose([name for name, array in zip(FIELDS, arrays, strict=True) if array is not None])
        self._row[0] = _stamp(t)
        for name, array in zip(FIELDS, arrays, strict=True):
            part = self._parts[name]
            part[:] = np.nan if array is None else array[self._order] if name in _BY_JOINT else array
        self._leg_ok[:] = flags

    def _sample(self) -> CSample:
        """The row as the core's struct."""
        sample, at = CSample(t=self._row[0]), self._row_at + 8
        joints, legs = self.robot.num_joints, self.robot.num_legs
        for name, size in zip(
            (*FIELDS, "leg_ok"), (3, 3, joints, joints, joints, joints, legs, legs, legs), strict=True
        ):
            setattr(sample, name, at)
            at += 8 * size
        return sample

    def _update_python(self) -> State:
        """A step whose measurements come from a method in Python."""
        library, sample, ready = core(), self._sample(), ctypes.c_int()
        health, taken = library.gait_begin(self._context_at, ctypes.addressof(sample), ctypes.addressof(ready)), False
        self._leg_ok[:] = 1.0
        if ready.value:
            self._end(health)
            assert self._python is not None
            for z, H, N in self._python.step(self._admitted(), self._state()) or ():
                z, H, N = np.atleast_1d(z).astype(float), np.atleast_2d(H).astype(float), np.atleast_2d(N).astype(float)
                if H.shape != (len(z), 15) or N.shape != (len(z), len(z)):
                    raise GaitError(f"method {self.method} gave H {H.shape} and N {N.shape} for z {z.shape}")
                arrays = [np.ascontiguousarray(array) for array in (z, H, N)]
                if library.gait_correct(self._context_at, len(z), *map(pointer, arrays)):
                    taken = True
                else:
                    health |= Health.REJECTED
            health |= 0 if taken else Health.NO_MEASUREMENT
        self._end(health)
        return self._state()

    def _end(self, health: int) -> None:
        core().gait_end(self._context_at, health, self._out_at)
        core().gait_cov(self._context_at, self._out_at + 8 * self._context.engine.state_doubles)

    def _admitted(self) -> Sample:
        """The sample as the core admitted it; None for what was not given, torques, forces and flags as they came."""
        joints, given = self.robot.num_joints, self._given or ()
        row = np.empty(7 + 3 * joints)
        core().gait_admitted(self._context_at, pointer(row))
        q, dq, q_des = np.split(row[7:], 3)
        rest = {"q_des": q_des, **{name: self._parts[name].copy() for name in ("tau", "foot_force", "contact")}}
        return Sample(
            float(row[0]), row[1:4], row[4:7], q, dq, **{name: rest[name] if name in given else None for name in rest}
        )

    def _state(self) -> State:
        return State(self._out.copy(), self._layout)


def _no_step(*_: object) -> State | None:
    """In place of a step that reads samples by itself."""
    return None


def width_of(field: str, robot: Robot) -> int:
    """Numbers of a field in one sample."""
    return 3 if field in ("gyro", "accel") else robot.num_joints if field in _BY_JOINT else robot.num_legs


def rows_of(log: Log, robot: Robot) -> Array:
    """The samples of a Log, joints in the robot's order, as the core takes them (N, row)."""
    columns: list[Array] = [log.t[:, None]]
    for name in FIELDS:
        values = getattr(log, name)
        if values is not None and name in _BY_JOINT:
            values = robot.expanded(values)
        columns.append(np.full((len(log), width_of(name, robot)), np.nan) if values is None else values)
    whole = np.ones((len(log), robot.num_legs))
    return np.ascontiguousarray(np.concatenate([*columns, whole], axis=1), dtype=np.float64)


def start_of(
    quat: npt.ArrayLike | None,
    vel_w: npt.ArrayLike | None,
    pos_w: npt.ArrayLike | None,
    gyro: npt.ArrayLike | None,
    accel: npt.ArrayLike | None,
) -> tuple[Array, Array, Array, Array] | Array | None:
    """What `reset` was given: a known state, the specific force at rest, or None for that of the next sample."""
    if quat is None:
        if vel_w is not None or pos_w is not None or gyro is not None:
            raise GaitError("velocity, position and gyro belong to a known pose: give quat_wb_wxyz too")
        return None if accel is None else _force(accel)
    unit = _numbers(quat, 4, "quat_wb_wxyz")
    norm = float(np.linalg.norm(unit))
    if not 0.99 < norm < 1.01:
        raise GaitError(f"quat_wb_wxyz has length {norm:g}: give a rotation as a unit quaternion, w first")
    velocity, position, rate = (
        np.zeros(3) if value is None else _numbers(value, 3, name)
        for name, value in {"vel_w": vel_w, "pos_w": pos_w, "gyro": gyro}.items()
    )
    return unit / norm, velocity, position, rate


def _order(robot: Robot, joint_names: Sequence[str] | None) -> npt.NDArray[np.int32]:
    """Where the robot's joints stand among those that will come."""
    joint_names = robot.encoder_names if joint_names is None else joint_names
    missing = [name for name in robot.joint_names if name not in joint_names]
    if missing:
        raise GaitError(
            f"joint_names lacks '{missing[0]}', which {robot.name} has: name the joints as the robot does,"
            f" {', '.join(robot.joint_names)}"
        )
    return np.array([list(joint_names).index(name) for name in robot.joint_names], dtype=np.int32)


def _force(accel: npt.ArrayLike) -> Array:
    """The mean of samples of the accelerometer (3,)."""
    try:
        return np.asarray(np.array(accel, dtype=np.float64).reshape(-1, 3).mean(0))
    except (ValueError, TypeError):
        raise GaitError(f"accel must be three numbers, or rows of three, got {accel!r}") from None


def _stamp(t: float) -> float:
    """Seconds; may be nan."""
    return float(_vector([t], "t", 1)[0])


def _vector(value: npt.ArrayLike, name: str, size: int) -> Array:
    """Numbers that may be nan: a sensor says what it says."""
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, TypeError):
        raise GaitError("a sample is made of numbers, and its stamp is one: convert them first") from None
    if array.shape != (size,):
        raise GaitError(f"{name} must be {size} numbers, got an array of shape {array.shape}")
    return array


def _numbers(value: npt.ArrayLike, count: int, name: str) -> Array:
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, TypeError):
        raise GaitError(f"{name} must be {count} finite numbers, got {value!r}") from None
    if array.shape != (count,) or not np.isfinite(array).all():
        raise GaitError(f"{name} must be {count} finite numbers, got {value!r}")
    return array
