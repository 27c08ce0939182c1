"""Exported C code, compiled and called from Python, for tests."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from golden.inputs import SENSORS, Inputs

import gait
from gait import binding
from gait.arrays import Array
from gait.export import save_c
from gait.nets import Model
from gait.robot import Robot

STRICT = ("-std=c99", "-O3", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-pedantic", "-Werror")
"""Flags of the core that Python runs, and no warning."""
NATIVE = (*STRICT, "-march=native")
FIELDS = ("quat_wb_wxyz", "vel_w", "pos_w", "vel_b", "gyro_bias", "accel_bias", "vel_cov", "pose_cov", "health")
_SHIM = """
#include "robot.h"
extern const size_t sizes[];
const size_t sizes[] = {GAIT_BYTES, sizeof(gait_output), sizeof(gait_storage), GAIT_MAX_LEGS, GAIT_MAX_JOINTS};
"""


def run_tool(*words: str | Path, cwd: Path) -> str:
    """What a command prints; it must not fail."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words[0]}: {done.returncode}\n{done.stderr}\n{done.stdout}"
    return done.stdout


class Exported:
    """An exported method as a shared library; the build fails on any warning."""

    def __init__(
        self, method: str | Model, folder: Path, robot: Robot | None = None, flags: tuple[str, ...] = NATIVE
    ) -> None:
        folder.mkdir(exist_ok=True)
        save_c(method, folder / "robot", robot)
        (folder / "shim.c").write_text(_SHIM)
        run_tool("gcc", *flags, "-fPIC", "-shared", "-o", "robot.so", "robot.c", "shim.c", "-lm", cwd=folder)
        self.code = binding._declare(ctypes.CDLL(str(folder / "robot.so")))
        self.config = ctypes.addressof(ctypes.c_char.in_dll(self.code, "gait_robot_config"))
        self.bytes, self.output_bytes, *_ = (ctypes.c_size_t * 5).in_dll(self.code, "sizes")
        self.width = self.code.gait_state_doubles(self.config)

    def run(self, rows: Array, start: list[Array] | None, source: str = "tau") -> Array:
        """States (N, width) of samples (N, row) by `gait_run`, from a known state or from gravity."""
        memory, states = np.zeros(self.bytes), np.empty((len(rows), self.width))
        g = self.code.gait_init(memory.ctypes.data, self.config)
        self.code.gait_set_contact_source(g, binding.CONTACT_SOURCES[source])
        if start is not None:
            self.code.gait_reset(g, *(array.ctypes.data for array in start), None)
        self.code.gait_run(g, rows.ctypes.data, len(rows), states.ctypes.data)
        return states


def rows_of(inputs: Inputs) -> Array:
    """Samples as `gait_run` takes them (N, row)."""
    values, n = inputs.values, len(inputs)
    legs = values["q"].shape[1] // 3
    widths = {"gyro": 3, "accel": 3, "foot_force": legs, "contact": legs}
    columns = [values["t"][:, None]]
    columns += [values.get(name, np.full((n, widths.get(name, 3 * legs)), np.nan)) for name in SENSORS]
    columns.append(np.ones((n, legs)) if inputs.leg_ok is None else inputs.leg_ok)
    return np.ascontiguousarray(np.concatenate(columns, axis=1), dtype=np.float64)


def start_of(inputs: Inputs) -> list[Array] | None:
    """What `gait_reset` takes: the ground truth of the first sample; None for a start from gravity."""
    if inputs.start != "truth":
        return None
    quat, *rest = (inputs.values[name][0].astype(float) for name in ("quat_wb_wxyz", "vel_w", "pos_w", "gyro"))
    return [quat / float(np.linalg.norm(quat)), *rest]


def source_of(inputs: Inputs) -> str:
    """The field that `Estimator` takes contacts from."""
    there = inputs.values
    return inputs.load.get("contact_from") or ("tau" if "tau" in there or "q_des" in there else "contact")


def expected_of(estimator: gait.Estimator, inputs: Inputs) -> dict[str, Array]:
    """What Python gives: by `run` for what is a Log, by `update` for what is not."""
    log = inputs.log()
    if log is not None:
        trajectory = estimator.run(log, inputs.start)
        return {name: np.asarray(getattr(trajectory, name)) for name in FIELDS}
    if inputs.start == "truth":
        estimator.reset(**{name: inputs.values[name][0] for name in ("quat_wb_wxyz", "vel_w", "pos_w", "gyro")})
    else:
        estimator.reset()
    columns = [inputs.values.get(name) for name in SENSORS]
    states = []
    for k, t in enumerate(inputs.values["t"]):
        leg_ok = None if inputs.leg_ok is None else inputs.leg_ok[k]
        sample = [None if column is None else column[k] for column in columns]
        states.append(estimator.update(t, *sample, leg_ok=leg_ok))
    told: dict[str, Any] = {name: np.array([getattr(state, name) for state in states]) for name in FIELDS[:-1]}
    return told | {"health": np.array([state.health.bits for state in states], dtype=np.uint32)}


def told_of(states: Array) -> dict[str, Array]:
    """The fields of states (N, width)."""
    told = {name: states[:, binding.STATE[name]] for name in FIELDS}
    return told | {"health": told["health"][:, 0].astype(np.uint32)}


def differences(states: Array, expected: dict[str, Array]) -> dict[str, float]:
    """Largest difference of each field; 0 where all bits are the same."""
    found = {}
    for name, values in told_of(states).items():
        other = expected[name].reshape(values.shape)
        same = np.array_equal(values, other)
        found[name] = 0.0 if same else max(float(np.abs(values - other.astype(float)).max()), 5e-324)
    return found


def write_rows(path: Path, inputs: Inputs, count: int | None = None) -> None:
    """Samples as tests/core/replay.c reads them."""
    rows, start = rows_of(inputs)[:count], start_of(inputs)
    source = float(binding.CONTACT_SOURCES[source_of(inputs)])
    before = np.concatenate([[len(rows), source, start is not None], *(start or [np.zeros(13)])])
    np.concatenate([before, rows.ravel()]).tofile(path)
