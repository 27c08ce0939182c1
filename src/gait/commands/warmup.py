"""`gait warmup`: compile now, so that nothing waits for a compiler later."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gait.commands import Common, Outcome
from gait.report.rows import Row


@dataclass(frozen=True)
class Options(Common):
    """Compile what the estimator needs into the cache of numba, and load each method once.

    The first start after an installation compiles for a minute or more; later ones read the cache. Run this once on the
    robot, as the user that will run the estimator.
    """

    all: bool = False
    """Compile the simulator as well, as far as it is installed."""


def run(options: Options) -> Outcome:
    """Compile, load, and say where it went."""
    from gait._compile import RUNTIME

    if RUNTIME == "numpy":
        return Outcome(
            [Row("runtime", "numpy", "-")], title="Nothing to compile: the estimator runs in numpy.", next="gait demo"
        )
    if sys.stderr.isatty() and not options.json:
        print("compiling; the first time, this takes a minute or more", file=sys.stderr)
    rows = [Row("estimator", _seconds(_estimator), "s")]
    rows += _methods()
    if options.all:
        rows += _simulator()
    rows.append(Row("cache", str(_cache()), "-"))
    return Outcome(rows, title="Compiled, or read from the cache", next="gait demo")


def _seconds(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _estimator() -> None:
    import gait.estimator  # noqa: F401


def _methods() -> Iterator[Row]:
    """Each method whose weights are there: load it, and take one sample of a robot that stands."""
    from gait.estimator import METHODS, Estimator
    from gait.nets.model import model_names
    from gait.parameters import BASELINES

    for name, method in METHODS.items():
        if name not in BASELINES and method.weights not in model_names():
            continue

        def load(name: str = name) -> None:
            estimator = Estimator.load("go1", name)
            q = estimator.robot.q_stand
            estimator.update(0.0, [0.0] * 3, [0.0, 0.0, 9.81], q, 0.0 * q, q)

        yield Row(name, _seconds(load), "s")


def _simulator() -> Iterator[Row]:
    from gait.errors import GaitError

    try:
        from gait.sim.compiled import warm_up

        yield Row("simulator", _seconds(warm_up), "s")
    except (ImportError, GaitError):
        yield Row("simulator", "left out: pip install 'gait-estimator[sim]'", "-")


def _cache() -> Path:
    """The folder under which numba keeps compiled code: beside the package, of the user, or as its settings say."""
    import numba

    import gait
    from gait.runtime import velocity_aided

    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR)
    compiled: Any = velocity_aided.run_rows
    folder, package = Path(compiled.stats.cache_path), Path(gait.__file__).parent
    return package if folder.is_relative_to(package) else folder.parent
