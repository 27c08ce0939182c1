"""A method on the C core: its configuration, made of robot, parameters and network, and contexts that run it."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.binding import (
    CONTACT_SOURCES,
    CONTACTS,
    EXTERNAL,
    LEGS,
    VELOCITY,
    CConfig,
    CContactSettings,
    aligned_bytes,
    core,
    core_holding_gil,
    doubles,
    pointer,
)
from gait.core_config import core_robot, core_settings
from gait.errors import GaitError
from gait.methods import is_python, method_name
from gait.nets.architecture import AttentionArchitecture, LegsArchitecture
from gait.nets.choose import fitted, models_of
from gait.nets.model import Model
from gait.nets.pack import PackedStruct, pack, pack_legs
from gait.parameters import BASELINES, LEGS_NOISE, ContactAided, Limits, Options, Prior, ProcessNoise
from gait.robot import Robot
from gait.state import Shape


def _contact_settings(params: ContactAided) -> CContactSettings:
    d = params.detection
    return CContactSettings(
        touch_down=d.touch_down, lift_off=d.lift_off, smoothing=d.smoothing, touch_down_dwell=d.touch_down_dwell,
        lift_off_dwell=d.lift_off_dwell, contact_std=params.contact, kinematics_std=params.kinematics,
        rolling=float(params.rolling),
        slip_speed=params.slip.speed if params.slip.enabled else np.inf, slip_inflation=params.slip.inflation,
    )  # fmt: skip


def options_of(robot: Robot, usual: Options | None = None) -> Options:
    """The options where none are given: the usual ones, with the latency of the robot's joints if it is known."""
    usual = usual or Options()
    return usual if robot.joint_delay is None else replace(usual, joint_delay=robot.joint_delay)


class Engine:
    """The configuration of a method for one robot; contexts made from it share it."""

    def __init__(
        self,
        robot: Robot,
        *,
        model: Model | None = None,
        dead_leg: Model | None = None,
        no_torque: Model | None = None,
        contacts: ContactAided | None = None,
        noise: ProcessNoise | None = None,
        prior: Prior | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        attention: bool = False,
        feet: bool = False,
        contact_from: str | None = None,
    ) -> None:
        """Put one together: of a model, of contact settings, or of neither for measurements of the caller's own.

        Args:
            robot: whose sensors.
            model: the network.
            dead_leg: network of the same kind that takes over while a leg is out of use.
            no_torque: of `gait-legs`, network that takes over while there are neither torques nor targets.
            contacts: of the contact-aided filter.
            noise: of the IMU; by default that of `contacts`, or what suits the model.
            prior: of a state that is given; by default that of `contacts`.
            options: of the filter; by default those of `contacts`.
            limits: of the sensors.
            attention: whether states carry the attention, and what each leg measures.
            feet: whether states carry contact, slip, force and position of each foot, and the ground.
            contact_from: `tau`, `foot_force` or `contact`; the best there is by default.
        """
        if contact_from is not None and contact_from not in CONTACT_SOURCES:
            raise GaitError(f"contacts cannot come from '{contact_from}': choose one of {', '.join(CONTACT_SOURCES)}")
        if contacts is not None:
            noise, prior, options = (
                noise or contacts.imu,
                prior or contacts.prior,
                options or options_of(robot, contacts.options),
            )
        options, limits = options or options_of(robot), limits or Limits()
        self.robot, self.contact_from = robot, contact_from
        self.config = c = CConfig(method=EXTERNAL, period=1.0)
        self.reads: tuple[str, ...] = ()
        self.shape, self.by_leg = Shape(), False
        self.networks: list[PackedStruct] = []
        """Packed weights that the configuration points to."""
        if model is not None:
            self._take_network(model, dead_leg, no_torque, attention)
        elif contacts is not None:
            c.method, c.contacts = CONTACTS, _contact_settings(contacts)
            self.shape = Shape(contacts=robot.num_legs, tested=robot.num_legs)
        c.with_feet, self.shape = int(feet), self.shape._replace(feet=robot.num_legs if feet else 0)
        noise = noise or (LEGS_NOISE if self.by_leg else ProcessNoise())
        c.robot = core_robot(robot, limits, options.gravity)
        c.settings = core_settings(noise, prior or Prior(), options, limits)
        library, at = core(), ctypes.addressof(c)
        self.bytes, self.row_doubles = library.gait_bytes(at), library.gait_row_doubles(at)
        self.state_doubles, self.cov_size = library.gait_state_doubles(at), library.gait_cov_size(at)

    def _take_network(self, model: Model, dead_leg: Model | None, no_torque: Model | None, attention: bool) -> None:
        robot, c = self.robot, self.config
        if dead_leg is not None and dead_leg.architecture != model.architecture:
            raise GaitError("the network for a dead leg has another architecture: train both with the same settings")
        self.by_leg, model = isinstance(model.architecture, LegsArchitecture), fitted(model, robot)
        a = model.architecture
        c.method, c.period, c.with_details = LEGS if self.by_leg else VELOCITY, 1.0 / model.rate, attention
        c.reads_targets, c.hides_legs = a.targets, a.kind == "gait"
        self.reads = (("tau", "q_des") if self.by_leg else ("q_des",)) if a.targets else ()
        if isinstance(a, LegsArchitecture):
            spare = [] if no_torque is None else [no_torque.for_robot(robot)]
            self.networks = [pack_legs(one) for one in (model, *spare)]
            c.leg_network = ctypes.addressof(self.networks[0])
            if spare:
                c.spare_leg_network, self.reads = ctypes.addressof(self.networks[1]), ()
            looks = a.legs if a.attention_width else 0
            self.shape = Shape(looks, looks, a.legs, tested=a.legs) if attention else Shape(tested=a.legs)
            return
        self.networks = [pack(one) for one in (model, dead_leg) if one is not None]
        c.network = ctypes.addressof(self.networks[0])
        c.spare_network = ctypes.addressof(self.networks[1]) if dead_leg is not None else None
        if attention and isinstance(a, AttentionArchitecture):
            self.shape = Shape(a.history, len(a.tokens))

    @property
    def config_at(self) -> int:
        """Address of the configuration."""
        return ctypes.addressof(self.config)

    @cached_property
    def digest(self) -> bytes:
        """A context belongs to engines with the same one: same robot, parameters and weights."""
        copy = CConfig.from_buffer_copy(self.config)
        copy.network = copy.spare_network = copy.leg_network = copy.spare_leg_network = None
        digest = hashlib.sha256(bytes(copy))
        for network in self.networks:
            for name, array in sorted(network.arrays.items()):
                digest.update(name.encode() + array.tobytes())
        return digest.digest()

    def needs(self, given: Collection[str]) -> str | None:
        """Raise GaitError if the given fields are not enough; otherwise name the field that contacts come from."""
        if self.config.method == CONTACTS:
            return self._contact_field(given)
        if not self.reads or any(name in given for name in self.reads):
            return None
        if self.by_leg:
            raise GaitError(
                "this network reads joint torques tau, or joint targets q_des, and neither is there: give one of them,"
                " or load a method or a model without"
            )
        raise GaitError(
            "this network reads the joint targets q_des, which are not there: give them, or load a method or a"
            " model without"
        )

    def tells_contacts(self, given: Collection[str]) -> bool:
        """Whether the given fields have what contacts come from; True of a method that needs none."""
        there = self._contact_fields(given)
        wanted = there if self.contact_from is None else self.contact_from in there
        return self.config.method != CONTACTS or bool(wanted)

    @staticmethod
    def _contact_fields(given: Collection[str]) -> list[str]:
        # Torques may come from the joint targets and the robot's gains.
        return [name for name in CONTACT_SOURCES if name in given or (name == "tau" and "q_des" in given)]

    def _contact_field(self, given: Collection[str]) -> str:
        there = self._contact_fields(given)
        if self.contact_from is not None and self.contact_from not in there:
            raise GaitError(f"there is no {self.contact_from}, which contacts were to come from: give it, or another")
        if not there:
            raise GaitError(
                f"none of {', '.join(CONTACT_SOURCES)} is there: the contact-aided filter needs one to tell contacts"
            )
        return self.contact_from or there[0]


class Context:
    """One running estimator of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self._core = engine, core()
        self.step = core_holding_gil().gait_step_row
        """Takes addresses of the context, a row and room for state and covariance."""
        self.memory = aligned_bytes(engine.bytes)
        self.at = pointer(self.memory)
        self._core.gait_init(self.at, ctypes.addressof(engine.config))

    def reset(self, quat: Array, vel_w: Array, pos_w: Array, gyro: Array) -> None:
        """Start at a known state of base_link, with the angular rate as the gyro measures it."""
        arrays = [doubles(quat, 4), *(doubles(value, 3) for value in (vel_w, pos_w, gyro))]
        self._core.gait_reset(self.at, *map(pointer, arrays), None)

    def reset_gravity(self, accel: Array | None) -> None:
        """Start at rest, roll and pitch from the specific force (3,), or from the next sample if None."""
        force = None if accel is None else doubles(accel, 3)
        if not self._core.gait_reset_gravity(self.at, None if force is None else pointer(force)):
            raise GaitError(
                f"specific force of {float(np.linalg.norm(accel)):.2f} m/s^2 is not that of a robot at rest:"  # type: ignore[arg-type]
                " give samples in m/s^2 from a moment when it stands or lies still"
            )

    def take_contacts_from(self, field: str | None) -> None:
        """Choose the field that contacts come from."""
        if field is not None:
            self._core.gait_set_contact_source(self.at, CONTACT_SOURCES[field])

    def run(self, rows: Array, out: Array | None = None) -> Array:
        """States (N, state_doubles) of samples (N, row_doubles), into `out` if it is given."""
        out = np.empty((len(rows), self.engine.state_doubles)) if out is None else out
        self._core.gait_run(self.at, pointer(rows), len(rows), pointer(out))
        return out

    @property
    def snapshot(self) -> bytes:
        """Everything it remembers."""
        return self.memory[16:].tobytes()  # without the addresses of configuration and recorder

    @snapshot.setter
    def snapshot(self, value: bytes) -> None:
        self.memory[16:] = np.frombuffer(value, dtype=np.uint8)


def engines_of(
    method: str | Path | Model, robot: Robot, settings: Mapping[str, Any]
) -> tuple[Engine, Engine | None, str]:
    """The engine of a method, the one for samples without what it reads, if there is one, and the method's name."""
    if not isinstance(method, Model):
        method = method_name(method)
    if isinstance(method, str) and method in BASELINES:
        return Engine(robot, contacts=BASELINES[method], **settings), None, method
    if isinstance(method, str) and is_python(method):
        return Engine(robot, **settings), None, method
    model, less, dead_leg, name = models_of(method, robot)
    if isinstance(model.architecture, LegsArchitecture):
        return Engine(robot, model=model, no_torque=less, **settings), None, name
    full = Engine(robot, model=model, dead_leg=dead_leg, **settings)
    return full, None if less is None else Engine(robot, model=less, **settings), name
