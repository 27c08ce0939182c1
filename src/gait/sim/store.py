"""A collection on disk: one Log file an episode, an index of them, and the settings that made them.

    collection.json     the settings; a folder holds one collection
    index.jsonl         one JSON object a line and episode, in order
    episode_00000.npz   a Log
    episode_00000.yaml  the robot of that episode, where every one has its own

Every file appears whole or not at all, and an episode counts once its line is in the index, so that whatever stops a
collection costs at most the episodes in flight.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gait.documents import load_json
from gait.errors import GaitError, os_errors, reason
from gait.io import open_log
from gait.io.atomic import atomic_path, sweep_files
from gait.io.storage import Storage, joined
from gait.log.log import Log
from gait.robot import Robot, robot_names

SETTINGS, INDEX = "collection.json", "index.jsonl"
FORMAT = 1
ROBOT_DIGEST = "robot_sha256"
"""Setting that distinguishes two robots of one name; collections made before there was one lack it."""
DIGESTS = (("file", "sha256"), ("robot_file", ROBOT_DIGEST))
"""The files of an episode, and the digests of their contents, as the index names them."""


def sha256(contents: bytes) -> str:
    """The digest by which files and robots are known."""
    return hashlib.sha256(contents).hexdigest()


class Store:
    """The folder of a collection, created or picked up where it was left."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Open the folder.

        Args:
            folder: made if it does not exist.
            settings: what makes the episodes. A folder made with other settings is refused, except that
                `episodes` may grow.
        """
        self.folder = folder
        wanted = {"format": FORMAT, **settings}
        with os_errors(f"cannot use {folder} for a collection"):
            folder.mkdir(parents=True, exist_ok=True)
            present = read_settings(folder)
            self.sweep()
        if present is not None:
            compare_settings(folder, present, wanted)
        elif (folder / INDEX).exists():
            raise GaitError(f"{folder} has an {INDEX} but no {SETTINGS}: choose another folder")
        listed = read_index(folder, missing_ok=True)
        self.rows = {int(row["episode"]): row for row in listed if is_whole(Storage(folder), row)}
        """The finished episodes by number."""
        if len(self.rows) < len(listed):
            # A reader of the index must not be sent meanwhile to a file that is lost or damaged.
            self._write(self.rows)
        if present != wanted:
            _write_text(folder / SETTINGS, json.dumps(wanted, indent=2) + "\n")

    def path(self, episode: int) -> Path:
        """Where the Log of an episode goes."""
        return self.folder / f"episode_{episode:05d}.npz"

    def add(self, row: dict[str, Any]) -> None:
        """Enter an episode whose file is written."""
        rows = {**self.rows, int(row["episode"]): row}
        self._write(rows)
        self.rows = rows

    def _write(self, rows: Mapping[int, Mapping[str, Any]]) -> None:
        _write_text(self.folder / INDEX, index_text(rows))

    def sweep(self) -> None:
        """Remove what a process that was stopped was in the middle of writing."""
        sweep_files(self.folder)


def index_text(rows: Mapping[int, Mapping[str, Any]]) -> str:
    """The index of episodes by number."""
    # In order of the episodes, however the work was shared.
    return "".join(json.dumps(rows[number]) + "\n" for number in sorted(rows))


def read_index(folder: str | Path, missing_ok: bool = False) -> list[dict[str, Any]]:
    """The finished episodes of a collection, by number. A last line that was cut off is left out.

    Args:
        folder: of the collection.
        missing_ok: return nothing, rather than raise, where there is no index.
    """
    path, rows = joined(folder, INDEX), dict[int, dict[str, Any]]()
    try:
        lines = Storage(folder).read(INDEX).decode().splitlines()
    except FileNotFoundError:
        if missing_ok:
            return []
        raise GaitError(f"{folder} is not a collection: it has no {INDEX}, run `gait sim --out {folder}`") from None
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not a text file"
        raise GaitError(f"cannot read {path}: {why}") from None
    for number, line in enumerate(lines, start=1):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            row = load_json(line)
            if isinstance(row["episode"], int) and isinstance(row["file"], str):
                rows[row["episode"]] = row
                continue
        if number < len(lines):
            raise GaitError(f"{path} is damaged at line {number}: remove that line and run the command again")
    return [rows[number] for number in sorted(rows)]


def write_robot(episode: Path, text: str) -> dict[str, str]:
    """Write the description of an episode's own robot beside it; returns what the index says about it."""
    path = episode.with_suffix(".yaml")
    _write_text(path, text)
    return {"robot_file": path.name, ROBOT_DIGEST: sha256(path.read_bytes())}


def robot_of_episode(path: str | Path, log: Log | None = None) -> Robot:
    """The robot whose recording a file is; its Log may be given if it has been read.

    An episode with a robot of its own has its description beside it, `episode_00012.yaml` beside `episode_00012.npz`:
    move or copy both. The robot of any other episode is the one that its Log names, or else that of its collection.
    """
    path = Path(path)
    log = open_log(path) if log is None else log
    name, beside = log.robot, path.with_suffix(".yaml")
    if beside.exists():
        robot = Robot.load(beside)
        if robot.name != name:
            raise GaitError(f"{beside} describes {robot.name}, but {path} is of {name}: put the two in place again")
        return robot
    if log.description or name in robot_names():
        return log.load_robot()
    settings = read_settings(path.parent) or {}
    if settings and not settings.get("random_robots") and Path(str(settings.get("robot"))).is_file():
        return Robot.load(str(settings["robot"]))
    raise GaitError(f"{path} is of the robot {name}, which gait does not know: put its description at {beside}")


def is_whole(folder: Storage, row: Mapping[str, Any]) -> bool:
    """Whether an episode's files are there and as they were written."""
    try:
        found = {digest: sha256(folder.read(row[name])) for name, digest in DIGESTS if name in row}
    except OSError:
        return False
    return all(row.get(digest, value) == value for digest, value in found.items())


def read_settings(folder: str | Path) -> dict[str, Any] | None:
    """The settings of a collection; None where there are none."""
    tree = None
    try:
        with contextlib.suppress(ValueError):
            tree = load_json(Storage(folder).read(SETTINGS).decode())
    except FileNotFoundError:
        return None
    if not isinstance(tree, dict):
        raise GaitError(f"{joined(folder, SETTINGS)} is damaged: choose another folder")
    return tree


def compare_settings(folder: str | Path, present: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse settings other than those a folder was made with, but for more episodes."""
    # Through JSON, so that a tuple equals the list it became.
    wanted = json.loads(json.dumps(wanted))
    for key in (*wanted, *present):
        old, new = present.get(key), wanted.get(key)
        longer = key == "episodes" and isinstance(old, int) and isinstance(new, int) and old < new
        if old == new or longer or (key == ROBOT_DIGEST and old is None):
            continue
        if key == ROBOT_DIGEST:
            raise GaitError(
                f"{folder} holds a collection of a robot that {wanted.get('robot')} no longer describes:"
                " choose another folder, or undo the changes of the robot's file"
            )
        raise GaitError(
            f"{folder} holds a collection with {key} = {old}, not {new}:"
            " choose another folder, or repeat its settings to go on with it"
        )


def _write_text(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
