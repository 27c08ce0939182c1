"""Speed of the filters, each against a named rival in the same run: `make bench`, or add `--json`.

Velocity-aided: one call from Python that propagates and corrects, against the same filter in numpy (`gait.reference`).
Contact-aided with two feet: propagate, and correct, against gtsam's LeggedInvariantEKF (C++) called from Python.
"""

from __future__ import annotations

import sys

import numpy as np

from gait.bench.latency import medians
from gait.bench.rivals import FEET, gtsam_filter
from gait.invariant_ekf import InvariantEKF
from gait.parameters import ProcessNoise
from gait.reference.filter import ReferenceFilter
from gait.report.table import rows_to_table
from gait.rows import Row, rows_to_json

GYRO, ACCEL, DT = np.array([0.1, -0.2, 0.3]), np.array([0.2, 0.1, 9.8]), 0.002
COV = np.eye(3) * 1e-4


def velocity_aided() -> dict[str, float]:
    ours, plain = InvariantEKF(), ReferenceFilter(ProcessNoise())
    vel = np.zeros(3)

    def numpy_step() -> None:
        plain.propagate(GYRO, ACCEL, DT)
        plain.correct_velocity(vel, COV)

    return medians({"core": lambda: ours.step(GYRO, ACCEL, DT, vel, COV), "numpy": numpy_step})


def contact_aided() -> dict[str, float]:
    ours = InvariantEKF(2)
    walk, still, covs = np.full(2, 0.1), np.zeros((2, 3)), np.tile(COV, (2, 1, 1))
    for leg in range(2):
        ours.add_foot(leg, FEET[leg], COV)
    theirs, measurements = gtsam_filter()
    before = theirs.covariance().copy()
    theirs.predict(GYRO, ACCEL, DT)
    theirs.processContacts(measurements)
    assert np.abs(theirs.covariance() - before).max() > 1e-3, "the rival did no work"
    return medians(
        {
            "core_propagate": lambda: ours.propagate(GYRO, ACCEL, DT, walk, still),
            "gtsam_propagate": lambda: theirs.predict(GYRO, ACCEL, DT),
            "core_correct": lambda: ours.correct_feet(FEET, covs),
            "gtsam_correct": lambda: theirs.processContacts(measurements),
        }
    )


def main() -> None:
    velocity, contact = velocity_aided(), contact_aided()
    rows = [Row(f"velocity_aided.{name}_step", value, "us") for name, value in velocity.items()]
    rows.append(Row("velocity_aided.times_faster_than_numpy", velocity["numpy"] / velocity["core"], "x"))
    rows += [Row(f"contact_aided.{name}", value, "us") for name, value in contact.items()]
    for part in ("propagate", "correct"):
        ratio = contact[f"gtsam_{part}"] / contact[f"core_{part}"]
        rows.append(Row(f"contact_aided.{part}_times_faster_than_gtsam", ratio, "x"))
    if "--json" in sys.argv:
        print(rows_to_json(rows))
    else:
        from rich.console import Console

        print("filters: median time of a call from Python")
        Console().print(rows_to_table(rows))


if __name__ == "__main__":
    main()
