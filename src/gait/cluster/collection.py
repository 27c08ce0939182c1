"""`gait sim --ray`: episodes as Ray tasks, to a shared folder or object storage.

The files are those of a local collection, byte for byte. Tasks write episodes; this process alone writes the index,
once, at the end. Meanwhile the lines of finished episodes go to small files in `journal/`, a few seconds' worth each,
so that a crash costs at most those seconds: the same command reads the journal and continues. Two runs
that write to one folder in object storage, where there is no lock, write the same bytes.
"""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gait.cluster.luggage import Luggage, pack, unpack
from gait.cluster.tasks import NodeResult, connected, load_ray, spread
from gait.errors import GaitError, os_errors
from gait.io.atomic import sweep_files
from gait.io.locks import folder_lock
from gait.io.storage import Storage
from gait.sim.collect import CollectionProgress, OnProgress, collection_settings, record_episode
from gait.sim.plan import CollectConfig
from gait.sim.store import (
    DIGESTS,
    FORMAT,
    INDEX,
    SETTINGS,
    compare_settings,
    index_text,
    is_whole,
    read_index,
    read_settings,
)  # fmt: skip

JOURNAL = "journal"
FLUSH_SECONDS = 5.0
"""Time between two files of the journal."""
CHECKED = 64
"""Episodes that one task holds against the index."""


class Ledger:
    """What is finished of a collection: its index, and its journal while it grows."""

    def __init__(self, place: str, settings: Mapping[str, Any]) -> None:
        """Open a folder or make one; one that was made with other settings is refused."""
        self.storage = Storage(place)
        self._wanted = {"format": FORMAT, **settings}
        self._present = read_settings(place)
        if self._present is not None:
            compare_settings(place, self._present, self._wanted)
        elif INDEX in self.storage.names():
            raise GaitError(f"{place} has an {INDEX} but no {SETTINGS}: choose another folder")
        self.parts = [f"{JOURNAL}/{name}" for name in self.storage.names(JOURNAL)]
        self.rows = {int(row["episode"]): row for row in read_index(place, missing_ok=True)}
        """The finished episodes by number."""
        for part in self.parts:
            lines = self.storage.read(part).decode().splitlines()
            self.rows.update({int(row["episode"]): row for row in map(json.loads, lines)})
        self._fresh: list[dict[str, Any]] = []
        self._flushed = time.monotonic()

    def begin(self, whole: set[int]) -> None:
        """Forget the episodes that are lost or damaged, and write the settings."""
        if lost := set(self.rows) - whole:
            self.rows = {number: self.rows[number] for number in whole}
            if lost & {int(row["episode"]) for row in read_index(self.storage.place, missing_ok=True)}:
                # A reader of the index must not be sent meanwhile to a file that is not there.
                self.storage.write(INDEX, index_text(self.rows).encode())
        if self._present != json.loads(json.dumps(self._wanted)):
            self.storage.write(SETTINGS, (json.dumps(self._wanted, indent=2) + "\n").encode())

    def add(self, row: dict[str, Any]) -> None:
        """Enter an episode whose files are written; it is safe within `FLUSH_SECONDS`."""
        self.rows[int(row["episode"])] = row
        self._fresh.append(row)
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            name = f"{JOURNAL}/{time.time_ns()}-{secrets.token_hex(4)}.jsonl"
            self.storage.write(name, "".join(json.dumps(one) + "\n" for one in self._fresh).encode())
            self.parts.append(name)
            self._fresh, self._flushed = [], time.monotonic()

    def finish(self) -> None:
        """Write the index, after which the journal is not needed."""
        self.storage.write(INDEX, index_text(self.rows).encode())
        self.storage.remove(self.parts)


def record_remotely(luggage: Luggage, place: str, number: int) -> tuple[dict[str, Any], float]:
    """Simulate one episode on a node and write it to where all are.

    Returns:
        The episode's line in the index, and the seconds simulated for it.
    """
    config, storage, name = unpack(luggage), Storage(place), f"episode_{number:05d}.npz"
    if not storage.remote:
        return record_episode(config, number, Path(place) / name)
    with tempfile.TemporaryDirectory(prefix="gait-") as here:
        row, simulated = record_episode(config, number, Path(here) / name)
        # The robot first: the Log is of no use without it.
        for key, _ in reversed(DIGESTS):
            if key in row:
                storage.write(row[key], Path(here, row[key]).read_bytes())
    return row, simulated


def whole_episodes(place: str, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Which episodes' files are there and as they were written."""
    storage = Storage(place)
    return [int(row["episode"]) for row in rows if is_whole(storage, row)]


def collect_on_cluster(
    config: CollectConfig, place: str, address: str = "", processors: int = 1, on_progress: OnProgress | None = None
) -> CollectionProgress:
    """Record the episodes of a collection that a folder does not hold yet, on a Ray cluster.

    The files are the same as those of `gait.sim.collect.collect`. An interrupt ends the tasks; finished episodes are
    safe, and the same call goes on from there.

    Args:
        config: what to record.
        place: a folder that all nodes see, or a URL of object storage.
        address: of the cluster; see `connected`.
        processors: of the cluster that is started where none runs.
        on_progress: called at the start and after every episode.
    """
    load_ray()  # before anything is written
    settings, luggage = collection_settings(config), pack(config)
    storage = Storage(place)
    if not storage.remote:
        place = str(Path(place).absolute())
        with os_errors(f"cannot use {place} for a collection"):
            Path(place).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if not storage.remote:
            stack.enter_context(folder_lock(Path(place)))
            sweep_files(Path(place))
        ledger = Ledger(place, settings)
        ray = stack.enter_context(connected(address, processors))
        return _Collection(ray, config, ledger, on_progress).run(luggage)


class _Collection:
    """A collection while it runs."""

    def __init__(self, ray: Any, config: CollectConfig, ledger: Ledger, on_progress: OnProgress | None) -> None:
        self._ray, self._config, self._ledger, self._tell = ray, config, ledger, on_progress
        self._nodes: Counter[str] = Counter()
        self._failure, self._resumed = "", 0

    def run(self, luggage: Luggage) -> CollectionProgress:
        ledger, episodes = self._ledger, self._config.episodes
        self._check()
        self._resumed, self._started = sum(number < episodes for number in ledger.rows), time.perf_counter()
        sums = [(row["falls"], row["seconds"]) for row in ledger.rows.values()]
        self._falls, self._recorded = sum(one for one, _ in sums), sum(one for _, one in sums)
        self._report()
        # In the object store once: every node fetches it once, not every task.
        shared = self._ray.put(luggage)
        missing = (number for number in range(episodes) if number not in ledger.rows)
        try:
            spread(
                self._ray,
                record_remotely,
                ((number, (shared, ledger.storage.place, number)) for number in missing),
                self._take,
            )
        except GaitError as error:
            self._failure = str(error)
        finally:
            ledger.finish()
        if self._failure:
            raise GaitError(
                f"{self._failure}; {len(ledger.rows)} of {episodes} episodes are safe in {ledger.storage},"
                " and the same command goes on from there"
            )
        return self._report()

    def _check(self) -> None:
        """Hold what is there against the index, on the cluster: a large collection is more than one machine reads."""
        rows, whole = list(self._ledger.rows.values()), set[int]()

        def pieces() -> Iterator[tuple[int, tuple[Any, ...]]]:
            for first in range(0, len(rows), CHECKED):
                yield first, (self._ledger.storage.place, rows[first : first + CHECKED])

        def take(_: int, result: NodeResult) -> bool:
            if result.failure:
                raise GaitError(result.failure)
            whole.update(result.value)
            return True

        spread(self._ray, whole_episodes, pieces(), take)
        self._ledger.begin(whole)

    def _take(self, number: int, result: NodeResult) -> bool:
        if result.failure:
            self._failure = self._failure or result.failure
            return False
        row, simulated = result.value
        self._ledger.add(row)
        self._falls, self._recorded = self._falls + row["falls"], self._recorded + row["seconds"]
        self._nodes[result.node] += simulated
        self._report()
        return True

    def _report(self) -> CollectionProgress:
        progress = CollectionProgress(
            len(self._ledger.rows), self._config.episodes, self._resumed, self._falls, self._recorded,
            sum(self._nodes.values()), time.perf_counter() - self._started, dict(self._nodes),
        )  # fmt: skip
        if self._tell is not None:
            self._tell(progress)
        return progress
