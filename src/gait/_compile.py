"""One way to compile: ahead of the first call, cached on disk, without the GIL."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*signatures: Any) -> Callable[[F], F]:
    """Compile a function with numba for the given signatures.

    Explicit signatures fix the types, so nothing is compiled inside a control loop; the cache makes the second
    start fast. Arithmetic stays strict IEEE: results do not depend on what the optimiser happened to reorder.

    Args:
        signatures: numba signatures, as text such as `"float64(float64[::1])"` or as numba types; none means compile
            at the first call.
    """

    def wrap(function: F) -> F:
        return cast("F", numba.njit(list(signatures) or None, cache=True, nogil=True)(function))

    return wrap
