"""What a machine lacks is said once a test and once at the end, and stops nothing else."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import needs
import pytest

from gait.io import atomic

HERE = Path(__file__).parent
SUITE = """
import needs, pytest
pytestmark = needs.bash

@pytest.fixture
def compiled():
    raise AssertionError("a fixture of a test that is skipped is not made")

@needs.gcc
def test_one(compiled): pass

@needs.gcc
def test_two(): pass

@needs.chromium
def test_three(): pass

@pytest.mark.skip("for another reason")
def test_four(): pass

def test_five(): needs.package("no_such_package")

def test_six(): needs.shared("no/such.file")

def test_seven(): pass
"""


def test_the_run_ends_with_what_was_skipped_for_want_of_what(tmp_path: Path) -> None:
    for name in ("conftest.py", "needs.py"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "test_a.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = needs(name): as in the tests\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "bash").symlink_to(shutil.which("true") or "/bin/true")
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PATH": str(tools)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 6 skipped" in done.stdout
    table = done.stdout.split("missing on this machine")[1].splitlines()[1:-1]
    assert table == [
        "skipped for want of gcc (apt-get install gcc libc6-dev): 2 tests",
        "skipped for want of chromium (apt-get install chromium): 1 test",
        "skipped for want of no_such_package (pip install -e '.[dev]'): 1 test",
        "skipped for want of shared/no/such.file (put it beside the checkout): 1 test",
    ]


def test_a_machine_that_lacks_nothing_is_not_told_so() -> None:
    assert needs.missing(["Skipped: only old sqlite3 bags are without definitions"]) == []


def test_every_need_names_a_package_that_contributing_lists() -> None:
    text = (HERE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for need in needs.NEEDS.values():
        for name in need.install.removeprefix("apt-get install ").split():
            assert f"`{name}`" in text, name


def test_without_git_the_commit_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert atomic.commit() == "unknown"


@needs.git
def test_the_commit_is_that_of_the_checkout() -> None:
    if not (HERE.parent / ".git").exists():
        pytest.skip("not a git checkout")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=True)
    assert re.fullmatch(re.escape(head.stdout.strip()) + r"\+?", atomic.commit())
