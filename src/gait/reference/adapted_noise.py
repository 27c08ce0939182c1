"""Noise of accelerometer and measurements, estimated while they are in use.

From one moment to another the IMU and the measurements must agree on how the velocity changed. Over T = 0.3 s the two
differ by the errors of both measurements, which go with the variances that these claim, and by what the accelerometer
got wrong in between, whatever they claim: E[d^2] = f (r + r') + q T. Weighted least squares fits f and q, each
difference weighted by the inverse square of its expected variance. Feet that slip differ along the ground, feet that
give way differ vertically, and a noisy IMU in both: the geometric mean of the two q is taken for its noise.

What legs claim is for errors that last 0.1 s. Those of soles do so: they come with impacts and changes of load. So they
are averaged for about as long before they are compared, for errors that last less would pass for larger ones, and f may
then be less than 1. Errors that last longer than T do not show, so it has a least value. Feet that are balls have such
errors, of their radius and of how they roll, and so has a network of the whole body: there single measurements are
compared, and can only show that they are worse.
A difference that lasts is no noise. A slip begins and ends with a jump, so it makes differences of one sign for no
longer than T; an accelerometer or an orientation that is wrong does so for as long as it is. So each axis is followed
by a value that rises slowly and falls at once, and held against the mean square of differences. Between the stances of
a robot that jumps no moment is measured: then the latest one that is T old or older takes its place.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from gait.arrays import Array

STEP, LAGS = 0.02, 15
"""Seconds from one moment to the next, and how many moments lie between the two that are compared."""
SPAN = STEP * LAGS
KEPT, LEAST_FACTOR = 0.5, 0.25
"""Share of the average of soles that is kept from one moment to the next: a time constant of 0.03 s; and least factor
on their variances. Chosen on walks of the G1 and of random bipeds."""
MEMORY, PRIOR = 150.0, 30.0
"""Differences that are averaged: 3 s; and those as claimed and without noise, as if seen before the first."""
LEAST_STD = 0.03
"""Of a difference, m/s: smaller ones count alike."""
SPREAD_SHARE = 0.25
"""Of the spread of the sources that joins the variance of their mean."""
RIDGE = 0.05
"""By how much the fit prefers a factor of 1, in squares of the mean variance."""
CAUTION = 1.0
"""How often the noise that both groups of axes show is added: errors of an IMU that do not last show less over 0.3 s
than from step to step."""
MOST_NOISE, MOST_FACTOR = 0.3, 4.0
"""m/s^2/sqrt(Hz); and on variances."""
SLOTS = 30
"""Moments that are kept, this one among them."""
DRIFT_RISE, DRIFT_STD = 0.3, 0.02
"""How fast the lasting part of a difference may rise, m/s^2; and a difference that is never an error, m/s."""
DRIFT_GATE, CONTACTS_GATE = 6.0, 1.25
"""Usual variances beyond which a difference that lasts has a cause in the IMU or the orientation; of feet in contact,
which claim one variance whatever they do, on firm ground several times too large."""
MOST_STD = 0.2
"""A measurement with a larger one, m/s, shows nothing that lasts."""
ACCEL_TIME, LONGEST = 0.1, 0.5
"""Seconds over which the acceleration is averaged while legs measure, and for which at most it is held afterwards."""
USUAL_MEMORY, USUAL_PRIOR = 500.0, 5.0
"""Differences whose squares over their claimed variances are averaged: 10 s; and those as claimed, before the first."""
USUAL_CAP, USUAL_STEP = 9.0, 0.01
"""By what factor, and how much more, one of them may exceed their mean: a bias that jumps is not usual."""
GROUPS = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
"""Axes along the ground, and vertical."""
UNIT = np.eye(3)


class AdaptedNoise:
    """The noise of one accelerometer and of the measurements beside it."""

    def __init__(self, of_soles: bool = False, of_contacts: bool = False) -> None:
        """Of a filter whose measurements are those of legs with soles, of feet in contact, or of another one."""
        self.kept, self.least = (KEPT, LEAST_FACTOR) if of_soles else (0.0, 1.0)
        self.gate = CONTACTS_GATE if of_contacts else DRIFT_GATE
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self.inertial, self.since, self.known = np.zeros(3), 0.0, 0.0
        self.means, self.noise2, self.factors = np.zeros((5, 2)), np.zeros(2), np.ones(2)
        self.average = np.zeros(3)
        self.expected, self.usual, self.counted = np.zeros(3), np.ones(2), 0.0
        self.before, self.accel, self.square_b, self.swept = np.zeros((4, 3))
        self.forget()

    def forget(self) -> None:
        """Nothing is compared with what was measured before."""
        self.moments: deque[tuple[Array, Array] | None] = deque(maxlen=SLOTS - 1)
        self.count, self.rise = 0, 0.0
        self.weight, self.drift = np.zeros(3), np.zeros(3)

    def propagated(self, change_w: Array, dt: float) -> None:
        """The IMU has added (3,) to the velocity in dt seconds."""
        self.inertial = self.inertial + change_w
        self.since += dt

    def measure(self, velocity_w: Array, variance_w: Array, spread_w: Array, R_wb: Array = UNIT) -> bool:
        """A measured velocity, the variances that one measurement claims and the spread of its sources (3,).

        R_wb: the predicted orientation (3, 3).

        Returns:
            Whether it was time for another moment.
        """
        if self.since < 0.999 * STEP:
            return False
        self._follow_accel(variance_w, R_wb)
        self._skip()
        self.since = 0.0
        claimed = variance_w + SPREAD_SHARE * spread_w
        self.weight = self.kept * self.weight + 1.0 / claimed
        self.average = self.average + (velocity_w - self.inertial - self.average) / (claimed * self.weight)
        apart, own = self.average, 1.0 / ((1.0 - self.kept) * self.weight)
        self._follow_drift(apart, own)
        then = self.moments[-LAGS] if self.count == LAGS else None
        if then is not None:
            self._compare(np.square(apart - then[0]), own + then[1])
        self.count = min(self.count + 1, LAGS)
        self.moments.append((apart, own))
        return True

    def _skip(self) -> None:
        """Leave moments without a measurement empty."""
        missing = int(self.since / STEP - 0.49)
        self.rise += DRIFT_RISE * min((missing + 1) * STEP, SPAN)
        if missing >= SLOTS:
            self.forget()
        elif missing > 0:
            self.count, self.weight = 0, np.zeros(3)
            self.moments.extend([None] * missing)

    def _follow_accel(self, variance_w: Array, R_wb: Array) -> None:
        """The acceleration while legs measure, by which their latency shows, and its integral."""
        share = self.since / (ACCEL_TIME + self.since) if self.since <= 1.5 * STEP and informs(variance_w) else 0.0
        accel = (self.inertial - self.before) / self.since
        self.accel = self.accel + share * (accel - self.accel)
        self.square_b = self.square_b + share * ((R_wb.T @ accel) ** 2 - self.square_b)
        self.swept = self.swept + min(self.since, LONGEST) * self.accel
        self.before = self.inertial

    def _follow_drift(self, apart: Array, own: Array) -> None:
        """Compare with the latest moment that is SPAN old or older, as if it were SPAN old (3,)."""
        old = list(self.moments)[-LAGS::-1] if len(self.moments) >= LAGS else []
        found = [(k, one) for k, one in enumerate(old, LAGS) if one is not None and informs(one[1])]
        if not found:
            self.rise = 0.0
        if not found or not informs(own):
            return
        lag, (apart_then, own_then) = found[0]
        part = LAGS / lag
        d, r = part * (apart - apart_then), part * part * (own + own_then)
        before = np.where(self.drift * d > 0.0, np.abs(self.drift), 0.0)
        self.drift, self.rise = np.copysign(np.minimum(np.abs(d), before + self.rise), d), 0.0
        self.expected = GROUPS.T @ self.usual * r + DRIFT_STD**2
        ratio = GROUPS @ (d**2 / (r + DRIFT_STD**2)) / GROUPS.sum(1)
        self.counted = min(self.counted + 1.0, USUAL_MEMORY)
        capped = np.minimum(ratio, USUAL_CAP * self.usual + USUAL_STEP)
        self.usual = self.usual + (capped - self.usual) / (self.counted + USUAL_PRIOR)

    def lasting(self, gate: float) -> Array:
        """Squares of what lasts of the differences beyond so many variances that are usual (3,), (m/s)^2."""
        return np.asarray(np.maximum(self.drift**2 - gate * self.expected, 0.0))

    def _compare(self, d2: Array, r: Array) -> None:
        """Take squares of differences and their claimed variances (3,)."""
        weight = (r + GROUPS.T @ self.noise2 * SPAN + LEAST_STD**2) ** -2
        terms = np.stack([weight, weight * r, weight * r**2, weight * d2, weight * r * d2]) @ GROUPS.T  # (5, 2)
        self.means = np.where(self.means[0] == 0.0, terms[[0, 1, 2, 1, 2]], self.means)  # begins with d^2 = r
        self.known = min(self.known + 1.0, MEMORY)
        self.means = self.means + (terms - self.means) / (self.known + PRIOR)
        mean_r, mean_r2, mean_d2, mean_rd2 = self.means[1:] / self.means[0]
        ridge = RIDGE * mean_r**2
        slope = np.minimum((mean_rd2 - mean_r * mean_d2 + ridge) / (mean_r2 - mean_r**2 + ridge), MOST_FACTOR)
        self.factors = np.maximum(slope, self.least)
        self.noise2 = np.clip((mean_d2 - np.maximum(slope, 0.0) * mean_r) / SPAN, 0.0, MOST_NOISE**2)

    @property
    def density(self) -> float:
        """Noise density that a filter takes for the accelerometer's, m/s^2/sqrt(Hz)."""
        return float(min(np.sqrt(np.prod(self.noise2) ** 0.5 + CAUTION * self.noise2.min()), MOST_NOISE))

    @property
    def factor(self) -> Array:
        """On the variances that a measurement claims along x, y and z of base_link (3,)."""
        return self.factors[[0, 0, 1]]


def informs(variance: Array) -> bool:
    """Whether a measurement of these variances (3,) shows what lasts."""
    return bool(variance.max() < MOST_STD**2)
