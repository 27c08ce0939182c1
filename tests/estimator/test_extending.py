"""A method from outside the package: the file of docs/extending.md, as it is, in the API and in every verb."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gait import Estimator, Log, methods
from gait.cli import main
from gait.errors import GaitError
from gait.samples import SAMPLE

DOCS = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Path]:
    """my_method.py, in a folder of its own; what it registers is forgotten afterwards."""
    code = re.search(r"```python\n(# my_method\.py\n.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    path = tmp_path / "my_method.py"
    path.write_text(code[1], encoding="utf-8")
    yield path
    methods.METHODS.pop("stand-still", None)
    methods._REGISTERED.pop("stand-still", None)


def test_updates_are_the_run_and_the_velocity_is_pulled_to_zero(toy: Path) -> None:
    log = Log.load(SAMPLE).slice(0.0, 2.0)
    estimator = Estimator.load("go1", toy)
    assert estimator.method == "stand-still"
    run = estimator.run(log)
    estimator.start_as(log)
    states = [estimator.update(row) for row in log.rows()]
    assert np.array_equal([state.vel_w for state in states], run.vel_w)
    assert {str(state.health) for state in states[1:]} == {"ok"}
    gait = Estimator.load("go1", "gait").run(log)
    assert np.linalg.norm(run.vel_w[-100:]) < 0.7 * np.linalg.norm(gait.vel_w[-100:])


def test_run_eval_and_bench_take_it_at_once(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rows(*words: str) -> dict[str, float]:
        assert main([*words, "--json"]) == 0
        return {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}

    out = str(toy.with_name("out"))
    ran = rows("run", str(SAMPLE), "--method", str(toy), "--out", out)
    assert any(value == "stand-still" for value in ran.values()) or Path(out).exists()
    judged = rows("eval", str(SAMPLE), "--methods", str(toy), "iekf", "--out", out + "2")
    names = [name for name in judged if "stand-still" in name and "velocity" in name]
    assert names and judged[names[0]] > 3.0 * judged[names[0].replace("stand-still", "iekf")]
    timed = rows("bench", "latency", "--methods", str(toy), "--seconds-per-rival", "0.02")
    assert timed["stand-still.core.step_us"] > 0.0


def test_mistakes_are_told_in_a_sentence(tmp_path: Path, toy: Path) -> None:
    empty = tmp_path / "empty_method.py"
    empty.write_text("", encoding="utf-8")
    with pytest.raises(GaitError, match="registers 0 methods"):
        Estimator.load("go1", empty)
    with pytest.raises(GaitError, match="cannot read .*nowhere.py"):
        Estimator.load("go1", tmp_path / "nowhere.py")
    with pytest.raises(GaitError, match="method gait exists already"):
        methods.register("gait", lambda robot: None)  # type: ignore[arg-type, return-value]
    estimator = Estimator.load("go1", toy)
    with pytest.raises(GaitError, match="takes whole samples: use update"):
        estimator.update_imu(0.0, np.zeros(3), np.zeros(3))
    wrong = tmp_path / "wrong_shape.py"
    wrong.write_text(
        "import numpy as np\nfrom gait import methods\n\nclass Wrong:\n    def __init__(self, robot): pass\n"
        "    def reset(self): pass\n"
        "    def step(self, sample, state): return [(np.zeros(2), np.zeros((2, 9)), np.eye(2))]\n"
        "methods.register('wrong', Wrong)\n",
        encoding="utf-8",
    )
    try:
        with pytest.raises(GaitError, match=r"method wrong gave H \(2, 9\) and N \(2, 2\) for z \(2,\)"):
            Estimator.load("go1", wrong).run(Log.load(SAMPLE).slice(0.0, 0.1))
    finally:
        methods.METHODS.pop("wrong", None)
        methods._REGISTERED.pop("wrong", None)
