"""The estimated noise of the accelerometer: what it finds, and what it does not take for noise."""

from __future__ import annotations

import numpy as np
import pytest

from gait.reference.adapted_noise import CAUTION, LEAST_FACTOR, MOST_NOISE, SPAN, STEP, AdaptedNoise

SECONDS = 20.0


def estimated(noise: float, wrong: np.ndarray, std: float = 0.01, seed: int = 0, dt: float = STEP / 4) -> AdaptedNoise:
    """After a walk with that noise density and measurements whose errors are `wrong` (3,) times a slow oscillation."""
    rng, found, true = np.random.default_rng(seed), AdaptedNoise(), np.zeros(3)
    for k in range(int(SECONDS / dt)):
        change = dt * np.array([np.sin(3.0 * k * dt), np.cos(2.0 * k * dt), 0.3 * np.sin(9.0 * k * dt)])
        true = true + change
        found.propagated(change + rng.normal(0.0, noise * np.sqrt(dt), 3), dt)
        error = wrong * np.sin(2.0 * np.pi * 1.7 * k * dt) + rng.normal(0.0, std, 3)
        found.measure(true + error, np.full(3, std**2), np.zeros(3))
    return found


def of_soles(claimed: float, lasts: int, seed: int = 0) -> AdaptedNoise:
    """Measurements that claim so many times their variance, which varies; their errors last for so many moments."""
    rng, found, unit = np.random.default_rng(seed), AdaptedNoise(of_soles=True), np.zeros(3)
    for k in range(3000):
        unit = rng.normal(size=3) if k % lasts == 0 else unit
        std = 0.06 + 0.05 * np.sin(2.0 * np.pi * k * STEP / 0.9)
        found.propagated(np.zeros(3), STEP)
        found.measure(std * unit, np.full(3, claimed * std**2), np.zeros(3))
    return found


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1, 0.2])
def test_finds_the_noise(noise: float) -> None:
    found = [estimated(noise, np.zeros(3), seed=seed).density for seed in range(8)]
    assert np.median(found) == pytest.approx(min(np.sqrt(1.0 + CAUTION) * noise, MOST_NOISE), rel=0.3)


def test_a_good_accelerometer_stays_one() -> None:
    assert max(estimated(0.001, np.zeros(3), seed=seed).density for seed in range(8)) < 0.012 * np.sqrt(1.0 + CAUTION)


@pytest.mark.parametrize("wrong", [(0.15, 0.1, 0.0), (0.0, 0.0, 0.15)])
def test_feet_that_slip_or_give_way_are_not_noise_of_the_imu(wrong: tuple[float, ...]) -> None:
    found = estimated(0.003, np.array(wrong))
    assert found.density < 0.03 * np.sqrt(1.0 + CAUTION) and np.sqrt(found.noise2.max()) > 0.03


def test_bounded_and_forgotten() -> None:
    found = estimated(2.0, np.zeros(3))
    assert found.density == pytest.approx(MOST_NOISE)
    found.reset()
    assert found.density == 0.0 and not found.moments


def test_a_gap_in_the_measurements_is_not_compared_across() -> None:
    found = estimated(0.003, np.zeros(3))
    before = found.density
    found.propagated(np.full(3, 5.0), 1.0)  # a second without measurements, in which the IMU was wrong
    found.measure(np.zeros(3), np.full(3, 1e-4), np.zeros(3))
    assert len(found.moments) == 1 and found.density == before


def median_factor(claimed: float, lasts: int) -> float:
    return float(np.median([of_soles(claimed, lasts, seed).factors for seed in range(6)]))


@pytest.mark.parametrize("claimed", [0.5, 1.0, 2.0])
def test_soles_count_for_what_they_are(claimed: float) -> None:
    """Errors that last for about 0.1 s, as claimed."""
    assert median_factor(claimed, 5) == pytest.approx(1.0 / claimed, rel=0.35)


def test_soles_that_claim_too_much_have_a_least_factor() -> None:
    assert median_factor(30.0, 5) == LEAST_FACTOR


def test_brief_errors_of_soles_are_smaller_than_they_look() -> None:
    assert median_factor(1.0, 1) < 0.5 * median_factor(1.0, 10)


def test_a_network_of_the_whole_body_never_counts_for_more_than_it_claims() -> None:
    rng, found = np.random.default_rng(0), AdaptedNoise()
    for k in range(2000):
        std = 0.02 + 0.01 * np.sin(0.1 * k)
        found.propagated(np.zeros(3), STEP)
        found.measure(rng.normal(0.0, std, 3), np.full(3, 10.0 * std**2), np.zeros(3))
    assert (found.factors == 1.0).all()


@pytest.mark.parametrize(("bias", "shows"), [(0.5, True), (0.05, False)])
def test_a_bias_lasts(bias: float, shows: bool) -> None:
    """In the differences of more than half a second, beyond what noise makes; a slip of 0.3 m/s for 0.3 s does not."""
    found = estimated(0.003, np.zeros(3))
    at, dt = found.inertial.copy(), STEP / 4
    assert not found.lasting(6.0).any()
    for _ in range(round(0.6 / dt)):
        found.propagated(np.array([bias, 0.0, 0.0]) * dt, dt)
        found.measure(at, np.full(3, 1e-4), np.zeros(3))
    assert bool(found.lasting(6.0)[0] > 0.0) is shows and not found.lasting(6.0)[1:].any()


def test_a_slip_does_not_last() -> None:
    found = estimated(0.003, np.zeros(3))
    at, dt = found.inertial.copy(), STEP / 4
    for k in range(round(2.0 / dt)):
        found.propagated(np.zeros(3), dt)
        found.measure(at + np.array([0.3 * (0.5 < k * dt < 0.8), 0.0, 0.0]), np.full(3, 1e-2), np.zeros(3))
        assert not found.lasting(6.0).any()


@pytest.mark.parametrize(("flight", "std"), [(0.2, 0.03), (0.2, 1.0), (0.4, 0.03)])
def test_a_bias_shows_from_stance_to_stance(flight: float, std: float) -> None:
    """In flight nothing measures, or with a variance that tells nothing: stances are compared with each other."""
    rng, found, dt, bias = np.random.default_rng(0), AdaptedNoise(), STEP / 4, np.array([0.5, 0.0, 0.0])
    for k in range(round(6.0 / dt)):
        stands = (k * dt) % (0.2 + flight) < 0.2
        found.propagated(dt * bias * (k * dt > 3.0), dt)
        if stands or std == 1.0:
            error = rng.normal(0.0, 0.01 if stands else 1.0, 3)
            found.measure(error, np.full(3, 1e-4 if stands else 1.0), np.zeros(3))
        if k * dt < 3.0:
            assert not found.lasting(found.gate).any()
    lasting = np.sqrt(found.lasting(1.0))
    assert lasting[0] == pytest.approx(0.5 * SPAN, abs=0.03) and not found.lasting(found.gate)[1:].any()


def test_the_acceleration_while_legs_measure_is_kept_in_flight() -> None:
    """Of a robot that jumps: upwards in stance, and in flight what it was, since that is what late joints leave."""
    found, dt = AdaptedNoise(), STEP / 4
    for k in range(round(10.0 / dt)):
        stands = (k * dt) % 0.4 < 0.2
        found.propagated(dt * np.array([0.0, 0.0, 9.81 if stands else -9.81]), dt)
        if stands:
            found.measure(np.zeros(3), np.full(3, 1e-4), np.zeros(3))
    assert found.swept[2] == pytest.approx(98.1, rel=0.05) and found.square_b[2] == pytest.approx(9.81**2, rel=0.05)
