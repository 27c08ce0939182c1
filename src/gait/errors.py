"""The one error type that means: the input is at fault, and here is the fix."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

LONGEST = 900
"""Characters of a message: names and values in it may come from a file, and be of any length."""


class GaitError(Exception):
    """Bad input. The message is one sentence that says what is wrong and what to do about it."""

    def __init__(self, message: str) -> None:
        """Take a message; control codes in it, which a terminal would obey, are spelled out."""
        if not message.isprintable():
            message = re.sub(r"\s*\n\s*", " ", message)
            message = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in message)
        if len(message) > LONGEST:
            # What to do stands at the end.
            message = f"{message[: LONGEST - 300]} ... {message[-300:]}"
        super().__init__(message)


EXTRAS = {
    "PIL": "sim", "cyclonedds": "live", "daqp": "sim", "h5py": "hdf5", "matplotlib": "viz", "mujoco": "sim",
    "numba": "sim", "onnx": "export", "onnxruntime": "sim", "rerun": "view", "tensorboard": "train", "torch": "train",
}  # fmt: skip
"""The extra that a module comes with."""


def need_extra(package: str, extra: str) -> GaitError:
    """The error for an optional dependency that is not installed."""
    return GaitError(f"{package} is not installed: run `{install_hint(extra)}`")


def install_hint(extra: str) -> str:
    """The command that installs an extra, from where gait itself was installed: a checkout, a wheel or an index."""
    from importlib import metadata

    try:
        origin = json.loads(metadata.distribution("gait-estimator").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    if url.startswith("file://"):
        return f"pip install {editable}'{unquote(url.removeprefix('file://'))}[{extra}]'"
    # Without a word on where it came from, a checkout is at hand.
    return f"pip install '.[{extra}]'" if not url else f"pip install 'gait-estimator[{extra}] @ {url}'"


def reason(error: OSError) -> str:
    """Why the system refused, in lower case words."""
    return (error.strerror or str(error)).lower()


@contextmanager
def os_errors(what: str) -> Iterator[None]:
    """Whatever the system refuses here is a GaitError: `what`, such as `cannot read run.csv`, and why."""
    try:
        yield
    except OSError as error:
        raise GaitError(f"{what}: {reason(error)}") from None


@contextmanager
def located(where: object) -> Iterator[None]:
    """Whatever is wrong here is said with where it is, such as the path of a file, before it."""
    try:
        yield
    except GaitError as error:
        raise GaitError(f"{where}: {error}") from None
