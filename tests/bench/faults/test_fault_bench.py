"""`gait bench faults` as a whole: on the sample log, from the command line, and its long studies in short."""

import json
from pathlib import Path

import needs
import numpy as np
import pytest
from log_samples import make_log

import gait
from gait import Log
from gait.bench.courses import Course
from gait.bench.faults import conditions, false_alarms, fault_logs
from gait.bench.faults.false_alarms import clean_hour, count_alarms
from gait.bench.faults.fault_logs import logs_of
from gait.bench.faults.fault_scores import longer_than
from gait.bench.faults.long_run import run_long
from gait.bench.faults.run_faults import FAULTS, run_faults
from gait.bench.faults.track import Track
from gait.cli import main
from gait.health import Health
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def sample() -> Log:
    return gait.open_log(SAMPLE)


def test_faults_show_what_they_should(sample: Log) -> None:
    """A clean run passes, a lost leg is flagged at once, a method without its input refuses."""
    rows = run_faults({"sample": sample}, ["gait-legs", "nmn"], ["none", "leg-lost", "q_des-missing", "gap-30s"])
    by = {row.fault.id: row for row in rows}
    assert by["none"].scores["gait-legs"].verdict == "ok"
    lost = by["leg-lost"].scores["gait-legs"]
    assert lost.detection == 0.0 and "FR stale" in lost.said
    assert by["q_des-missing"].scores["nmn"].verdict == "refused"
    assert by["gap-30s"].skipped == "the log is too short" and not by["gap-30s"].scores


def test_rows_have_every_figure(sample: Log) -> None:
    (row,) = run_faults({"sample": sample}, ["iekf"], ["gap-150ms"])
    names = {one.name.removeprefix("sample.iekf.gap-150ms.") for one in row.rows()}
    assert {"velocity_worst_after", "recovery", "detection", "yaw_within_3std_after", "nan_states", "verdict"} <= names


def test_the_command_prints_a_table_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "faults", "--methods", "gait-legs", "--only", "gap-2s", "leg-*"]) == 0
    text = capsys.readouterr().out
    assert "gap-2s" in text and "leg-lost" in text and "next: gait bench faults" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "sample: gait-legs passes" in text


def test_the_command_gives_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "faults", "--methods", "iekf", "--only", "clock-nan", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["sample.iekf.clock-nan.detection"]["value"] == 0.0
    assert rows["sample.iekf.clock-nan.exceptions"]["value"] == 0


def test_the_command_takes_a_file(capsys: pytest.CaptureFixture[str], sample: Log, tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    sample.slice(None, 10.0).save(path)
    words = ["bench", "faults", "--log", str(path), "--methods", "iekf", "gait-legs", "--only", "none", "carried"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "every method on mine" in text and "carried" not in text


def test_unknown_faults_and_methods_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "faults", "--only", "gyros-*"]) == 1
    assert "no fault fits gyros-*" in capsys.readouterr().err
    assert main(["bench", "faults", "--methods", "gate"]) == 1
    assert "unknown method 'gate'" in capsys.readouterr().err


def test_walks_are_none_of_the_frozen_test_set() -> None:
    from gait.bench.courses import COURSES

    frozen = {course.seed for courses in COURSES.values() for course in courses}
    ours = {course.seed for course in fault_logs.WALKS} | {conditions.SEED}
    assert not frozen & ours
    assert [course.gait for course in fault_logs.WALKS] == ["trot", "bound", "pace", "pronk"]
    assert not fault_logs.is_file("walks") and fault_logs.is_file("walk.mcap")


# --- a day, in two seconds ------------------------------------------------------------------------------------------


def test_a_long_run_compares_update_with_run(sample: Log) -> None:
    (found,) = run_long(sample.slice(None, 3.0), ["gait-legs"], hours=9.0 / 3600.0)
    assert found.samples == 3 * 1499 and found.differing == 0 and found.not_finite == 0 and found.indefinite == 0
    assert found.stamp_error == 0.0 and found.orthonormality < 1e-12
    assert {row.name for row in found.rows()} >= {"long.gait-legs.memory_growth", "long.gait-legs.passed"}
    assert "gait-legs" in found.line()


# --- false alarms ---------------------------------------------------------------------------------------------------


def flagged(health: np.ndarray) -> Track:
    n = len(health)
    three, one, never = np.zeros((n, 3)), np.zeros((n, 1)), np.zeros(n, dtype=bool)
    return Track(np.arange(n) / 500.0, three, three, three, three, one, one, health, never, never)


def walked(contact: np.ndarray, speed: np.ndarray) -> Log:
    foot_vel = np.zeros((len(contact), 4, 3))
    foot_vel[:, 0, 0] = speed
    return make_log(count=len(contact), contact=contact, foot_vel_w=foot_vel)


def test_flags_with_a_cause_are_no_alarms() -> None:
    n = 5000
    contact, speed, health = np.ones((n, 4), dtype=bool), np.zeros(n), np.zeros(n, dtype=np.uint32)
    speed[1000:1100], contact[2000:2100] = 0.5, False
    health[1010:1050] |= np.uint32(Health.SLIP)
    health[2000:2140] |= np.uint32(Health.NO_MEASUREMENT)
    health[0:400] |= np.uint32(Health.STALE_LEG)  # of the first second
    assert not any(count_alarms(flagged(health), walked(contact, speed))[0].values())
    health[3000:3010] |= np.uint32(Health.SLIP)
    health[3500:3530] |= np.uint32(Health.NO_MEASUREMENT)
    health[4000:4005] |= np.uint32(Health.STALE_LEG | 1 << 16)
    health[4100:4105] |= np.uint32(Health.STALE_LEG | 1 << 16)
    count, lasted = count_alarms(flagged(health), walked(contact, speed))
    assert {name: number for name, number in count.items() if number} == {
        "SLIP": 1, "NO_MEASUREMENT": 1, "STALE_LEG": 2
    }  # fmt: skip
    assert lasted["SLIP"] == pytest.approx(0.02) and lasted["STALE_LEG"] == pytest.approx(0.02)


def test_brief_runs_are_left_out() -> None:
    mask = np.array([1, 1, 0, 1, 1, 1, 0, 1], dtype=bool)
    assert longer_than(mask, 2).tolist() == [False, False, False, True, True, True, False, False]


def test_clean_walks_are_counted_and_kept(tmp_path: Path) -> None:
    needs.package("mujoco")
    course = Course("clean-trot-flat", "trot", "flat", 66001, runs=1, seconds=3.0)
    for _ in range(2):
        hour = clean_hour(tmp_path, ["gait-legs", "iekf"], courses=[course])
        assert hour.methods == ["gait-legs", "iekf"] and not hour.unwalkable
        assert hour.of("iekf")[0].seconds == pytest.approx(3.0, abs=0.01)
    assert {row.name for row in hour.rows()} >= {"clean.gait-legs.alarms", "clean.iekf.walked"}
    assert "false alarms in 0 minutes" in hour.lines()[0]
    (tmp_path / "clean-pronk-ice.unwalkable").touch()
    lost = clean_hour(tmp_path, ["iekf"], courses=[Course("clean-pronk-ice", "pronk", "ice", 1, 1, 3.0)])
    assert lost.unwalkable == ("pronk on ice",) and not lost.alarms


def test_an_hour_covers_every_gait_and_terrain() -> None:
    needs.package("mujoco")
    from gait.sim.world import TERRAINS

    courses = false_alarms.clean_courses()
    assert {(one.gait, one.terrain) for one in courses} == {(g, t) for g in false_alarms.GAITS for t in TERRAINS}
    assert len({one.seed for one in courses}) == len(courses)
    assert sum(one.runs * (one.seconds - 1.0) for one in courses) > 3600.0


# --- courses --------------------------------------------------------------------------------------------------------


def test_a_hand_follows_its_script() -> None:
    needs.package("mujoco")
    from gait.bench.faults.scripted_hand import SCRIPTS, Move, ScriptedSimulation, script_config

    script = (
        Move(1.0, held=False), Move(1.0, height=0.2, legs="swim"), Move(1.0, height=0.2, velocity=(1.0, 0.0)),
        Move(2.0, down=True, legs="hold"), Move(1.0, held=False, legs="hold"),
    )  # fmt: skip
    config = script_config("carried", terrain="flat")
    assert config.seconds == pytest.approx(sum(move.seconds for move in SCRIPTS["carried"]) - 1.5)
    simulation = ScriptedSimulation(gait_config(config), 1, script)
    while not simulation.done:
        simulation.step()
    raw = simulation.episode()
    at = {time: int(time * 1000) for time in (0.9, 2.0, 2.9, 5.9)}
    assert raw.contact[at[0.9]].all() and not raw.contact[at[2.0]].any() and raw.contact[at[5.9]].all()
    assert raw.pos_w[at[2.0], 2] - raw.pos_w[at[0.9], 2] == pytest.approx(0.2, abs=0.1)
    assert raw.vel_w[at[2.9], 0] == pytest.approx(1.0, abs=0.05)
    assert abs(raw.vel_w[at[5.9]]).max() < 0.1


def gait_config(config: object) -> object:
    from dataclasses import replace

    return replace(config, seconds=6.0, settle=0.0)  # type: ignore[type-var]


def test_a_course_is_simulated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.package("mujoco")
    monkeypatch.setattr(conditions, "SLOW", 3.0)
    first = conditions.course_log("slow", tmp_path)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = conditions.course_log("slow", tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files and len(files) == 1
    assert first.duration == again.duration == pytest.approx(3.0, abs=0.01)
    assert first.vel_w is not None and np.linalg.norm(first.vel_w.mean(0)) < 0.1


def test_the_time_off_the_ground_is_found() -> None:
    contact = np.ones((5000, 4), dtype=bool)
    contact[1600:2600] = False
    contact[2000] = True
    assert conditions.off_the_ground(make_log(count=5000, contact=contact)) == (3.2, 5.198)


def test_names_stand_for_logs(tmp_path: Path) -> None:
    assert list(logs_of(["sample", "sample"], tmp_path)) == ["sample"]
    with pytest.raises(gait.GaitError):
        logs_of(["nothing.npz"], tmp_path)
    assert any(fault.hidden for fault in FAULTS)


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_has_figures_verdicts_and_reasons(sample: Log) -> None:
    import faults as benchmark  # type: ignore[import-not-found]

    rows = run_faults({"sample": sample, "trot": sample}, ["iekf"], ["none", "leg-lost", "gap-30s"])
    text = benchmark.method_section(rows, "iekf")
    assert "- sample: iekf passes 2 of 2 faults" in text
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| `")}
    assert set(lines) == {"`none`", "`leg-lost`"} and lines["`leg-lost`"].count("|") == 14
    assert "**ok**" in lines["`none`"] and lines["`none`"].split("|")[10].strip() == "ok"
    assert all(f"`{fault.id}`" in benchmark.fault_list() for fault in FAULTS)
    assert "`cart`" in benchmark.hidden_section() and "constant velocity" in benchmark.hidden_section()
    page = benchmark.PAGE.read_text(encoding="utf-8")
    assert all(page.count(f"<!-- faults-{name}:begin -->") == 1 for name in (*benchmark.SECTIONS, "long"))
