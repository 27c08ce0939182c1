"""Time in files: whole nanoseconds, and the exact seconds beside them where those say more."""

from __future__ import annotations

import numpy as np

from gait.arrays import AnyArray, Array
from gait.errors import GaitError

ROUNDING = 1e-6
"""Seconds that `t` and `t_ns` of a row may differ by: `t` may have been written with no more than six decimals."""

_NS = 1_000_000_000
_EXACT = 2**53
_SECONDS = float(2**63 // _NS)


def to_ns(t: Array) -> AnyArray:
    """Seconds (N,) as whole nanoseconds (int64), rounded to the nearest."""
    if len(t) and np.abs(t).max() >= _SECONDS:
        raise GaitError(f"time stamps beyond {_SECONDS:.0f} s do not fit a file: give seconds since some recent start")
    whole = np.floor(t)
    # The fraction of a float64 is exact; multiplying the whole stamp would lose digits of a date.
    return np.asarray(whole.astype(np.int64) * _NS + np.rint((t - whole) * 1e9).astype(np.int64))


def from_ns(ns: AnyArray) -> Array:
    """Whole nanoseconds (N,) as the nearest seconds."""
    ns = np.asarray(ns, dtype=np.int64)
    return np.asarray(np.where(np.abs(ns) < _EXACT, ns / 1e9, ns // _NS + (ns % _NS) / 1e9))


def pack(t: Array) -> dict[str, AnyArray]:
    """The time columns of a file: `t_ns`, and `t` too where nanoseconds alone do not give the seconds back."""
    ns = to_ns(t)
    # Bytes, since minus zero equals zero and is yet another number.
    return {"t_ns": ns} if from_ns(ns).tobytes() == t.tobytes() else {"t_ns": ns, "t": t}


def unpack(columns: dict[str, AnyArray], where: str) -> Array:
    """Take the time columns out of `columns` and return the seconds: `t` if it is there, else from `t_ns`.

    Raises:
        GaitError: if there is no time, or both columns are there and tell different times.
    """
    ns, t = columns.pop("t_ns", None), columns.pop("t", None)
    if ns is None:
        if t is None:
            raise GaitError(f"{where} has no time: it needs t (seconds) or t_ns (whole nanoseconds)")
        return t
    if ns.dtype.kind not in "iu" or ns.ndim != 1:
        raise GaitError(f"{where}: t_ns must be one whole number of nanoseconds per row")
    if t is None:
        return from_ns(ns)
    # Other shapes and types of t are the record's own to refuse.
    if t.shape == ns.shape and t.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            apart = np.abs(t - from_ns(ns)) > ROUNDING + 4.0 * np.spacing(np.abs(t))
        for row in np.flatnonzero(apart):
            both = f"t = {t[row]:.9f} s but t_ns = {ns[row]}"
            raise GaitError(f"{where} tells two times at row {row}, {both}: remove the wrong column")
    return t
