"""Settings for all tests."""

import hashlib
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]


def _numba_cache() -> str:
    """A cache of compiled code for exactly these sources.

    numba notices a change in the file of a compiled function, but not in a file that this function calls into.
    """
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        if "compiled" in (text := path.read_text(encoding="utf-8")):
            digest.update(text.encode())
    return str(ROOT / ".cache/numba" / digest.hexdigest()[:16])


os.environ.setdefault("NUMBA_CACHE_DIR", _numba_cache())
# A shell that runs us in the background has Ctrl-C ignored, and our children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A loaded machine is slow, not wrong.
settings.register_profile("gait", deadline=None)
settings.load_profile("gait")


@pytest.fixture
def one_thread() -> None:
    """Keep torch to one thread, so that tests that run side by side do not wait for each other."""
    import torch

    torch.set_num_threads(1)
