"""What tests need that pip does not bring: `@needs.gcc` skips a test where gcc does not work, and says what to install.

`pytest_terminal_summary` in `conftest.py` counts what was skipped for want of what.
"""

import importlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

SHARED = Path(__file__).parents[2] / "shared"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BASE = ("mcap", "rosbags")
EXTRAS = {
    "PIL": "sim", "boto3": "cluster-dev", "cyclonedds": "live", "daqp": "sim", "h5py": "hdf5", "matplotlib": "viz",
    "moto": "cluster-dev", "mujoco": "sim", "onnx": "export", "onnxruntime": "sim", "ray": "cluster", "rerun": "view",
    "s3fs": "cluster", "torch": "train",
}  # fmt: skip
"""The extra that a package comes with; `dev` for any other."""
_REASON = re.compile(r"needs (.+?) \((.+)\)$")


@dataclass(frozen=True)
class Need:
    """Something a machine may lack."""

    name: str
    install: str
    """What to do about it, ready to paste if it is a command."""
    works: Callable[[], bool]


def require(name: str) -> None:
    """Skip the test or fixture that calls this where the machine lacks something in `NEEDS`."""
    if not works(name):
        lacking(name, NEEDS[name].install)


@cache
def works(name: str) -> bool:
    """Whether the machine has something in `NEEDS`, tried out once a process."""
    return NEEDS[name].works()


def lacking(name: str, install: str) -> NoReturn:
    """Skip for want of something, saying what to do about it."""
    # As `pytest.mark.skipif` does, so that pytest reports the place of the test and not this one.
    raise pytest.skip.Exception(f"needs {name} ({install})", _use_item_location=True)


def shared(name: str) -> Path:
    """A file of recorded data that lies beside the checkout, too large for it; a skip where it does not."""
    path = SHARED / name
    if not path.is_file():
        lacking(f"shared/{name}", "put it beside the checkout")
    return path


def playground() -> Path:
    """The folder of MuJoCo Playground's scenes, or a skip; it is not in `dev`, since its dependencies are large."""
    found = importlib.util.find_spec("mujoco_playground")
    if found is None or not found.submodule_search_locations:
        lacking("mujoco_playground", "pip install --no-deps playground==0.2.0")
    return Path(found.submodule_search_locations[0])


def extra(name: str) -> str:
    """Why a test is skipped that needs a Python package: for `pytest.importorskip` at the top of a file."""
    return "needs {} ({})".format(*_source(name))


def package(name: str) -> Any:
    """A module of a Python package, or a skip that names the extra it comes with."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        lacking(*_source(name))


def _source(name: str) -> tuple[str, str]:
    """The package of a module, and how to install it."""
    top = name.partition(".")[0]
    return top, "pip install -e ." if top in BASE else f"pip install -e '.[{EXTRAS.get(top, 'dev')}]'"


def missing(reasons: Iterable[str]) -> list[str]:
    """What was skipped for want of what, a line each, the most tests first; other reasons are left out."""
    found = Counter(match.groups() for reason in reasons if (match := _REASON.search(reason)))
    return [
        f"skipped for want of {name} ({install}): {count} test{'s' * (count != 1)}"
        for (name, install), count in sorted(found.items(), key=lambda item: (-item[1], item[0]))
    ]


def find_chromium() -> str | None:
    """The path of a Chromium that starts; the one of some distributions is a script that only asks for another."""
    for path in filter(None, map(shutil.which, CHROMIUM)):
        if _runs([path, "--version"]):
            return path
    return None


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _compiles() -> bool:
    # gcc without libc6-dev is there and useless.
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "a.c"
        source.write_text("#include <math.h>\n#include <stdio.h>\nint main(void) { return 0; }\n")
        return _runs(["gcc", str(source), "-lm", "-o", f"{folder}/a"])


def _sanitizes() -> bool:
    # Fedora and others have gcc without libasan.
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "a.c"
        source.write_text("int main(void) { return 0; }\n")
        return _runs(["gcc", "-fsanitize=address,undefined", str(source), "-o", f"{folder}/a"]) and _runs(
            [f"{folder}/a"]
        )


def _there(*programs: str) -> Callable[[], bool]:
    return lambda: all(_runs([program, "--version"]) for program in programs)


def _draws(backend: str = "") -> bool:
    package("mujoco")
    from gait import GaitError
    from gait.sim.render import backend_works, find_backend

    if backend:
        return backend_works(backend)
    try:
        return bool(find_backend())
    except GaitError:
        return False


NEEDS = {
    need.name: need
    for need in (
        Need("gcc", "apt-get install gcc libc6-dev", _compiles),
        Need("g++", "apt-get install g++", _there("g++")),
        Need("cmake", "apt-get install cmake g++", _there("cmake", "g++")),
        Need("libasan", "apt-get install libasan8 libubsan1", _sanitizes),
        Need(
            "QEMU for 64-bit ARM",
            "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
            _there("aarch64-linux-gnu-gcc", "qemu-aarch64"),
        ),
        Need(
            "QEMU for Cortex-M",
            "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
            _there("arm-none-eabi-gcc", "qemu-system-arm"),
        ),
        Need("bash", "apt-get install bash", lambda: _runs(["bash", "-c", "true"])),
        Need("git", "apt-get install git", lambda: _runs(["git", "--version"])),
        Need("chromium", "apt-get install chromium", lambda: find_chromium() is not None),
        Need("egl", "apt-get install libegl1 libgl1-mesa-dri", lambda: _draws("egl")),
        Need("osmesa", "apt-get install libosmesa6", lambda: _draws("osmesa")),
        Need("egl or osmesa", "apt-get install libosmesa6", _draws),
    )
}

bash = pytest.mark.needs("bash")
gcc = pytest.mark.needs("gcc")
cpp = pytest.mark.needs("g++")
cmake = pytest.mark.needs("cmake")
sanitizers = pytest.mark.needs("libasan")
arm64 = pytest.mark.needs("QEMU for 64-bit ARM")
cortex_m = pytest.mark.needs("QEMU for Cortex-M")
git = pytest.mark.needs("git")
chromium = pytest.mark.needs("chromium")
