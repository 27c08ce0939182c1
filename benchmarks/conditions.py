"""What it costs an estimator when samples come at another rate, get lost, or a leg falls silent: docs/estimator.md.

    python benchmarks/conditions.py            # the weights that come with gait
    python benchmarks/conditions.py --write

Velocity error over the held-out trots of benchmarks/held.py, which no training has seen, started from the truth.
Another rate is made by interpolation, so 1000 Hz holds no more than 500 Hz does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from held import make_walk
from sections import DOCS, markdown, write_section

from gait import Estimator, Log
from gait.rows import Row, rows_to_json

METHODS = ("gait-legs", "gait", "gait-flat", "nmn", "iekf")
LEGS = 4


def squares(estimator: Estimator, log: Log) -> np.ndarray:
    """Squared length of the velocity error (N,)."""
    return np.asarray(np.square(estimator.run(log).vel_b - log.vel_b).sum(1))


def streamed(estimator: Estimator, log: Log, leg: int) -> np.ndarray:
    """The same with the encoders of one leg gone from the first sample on."""
    estimator.start_as(log, "truth")
    ok = np.arange(LEGS) != leg
    return np.array([
        np.square(estimator.update(*row, leg_ok=ok).vel_b - truth).sum()
        for row, truth in zip(log.rows(), log.vel_b, strict=True)
    ])  # fmt: skip


def jittered(log: Log, seconds: float) -> Log:
    """Stamps off by up to so much, each by its own."""
    return log.replace(t=log.t + np.random.default_rng(0).uniform(-seconds, seconds, len(log)))


def thinned(log: Log, share: float) -> Log:
    """A share of the samples lost at random."""
    keep = np.random.default_rng(0).random(len(log)) >= share
    return log.replace(**{name: array[keep] for name, array in log.arrays().items()})


def conditions() -> dict[str, Callable[[Estimator, Log], np.ndarray]]:
    """Each with the squared errors it leads to."""

    def at(rate: float) -> Callable[[Estimator, Log], np.ndarray]:
        return lambda estimator, log: squares(estimator, log.resample(rate))

    return {
        "500 Hz, all well": squares,
        "1000 Hz": at(1000.0),
        "400 Hz": at(400.0),
        "200 Hz": at(200.0),
        "stamps off by up to 0.3 ms": lambda estimator, log: squares(estimator, jittered(log, 3e-4)),
        "5 % of the samples lost": lambda estimator, log: squares(estimator, thinned(log, 0.05)),
        "one leg silent": lambda estimator, log: np.concatenate([streamed(estimator, log, leg) for leg in range(LEGS)]),
        "no joint targets": lambda estimator, log: squares(estimator, log.replace(q_des=None)),
    }


def measure(logs: Iterable[Log], methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Velocity error in m/s, by condition and method; what a method cannot do is left out."""
    logs = list(logs)
    result: dict[str, dict[str, float]] = {name: {} for name in conditions()}
    for method in methods:
        estimator = Estimator.load("go1", method)
        for name, errors in conditions().items():
            if name == "no joint targets" and method in ("gait-flat", "nmn"):
                continue
            result[name][method] = float(np.sqrt(np.concatenate([errors(estimator, log) for log in logs]).mean()))
    return result


def table(result: dict[str, dict[str, float]], methods: Sequence[str]) -> str:
    """Errors and, in brackets, their growth."""
    usual = next(iter(result.values()))

    def cell(name: str, method: str) -> str:
        if method not in result[name]:
            return "-"
        growth = result[name][method] / usual[method] - 1.0
        return f"{result[name][method]:.4f}" + (f" ({100 * growth:+.0f} %)" if result[name] is not usual else "")

    return markdown(
        ["velocity error, m/s", *(f"`{method}`" for method in methods)],
        [[name, *(cell(name, method) for method in methods)] for name in result],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="METHOD")
    parser.add_argument("--write", action="store_true", help="put the table into docs/estimator.md")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = measure(make_walk("trot-flat").logs, args.methods)
    if args.json:
        rows = [Row(f"{m}.{name}", value, "m/s") for name, values in result.items() for m, value in values.items()]
        print(rows_to_json(rows))
        return
    print(table(result, args.methods))
    if args.write:
        write_section("conditions", table(result, args.methods), DOCS / "estimator.md")


if __name__ == "__main__":
    main()
