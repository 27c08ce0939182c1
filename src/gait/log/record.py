"""Record: named arrays on one clock plus a few words about them; what Log and Trajectory have in common."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.log.fields import AXES, Field, Labels, check_field, check_time, refuse_unknown

Self = TypeVar("Self", bound="Record")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Record:
    """Read-only arrays whose first axis is time, as a table of fields describes them."""

    KIND: ClassVar[str]
    """What it is called in messages and in files."""
    FIELDS: ClassVar[tuple[Field, ...]]
    METADATA: ClassVar[tuple[str, ...]]
    """Attributes beside the arrays; all are text or tuples of text."""
    LEAST_ROWS: ClassVar[int]

    t: Array
    """Time stamps (N,), seconds, strictly increasing."""

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
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self)(**{**given, **changes})

    def _take(self, given: dict[str, Any], unknown: dict[str, object], labels: Labels, **metadata: object) -> None:
        """Check the given arrays against the table and keep them: the whole of a constructor."""
        refuse_unknown(unknown, [field.name for field in self.FIELDS], self.KIND)
        missing = [field.name for field in self.FIELDS if field.required and given[field.name] is None]
        if missing:
            raise GaitError(f"{self.KIND} field {missing[0]} is missing: every {self.KIND} needs it")
        t = check_time(given["t"], self.KIND, self.LEAST_ROWS)
        arrays: dict[str, AnyArray | None] = {"t": t}
        for field in self.FIELDS[1:]:
            value = given[field.name]
            arrays[field.name] = None if value is None else check_field(field, value, t, labels, self.KIND)
        # A frozen dataclass has no other door for its own constructor.
        self.__dict__.update(arrays, **metadata)


def _same(a: AnyArray | None, b: AnyArray | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.tobytes() == b.tobytes()
