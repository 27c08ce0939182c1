"""Texts of any length in HDF5 files, read by a process of its own with limits.

The length of such a text is a number in the file, for which the HDF5 library makes room without comparing it with what
is there: 23 kB claim gigabytes. No function of the library tells it beforehand, so the system sets the limit.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MEMORY = 256 << 20
"""Bytes beyond what the process needs to start."""
SECONDS = 1
"""Of the processor: a loaded machine is slow, not wrong."""
PATIENCE = 120.0
"""Seconds of the clock."""
Place = tuple[str, str]
"""Path of a dataset or group, and the name of its attribute; empty for the values of the dataset."""


def read_texts(path: Path, places: list[Place]) -> list[list[str]]:
    """The texts at each place; none where they cannot be read within the limits.

    Args:
        path: an HDF5 file.
        places: where they are.
    """
    if not places:
        return []
    command = [sys.executable, __file__, str(path.absolute())]
    try:
        done = subprocess.run(
            command, input=json.dumps(places).encode(), capture_output=True, timeout=PATIENCE, check=True
        )
        found: list[list[str]] = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError):
        return [[] for _ in places]
    return found


def _read(file: Any, place: Place) -> list[str]:
    import numpy as np

    key, name = place
    item = file[key] if key else file
    value = item.attrs[name] if name else item[()]
    flat = np.atleast_1d(np.asarray(value, dtype=object)).ravel().tolist()
    return [one.decode("utf-8", errors="replace") if isinstance(one, bytes) else str(one) for one in flat]


def _main(path: str) -> None:
    import resource

    import h5py

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    spent = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + SECONDS, spent + SECONDS))
    with h5py.File(path, "r") as file:
        print(json.dumps([_read(file, tuple(place)) for place in json.load(sys.stdin)]))


if __name__ == "__main__":
    _main(sys.argv[1])
