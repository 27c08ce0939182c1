"""Smoothing on the group, one line an equation (Rauch, Tung and Striebel 1965); core/smooth.c is the same in C.

Each step of the filter is a record: the state before it, the state it predicts, and Phi. With the right-invariant error
the backward pass is that of vectors, but for a logarithm and an exponential.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.lie import so3_left_jacobian_inverse, so3_log
from gait.reference.filter import ACCEL_BIAS, GYRO_BIAS, POS, ROT, VEL, ReferenceFilter


@dataclass
class FilterStep:
    """A step of the filter."""

    before: ReferenceFilter
    predicted: ReferenceFilter
    Phi: Array


def recorded_step(ekf: ReferenceFilter, gyro: Array, accel: Array, dt: float) -> FilterStep:
    """Propagate a filter, and record it."""
    before, Phi = copy.deepcopy(ekf), ekf.transition(dt)
    ekf.propagate(gyro, accel, dt)
    return FilterStep(before, copy.deepcopy(ekf), Phi)


def smooth_back(records: list[FilterStep], last: ReferenceFilter) -> list[ReferenceFilter]:
    """Smoothed states before each step, and the last one."""
    out = [copy.deepcopy(last)]
    for record in reversed(records):
        out.append(smoothed_before(record, out[-1]))
    return out[::-1]


def smoothed_before(record: FilterStep, after: ReferenceFilter) -> ReferenceFilter:
    """The smoothed state before a step, from that after it; feet that left in between are marginalised."""
    before, predicted = copy.deepcopy(record.before), record.predicted
    legs = [leg for leg in predicted.feet if leg in after.feet]
    mine, theirs = (_rows(ekf, legs) for ekf in (predicted, after))
    P_predicted = predicted.P[np.ix_(mine, mine)]
    C = np.linalg.solve(P_predicted, record.Phi[mine] @ before.P).T
    before.P = before.P + C @ (after.P[np.ix_(theirs, theirs)] - P_predicted) @ C.T
    before._retract(C @ difference(after, predicted, legs))
    return before


def difference(X: ReferenceFilter, Y: ReferenceFilter, legs: list[int]) -> Array:
    """log(X Y^-1), and the difference of the biases."""
    delta, turn = np.zeros(15 + 3 * len(legs)), X.R @ Y.R.T
    delta[ROT] = so3_log(turn)
    J = so3_left_jacobian_inverse(delta[ROT])
    delta[VEL], delta[POS] = J @ (X.v - turn @ Y.v), J @ (X.p - turn @ Y.p)
    delta[GYRO_BIAS], delta[ACCEL_BIAS] = X.gyro_bias - Y.gyro_bias, X.accel_bias - Y.accel_bias
    for i, leg in enumerate(legs):
        delta[15 + 3 * i : 18 + 3 * i] = J @ (X.feet[leg] - turn @ Y.feet[leg])
    return delta


def _rows(ekf: ReferenceFilter, legs: list[int]) -> Array:
    return np.array([*range(15), *(i for leg in legs for i in range(ekf.rows(leg).start, ekf.rows(leg).stop))])
