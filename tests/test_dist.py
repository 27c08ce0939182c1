"""What `make dist` refuses to release; the building itself needs the network and is not tested here."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("py.typed", "robot/go1.yaml", "samples/go1_trot.mcap", "weights/gait-0.safetensors")
PAGES = {"docs/log.md", "configs/gait.yaml"}
TRACKED = {
    "README.md",
    "core/gait.h",
    *PAGES,
    "tests/test_a.py",
    "src/gait/log.py",
    *(f"src/gait/{name}" for name in NEEDED),
}
MADE = {
    "gait-1.dist-info/METADATA",
    "gait/_core_native.so",
    "gait/core_sources/gait.h",
    *(f"gait/{one}" for one in PAGES),
}
WHEEL = {name.removeprefix("src/") for name in TRACKED if name.startswith("src/")} | MADE
SDIST = TRACKED | {"PKG-INFO"}


def problems(wheel: set[str] = WHEEL, sdist: set[str] = SDIST, tracked: set[str] = TRACKED) -> str:
    return "\n".join(runpy.run_path(str(ROOT / "tools/check_dist.py"))["problems"](wheel, sdist, tracked))


def test_a_complete_release_has_no_problems() -> None:
    assert problems() == ""


def test_files_that_are_lost_or_lie_about_are_named() -> None:
    assert problems(WHEEL - {"gait/py.typed"}).startswith("the wheel lacks gait/py.typed")
    assert "the wheel has tests/test_a.py, which Git does not know" in problems(WHEEL | {"tests/test_a.py"})
    assert "the wheel has gait/x.nbi" in problems(WHEEL | {"gait/x.nbi"})
    assert "the wheel has gait/core_sources/x.o" in problems(WHEEL | {"gait/core_sources/x.o"})
    assert problems(sdist=SDIST - {"src/gait/log.py"}) == "the sdist lacks src/gait/log.py"
    assert "the sdist has runs/secret.txt, which Git does not know" in problems(sdist=SDIST | {"runs/secret.txt"})


@pytest.mark.parametrize("name", ["weights/gait-0.safetensors", "_core_native.so", "core_sources/gait.h"])
def test_what_every_release_needs_must_be_there_even_if_git_forgot_it(name: str) -> None:
    wheel, sdist, tracked = WHEEL - {f"gait/{name}"}, SDIST - {f"src/gait/{name}"}, TRACKED - {f"src/gait/{name}"}
    assert "the wheel lacks gait/" in problems(wheel, sdist, tracked)
