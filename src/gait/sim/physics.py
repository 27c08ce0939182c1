"""MuJoCo, imported so that simulating works where drawing does not.

On import MuJoCo loads the backend that `MUJOCO_GL` names; without its library, PyOpenGL throws all kinds of errors.
"""

from __future__ import annotations

import importlib
import os

_VARIABLES = ("MUJOCO_GL", "PYOPENGL_PLATFORM")


def _load() -> None:
    before = {name: os.environ.get(name) for name in _VARIABLES}
    try:
        importlib.import_module("mujoco")
    except ImportError:
        raise
    except Exception:
        # The first attempt has set PYOPENGL_PLATFORM, which would pass for a backend that works.
        os.environ["MUJOCO_GL"] = "disable"
        try:
            importlib.import_module("mujoco")
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


_load()
import mujoco as mujoco  # noqa: E402
