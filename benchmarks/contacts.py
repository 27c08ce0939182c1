"""Fits the probability of contact (core/feet.c) on training walks, and measures the leg outputs of docs/feet.md.

    python benchmarks/contacts.py fit WALK...       log-odds by logistic regression
    python benchmarks/contacts.py score WALK...     F1 and, where the log has them, the error of the forces

Walks are files with true contacts; fit and score on different seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import gait
from gait import Estimator, Log, quaternions
from gait.arrays import Array
from gait.nets.features import FORCE, PER_LEG, SHARED, VELOCITY, leg_features

FORCE_KNEE = 0.1


def regressors(log: Log, method: str = "gait-legs") -> Array:
    """What the log-odds are made of (N, L, 4), in the order of core/feet.c."""
    robot = gait.Robot.load(log.robot)
    legs = leg_features(log, robot)[:, SHARED:].reshape(len(log), robot.num_legs, PER_LEG)
    found = Estimator.load(robot, method).run(log)
    up = quaternions.rotate_inverse(found.quat_wb_wxyz, np.tile([0.0, 0.0, 1.0], (len(log), 1)))
    force = np.einsum("nlk,nk->nl", legs[..., FORCE : FORCE + 3], up)
    slip = found.vel_b[:, None] - legs[..., VELOCITY : VELOCITY + 3]
    speed = np.linalg.norm(slip, axis=2)
    return np.stack([np.ones_like(force), force, np.minimum(force, FORCE_KNEE), speed], axis=-1)


def fit(logs: list[Log]) -> Array:
    """The four factors, by maximum likelihood on every fifth sample."""
    X = np.concatenate([regressors(log)[::5].reshape(-1, 4) for log in logs])
    y = np.concatenate([np.asarray(log.contact)[::5].ravel() for log in logs]).astype(np.float64)
    scale = np.r_[1.0, X[:, 1:].std(0)]

    def loss(w: Array) -> tuple[float, Array]:
        z = X / scale @ w
        return float(np.mean(np.logaddexp(0.0, z) - y * z)), (1.0 / (1.0 + np.exp(-z)) - y) @ (X / scale) / len(y)

    # A foot that moves is never more likely to stand: walks alone do not tell, since no foot in them is at rest.
    bounds = [(None, None), (0.0, None), (0.0, None), (None, 0.0)]
    return np.asarray(minimize(loss, np.zeros(4), jac=True, method="L-BFGS-B", bounds=bounds).x / scale)


def score(log: Log, method: str = "gait-legs") -> dict[str, float]:
    """F1 and Brier score of the contacts; error of the forces in weights; slope of the ground, degrees."""
    log = log.reorder(log.robot)
    estimator = Estimator.load(log.robot, method, feet=True)
    states = estimator.run_with_details(log)[1]
    true, found = np.asarray(log.contact), np.nan_to_num(np.asarray(states.contact, dtype=np.float64))
    called = found > 0.5
    out = {
        "f1": 2.0 * (called & true).sum() / (called.sum() + true.sum()),
        "brier": float(np.mean((found - true) ** 2)),
        "slope": float(np.degrees(np.nanmedian(np.asarray(states.ground_slope)[:, 0]))),
    }
    if log.foot_force is not None:
        weight = 9.81 * float(estimator.robot.mass)
        out["force"] = float(np.sqrt(np.nanmean((np.asarray(states.foot_force) - log.foot_force) ** 2)) / weight)
    return out


def main() -> None:
    """Fit or score."""
    what, *words = sys.argv[1:]
    logs = {Path(word): gait.open_log(word) for word in words}
    if what == "fit":
        print(np.array2string(fit([log.reorder(log.robot) for log in logs.values()]), precision=3))
        return
    for path, log in logs.items():
        print(path.parent.name, {name: round(float(value), 3) for name, value in score(log).items()})


if __name__ == "__main__":
    main()
