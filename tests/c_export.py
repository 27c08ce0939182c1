"""Exported C code, compiled and called from Python, for tests."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.export import save_c
from gait.nets import Model
from gait.robot import Robot

WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wdouble-promotion", "-Wconversion", "-Werror"]
FIELDS = {"quat": 4, "vel_b": 3, "vel_w": 3, "pos_w": 3, "cov": 9, "gyro_bias": 3, "accel_bias": 3, "velocity": 3,
          "log_std": 3}  # fmt: skip
_SHIM = """
#include "robot.h"
#include <stddef.h>
size_t size_of_gait(void);
size_t size_of_network(void);
void read_gait(const gait_t *g, double *out);
void read_covariance(const gait_t *g, double *out);
size_t size_of_gait(void) { return sizeof(gait_t); }
size_t size_of_network(void) { return sizeof(gait_network_t); }
void read_gait(const gait_t *g, double *out)
{
    for (int i = 0; i < 4; i++) *out++ = g->quat_wb_wxyz[i];
    for (int i = 0; i < 3; i++) *out++ = g->vel_b[i];
    for (int i = 0; i < 3; i++) *out++ = g->vel_w[i];
    for (int i = 0; i < 3; i++) *out++ = g->pos_w[i];
    for (int i = 0; i < 9; i++) *out++ = g->vel_b_cov[i / 3][i % 3];
    for (int i = 0; i < 3; i++) *out++ = g->gyro_bias[i];
    for (int i = 0; i < 3; i++) *out++ = g->accel_bias[i];
    for (int i = 0; i < 3; i++) *out++ = (double)g->velocity[i];
    for (int i = 0; i < 3; i++) *out++ = (double)g->log_std[i];
}
void read_covariance(const gait_t *g, double *out)
{
    for (int i = 0; i < 15; i++)
        for (int j = 0; j < 15; j++) *out++ = g->P[i][j];
}
"""


class Library:
    """A model as a shared library; the build fails on any warning."""

    def __init__(self, model: Model, folder: Path, robot: Robot | None = None) -> None:
        folder.mkdir(exist_ok=True)
        save_c(model, folder / "robot", robot)
        (folder / "shim.c").write_text(_SHIM)
        built = folder / "robot.so"
        command = ["gcc", *WARNINGS, "-O2", "-fPIC", "-shared", "-o", built, "robot.c", "shim.c", "-lm"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.code = ctypes.CDLL(str(built))
        self.code.gait_update.argtypes = [ctypes.c_char_p, ctypes.c_double, *[ctypes.c_void_p] * 5]
        self.code.size_of_gait.restype = self.code.size_of_network.restype = ctypes.c_size_t

    def estimator(self) -> Estimator:
        return Estimator(self.code)

    def network(self, samples: list[tuple[Array, ...]], leg_ok: Array | None = None) -> Array:
        """Velocity and log-std (N, 6) of the network alone."""
        memory = ctypes.create_string_buffer(self.code.size_of_network())
        self.code.gait_network_init(memory)
        out = np.zeros((len(samples), 6), dtype=np.float32)
        for k, (sample, row) in enumerate(zip(samples, out, strict=True)):
            ok = None if leg_ok is None else _address(np.ascontiguousarray(leg_ok[k], dtype=np.uint8))
            self.code.gait_network(memory, *map(_address, sample), ok, _address(row[:3]), _address(row[3:]))
        return out.astype(np.float64)


class Estimator:
    """One `gait_t`."""

    def __init__(self, code: Any) -> None:
        self.code = code
        self.state = ctypes.create_string_buffer(code.size_of_gait())
        code.gait_init(self.state)

    def reset(self, *values: Array | None) -> int:
        return int(self.code.gait_reset(self.state, *map(_address, values)))

    def reset_from_gravity(self, accel: Array) -> int:
        return int(self.code.gait_reset_from_gravity(self.state, _address(accel)))

    def update(self, t: float, *sample: Array | None) -> int:
        return int(self.code.gait_update(self.state, t, *map(_address, sample)))

    def read(self) -> Array:
        """All numbers in the order of `FIELDS`."""
        out = np.zeros(sum(FIELDS.values()))
        self.code.read_gait(self.state, _address(out))
        return out

    def covariance(self) -> Array:
        """Of the filter's own error (15, 15)."""
        out = np.zeros((15, 15))
        self.code.read_covariance(self.state, _address(out))
        return out


def column(rows: Array, name: str) -> Array:
    """A field out of rows that `read` gave."""
    start = sum(size for other, size in FIELDS.items() if list(FIELDS).index(other) < list(FIELDS).index(name))
    return rows[..., start : start + FIELDS[name]]


class _Address(ctypes.c_void_p):
    """A pointer that keeps its array alive."""

    array: Array


def _address(array: Array | None) -> _Address | None:
    if array is None:
        return None
    assert array.flags.c_contiguous and array.dtype in (np.float64, np.float32, np.uint8)
    address = _Address(array.ctypes.data)
    address.array = array
    return address
