"""Fits the probability of contact (core/feet.c) on training walks, and measures the leg outputs of docs/feet.md.

    python benchmarks/contacts.py fit               log-odds by logistic regression, on the walks of tune_baselines.py
    python benchmarks/contacts.py study             F1 with further terms, fitted on one half, scored on the other
    python benchmarks/contacts.py score WALK...     F1 live and smoothed; error of the forces, where the log has them
    python benchmarks/contacts.py table [--write]   the same of the first walks of twin 2, for docs/feet.md

Walks are files with true contacts. Those of tune_baselines.py are of random robots with the sensor faults of real ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from sections import DOCS, markdown, write_section
from smoothing import SECONDS, first_walks
from tune_baselines import Episode, load_episodes

import gait
from gait import Estimator, Log, Robot
from gait.arrays import Array, BoolArray
from gait.smoothed_feet import AHEAD, around, evidence, foot_constants
from gait.smoothing import smooth_with

RATE = 100.0
"""Samples a second that a fit takes."""
COLUMNS = ("f1, force and speed", "f1", "f1, smoothed", "brier")
"""Of the table."""


def regressors(log: Log, robot: Robot, method: str = "gait-legs") -> Array:
    """What the log-odds are made of (N, L, 6), in the order of core/feet.c."""
    log = log.reorder(robot)
    values, _ = evidence(log, robot, Estimator.load(robot, method).run(log))
    return np.concatenate([np.ones_like(values[..., :1]), values], axis=-1)


def logistic(X: Array, y: Array, times: int = 1) -> Array:
    """Factors of log-odds by maximum likelihood, of rows (N, 6 or more) and what they say (N,).

    Args:
        X: one, then five regressors for each time, then any others.
        y: whether the foot stands.
        times: at which the five were taken.
    """
    scale = np.r_[1.0, X[:, 1:].std(0)]

    def loss(w: Array) -> tuple[float, Array]:
        z = X / scale @ w
        return float(np.mean(np.logaddexp(0.0, z) - y * z)), (1.0 / (1.0 + np.exp(-z)) - y) @ (X / scale) / len(y)

    # A foot that moves is never more likely to stand: walks alone do not tell, since no foot in them is at rest.
    bounds = [(None, None), *[(0.0, None), (None, None), *[(None, 0.0)] * 3] * times]
    bounds += [(None, None)] * (X.shape[1] - len(bounds))
    return np.asarray(minimize(loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x / scale)


def fit(episodes: list[Episode]) -> None:
    """Factors by maximum likelihood: of core/feet.c, and of src/gait/smoothed_feet.py."""
    rows: dict[int, list[Array]] = {1: [], len(AHEAD): []}
    ys = []
    for episode in episodes:
        every = max(1, round(episode.log.rate / RATE))
        X = regressors(episode.log, episode.robot)
        later = around(X[..., 1:], episode.log.t).reshape(*X.shape[:2], -1)
        for times, some in ((1, X), (len(AHEAD), np.concatenate([X[..., :1], later], axis=-1))):
            rows[times].append(some[::every].reshape(-1, some.shape[-1]))
        ys.append(np.asarray(episode.log.contact)[::every].ravel())
    y = np.concatenate(ys).astype(np.float64)
    for times, parts in rows.items():
        X = np.concatenate(parts)
        found = logistic(X, y, times)
        called, true = X @ found > 0.0, y > 0.5
        print(f"F1 {2.0 * (called & true).sum() / (called.sum() + true.sum()):.3f} on the walks of the fit")
        print(np.array2string(found, precision=3))


def change(X: Array, log: Log) -> Array:
    """By how much the force rose and fell in 10 ms (N, L, 2)."""
    rows = max(1, round(0.01 * log.rate))
    moved = X[..., 1] - np.concatenate([np.repeat(X[:1, :, 1], rows, axis=0), X[:-rows, :, 1]])
    return np.stack([np.maximum(moved, 0.0), np.minimum(moved, 0.0)], axis=-1)


FURTHER = {
    "as it is": lambda X, log: X[..., :0],
    "change of the force in 10 ms": change,
    "force on the other feet": lambda X, log: np.minimum(X[..., 1].sum(1)[:, None] - X[..., 1], 1.5)[..., None],
    "knees at 0.3 weights and 0.5 m/s": lambda X, log: np.minimum(X[..., [1, 3]], [0.3, 0.5]),
}
"""Terms beside the six, from these and the log (N, L, K)."""


def study(searched: list[Episode], held: list[Episode]) -> None:
    """F1 with further terms, and with other forces from which on a foot truly stands."""
    known = {id(one): regressors(one.log, one.robot) for one in (*searched, *held)}

    def f1(more: Callable[[Array, Log], Array], least: float) -> float:
        def half(episodes: list[Episode]) -> tuple[Array, BoolArray]:
            Xs, ys = [], []
            for one in episodes:
                X, log = known[id(one)], one.log.reorder(one.robot)
                Xs.append(np.concatenate([X, more(X, log)], axis=-1).reshape(-1, X.shape[-1] + more(X, log).shape[-1]))
                loaded = log.need("foot_force") > least * 9.81 * float(one.robot.mass)
                ys.append((loaded if least > 0.0 else np.asarray(log.contact)).ravel())
            return np.concatenate(Xs), np.concatenate(ys)

        (X, y), (X_held, true) = half(searched), half(held)
        called = X_held @ logistic(X[::5], y[::5].astype(np.float64)) > 0.0
        return float(2.0 * (called & true).sum() / (called.sum() + true.sum()))

    for name, more in FURTHER.items():
        print(f"{name}: {f1(more, 0.0):.3f}")
    for least in (0.02, 0.05, 0.1):
        print(f"truth from {least:g} weights on: {f1(FURTHER['as it is'], least):.3f}")


def score(log: Log, method: str = "gait-legs") -> dict[str, float]:
    """F1 and Brier score of the contacts; error of the forces in weights; slope of the ground, degrees."""
    log = log.reorder(log.robot)
    estimator = Estimator.load(log.robot, method, feet=True)
    states = estimator.run_with_details(log)[1]
    true, found = np.asarray(log.contact), np.nan_to_num(np.asarray(states.contact, dtype=np.float64))
    called = found > 0.5
    smoothed = np.nan_to_num(np.asarray(smooth_with(estimator, log).smoothed.contact)) > 0.5
    values, _ = evidence(log, estimator.robot, states.trajectory(log.t, method))
    load, small = foot_constants().load, values[..., :3]
    by_load = load[0] + small @ load[1:] > 0.0
    out = {
        "f1, force and speed": 2.0 * (by_load & true).sum() / (by_load.sum() + true.sum()),
        "f1": 2.0 * (called & true).sum() / (called.sum() + true.sum()),
        "f1, smoothed": 2.0 * (smoothed & true).sum() / (smoothed.sum() + true.sum()),
        "brier": float(np.mean((found - true) ** 2)),
        "slope": float(np.degrees(np.nanmedian(np.asarray(states.ground_slope)[:, 0]))),
    }
    if log.foot_force is not None:
        weight = 9.81 * float(estimator.robot.mass)
        out["force"] = float(np.sqrt(np.nanmean((np.asarray(states.foot_force) - log.foot_force) ** 2)) / weight)
    return out


def table(write: bool) -> None:
    """The first 20 s of the first walk of each course, 60 s long, live and smoothed."""
    rows = []
    for name, path in first_walks(2).items():
        found = score(gait.open_log(path).slice(0.0, SECONDS))
        rows.append([name, *(f"{found[key]:.3f}" for key in COLUMNS), f"{found['slope']:.1f}"])
        print(rows[-1], flush=True)
    heads = [
        "walk",
        "F1 by force and speed alone",
        "F1 live",
        "F1 of a recording",
        "Brier score",
        "median slope, degrees",
    ]
    text = markdown(heads, rows)
    print(text)
    if write:
        write_section("contacts", text, DOCS / "feet.md")


def main() -> None:
    """Fit, study, score or write."""
    what, *words = sys.argv[1:]
    if what == "table":
        table("--write" in words)
        return
    if what == "fit":
        searched, held = load_episodes()
        fit([*searched, *held])
        return
    if what == "study":
        study(*load_episodes())
        return
    for path in map(Path, words):
        log = gait.open_log(path)
        print(path.parent.name, {name: round(float(value), 3) for name, value in score(log).items()})


if __name__ == "__main__":
    main()
