"""Record: named arrays on one clock plus a few words about them; what Log and Trajectory have in common."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from gait import quaternions
from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.log.fields import AXES, Field, Labels, check_field, check_time, fields_of, refuse_unknown

Self = TypeVar("Self", bound="Record")
TIME = Field("t", (), "s", "time stamp, strictly increasing", required=True)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Record:
    """Read-only arrays whose first axis is time, as a table of fields describes them."""

    KIND: ClassVar[str]
    """What it is called in messages and in files."""
    FIELDS: ClassVar[tuple[Field, ...]]
    """The arrays, those that are not there too; the first is `t`."""
    METADATA: ClassVar[tuple[str, ...]]
    """Attributes beside the arrays; all are text or tuples of text."""
    LEAST_ROWS: ClassVar[int]

    t: Array

    def __init_subclass__(cls) -> None:
        """Collect the fields, and let `help` show every one that the constructor takes."""
        cls.FIELDS = (TIME, *fields_of(cls))
        keyword = inspect.Parameter.KEYWORD_ONLY
        own = [one for one in inspect.signature(cls.__init__).parameters.values() if one.kind == keyword]
        needed = inspect.Parameter.empty
        given = [
            inspect.Parameter(field.name, keyword, default=needed if field.required else None, annotation="ArrayLike")
            for field in cls.FIELDS
        ]
        cls.__signature__ = inspect.Signature([*given, *own])  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self.t)

    def __eq__(self, other: object) -> bool:
        """True if every array and every name is the same, to the last bit."""
        if not isinstance(other, Record) or self.KIND != other.KIND:
            return NotImplemented
        return self.metadata() == other.metadata() and all(
            _same(getattr(self, field.name), getattr(other, field.name)) for field in self.FIELDS
        )

    __hash__ = None  # type: ignore[assignment]

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A pickled array comes back writable.
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)

    @property
    def duration(self) -> float:
        """Time from the first sample to the last, s."""
        return float(self.t[-1] - self.t[0])

    @property
    def rate(self) -> float:
        """Samples per second: one over the median step, to the microhertz; zero if there is but one row."""
        return round(1.0 / float(np.median(np.diff(self.t))), 6) if len(self) > 1 else 0.0

    @property
    def labels(self) -> Labels:
        """The names along each kind of axis."""
        return AXES

    def arrays(self) -> dict[str, AnyArray]:
        """The fields that are there, by name, in the order of the table."""
        values = {field.name: getattr(self, field.name) for field in self.FIELDS}
        return {name: value for name, value in values.items() if value is not None}

    def metadata(self) -> dict[str, Any]:
        """Everything beside the arrays, by name."""
        return {name: getattr(self, name) for name in self.METADATA}

    def need(self, name: str) -> AnyArray:
        """The field of that name, or a GaitError that says it is missing."""
        refuse_unknown([name], [field.name for field in self.FIELDS], self.KIND)
        value: AnyArray | None = getattr(self, name)
        if value is None:
            raise GaitError(f"the {self.KIND.lower()} has no {name}: this step needs one that records it")
        return value

    def replace(self: Self, **changes: Any) -> Self:
        """The same record with some fields or names changed, checked again."""
        return type(self)(**{**self.arrays(), **self.metadata(), **changes})

    def save(self, path: str | Path, compress: bool = False) -> None:
        """Write the format that the name ends with (`.npz`, `.csv`, `.mcap`, `.tum`), in one piece or not at all.

        Args:
            path: the file. A `.tum` file takes poses (of a Log, those of its ground truth) and nothing else.
            compress: make an `.npz` or `.mcap` smaller; slow, and noise hardly shrinks.
        """
        from gait.io import save

        save(self, path, compress)

    def to_csv(self, path: str | Path) -> None:
        """Write every field as text, one column each; see `docs/log.md` for their names."""
        from gait.io.csv import Csv

        Csv().write(self, Path(path))

    def _take(self, given: Mapping[str, Any], labels: Labels, **metadata: object) -> None:
        """Check the given arrays against the table and keep them: the whole of a constructor."""
        refuse_unknown(given, [field.name for field in self.FIELDS], self.KIND)
        missing = [field.name for field in self.FIELDS if field.required and given.get(field.name) is None]
        if missing:
            raise GaitError(f"{self.KIND} field {missing[0]} is missing: every {self.KIND} needs it")
        t = check_time(given["t"], self.KIND, self.LEAST_ROWS)
        arrays: dict[str, AnyArray | None] = {"t": t}
        for field in self.FIELDS[1:]:
            value = given.get(field.name)
            arrays[field.name] = None if value is None else check_field(field, value, t, labels, self.KIND)
        self.__dict__.update(arrays, **metadata)


def places(t: Array, wanted: Array, early: float = 0.0) -> tuple[AnyArray, Array]:
    """For each wanted stamp (m,) the sample before it, not the last, and how far it is on the way to the next, 0 to 1.

    Args:
        t: stamps of the samples (n,).
        wanted: stamps (m,).
        early: a sample that is later than a stamp by no more than this (s) counts as one before it.
    """
    before = np.clip(np.searchsorted(t, wanted + early, side="right") - 1, 0, len(t) - 2)
    # Stamps may be as close as floats can be, and then a stamp outside is infinitely far.
    with np.errstate(over="ignore"):
        return before, np.clip((wanted - t[before]) / (t[before + 1] - t[before]), 0.0, 1.0)


def interpolate(array: AnyArray, before: AnyArray, part: Array, axes: tuple[str, ...], hold: bool = False) -> AnyArray:
    """Rows between samples: straight, along the shortest arc for rotations, the last one for flags.

    Args:
        array: samples (n, ...).
        before: the sample before each wanted row (m,), not the last.
        part: how far each row is on the way to the next (m,), 0 to 1; at 0 and 1 samples come back to the last bit.
        axes: of the field.
        hold: keep the last sample for any array, as a command holds.
    """
    if hold or array.dtype == np.bool_:
        return np.asarray(array[np.where(part == 1.0, before + 1, before)])
    start, end = array[before], array[before + 1]
    if axes == ("wxyz",):
        return quaternions.slerp(start, end, part)
    weight = part.reshape(-1, *[1] * (array.ndim - 1))
    return np.asarray(np.where(weight == 1.0, end, start + weight * (end - start)))


def _same(a: AnyArray | None, b: AnyArray | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.tobytes() == b.tobytes()
