"""Logs of other tools: arrays or columns by a map or by what their names say, silent sensors, unnamed joints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gait.arrays import AnyArray, Array
from gait.documents import load_yaml, named
from gait.errors import GaitError, located, os_errors
from gait.io.format import UNKNOWN_ROBOT, Notes, StreamInfo
from gait.io.guess import AXES_OF, PER_JOINT, UNITS, Guess, guess_column, guess_pose, says_truth
from gait.io.joints import match_joints, meaning_of
from gait.io.motion import rotation_rate
from gait.io.signals import Signal, merge
from gait.io.text_numbers import parse
from gait.log import MAX_GAP, Log
from gait.log.fields import AXES
from gait.log.record import places
from gait.read_options import NONE, ReadOptions
from gait.robot import Robot

ROLE = {field.name: field.role for field in Log.FIELDS if field.name in (*AXES_OF, *PER_JOINT)}
_NEEDED = [field.name for field in Log.FIELDS if field.required and field.name not in ("t", "dq")]
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
    sure: bool = False
    """Whether the user, or a name of gait's own, says which field it is."""


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
            tree: Any = load_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise GaitError(f"{path} is not valid YAML: write lines such as `imu_wx: gyro.x`") from None
    if not isinstance(tree, Mapping) or not tree:
        raise GaitError(f"{path} must hold lines such as `imu_wx: gyro.x`, from their names to those of gait")
    found: dict[str, Guess | None] = {}
    for key, text in tree.items():
        theirs = named(key).strip("/")
        if theirs not in names:
            raise GaitError(f"{path} speaks of '{theirs}', which {where} has not: it has {', '.join(names)}")
        found[theirs] = None if text is None else _mapped(path, theirs, named(text))
    return found


def _mapped(path: Path, theirs: str, text: str) -> Guess:
    """What a line of a map says: a field, its part, and a unit."""
    ours, _, unit = text.strip().partition(" ")
    field, _, part = ours.partition(".")
    if field not in ("t_ns", *(field.name for field in Log.FIELDS)):
        raise GaitError(f"{path} maps {theirs} to '{ours}', which is no field of a Log: see docs/log.md for those")
    if unit and unit.strip().lower() not in UNITS:
        raise GaitError(f"{path} gives {theirs} the unit '{unit}': choose one of {', '.join(UNITS)}, or leave it out")
    if field == "t_ns":
        field, unit = "t", unit or "ns"
    return Guess(field, part, UNITS[unit.strip().lower()] if unit else 1.0)


def seconds(values: Array, scale: float, said: bool, where: str, notes: Notes) -> Array:
    """Stamps in seconds: in the unit that was said, or in the one that makes the rate that of a robot."""
    if said or len(values) < 3:
        return np.asarray(values * scale)
    step = float(np.nanmedian(np.abs(np.diff(values))))
    unit = next((unit for unit in ("s", "ms", "us", "ns") if 1.0 / 5000.0 <= step * UNITS[unit] <= 0.1), "s")
    if unit != "s":
        notes.say(f"{where}: stamps taken to be in {unit}, from their steps")
    return np.asarray(values * UNITS[unit])


def log_of(pieces: Sequence[Piece], options: ReadOptions, notes: Notes, path: Path) -> Log:
    """Match joints, settle the order of quaternions, and merge."""
    robot = Robot.load(options.robot or "go1")
    if options.robot is None:
        notes.say(UNKNOWN_ROBOT.format(robot.name))
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
        have = (
            ", ".join(f"{piece.where} for {name}" for name, piece in by_field.items())
            or f"nothing; `gait info {path.name}` lists its contents"
        )
        part = robot.encoder_names[0] if missing[0] == "q" else "x"
        other = "" if options.robot or missing[0] != "q" else f", or, if it is of no {robot.name}, give --robot"
        raise GaitError(
            f"{path}: nothing in it looks like {missing[0]}: name it with --columns map.yaml, a file with lines such as"
            f" `their_name: {missing[0]}.{part}`{other} (found {have})"
        )
    for piece in (by_field[name] for name in PER_JOINT if name in by_field):
        names = piece.names or tuple(f"joint_{i}" for i in range(piece.values.shape[1]))
        with located(f"{path}, {piece.where}"):
            match = match_joints(names, robot.encoder_names, options.joint_names)
        notes.say(match.note if piece.field == "q" else "")
        piece.values = piece.values[:, list(match.index)]
    signals = {}
    for role in dict.fromkeys(ROLE.values()):
        present = [by_field[name] for name in ROLE if ROLE[name] == role and name in by_field]
        if present and getattr(options, role) != NONE:
            signals[role] = _signal(present)
    if "truth" in signals and not {"pos_w", "quat_wb_wxyz"} <= set(signals["truth"].arrays):
        some = " and ".join(by_field[name].where for name in ROLE if ROLE[name] == "truth" and name in by_field)
        notes.say(f"ground truth needs position and rotation: {some} alone was left out")
        del signals["truth"]
    if "truth" in signals and not _is_truth([by_field[name] for name in ("pos_w", "quat_wb_wxyz")], options, notes):
        del signals["truth"]
    if "truth" in signals:
        _settle_quaternions(by_field["quat_wb_wxyz"], signals["truth"], signals["imu"], notes)
    if options.truth not in (None, NONE) and "truth" not in signals:
        raise GaitError(f"{path} has no pose such as {options.truth}, and there is no such file: leave out --truth")
    with located(path):
        return merge(signals, robot, notes, path.name, options)


def _is_truth(pieces: list[Piece], options: ReadOptions, notes: Notes) -> bool:
    """Whether a pose is ground truth: named so, mapped or asked for; any other may be an estimate."""
    if options.truth is not None:
        asked = options.truth.strip("/")
        if not any(piece.where.startswith(asked) for piece in pieces):
            raise GaitError(f"nothing for a pose is named {asked}: give --truth {pieces[0].where}, or --truth {NONE}")
        return True
    if all(piece.sure or says_truth(piece.where) for piece in pieces):
        return True
    both = " and ".join(piece.where for piece in pieces)
    notes.say(f"{both} may be an estimate, and are not taken as ground truth: --truth {pieces[0].where} if they are")
    return False


def _signal(pieces: list[Piece]) -> Signal:
    """Arrays of one sensor on the stamps of the first."""
    first = pieces[0]
    arrays: dict[str, AnyArray] = {}
    for piece in pieces:
        arrays |= Signal(piece.where, piece.t, {piece.field: piece.values}).at(first.t)
    return Signal(first.where, first.t, arrays)


def _settle_quaternions(piece: Piece, truth: Signal, imu: Signal, notes: Notes) -> None:
    """Scalar first or last: whichever turns about the axes about which the gyro turns."""
    given, said = truth.arrays["quat_wb_wxyz"], piece.where.lower()
    if "xyzw" in said:
        truth.arrays["quat_wb_wxyz"] = given[:, _XYZW]
    if "xyzw" in said or "wxyz" in said or piece.names == AXES["wxyz"]:
        return
    norm = np.linalg.norm(given, axis=1, keepdims=True)
    good = (norm[:, 0] > 0.5) & np.isfinite(truth.t) & (np.diff(truth.t, prepend=-np.inf) > 0.0)
    unit, t = given[good] / norm[good], truth.t[good]
    first = last = 0.0
    if len(t) > 2:
        gyro = np.stack([np.interp(t, imu.t, imu.arrays["gyro"][:, i]) for i in range(3)], axis=1)
        first, last = (_likeness(rotation_rate(t, one), gyro) for one in (unit, unit[:, _XYZW]))
    if last > first + 0.2:
        truth.arrays["quat_wb_wxyz"] = given[:, _XYZW]
        notes.say(f"{piece.where}: quaternions are x, y, z, w, by comparison with the gyro")
    else:
        why = ", by comparison with the gyro" if first > last + 0.2 else ""
        notes.say(f"{piece.where}: quaternions taken to be w, x, y, z{why}")


def _likeness(one: Array, other: Array) -> float:
    return float(np.sum(one * other)) / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12)


def read_foreign(path: Path, lines: list[str], start: int, options: ReadOptions, notes: Notes) -> Log:
    """Read the table whose column names are in line `start`."""
    names = [name.strip().strip('"') for name in lines[start].split(",")]
    given = read_map(options.columns, names, path)
    found = _columns(names, given, options, notes)
    rows = sum(bool(line.strip()) for line in lines[start + 1 :])
    notes.streams += [StreamInfo(name, "column", rows, float("nan"), _use(found.get(name))) for name in names]
    values = _numbers(path, lines, start + 1, names, found)
    stamps = [name for name, guess in found.items() if guess.field == "t"]
    if not stamps:
        raise GaitError(f"{path} has no column of time: name it with --columns map.yaml, a file with `their_name: t`")
    if len(stamps) > 1:
        notes.say(f"time: column {stamps[0]}, not {', '.join(stamps[1:])}")
    clock = found[stamps[0]]
    t = seconds(values[stamps[0]], clock.scale, clock.scale != 1.0, stamps[0], notes)
    pieces = []
    for field in ROLE:
        parts = {guess.part: name for name, guess in found.items() if guess.field == field}
        if not parts:
            continue
        order = list(AXES_OF.get(field, parts))
        missing = [part for part in order if part not in parts]
        if missing:
            have, lacks = ", ".join(parts.values()), f"{field}.{missing[0]}"
            raise GaitError(f"{path} has {have} for {field}, but nothing for {lacks}: name it with --columns")
        columns = np.column_stack([values[parts[part]] * found[parts[part]].scale for part in order])
        if silent := [parts[part] for i, part in enumerate(order) if not np.isfinite(columns[:, i]).any()]:
            _tell_silent(field, silent, path, notes)
            continue
        columns = _without_holes(t, columns, [parts[part] for part in order], notes)
        known = np.isfinite(columns).all(axis=1) & np.isfinite(t)
        if known.any():
            # Where a sensor was silent its cells are empty, and it has stamps of its own.
            sure = all(name in given or _own(name) for name in parts.values())
            pieces.append(Piece(field, parts[order[0]], t[known], columns[known], tuple(order), sure))
        if not known.all():
            notes.say(f"{field}: {int(known.sum())} of {len(known)} rows have numbers")
    return log_of(pieces, options, notes, path)


def _use(guess: Guess | None) -> str:
    """What a column is used for; the joint of a column stands in its own name."""
    return "" if guess is None else f"{guess.field}.{guess.part}" if guess.field in AXES_OF else guess.field


def _tell_silent(field: str, columns: Sequence[str], path: Path, notes: Notes) -> None:
    """Note the columns of a field that hold no number at all, or raise where there is no estimate without them."""
    many = len(columns) > 1
    words = f"column{'s' if many else ''} {', '.join(columns)} hold{'' if many else 's'} no numbers"
    if field in _NEEDED:
        raise GaitError(f"{path}: {words}, and without {field} there is no estimate: record {'them' if many else 'it'}")
    notes.say(f"{words}, so {field} is left out")


def _without_holes(t: Array, columns: Array, names: Sequence[str], notes: Notes) -> Array:
    """Columns of one sensor with cells filled that lack a number while others of the row have one."""
    there = np.isfinite(columns)
    row = there.any(axis=1) & np.isfinite(t)
    filled = columns.copy()
    for i, name in enumerate(names):
        holes, known = row & ~there[:, i], there[:, i] & np.isfinite(t)
        if not holes.any() or known.sum() < 2 or (np.diff(t[known]) <= 0.0).any():
            continue
        before, _ = places(t[known], t[holes])
        inside = (t[holes] >= t[known][0]) & (t[holes] <= t[known][-1])
        near = inside & (t[known][before + 1] - t[known][before] <= MAX_GAP)
        filled[holes, i] = np.where(near, np.interp(t[holes], t[known], columns[known, i]), np.nan)
        lost = int((~near).sum())
        rest = f"; {lost} row{'s in longer gaps are' if lost > 1 else ' in a longer gap is'} dropped" if lost else ""
        notes.say(f"column {name}: {int(holes.sum())} of {len(t)} cells are not numbers, and were interpolated{rest}")
    return filled


def _columns(
    names: Sequence[str], given: Mapping[str, Guess | None], options: ReadOptions, notes: Notes
) -> dict[str, Guess]:
    """What each column is used for; those that are not used are listed in the notes."""
    own = Robot.load(options.robot or "go1").encoder_names
    joints = [meaning_of(name) for name in own]
    asked = (options.truth or NONE).strip("/")
    poses = {name: guess_pose(name) for name in names if asked != NONE and name.strip("/").startswith(asked)}
    given = {**{name: guess for name, guess in poses.items() if guess is not None}, **given}
    found: dict[str, Guess] = {}
    guessed: list[str] = []
    # What the user names comes first: another column may look like the same.
    for name in sorted(names, key=lambda name: name not in given):
        guess = given[name] if name in given else _own(name) or guess_column(name, joints, meaning_of(name), own)
        taken = {(one.field, one.part) for one in found.values()}
        if guess is not None and ((guess.field, guess.part) not in taken or guess.field == "t"):
            found[name] = guess
            if name not in given and _own(name) is None:
                guessed.append(f"{name} for {guess.field}" + (f".{guess.part}" if guess.part in list("wxyz") else ""))
    left = [name for name in names if name not in found]
    if guessed:
        notes.say(f"columns guessed: {', '.join(guessed[:4])}{' ...' if len(guessed) > 4 else ''}")
    if left:
        notes.say(f"columns left out: {', '.join(left[:8])}{' ...' if len(left) > 8 else ''}")
    return found


def _own(name: str) -> Guess | None:
    """A name of gait's own, such as gyro.x."""
    field, _, part = name.partition(".")
    if name in ("t", "t_ns"):
        return Guess("t", "", 1e-9 if name == "t_ns" else 1.0)
    return Guess(field, part) if part and (part in AXES_OF.get(field, ()) or field in PER_JOINT) else None


def _numbers(
    path: Path, lines: list[str], first: int, names: Sequence[str], used: Collection[str]
) -> dict[str, AnyArray]:
    """The used columns, nan for empty cells; the lines are used up."""
    for i, line in enumerate(lines):
        lines[i] = ",".join(cell.strip() or "nan" for cell in line.split(",")) if line.strip() else ""
    if lines[-1].count(",") != len(names) - 1:
        # A recording that was stopped ends anywhere.
        del lines[-1]
    wanted = [name if name in used else None for name in names]
    hint = ", or leave the column out with --columns map.yaml, a file with `{}: null`"
    values = parse(path, lines, first, wanted, ",", hint)
    lines.clear()
    return values
