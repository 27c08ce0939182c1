"""What the fields of a Log and of a Trajectory are, and the checks that every array passes.

The two classes declare their fields, and nothing else knows names, shapes, units and frames: constructors, files, CSV
columns, messages and `gait info` follow `FIELDS`, the table of each class.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError

Labels = Mapping[str, tuple[str, ...]]
"""The names along each kind of axis: fixed ones like xyz, and the legs and joints of a robot."""

AXES: Labels = {
    "xyz": ("x", "y", "z"),
    "wxyz": ("w", "x", "y", "z"),
    "pose": ("x", "y", "z", "rx", "ry", "rz"),
    "plane": ("slope", "x", "y"),
}

NORM_EXACT = 1e-9
"""A quaternion this close to length 1 is kept bit for bit, so that saving and loading changes nothing."""
NORM_LIMIT = 1e-3
"""A quaternion this close to length 1 was rounded (float32, a text file) and is scaled; beyond is an error."""


@dataclass(frozen=True)
class Field:
    """One array over time."""

    name: str
    axes: tuple[str, ...]
    """What each axis after time runs over: `joint`, `leg`, or a key of `AXES`."""
    unit: str
    text: str
    """What it is and in which frame, in a few words."""
    role: str = ""
    """Which part of a log it belongs to: imu, joints, targets, truth or feet."""
    required: bool = False
    dtype: str = "float64"
    gaps: bool = False
    """Whether it may be nan, where nothing tells it."""

    def columns(self, labels: Labels) -> list[str]:
        """The flat names of the field, such as `gyro.x` or `foot_vel_w.FR.z`, in memory order."""
        names = [self.name]
        for axis in self.axes:
            names = [f"{name}.{label}" for name in names for label in labels[axis]]
        return names


def column(axes: tuple[str, ...], unit: str, text: str, role: str = "", **more: Any) -> Any:
    """Declare an array of a record, as `Field` has it; its name is that of the attribute."""
    return dataclasses.field(metadata={"field": Field("", axes, unit, text, role, **more)})


def fields_of(kind: type) -> tuple[Field, ...]:
    """The arrays that a class declares, in their order."""
    declared = {name: value for name, value in vars(kind).items() if isinstance(value, dataclasses.Field)}
    return tuple(replace(value.metadata["field"], name=name) for name, value in declared.items())


def refuse_unknown(
    names: Iterable[str], known: Iterable[str], what: str, noun: str = "field", nouns: str | None = None
) -> None:
    """Raise if a name is not one of the known ones, with the nearest one as the fix."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the {nouns or noun + 's'} are {', '.join(known)}"
            raise GaitError(f"{what} has no {noun} '{name}': {hint}")


def check_time(value: object, what: str, least: int) -> AnyArray:
    """The time stamps as a read-only float64 array, finite and strictly increasing."""
    t = _as_array(value, "t", "float64", what)
    if t.ndim != 1:
        raise GaitError(f"{what} field t has shape {t.shape} but must be (N,): one time stamp per row")
    if len(t) < least:
        raise GaitError(f"{what} field t has {len(t)} rows: at least {least} are needed")
    _refuse_non_finite(t, "t", what, None)
    stuck = np.flatnonzero(np.diff(t) <= 0.0)
    if stuck.size:
        row = int(stuck[0]) + 1
        raise GaitError(
            f"{what} field t does not increase at row {row} ({t[row]:.9g} s after {t[row - 1]:.9g} s):"
            " sort the rows by time and drop repeated stamps"
        )
    return _frozen(t, value)


def check_field(field: Field, value: object, t: AnyArray, labels: Labels, what: str) -> AnyArray:
    """One array of the table as a read-only array of its type, checked against shape and values."""
    array = _as_array(value, field.name, field.dtype, what)
    shape = (len(t), *(len(labels[axis]) for axis in field.axes))
    if array.shape != shape:
        hint = _shape_hint(field, array.shape, shape)
        raise GaitError(f"{what} field {field.name} has shape {array.shape} but must be {shape}: {hint}")
    if field.dtype == "float64" and not field.gaps:
        _refuse_non_finite(array, field.name, what, t)
    if field.axes == ("wxyz",):
        array = _unit_quaternions(array, field.name, what, t)
    return _frozen(array, value)


def _as_array(value: object, name: str, dtype: str, what: str) -> AnyArray:
    try:
        raw = np.asarray(value)
    except ValueError:
        raise GaitError(f"{what} field {name} must be an array of numbers: its rows differ in length") from None
    if raw.dtype.kind not in "fiub":
        raise GaitError(f"{what} field {name} must be an array of numbers, not of {raw.dtype}: convert it first")
    if dtype == "float64":
        # Columns of states that nobody can write to stay where they are: of a long log a copy is large.
        kept = raw.dtype == np.float64 and _immutable(raw)
        return raw if kept else np.asarray(raw, dtype=np.float64, order="C")
    # Flags may arrive as numbers; a value that the type cannot hold must not be cut off silently.
    with np.errstate(invalid="ignore"):
        exact = raw.astype(dtype, order="C")
    differs = np.atleast_1d(exact != raw)
    if differs.any():
        row = int(np.argwhere(differs)[0][0])
        kind = "true or false" if dtype == "bool" else "whole numbers from 0"
        bad = np.atleast_1d(raw)[row].tolist()
        raise GaitError(f"{what} field {name} must be {kind}, but row {row} has {bad}: convert it first")
    return exact


def _shape_hint(field: Field, got: tuple[int, ...], want: tuple[int, ...]) -> str:
    if len(want) == 2 and got == want[::-1]:
        return "transpose it, rows are time"
    if not got or got[0] != want[0]:
        return "it needs one row for each time stamp"
    words = {"joint": "one per joint name", "leg": "one per leg name"}
    axes = " by ".join(words.get(axis, axis) for axis in field.axes)
    return f"each row is {axes}" if axes else "it is one number per row"


def _refuse_non_finite(array: AnyArray, name: str, what: str, t: AnyArray | None) -> None:
    good = np.isfinite(array)
    if good.all():
        return
    row = int(np.argwhere(~good)[0][0])
    bad = array[row][~good[row]].flat[0]
    when = "" if t is None else f" (t = {t[row]:.9g} s)"
    rows = int(np.count_nonzero(~good.reshape(len(good), -1).all(axis=1)))
    which = "that row" if rows == 1 else f"the {rows} of {len(array)} rows like it"
    raise GaitError(f"{what} field {name} is {bad} at row {row}{when}: drop or repair {which}")


def _unit_quaternions(quat: AnyArray, name: str, what: str, t: AnyArray) -> AnyArray:
    norm = np.sqrt(np.einsum("ij,ij->i", quat, quat))
    error = np.abs(norm - 1.0)
    if (error > NORM_LIMIT).any():
        row = int(np.argmax(error > NORM_LIMIT))
        raise GaitError(
            f"{what} field {name} has length {norm[row]:.6g} at row {row} (t = {t[row]:.9g} s):"
            " quaternions must have length 1, in the order w, x, y, z"
        )
    rounded = error > NORM_EXACT
    if rounded.any():
        quat = np.where(rounded[:, None], quat / norm[:, None], quat)
    return quat


def _frozen(array: AnyArray, given: object) -> AnyArray:
    """The array itself where no other reference can write to it, otherwise a read-only copy."""
    ours = isinstance(given, np.ndarray) and array is not given and array.base is None
    if not ours and not _immutable(array):
        array = array.copy()
    array.flags.writeable = False
    return array


def _immutable(array: AnyArray) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    # Memory that is not numpy's (a mapped file, a buffer) may still change under us.
    return owner is None
