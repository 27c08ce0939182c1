"""The model-based baselines `iekf` and `iekf-sr`: contacts guessed from torques, feet in the state, slip rejection."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import Array, BoolArray
from gait.errors import GaitError
from gait.filters import output
from gait.filters.contact_kernels import (
    FROM_FLAGS,
    FROM_FORCE,
    FROM_TORQUE,
    Memory,
    Model,
    Out,
    run_kernel,
    step_kernel,
    write_out,
)
from gait.filters.iekf import InvariantEKF
from gait.filters.output import trajectory_of
from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.parameters import ContactAided
from gait.robot import Robot

_SOURCES = {"tau": FROM_TORQUE, "foot_force": FROM_FORCE, "contact": FROM_FLAGS}


class ContactAidedFilter:
    """Contact-aided invariant EKF (Hartley et al. 2020) on a robot's sensors.

    Feet that carry load join the state as points on the ground and measure the body's motion by forward kinematics.
    What carries load is guessed from joint torques, or taken from foot forces or given flags. `step` takes one sample,
    `run` a whole Log; both go through the same compiled function and give the same bits.
    """

    def __init__(
        self, robot: Robot | str | Path, params: ContactAided | None = None, contact_from: str | None = None
    ) -> None:
        """Set up the filter.

        Args:
            robot: whose legs; a `Robot`, the name of one, or the path of its YAML file.
            params: noise, thresholds and options.
            contact_from: `tau`, `foot_force` or `contact`: the field that contacts come from; by default the first of
                these that there is.
        """
        if contact_from is not None and contact_from not in _SOURCES:
            raise GaitError(f"contacts cannot come from '{contact_from}': choose one of {', '.join(_SOURCES)}")
        self.robot = robot = robot if isinstance(robot, Robot) else Robot.load(robot)
        self.params = p = params or ContactAided()
        self.contact_from = contact_from
        legs = robot.num_legs
        self._ekf = InvariantEKF(legs, p.imu, p.prior, p.options)
        self._R_bi = lie.rotation_from_quat(robot.imu_quat_wxyz)
        self.model = Model(
            offsets=robot.offsets,
            signs=robot.signs,
            inertial=robot.leg_inertial,
            armature=robot.armature,
            imu_rotation=self._R_bi,
            imu_position=robot.imu_position,
            noise=p.imu.densities,
            kin_cov=np.tile(np.eye(3) * p.kinematics**2, (legs, 1, 1)),
            radius=robot.foot_radius if p.rolling else 0.0,
            weight=robot.mass * abs(p.options.gravity),
            touch_down=p.detection.touch_down,
            lift_off=p.detection.lift_off,
            smoothing=p.detection.smoothing,
            touch_down_dwell=p.detection.touch_down_dwell,
            lift_off_dwell=p.detection.lift_off_dwell,
            contact_std=p.contact,
            slip_speed=p.slip.speed if p.slip.enabled else math.inf,
            slip_inflation=p.slip.inflation,
            gravity=p.options.gravity,
            exact_mean=p.options.exact_mean,
            exact_phi=p.options.exact_phi,
            max_gap=p.options.max_gap,
            gap_accel=p.options.gap_accel,
            gap_rate=p.options.gap_rate,
            contact_source=FROM_TORQUE,
        )
        self.memory = Memory(
            *self._ekf.arrays,
            contact=np.zeros(legs, dtype=np.bool_),
            waiting=np.zeros(legs),
            dq=np.full(3 * legs, np.nan),
            ddq=np.zeros(3 * legs),
            tau=np.zeros(3 * legs),
            walk=np.full(legs, p.contact),
            roll=np.zeros((legs, 3)),
            feet=np.zeros((legs, 3)),
            scratch=np.zeros((8, 3)),
            jac=np.zeros((3, 3)),
            gap_noise=np.zeros(5),
            measured=np.zeros(1, dtype=np.bool_),
            flags=np.zeros(legs, dtype=np.bool_),
        )
        self._gyro = np.zeros(3)
        self._health = 0
        self._out = _rows(1, legs)

    def reset(
        self,
        quat_wb_wxyz: npt.ArrayLike = (1.0, 0.0, 0.0, 0.0),
        vel_w: npt.ArrayLike = (0.0, 0.0, 0.0),
        pos_w: npt.ArrayLike = (0.0, 0.0, 0.0),
        gyro: npt.ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Start from a known state of base_link, with no foot on the ground.

        Args:
            quat_wb_wxyz: orientation.
            vel_w: velocity.
            pos_w: position.
            gyro: angular rate of that moment, as the IMU measures it.
        """
        R_wb = lie.rotation_from_quat(np.ascontiguousarray(quat_wb_wxyz, dtype=np.float64))
        arm = R_wb @ self.robot.imu_position
        omega_w = R_wb @ self._R_bi @ np.asarray(gyro, dtype=np.float64)
        self._ekf.reset(R_wb @ self._R_bi, np.asarray(vel_w) + np.cross(omega_w, arm), np.asarray(pos_w) + arm)
        self._forget(gyro)

    def reset_from_gravity(self, accel: Array) -> None:
        """Start without truth, at rest: roll and pitch from the specific force (3,) or (N, 3), the rest at zero."""
        self._ekf.reset_from_gravity(accel)
        # Heading zero and the origin belong to base_link, not to the IMU.
        R_wb = self._ekf.R_wb @ self._R_bi.T
        yaw = math.atan2(R_wb[1, 0], R_wb[0, 0])
        R_wb = lie.so3_exp(np.array([0.0, 0.0, -yaw])) @ R_wb
        self._ekf.reset(R_wb @ self._R_bi, pos_w=R_wb @ self.robot.imu_position)
        self._forget(np.zeros(3))

    def _forget(self, gyro: npt.ArrayLike) -> None:
        self.memory.contact[:] = False
        self.memory.measured[:] = False
        self.memory.waiting[:] = 0.0
        self.memory.dq[:] = np.nan
        self.memory.ddq[:] = 0.0
        self.memory.tau[:] = 0.0
        self._gyro[:] = gyro
        self._health = 0
        self._refresh()

    def step(
        self,
        dt: float,
        gyro: Array,
        accel: Array,
        q: Array,
        dq: Array,
        tau: Array | None = None,
        foot_force: Array | None = None,
        contact: BoolArray | None = None,
    ) -> None:
        """Take one sample, `dt` seconds after the one before. Joints are in the robot's order."""
        legs, joints = self.robot.num_legs, self.robot.num_joints
        fields = {"tau": tau, "foot_force": foot_force, "contact": contact}
        self.take_contacts_from([name for name, value in fields.items() if value is not None])
        self._gyro[:] = _sample(gyro, 3, "gyro")
        self._health = step_kernel(
            self.model,
            self.memory,
            float(dt),
            self._gyro,
            _sample(accel, 3, "accel"),
            _sample(q, joints, "q"),
            _sample(dq, joints, "dq"),
            _sample(tau, joints, "tau"),
            _sample(foot_force, legs, "foot_force"),
            _sample(contact, legs, "contact") != 0.0,
        )
        self._refresh()

    def take_contacts_from(self, given: Collection[str]) -> None:
        """Choose what contacts come from: the field that was asked for, or the best that is there."""
        if self.contact_from is not None and self.contact_from not in given:
            raise GaitError(f"there is no {self.contact_from}, which contacts were to come from: give it, or another")
        there = [name for name in _SOURCES if name in given]
        if not there:
            raise GaitError(
                f"none of {', '.join(_SOURCES)} is there: the contact-aided filter needs one to tell contacts"
            )
        source = _SOURCES[self.contact_from or there[0]]
        if source != self.model.contact_source:
            self.model = self.model._replace(contact_source=source)

    def _refresh(self) -> None:
        write_out(self.model, self.memory, self._out, 0, self._gyro, self._health)

    @property
    def quat_wb_wxyz(self) -> Array:
        """Orientation of base_link (4,), a copy."""
        return self._out.rows[0, output.QUAT : output.QUAT + 4].copy()

    @property
    def vel_w(self) -> Array:
        """Velocity of base_link in the world frame (3,), a copy."""
        return self._out.rows[0, output.VEL_W : output.VEL_W + 3].copy()

    @property
    def pos_w(self) -> Array:
        """Position of base_link (3,), a copy."""
        return self._out.rows[0, output.POS_W : output.POS_W + 3].copy()

    @property
    def contact(self) -> BoolArray:
        """Which feet are taken to be on the ground (L,), a copy."""
        return self.memory.contact.copy()

    @property
    def health(self) -> int:
        """Bits of `Health` of the last step."""
        return self._health

    def run(self, log: Log, start: str = "truth") -> Trajectory:
        """The whole log. `start` is `truth` (row 0 of the ground truth) or `gravity` (at rest at the start)."""
        return self.run_with_contacts(log, start)[0]

    def run_with_contacts(self, log: Log, start: str = "truth") -> tuple[Trajectory, BoolArray]:
        """As `run`, and which feet were taken to be on the ground (N, L)."""
        log = log.reorder(self.robot)
        self.take_contacts_from([name for name in _SOURCES if getattr(log, name) is not None])
        if start == "truth":
            self.reset(log.need("quat_wb_wxyz")[0], log.need("vel_w")[0], log.need("pos_w")[0], log.gyro[0])
        elif start == "gravity":
            self.reset_from_gravity(log.accel[: max(1, int(0.1 * log.rate))])
        else:
            raise GaitError(f"unknown start '{start}': choose truth or gravity")
        count, legs = len(log), self.robot.num_legs
        out = _rows(count, legs)
        # Copies: a Log's arrays are read-only, which compiled code counts as another type.
        run_kernel(
            self.model,
            self.memory,
            out,
            np.array(log.t),
            np.array(log.gyro),
            np.array(log.accel),
            np.array(log.q),
            np.array(log.dq),
            np.zeros((count, 3 * legs)) if log.tau is None else np.array(log.tau),
            np.zeros((count, legs)) if log.foot_force is None else np.array(log.foot_force),
            np.zeros((count, legs), dtype=np.bool_) if log.contact is None else np.array(log.contact),
        )
        name = "iekf-sr" if self.params.slip.enabled else "iekf"
        trajectory = trajectory_of(log.t, out.rows, out.health, name)
        return trajectory, out.contact


def _rows(count: int, legs: int) -> Out:
    return Out(
        rows=np.zeros((count, output.WIDTH)),
        health=np.zeros(count, dtype=np.uint32),
        contact=np.zeros((count, legs), dtype=np.bool_),
    )


def _sample(value: npt.ArrayLike | None, size: int, name: str) -> Array:
    """A checked copy, or zeros for what is not given: compiled code does not look at bounds."""
    array = np.zeros(size) if value is None else np.array(value, dtype=np.float64)
    if array.shape != (size,):
        raise GaitError(f"{name} must be {size} numbers, got an array of shape {array.shape}")
    return array
