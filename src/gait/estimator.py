"""The streaming estimator: samples of an IMU and joint encoders in, the state of the robot out.

est = gait.Estimator.load("go1")
for t, gyro, accel, q, dq, q_des in robot:
    state = est.update(t, gyro, accel, q, dq, q_des)
    policy(state.vel_b)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import Array, BoolArray
from gait.errors import GaitError
from gait.filters import output
from gait.health import HealthReport
from gait.log.log import Log
from gait.log.sample import Sample
from gait.log.trajectory import Trajectory
from gait.methods import DEFAULT, METHODS, Method
from gait.nets.architecture import LegsArchitecture
from gait.nets.model import Model, load_model
from gait.parameters import BASELINES, Options, Prior, ProcessNoise
from gait.robot import Robot
from gait.runtime.engines import ContactAided, Engine, VelocityAided
from gait.runtime.samples import Limits, Rows
from gait.runtime.velocity_aided import ATTENTIONS, GAP_LENGTH, HEALTH, PREDICTED, TIME

__all__ = ["DEFAULT", "METHODS", "Estimator", "Method", "State"]


_FIELDS = ("gyro", "accel", "q", "dq", "q_des", "tau", "foot_force", "contact")
_FIRST_OPTIONAL = 4
_OPTIONAL = _FIELDS[_FIRST_OPTIONAL:]


class State:
    """What is known after a sample: a snapshot, which later samples do not change. Of base_link, in SI units."""

    __slots__ = ("_cov", "_leg_names", "_row", "_shape")

    def __init__(self, row: Array, cov: Array, leg_names: Sequence[str], shape: tuple[int, int, int]) -> None:
        self._row, self._cov, self._leg_names, self._shape = row, cov, leg_names, shape

    @property
    def t(self) -> float:
        """Stamp of the last sample that was used, s."""
        return float(self._row[TIME])

    @property
    def vel_b(self) -> Array:
        """Velocity in the body frame (3,), m/s."""
        return self._row[output.VEL_B : output.VEL_B + 3]

    @property
    def vel_w(self) -> Array:
        """Velocity in the world frame (3,), m/s."""
        return self._row[output.VEL_W : output.VEL_W + 3]

    @property
    def pos_w(self) -> Array:
        """Position in the world frame (3,), m."""
        return self._row[output.POS_W : output.POS_W + 3]

    @property
    def quat_wb_wxyz(self) -> Array:
        """Orientation, body to world (4,), w first."""
        return self._row[output.QUAT : output.QUAT + 4]

    @property
    def R_wb(self) -> Array:
        """Orientation, body to world (3, 3)."""
        return lie.rotation_from_quat(self.quat_wb_wxyz)

    @property
    def gyro_bias(self) -> Array:
        """Gyro bias (3,), rad/s, in IMU axes."""
        return self._row[output.GYRO_BIAS : output.GYRO_BIAS + 3]

    @property
    def accel_bias(self) -> Array:
        """Accelerometer bias (3,), m/s^2, in IMU axes."""
        return self._row[output.ACCEL_BIAS : output.ACCEL_BIAS + 3]

    @property
    def vel_cov(self) -> Array:
        """Covariance of `vel_b` (3, 3)."""
        return self._row[output.VEL_COV : output.VEL_COV + 9].reshape(3, 3)

    @property
    def vel_b_std(self) -> Array:
        """Standard deviation of `vel_b` (3,), m/s."""
        std: Array = np.sqrt(self._row[output.VEL_COV : output.VEL_COV + 9 : 4])
        return std

    @property
    def pose_cov(self) -> Array:
        """Covariance of position, then rotation, in world axes (6, 6), in ROS order."""
        return self._row[output.POSE_COV : output.POSE_COV + 36].reshape(6, 6)

    @property
    def cov(self) -> Array:
        """Covariance of the right-invariant error: rotation, velocity, position, biases (15, 15), then feet."""
        return self._cov

    @property
    def predicted(self) -> tuple[Array, Array]:
        """The network's own velocity (3,) and standard deviation (3,), m/s; nan for model-based methods."""
        return self._row[PREDICTED : PREDICTED + 3], np.exp(self._row[PREDICTED + 3 : PREDICTED + 6])

    @property
    def health(self) -> HealthReport:
        """What is wrong, if anything: `str(state.health)` is `ok` or, say, `leg FR stale, gap 0.12 s`."""
        return HealthReport(int(self._row[HEALTH]), self._leg_names, float(self._row[GAP_LENGTH]))

    @property
    def attention(self) -> Array | None:
        """Where the network looked (history, tokens), oldest first; None unless asked for at `load`.

        Of `gait-legs` how much each leg looked at each other (L, L).
        """
        steps, tokens, _ = self._shape
        return self._row[ATTENTIONS : ATTENTIONS + steps * tokens].reshape(steps, tokens) if steps else None

    @property
    def legs(self) -> tuple[Array, Array] | None:
        """Body velocity by each leg (L, 3) and its standard deviation (L, 3), m/s; a leg out of use is not sure at all.

        Only of `gait-legs`, and if attention was asked for at `load`; otherwise None.
        """
        if not self._shape[2]:
            return None
        said = self._row[-6 * self._shape[2] :].reshape(-1, 6)
        return said[:, :3], np.exp(said[:, 3:])

    def __repr__(self) -> str:
        x, y, z = self.vel_b
        return f"State(t={self.t:.3f} s, vel_b=[{x:.3f}, {y:.3f}, {z:.3f}] m/s, {self.health})"


class Estimator:
    """Velocity, orientation and position of a robot, sample by sample or for a whole Log.

    `load` makes one. `update` never raises for what a sensor says and never returns nan: what is broken is left out,
    the state goes on with the rest, and `state.health` says so. An estimator belongs to one thread at a time; several
    estimators may run in several threads.
    """

    def __init__(
        self,
        robot: Robot,
        engine: Engine,
        method: str,
        *,
        without_targets: Engine | None = None,
        joint_names: Sequence[str] | None = None,
        attention: bool = False,
    ) -> None:
        """Put an estimator together; `load` is the usual way."""
        self.robot, self.method = robot, method
        self._leg_names = robot.leg_names
        self._engine = self._full = engine
        self._less = without_targets
        self._order = _order(robot, joint_names)
        width = robot.num_joints if joint_names is None else len(joint_names)
        self._sizes = (3, 3, width, width, width, width, robot.num_legs, robot.num_legs)
        self._attention = attention
        self._layout = Rows(robot.num_legs)
        self._parts = self._layout.parts()
        self._row = np.full((1, self._layout.width), np.nan)
        self._row[:, self._layout.leg_ok :] = 1.0
        # Views of the row, made once: a fresh one costs as much as the numbers that go in.
        self._stamp, self._leg_ok = self._row[0, :1], self._row[0, self._layout.leg_ok :]
        self._places = [self._row[0, part] for part in self._parts.values()]
        self._filled = [False] * len(self._places)
        self._given: frozenset[str] | None = None
        self._shape = self._shape_now()
        self.reset()

    @staticmethod
    def load(
        robot: str | Path | Robot = "go1",
        method: str | Path | Model = DEFAULT,
        *,
        joint_names: Sequence[str] | None = None,
        attention: bool = False,
        noise: ProcessNoise | None = None,
        prior: Prior | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        contact_from: str | None = None,
    ) -> Estimator:
        """An estimator, ready for its first sample.

        Args:
            robot: name of a robot, the path of its YAML file, or a `Robot`.
            method: `gait-legs`, `gait`, `gait-flat`, `nmn`, `iekf` or `iekf-sr`; or a model: its name, the path of its
                file, or a `Model`.
            joint_names: order in which joints will come; the robot's own by default. More than the robot has is fine.
            attention: let the network tell where it looks (`state.attention`).
            noise: of the IMU, as the filter believes it; by default what suits the method.
            prior: how well the state given to `reset` is known.
            options: how the filter treats time.
            limits: what a sensor can truly say.
            contact_from: for model-based methods: `tau`, `foot_force` or `contact`; the best there is by default.
        """
        robot = robot if isinstance(robot, Robot) else Robot.load(robot)
        prior, options, limits = prior or Prior(), options or Options(), limits or Limits()
        if isinstance(method, str) and method in BASELINES:
            from dataclasses import replace

            params = replace(BASELINES[method], imu=noise or ProcessNoise(), prior=prior, options=options)
            return Estimator(robot, ContactAided(robot, params, limits, contact_from), method, joint_names=joint_names)

        def engine(model: Model, dead_leg: Model | None = None) -> VelocityAided:
            return VelocityAided(robot, model, noise, prior, options, limits, attention, dead_leg)

        model, less, dead_leg, name = _models(method, robot)
        return Estimator(
            robot,
            engine(model, dead_leg),
            name,
            without_targets=None if less is None else engine(less),
            joint_names=joint_names,
            attention=attention,
        )

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
        if quat_wb_wxyz is not None:
            quat = _numbers(quat_wb_wxyz, 4, "quat_wb_wxyz")
            norm = float(np.linalg.norm(quat))
            if not 0.99 < norm < 1.01:
                raise GaitError(f"quat_wb_wxyz has length {norm:g}: give a rotation as a unit quaternion, w first")
            R_bi = lie.rotation_from_quat(self.robot.imu_quat_wxyz)
            still = np.zeros(3)
            given = {"gyro": gyro, "vel_w": vel_w, "pos_w": pos_w}
            rate, velocity, position = (
                still if value is None else _numbers(value, 3, name) for name, value in given.items()
            )
            known = (lie.rotation_from_quat(quat / norm), velocity, position, R_bi @ rate, None)
            for engine in self._engines():
                engine.start(*known)
        else:
            if vel_w is not None or pos_w is not None or gyro is not None:
                raise GaitError("velocity, position and gyro belong to a known pose: give quat_wb_wxyz too")
            force = None if accel is None else _force(accel)
            for engine in self._engines():
                engine.start_at_rest(force)
        self._given = None

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
        if isinstance(t, Sample):
            t, gyro, accel, q, dq, q_des, tau, foot_force, contact = t
        values = (gyro, accel, q, dq, q_des, tau, foot_force, contact)
        if self._given is None:
            self._check(values, leg_ok)
        order, places, filled, engine = self._order, self._places, self._filled, self._engine
        try:
            self._stamp[...] = t
            for i, value in enumerate(values):
                if value is not None:
                    if len(value) != self._sizes[i]:  # type: ignore[arg-type]
                        raise ValueError  # numpy would make many of one
                    places[i][...] = value if order is None or not _BY_JOINT[i] else np.asarray(value)[order]
                    filled[i] = True
                elif i < _FIRST_OPTIONAL:
                    raise ValueError
                elif filled[i]:
                    places[i][...] = np.nan
                    filled[i] = False
            if leg_ok is not None:
                self._leg_ok[...] = leg_ok
        except (ValueError, TypeError, IndexError):
            self._check(values, leg_ok)
            raise GaitError("a sample is made of numbers, and its stamp is one: convert them first") from None
        out = np.empty((1, engine.width))
        engine.run(self._row, out)
        if leg_ok is not None:
            self._leg_ok[...] = 1.0
        return State(out[0], engine.cov.copy(), self._leg_names, self._shape)

    def run(self, log: Log, start: str = "truth") -> Trajectory:
        """A whole Log in one compiled loop: the same numbers, bit for bit, as `update` on each of its rows.

        Args:
            log: the samples.
            start: `truth` (row 0 of the ground truth) or `gravity` (at rest at the start).
        """
        return self.run_with_details(log, start)[0]

    def run_with_details(self, log: Log, start: str = "truth") -> tuple[Trajectory, Details]:
        """As `run`, and what the method thought meanwhile."""
        log = log.reorder(self.robot)
        self.start_as(log, start)
        self._choose([name for name in _OPTIONAL if getattr(log, name) is not None])
        rows = np.full((len(log), self._layout.width), np.nan)
        rows[:, 0], rows[:, self._layout.leg_ok :] = log.t, 1.0
        for name, part in self._parts.items():
            if (values := getattr(log, name)) is not None:
                rows[:, part] = values
        out = np.empty((len(log), self._engine.width))
        self._engine.run(rows, out)
        health = out[:, HEALTH].astype(np.uint32)
        trajectory = output.trajectory_of(log.t, out[:, : output.WIDTH], health, self.method)
        return trajectory, Details(out, self._shape, isinstance(self._engine, ContactAided))

    @property
    def by_leg(self) -> bool:
        """Whether the network judges legs, so that only the filter says how fast the body is."""
        return isinstance(self._full, VelocityAided) and self._full.legs > 0

    def start_as(self, log: Log, start: str) -> None:
        """Reset to where a Log begins: `truth` or `gravity`."""
        if start == "truth":
            if not log.has_truth:
                raise GaitError("the log has no ground truth to start from: use start='gravity' (--start gravity)")
            assert log.vel_w is not None and log.pos_w is not None and log.quat_wb_wxyz is not None
            self.reset(quat_wb_wxyz=log.quat_wb_wxyz[0], vel_w=log.vel_w[0], pos_w=log.pos_w[0], gyro=log.gyro[0])
        elif start == "gravity":
            self.reset()
        else:
            raise GaitError(f"unknown start '{start}': choose truth or gravity")

    def _shape_now(self) -> tuple[int, int, int]:
        """Of the attention, and how many legs tell their velocity: zeros if it was not asked for."""
        engine = self._engine
        return (*engine.shape, engine.legs) if self._attention and isinstance(engine, VelocityAided) else (0, 0, 0)

    def _engines(self) -> list[Engine]:
        return [self._full] if self._less is None else [self._full, self._less]

    def _choose(self, given: Collection[str]) -> None:
        """Take the weights that go with what is there, and see that it is enough."""
        full = self._full
        enough = not isinstance(full, VelocityAided) or any(name in given for name in full.reads)
        self._engine = full if self._less is None or enough else self._less
        self._engine.needs(given)
        self._given, self._shape = frozenset(given), self._shape_now()

    def _check(self, values: Sequence[npt.ArrayLike | None], leg_ok: npt.ArrayLike | None) -> None:
        """Look at the shape of everything, once after a reset: later calls trust it."""
        legs = self.robot.num_legs
        for name, value, size in zip(_FIELDS, values, self._sizes, strict=True):
            if value is None and name in _OPTIONAL:
                continue
            shape = np.shape(value) if value is not None else ()
            if shape != (size,):
                raise GaitError(f"{name} must be {size} numbers, got an array of shape {shape}")
        if leg_ok is not None and np.shape(leg_ok) != (legs,):
            raise GaitError(f"leg_ok must be {legs} flags, got an array of shape {np.shape(leg_ok)}")
        self._choose([name for name, value in zip(_FIELDS, values, strict=True) if value is not None])


_BY_JOINT = (False, False, True, True, True, True, False, False)


class Details:
    """What a method thought of each sample of a Log."""

    def __init__(self, out: Array, shape: tuple[int, int, int], contacts: bool) -> None:
        self._out, self._shape, self._contacts = out, shape, contacts

    @property
    def predicted(self) -> tuple[Array, Array]:
        """The network's own velocity (N, 3) and standard deviation (N, 3); nan for model-based methods."""
        return self._out[:, PREDICTED : PREDICTED + 3], np.exp(self._out[:, PREDICTED + 3 : PREDICTED + 6])

    @property
    def attention(self) -> Array | None:
        """Where the network looked (N, history, tokens), oldest first; None unless asked for at `load`.

        Of `gait-legs` how much each leg looked at each other (N, L, L).
        """
        steps, tokens, _ = self._shape
        return self._out[:, ATTENTIONS : ATTENTIONS + steps * tokens].reshape(-1, steps, tokens) if steps else None

    @property
    def legs(self) -> tuple[Array, Array] | None:
        """Body velocity by each leg (N, L, 3) and its standard deviation (N, L, 3), as `State.legs`."""
        if not self._shape[2]:
            return None
        said = self._out[:, -6 * self._shape[2] :].reshape(len(self._out), -1, 6)
        return said[..., :3], np.exp(said[..., 3:])

    @property
    def contact(self) -> BoolArray | None:
        """Which feet a model-based method took to be on the ground (N, L)."""
        return self._out[:, ATTENTIONS:] > 0.5 if self._contacts else None


def _models(method: str | Path | Model, robot: Robot) -> tuple[Model, Model | None, Model | None, str]:
    """The model behind a method, those without targets and for a dead leg if there are any, and the method's name."""
    if isinstance(method, Model):
        return method, None, None, method.architecture.kind
    known = METHODS.get(str(method))
    try:
        model = load_model(method if known is None else known.weights)
    except GaitError:
        if known is None and not Path(method).suffix:
            raise GaitError(
                f"unknown method '{method}': choose one of {', '.join(METHODS)}, or give the path of a model file"
            ) from None
        raise
    if known is None:
        return model, None, None, Path(method).stem
    if model.robot != robot.name and not isinstance(model.architecture, LegsArchitecture):
        raise GaitError(
            f"method {method} has no weights for {robot.name}, only for {model.robot}: train some (`gait train`) and"
            " give their path, or use method iekf, which needs none"
        )
    less, dead_leg = (load_model(name) if name else None for name in (known.without_targets, known.dead_leg))
    return model, less, dead_leg, str(method)


def _order(robot: Robot, joint_names: Sequence[str] | None) -> list[int] | None:
    """Where the robot's joints stand among those that will come; None if they come in its order."""
    if joint_names is None or tuple(joint_names) == robot.joint_names:
        return None
    missing = [name for name in robot.joint_names if name not in joint_names]
    if missing:
        raise GaitError(
            f"joint_names lacks '{missing[0]}', which {robot.name} has: name the joints as the robot does,"
            f" {', '.join(robot.joint_names)}"
        )
    return [list(joint_names).index(name) for name in robot.joint_names]


def _force(accel: npt.ArrayLike) -> Array:
    """The mean of samples of the accelerometer (3,)."""
    try:
        return np.asarray(np.array(accel, dtype=np.float64).reshape(-1, 3).mean(0))
    except (ValueError, TypeError):
        raise GaitError(f"accel must be three numbers, or rows of three, got {accel!r}") from None


def _numbers(value: npt.ArrayLike, count: int, name: str) -> Array:
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, TypeError):
        raise GaitError(f"{name} must be {count} finite numbers, got {value!r}") from None
    if array.shape != (count,) or not np.isfinite(array).all():
        raise GaitError(f"{name} must be {count} finite numbers, got {value!r}")
    return array
