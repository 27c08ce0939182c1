"""One way to compile: ahead of the first call, cached on disk, without the GIL; or none, where numba is missing."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from gait.errors import GaitError

F = TypeVar("F", bound=Callable[..., Any])

RUNTIMES = ("numba", "numpy")
RUNTIME = os.environ.get("GAIT_RUNTIME") or ("numba" if find_spec("numba") else "numpy")
"""What runs the estimator: compiled code, or plain Python and numpy on machines that numba does not support."""
if RUNTIME not in RUNTIMES:
    raise GaitError(f"GAIT_RUNTIME is '{RUNTIME}': set it to one of {', '.join(RUNTIMES)}, or leave it out")


class _NoTypes:
    """Stands in for numba's types where nothing is compiled: a signature is then never looked at."""

    def __getattr__(self, name: str) -> "_NoTypes":
        return self

    def __getitem__(self, key: object) -> "_NoTypes":
        return self

    def __call__(self, *parts: object) -> "_NoTypes":
        return self


if RUNTIME == "numba":
    import numba

    types: Any = numba
else:
    types = _NoTypes()


def compiled(*signatures: Any) -> Callable[[F], F]:
    """Compile a function with numba for the given signatures.

    Explicit signatures fix the types, so nothing is compiled inside a control loop; the cache makes the second
    start fast. Arithmetic stays strict IEEE: results do not depend on what the optimiser happened to reorder.

    Args:
        signatures: numba signatures, as text such as `"float64(float64[::1])"` or as types of `gait._compile.types`;
            none means compile at the first call.
    """
    return _compiler(signatures, {})


def kernel(*signatures: Any) -> Callable[[F], F]:
    """Like `compiled`, for what runs in every step: it makes no arrays, and does not count who holds one.

    Every view of an array would otherwise count up and down, atomically: hundreds of times a step. The arrays belong to
    whoever calls from Python. A kernel that returns views is for other kernels; Python takes `uncompiled` of it.
    """
    return _compiler(signatures, {"_nrt": False})


def uncompiled(function: F) -> F:
    """The function as it was written."""
    return cast("F", getattr(function, "py_func", function))


def _compiler(signatures: tuple[Any, ...], options: dict[str, Any]) -> Callable[[F], F]:
    def wrap(function: F) -> F:
        if RUNTIME == "numpy":
            return function
        return cast("F", numba.njit(list(signatures) or None, cache=True, nogil=True, **options)(function))

    return wrap
