"""Files: exact round trips, formats known by content, and one sentence for each way a file can be wrong."""

import json
import zipfile
from pathlib import Path

import needs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from log_samples import make_log, make_trajectory

import gait
from gait import GaitError, Log, Trajectory
from gait.io import clock, open_any, open_log, open_trajectory, read_csv, save
from gait.io.atomic import atomic_path

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.lists(
    st.floats(-1e9, 4e9, allow_nan=False) | st.integers(0, 2**52).map(lambda ns: ns / 1e9),
    min_size=2,
    max_size=6,
    unique=True,
).map(sorted)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Any Log of a robot with one or two legs, with any finite values."""
    t = np.array(draw(TIMES))
    legs, joints = draw(st.integers(1, 2)), draw(st.integers(1, 3))

    def array(*shape: int) -> np.ndarray:
        return draw(hnp.arrays(np.float64, (len(t), *shape), elements=FINITE))

    def perhaps(*shape: int) -> np.ndarray | None:
        return array(*shape) if draw(st.booleans()) else None

    return Log(
        t=t,
        gyro=array(3),
        accel=array(3),
        q=array(joints),
        dq=array(joints),
        tau=perhaps(joints),
        contact=draw(st.none() | hnp.arrays(np.bool_, (len(t), legs))),
        foot_vel_w=perhaps(legs, 3),
        robot=draw(st.text(max_size=8)),
        leg_names=["left", "right"][:legs],
        joint_names=["a.b", "ü", "c/d"][:joints],
        source=draw(st.text(max_size=8)),
    )


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_any_log_survives_a_file_to_the_last_bit(ending: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("round") / f"log.{ending}"

    @settings(deadline=None, max_examples=100)
    @given(logs())
    def there_and_back(log: Log) -> None:
        save(log, path)
        assert open_log(path) == log

    there_and_back()


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_full_records_survive(ending: str, tmp_path: Path) -> None:
    for record in (make_log(), make_trajectory()):
        path = tmp_path / f"record.{ending}"
        save(record, path)
        assert open_any(path) == record
    log, path = make_log(t=np.arange(50) * 0.002), tmp_path / f"log.{ending}"
    save(log, path)
    assert gait.open_log(path) == log, "stamps between nanoseconds are kept too"


def test_methods_write_and_read(tmp_path: Path) -> None:
    log, path = make_log(), make_trajectory()
    log.save(tmp_path / "a.npz")
    log.to_csv(tmp_path / "a.csv")
    path.save(tmp_path / "b.npz")
    path.to_csv(tmp_path / "b.csv")
    path.to_tum(tmp_path / "b.tum")
    assert Log.load(tmp_path / "a.npz") == log == Log.load(tmp_path / "a.csv")
    assert Trajectory.load(tmp_path / "b.npz") == path == Trajectory.load(tmp_path / "b.csv")
    assert len(Trajectory.load(tmp_path / "b.tum")) == len(path)


@pytest.mark.parametrize("record", [make_log(), make_trajectory()], ids=["log", "trajectory"])
def test_the_name_asks_for_the_format_whoever_saves(record: Log | Trajectory, tmp_path: Path) -> None:
    for ending in ("npz", "NPZ", "csv", "tum", "txt"):
        ours, theirs = tmp_path / f"ours.{ending}", tmp_path / f"theirs.{ending}"
        record.save(ours)
        save(record, theirs)
        assert type(open_any(ours)) is (Trajectory if ending in ("tum", "txt") else type(record))
        if ending.lower() != "npz":  # a zip holds the time of writing
            assert ours.read_bytes() == theirs.read_bytes()
    before = sorted(tmp_path.iterdir())
    for name in ("noext", "record.mp3", ".npz"):
        for write in (record.save, lambda path: save(record, path)):
            with pytest.raises(GaitError, match=r"end it with one of .npz, .mcap, .csv, .tum, .txt"):
                write(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_only_npz_is_compressed(tmp_path: Path) -> None:
    log = make_log(gyro=np.zeros((50, 3)))
    log.save(tmp_path / "small.npz", compress=True)
    log.save(tmp_path / "large.npz")
    assert open_log(tmp_path / "small.npz") == log
    assert (tmp_path / "small.npz").stat().st_size < (tmp_path / "large.npz").stat().st_size
    with pytest.raises(GaitError, match=r"cannot compress .*log.csv: only .npz"):
        log.save(tmp_path / "log.csv", compress=True)
    assert not (tmp_path / "log.csv").exists()


def test_the_native_file_is_plain_numpy_with_nanoseconds(tmp_path: Path) -> None:
    make_log().save(tmp_path / "log.npz")
    with np.load(tmp_path / "log.npz", allow_pickle=False) as archive:
        assert archive["t_ns"].dtype == np.int64
        np.testing.assert_array_equal(archive["t_ns"], np.arange(50) * 2_000_000)
        assert "t" not in archive.files, "seconds are stored only where nanoseconds do not give them back"
        assert json.loads(str(archive["header"]))["gait"] == "log"
    make_log(t=np.arange(50) * 0.002).save(tmp_path / "log.npz")
    with np.load(tmp_path / "log.npz") as archive:
        assert "t" in archive.files


@settings(deadline=None)
@given(st.integers(-(2**62), 2**62))
def test_nanoseconds_and_seconds_agree(ns: int) -> None:
    seconds = clock.from_ns(np.array([ns]))
    # What float64 can tell apart comes back; beyond 104 days the nearest stamp does.
    back = int(clock.to_ns(seconds)[0])
    assert abs(back - ns) <= (0 if abs(ns) < 2**52 else int(np.spacing(abs(seconds[0])) * 1e9))
    assert clock.from_ns(np.array([back]))[0] == seconds[0]


def test_names_of_csv_columns(tmp_path: Path) -> None:
    make_log(2).to_csv(tmp_path / "log.csv")
    lines = (tmp_path / "log.csv").read_text().splitlines()
    names = lines[1].split(",")
    assert names[:4] == ["t_ns", "gyro.x", "gyro.y", "gyro.z"]
    assert {"q.FR_hip_joint", "contact.RL", "quat_wb_wxyz.w", "foot_vel_w.FL.z"} <= set(names)
    assert len(lines) == 4 and len(names) == 1 + 6 + 48 + 8 + 10 + 12
    make_trajectory(2).to_csv(tmp_path / "path.csv")
    names = (tmp_path / "path.csv").read_text().splitlines()[1].split(",")
    assert {"vel_b.y", "vel_cov.x.z", "pose_cov.x.rz", "health"} <= set(names)


def plain_csv(path: Path, names: list[str], rows: int = 3) -> Path:
    values = [[f"{0.002 * k:.3f}" if name in ("t", "time") else f"{k}.5" for name in names] for k in range(rows)]
    path.write_text("\n".join([",".join(names), *(",".join(row) for row in values)]) + "\n")
    return path


JOINTS = ["RL_hip_joint", "FR_hip_joint"]
PLAIN = ["t", *(f"{name}.{axis}" for name in ("gyro", "accel") for axis in "xyz")]
PLAIN += [f"{name}.{joint}" for name in ("q", "dq") for joint in JOINTS]


def test_a_csv_from_elsewhere(tmp_path: Path) -> None:
    log = open_log(plain_csv(tmp_path / "log.csv", PLAIN))
    assert log.joint_names == tuple(JOINTS) and log.robot == "go1" and log.leg_names == ("FR", "FL", "RR", "RL")
    assert log.gyro[2].tolist() == [2.5, 2.5, 2.5] and log.t.tolist() == [0.0, 0.002, 0.004]

    renamed = ["time", "wx", "wy", "wz", *PLAIN[4:], "note"]
    theirs = plain_csv(tmp_path / "theirs.csv", renamed)
    theirs.write_text(theirs.read_text().replace("2.5\n", "windy\n"))
    columns = {"time": "t", "wx": "gyro.x", "wy": "gyro.y", "wz": "gyro.z", "note": None}
    assert read_csv(theirs, columns=columns) == log
    with pytest.raises(GaitError, match="no column 'w_x': did you mean wx"):
        read_csv(theirs, columns={"w_x": "gyro.x"})
    with pytest.raises(GaitError, match="the column 'gyro.x' twice"):
        read_csv(theirs, columns={**columns, "note": "gyro.x"})
    with pytest.raises(GaitError, match="unknown robot 'rex'"):
        read_csv(tmp_path / "log.csv", robot="rex")


def test_tum_has_enough_decimals_and_scalar_last(tmp_path: Path) -> None:
    path = make_trajectory(t=1.7e9 + np.arange(50) / 256.0)
    path.to_tum(tmp_path / "path.tum")
    rows = [line.split() for line in (tmp_path / "path.tum").read_text().splitlines() if line[0] != "#"]
    assert all(len(row) == 8 and all(len(value.split(".")[1]) >= 9 for value in row) for row in rows)
    assert float(rows[7][7]) == pytest.approx(path.quat_wb_wxyz[7, 0], abs=1e-14)
    again = Trajectory.from_tum(tmp_path / "path.tum")
    np.testing.assert_array_equal(again.t, path.t)
    np.testing.assert_allclose(again.pos_w, path.pos_w, atol=1e-14)
    np.testing.assert_allclose(again.quat_wb_wxyz, path.quat_wb_wxyz, atol=1e-14)
    np.testing.assert_allclose(again.vel_w, np.gradient(path.pos_w, path.t, axis=0), atol=1e-9)


def test_tum_of_a_log_is_its_truth_and_evo_reads_it(tmp_path: Path) -> None:
    file_interface = needs.package("evo.tools.file_interface")
    log = make_log()
    save(log, tmp_path / "truth.tum")
    theirs = file_interface.read_tum_trajectory_file(tmp_path / "truth.tum")
    np.testing.assert_allclose(theirs.positions_xyz, log.pos_w, atol=1e-14)
    np.testing.assert_allclose(theirs.orientations_quat_wxyz, log.quat_wb_wxyz, atol=1e-14)
    with pytest.raises(GaitError, match="the log has no quat_wb_wxyz"):
        save(make_log(quat_wb_wxyz=None), tmp_path / "none.tum")


def test_the_content_tells_the_format(tmp_path: Path) -> None:
    log, path = make_log(), make_trajectory()
    for record, ending in ((log, "npz"), (log, "csv"), (path, "npz"), (path, "tum")):
        save(record, tmp_path / f"file.{ending}")
        odd = (tmp_path / f"file.{ending}").rename(tmp_path / "file.dat")
        assert type(open_any(odd)) is type(record)
    with pytest.raises(GaitError, match="holds a Trajectory, not a Log"):
        open_log(odd)
    save(log, tmp_path / "file.npz")
    (tmp_path / "file.npz").rename(odd)
    with pytest.raises(GaitError, match="holds a Log, not a Trajectory"):
        open_trajectory(odd)


# Files that are wrong


def refused(path: Path, message: str) -> None:
    with pytest.raises(GaitError, match=message) as caught:
        open_any(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_missing_folder_empty_and_foreign(tmp_path: Path) -> None:
    refused(tmp_path / "none.npz", "there is no file")
    refused(tmp_path, "is a folder")
    file = tmp_path / "file"
    for content in (b"", b" \n\n"):
        file.write_bytes(content)
        refused(file, "is empty")
    foreign = {
        b"\x89PNG\r\n\x1a\n\x00\x00": "in no format that gait knows",
        b"\x93NUMPY\x01\x00": "in no format that gait knows",
        b"hello world": "in no format that gait knows",
        b"1 2 3\n": "in no format that gait knows",
        b'{"a": 1, "b": 2}': "none of gait's columns",
        b"PK but no zip, really": "damaged or cut short",
        b"# only a comment\n": "in no format that gait knows",
    }
    for content, message in foreign.items():
        file.write_bytes(content)
        refused(file, message)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(tmp_path / "loop", "cannot read")


def test_foreign_and_altered_npz(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    np.savez(path, a=np.zeros(3), b=np.array([{}], dtype=object))
    refused(path, "nothing in it looks like gyro")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("photo.png", b"PNG")
    refused(path, "nothing in it looks like gyro")

    def rewritten(**changes: object) -> None:
        make_log().save(path)
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        arrays.update({name: np.asarray(value) for name, value in changes.items()})
        np.savez(path, **{name: value for name, value in arrays.items() if value.dtype != object})

    head = {"gait": "log", "version": 1, "robot": "go1", "source": ""}
    cases = [
        ({"header": "nonsense"}, "header that gait did not write"),
        ({"header": json.dumps({**head, "gait": "cake"})}, "header that gait did not write"),
        ({"header": json.dumps({**head, "version": 2})}, "layout version 2, this gait reads 1: upgrade"),
        ({"header": json.dumps({**head, "colour": "red"})}, "did not write .at 'colour'"),
        ({"header": json.dumps({**head, "leg_names": "FR"})}, "did not write .at 'leg_names'"),
        ({"header": json.dumps({**head, "robot": "rex"})}, "unknown robot 'rex'"),
        ({"odometer": np.zeros(50)}, "Log has no field 'odometer'"),
        ({"gyro": np.zeros((50, 4))}, "field gyro has shape"),
        ({"gyro": np.full((50, 3), np.nan)}, "field gyro is nan at row 0"),
        ({"t_ns": np.zeros(50, dtype=np.int64)}, "field t does not increase at row 1"),
        ({"t_ns": np.arange(50.0)}, "t_ns must be one whole number"),
        ({"t_ns": None}, "has no time"),
        ({"dq": None}, "field dq is missing"),
    ]
    for changes, message in cases:
        rewritten(**changes)
        refused(path, message)


@settings(deadline=None, max_examples=60)
@given(left_out=st.integers(1, 60) | st.floats(0.001, 0.999))
def test_a_cut_file_is_refused_wherever_it_is_cut(left_out: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("cut")
    for ending in ("npz", "csv"):
        path = folder / f"log.{ending}"
        make_log(20).save(path) if ending == "npz" else make_log(20).to_csv(path)
        content = path.read_bytes()
        path.write_bytes(content[: -(left_out if isinstance(left_out, int) else int(left_out * len(content)))])
        with pytest.raises(GaitError):
            open_any(path)


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.npz"
    make_log().save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    refused(path, "damaged or cut short")


def test_wrong_lines_in_text_are_named(tmp_path: Path) -> None:
    path = plain_csv(tmp_path / "log.csv", PLAIN)
    good = path.read_text()
    cases = {
        good.replace("2.5", "two", 1): "line 4 has 'two' for gyro.x: a number is needed",
        good.replace("2.5", "", 1): "line 4 has '' for gyro.x",
        good.rsplit(",", 3)[0] + "\n": "line 4 has 8 values where 11 are due",
        good.replace("gyro.y", "gyro.q"): "has no column 'gyro.q'",
        good.replace("gyro.y", ""): "a column without a name",
        good.replace("gyro.y", "gyro.x"): "the column 'gyro.x' twice",
        good.replace("dq.RL_hip_joint", "dq.FL_hip_joint"): "has no column 'dq.FL_hip_joint'",
        good.split("\n")[0] + "\n": "has no rows of numbers",
        good.replace("2.5", "nan", 1): "field gyro is nan at row 2",
        good.replace("0.004", "0.001"): "field t does not increase at row 2",
        good.replace("t,gyro", "clock,gyro"): "no column 'clock'",
        good.replace("t,gyro", "t_ns,gyro"): "for t_ns: a number is needed",
    }
    for text, message in cases.items():
        path.write_text(text)
        refused(path, message)
    columns = [line.split(",") for line in good.splitlines()]
    path.write_text("\n".join(",".join(line[:2] + line[3:]) for line in columns))
    refused(path, "some columns of gyro but not gyro.y")
    path.write_bytes(good.encode() + b"\n" * 100_000 + b"\xff\xfe\x80,,,,,,")
    refused(path, r"is not UTF-8 text \(line 100005\): save it as comma-separated UTF-8")

    tum = tmp_path / "path.tum"
    make_trajectory(5).to_tum(tum)
    text = tum.read_text()
    tum.write_text(text[: text.rindex(" ")])
    refused(tum, "line 6 has 7 values where 8 are due")
    tum.write_text("0 0 0 0 0 0 0 2\n1 0 0 0 0 0 0 1\n")
    refused(tum, "length 2 at row 0")
    tum.write_text("0 0 0 0 0 0 0 1\n")
    refused(tum, "one pose")


def test_two_clocks_that_disagree_are_refused_by_row(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    names = ["t_ns", *PLAIN]

    def write(start: float, stamps: list[str]) -> None:
        rows = [f"{round((start + 0.002 * k) * 1e9)},{t}" + ",0.5" * (len(PLAIN) - 1) for k, t in enumerate(stamps)]
        path.write_text("\n".join([",".join(names), *rows]) + "\n")

    write(0.0, ["0", "0.0020005", "0.004"])
    assert open_log(path).t.tolist() == [0.0, 0.0020005, 0.004], "rounding is no disagreement, and t wins"
    write(0.0, ["0", "0.002", "0.0041"])
    refused(path, "tells two times at row 2, t = 0.004100000 s but t_ns = 4000000: remove the wrong column")
    write(1.7e9, ["0", "0.002", "0.004"])
    refused(path, "tells two times at row 0")
    write(0.0, ["0", "nan", "0.004"])
    refused(path, "field t is nan at row 1")
    make_log(t=np.arange(50) * 0.002).save(tmp_path / "log.npz")
    with np.load(tmp_path / "log.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(tmp_path / "log.npz", **{**arrays, "t": arrays["t"] + 1.0})
    refused(tmp_path / "log.npz", "tells two times at row 0")


def test_an_unknown_column_is_told_with_the_fix(tmp_path: Path) -> None:
    path = plain_csv(tmp_path / "log.csv", [*PLAIN, "note"])
    fix = r'remove it, or leave it out in Python with gait.io.read_csv\(path, columns=\{"note": None\}\)$'
    refused(path, "a Log has no column 'note': rename it as docs/log.md says, " + fix)
    assert len(read_csv(path, columns={"note": None})) == 3
    refused(plain_csv(path, ["gyr.x" if name == "gyro.x" else name for name in PLAIN]), "rename it to gyro.x")


def test_other_separators_and_encodings_are_told_with_the_fix(tmp_path: Path) -> None:
    path = plain_csv(tmp_path / "log.csv", [*PLAIN, "note"])
    text = path.read_text()
    fix = "save it as comma-separated UTF-8 with points in its numbers$"
    cases = {
        text.replace(",", ";").encode(): f"has semicolons between its columns: {fix}",
        text.replace(",", ";").replace(".5", ",5").encode(): f"has semicolons between its columns: {fix}",
        text.replace(",", "\t").encode(): f"has tabs between its columns: {fix}",
        text.encode("utf-16"): f"is UTF-16 text: {fix}",
        b"\xfe\xff" + text.replace(",", "\t").encode("utf-16-be"): f"is UTF-16 text: {fix}",
        text.replace("note", "größe").encode("latin-1"): rf"is not UTF-8 text \(line 1\): {fix}",
    }
    for content, message in cases.items():
        path.write_bytes(content)
        refused(path, message)
        with pytest.raises(GaitError, match=message):
            read_csv(path)

    # What is fine stays so: signs of other systems in UTF-8, and a trajectory with tabs.
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("note", "größe").replace("\n", "\r\n").encode())
    assert len(read_csv(path, columns={"größe": None})) == 3
    tum = tmp_path / "path.tum"
    make_trajectory(5).to_tum(tum)
    poses = tum.read_text()
    tum.write_text(poses.replace(" ", "\t"))
    assert len(open_trajectory(tum)) == 5
    tum.write_bytes("# Größe\n".encode("latin-1") + poses.encode())
    refused(tum, r"is not UTF-8 text \(line 1\): save it as UTF-8$")


# Writing


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.npz"
    make_log().save(path)
    before = path.read_bytes()

    def full_disk(file: object, **arrays: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(GaitError, match=r"cannot write .*log.npz: no space left"):
        make_log(seed=1).save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]

    with pytest.raises(KeyboardInterrupt), atomic_path(path) as temporary:
        temporary.write_bytes(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_writing_where_one_cannot(tmp_path: Path) -> None:
    log = make_log()
    folder = tmp_path / "folder.npz"
    folder.mkdir()
    with pytest.raises(GaitError, match="there is no folder"):
        log.save(tmp_path / "none" / "log.npz")
    with pytest.raises(GaitError, match="not a regular file"):
        log.save(folder)
    (tmp_path / "file").write_text("x")
    with pytest.raises(GaitError, match="cannot write"):
        log.save(tmp_path / "file" / "log.npz")
    with pytest.raises(GaitError, match="cannot write .* name too long"):
        log.save(tmp_path / ("x" * 300 + ".npz"))
    with pytest.raises(GaitError, match="do not fit a file"):
        make_log(t=np.arange(50) * 1e18).save(tmp_path / "log.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.npz"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "log.npz"
    link.symlink_to(tmp_path / "real" / "log.npz")
    make_log().save(link)
    assert link.is_symlink() and (tmp_path / "real" / "log.npz").is_file()
    assert open_log(link) == make_log()
