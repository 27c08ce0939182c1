"""NEES, its band, coverage and averages across runs."""

import math

import needs
import numpy as np
import pytest

from gait import GaitError
from gait.metrics import across_runs, chi_square_quantile, coverage, mean_std, nees, nees_band
from gait.rows import Row


def draw(count: int, seed: int = 0, dof: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Errors that are drawn from the covariances claimed for them."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, dof, dof)) + 2.0 * np.eye(dof)
    return np.einsum("nij,nj->ni", root, rng.normal(size=(count, dof))), root @ root.transpose(0, 2, 1)


@pytest.mark.parametrize("dof", [0.5, 1, 2, 3, 6, 15, 100, 4500, 1e5, 1e6])
def test_chi_square_quantile_equals_scipy(dof: float) -> None:
    chi2 = needs.package("scipy.stats").chi2
    for probability in (1e-6, 0.005, 0.025, 0.5, 0.975, 0.995, 1.0 - 1e-6):
        assert chi_square_quantile(probability, dof) == pytest.approx(chi2.ppf(probability, dof), rel=1e-10)


def test_band_from_a_printed_table() -> None:
    # Bar-Shalom et al., Estimation with Applications to Tracking and Navigation: 100 degrees of freedom.
    lower, upper = nees_band(dof=2, count=50)
    assert (50 * lower, 50 * upper) == (pytest.approx(74.2, abs=0.05), pytest.approx(129.6, abs=0.05))


def test_nees_of_one_sample_by_hand() -> None:
    found = nees(np.array([[1.0, 2.0]]), np.array([[[4.0, 0.0], [0.0, 1.0]]]))
    np.testing.assert_allclose(found.values, [0.25 + 4.0])
    assert found.dof == 2 and found.mean == 4.25


def test_nees_tells_right_from_overconfident_and_timid() -> None:
    errors, claimed = draw(500)
    assert nees(errors, claimed).consistent
    bold, timid = nees(errors, 0.8 * claimed), nees(errors, 1.25 * claimed)
    assert bold.mean > bold.upper and timid.mean < timid.lower
    np.testing.assert_allclose(bold.values, nees(errors, claimed).values / 0.8)


def test_band_holds_the_promised_share_of_averages() -> None:
    inside = [nees(*draw(50, seed)).consistent for seed in range(400)]
    # Binomial with p = 0.95: 380 expected, standard deviation 4.4.
    assert 362 <= sum(inside) <= 396


def test_correlated_samples_widen_the_band() -> None:
    errors, claimed = draw(600)
    runs = nees(errors.reshape(20, 30, 3), claimed.reshape(20, 30, 3, 3))
    assert runs.values.shape == (20, 30) and runs.independent == 20
    assert (runs.lower, runs.upper) == nees_band(3, 20)
    assert nees(errors, claimed, independent=20).upper == runs.upper > nees(errors, claimed).upper


def test_coverage() -> None:
    errors, claimed = draw(20_000)
    for k, share in ((1.0, 0.6827), (2.0, 0.9545), (3.0, 0.9973)):
        found = coverage(errors, claimed, k)
        assert found.expected == pytest.approx(share, abs=1e-4)
        np.testing.assert_allclose(found.axes, share, atol=0.012)
    assert coverage(errors, 0.25 * claimed, 2.0).fraction == pytest.approx(0.6827, abs=0.01)
    assert coverage(np.array([[1.0, -3.0]]), np.diag([1.0, 4.0])[None], 1.0).axes.tolist() == [1.0, 0.0]
    assert coverage(errors, claimed).rows("coverage_vel")[0].name == "coverage_vel_2sigma"


def test_mean_and_spread_across_runs() -> None:
    found = mean_std([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(7.0 / 3.0)
    assert found.std == pytest.approx(math.sqrt(7.0 / 3.0))
    alone = mean_std([3.0])
    assert alone.mean == 3.0 and math.isnan(alone.std)


def test_rows_across_runs_keep_what_all_runs_share() -> None:
    runs = [
        [Row("a", 1.0, "m"), Row("b", 5.0, "s"), Row("c", "trot", "-")],
        [Row("a", 3.0, "m"), Row("c", "pace", "-")],
    ]
    found = across_runs(runs)
    assert list(found) == ["a"] and found["a"].mean == 2.0 and found["a"].count == 2


def test_bad_input_gives_one_sentence() -> None:
    errors, claimed = draw(5)
    broken = claimed.copy()
    broken[3] = np.diag([1.0, -1.0, 1.0])
    for call, words in (
        (lambda: nees(errors, broken), "the covariance of sample 3 is not positive definite"),
        (lambda: nees(errors, claimed[:4]), r"covariances have shape \(4, 3, 3\) but must be \(5, 3, 3\)"),
        (lambda: nees(errors[:0], claimed[:0]), "at least one sample"),
        (lambda: nees(errors, claimed, confidence=95.0), "confidence 95 is not a probability"),
        (lambda: coverage(errors[0], claimed[0]), r"give \(samples, components\)"),
        (lambda: mean_std([]), "no runs to average"),
        (lambda: across_runs([]), "no runs to average"),
        (lambda: chi_square_quantile(1.0, 3), "no chi-square quantile"),
    ):
        with pytest.raises(GaitError, match=words):
            call()
