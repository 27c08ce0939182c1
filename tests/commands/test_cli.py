"""The command line as a user meets it: output, exit codes, and what is left on the disk."""

import ast
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import needs
import numpy as np
import pytest
from log_samples import make_log, make_trajectory

import gait
from gait import GaitError
from gait import commands as verbs
from gait.cli import main
from gait.commands import info
from gait.errors import install_hint
from gait.io import open_log, open_trajectory
from gait.report import describe
from gait.report.table import format_value
from gait.rows import Row, rows_to_json


def run(*args: object, **more: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "gait", *map(str, args)], capture_output=True, text=True, **more)


def rows(text: str) -> dict[str, object]:
    tree = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(tree) == ["rows"] and all(list(row) == ["name", "value", "unit"] for row in tree["rows"])
    return {row["name"]: row["value"] for row in tree["rows"]}


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    make_log(600, rate=100.0).save(tmp_path / "log.npz")
    return tmp_path / "log.npz"


# Verbs


def test_info_without_a_path_is_ready_for_a_bug_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    found = rows(capsys.readouterr().out)
    assert found["gait"] == gait.__version__ and found["numpy"] == np.__version__
    assert found["self_check"] == "ok" and {"python", "numba", "mujoco", "cpu", "cores", "system"} <= set(found)


def test_info_tries_the_estimator_and_lists_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    found = rows(capsys.readouterr().out)
    assert 0.0 < found["self_check_velocity_rmse"] < 0.1 and found["self_check_step"] > 0.0
    assert (Path(gait.__file__).parent / f"_core_{found['core']}.so").is_file()
    assert "gait-0" in str(found["weights"]).split() and "go1" in str(found["robots"]).split()


def test_info_names_the_pip_command_of_an_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["numpy>=1", "mujoco>=3; extra == 'sim'", "pillow>=10; (python_version >= '3.10') and extra == \"viz\""]
    monkeypatch.setattr(describe.metadata, "requires", lambda name: [*wanted, "ruff; extra == 'dev'"])
    monkeypatch.setattr(describe, "_version", lambda name: "not installed" if name == "mujoco" else "1.2")
    found = {row.name: row.value for row in describe.installation()}
    assert found["extra_sim"] == install_hint("sim") and found["mujoco"] == "not installed"
    assert found["extra_viz"] == "yes" and found["pillow"] == "1.2"
    assert "extra_dev" not in found and "ruff" not in found


@pytest.mark.parametrize("broken", ["value", "nan", "crash"])
def test_info_reports_a_failed_check_and_all_the_rest(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> list[Row]:
        if broken == "crash":
            raise ValueError("no such kernel")
        return [Row("self_check_velocity_rmse", 0.4 if broken == "value" else float("nan"), "m/s")]

    monkeypatch.setattr(info, "_check_estimator", check)
    found = {row.name: row.value for row in info.self_check()}
    word = {"value": "velocity_rmse is 0.4 m/s", "nan": "velocity_rmse is nan", "crash": "ValueError: no such kernel"}
    assert str(found["self_check"]).startswith("failed: ") and word[broken] in str(found["self_check"])
    assert found["self_check_kinematics"] < 1e-9, "what went well is reported too"


def test_info_tells_what_is_in_a_file(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(log_path), "--json"]) == 0
    found = rows(capsys.readouterr().out)
    assert (found["rows"], found["rate"], found["truth"], found["gaps"]) == (600, 100.0, "yes", 0)
    assert found["q"] == "600 x 12" and found["legs"] == "FR FL RR RL" and found["robot"] == "go1"
    late = np.arange(600) / 100.0
    late[300:] += 0.5
    make_log(600, t=late, pos_w=None).save(log_path)
    assert main(["info", str(log_path), "--json"]) == 0
    found = rows(capsys.readouterr().out)
    assert (found["gaps"], found["late_steps"], found["truth"]) == (1, 1, "no")
    assert found["longest_step"] == pytest.approx(0.51) and "pos_w" not in found
    path = log_path.with_name("path.npz")
    make_trajectory(health=np.repeat([0, 2, 66, 66, 66], 10)).save(path)
    assert main(["info", str(path), "--json"]) == 0
    found = rows(capsys.readouterr().out)
    assert (found["health_time_gap"], found["health_diverged"], found["health_slip"]) == (0.8, 0.6, 0.0)


def test_tables_have_units_and_the_next_command(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(log_path)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"gyro +600 x 3 +rad/s", text) and f"next: gait run {log_path}" in text
    words = [*text.split("next: gait ")[1].split(), "--out", str(log_path.with_name("run"))]
    assert main(words) == 0, "the next command must work as it stands"
    assert f"wrote {log_path.with_name('run')}" in capsys.readouterr().out


def test_the_list_of_verbs_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 15 and max(map(len, lines)) <= 80


def test_a_log_in_degrees_is_followed_by_its_correction(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = open_log(log_path)
    log.replace(q=np.degrees(log.q), dq=np.degrees(log.dq)).save(log_path)
    assert main(["info", str(log_path), "--robot", "go1"]) == 0
    text = capsys.readouterr().out
    assert f"next: gait run {log_path} --robot go1 --fix" in text and "LOOK joints" in text
    assert "stale" not in text, "angles in degrees are no fault of an encoder"
    assert main(["info", str(log_path), "--fix"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "they are in degrees; corrected as by --scale q=deg" in text and "correct it with --scale q=deg" not in text


def test_convert_changes_format_rate_order_and_span(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = open_log(log_path)
    there, back = log_path.with_suffix(".csv"), log_path.with_name("again.npz")
    assert main(["convert", str(log_path), str(there)]) == 0
    assert main(["convert", str(there), str(back), "--json"]) == 0
    assert open_log(back) == log
    assert rows(capsys.readouterr().out.splitlines()[-1])["rows"] == 600
    names = [*reversed(log.joint_names)]
    make_log(600, rate=100.0, joint_names=names).save(log_path)
    args = ["--robot", "go1", "--start", "1", "--end", "2", "--rate", "50"]
    assert main(["convert", str(log_path), str(back), *args]) == 1
    assert "is there already: give another name, or --force to write over it" in capsys.readouterr().err
    args.append("--force")
    assert main(["convert", str(log_path), str(back), *args]) == 0
    part = open_log(back)
    assert part.joint_names == log.joint_names and (len(part), part.rate) == (50, 50.0)
    np.testing.assert_array_equal(part.q[0], log.q[100, ::-1])


def test_convert_a_trajectory_to_tum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_trajectory()
    path.save(tmp_path / "path.npz")
    assert main(["convert", str(tmp_path / "path.npz"), str(tmp_path / "path.tum")]) == 0
    np.testing.assert_allclose(open_trajectory(tmp_path / "path.tum").pos_w, path.pos_w, atol=1e-14)
    assert main(["convert", str(tmp_path / "path.npz"), str(tmp_path / "x.npz"), "--rate", "9"]) == 1
    assert "are for logs only" in capsys.readouterr().err and not (tmp_path / "x.npz").exists()


def test_convert_tells_what_it_wrote(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ending, kind in (("csv", "Log"), ("tum", "Trajectory")):
        out = log_path.with_suffix(f".{ending}")
        assert main(["convert", str(log_path), str(out)]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"{kind} {out}\n") and re.search(r"rows +600 ", text)
        assert bool(re.search(r"^ robot ", text, re.MULTILINE)) == (kind == "Log"), "poses know no robot"


def test_eval_suggests_a_next_command_that_does_something(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def following(*args: object) -> str:
        assert main([str(word) for word in ("eval", *args)]) == 0
        return capsys.readouterr().out.split("next: gait ")[1].strip()

    log, tum, npz = open_log(log_path), log_path.with_name("est.tum"), log_path.with_name("my est.npz")
    log.save(tum)
    open_trajectory(tum).save(npz)
    # After a trajectory of one's own, ours on the same log; against a trajectory no method can run.
    assert following(log_path, npz) == following(log_path, tum) == f"eval {log_path} --methods all"
    assert following(tum, npz) == f"eval {tum} '{npz}' --alignment first"
    assert following(tum, npz, "--alignment", "first") == f"eval {tum} '{npz}' --alignment yaw"
    assert main(shlex.split(following(tum, npz))) == 0, "the next command must work as it stands"


def test_eval_prints_the_metrics(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = open_log(log_path)
    estimate = log_path.with_name("estimate.npz")
    velocity = log.vel_w + np.array([0.3, 0.4, 0.0])
    gait.Trajectory(t=log.t, quat_wb_wxyz=log.quat_wb_wxyz, vel_w=velocity, pos_w=log.pos_w).save(estimate)
    assert main(["eval", str(log_path), str(estimate), "--json"]) == 0
    found = rows(capsys.readouterr().out)
    assert found["velocity_rmse"] == pytest.approx(0.5)
    assert found["ate_pos"] == pytest.approx(0.0, abs=1e-9) and found["ate_rot"] == pytest.approx(0.0, abs=1e-6)
    assert {"re_pos_5s", "slip_fraction"} <= set(found)
    log.slice(t1=2.0).save(log_path)
    assert main(["eval", str(log_path), str(estimate), "--json"]) == 0
    assert "re_pos_5s" not in rows(capsys.readouterr().out), "a run shorter than the window has no relative error"


# Bad input: one sentence, exit code 1, nothing half-written


def bad_commands(folder: Path) -> dict[str, list[object]]:
    log, path = make_log(600, rate=100.0), make_trajectory(600, rate=100.0)
    log.save(folder / "log.npz")
    path.save(folder / "path.npz")
    content = (folder / "log.npz").read_bytes()
    (folder / "cut.npz").write_bytes(content[: len(content) // 2])
    (folder / "photo.npz").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "empty.npz").write_bytes(b"")
    log.replace(vel_w=None, quat_wb_wxyz=None).save(folder / "blind.npz")
    t = np.arange(600) / 100.0
    t[200:] += 3.0
    log.replace(t=t).save(folder / "gap.npz")
    csv = "t,gyro.x,gyro.y,gyro.z,accel.x,accel.y,accel.z,q.a,dq.a\n"
    (folder / "nan.csv").write_text(csv + "0,0,0,0,0,0,9.8,0,0\n1,0,nan,0,0,0,9.8,0,0\n")
    (folder / "back.csv").write_text(csv + "1,0,0,0,0,0,9.8,0,0\n0,0,0,0,0,0,9.8,0,0\n")
    (folder / "shape.csv").write_text(csv + "1,0,0,0,0,0,9.8,0,0\n2,0,0\n")
    out = folder / "out.npz"
    return {
        "there is no file .*none.npz": ["info", folder / "none.npz"],
        "is a folder": ["info", folder],
        "is empty": ["convert", folder / "empty.npz", out],
        "damaged or cut short": ["convert", folder / "cut.npz", out],
        "in no format that gait knows": ["convert", folder / "photo.npz", out],
        "field gyro is nan at row 1": ["convert", folder / "nan.csv", out],
        "field t does not increase at row 1": ["convert", folder / "back.csv", out],
        "line 3 has 3 values where 9 are due": ["convert", folder / "shape.csv", out],
        "gap of 3.01 s after row 199": ["convert", folder / "gap.npz", out, "--rate", "50"],
        "log has a gap": ["eval", folder / "gap.npz", folder / "path.npz"],
        "unknown robot 'rex'": ["convert", folder / "log.npz", out, "--robot", "rex"],
        "end it with one of": ["convert", folder / "log.npz", folder / "out.mp3"],
        "there is no folder": ["convert", folder / "log.npz", folder / "none" / "out.npz"],
        "give the estimated trajectory after the log .*, or --methods all": ["eval", folder / "log.npz"],
        "the log has no quat_wb_wxyz": ["eval", folder / "blind.npz", folder / "path.npz"],
        "holds a Log, not a Trajectory": ["eval", folder / "log.npz", folder / "log.npz"],
        "from 99 s to the end leaves 0 rows": ["convert", folder / "log.npz", out, "--start", "99"],
        "--max-gap. is 0 s: give one above 0": ["eval", folder / "log.npz", folder / "path.npz", "--max-gap", "0"],
    }


def test_bad_input_is_one_sentence_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = bad_commands(tmp_path)
    before = sorted(tmp_path.iterdir())
    for message, command in commands.items():
        assert main([str(word) for word in command] + ["--json"]) == 1, message
        captured = capsys.readouterr()
        assert captured.out == "", message
        assert re.fullmatch(f"gait: .*{message}.*\n", captured.err), captured.err
    assert sorted(tmp_path.iterdir()) == before, "nothing may be left behind"


def test_bad_input_in_a_process(tmp_path: Path) -> None:
    commands = bad_commands(tmp_path)
    for message in ("damaged or cut short", "unknown robot 'rex'"):
        done = run(*commands[message])
        assert done.returncode == 1 and done.stdout == ""
        assert re.fullmatch(f"gait: .*{message}.*\n", done.stderr), done.stderr


def test_an_error_over_several_lines_is_still_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: object) -> None:
        raise GaitError("first\n  second")

    monkeypatch.setattr("gait.commands.info.run", fail)
    assert main(["info"]) == 1
    assert capsys.readouterr().err == "gait: first second\n"


def test_a_bug_shows_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("gait.commands.info.run", fail)
    with pytest.raises(ZeroDivisionError):
        main(["info"])


# Usage


@pytest.mark.parametrize("args", [[], ["inf"], ["eval"], ["info", "--jsn"], ["convert", "a", "b", "--rate", "x"]])
def test_wrong_usage_is_exit_code_2(args: list[str]) -> None:
    done = run(*args)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_help_lists_every_verb_and_each_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    modules = {path.stem for path in Path(verbs.__file__).parent.glob("*.py")} - {"__init__", "bars"}
    assert modules == {verbs.MODULES.get(verb, verb) for verb in verbs.VERBS}, (
        "every module in gait/commands is a verb, and every verb has its module"
    )
    for verb, summary in verbs.VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(summary)}$", text, re.MULTILINE)
        with pytest.raises(SystemExit) as stop:
            main([verb, "--help"])
        assert stop.value.code == 0
        assert "--json" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gait {gait.__version__}\n"


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_the_help_of_a_verb_fits_a_terminal(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    module = importlib.import_module(f"gait.commands.{verbs.MODULES.get(verb, verb)}")
    said = getattr(module, f"{verb.capitalize()}Options").__doc__
    assert " ".join(said.split()) in " ".join(text.split())
    # Options that are off unless they are given say nothing about a default.
    assert "{None}" not in text and "default: None" not in text and "default: False" not in text


def test_notes_are_wrapped_below_their_words() -> None:
    option = "--joint-names " + ",".join(f"FL_{i}_joint=FR_{i}_joint" for i in range(6))
    lines = verbs.wrapped([f"LOOK legs: {'word ' * 20}{option}", "- short", "ok   rate: 500 Hz"])
    assert lines[0].startswith("LOOK legs: word") and all(line.startswith("     ") for line in lines[1:-2])
    assert all(len(line) <= 79 for line in lines if "FL_0" not in line) and lines[-2:] == [
        "- short",
        "ok   rate: 500 Hz",
    ]
    assert any(option.split()[1] in line for line in lines), "an option stays whole"


def test_progress_without_a_terminal_is_a_few_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(verbs.time, "monotonic", lambda: now[0])
    with verbs.count_bar(False, "episodes", lines=True) as update:
        for done in range(11):
            now[0] = 10.0 * done
            update(done, 10, "2 falls")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{done} of 10 episodes, 2 falls" for done in (0, 3, 6, 9, 10)]


HEAVY = ("numpy", "numba", "mujoco", "torch", "rich.table", "matplotlib", "unittest.mock", "asyncio")


@pytest.mark.parametrize("args", [["--help"], *([verb, "--help"] for verb in verbs.VERBS)])
def test_help_imports_nothing_heavy(args: list[str]) -> None:
    code = f"import sys, gait.cli\ntry: gait.cli.main({args!r})\nexcept SystemExit: pass\nprint(list(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout.splitlines()[-1]))
    assert not loaded & set(HEAVY)


# Life in a shell


@needs.bash
def test_a_reader_that_leaves_early_is_no_error(log_path: Path) -> None:
    command = f"'{sys.executable}' -m gait info '{log_path}' | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == "0\n"


def test_any_name_of_a_file_and_any_terminal_will_do(log_path: Path) -> None:
    odd = os.fsencode(log_path.parent) + b"/\xff\xc3\xa4 [red].npz"
    os.rename(os.fsencode(log_path), odd)  # noqa: PTH104
    done = run("info", os.fsdecode(odd), env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert done.returncode == 0 and "[red].npz" in done.stdout and done.stderr == ""


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    # A verb that waits for ever stands in for a long run.
    ready = tmp_path / "ready"
    code = (
        "import sys, time, pathlib, gait.cli, gait.commands.info\n"
        f"def run(options): pathlib.Path({str(ready)!r}).touch(); time.sleep(60)\n"
        "gait.commands.info.run = run\n"
        "sys.exit(gait.cli.main(['info']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not ready.exists() and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "")


# Rows


def test_rows_are_strict_json() -> None:
    text = rows_to_json([Row("a", np.float64(1.5), "m"), Row("b", float("nan"), "s"), Row("c", np.int64(3), "-")])
    assert json.loads(text)["rows"] == [
        {"name": "a", "value": 1.5, "unit": "m"},
        {"name": "b", "value": None, "unit": "s"},
        {"name": "c", "value": 3, "unit": "-"},
    ]
    assert rows_to_json([Row("d", float("inf"), "m"), Row("e", np.float32("nan"), "m")]).count("null") == 2
    assert [format_value(value) for value in (0.0123456, 12, "x", float("nan"), 1.7e9)] == [
        "0.012346", "12", "x", "n/a", "1700000000.000",
    ]  # fmt: skip
