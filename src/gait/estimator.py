"""The streaming estimator: samples of an IMU and joint encoders in, the state of the robot out.

est = gait.Estimator.load("go1")
for t, gyro, accel, q, dq, q_des in robot:
    state = est.update(t, gyro, accel, q, dq, q_des)
    policy(state.vel_b)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import AnyArray
from gait.binding import aligned_bytes, core, pointer
from gait.engine import Context, engines_of, options_of
from gait.errors import GaitError
from gait.external import Correction, ExternalSensor, Fusion, Measured
from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.methods import DEFAULT, METHODS, Method
from gait.nets.model import Model
from gait.parameters import Limits, Options, Prior, ProcessNoise
from gait.robot import Robot
from gait.sample_rows import OPTIONAL, rows_of, start_of
from gait.state import RowLayout, State, StateArrays
from gait.stepper import Stepper

__all__ = ["DEFAULT", "METHODS", "Estimator", "Method", "State", "StateArrays"]

PART = 8192
"""Rows of a log that the core is given at a time: of a long log, a copy of all of them would be large."""
MOST_LAG = 2.0
"""Seconds of the longest lag."""


class Estimator(Stepper):
    """Velocity, orientation and position of a robot, sample by sample or for a whole Log.

    `load` makes one. `update` never raises for bad values of a sensor and never returns nan: they are left out, the
    state goes on with the rest, and `state.health` says so. An estimator may be used from several threads, which then
    take turns; `copy.deepcopy` and `pickle` work, with everything it remembers.
    """

    lag = 0.0
    """Seconds by which `lagged` is behind."""
    _fusion: Fusion | None = None
    _recorders: Mapping[Context, AnyArray] = MappingProxyType({})
    _recipe: Mapping[str, Any] = MappingProxyType({})

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
            attention: let states carry the attention (`state.attention`) and what legs measure.
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
        rooms: dict[Context, AnyArray] = {}
        for context in self._contexts:
            at = context.engine.config_at
            rooms[context] = aligned_bytes(core().gait_recorder_bytes(at, records))
            core().gait_recorder_init(pointer(rooms[context]), at, records)
        self._recorders = rooms
        self._forget_past()

    def _forget_past(self, everything: bool = False) -> None:
        if self._fusion is not None:
            (self._fusion.clear if everything else self._fusion.clear_history)()
        for context, room in self._recorders.items():
            core().gait_record(context.at, pointer(room))

    def _history_of(self, context: Context) -> int:
        # A method in Python keeps a state of its own, which no history can take back.
        if self._fusion is None or self._python is not None:
            return 0
        return self._fusion.history(context.at, context.engine.config_at)

    def _begin_fusion(self, sensors: Mapping[str, ExternalSensor]) -> None:
        """Keep a history of samples from now on, for delayed measurements."""
        self._fusion = Fusion(sensors)
        for context, prepared in self._prepared.items():
            prepared.caller.history = self._history_of(context)
        self._history = self._now.caller.history or 0

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
                found = np.empty((len(log), context.engine.state_doubles))
                for first in range(0, len(log), PART):
                    part = slice(first, first + PART)
                    context.run(rows_of(log, self.robot, part), found[part])
                found.flags.writeable = False
                states = StateArrays(found, self._layout)
                self._forget_past()
            return states.trajectory(log.t, self.method), states

    def begin_log(self, log: Log, start: str = "auto") -> tuple[Context | None, RowLayout]:
        """Reset to where a Log begins, and choose the context that takes it; None of a method in Python."""
        with self._turn:
            self.start_as(log, start)
            self._choose([name for name in OPTIONAL if getattr(log, name) is not None])
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

    @property
    def reads_legs(self) -> bool:
        """Whether a smoother may choose the options of its pass: the method weighs legs, and nobody gave options."""
        return self._context.engine.by_leg and bool(self._recipe) and self._recipe["options"] is None

    @property
    def joint_delay(self) -> float:
        """Seconds by which it takes joints to be read later than the IMU."""
        return float(self._context.engine.config.settings.joint_delay)

    def with_options(self, **values: Any) -> Estimator:
        """Another one, loaded alike but for these options."""
        options = replace(options_of(self.robot), **values)
        return Estimator.load(**{**self._recipe, "options": options, "sensors": None, "lag": 0.0})

    def with_legs(self) -> Estimator:
        """Another one, loaded alike, whose states carry what the legs measure."""
        return Estimator.load(**{**self._recipe, "attention": True, "sensors": None, "lag": 0.0})

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
