"""Noise of the accelerometers of n robots, estimated while they are in use: core/adapt.c in torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gait.nets.torch_lie import turn_back
from gait.reference.adapted_noise import (
    ACCEL_TIME,
    CAUTION,
    DRIFT_GATE,
    DRIFT_RISE,
    DRIFT_STD,
    GROUPS,
    KEPT,
    LAGS,
    LEAST_FACTOR,
    LEAST_STD,
    LONGEST,
    MEMORY,
    MOST_FACTOR,
    MOST_NOISE,
    MOST_STD,
    PRIOR,
    RIDGE,
    SLOTS,
    SPAN,
    SPREAD_SHARE,
    STEP,
    USUAL_CAP,
    USUAL_MEMORY,
    USUAL_PRIOR,
    USUAL_STEP,
)

_STATE = (
    "inertial", "since", "means", "noise2", "more", "known", "place", "count", "apart", "variance", "average", "weight",
    "drift", "expected", "more_usual", "counted", "rise", "before", "accel", "square_b", "swept",
)  # fmt: skip


class TorchAdaptedNoise(nn.Module):
    """What is remembered of n robots; `gait.reference.adapted_noise` explains it."""

    inertial: Tensor
    """What the IMU alone has added to the velocity (3, n), m/s."""
    since: Tensor
    """Seconds since the last moment that was kept (n,)."""
    means: Tensor
    """Of differences: weights, and weighted r, r^2, d^2, r d^2, along the ground and vertically (5, 2, n)."""
    more: Tensor
    """Factor on claimed variances less 1 (2, n)."""
    noise2: Tensor
    """Squares of noise densities by what differs along the ground, and vertically (2, n)."""
    known: Tensor
    """Differences so far (n,), at most those that are averaged."""
    place: Tensor
    """Of the next moment (n,)."""
    count: Tensor
    """Moments in a row (n,)."""
    apart: Tensor
    """Measured velocity less `inertial` (SLOTS, 3, n)."""
    variance: Tensor
    """Of those measurements (SLOTS, 3, n); 0: none."""
    average: Tensor
    """Of measured velocity less `inertial` over the last moments (3, n)."""
    weight: Tensor
    """Sum of the weights in it (3, n)."""
    drift: Tensor
    """Part of a difference that lasts (3, n), m/s."""
    expected: Tensor
    """Variance that is usual (3, n)."""
    more_usual: Tensor
    """By how much the mean square of differences over claimed variances exceeds 1 (2, n)."""
    counted: Tensor
    """Differences in that mean (n,)."""
    rise: Tensor
    """By how much the lasting part may rise (n,), m/s."""
    before: Tensor
    """`inertial` at the last moment (3, n), m/s."""
    accel: Tensor
    """Mean acceleration while legs measure (3, n), m/s^2."""
    square_b: Tensor
    """Its mean square, base axes (3, n)."""
    swept: Tensor
    """Integral of the mean (3, n), m/s."""
    groups: Tensor

    def __init__(self, n: int, dtype: torch.dtype, of_soles: bool = False) -> None:
        super().__init__()
        self.kept, self.least = (KEPT, LEAST_FACTOR) if of_soles else (0.0, 1.0)
        self.gate = DRIFT_GATE
        shapes = {"inertial": (3, n), "since": (n,), "known": (n,), "means": (5, 2, n)}
        shapes |= {"noise2": (2, n), "more": (2, n), "average": (3, n), "weight": (3, n)}
        shapes |= {"drift": (3, n), "expected": (3, n), "more_usual": (2, n), "counted": (n,)}
        shapes |= {"rise": (n,), "before": (3, n), "accel": (3, n), "square_b": (3, n), "swept": (3, n)}
        for name, shape in {**shapes, "apart": (SLOTS, 3, n), "variance": (SLOTS, 3, n)}.items():
            self.register_buffer(name, torch.zeros(shape, dtype=dtype))
        for name in ("place", "count"):
            self.register_buffer(name, torch.zeros(n, dtype=torch.int64))
        self.register_buffer("groups", torch.tensor(GROUPS.tolist(), dtype=dtype), persistent=False)

    def reset(self, chosen: Tensor) -> None:
        """Forget what is remembered of the chosen robots (n,)."""
        for name in _STATE:
            value = getattr(self, name)
            setattr(self, name, torch.where(chosen, torch.zeros_like(value), value))

    def propagated(self, change_w: Tensor, dt: Tensor) -> None:
        """The IMUs have added (3, n) to the velocities in dt seconds (n,)."""
        self.inertial = self.inertial + change_w
        self.since = self.since + dt

    def measure(self, velocity_w: Tensor, variance_w: Tensor, spread_w: Tensor, R_wb: Tensor, chosen: Tensor) -> Tensor:
        """Measured velocities, variances of one measurement and spread of its sources (3, n), of the chosen robots.

        R_wb: predicted orientations (3, 3, n).

        Returns:
            For whom it was time for another moment (n,).
        """
        due = chosen & (self.since >= 0.999 * STEP)
        self._follow_accel(variance_w, R_wb, due)
        self._skip(due)
        claimed = variance_w + SPREAD_SHARE * spread_w
        weight = self.kept * self.weight + torch.reciprocal(claimed)
        apart = self.average + (velocity_w - self.inertial - self.average) / (claimed * weight)
        own = torch.reciprocal((1.0 - self.kept) * weight)
        self.weight, self.average = torch.where(due, weight, self.weight), torch.where(due, apart, self.average)
        self._follow_drift(apart, own, due)
        at, then = self._place(torch.zeros_like(self.place)), self._place(torch.full_like(self.place, LAGS))
        d, r = apart - self.apart.gather(0, then)[0], own + self.variance.gather(0, then)[0]
        self._compare(torch.square(d), r, due & (self.count == LAGS))
        self.apart = torch.where(due, self.apart.scatter(0, at, apart[None]), self.apart)
        self.variance = torch.where(due, self.variance.scatter(0, at, own[None]), self.variance)
        self.place = torch.where(due, (self.place + 1) % SLOTS, self.place)
        self.count = torch.where(due, torch.clamp(self.count + 1, max=LAGS), self.count)
        self.since = torch.where(due, 0.0, self.since)
        return due

    def _place(self, lag: Tensor) -> Tensor:
        """The slots of so many moments ago (n,), to gather from (1, 3, n)."""
        return ((self.place - lag) % SLOTS)[None, None].expand(1, 3, -1)

    def _skip(self, due: Tensor) -> None:
        """Leave moments without a measurement empty, of robots that are due (n,)."""
        missing = torch.where(due, (self.since / STEP - 0.49).to(torch.int64), 0)
        rise = DRIFT_RISE * torch.clamp((missing + 1).to(self.since.dtype) * STEP, max=SPAN)
        self.rise = torch.where(due, self.rise + rise, self.rise)
        gap, long = missing > 0, missing >= SLOTS
        ahead = (torch.arange(SLOTS, device=self.place.device)[:, None] - self.place) % SLOTS  # (SLOTS, n)
        self.variance = torch.where((ahead < missing)[:, None], 0.0, self.variance)
        self.place = (self.place + torch.where(long, 0, missing)) % SLOTS
        self.count = torch.where(gap, 0, self.count)
        self.weight = torch.where(gap, 0.0, self.weight)
        self.drift = torch.where(long, 0.0, self.drift)

    def _follow_accel(self, variance_w: Tensor, R_wb: Tensor, due: Tensor) -> None:
        """The acceleration while legs measure, and its integral, of robots that are due (n,)."""
        follows = due & (self.since <= 1.5 * STEP) & informs(variance_w)
        share = torch.where(follows, self.since / (ACCEL_TIME + self.since), 0.0)
        accel = (self.inertial - self.before) / torch.where(due, self.since, 1.0)
        self.accel = self.accel + share * (accel - self.accel)
        self.square_b = self.square_b + share * (torch.square(turn_back(R_wb, accel)) - self.square_b)
        self.swept = self.swept + torch.where(due, torch.clamp(self.since, max=LONGEST), 0.0) * self.accel
        self.before = torch.where(due, self.inertial, self.before)

    def _follow_drift(self, apart: Tensor, own: Tensor, due: Tensor) -> None:
        """Compare with the latest moment that is SPAN old or older, as if it were SPAN old."""
        ago = (self.place - torch.arange(SLOTS, device=self.place.device)[:, None]) % SLOTS  # (SLOTS, n)
        good = (ago >= LAGS) & (self.variance[:, 0] > 0.0) & (self.variance.amax(1) < MOST_STD**2)
        lag = torch.where(good, ago, SLOTS).amin(0)
        self.rise = torch.where(due & (lag == SLOTS), 0.0, self.rise)
        told = due & (lag < SLOTS) & informs(own)
        then, part = self._place(lag), LAGS / lag.to(self.since.dtype)
        d = part * (apart - self.apart.gather(0, then)[0])
        r = part * part * (own + self.variance.gather(0, then)[0])
        usual = 1.0 + self.more_usual
        before = torch.where(self.drift * d > 0.0, self.drift.abs(), 0.0)
        drift = torch.copysign(torch.minimum(d.abs(), before + self.rise), d)
        ratio = self.groups @ (torch.square(d) / (r + DRIFT_STD**2)) / self.groups.sum(1, keepdim=True)
        capped = torch.minimum(ratio, USUAL_CAP * usual + USUAL_STEP)
        counted = torch.clamp(self.counted + 1.0, max=USUAL_MEMORY)
        more = self.more_usual + (capped - usual) / (counted + USUAL_PRIOR)
        self.drift, self.rise = torch.where(told, drift, self.drift), torch.where(told, 0.0, self.rise)
        self.expected = torch.where(told, self.groups.T @ usual * r + DRIFT_STD**2, self.expected)
        self.more_usual = torch.where(told, more, self.more_usual)
        self.counted = torch.where(told, counted, self.counted)

    def lasting(self, gate: float) -> Tensor:
        """Squares of what lasts of the differences beyond so many variances that are usual (3, n), (m/s)^2."""
        return torch.clamp(torch.square(self.drift) - gate * self.expected, min=0.0)

    def _compare(self, d2: Tensor, r: Tensor, full: Tensor) -> None:
        """Take squares of differences and their claimed variances (3, n) of the robots that have one (n,)."""
        weight = torch.square(torch.reciprocal(r + self.groups.T @ self.noise2 * SPAN + LEAST_STD**2))
        terms = torch.stack([weight, weight * r, weight * r * r, weight * d2, weight * r * d2])
        terms = self.groups @ terms  # (5, 2, n)
        begun = torch.where(self.means[0] == 0.0, terms[[0, 1, 2, 1, 2]], self.means)
        self.known = torch.where(full, torch.clamp(self.known + 1.0, max=MEMORY), self.known)
        means = begun + (terms - begun) / (self.known + PRIOR)
        mean_r, mean_r2, mean_d2, mean_rd2 = means[1:] / means[0]
        ridge = RIDGE * torch.square(mean_r)
        slope = (mean_rd2 - mean_r * mean_d2 + ridge) / (mean_r2 - torch.square(mean_r) + ridge)
        noise2 = (mean_d2 - torch.clamp(slope, 0.0, MOST_FACTOR) * mean_r) / SPAN
        self.means = torch.where(full, means, self.means)
        self.more = torch.where(full, torch.clamp(slope, self.least, MOST_FACTOR) - 1.0, self.more)
        self.noise2 = torch.where(full, torch.clamp(noise2, 0.0, MOST_NOISE**2), self.noise2)

    @property
    def density2(self) -> Tensor:
        """Squares of the noise densities (n,), (m/s^2)^2/Hz."""
        found = torch.sqrt(self.noise2[0] * self.noise2[1]) + CAUTION * torch.minimum(self.noise2[0], self.noise2[1])
        return torch.clamp(found, max=MOST_NOISE**2)

    @property
    def factor(self) -> Tensor:
        """On the variances that measurements claim along x, y and z of base_link (3, n)."""
        return 1.0 + self.more[[0, 0, 1]]


def informs(variance: Tensor) -> Tensor:
    """Whether measurements of these variances (3, n) show what lasts (n,)."""
    return variance.amax(0) < MOST_STD**2
