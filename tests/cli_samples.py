"""What tests of single verbs share: a walk, the rows that a verb prints, and its refusals."""

from __future__ import annotations

import json

import pytest

from gait import Log
from gait.cli import main
from gait.samples import SAMPLE

SECONDS = 6.0


def short_walk() -> Log:
    """The first seconds of the sample log."""
    whole = Log.load(SAMPLE)
    return whole.slice(t1=float(whole.t[0]) + SECONDS)


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    return {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}


def fails(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert main(list(map(str, args))) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err
