"""Settings for all tests."""

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs
import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]


def _numba_cache() -> str:
    """A cache of compiled code for exactly these sources.

    numba notices a change in the file of a compiled function, but not in a file that this function calls into.
    """
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        if "compiled" in (text := path.read_text(encoding="utf-8")):
            digest.update(text.encode())
    return str(ROOT / ".cache/numba" / digest.hexdigest()[:16])


os.environ.setdefault("NUMBA_CACHE_DIR", _numba_cache())
# A shell that runs us in the background has Ctrl-C ignored, and our children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A loaded machine is slow, not wrong.
settings.register_profile("gait", deadline=None)
settings.load_profile("gait")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that is marked with what this machine lacks, before its fixtures are made."""
    for mark in item.iter_markers("needs"):
        needs.require(mark.args[0])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """End with what was skipped for want of what."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    if lines := needs.missing(str(report.longrepr[-1]) for report in skipped):
        terminalreporter.section("missing on this machine")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def one_thread() -> None:
    """Keep torch to one thread, so that tests that run side by side do not wait for each other."""
    import torch

    torch.set_num_threads(1)
