"""Smoothing, spectra and outliers against scipy and signals that are known."""

import needs
import numpy as np
import pytest

from gait.bench.realism.even_signals import band_rms, delayed, smoothed, spectrum, straight_runs, without_outliers

RATE = 200.0


def test_smoothing_keeps_straight_lines_to_their_ends_and_removes_what_is_quick() -> None:
    t = np.arange(400) / RATE
    line = np.stack([3.0 + 2.0 * t, -t], axis=1)
    np.testing.assert_allclose(smoothed(line, RATE, 0.1), line, atol=1e-12)
    assert np.abs(smoothed(np.sin(2 * np.pi * 60.0 * t)[:, None], RATE, 0.1)[30:-30]).max() < 0.01


def test_the_spectrum_is_that_of_welch() -> None:
    signal = pytest.importorskip("scipy.signal", reason=needs.extra("scipy"))
    values = np.random.default_rng(0).normal(size=(2000, 3))
    frequencies, power = spectrum(values, RATE, 0.5)
    theirs = signal.welch(values, RATE, window="hann", nperseg=100, detrend="constant", axis=0)
    np.testing.assert_allclose(frequencies, theirs[0])
    # At both ends a one-sided density counts half.
    np.testing.assert_allclose(power[1:-1], theirs[1][1:-1], rtol=1e-9)


def test_the_rms_of_a_band_is_that_of_a_sine_inside_and_nothing_of_one_outside() -> None:
    t = np.arange(4000) / RATE
    values = np.stack([2.0 * np.sin(2 * np.pi * 25.0 * t), np.sin(2 * np.pi * 60.0 * t)], axis=1)
    np.testing.assert_allclose(band_rms(values, RATE, 10.0, 40.0), [np.sqrt(2.0), 0.0], atol=0.01)
    assert np.isnan(band_rms(values, RATE, 40.0, 120.0)).all(), "the rate does not reach that far"


def test_jumps_are_outliers_and_quick_motion_is_not() -> None:
    t = np.arange(1000) / RATE
    motion = 0.02 * np.sin(2 * np.pi * 2.0 * t)[:, None]
    values = motion + np.random.default_rng(1).normal(0.0, 2e-4, motion.shape)
    values[300:304] += 0.01
    clean, bad = without_outliers(values, RATE, 0.15, 0.002)
    assert bad[300:304].all() and bad.sum() < 10
    assert np.abs(clean - smoothed(motion, RATE, 0.15)).max() < 5e-4


def test_held_and_interpolated_samples_are_found() -> None:
    values = np.random.default_rng(2).normal(size=(500, 6))
    values[100:110] = values[100] + np.linspace(0.0, 1.0, 10)[:, None] * (values[110] - values[100])
    values[200:206] = values[200]
    assert straight_runs(values)[-1] == (201, 205)
    assert sum(b - a for a, b in straight_runs(values)) == pytest.approx(12, abs=1)


def test_delayed_is_later() -> None:
    t = np.arange(400) / RATE
    values = np.sin(2 * np.pi * t)[:, None]
    np.testing.assert_allclose(delayed(values, 0.02, RATE)[10:, 0], np.sin(2 * np.pi * (t - 0.02))[10:], atol=1e-3)
