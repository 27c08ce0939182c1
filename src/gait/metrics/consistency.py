"""Does an estimator know how wrong it is? NEES with its chi-square band, and coverage within k sigma."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.rows import Row


@dataclass(frozen=True, eq=False)
class Nees:
    """Normalised estimation error squared, e' P^-1 e: on average the number of components if P is right.

    Above `upper` the estimator believes in itself too much; below `lower` it is more careful than it need be.
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
            unless told. Samples along one run are correlated: give the number of runs, not of samples.
        confidence: probability of the band, two-sided.

    Raises:
        GaitError: if shapes disagree or a covariance is not positive definite.
    """
    errors, covariances = np.asarray(errors, dtype=np.float64), np.asarray(covariances, dtype=np.float64)
    _check_shapes(errors, covariances)
    d = errors.shape[-1]
    try:
        root = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        # One bad matrix fails the whole batch; only then is it worth looking for it.
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
    """How often the truth lies within k standard deviations of the estimate."""

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
    errors, covariances = np.asarray(errors, dtype=np.float64), np.asarray(covariances, dtype=np.float64)
    _check_shapes(errors, covariances)
    sigma = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1))
    within = np.abs(errors) <= k * sigma
    return Coverage(k, within.reshape(-1, errors.shape[-1]).mean(axis=0), math.erf(k / math.sqrt(2.0)))


def _check_shapes(errors: Array, covariances: Array) -> None:
    if errors.ndim < 2 or errors.size == 0:
        raise GaitError(f"errors have shape {errors.shape}: give (samples, components), at least one sample")
    want = (*errors.shape, errors.shape[-1])
    if covariances.shape != want:
        raise GaitError(f"covariances have shape {covariances.shape} but must be {want}: one matrix for each error")


def chi_square_quantile(probability: float, dof: float) -> float:
    """The value that a chi-square variable stays below with this probability.

    Newton's method on the incomplete gamma function, started from Wilson and Hilferty's approximation: a relative
    1e-10 from half a degree of freedom to a million.
    """
    if not (0.0 < probability < 1.0 and dof > 0.0):
        raise GaitError(f"no chi-square quantile at probability {probability:g} with {dof:g} degrees of freedom")
    x = _wilson_hilferty(probability, dof)
    a = 0.5 * dof
    low, high = 0.0, math.inf
    for _ in range(200):
        below = _gamma_p(a, 0.5 * x) - probability
        low, high = (x, high) if below < 0.0 else (low, x)
        density = 0.5 * math.exp((a - 1.0) * math.log(0.5 * x) - 0.5 * x - math.lgamma(a))
        step = below / density if density > 0.0 else math.inf
        new = x - step
        if not low < new < high:
            new = 2.0 * x if math.isinf(high) else 0.5 * (low + high)
        if abs(new - x) <= 1e-13 * x:
            return new
        x = new
    return x


def _wilson_hilferty(probability: float, dof: float) -> float:
    """Their cube-root approximation (1931), kept positive for the far lower tail."""
    c = 2.0 / (9.0 * dof)
    return float(dof * max(1.0 - c + NormalDist().inv_cdf(probability) * math.sqrt(c), 1e-3) ** 3)


def _gamma_p(a: float, x: float) -> float:
    """Regularised lower incomplete gamma function, by its series or its continued fraction, whichever is quick."""
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        n = a
        while term > total * 1e-17:
            n += 1.0
            term *= x / n
            total += term
        return front * total
    tiny = 1e-300
    b = x + 1.0 - a
    c, d = 1.0 / tiny, 1.0 / b
    fraction = d
    for i in range(1, 100_000):
        numerator = -i * (i - a)
        b += 2.0
        d = 1.0 / (numerator * d + b or tiny)
        c = b + numerator / c or tiny
        fraction *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return 1.0 - front * fraction
