"""The C core through ctypes: its structs, its functions, and which build of it runs here.

The structs mirror core/gait.h field by field; `tests/core` compares sizes and offsets. ctypes needs neither Python's
headers nor a C++ compiler, so a bare machine with gcc can build the core, and one library serves every Python.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from ctypes import Structure, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint8, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError

MAX_LEGS = 8
MAX_JOINTS = 8 * MAX_LEGS
MAX_LINKS = MAX_JOINTS
MOST_CORNERS = 4
ABOUT_ANY, ALONG, ABOUT_X = range(3)
"""How a link moves, as `gait_robot.link_kind`; after the last one, about y and z."""
VELOCITY, LEGS, CONTACTS, EXTERNAL = range(4)
"""What measures, as `gait_config.method`."""
CONTACT_SOURCES = {"tau": 0, "foot_force": 1, "contact": 2}
"""Fields that contacts come from, as `gait_set_contact_source` takes them."""
T = TypeVar("T")


def named(kind: Any, names: str) -> list[tuple[str, Any]]:
    """Fields of one type, by their names."""
    return [(name, kind) for name in names.split()]


class CRobot(Structure):
    """`gait_robot`."""

    _fields_ = (
        *named(c_int32, "legs joints"),
        *named(c_int32 * (MAX_LEGS + 1), "leg_start link_start"),
        *named(c_int32 * MAX_LINKS, "link_kind link_joint"),
        *named(c_int32 * MAX_LEGS, "shared corner_count"),
        ("R_bi", c_double * 9),
        ("p_bi", c_double * 3),
        *named(c_double, "weight leg_length"),
        ("hips_b", c_double * 3 * MAX_LEGS),
        ("axes", c_double * 3 * MAX_LINKS),
        *named(c_double * MAX_LINKS, "ratio shift"),
        ("offsets", c_double * 3 * MAX_LINKS),
        ("feet", c_double * 3 * MAX_LEGS),
        ("foot_radius", c_double * MAX_LEGS),
        ("corners", c_double * 3 * MOST_CORNERS * MAX_LEGS),
        ("inertial", c_double * 10 * MAX_LINKS),
        *named(c_double * MAX_JOINTS, "armature kp kd torque_limit q_lower q_upper dq_limit"),
    )


class CNoise(Structure):
    """`gait_noise`."""

    _fields_ = named(c_double, "gyro accel gyro_bias accel_bias accel_share position position_share height_time")


class CSettings(Structure):
    """`gait_settings`."""

    _fields_ = (
        ("noise", CNoise),
        ("gravity", c_double),
        *named(c_double * 15, "prior_std rest_std"),
        *named(c_double, "max_gap gap_accel gap_rate max_gyro max_accel joint_margin hold stale clock_reset"),
        *named(c_double, "inflation leg_inflation leg_gate leg_instant joint_delay joint_delay_std"),
        *named(c_int32, "exact_mean exact_phi flexure"),
    )


class CContactSettings(Structure):
    """`gait_contact_settings`."""

    _fields_ = (
        *named(c_double, "touch_down lift_off smoothing touch_down_dwell lift_off_dwell contact_std kinematics_std"),
        *named(c_double, "rolling slip_speed slip_inflation"),
    )


class CConfig(Structure):
    """`gait_config`. The pointers are to structs of `gait.nets`, which the maker of a configuration keeps alive."""

    _fields_ = (
        *named(c_int32, "method reads_targets hides_legs with_details with_feet"),
        ("period", c_double),
        ("robot", CRobot),
        ("settings", CSettings),
        ("contacts", CContactSettings),
        *named(c_void_p, "network spare_network leg_network spare_leg_network"),
    )


class CState(Structure):
    """`gait_state`: doubles throughout, so that a log's states are an array."""

    _fields_ = (
        ("quat_wb_wxyz", c_double * 4),
        *named(c_double * 3, "vel_w pos_w vel_b gyro_bias accel_bias"),
        ("vel_cov", c_double * 3 * 3),
        ("pose_cov", c_double * 6 * 6),
        *named(c_double, "t health gap"),
        ("predicted", c_double * 6),
        *named(c_double, "test_ratio resets valid"),
    )


class CSample(Structure):
    """`gait_sample`: the stamp, and a pointer to each field, null where it is not there."""

    _fields_ = (("t", c_double), *named(c_void_p, "gyro accel q dq q_des tau foot_force contact leg_ok"))


class CExternal(Structure):
    """`gait_external`."""

    _fields_ = (
        ("kind", c_int32),
        ("t", c_double),
        ("value", c_double * 7),
        ("cov", c_double * 36),
        ("p_bs", c_double * 3),
        ("quat_bs_wxyz", c_double * 4),
        ("gate", c_double),
    )


class CPython(Structure):
    """`gait_python`: arguments of a step that reads arrays by itself."""

    _fields_ = (
        *named(c_void_p, "estimator history config row"),
        ("bytes", c_size_t),
        ("width", c_int32),
        *named(c_void_p, "order busy none array float64 float32 boolean sample state layout"),
    )


class CArray(Structure):
    """`PyArrayObject`, as numpy's headers have it."""

    _fields_ = (
        ("references", ctypes.c_ssize_t),
        *named(c_void_p, "type data"),
        ("nd", c_int),
        *named(ctypes.POINTER(ctypes.c_ssize_t), "dimensions strides"),
        *named(c_void_p, "base descr"),
    )


class CMethod(Structure):
    """`PyMethodDef` of Python's stable ABI."""

    _fields_ = (("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p))


class CFilter(Structure):
    """`gait_filter`: orientation, vectors, biases and covariance of the IMU."""

    _fields_ = (
        ("R", c_double * 9),
        ("x", c_double * 3 * (2 + MAX_LEGS)),
        ("b", c_double * 3 * 2),
        *named(c_int32, "size feet"),
        ("active", c_uint8 * MAX_LEGS),
        ("P", c_double * ((15 + 3 * MAX_LEGS) * ((15 + 3 * MAX_LEGS + 7) // 8 * 8))),
    )


STATE = {
    name: slice(field.offset // 8, (field.offset + field.size) // 8)
    for name, field in ((name, getattr(CState, name)) for name, *_ in CState._fields_)
}
"""Columns of each part of a state in a row of doubles."""
STATE_DOUBLES = ctypes.sizeof(CState) // 8
"""Doubles of a state; the details follow in its row."""

_P, _N = c_void_p, c_size_t
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "gait_bytes": (_N, (_P,)),
    "gait_state_doubles": (_N, (_P,)),
    "gait_row_doubles": (_N, (_P,)),
    "gait_cov_size": (c_int, (_P,)),
    "gait_init": (_P, (_P, _P)),
    "gait_set_config": (None, (_P, _P)),
    "gait_set_contact_source": (None, (_P, c_int)),
    "gait_reset": (None, (_P, _P, _P, _P, _P, _P)),
    "gait_reset_gravity": (c_int, (_P, _P)),
    "gait_step_row": (None, (_P, _P, _P)),
    "gait_run": (None, (_P, _P, _N, _P)),
    "gait_update_batch": (None, (_P, _N, _N, _P, _P, _P)),
    "gait_update_joints": (None, (_P, _P)),
    "gait_step_imu": (None, (_P, c_double, _P, _P, _P)),
    "gait_predict": (None, (_P, c_double, _P, _P)),
    "gait_begin": (c_uint32, (_P, _P, _P)),
    "gait_admitted": (None, (_P, _P)),
    "gait_correct": (c_int, (_P, c_int, _P, _P, _P)),
    "gait_end": (c_uint32, (_P, c_uint32, _P)),
    "gait_cov": (None, (_P, _P)),
    "gait_correct_external": (c_int, (_P, _P, _P)),
    "gait_external_rows": (c_int, (_P, _P, _P, _P, _P)),
    "gait_reset_pose": (None, (_P, _P, _P, _P)),
    "gait_history_bytes": (_N, (_P,)),
    "gait_history_init": (_P, (_P,)),
    "gait_history_clear": (None, (_P,)),
    "gait_history_step": (None, (_P, _P, c_int, _P, _P)),
    "gait_history_correct": (c_int, (_P, _P, _P, _P)),
    "gait_history_pose": (c_int, (_P, c_double, _P, _P)),
    "gait_recorder_bytes": (_N, (_P, _N)),
    "gait_recorder_init": (_P, (_P, _P, _N)),
    "gait_record": (None, (_P, _P)),
    "gait_carry_bytes": (_N, ()),
    "gait_run_recorded": (None, (_P, _P, _P, _P, _N, _P, _P)),
    "gait_smooth_run": (None, (_P, _P, _P, c_int, _P, _N, _P)),
    "gait_lagged": (c_int, (_P, _P, c_double, _P, _P)),
    "gait_leg_features": (None, (_P, c_double, c_double, _N, _P, _P, _P, _P, _P, _P, _P)),
    "gait_foot_constants": (None, (_P,)),
    "filter_init": (None, (_P, c_int)),
    "filter_prior": (None, (_P, _P)),
    "filter_propagate": (c_int, (_P, _P, _P, _P, _P, _P, _P, c_double)),
    "filter_correct_velocity": (c_int, (_P, _P, _P)),
    "filter_correct_gyro_bias": (c_int, (_P, _P, c_double, c_double)),
    "filter_correct_feet": (c_int, (_P, _P, _P, c_int)),
    "filter_correct": (c_int, (_P, c_int, _P, _P, _P)),
    "filter_add_foot": (None, (_P, c_int, _P, _P, _P)),
    "filter_remove_foot": (None, (_P, c_int)),
    "gait_leg_forward": (None, (_P, c_int, _P, _P, _P, _P)),
    "gait_leg_torque": (None, (_P, c_int, _P, _P, _P, _P, _P)),
    "gait_leg_force": (c_int, (_P, c_int, _P, _P, _P, _P)),
}


def _level() -> list[str]:
    """Builds of the core in order of preference, by the instruction set of this processor."""
    flags: set[str] = set()
    if platform.machine() in ("x86_64", "AMD64"):
        try:
            text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
            flags = set(text.partition("\nflags")[2].partition("\n")[0].split())
        except OSError:
            pass
    names = ["x86_64", "portable"]
    if {"avx2", "fma", "bmi2"} <= flags:
        names.insert(0, "x86_64_v3")
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        names.insert(0, "x86_64_v4")
    return ["native", *names]


@cache
def core_path() -> Path:
    """The library that runs here."""
    for level in _level():
        path = Path(__file__).with_name(f"_core_{level}.so")
        if path.is_file():
            return path
    raise GaitError(
        "the C core of gait is not built: install the package with `pip install .` (in a checkout, `make setup`), which"
        " needs a C compiler such as gcc"
    )


def _declare(library: Any) -> Any:
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@cache
def core() -> Any:
    """The core for long calls: the GIL is released while one runs."""
    return _declare(ctypes.CDLL(str(core_path())))


@cache
def core_holding_gil() -> Any:
    """The core for single steps: a few microseconds are too short to hand the GIL over, which may take milliseconds."""
    return _declare(ctypes.PyDLL(str(core_path())))


@cache
def _step_method() -> CMethod | None:
    """The step as a method of Python; None where arrays are not laid out as the core reads them."""
    array = np.zeros((5, 3), dtype=np.float32)[::2, 1]
    found = CArray.from_address(id(array))
    if sys.implementation.name != "cpython" or (found.type, found.data) != (id(np.ndarray), array.ctypes.data):
        return None
    if (found.nd, found.dimensions[0], found.strides[0], found.descr) != (1, 3, array.strides[0], id(array.dtype)):
        return None
    fastcall = 0x80
    return CMethod(b"step", ctypes.cast(core_holding_gil().gait_step_python, c_void_p), fastcall, None)


def builtin_step(
    caller: CPython, sample: type, state: Callable[[bytearray, Any], T], layout: object
) -> Callable[..., T | None]:
    """A step as a built-in function, which is cheaper than a call through ctypes. None: it cannot read what it got.

    Args:
        caller: arguments of the step; filled in here, and kept alive by the caller.
        sample: type of a whole sample, a tuple of its fields.
        state: type of what a step returns, with the slots of a `gait.state.StateRows`.
        layout: of the states; kept alive likewise.
    """
    method, data = _step_method(), bytearray()
    made = state(data, layout)
    slots = (c_void_p * 2).from_address(id(made) + object.__basicsize__)
    if method is None or object.__basicsize__ != 16 or list(slots) != [id(data), id(layout)]:
        return lambda *_: None
    kinds = (id(np.dtype(kind)) for kind in (np.float64, np.float32, np.bool_))
    caller.none, caller.array, (caller.float64, caller.float32, caller.boolean) = id(None), id(np.ndarray), kinds
    caller.sample, caller.state, caller.layout = id(sample), id(state), id(layout)
    function: Any = ctypes.pythonapi.PyCFunction_NewEx
    function.restype, function.argtypes = ctypes.py_object, (c_void_p, ctypes.py_object, c_void_p)
    step: Callable[..., T | None] = function(ctypes.addressof(method), ctypes.addressof(caller), None)
    return step


def doubles(values: Any, count: int | None = None) -> Array:
    """A contiguous float64 array for the core; checked if a count is given, since C does not check bounds."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if count is not None and array.size != count:
        raise GaitError(f"the core takes {count} numbers here, got {array.size}")
    return array


def pointer(array: np.ndarray[Any, Any]) -> int:
    """Address of an array's first number; the array must outlive its use."""
    return array.ctypes.data


def aligned_bytes(count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Zeros that begin at a cache line: loads that straddle two lines take twice as long."""
    room = np.zeros(count + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + count]


def fill(target: Any, values: Any) -> None:
    """Copy numbers into the front of a ctypes array of one or more dimensions."""
    array = np.asarray(values, dtype=np.float64)
    view = np.ctypeslib.as_array(target)
    view[tuple(slice(0, n) for n in array.shape)] = array
