"""The contact-aided filter against the published C++ implementation on its own simulated Cassie run."""

import needs
import numpy as np
import pytest

from gait.invariant_ekf import InvariantEKF
from gait.parameters import Options, ProcessNoise

NOISE = ProcessNoise(
    gyro=0.01, accel=0.1, gyro_bias=1e-5, accel_bias=1e-4, position=0.0, position_share=0.0, height_time=0.0
)
CONTACT_STD = 0.01


@pytest.fixture(scope="module")
def cassie() -> dict[str, np.ndarray]:
    with np.load(needs.shared("reference/cassie_contact_iekf.npz")) as data:
        return dict(data)


def run(cassie: dict[str, np.ndarray], options: Options) -> dict[str, np.ndarray]:
    """Play the run in exactly the reference's order of operations; the state after each kinematic update."""
    f = InvariantEKF(2, NOISE, options=options)
    f.reset(np.diag([1.0, -1.0, -1.0]), cov=np.eye(15))
    t, gyro, accel = cassie["t"], cassie["gyro"], cassie["accel"]
    walk = np.full(2, CONTACT_STD)
    out: dict[str, list[np.ndarray]] = {name: [] for name in ("R", "v", "p", "bg", "ba", "P_diag")}
    for k in range(len(t)):
        if k == 0:
            f.propagate(np.zeros(3), np.zeros(3), 0.0045, walk)
        else:
            f.propagate(gyro[k - 1], accel[k - 1], t[k] - t[k - 1], walk)
        R_before = f.R_wb.copy()
        contact, feet, covs = cassie["contact"][k], cassie["foot_pos_imu"][k], cassie["foot_cov_imu"][k]
        # A lost foot is not measured, so taking it out before the correction instead of after changes nothing.
        for leg in np.flatnonzero(f.active & ~contact):
            f.remove_foot(leg)
        assert f.correct_feet(feet, covs)
        for leg in range(2):
            if contact[leg] and not f.active[leg]:
                f.add_foot(leg, feet[leg], covs[leg], R_before)
        state = (f.R_wb, f.vel_w, f.pos_w, f.gyro_bias, f.accel_bias, np.diag(f.cov)[:15])
        for name, value in zip(out, state, strict=True):
            out[name].append(value.copy())
    return {name: np.array(values) for name, values in out.items()}


def test_equal_to_the_reference_over_the_whole_run(cassie: dict[str, np.ndarray]) -> None:
    ours = run(cassie, Options(exact_mean=False, exact_phi=False))
    at = cassie["ref_index"]
    for name in ("p", "v", "R", "bg", "ba"):
        np.testing.assert_allclose(ours[name][at], cassie[f"ref_{name}"], atol=1e-8, err_msg=name)
    np.testing.assert_allclose(ours["P_diag"][at], cassie["ref_P_diag"], rtol=1e-6, atol=1e-9)


def test_exact_transition_matrix_ends_where_it_should(cassie: dict[str, np.ndarray]) -> None:
    ours = run(cassie, Options(exact_mean=False, exact_phi=True))
    np.testing.assert_allclose(ours["p"][-1], [2.39880658, 0.01575039, -0.11178924], atol=1e-8)


def test_the_default_discretisation_stays_close(cassie: dict[str, np.ndarray]) -> None:
    """Integrating the turn within a step as well moves the end point by less than the run's own error."""
    ours = run(cassie, Options())
    reference_error = np.linalg.norm(cassie["ref_p"][-1] - cassie["truth_p"][-1])
    assert np.linalg.norm(ours["p"][-1] - cassie["ref_p"][-1]) < reference_error
