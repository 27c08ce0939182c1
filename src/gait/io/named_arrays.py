"""A Log from arrays with names of other tools: the part that CSV and HDF5 have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gait.arrays import AnyArray, Array
from gait.errors import GaitError, located, os_errors
from gait.io.guess import UNITS, Guess
from gait.io.joints import match_joints
from gait.io.reading import Notes
from gait.io.signals import Signal
from gait.io.velocity import rotation_rate
from gait.log.fields import AXES, LOG_FIELDS, body_fields, joint_fields
from gait.log.log import Log
from gait.read_options import NONE, ReadOptions

PER_JOINT = tuple(field.name for field in joint_fields())
AXES_OF = {field.name: AXES[field.axes[0]] for field in body_fields()}
"""Names of the components of each field that is no joint field."""
ROLE = {field.name: field.role for field in (*body_fields(), *joint_fields())}
_NEEDED = [field.name for field in LOG_FIELDS if field.required and field.name not in ("t", "dq")]
"""Without velocities, those of the joints come from their angles."""
_XYZW = [3, 0, 1, 2]


@dataclass
class Piece:
    """One field as it stands in a file."""

    field: str
    where: str
    """Column or dataset, for messages."""
    t: Array
    """Stamps (n,), s."""
    values: AnyArray
    """(n, k)."""
    names: tuple[str, ...] = ()
    """Of the joints, where the file tells."""


def read_map(path: Path | None, names: Collection[str], where: Path) -> dict[str, Guess | None]:
    """A map of names: `theirs: field`, with a unit behind it where it is not SI, or `theirs: null` to leave it out.

    Args:
        path: a YAML file; no map without.
        names: those that there are.
        where: the file that they are in.
    """
    if path is None:
        return {}
    try:
        with os_errors(f"cannot read {path}"):
            tree: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise GaitError(f"{path} is not valid YAML: write lines such as `imu_wx: gyro.x`") from None
    if not isinstance(tree, Mapping) or not tree:
        raise GaitError(f"{path} must hold lines such as `imu_wx: gyro.x`, from their names to those of gait")
    fields = {field.name for field in LOG_FIELDS} | {"t_ns"}
    found: dict[str, Guess | None] = {}
    for theirs, text in tree.items():
        if text is None:
            found[str(theirs)] = None
            continue
        ours, _, unit = str(text).strip().partition(" ")
        field, _, part = ours.partition(".")
        if field not in fields:
            raise GaitError(f"{path} maps {theirs} to '{ours}', which is no field of a Log: see docs/log.md for those")
        if unit and unit.strip().lower() not in UNITS:
            raise GaitError(
                f"{path} gives {theirs} the unit '{unit}': choose one of {', '.join(UNITS)}, or leave it out"
            )
        scale = UNITS[unit.strip().lower()] if unit else 1e-9 if field == "t_ns" else 1.0
        found[str(theirs)] = Guess("t" if field == "t_ns" else field, part, scale)
    found = {name.strip("/"): guess for name, guess in found.items()}
    unknown = [name for name in found if name not in names]
    if unknown:
        raise GaitError(f"{path} speaks of '{unknown[0]}', which {where} has not: it has {', '.join(names)}")
    return found


def seconds(values: Array, scale: float, said: bool, where: str, notes: Notes) -> Array:
    """Stamps in seconds: in the unit that was said, or in the one that makes the rate that of a robot."""
    if said or len(values) < 3:
        return np.asarray(values * scale)
    step = float(np.nanmedian(np.abs(np.diff(values))))
    for unit in ("s", "ms", "us", "ns"):
        if 1.0 / 5000.0 <= step * UNITS[unit] <= 0.1:
            if unit != "s":
                notes.say(f"{where}: stamps taken to be in {unit}, from their steps")
            return np.asarray(values * UNITS[unit])
    return np.asarray(values)


def log_of(pieces: Sequence[Piece], options: ReadOptions, notes: Notes, path: Path, source: str) -> Log:
    """Match joints, settle the order of quaternions, and merge."""
    from gait.io.merge import merge
    from gait.robot import Robot

    robot = Robot.load(options.robot or "go1")
    if options.robot is None:
        notes.say(f"the file does not say which robot it is of, so {robot.name} is taken: --robot chooses another")
    by_field: dict[str, Piece] = {}
    for piece in pieces:
        if piece.field in by_field:
            first = by_field[piece.field].where
            raise GaitError(
                f"{path}: both {first} and {piece.where} look like {piece.field}: leave one out with --columns"
                f" map.yaml, a file with the line `{piece.where}: null`"
            )
        by_field[piece.field] = piece
    missing = [name for name in _NEEDED if name not in by_field]
    if missing:
        have = ", ".join(f"{piece.where} for {name}" for name, piece in by_field.items()) or "nothing"
        raise GaitError(
            f"{path}: nothing in it looks like {missing[0]}: name it with --columns map.yaml, a file with lines such as"
            f" `their_name: {missing[0]}{'.x' if missing[0] != 'q' else '.FR_hip_joint'}` (found {have})"
        )
    for name in PER_JOINT:
        if name in by_field:
            _put_in_order(by_field[name], robot.joint_names, options.joint_names, notes, path)
    signals = {}
    for role in dict.fromkeys(ROLE.values()):
        present = [by_field[name] for name in ROLE if ROLE[name] == role and name in by_field]
        if present and getattr(options, role) != NONE:
            signals[role] = _signal(present)
    if "truth" in signals and not {"pos_w", "quat_wb_wxyz"} <= set(signals["truth"].arrays):
        notes.say("ground truth needs position and rotation: what there is of it was left out")
        del signals["truth"]
    if "truth" in signals:
        _settle_quaternions(by_field["quat_wb_wxyz"], signals["truth"], signals["imu"], notes)
    with located(path):
        return merge(signals, robot, notes, source, align=options.align_clock)


def _put_in_order(piece: Piece, joints: tuple[str, ...], given: str | None, notes: Notes, path: Path) -> None:
    names = piece.names or tuple(f"joint_{i}" for i in range(piece.values.shape[1]))
    with located(f"{path}, {piece.where}"):
        found = match_joints(names, joints, given)
    if piece.field == "q":
        notes.say(found.note)
    piece.values, piece.names = piece.values[:, list(found.index)], joints


def _signal(pieces: list[Piece]) -> Signal:
    """Arrays of one sensor on the stamps of the first."""
    first = pieces[0]
    signal = Signal(first.where, first.t, {first.field: first.values})
    for piece in pieces[1:]:
        other = Signal(piece.where, piece.t, {piece.field: piece.values})
        signal.arrays.update(other.at(signal.t))
    return signal


def _settle_quaternions(piece: Piece, truth: Signal, imu: Signal, notes: Notes) -> None:
    """Scalar first or last: whichever turns about the axes about which the gyro turns."""
    if "xyzw" in piece.where.lower() or "wxyz" in piece.where.lower() or piece.names == ("w", "x", "y", "z"):
        if "xyzw" in piece.where.lower():
            truth.arrays["quat_wb_wxyz"] = truth.arrays["quat_wb_wxyz"][:, _XYZW]
        return
    given = truth.arrays["quat_wb_wxyz"]
    norm = np.linalg.norm(given, axis=1, keepdims=True)
    good = (norm[:, 0] > 0.5) & np.isfinite(truth.t) & (np.diff(truth.t, prepend=-np.inf) > 0.0)
    unit, t = given[good] / norm[good], truth.t[good]
    first = last = 0.0
    if len(t) > 2:
        gyro = np.stack([np.interp(t, imu.t, imu.arrays["gyro"][:, i]) for i in range(3)], axis=1)
        first, last = (_likeness(rotation_rate(t, one), gyro) for one in (unit, unit[:, _XYZW]))
    if last > first + 0.2:
        truth.arrays["quat_wb_wxyz"] = given[:, _XYZW]
        notes.say(f"{piece.where}: quaternions are x, y, z, w, as the gyro tells")
    else:
        why = ", as the gyro tells" if first > last + 0.2 else ""
        notes.say(f"{piece.where}: quaternions taken to be w, x, y, z{why}")


def _likeness(one: Array, other: Array) -> float:
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.sum(one * other)) / size if size > 1e-12 else 0.0
