"""The structs, constants and functions that Python declares are those of the headers and of the library that runs."""

from __future__ import annotations

import ctypes
import re
import subprocess
from ctypes import Structure, c_double, c_int, c_size_t, c_uint32, c_void_p
from itertools import pairwise
from pathlib import Path
from typing import Any

import core_calls
import numpy as np
import pytest

from gait import GaitError, Robot, binding, external
from gait.engine import Engine
from gait.health import FIRST_LEG, Health
from gait.nets.features import FOOT_ACCEL, FORCE, PER_LEG, POSITION, SHARED, VELOCITY
from gait.nets.pack import LegNetwork, Network

CORE = Path(__file__).parents[2] / "core"
STRUCTS: dict[str, type[Structure]] = {
    "gait_robot": binding.CRobot,
    "gait_noise": binding.CNoise,
    "gait_settings": binding.CSettings,
    "gait_contact_settings": binding.CContactSettings,
    "gait_config": binding.CConfig,
    "gait_state": binding.CState,
    "gait_sample": binding.CSample,
    "gait_external": binding.CExternal,
    "gait_filter": binding.CFilter,
    "gait_network": Network,
    "gait_leg_network": LegNetwork,
    "gait_measurement": core_calls.CMeasurement,
    "gait_sensor": core_calls.CSensor,
    "gait_joint_state": core_calls.CJointState,
    "gait_torque_state": core_calls.CTorqueState,
    "gait_input": core_calls.CInput,
    "gait_monitor": core_calls.CMonitor,
    "gait_contact_state": core_calls.CContactState,
    "gait_leg_state": core_calls.CLegState,
    "gait_feet_state": core_calls.CFeetState,
    "gait_t": core_calls.CContext,
}
EXTERNALS = {
    "POSE": "pose", "POSITION": "position", "VELOCITY_W": "velocity_w", "VELOCITY_B": "velocity_b",
    "HEADING": "heading", "HEIGHT": "height", "UP": "gravity", "ORIENTATION": "orientation",
}  # fmt: skip
CONSTANTS = {
    "GAIT_MAX_LEGS": binding.MAX_LEGS,
    "GAIT_MAX_JOINTS": binding.MAX_JOINTS,
    "GAIT_STATE_DOUBLES": binding.STATE_DOUBLES,
    "GAIT_VELOCITY": binding.VELOCITY,
    "GAIT_LEGS": binding.LEGS,
    "GAIT_CONTACTS": binding.CONTACTS,
    "GAIT_EXTERNAL": binding.EXTERNAL,
    "GAIT_FROM_TORQUE": binding.CONTACT_SOURCES["tau"],
    "GAIT_FROM_FORCE": binding.CONTACT_SOURCES["foot_force"],
    "GAIT_FROM_FLAGS": binding.CONTACT_SOURCES["contact"],
    **{f"GAIT_{name}": external.KINDS[kind].number for name, kind in EXTERNALS.items()},
    "SHARED_FEATURES": SHARED,
    "LEG_FEATURES": PER_LEG,
    "FOOT_POSITION": POSITION,
    "LEG_VELOCITY": VELOCITY,
    "GROUND_FORCE": FORCE,
    "FOOT_ACCEL": FOOT_ACCEL,
    "RATES": core_calls.RATES,
    "GAIT_FIRST_LEG": FIRST_LEG,
    **{f"GAIT_{flag.name}": flag.value for flag in Health},
}
KINDS = {"int": c_int, "double": c_double, "size_t": c_size_t, "uint32_t": c_uint32}


def fields_of(struct: type[Structure]) -> list[str]:
    return [field[0] for field in struct._fields_]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """What a C program says of sizes, offsets and constants."""
    lines = [f'printf("{name} %zu\\n", (size_t)({name}));' for name in CONSTANTS]
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in fields_of(struct):
            size = f"sizeof((({name} *)0)->{field})"
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
            lines.append(f'printf("{name}.{field}.size %zu\\n", {size});')
    folder = tmp_path_factory.mktemp("abi")
    text = '#include <stdio.h>\n#include "core.h"\nint main(void)\n{\n' + "\n".join(lines) + "\nreturn 0;\n}\n"
    (folder / "abi.c").write_text(text)
    command = ["cc", "-std=c99", "-Wall", "-Werror", f"-I{CORE}", str(folder / "abi.c"), "-o", str(folder / "abi")]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(folder / "abi")], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split() for line in printed.splitlines())}


@pytest.mark.parametrize("name", STRUCTS)
def test_a_struct_has_the_size_and_offsets_of_c(told: dict[str, int], name: str) -> None:
    struct = STRUCTS[name]
    for field in fields_of(struct):
        ours = getattr(struct, field)
        assert (ours.offset, ours.size) == (told[f"{name}.{field}"], told[f"{name}.{field}.size"]), field
    assert ctypes.sizeof(struct) == told[name]


def test_constants_are_those_of_c(told: dict[str, int]) -> None:
    assert {name: told[name] for name in CONSTANTS} == {name: int(value) for name, value in CONSTANTS.items()}


def headers() -> str:
    """The headers without comments, their struct bodies and white space."""
    text = "".join((CORE / name).read_text() for name in ("gait.h", "network.h", "lie.h", "iekf.h", "core.h"))
    text = re.sub(r"/\*.*?\*/|#.*?$", " ", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\s+", " ", re.sub(r"\{[^{}]*\}", " ", text))


def kind_of(declaration: str) -> Any:
    if declaration.strip() == "void":
        return None
    if "*" in declaration or "[" in declaration:
        return c_void_p
    word = declaration.replace("const ", "").split()[0]
    return STRUCTS.get(word, KINDS.get(word))


def prototype(name: str, text: str) -> tuple[Any, tuple[Any, ...]]:
    """Result and arguments of a function, as ctypes declares them."""
    found = re.search(rf"([\w ]+?[ *]+){name}\(((?:[^()]|\([^()]*\))*)\);", text)
    assert found, name
    arguments = [] if found[2].strip() == "void" else found[2].split(",")
    return kind_of(found[1].replace("extern", "")), tuple(kind_of(argument) for argument in arguments)


@pytest.mark.parametrize("table", [binding._SIGNATURES, core_calls.SIGNATURES], ids=["binding", "core_calls"])
def test_functions_are_declared_as_in_the_headers(table: dict[str, tuple[Any, tuple[Any, ...]]]) -> None:
    text = headers()
    for name, ours in table.items():
        assert ours == prototype(name, text), name


def test_the_library_that_runs_is_made_of_these_headers() -> None:
    """A context of a method without a network is one struct up to the rows of its covariance, in whole cache lines."""
    engine, P = Engine(Robot.load("go1")), core_calls.CContext.filter.offset + binding.CFilter.P.offset
    assert engine.bytes == -(-(P + 8 * 15 * 16) // 64) * 64
    assert engine.state_doubles == binding.STATE_DOUBLES and engine.cov_size == 15
    assert engine.row_doubles == 1 + 6 + 4 * 12 + 3 * 4


def test_parts_of_a_state_follow_each_other() -> None:
    parts = list(binding.STATE.values())
    assert parts[0].start == 0 and parts[-1].stop == binding.STATE_DOUBLES
    assert all(a.stop == b.start for a, b in pairwise(parts))


def test_numbers_reach_the_front_of_an_array_of_the_core() -> None:
    robot = binding.CRobot()
    binding.fill(robot.corners, np.arange(24.0).reshape(2, 4, 3))
    binding.fill(robot.kp, np.arange(6.0))
    assert robot.corners[1][3][2] == 23.0 and robot.corners[2][0][0] == 0.0
    assert list(robot.kp[:7]) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0]


def test_arrays_of_the_wrong_length_never_reach_the_core() -> None:
    with pytest.raises(GaitError, match="the core takes 4 numbers here, got 3"):
        binding.doubles(np.zeros(3), 4)
    taken = binding.doubles(np.arange(6.0)[::2])
    assert taken.flags.c_contiguous and list(taken) == [0.0, 2.0, 4.0]
