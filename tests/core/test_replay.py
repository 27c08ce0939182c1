"""Exported files replay samples outside of Python: under sanitizers, on 64-bit ARM and on a Cortex-M7 in QEMU."""

from __future__ import annotations

from pathlib import Path

import needs
import numpy as np
import pytest
from c_export import differences, expected_of, run_tool, write_rows
from golden.cases import inputs_of
from golden.inputs import Inputs
from golden.recorded import METHODS

from gait import Estimator
from gait.export import save_c

HERE = Path(__file__).parent
FLAGS = ("-std=c99", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-Werror")
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
CORTEX_M7 = ("-O2", "-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard", "-ffunction-sections", "-fdata-sections")
FAULTS = (
    "start_gravity", "stamps_broken", "nan_gyro", "nan_q", "nan_tau_and_q_des", "dead_leg_returns", "diverged_speed",
    "rate_200", "leg_flags",
)  # fmt: skip
SAMPLES = 200


def found_in(folder: Path, method: str, inputs: Inputs, count: int | None = None) -> dict[str, float]:
    """How far states.bin is from what Python gives for the first samples."""
    expected = expected_of(Estimator.load(method=method, **inputs.load), inputs)
    rows = len(inputs) if count is None else count
    states = np.fromfile(folder / "states.bin").reshape(rows, -1)
    return differences(states, {name: values[:rows] for name, values in expected.items()})


@needs.gcc
@needs.sanitizers
@pytest.mark.parametrize("method", METHODS)
def test_sanitizers_find_nothing(method: str, tmp_path: Path) -> None:
    """Memory errors and undefined behaviour, in samples good and bad; and the health is that of Python."""
    save_c(method, tmp_path / "robot")
    run_tool("gcc", *FLAGS, *SANITIZED, "-I.", "robot.c", HERE / "replay.c", "-lm", "-o", "replay", cwd=tmp_path)
    for case in FAULTS:
        inputs = inputs_of(case)
        write_rows(tmp_path / "rows.bin", inputs)
        run_tool("./replay", cwd=tmp_path)
        found = found_in(tmp_path, method, inputs)
        assert found["health"] == 0.0 and np.isfinite(list(found.values())).all(), (case, found)


@pytest.mark.slow
@needs.arm64
@pytest.mark.parametrize("method", ["gait-legs", "gait", "iekf"])
def test_64_bit_arm_gives_what_python_gives(method: str, tmp_path: Path) -> None:
    inputs = inputs_of("clean")
    save_c(method, tmp_path / "robot")
    write_rows(tmp_path / "rows.bin", inputs, SAMPLES)
    compiler = ("aarch64-linux-gnu-gcc", *FLAGS, "-O3", "-static", "-I.")
    run_tool(*compiler, "robot.c", HERE / "replay.c", "-lm", "-o", "replay", cwd=tmp_path)
    run_tool("qemu-aarch64", "./replay", cwd=tmp_path)
    found = found_in(tmp_path, method, inputs, SAMPLES)
    assert max(found.values()) < 1e-6, found


@pytest.mark.slow
@needs.cortex_m
@pytest.mark.parametrize(("method", "stack"), [("gait-legs", 4608), ("gait", 4608), ("iekf", 15360)])
def test_a_cortex_m7_gives_what_python_gives(method: str, stack: int, tmp_path: Path) -> None:
    """Without an operating system; the stack is no deeper than docs/export.md says."""
    inputs = inputs_of("clean")
    save_c(method, tmp_path / "robot")
    write_rows(tmp_path / "rows.bin", inputs, SAMPLES)
    sources = ("robot.c", HERE / "replay.c", HERE / "cortex_m7/start.c")
    link = ("-nostartfiles", "--specs=rdimon.specs", "-Wl,--gc-sections", "-T", HERE / "cortex_m7/mps2.ld", "-lm")
    compiler = ("arm-none-eabi-gcc", *FLAGS, *CORTEX_M7, "-DREPLAY_STACK", "-I.")
    run_tool(*compiler, *sources, *link, "-o", "replay.elf", cwd=tmp_path)
    machine = ("qemu-system-arm", "-machine", "mps2-an500", "-nographic", "-semihosting")
    printed = run_tool("timeout", "300", *machine, "-kernel", "replay.elf", cwd=tmp_path).split()
    found = found_in(tmp_path, method, inputs, SAMPLES)
    assert max(found.values()) < 1e-6, found
    assert 1024 < int(printed[printed.index("stack") + 1]) <= stack
