"""Two runs into one folder, leftovers of the dead, and the link to the latest run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gait import GaitError
from gait.cli import main
from gait.io.atomic import OLD, atomic_path, folder_of_run, new_folder, point_latest, whole_folder
from gait.io.locks import NAME, folder_lock, try_lock
from gait.samples import SAMPLE


@contextmanager
def another(code: str, where: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process in the middle of a block."""
    text = f"import time\nfrom pathlib import Path\nfrom gait.io import atomic, locks\nwith {code}:\n    print('in', flush=True)\n    time.sleep(600)\n"  # noqa: E501
    process = subprocess.Popen([sys.executable, "-c", text], cwd=where, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "in\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_process_is_told_to_wait(tmp_path: Path) -> None:
    with another("locks.folder_lock(Path('.'))", tmp_path) as process:
        with (
            pytest.raises(
                GaitError, match=f"another gait .process {process.pid}. writes to .*: wait until it ends, or"
            ),
            folder_lock(tmp_path),
        ):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (tmp_path / NAME).exists(), "its file is left"
        with folder_lock(tmp_path):
            assert try_lock(tmp_path / "other") is not None
    assert not (tmp_path / NAME).exists()


def test_a_lock_does_not_survive_in_the_children_of_the_dead(tmp_path: Path) -> None:
    code = "locks.folder_lock(Path('.')), __import__('subprocess').Popen(['sleep', '20'], stdout=-3) as child"
    with another(code, tmp_path) as process:
        process.kill()
        process.wait()
        with folder_lock(tmp_path):
            pass


def test_two_runs_into_one_folder_are_kept_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with another("atomic.whole_folder(Path('out'), 'run')", tmp_path):
        assert main(["run", str(SAMPLE), "--out", str(tmp_path / "out")]) == 1
        assert "out: wait until it ends, or choose another folder with --out" in capsys.readouterr().err


def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    with another("atomic.whole_folder(Path('a'), 'run')", tmp_path) as dead:
        dead.kill()
        dead.wait()
        assert len(list(tmp_path.glob(".run.*.tmp"))) == 1
        with another("atomic.whole_folder(Path('b'), 'run')", tmp_path):
            (alive,) = tmp_path.glob(".run.*.tmp")
            with whole_folder(tmp_path / "c", "run") as folder:
                (folder.work / "x").write_text("1")
                assert alive.exists()
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["x"], "no lock in the result"
    with whole_folder(tmp_path / "d", "run"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir() if "lock" not in path.name) == ["c", "d"]


def test_old_temporaries_beside_a_file_are_removed(tmp_path: Path) -> None:
    old, young, other = (tmp_path / name for name in (".a.npz.0123abcd.tmp", ".a.npz.1123abcd.tmp", ".a.npz.mine.tmp"))
    for path in (old, young, other):
        path.write_text("half")
    os.utime(old, (time.time() - OLD - 10.0,) * 2)
    with atomic_path(tmp_path / "a.npz") as temporary:
        temporary.write_text("whole")
    assert not old.exists() and young.exists() and other.exists()


def test_a_run_that_fails_does_not_move_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with whole_folder(None, "run") as first:
        pass
    assert Path("runs/run/latest").readlink() == Path(first.final.name)
    with pytest.raises(RuntimeError), whole_folder(None, "run"):
        raise RuntimeError
    assert Path("runs/run/latest").readlink() == Path(first.final.name)
    assert not list(Path("runs/run").glob(".run.*"))
    later = new_folder(Path("runs/eval"))
    assert not Path("runs/eval/latest").exists(), "not before it is done"
    assert main(["eval", str(SAMPLE), "--methods", "nothing"]) == 1
    assert not Path("runs/eval/latest").is_symlink()
    point_latest(later)
    assert folder_of_run(later / "report.html", "eval") == later.absolute()
    assert folder_of_run(Path("runs/eval/report.html"), "eval") is None
