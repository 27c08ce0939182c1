"""A process that reads mutants of one kind of file, with limits on memory and time, and tells what came of each."""

import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from readers import READERS, Reader

from gait.errors import GaitError

MEMORY = 1 << 30
"""Bytes that reading may take."""
SECONDS = 20
HEADROOM = 6 << 30
"""Address space beyond what the process has at its start: what claims more is refused, and counts as a failure."""


class TooLongError(BaseException):
    """Not an Exception, so that no reader takes it for damage."""


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def outcome(read: object, path: Path) -> dict[str, object]:
    """What reading a file comes to: `ok`, `refused`, or what went wrong."""
    Path("/proc/self/clear_refs").write_text("5")
    before, began = _peak(), time.monotonic()
    # Of the processor: a loaded machine is slow, not wrong. A reader that sleeps is found by who started us.
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    kind, detail = "ok", ""
    try:
        read(path)  # type: ignore[operator]
    except GaitError as error:
        kind, detail = "refused", str(error)
        if "\n" in detail or len(detail) > 1000 or not detail.strip():
            kind = "wordy"
    except TooLongError:
        kind = "hang"
    except MemoryError:
        kind = "memory"
    except BaseException as error:
        kind = "traceback"
        place = traceback.extract_tb(error.__traceback__)
        ours = [one for one in place if "/gait/" in one.filename] or place[-1:]
        detail = f"{type(error).__name__}: {str(error)[:150]} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    used = _peak() - before
    if used > MEMORY and kind in ("ok", "refused"):
        kind, detail = "memory", f"{used >> 20} MB"
    return {"kind": kind, "detail": detail, "mb": used >> 20, "s": round(time.monotonic() - began, 2)}


def _alarm(*_: object) -> None:
    raise TooLongError


def _prepare(reader: Reader, place: Path) -> list[bytes]:
    """Whole files, and what must lie beside them."""
    make = place / "make"
    make.mkdir(exist_ok=True)
    wholes = reader.wholes(make)
    for name in reader.beside:
        (place / name).write_bytes((make / name).read_bytes())
    return wholes


def _told(number: int | str, reader: Reader, path: Path, data: bytes) -> None:
    """Write and read one file, with a line before and one after."""
    path.write_bytes(data)
    print(json.dumps({"start": number}), flush=True)
    print(json.dumps({"number": number, **outcome(reader.read, path)}), flush=True)
    path.unlink()


def main(name: str, first: int, end: int) -> None:
    """Read the mutants of some numbers, or some of the hostile files; a line of JSON before and after each."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", ResourceWarning)
    signal.signal(signal.SIGPROF, _alarm)
    resource.setrlimit(resource.RLIMIT_AS, (_size() + HEADROOM, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if name == "hostile":
            from hostile import HOSTILE

            for number, (kind, make) in list(enumerate(HOSTILE.values()))[first:end]:
                _prepare(READERS[kind], place)
                _told(number, READERS[kind], place / READERS[kind].file, make())
            return
        reader = READERS[name]
        wholes, path = _prepare(reader, place), place / reader.file
        for whole in wholes:
            path.write_bytes(whole)
            found = outcome(reader.read, path)
            assert found["kind"] == "ok", f"a whole file of {name}: {found}"
        for number in range(first, end):
            rng = random.Random(f"{name} {number}")
            _told(number, reader, path, reader.mutant(rng.choice(wholes), rng))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
