"""Fixtures of the verbs' tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_samples import short_walk

from gait import Log


@pytest.fixture(scope="module")
def log() -> Log:
    return short_walk()


@pytest.fixture
def path(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log in a folder of its own, which is also the working directory."""
    monkeypatch.chdir(tmp_path)
    log.save(tmp_path / "walk.npz")
    return tmp_path / "walk.npz"
