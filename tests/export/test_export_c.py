"""`gait export --format c`: the C file gives the bits of `Estimator`, warns of nothing and survives anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
from c_export import (
    STRICT,
    Exported,
    differences,
    expected_of,
    rows_of,
    run_tool,
    source_of,
    start_of,
    told_of,
)
from export_samples import trained_model
from golden.cases import CASES, inputs_of
from golden.inputs import Inputs
from golden.recorded import METHODS

from gait import Estimator, GaitError, Robot, methods
from gait.cli import main
from gait.engine import engines_of
from gait.export.c import c_files, core_sources
from gait.health import Health
from gait.nets import Model

pytestmark = needs.gcc
ROOT = Path(__file__).parents[2]
WITHOUT_TARGETS = {"gait": "gait-no-targets-0", "gait-legs": "gait-legs-kinematic-0"}
RUBBISH = (np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 1e-300, 42.0)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compiles each method once."""
    return cache(lambda method: Exported(method, tmp_path_factory.mktemp("c")))


def same_bits(exported: Exported, method: str | Model, inputs: Inputs, robot: str | Robot | None = None) -> None:
    load = inputs.load | ({} if robot is None else {"robot": robot})
    expected = expected_of(Estimator.load(method=method, **load), inputs)
    found = differences(exported.run(rows_of(inputs), start_of(inputs), source_of(inputs)), expected)
    assert not any(found.values()), found


def takes(method: str, inputs: Inputs) -> bool:
    """Whether the method runs on these inputs with its usual weights; without targets there is another file."""
    engine, _, _ = engines_of(method, Robot.load("go1"), {})
    given = inputs.values
    if method in ("iekf", "iekf-sr"):
        return any(name in given for name in ("tau", "q_des", "contact", "foot_force"))
    return inputs.load["robot"] == "go1" and (not engine.reads or any(name in given for name in engine.reads))


@pytest.mark.parametrize("method", METHODS)
def test_c_gives_the_bits_of_python_on_every_golden_case(exported: Any, method: str) -> None:
    """The whole sample log, other rates, lost samples, nan, dead legs, starts from gravity, and more."""
    cases = {name: inputs_of(name) for name in CASES if name != "other_robot"}
    run = [name for name, inputs in cases.items() if takes(method, inputs)]
    assert {"clean", "rate_400", "rate_200", "lost_samples", "nan_gyro", "dead_leg", "start_gravity"} <= set(run)
    for name in run:
        same_bits(exported(method), method, cases[name])


@pytest.mark.parametrize("method", WITHOUT_TARGETS)
def test_weights_without_targets_are_a_file_of_their_own(exported: Any, method: str) -> None:
    """`Estimator` changes to them where there are no targets; in C that is another export."""
    for case in ("bare", "no_tau_no_q_des"):
        same_bits(exported(WITHOUT_TARGETS[method]), method, inputs_of(case))


@pytest.mark.parametrize("method", ["gait-legs", "iekf-sr"])
def test_c_gives_the_bits_of_python_on_another_robot(method: str, tmp_path: Path) -> None:
    same_bits(Exported(method, tmp_path / "c", Robot.load("go2")), method, inputs_of("other_robot"))


def test_c_minds_how_the_imu_is_mounted(tmp_path: Path) -> None:
    quat = np.array([0.8, 0.2, -0.4, 0.4])
    robot = replace(
        Robot.load("go1"), imu_quat_wxyz=quat / np.linalg.norm(quat), imu_position=np.array([0.3, -0.2, 0.1])
    )
    exported = Exported("iekf", tmp_path / "c", robot)
    same_bits(exported, "iekf", inputs_of("start_gravity"), robot)
    same_bits(exported, "iekf", inputs_of("nan_q"), robot)


@pytest.mark.parametrize("method", ["gait-legs", "gait", "iekf"])
def test_other_instruction_sets_differ_by_rounding(method: str, tmp_path: Path) -> None:
    exported = Exported(method, tmp_path / "c", flags=STRICT)
    for case in ("clean", "rate_400", "dead_leg"):
        inputs = inputs_of(case)
        expected = expected_of(Estimator.load(method=method, **inputs.load), inputs)
        found = differences(exported.run(rows_of(inputs), start_of(inputs)), expected)
        assert max(found.values()) < 1e-6 and found["health"] == 0.0, (case, found)


@pytest.mark.parametrize("method", METHODS)
def test_memory_is_known_at_compile_time(exported: Any, method: str) -> None:
    library = exported(method)
    needed = library.code.gait_bytes(library.config)
    assert needed <= library.bytes <= needed + 1024
    assert library.output_bytes == 8 * library.width


def test_details_lie_behind_the_state(exported: Any) -> None:
    inputs = inputs_of("dead_leg")
    log = inputs_of("clean").log()
    assert log is not None
    _, details = Estimator.load(method="gait-legs", attention=True).run_with_details(log)
    states = exported("gait-legs").run(rows_of(inputs_of("clean")), start_of(inputs))
    assert details.attention is not None and details.legs is not None
    np.testing.assert_array_equal(states[:, -40:-24].reshape(-1, 4, 4), details.attention)
    np.testing.assert_array_equal(states[:, -24:].reshape(-1, 4, 6)[..., :3], details.legs[0])
    _, details = Estimator.load(method="iekf").run_with_details(log)
    states = exported("iekf").run(rows_of(inputs_of("clean")), start_of(inputs))
    np.testing.assert_array_equal(states[:, -4:] > 0.5, details.contact)


def test_contexts_share_nothing_but_the_configuration(exported: Any) -> None:
    library, rows = exported("gait"), rows_of(inputs_of("clean"))[:1000]
    alone = [library.run(part, None) for part in (rows[:300], rows[700:])]
    memory, out = np.zeros((2, library.bytes // 8 + 1)), np.empty(library.width + 15 * 15)
    contexts = [library.code.gait_init(one.ctypes.data, library.config) for one in memory]
    for k in range(300):
        for context, first, expected in zip(contexts, (0, 700), alone, strict=True):
            library.code.gait_step_row(context, rows[first + k].ctypes.data, out.ctypes.data)
            np.testing.assert_array_equal(out[: library.width], expected[k])


@pytest.mark.parametrize("method", ["gait-legs", "gait", "iekf-sr"])
def test_nothing_a_sensor_says_makes_nan(exported: Any, method: str) -> None:
    rows, rng, t = rows_of(inputs_of("clean"))[:3000], np.random.default_rng(0), 0.0
    for row in rows:
        row[rng.random(len(row)) < 0.01] = rng.choice(RUBBISH)
        t += rng.choice([0.002, 0.002, 0.002, 0.0, -0.001, 0.0053, 1e-9, 0.3, -5.0, 1e6])
        row[0] = rng.choice([t, t, t, t, np.nan])
    told = told_of(exported(method).run(rows, None))
    assert all(np.isfinite(values).all() for values in told.values())
    assert np.linalg.norm(told["vel_b"], axis=1).max() < 40.0
    assert (told["health"] & Health.BAD_IMU).any() and (told["health"] & Health.STALE_LEG).any()


def test_fast_math_is_refused(exported: Any, tmp_path: Path) -> None:
    (tmp_path / "iekf.c").write_text((files := c_files("iekf", "iekf")).source)
    (tmp_path / "iekf.h").write_text(files.header)
    words = ["gcc", "-std=c99", "-ffast-math", "-fsyntax-only", "iekf.c"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode and "leave it out" in done.stderr


@needs.cpp
@pytest.mark.parametrize("standard", ["c++11", "c++20"])
@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_the_header_is_one_of_cpp_too(method: str, standard: str, tmp_path: Path) -> None:
    (tmp_path / "robot.h").write_text(c_files(method, "robot").header)
    (tmp_path / "main.cpp").write_text('#include "robot.h"\nint main() { return gait_robot_config.robot.legs; }\n')
    flags = ("-Wall", "-Wextra", "-pedantic", "-Werror")
    run_tool("g++", f"-std={standard}", *flags, "-c", "main.cpp", "-o", "main.o", cwd=tmp_path)
    assert "gait_init" not in run_tool("nm", "main.o", cwd=tmp_path)


@needs.cmake
def test_the_example_in_cpp_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/cpp", tmp_path / "cpp")
    assert main(["export", "gait-legs", "--format", "c", "--out", str(tmp_path / "cpp/gait_go1")]) == 0
    run_tool("cmake", "-B", "build", cwd=tmp_path / "cpp")
    run_tool("cmake", "--build", "build", cwd=tmp_path / "cpp")
    assert "vel_b" in run_tool("./build/estimate", cwd=tmp_path / "cpp")


@needs.cmake
def test_the_core_is_a_library_of_cmake(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(mine LANGUAGES C)\n"
        f"add_subdirectory({core_sources()} core)\n"
        "add_executable(mine mine.c)\ntarget_link_libraries(mine PRIVATE gait_core)\n"
    )
    (tmp_path / "mine.c").write_text(
        '#include "gait.h"\nint main(void) { gait_config c = {0}; return gait_bytes(&c) > GAIT_CONTEXT_BYTES; }\n'
    )
    run_tool("cmake", "-B", "build", cwd=tmp_path)
    run_tool("cmake", "--build", "build", cwd=tmp_path)
    run_tool("./build/mine", cwd=tmp_path)


def test_the_examples_of_the_documentation_run(tmp_path: Path) -> None:
    text = (ROOT / "docs/export.md").read_text()
    assert main(["export", "gait", "--format", "c", "--out", str(tmp_path / "gait_go1")]) == 0
    (tmp_path / "main.c").write_text(text.split("```c\n")[1].split("```")[0])
    command = next(line for line in text.splitlines() if line.startswith("gcc ") and "main.c" in line)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "vel_b" in done.stdout, done.stderr
    trained_model().save(tmp_path / "m.safetensors")
    words = ["export", str(tmp_path / "m.safetensors"), "--format", "onnx", "--out", str(tmp_path / "gait_go1.onnx")]
    assert main(words) == 0
    code = text.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and len(done.stdout.split()) >= 6, done.stderr


def test_a_network_of_one_robot_is_not_exported_for_another() -> None:
    with pytest.raises(GaitError, match="gait runs only on go1, .*: use gait-legs"):
        c_files(trained_model(), "gait_go2", Robot.load("go2"))
    with pytest.raises(GaitError, match="method gait has no weights for go2"):
        c_files("gait", "gait_go2", Robot.load("go2"))


def test_methods_in_python_are_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.METHODS, "mine", methods.Method("nothing", python="mine:Mine"))
    with pytest.raises(GaitError, match="method mine is written in Python"):
        c_files("mine", "mine")


def test_a_method_without_a_network_is_no_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "iekf", "--format", "onnx"]) == 1
    assert capsys.readouterr().err.strip().endswith("method iekf has no network: ask for --format c")


def test_what_cannot_be_text_in_c_is_replaced() -> None:
    robot = replace(Robot.load("go1"), name='go1 */ "x')
    files = c_files("iekf", "go1", robot)
    assert "*/" not in files.header.split("\n")[0].removeprefix("/*")
