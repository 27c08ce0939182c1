"""How far a filter should believe a network: the factor on its standard deviations, `Options.inflation`.

    python benchmarks/tune_inflation.py            # print the table
    python benchmarks/tune_inflation.py --write    # and put it into docs/filters.md

A network's errors last for many samples, and a filter that takes each for a new one becomes far too sure of itself: its
orientation and biases suffer, and the velocity with them. One factor for all learned methods, chosen on the episodes
that the baselines are tuned on (benchmarks/tune_baselines.py) by the same error: of the factors within 5 % of the least
error in the half for searching, the one whose NEES is nearest to what is right. The other half shows what it is worth.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
from sections import DOCS, markdown, paragraph, write_section
from tune_baselines import HALVES, WINDOW, Episode, geometric_mean, load_episodes

from gait.estimator import METHODS, Estimator
from gait.metrics import nees, relative_error, velocity_rmse
from gait.parameters import Options

FACTORS = (1.0, 3.0, 10.0, 15.0, 20.0, 30.0, 50.0, 80.0)
LEARNED = tuple(name for name, method in METHODS.items() if method.weights)


def errors_of(method: str, factor: float, episodes: Sequence[Episode]) -> np.ndarray:
    """Velocity RMSE (m/s), position (m) and rotation error (rad) over 5 s, and NEES of each episode (N, 4)."""
    estimator = Estimator.load("go1", method, options=Options(inflation=factor))
    rows = []
    for episode in episodes:
        found = estimator.run(episode.log)
        velocity = velocity_rmse(found, episode.log)
        relative = relative_error(found, episode.log, WINDOW)
        assert found.vel_cov is not None
        honest = nees(velocity.errors_b, found.vel_cov).mean
        rows.append((velocity.rmse, relative.position.rmse, relative.rotation.rmse, honest))
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/filters.md")
    args = parser.parse_args()
    halves = load_episodes()
    lines, total, honest = [], {}, {}
    for factor in FACTORS:
        for half, episodes in zip(HALVES, halves, strict=True):
            by_method = [errors_of(method, factor, episodes) for method in LEARNED]
            total[factor, half] = geometric_mean([x for errors in by_method for x in errors[:, :2].ravel()])
            honest[factor, half] = geometric_mean([x for errors in by_method for x in errors[:, 3]])
            cells = [geometric_mean(errors[:, k]) for errors in by_method for k in range(4)]
            lines.append([f"{factor:g}", half, f"{total[factor, half]:.4f}", *(f"{cell:.3f}" for cell in cells)])
            print(lines[-1], flush=True)
    least = min(total[factor, HALVES[0]] for factor in FACTORS)
    good = [factor for factor in FACTORS if total[factor, HALVES[0]] <= 1.05 * least]
    best = min(good, key=lambda factor: abs(math.log(honest[factor, HALVES[0]] / 3.0)))
    figures = ("m/s", "m", "rad", "NEES")
    heads = ["factor", "half", "error", *(f"`{method}`, {figure}" for method in LEARNED for figure in figures)]
    note = f"""Velocity error, position and rotation error over 5 s and velocity NEES (3 would be right) of each learned
        method, geometric means over episodes; `error` is the geometric mean of all velocity and position errors. Of the
        factors within 5 % of the least error of the search, {best:g} has the most honest NEES. The package uses
        {Options().inflation:g}."""
    text = f"{paragraph(note)}\n\n{markdown(heads, lines)}"
    print(text)
    if args.write:
        write_section("inflation", text, DOCS / "filters.md")


if __name__ == "__main__":
    main()
