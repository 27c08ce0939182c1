"""YAML and JSON that anyone may have written: bounded in size, nesting and repetition; and values in messages."""

from __future__ import annotations

import json
import reprlib
from typing import Any

LARGEST = 1 << 18
"""Characters of a YAML file, whose parser takes seconds for so many; a robot has 4000."""
MOST = 50_000
"""Values in a YAML file, those counted again that an alias repeats."""


def load_yaml(text: str) -> Any:
    """The value of a YAML document.

    Raises:
        yaml.YAMLError: whatever is wrong with it: syntax, a date or number that is none, nesting that is too deep, or
            aliases that stand for more than a description can need.
    """
    import yaml  # late: many modules show values, few read YAML

    if len(text) > LARGEST:
        raise yaml.YAMLError(f"it has more than {LARGEST} characters")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, OverflowError, AttributeError, LookupError, TypeError) as error:
        # The constructors of dates, numbers and tags fail in ways of their own on what is none.
        raise yaml.YAMLError(f"it has a value that cannot be read ({error})") from None


def _count(node: Any, known: dict[int, int]) -> int:
    """Values in a node, with aliases written out: a few lines of them can stand for billions."""
    if id(node) in known:
        if not known[id(node)]:
            raise ValueError("it contains itself")
        return known[id(node)]
    known[id(node)] = 0
    parts = node.value if isinstance(node.value, list) else ()
    total = 1
    for part in parts:
        total += sum(_count(one, known) for one in part) if isinstance(part, tuple) else _count(part, known)
        if total > MOST:
            raise ValueError(f"it has more than {MOST} values")
    known[id(node)] = total
    return total


def load_json(text: str | bytes) -> Any:
    """The value of a JSON document; anything that is wrong with it is a ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class _Short(reprlib.Repr):
    """Short texts of values of any size."""

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to write a number of thousands of digits."""
        return repr(x) if x.bit_length() < 128 else f"a number of {x.bit_length()} bits"


_SHORT = _Short()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, 80, 80


def named(key: object) -> str:
    """A key or a name that should be a text as one, whatever it is."""
    return key if isinstance(key, str) else shown(key)


def shown(value: object) -> str:
    """A value for a message, like its `repr`, but short."""
    return _SHORT.repr(value)
