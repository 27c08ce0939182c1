"""The estimators give the outputs that are stored in `golden/outputs`, on the sample log and on degraded variants."""

from functools import cache

import numpy as np
import pytest
from golden import recorded
from golden.recorded import Record

HINT = "if the change is meant, run tools/update_golden.py and say why in the commit"
load = cache(recorded.load)


@pytest.mark.parametrize(
    ("method", "case"), [(method, case) for method in recorded.METHODS for case in recorded.cases_of(method)]
)
def test_outputs_are_those_stored(method: str, case: str) -> None:
    stored = load(method)
    assert case in stored, f"{method}, {case}: not stored yet; run tools/update_golden.py"
    tolerances = recorded.tolerances_of(method, case)
    found = recorded.complaints(recorded.compute(method, case), stored[case], tolerances)
    assert not found, "\n".join([f"{method}, {case}: the outputs changed", *found, HINT])


@pytest.mark.parametrize("method", recorded.METHODS)
def test_every_stored_case_is_computed(method: str) -> None:
    assert list(load(method)) == recorded.cases_of(method), HINT


@pytest.mark.parametrize("case", ["gap_short", "rate_400"])
@pytest.mark.parametrize("method", recorded.METHODS)
def test_samples_and_logs_give_the_same_bits(method: str, case: str) -> None:
    whole, by_sample = recorded.compute(method, case), recorded.compute(method, case, by_sample=True)
    # Contacts are told for a whole log only.
    whole.pop("contact", None)
    assert set(whole) == set(by_sample)
    for name, values in whole.items():
        assert np.array_equal(values, by_sample[name]), name


def test_a_change_is_named() -> None:
    """Field, first time and largest difference of what changed; nothing of what did not."""
    stored, tolerances = load("iekf")["dead_leg"], recorded.tolerances_of("iekf", "dead_leg")
    changed: Record = {name: values.copy() for name, values in stored.items()}
    assert recorded.complaints(changed, stored, tolerances) == []
    changed["vel_w"][5:, 1] += 3e-6
    changed["vel_var"][7] *= 1.0 + 1e-5
    changed["health_bits"][-1] ^= 1
    velocity, variance, health = recorded.complaints(changed, stored, tolerances)
    assert velocity.startswith(f"vel_w: first at t = {stored['t'][5]:.3f} s, max difference 3.00e-06")
    assert variance.startswith(f"vel_var: first at t = {stored['t'][7]:.3f} s, max relative difference 1.00e-05")
    assert health.startswith("health: first at row ") and "starting" in health
    assert "refusal" in recorded.complaints({"refused": np.array(["No."])}, stored, tolerances)[0]
