"""Files that are cut short, damaged or foreign: one sentence, or what is left of them with a warning."""

import random
import tracemalloc
from pathlib import Path

import pytest
from bags import Make, messages_of, smooth_walk, write_plain_mcap, write_ros1, write_ros2

from gait import GaitError
from gait.io import read

ROWS = 60


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of a small bag of each kind, in many chunks."""
    folder, log = tmp_path_factory.mktemp("whole"), smooth_walk(ROWS / 500.0)
    messages, messages1 = messages_of(log, Make()), messages_of(log, Make(True))
    paths = {
        "ros1": write_ros1(folder / "a.bag", messages1, chunk=1 << 14),
        "sqlite3": write_ros2(folder / "b", messages) / "b.db3",
        "mcap": write_ros2(folder / "c", messages, mcap=True) / "c.mcap",
        "plain": write_plain_mcap(folder / "d.mcap", messages, chunk=1 << 14),
    }
    return {name: path.read_bytes() for name, path in paths.items()}


def outcome(path: Path) -> str:
    """What reading comes to: an error of one sentence, or a log; anything else is a failure."""
    try:
        reading = read(path)
    except GaitError as error:
        assert str(error) and "\n" not in str(error)
        return "error"
    assert 2 <= len(reading.log) <= ROWS
    warned = any("cut short" in note or "damaged" in note or "cannot be read" in note for note in reading.notes)
    if len(reading.log) < ROWS:
        assert warned or any("left out" in note for note in reading.notes), reading.notes
    return "warned" if warned else "whole"


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap", "plain"])
def test_a_bag_that_is_cut_anywhere_is_shorter_or_refused(kind: str, bags: dict[str, bytes], tmp_path: Path) -> None:
    whole, path = bags[kind], tmp_path / "cut.bag"
    path.write_bytes(whole)
    assert outcome(path) == "whole"
    rng = random.Random(0)
    cuts = sorted({*range(0, 200, 7), *(rng.randrange(200, len(whole)) for _ in range(40))})
    seen = set()
    for cut in cuts:
        path.write_bytes(whole[:cut])
        seen.add(outcome(path))
    assert "error" in seen
    if kind in ("ros1", "plain"):
        assert "warned" in seen, "what came before the cut is kept"


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap", "plain"])
def test_flipped_bytes_do_not_trip_the_reader(kind: str, bags: dict[str, bytes], tmp_path: Path) -> None:
    path, rng = tmp_path / "flipped.bag", random.Random(1)
    for _ in range(30):
        damaged = bytearray(bags[kind])
        for _ in range(rng.choice((1, 3, 20))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        outcome(path)


@pytest.mark.parametrize("kind", ["sqlite3", "mcap"])
def test_a_folder_with_a_broken_metadata_is_read_by_its_files(
    kind: str, bags: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / f"a.{'db3' if kind == 'sqlite3' else 'mcap'}").write_bytes(bags[kind])
    for text in (
        "",
        "rosbag2_bagfile_information: [",
        "a: 1",
        "rosbag2_bagfile_information:\n  relative_file_paths: 3",
    ):
        (tmp_path / "metadata.yaml").write_text(text)
        reading = read(tmp_path)
        assert len(reading.log) == ROWS
        assert "metadata.yaml cannot be read, so the files are taken by name" in reading.notes


def test_what_is_no_bag_is_told(tmp_path: Path) -> None:
    import sqlite3

    with pytest.raises(GaitError, match="is a folder without a bag in it: give a file, or a folder with metadata.yaml"):
        read(tmp_path)
    with sqlite3.connect(tmp_path / "other.db3") as base:
        base.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(GaitError, match="is a damaged bag, or a database that is no bag"):
        read(tmp_path / "other.db3")
    (tmp_path / "note.mcap").write_bytes(b"\x89MCAP0\r\n")
    with pytest.raises(GaitError, match="has no imu"):
        read(tmp_path / "note.mcap")
    (tmp_path / "x.zst").write_bytes(b"\x28\xb5\x2f\xfd rubbish")
    with pytest.raises(GaitError, match="is no bag"):
        read(tmp_path / "x.zst")


@pytest.mark.parametrize("kind", ["ros1", "mcap", "plain"])
@pytest.mark.parametrize("claim", [2**31, 2**32 - 1, 2**62])
def test_a_record_that_claims_more_bytes_than_there_are_costs_no_memory(
    kind: str, claim: int, bags: dict[str, bytes], tmp_path: Path
) -> None:
    whole, path = bags[kind], tmp_path / "forged.bag"
    lengths = _ros1_lengths(whole) if kind == "ros1" else _mcap_lengths(whole)
    for place, width in lengths[:: max(1, len(lengths) // 5)]:
        forged = bytearray(whole)
        forged[place : place + width] = min(claim, 2 ** (8 * width) - 1).to_bytes(width, "little")
        path.write_bytes(forged)
        tracemalloc.start()
        found = outcome(path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**26, (place, peak)
        # A chunk of ROS 1 that claims all the rest of the file may hold just that.
        assert kind == "ros1" or found in ("warned", "error")


def _mcap_lengths(whole: bytes) -> list[tuple[int, int]]:
    """Place and width of the length of each record before the index."""
    at, found = 8, []
    while whole[at] != 15:
        found.append((at + 1, 8))
        at += 9 + int.from_bytes(whole[at + 1 : at + 9], "little")
    return found


def _ros1_lengths(whole: bytes) -> list[tuple[int, int]]:
    """The same for headers and data."""
    at, found = 13, []
    while at < len(whole):
        found.append((at, 4))
        at += 4 + int.from_bytes(whole[at : at + 4], "little")
    return found
