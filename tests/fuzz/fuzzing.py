"""Runs mutants in child processes, and starts the next one where a child dies or hangs."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SILENCE = 120.0
"""A child that says nothing for so long (s) hangs where no signal reaches it. A loaded machine is slow, not wrong."""
GOOD = ("ok", "refused")


def fuzz(name: str, first: int, end: int) -> list[dict[str, Any]]:
    """What came of each mutant of some numbers."""
    found: list[dict[str, Any]] = []
    while first < end:
        lines = list(_lines(name, first, end))
        found += [line for line in lines if "kind" in line]
        started = [line["start"] for line in lines if "start" in line]
        said = lines[-1].get("said", "") if lines else ""
        if not lines:
            # There are no more.
            break
        if not started:
            raise AssertionError(f"the fuzzer of {name} did not start: {said}")
        first = started[-1] + 1
        if not found or found[-1]["number"] != started[-1]:
            found.append({"number": started[-1], "kind": "crash", "detail": said, "mb": 0, "s": 0})
    return found


def _lines(name: str, first: int, end: int) -> Iterator[dict[str, Any]]:
    paths = [str(HERE), str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, str(HERE / "worker.py"), name, str(first), str(end)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as child:
        assert child.stdout is not None and child.stderr is not None
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(child.stderr or ()), daemon=True)
        reader.start()
        watch = threading.Timer(SILENCE, child.kill)
        watch.start()
        for line in child.stdout:
            watch.cancel()
            watch = threading.Timer(SILENCE, child.kill)
            watch.start()
            yield json.loads(line)
        watch.cancel()
        child.wait()
        reader.join()
    if child.returncode:
        yield {"said": f"exit {child.returncode}: {' '.join(''.join(errors).split())[-600:]}"}


def main() -> None:
    """Counts by kind, and an example of each failure."""
    end, names = int(sys.argv[1]), sys.argv[2:]
    for name in names:
        found = fuzz(name, 0, end)
        print(name, dict(Counter(one["kind"] for one in found)), "slowest", max(one["s"] for one in found), "s",
              "most", max(one["mb"] for one in found), "MB", flush=True)  # fmt: skip
        shown: Counter[str] = Counter()
        for one in found:
            if one["kind"] not in GOOD:
                key = one["detail"].rsplit(" at ", 1)[-1] if one["kind"] == "traceback" else one["kind"]
                shown[key] += 1
                if shown[key] <= 2:
                    print("   ", {**one, "detail": one["detail"][:300]}, flush=True)
        print("   ", dict(shown), flush=True)


if __name__ == "__main__":
    main()
