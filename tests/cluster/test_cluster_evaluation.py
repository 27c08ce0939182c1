"""Evaluations on a Ray cluster: the local table, whatever logs are bad and nodes lost."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robot.published_models import urdf

from gait import GaitError, Log, Robot, open_log
from gait.bench.walks import figure_rows, log_names, walk_rows, walk_study
from gait.cli import main
from gait.cluster.evaluation import EvalPlan, Manifest, evaluate_log, evaluate_on_cluster, packed, unpacked
from gait.cluster.luggage import Parcel
from gait.io.checked import read_checked
from gait.io.storage import Storage
from gait.read_options import ReadOptions
from gait.robot import robot as robot_module
from gait.robot.chain_yaml import robot_tree
from gait.samples import SAMPLE

PLAN = EvalPlan(("iekf", "gait"), "truth", 0.1)


def pieces(folder: Path, count: int) -> list[Path]:
    """Pieces of the sample log, each of them another one."""
    log, paths = open_log(SAMPLE), []
    for i in range(count):
        paths.append(folder / f"piece_{i:02d}.npz")
        log.slice(t0=0.3 * i, t1=0.3 * i + 6.0).save(paths[-1])
    return paths


def without_time(rows: Any) -> dict[str, float]:
    """What does not depend on how busy a machine is."""
    return {row.name: row.value for row in rows if "step" not in row.name}


def test_a_manifest_resumes(tmp_path: Path) -> None:
    path, settings = tmp_path / "m.jsonl", PLAN.as_dict(Parcel())
    book = Manifest(path, settings)
    book.add({"log": "/a", "file": "1", "error": "bad"})
    book.add({"log": "/b", "file": "2", "figures": {}, "left_out": {}, "fact": ""})
    with path.open("a") as file:
        file.write('{"log": "/c", "fi')  # the process was killed here
    again = Manifest(path, settings)
    assert list(again.lines) == ["/a", "/b"] and len(path.read_text().splitlines()) == 3
    others = (replace(PLAN, methods=("iekf",)), replace(PLAN, read=ReadOptions(fix=True)))
    for other in (*(plan.as_dict(Parcel()) for plan in others), PLAN.as_dict(Parcel({"methods/0/mine.py": b""}))):
        with pytest.raises(GaitError, match="is of an evaluation with other settings"):
            Manifest(path, other)


def test_a_task_gives_the_figures_of_a_local_run(tmp_path: Path) -> None:
    (path,) = pieces(tmp_path, 1)
    line = evaluate_log(PLAN, Parcel(), "one", str(path))
    study = walk_study({"one": Log.load(path)}, PLAN.methods)
    rows = without_time(walk_rows(study))
    assert {name: line["figures"]["iekf"][name.removeprefix("iekf.")] for name in rows if name.startswith("iekf.")} == {
        name: value for name, value in rows.items() if name.startswith("iekf.")
    }
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    with pytest.raises(GaitError, match="is damaged or cut short"):
        evaluate_log(PLAN, Parcel(), "bad", str(tmp_path / "bad.npz"))


def test_options_of_reading_hold_on_a_node(tmp_path: Path) -> None:
    """A gyro in degrees is noticed, and corrected where that is asked for, as by a local run."""
    (path,) = pieces(tmp_path, 1)
    log = Log.load(path)
    log.replace(gyro=np.rad2deg(log.gyro)).save(path)
    plan = EvalPlan(("iekf",), "truth", 0.1)
    line = evaluate_log(plan, Parcel(), "one", str(path))
    assert "gyro" in [one["name"] for one in line["checks"]]
    fixed = evaluate_log(replace(plan, read=ReadOptions(fix=True)), Parcel(), "one", str(path))
    assert not [one for one in fixed["checks"] if one["grave"]] and "fixed: " in " ".join(fixed["notes"])
    reading, _ = read_checked(path, ReadOptions(fix=True))
    rows = without_time(walk_rows(walk_study({"one": reading.log}, ("iekf",))))
    figures = {f"iekf.{name}": value for name, value in fixed["figures"]["iekf"].items()}
    assert {name: figures[name] for name in rows} == rows
    assert fixed["figures"]["iekf"]["velocity_rmse"] < line["figures"]["iekf"]["velocity_rmse"]


def test_files_of_a_plan_travel(tmp_path: Path) -> None:
    """Methods of one name in two folders, a robot and the columns of a CSV."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(f"# {folder}\n")
    (tmp_path / "columns.yaml").write_text("t: t\n")
    text = Path(robot_module.__file__).with_name("go1.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("name: go1", "name: mine", 1))
    read = ReadOptions(robot=str(tmp_path / "mine.yaml"), columns=tmp_path / "columns.yaml", fix=True)
    plan = EvalPlan((str(tmp_path / "a/mine.py"), "iekf", str(tmp_path / "b/mine.py")), "truth", 0.1, read)
    there = unpacked(*packed(plan))
    assert [Path(one).read_text() for one in there.methods[::2]] == ["# a\n", "# b\n"] and there.methods[1] == "iekf"
    assert there.read.robot != read.robot and Robot.load(str(there.read.robot)).name == "mine" and there.read.fix
    assert Path(str(there.read.columns)).read_text() == "t: t\n" and there.read.columns != read.columns
    assert unpacked(*packed(PLAN)) == PLAN
    with pytest.raises(GaitError, match=r"cannot read .*none\.yaml: no such file"):
        packed(replace(plan, read=ReadOptions(robot=str(tmp_path / "none.yaml"))))


def test_a_urdf_travels_as_its_description() -> None:
    path = urdf("a1")
    read = ReadOptions(robot=str(path))
    there = unpacked(*packed(replace(PLAN, read=read)))
    assert str(there.read.robot).endswith("robot/a1.yaml")
    assert robot_tree(Robot.load(str(there.read.robot))) == robot_tree(Robot.load(path))


def test_names_of_logs() -> None:
    assert log_names([Path("a/x.npz"), Path("b/y.npz")]) == ["x", "y"]
    assert log_names([Path("s3://b/x.npz"), Path("b/x.npz")]) == ["s3://b/x.npz", "b/x.npz"]
    with pytest.raises(GaitError, match=r"a/x\.npz is given twice"):
        log_names([Path("a/x.npz"), Path("a/x.npz")])


@pytest.mark.slow
def test_a_node_is_killed_in_the_middle_of_an_evaluation(cluster: Any, tmp_path: Path) -> None:
    paths = pieces(tmp_path, 16)
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    logs = {path.stem: path for path in (*paths[:3], tmp_path / "bad.npz", *paths[3:])}
    nodes = [cluster.processors() for _ in range(2)]

    def kill_one(done: int, total: int, note: str) -> None:
        assert total == 17
        if done >= 4 and len(nodes) == 2:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    result = evaluate_on_cluster(logs, PLAN, tmp_path / "m.jsonl", cluster.address, progress=kill_one)
    assert len(nodes) == 1 and list(result.found) == [path.stem for path in paths] and list(result.failed) == ["bad"]
    study = walk_study({path.stem: Log.load(path) for path in paths}, PLAN.methods)
    assert without_time(figure_rows(result.found)) == without_time(walk_rows(study))
    lines = [json.loads(line)["log"] for line in (tmp_path / "m.jsonl").read_text().splitlines()[1:]]
    assert sorted(lines) == sorted(str(path) for path in logs.values()), "none missing, none twice"


@pytest.mark.slow
def test_the_command_resumes_and_prints_the_local_table(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.processors()
    paths = pieces(tmp_path, 3)
    words = ["eval", *map(str, paths), "--methods", "iekf", "gait", "--json"]
    assert main([*words, "--out", str(tmp_path / "local")]) == 0
    local = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    (tmp_path / "bad.csv").write_text("nothing\n")
    assert main([words[0], str(tmp_path / "bad.csv"), *words[1:], "--out", str(tmp_path / "ray"), "--ray"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert (rows["logs"], rows["failed"], rows["resumed"]) == (3, 1, 0)
    assert {n: v for n, v in local.items() if "step" not in n} == {
        name: rows[name] for name in local if "step" not in name
    }
    assert main([*words[:-1], "--out", str(tmp_path / "ray"), "--ray", cluster.address]) == 0
    printed = capsys.readouterr().out
    assert "Methods on 3 logs, mean (standard deviation)" in printed and "report.html" in printed
    assert np.isfinite(local["iekf.velocity_rmse"])


@pytest.mark.slow
def test_logs_in_a_bucket_have_the_figures_of_files(cluster: Any, s3: Callable[[str], str], tmp_path: Path) -> None:
    """They are known again by what the store says of them, and a log that is not there is a line of the manifest."""
    cluster.processors()
    paths, place = pieces(tmp_path, 2), s3("logs")
    for path in paths:
        Storage(place).write(path.name, path.read_bytes())
    logs = {name: f"{place}/{name}" for name in (*(path.name for path in paths), "none.npz")}
    result = evaluate_on_cluster(logs, PLAN, tmp_path / "m.jsonl", cluster.address)
    study = walk_study({path.name: Log.load(path) for path in paths}, PLAN.methods)
    assert without_time(figure_rows(result.found)) == without_time(walk_rows(study))
    assert list(result.failed) == ["none.npz"] and "there is no file" in result.failed["none.npz"]
    Storage(place).write(paths[0].name, paths[1].read_bytes())
    assert evaluate_on_cluster(logs, PLAN, tmp_path / "m.jsonl", cluster.address).resumed == 1
