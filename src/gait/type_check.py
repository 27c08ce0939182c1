"""A check of types in place of typeguard, whose import takes half the time of a verb's help.

The parser of the command line (tyro) imports typeguard to check the defaults of options that are tuples or `X | None`.
"""

from __future__ import annotations

import importlib
import sys
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NAME = "typeguard"


@contextmanager
def light_type_checks() -> Iterator[None]:
    """Within it, `import typeguard` gives the check below, unless the module itself is loaded already."""
    if _NAME in sys.modules:
        yield
        return
    sys.modules[_NAME] = _LightModule(_NAME)
    try:
        yield
    finally:
        if isinstance(sys.modules.get(_NAME), _LightModule):
            del sys.modules[_NAME]


class _LightModule(types.ModuleType):
    def check_type(self, value: Any, expected: Any) -> Any:
        """As typeguard has it: the value, or an error."""
        fits = _fits(value, expected)
        if fits is None:
            return _real().check_type(value, expected)
        if not fits:
            raise TypeError(f"{value!r} is not {expected}")
        return value

    def __getattr__(self, name: str) -> Any:
        if name == "TypeCheckError":
            return TypeError
        return getattr(_real(), name)


def _real() -> Any:
    sys.modules.pop(_NAME, None)
    return importlib.import_module(_NAME)


def _fits(value: Any, expected: Any) -> bool | None:
    """Whether a value is of a type; None if it takes more to tell."""
    if expected is None or expected is type(None):
        return value is None
    if type(expected) is type:
        return isinstance(value, expected)
    origin, parts = typing.get_origin(expected), typing.get_args(expected)
    if origin in (types.UnionType, typing.Union):
        found = [_fits(value, part) for part in parts]
        return True if True in found else None if None in found else False
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return isinstance(value, tuple) and _all([_fits(one, parts[0]) for one in value])
    return None


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True
