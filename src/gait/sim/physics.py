"""MuJoCo, imported so that simulating works where drawing does not.

On import MuJoCo loads the backend that `MUJOCO_GL` names; without its library, PyOpenGL throws all kinds of errors.
"""

import os

_BEFORE = {name: os.environ.get(name) for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
try:
    import mujoco as mujoco
except ImportError:
    raise
except Exception:
    # The first attempt has set PYOPENGL_PLATFORM, which would pass for a backend that works.
    os.environ["MUJOCO_GL"] = "disable"
    try:
        import mujoco as mujoco
    finally:
        for _name, _value in _BEFORE.items():
            os.environ.pop(_name, None)
            if _value is not None:
                os.environ[_name] = _value
