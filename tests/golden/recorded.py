"""Compute, store, load and compare the golden outputs. Uses the public API alone: what is behind it may be replaced."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from golden.cases import CASES, inputs_of
from golden.inputs import SENSORS, Inputs

import gait

FOLDER = Path(__file__).parent / "outputs"
METHODS = ("gait", "gait-flat", "nmn", "iekf", "iekf-sr", "gait-legs")
WITHOUT_NETWORK = ("iekf", "iekf-sr")
CONTACT_CASES = ("contact_flags", "foot_forces")
"""Cases about an option that networks do not have."""

Array = npt.NDArray[Any]
Record = dict[str, Array]
"""Outputs of a method in a case: arrays over the stored rows; `refused` alone if the method refuses the input."""


@dataclass(frozen=True)
class Held:
    """How closely a field is held, and how finely it is stored: well below the tolerance, for smaller files."""

    tolerance: float
    relative: bool = False
    single: bool = False

    def rounded(self, values: Array) -> Array:
        """As stored: to single precision, to 31 significant bits, or to 2^-33."""
        if self.single:
            return values.astype(np.float32)
        if self.relative:
            mantissa, exponent = np.frexp(values)
            return np.ldexp(np.rint(mantissa * 2.0**31) / 2.0**31, exponent)
        return np.rint(values * 2.0**33) / 2.0**33

    def differences(self, values: Array, expected: Array) -> Array:
        """Largest difference of each row, in the units of the tolerance; NaN equals NaN."""
        values, expected = self.rounded(values).astype(np.float64), expected.astype(np.float64)
        difference = np.abs(values - expected)
        if self.relative:
            difference = difference / np.maximum(np.abs(expected), 1e-30)
        difference[(values == expected) | (np.isnan(values) & np.isnan(expected))] = 0.0
        return np.nan_to_num(difference, nan=np.inf).reshape(len(values), -1).max(1)


STATE, COVARIANCE, NETWORK = Held(1e-6), Held(1e-6, relative=True), Held(1e-5, single=True)
FIELDS = {
    "t": Held(1e-9),
    "quat_wb_wxyz": STATE,
    "vel_w": STATE,
    "pos_w": STATE,
    "vel_b": STATE,
    "gyro_bias": STATE,
    "accel_bias": STATE,
    "vel_var": COVARIANCE,
    "pose_var": COVARIANCE,
    "correlations": STATE,
    "overall": COVARIANCE,
    "predicted_vel": NETWORK,
    "predicted_log_std": NETWORK,
    "attention": NETWORK,
    "leg_vel": NETWORK,
    "leg_log_std": NETWORK,
}
"""Fields that are held to a tolerance. `overall` is mean speed and largest standard deviation over all rows."""
SENSITIVE = ("gap_long", "stamps_broken", "saturated", "diverged_speed", "diverged_blind")
"""Cases where a variance grows so large that it amplifies the network's rounding; see README.md."""
EXACT = ("rows", "contact", "health_bits", "health_lengths", "refused")
"""Fields that must be equal. Health of all rows is run-length encoded: bits and the number of rows that have them."""
BITS = dict(
    enumerate(
        ("starting", "gap", "bad-sample", "no-measurement", "rejected", "slip", "diverged", "bad-time", "bad-imu",
         "saturated", "stale-leg")
    )
) | {16: "FR", 17: "FL", 18: "RR", 19: "RL"}  # fmt: skip
"""Health bits by number, as in docs/log.md."""


def compute(method: str, case: str, by_sample: bool = False) -> Record:
    """Run a method on a case.

    Args:
        method: name of the method.
        case: name of the case.
        by_sample: feed `update` even where `run` could take the whole Log.
    """
    inputs = inputs_of(case)
    try:
        estimator = gait.Estimator.load(method=method, attention=True, **inputs.load)
        log = None if by_sample else inputs.log()
        return _feed(estimator, inputs) if log is None else _run(estimator, inputs, log)
    except gait.GaitError as error:
        return {"refused": np.array([str(error)])}


def cases_of(method: str) -> list[str]:
    return [case for case in CASES if method in WITHOUT_NETWORK or case not in CONTACT_CASES]


def tolerances_of(method: str, case: str) -> dict[str, float]:
    """How closely each field is held: closest where no network is rounded to single precision."""
    tolerances = {name: held.tolerance for name, held in FIELDS.items()}
    if method not in WITHOUT_NETWORK:
        loose = 100.0 if case in SENSITIVE else 1.0
        for name, held in FIELDS.items():
            if name != "t" and not held.single:
                tolerances[name] *= 10.0 * loose if held.relative else loose
    return tolerances


def _run(estimator: gait.Estimator, inputs: Inputs, log: gait.Log) -> Record:
    trajectory, details = estimator.run_with_details(log, inputs.start)
    rows, looks = _stored_rows(inputs), _looks(inputs)
    record = {name: getattr(trajectory, name)[rows] for name in _PLAIN}
    record["t"] = trajectory.t[rows]
    record |= _variances(trajectory.vel_cov[rows], trajectory.pose_cov[rows])
    record["correlations"] = _correlations(trajectory.vel_cov[looks], trajectory.pose_cov[looks])
    record |= _network(*(values[rows] for values in details.predicted))
    if details.contact is not None:
        record["contact"] = details.contact[rows]
    if details.attention is not None:
        record["attention"] = details.attention[looks]
    if details.legs is not None:
        record |= _legs(*(values[looks] for values in details.legs))
    return _finish(record, rows, trajectory.health, trajectory.vel_w, trajectory.vel_cov)


def _feed(estimator: gait.Estimator, inputs: Inputs) -> Record:
    values = inputs.values
    if inputs.start == "truth":
        pose = {name: values[name][0] for name in ("quat_wb_wxyz", "vel_w", "pos_w", "gyro")}
        estimator.reset(**pose)
    else:
        estimator.reset()
    columns = [values.get(name) for name in SENSORS]
    states = []
    for row in range(len(inputs)):
        leg_ok = None if inputs.leg_ok is None else inputs.leg_ok[row]
        sensors = [None if column is None else column[row] for column in columns]
        states.append(estimator.update(values["t"][row], *sensors, leg_ok=leg_ok))
    rows, looks = _stored_rows(inputs), _looks(inputs)
    stored, looked = [states[row] for row in rows], [states[row] for row in looks]
    record = {name: _gathered(stored, name) for name in ("t", *_PLAIN)}
    record |= _variances(*(_gathered(stored, name) for name in ("vel_cov", "pose_cov")))
    record["correlations"] = _correlations(*(_gathered(looked, name) for name in ("vel_cov", "pose_cov")))
    record |= _network(*(np.array([state.predicted[i] for state in stored]) for i in range(2)))
    if looked[0].attention is not None:
        record["attention"] = np.array([state.attention for state in looked])
    if looked[0].legs is not None:
        record |= _legs(*(np.array([state.legs[i] for state in looked]) for i in range(2)))
    health = np.array([state.health.bits for state in states], dtype=np.uint32)
    return _finish(record, rows, health, _gathered(states, "vel_w"), _gathered(states, "vel_cov"))


def _gathered(states: list[gait.State], name: str) -> Array:
    return np.array([getattr(state, name) for state in states])


_PLAIN = ("quat_wb_wxyz", "vel_w", "pos_w", "vel_b", "gyro_bias", "accel_bias")


def _stored_rows(inputs: Inputs) -> Array:
    """Rows over the whole case, the first and the last among them, and some around its events."""
    last = len(inputs) - 1
    near = [event + offset for event in inputs.events for offset in (-1, 0, 1, 10, 60)]
    rows = np.unique([*np.linspace(0, last, 24).astype(int), *near])
    return rows[(rows >= 0) & (rows <= last)].astype(np.int32)


def _looks(inputs: Inputs) -> list[int]:
    """Rows whose attention and correlations are stored."""
    last = len(inputs) - 1
    return [last // 3, 2 * last // 3, last]


def _variances(vel_cov: Array, pose_cov: Array) -> Record:
    return {
        "vel_var": np.diagonal(vel_cov, axis1=1, axis2=2),
        "pose_var": np.diagonal(pose_cov, axis1=1, axis2=2),
    }


def _correlations(*covariances: Array) -> Array:
    """What the variances leave out of covariance matrices: correlations above the diagonal, in one row."""
    parts = []
    for cov in covariances:  # (N, D, D)
        std = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
        above = np.triu_indices(cov.shape[1], 1)
        parts.append((cov / (std[:, :, None] * std[:, None, :]))[:, above[0], above[1]])
    return np.hstack(parts)


def _network(velocity: Array, std: Array) -> Record:
    """What the network predicts; nothing of a method without one."""
    if np.isnan(velocity).all():
        return {}
    return {"predicted_vel": velocity, "predicted_log_std": np.log(std)}


def _legs(velocity: Array, std: Array) -> Record:
    return {"leg_vel": velocity, "leg_log_std": np.log(std)}


def _finish(record: Record, rows: Array, health: Array, vel_w: Array, vel_cov: Array) -> Record:
    change = np.flatnonzero(np.diff(health, prepend=~health[:1]))
    speed = np.linalg.norm(vel_w, axis=1).mean()
    std = np.sqrt(np.diagonal(vel_cov, axis1=1, axis2=2).max())
    return {
        **record,
        "rows": rows,
        "overall": np.array([[speed, std]]),
        "health_bits": health[change],
        "health_lengths": np.diff(change, append=len(health)).astype(np.int32),
    }


def save(method: str, records: dict[str, Record]) -> Path:
    """Write the records of a method: each field of all cases in one array, and how many rows of it a case has.

    The same records give the same bytes.
    """
    arrays: Record = {"cases": np.array(list(records))}
    for name in (*FIELDS, *EXACT):
        parts = [_compact(name, record[name]) for record in records.values() if name in record]
        if parts:
            arrays[name] = np.concatenate(parts)
            arrays[f"{name}.count"] = np.array([len(record.get(name, ())) for record in records.values()], np.int32)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{method}.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            # Column by column: neighbours in time compress better.
            np.lib.format.write_array(buffer, np.asfortranarray(array), allow_pickle=False)
            file.writestr(_member(name), buffer.getvalue())
    return path


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_LZMA
    return info


def _compact(name: str, values: Array) -> Array:
    return FIELDS[name].rounded(values) if name in FIELDS else values


def load(method: str) -> dict[str, Record]:
    """The stored records of a method, by case; none if there is no file."""
    path = FOLDER / f"{method}.npz"
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    records: dict[str, Record] = {str(case): {} for case in arrays["cases"]}
    for name in (*FIELDS, *EXACT):
        if name in arrays:
            ends = np.cumsum(arrays[f"{name}.count"])[:-1]
            for record, part in zip(records.values(), np.split(arrays[name], ends), strict=True):
                if len(part):
                    record[name] = part
    return records


def health_of(record: Record) -> npt.NDArray[np.uint32]:
    """Health bits of all rows."""
    return np.repeat(record["health_bits"], record["health_lengths"])


def largest_differences(record: Record, expected: Record) -> dict[str, float]:
    """Largest difference of each field that both have; relative where the tolerance is."""
    if set(record) != set(expected) or not _same_rows(record, expected):
        return {}
    return {
        name: float(held.differences(record[name], expected[name]).max())
        for name, held in FIELDS.items()
        if name in expected
    }


def complaints(record: Record, expected: Record, tolerances: dict[str, float]) -> list[str]:
    """What differs by more than the tolerances: field, time of the first such row and the largest difference."""
    if "refused" in record or "refused" in expected:
        said, before = (str(r["refused"][0]) if "refused" in r else "no refusal" for r in (record, expected))
        return [] if said == before else [f"refusal: '{said}', stored: '{before}'"]
    if missing := set(record) ^ set(expected):
        return [f"fields {', '.join(sorted(missing))} are on one side only"]
    if not _same_rows(record, expected):
        return ["the case has other rows than when it was stored"]
    found = []
    t = expected["t"]
    for name, held in FIELDS.items():
        if name in expected:
            differences = held.differences(record[name], expected[name])
            if (bad := np.flatnonzero(differences > tolerances[name])).size:
                when = f"first at t = {t[bad[0]]:.3f} s, " if len(differences) == len(t) else ""
                unit = "relative " if held.relative else ""
                found.append(f"{name}: {when}max {unit}difference {differences.max():.2e} (> {tolerances[name]:g})")
    if "contact" in expected and (bad := np.flatnonzero((record["contact"] != expected["contact"]).any(1))).size:
        found.append(f"contact: first at t = {t[bad[0]]:.3f} s, {len(bad)} of {len(t)} stored rows differ")
    health, before = health_of(record), health_of(expected)
    if (bad := np.flatnonzero(health != before)).size:
        row = bad[0]
        now, then = (", ".join(flags_of(bits)) or "ok" for bits in (health[row], before[row]))
        found.append(f"health: first at row {row} ({now}; stored: {then}), {len(bad)} of {len(health)} rows differ")
    return found


def _same_rows(record: Record, expected: Record) -> bool:
    return (
        np.array_equal(record.get("rows", ()), expected.get("rows", ()))
        and len(health_of(record)) == len(health_of(expected))
        and all(record[name].shape == expected[name].shape for name in FIELDS if name in expected)
    )


def flags_of(bits: int) -> list[str]:
    """Names of the health bits that are set."""
    return [name for bit, name in BITS.items() if bits >> bit & 1]
