"""The inner functions and structs of the C core for tests: mirrors of core/core.h, checked by test_abi.py."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_double, c_float, c_int, c_int32, c_size_t, c_uint8, c_uint32, c_void_p
from functools import cache
from typing import Any

import numpy as np

from gait.binding import MAX_JOINTS, MAX_LEGS, CFilter, core_path, pointer
from gait.engine import Context
from gait.nets import Model
from gait.nets.pack import aligned, pack, pack_legs

SHARED_FEATURES, LEG_FEATURES, RATES = 6, 12, 8
FEATURES = SHARED_FEATURES + LEG_FEATURES * MAX_LEGS
INPUTS = 6 + 3 * MAX_JOINTS
_JOINTS, _LEGS, _FLAGS = c_double * MAX_JOINTS, c_double * MAX_LEGS, c_uint8 * MAX_LEGS
_VECTOR, _PAIR = c_double * 3, c_double * 3 * 2


class CMeasurement(Structure):
    """`gait_measurement`."""

    _fields_ = (("velocity", _VECTOR), ("variance", _VECTOR), ("bias", c_double), ("bias_variance", c_double))


class CSensor(Structure):
    """`gait_sensor`."""

    _fields_ = (
        *((name, _VECTOR) for name in ("raw", "before", "top", "limit")),
        *((name, c_double) for name in ("window", "level", "jumps", "noise", "same", "odd", "cut")),
        *((name, c_double) for name in ("blind", "charge", "spike", "swing")),
        ("stood", _VECTOR),
        ("jump2", c_double),
        ("hits", c_uint8 * 3),
        *((name, c_uint8) for name in ("spikes", "samples", "rises", "known")),
    )


class CJointState(Structure):
    """`gait_joint_state`."""

    _fields_ = (
        *((name, _JOINTS) for name in ("slow_q", "slow_dq", "moves", "turns", "apart", "same", "doubt")),
        ("speed2", _LEGS),
        ("known", _FLAGS),
    )


class CTorqueState(Structure):
    """`gait_torque_state`."""

    _fields_ = (
        *((name, _VECTOR) for name in ("carried", "expected")),
        *((name, c_double) for name in ("seen", "apart", "size", "wrong", "missing", "unloaded")),
        ("contradicts", _JOINTS),
        *((name, c_uint8) for name in ("ignored", "measured", "compared", "had", "supported", "lifted")),
    )


class CInput(Structure):
    """`gait_input`."""

    _fields_ = (
        ("gyro", _VECTOR),
        ("accel", _VECTOR),
        *((name, _JOINTS) for name in ("q", "dq", "e", "raw_q", "raw_dq")),
        ("unchanged", _LEGS),
        ("no_target", _LEGS),
        *((name, c_double) for name in ("t", "dt", "gap", "period", "unseen", "late_from", "late_t")),
        ("imu", CSensor * 2),
        ("joints", CJointState),
        ("torque", CTorqueState),
        ("refused", c_int32),
        ("ok", _FLAGS),
        ("leg_known", _FLAGS),
        ("stale", _FLAGS),
        ("started", c_uint8),
        ("imu_known", c_uint8),
    )


class CContactState(Structure):
    """`gait_contact_state`."""

    _fields_ = (
        ("waiting", _LEGS),
        *((name, _JOINTS) for name in ("dq", "ddq", "tau")),
        ("walk", _LEGS),
        ("roll_i", _VECTOR * MAX_LEGS),
        ("foot_i", _VECTOR * MAX_LEGS),
        ("slip_b", _VECTOR * MAX_LEGS),
        ("force_b", _VECTOR),
        ("slip_limit", c_double),
        ("bias_i", _VECTOR * MAX_LEGS),
        ("rests", c_uint8 * MAX_LEGS),
        ("contact", _FLAGS),
        ("fresh", _FLAGS),
        ("measured", c_uint8),
    )


class CFlexure(Structure):
    """`gait_flexure`."""

    _fields_ = (
        ("compliance", c_double),
        ("assumed", c_double),
        *((name, _VECTOR * MAX_LEGS) for name in ("velocity", "bent", "off")),
        ("told", c_double),
        ("known", c_double),
        ("used", c_uint8),
    )


class CLegState(Structure):
    """`gait_leg_state`."""

    _fields_ = (
        *((name, _JOINTS * 2) for name in ("tau", "q", "dq")),
        ("gyro", _PAIR),
        ("accel", _PAIR),
        ("no_torque", _LEGS),
        ("with_torque", c_double),
        ("without_torque", c_double),
        *((name, _JOINTS) for name in ("last_dq", "ddq", "smooth_tau")),
        ("rates_b", _VECTOR * RATES),
        ("stepped", c_double),
        ("features", c_double * FEATURES),
        ("out", c_float * (6 * MAX_LEGS)),
        ("begun", c_uint8),
        ("kinematic", c_uint8),
        ("torqueless", c_uint8),
        ("seen", _FLAGS),
        ("before", _FLAGS),
        ("flexure", CFlexure),
        ("shifts", c_void_p),
    )


class CMonitor(Structure):
    """`gait_monitor`."""

    _fields_ = (
        ("lasting", _VECTOR),
        ("lasting_rate", c_double),
        ("open", _VECTOR),
        *((name, c_double) for name in ("turn", "heading")),
        ("aside", _VECTOR),
        *((name, c_double) for name in ("duration", "distrust")),
        ("force_i", _VECTOR),
        *((name, c_double) for name in ("tilted", "still", "disputed", "uninformed", "ratio")),
        ("leg_ratio", _LEGS),
        ("shown", _VECTOR),
        ("resets", c_int32),
        ("lost", c_uint8),
    )


class CAdapt(Structure):
    """`gait_adapt`."""

    _fields_ = (
        ("inertial", _VECTOR),
        *((name, c_double) for name in ("since", "accel2", "kept", "least")),
        *((name, c_double * 2) for name in ("factor", "noise2")),
        ("means", c_double * 5 * 2),
        *((name, _VECTOR) for name in ("average", "weight")),
        *((name, c_double) for name in ("known", "counted")),
        *((name, _VECTOR) for name in ("drift", "expected")),
        ("usual", c_double * 2),
        *((name, c_double) for name in ("rise", "gate")),
        *((name, _VECTOR) for name in ("before", "accel_w", "square_b", "swept")),
        *((name, c_int32) for name in ("next", "count")),
        *((name, _VECTOR * 30) for name in ("apart", "variance")),
    )


class CFeetState(Structure):
    """`gait_feet_state`."""

    _fields_ = (("ground_w", _VECTOR * MAX_LEGS), ("known", _FLAGS), ("torque", c_uint8))


class CContext(Structure):
    """`gait_t`; behind the rows of the filter's covariance lies the memory of the networks."""

    _fields_ = (
        ("config", c_void_p),
        ("recorder", c_void_p),
        ("memory", ctypes.c_ssize_t),
        ("scratch", ctypes.c_ssize_t),
        ("fetch", c_void_p),
        ("broken", c_double),
        ("whole", c_double),
        ("predicted", c_float * 6),
        ("contact_source", c_int32),
        *((name, c_uint8) for name in ("align", "measured", "spare", "has_joints")),
        ("input", CInput),
        ("monitor", CMonitor),
        ("adapt", CAdapt),
        ("tilt_t", c_double),
        ("safe_R", c_double * 9),
        ("safe_p", _VECTOR),
        ("next_step", c_double),
        ("joints_t", c_double),
        ("last", c_float * INPUTS),
        ("now", c_float * INPUTS),
        ("joints", _JOINTS * 4),
        ("feet_in", _LEGS * 3),
        ("feet", CFeetState),
        ("legs", CLegState),
        ("contacts", CContactState),
        ("filter", CFilter),
    )


_P = c_void_p
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lie_quat_from_rotation": (None, (_P, _P)),
    "lie_rotation_from_quat": (None, (_P, _P)),
    "filter_init": (None, (_P, c_int)),
    "filter_prior": (None, (_P, _P)),
    "filter_align": (c_int, (_P, _P, _P, _P, c_double)),
    "filter_output": (None, (_P, _P, _P, _P)),
    "gait_leg_forward": (None, (_P, c_int, _P, _P, _P, _P)),
    "gait_leg_torque": (None, (_P, c_int, _P, _P, _P, _P, _P)),
    "gait_leg_force": (c_int, (_P, c_int, _P, _P, _P, _P)),
    "pd_torque": (c_double, (_P, c_int, c_double, c_double)),
    "legs_fuse": (c_int, (_P, _P, c_int, _P)),
    "contacts_step": (c_uint32, (_P, _P)),
    "gait_network_floats": (c_size_t, (_P,)),
    "gait_network_reset": (None, (_P, _P)),
    "gait_network_scratch": (c_size_t, (_P,)),
    "gait_network_step": (None, (_P, _P, _P, _P, _P, _P)),
    "gait_network_attention": (None, (_P, _P, _P, _P)),
    "gait_leg_network_floats": (c_size_t, (_P, c_int)),
    "gait_leg_network_reset": (None, (_P, _P)),
    "gait_leg_network_scratch": (c_size_t, (_P, c_int)),
    "gait_leg_network_step": (None, (_P, c_int, _P, _P, _P, _P, _P, _P)),
    "gait_leg_network_attention": (None, (_P, c_int, _P, _P, _P, _P)),
}
"""Functions that the package itself does not call, or not by themselves."""


def declare(library: Any) -> Any:
    """Set the types of whatever functions a library has."""
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name, None)
        if function is not None:
            function.restype, function.argtypes = result, arguments
    return library


@cache
def inner() -> Any:
    """The packaged library with its inner functions declared."""
    return declare(ctypes.CDLL(str(core_path())))


def inside(context: Context) -> CContext:
    """The live struct of a context."""
    return CContext.from_address(context.at)


def at(struct: Structure) -> int:
    """Address of a struct."""
    return ctypes.addressof(struct)


def numbers(values: Any) -> np.ndarray:
    """Contiguous doubles."""
    return np.ascontiguousarray(values, dtype=np.float64)


def _nan_memory(count: int) -> np.ndarray:
    """Memory full of nan: whatever counts is written before it is read."""
    assert count % 16 == 0
    return aligned(np.full(count, np.nan, dtype=np.float32))


class CoreNetwork:
    """The core's step of `gait`, `gait-flat` and `nmn` with the interface of the reference."""

    def __init__(self, model: Model, library: Any = None) -> None:
        self._core, self._packed = library or inner(), pack(model)
        self._at = at(self._packed)
        self.memory = _nan_memory(self._core.gait_network_floats(self._at))
        self.scratch = _nan_memory(self._core.gait_network_scratch(self._at))
        self.reset()

    def reset(self) -> None:
        self._core.gait_network_reset(self._at, pointer(self.memory))

    def step(self, features: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Velocity and log-std (6,)."""
        out = np.full(6, np.nan, dtype=np.float32)
        given = np.ascontiguousarray(features, dtype=np.float32), np.ascontiguousarray(seen, dtype=np.uint8)
        self._core.gait_network_step(self._at, *map(pointer, (self.memory, self.scratch, *given, out)))
        return out

    def attention(self) -> np.ndarray:
        out = np.full((self._packed.history, self._packed.tokens), np.nan)
        self._core.gait_network_attention(self._at, *map(pointer, (self.memory, self.scratch, out)))
        return out


class CoreLegs:
    """The core's step of `gait-legs` with the interface of the reference."""

    def __init__(self, model: Model, library: Any = None) -> None:
        self._core, self._packed, self._legs = library or inner(), pack_legs(model), model.architecture.legs
        self._at = at(self._packed)
        self.memory = _nan_memory(self._core.gait_leg_network_floats(self._at, self._legs))
        self.scratch = _nan_memory(self._core.gait_leg_network_scratch(self._at, self._legs))
        self.reset()

    def reset(self) -> None:
        self._core.gait_leg_network_reset(self._at, pointer(self.memory))

    def step(self, features: np.ndarray, seen: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Velocity and log-std of each leg (L, 6)."""
        self._seen = np.ascontiguousarray(seen, dtype=np.uint8)
        out = np.full((self._legs, 6), np.nan, dtype=np.float32)
        given = numbers(features), self._seen, np.ascontiguousarray(before, dtype=np.uint8), out
        self._core.gait_leg_network_step(self._at, self._legs, *map(pointer, (self.memory, self.scratch, *given)))
        return out

    def attention(self) -> np.ndarray:
        out = np.full((self._legs, self._legs), np.nan)
        arrays = self.memory, self.scratch, self._seen, out
        self._core.gait_leg_network_attention(self._at, self._legs, *map(pointer, arrays))
        return out
