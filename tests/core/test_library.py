"""What gait.h promises of the core: no allocation, no globals, no dependency but libm, and clean under sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "core").glob("*.c"))
FOR_PYTHON = sorted((ROOT / "core" / "python").glob("*.c"))
LIBC = {"memcpy", "memset", "memmove", "exp", "log", "sin", "cos", "tan", "atan2", "sqrt", "fabs", "fmin", "fmax"}
LIBC |= {"tanh", "expf", "tanhf", "logf", "sqrtf", "hypot", "sincos", "sincosf"}


@pytest.fixture(scope="module")
def symbols(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every symbol of the core's objects by name, with the letter that `nm` gives it."""
    folder = tmp_path_factory.mktemp("objects")
    for source in SOURCES:
        command = ["cc", "-std=c99", "-O1", "-pedantic", "-Wall", "-Wextra", "-Werror", "-c", str(source)]
        subprocess.run([*command, "-o", str(folder / f"{source.stem}.o")], check=True)
    objects = sorted(map(str, folder.glob("*.o")))
    listed = subprocess.run(["nm", *objects], check=True, capture_output=True, text=True).stdout
    rows = [line.split()[-2:] for line in listed.splitlines() if line and not line.endswith(":")]
    found: dict[str, str] = {}
    for letter, name in rows:
        if found.get(name, "U") == "U":
            found[name] = letter
    return found


def test_it_calls_nothing_but_mathematics(symbols: dict[str, str]) -> None:
    called = {name for name, letter in symbols.items() if letter == "U" and not name.startswith("_")}
    assert called <= LIBC, called - LIBC
    assert not called & {"malloc", "calloc", "realloc", "free"}


def test_it_has_no_variable_outside_of_a_context(symbols: dict[str, str]) -> None:
    written = {name for name, letter in symbols.items() if letter in "BbDdCGgSs"}
    assert not written
    assert set(symbols.values()) <= set("TtRrUV")


FUZZ = """
import sys
from pathlib import Path
import numpy as np
from gait import Estimator, Log, binding
binding.core_path = lambda: Path(sys.argv[1])
assert binding.core()._name == sys.argv[1]
from gait.samples import SAMPLE
log = Log.load(SAMPLE).slice(0.0, 1.0)
rng = np.random.default_rng(0)
rubbish = (np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 1e-300, 42.0)
for method in ("gait-legs", "gait", "gait-flat", "nmn", "iekf", "iekf-sr"):
    estimator = Estimator.load("go1", method, attention=True)
    estimator.run(log)
    estimator.start_as(log, "truth")
    t = 0.0
    for k, row in enumerate(log.rows()):
        fields = {name: np.array(getattr(row, name)) for name in ("gyro", "accel", "q", "dq", "q_des", "tau")}
        for values in fields.values():
            if rng.random() < 0.1:
                values[rng.integers(len(values))] = rng.choice(rubbish)
        t += rng.choice([0.002, 0.002, 0.002, 0.0, -0.001, 0.0053, 0.3, -5.0, 1e6])
        state = estimator.update(row._replace(t=t, **fields), leg_ok=rng.random(4) > 0.05 if k % 3 == 0 else None)
        if k % 10 == 0:
            estimator.predict(t + rng.choice([-1.0, 0.001, 0.5]))
            estimator.update_joints(t, row.q, row.dq, row.q_des, row.tau)
            estimator.update_imu(t + 0.001, row.gyro, row.accel)
        assert np.isfinite(state.cov).all()
print("clean")
"""


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Undefined behaviour and addresses out of bounds, on a walk and on rubbish, for every method."""
    library = tmp_path / "core.so"
    flags = ("-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-shared", "-fPIC")
    built = subprocess.run(
        ["cc", *flags, "-ffp-contract=off", *map(str, [*SOURCES, *FOR_PYTHON]), "-o", str(library), "-lm"],
        capture_output=True,
    )
    runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if built.returncode or not Path(runtime).is_absolute():
        pytest.skip("this compiler has no address sanitizer: install libasan to run it")
    environment = {**os.environ, "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, str(library)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "clean", done.stderr[-3000:]
