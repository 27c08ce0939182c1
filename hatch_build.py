"""Builds the C core (core/*.c) into a shared library inside the package: run by pip, by `make`, or by hand.

A build from source uses the instruction set of this machine. With GAIT_PORTABLE=1, as for a wheel that others install,
there is one library for each level of the x86-64 instruction set, and the best one is chosen at import.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "src" / "gait"
# With this and -Bsymbolic below, the core calls its own functions even where another library of the process has one
# of the same name (libc has `advance`), and the compiler may inline them.
OWN = ("-fno-semantic-interposition",)
# Strict IEEE arithmetic: results must not depend on what the optimiser happened to contract or reorder.
FLAGS = ("-std=c99", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared", "-Wall", "-Wextra", *OWN)
# Functions of Python are those of the program that loads the library.
LINK = ("-lm", "-Wl,-undefined,dynamic_lookup") if sys.platform == "darwin" else ("-lm", "-Wl,-Bsymbolic")
LEVELS = ("x86-64", "x86-64-v3", "x86-64-v4")


def compiler() -> list[str]:
    """The C compiler: that of the environment variable CC, or cc."""
    return os.environ.get("CC", "cc").split()


def targets() -> dict[str, tuple[str, ...]]:
    """File names of the libraries to build, each with the flags that choose its instruction set."""
    if os.environ.get("GAIT_PORTABLE") != "1":
        return {"_core_native.so": ("-march=native",)}
    if platform.machine() in ("x86_64", "AMD64"):
        return {f"_core_{level.replace('-', '_')}.so": (f"-march={level}",) for level in LEVELS}
    return {"_core_portable.so": ()}


def build(folder: Path = PACKAGE, strict: bool = False) -> list[Path]:
    """Compile every target into a folder, each whole or not at all; returns their paths."""
    sources = sorted([*(ROOT / "core").glob("*.c"), *(ROOT / "core" / "python").glob("*.c")])
    built = []
    for name, march in targets().items():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            temporary = Path(scratch) / name
            extra = ("-Werror",) if strict else ()
            command = [*compiler(), *FLAGS, *march, *extra, *map(str, sources), "-o", str(temporary), *LINK]
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except FileNotFoundError:
                sys.exit(f"gait needs a C compiler and `{command[0]}` was not found: install gcc or clang, or set CC")
            if done.returncode:
                sys.exit(f"the C core of gait did not compile with `{command[0]}`: {done.stderr.strip()}")
            temporary.replace(folder / name)
        built.append(folder / name)
    return built


def wheel_tag() -> str:
    """Of no Python in particular, but of this platform: nothing in the library knows Python."""
    target = os.environ.get("_PYTHON_HOST_PLATFORM") or sysconfig.get_platform()
    return f"py3-none-{target.replace('-', '_').replace('.', '_')}"


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, where hatchling is not installed
    pass
else:

    class CoreHook(BuildHookInterface):  # type: ignore[type-arg]
        """Compiles the core whenever a wheel, editable or not, is made, and adds its sources for `gait export`."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Called by hatchling before it collects files."""
            if self.target_name != "wheel":
                return
            built = build()
            for old in set(PACKAGE.glob("_core_*.so")).difference(built):
                old.unlink()
            build_data["artifacts"].append("src/gait/_core_*.so")
            if version == "standard":  # an editable package reads them where they are
                build_data["force_include"][str(ROOT / "core")] = "gait/core_sources"
                # What messages and help name.
                for file in [*(ROOT / "docs").glob("*.md"), *(ROOT / "configs").glob("*.yaml")]:
                    build_data["force_include"][str(file)] = f"gait/{file.parent.name}/{file.name}"
            build_data["pure_python"], build_data["tag"] = False, wheel_tag()


if __name__ == "__main__":
    print(*build(strict="--strict" in sys.argv), sep="\n")
