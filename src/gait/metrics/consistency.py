"""Consistency of errors and covariances: NEES with its chi-square band, and coverage within k sigma."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.rows import Row


@dataclass(frozen=True, eq=False)
class Nees:
    """Normalised estimation error squared, e' P^-1 e: on average the number of components if P is right.

    Above `upper` the covariance is too small (overconfident); below `lower` it is too large.
    """

    values: Array
    """One for each sample (...)."""
    dof: int
    """Components of the error, so the expected value."""
    independent: int
    """How many samples count as independent in the band."""
    confidence: float
    lower: float
    upper: float

    @property
    def mean(self) -> float:
        """Average NEES."""
        return float(np.mean(self.values))

    @property
    def consistent(self) -> bool:
        """Whether the average lies inside the band."""
        return self.lower <= self.mean <= self.upper

    def rows(self, name: str = "nees") -> list[Row]:
        """The average and its band as rows."""
        return [Row(name, self.mean, "-"), Row(f"{name}_lower", self.lower, "-"), Row(f"{name}_upper", self.upper, "-")]


def nees(errors: Array, covariances: Array, *, independent: int | None = None, confidence: float = 0.95) -> Nees:
    """NEES of errors under the covariances that were claimed for them.

    Args:
        errors: (..., d). For Monte-Carlo runs put the runs first: (runs, time, d).
        covariances: (..., d, d).
        independent: how many independent samples the average holds, for the band; the length of the first axis
            unless given. Samples along one run are correlated: give the number of runs, not of samples.
        confidence: probability of the band, two-sided.

    Raises:
        GaitError: if shapes disagree or a covariance is not positive definite.
    """
    errors, covariances = _checked(errors, covariances)
    d = errors.shape[-1]
    try:
        root = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        # One bad matrix fails the whole batch.
        smallest = np.linalg.eigvalsh(covariances)[..., 0]
        bad = tuple(int(i) for i in np.unravel_index(np.argmin(smallest), smallest.shape))
        raise GaitError(
            f"the covariance of sample {', '.join(map(str, bad))} is not positive definite:"
            " repair it or leave the sample out"
        ) from None
    white = np.linalg.solve(root, errors[..., None])[..., 0]
    count = errors.shape[0] if independent is None else independent
    lower, upper = nees_band(d, count, confidence)
    return Nees(np.sum(white**2, axis=-1), d, count, confidence, lower, upper)


def nees_band(dof: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """Where the average NEES of `count` independent samples with `dof` components lies with this probability."""
    if not 0.0 < confidence < 1.0:
        raise GaitError(f"confidence {confidence:g} is not a probability: give a number between 0 and 1, such as 0.95")
    tail = (1.0 - confidence) / 2.0
    total = dof * count
    return chi_square_quantile(tail, total) / count, chi_square_quantile(1.0 - tail, total) / count


@dataclass(frozen=True, eq=False)
class Coverage:
    """Fraction of the errors within k standard deviations."""

    k: float
    axes: Array
    """Fraction for each component (d,)."""
    expected: float
    """Fraction if the errors are Gaussian and the covariance is right."""

    @property
    def fraction(self) -> float:
        """Over all components."""
        return float(np.mean(self.axes))

    def rows(self, name: str = "coverage") -> list[Row]:
        """The fraction as a row."""
        return [Row(f"{name}_{self.k:g}sigma", self.fraction, "-")]


def coverage(errors: Array, covariances: Array, k: float = 2.0) -> Coverage:
    """Fraction of errors (..., d) within k sigma of their covariances (..., d, d), component by component."""
    errors, covariances = _checked(errors, covariances)
    sigma = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
    within = np.abs(errors) <= k * sigma
    return Coverage(k, within.reshape(-1, errors.shape[-1]).mean(axis=0), math.erf(k / math.sqrt(2.0)))


def _checked(errors: Array, covariances: Array) -> tuple[Array, Array]:
    errors, covariances = np.asarray(errors, dtype=np.float64), np.asarray(covariances, dtype=np.float64)
    if errors.ndim < 2 or errors.size == 0:
        raise GaitError(f"errors have shape {errors.shape}: give (samples, components), at least one sample")
    want = (*errors.shape, errors.shape[-1])
    if covariances.shape != want:
        raise GaitError(f"covariances have shape {covariances.shape} but must be {want}: one matrix for each error")
    return errors, covariances


def chi_square_quantile(probability: float, dof: float) -> float:
    """The value that a chi-square variable stays below with this probability, by bisection.

    Within a relative 1e-10 from half a degree of freedom to a million.
    """
    if not (0.0 < probability < 1.0 and dof > 0.0):
        raise GaitError(f"no chi-square quantile at probability {probability:g} with {dof:g} degrees of freedom")
    # Covers every probability below 1 that a float can hold.
    low, high = 0.0, dof + 20.0 * math.sqrt(dof) + 100.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if _gamma_p(0.5 * dof, 0.5 * middle) < probability else (low, middle)
    return middle


def _gamma_p(a: float, x: float) -> float:
    """Regularised lower incomplete gamma function: below its middle by the series, above by the continued fraction."""
    front, count = math.exp(a * math.log(x) - x - math.lgamma(a)), int(10.0 * math.sqrt(x)) + 100
    if x < a + 1.0:
        return front / a * (1.0 + float(np.cumprod(x / (a + np.arange(1, count))).sum()))
    fraction = x + 2.0 * count + 1.0 - a
    for i in range(count, 0, -1):
        fraction = x + 2.0 * i - 1.0 - a - i * (i - a) / fraction
    return 1.0 - front / fraction
