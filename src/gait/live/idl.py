"""Types of messages for DDS, derived from their definitions.

Discovery compares names and structure, so both must be those of the other side. The contents pass as bytes:
`gait.io.ros.layout` reads those that come, and those that go are encoded before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cyclonedds.idl.annotations as annotate
from cyclonedds.idl import make_idl_struct, types

from gait.io.ros.definitions import known

_BASE, _NAME, _ARRAY = 1, 2, 3
_OTHER_NAMES = {"string": str, "bool": bool, "octet": types.uint8}


@lru_cache(maxsize=64)
def _struct(name: str) -> Any:
    """A struct that cannot be extended, the only kind that ROS 2 and Unitree have."""
    package, _, kind = name.partition("/msg/")
    fields = {field: _type(int(node), what) for field, (node, what) in known()[name][1]}
    made: Any = make_idl_struct(kind, f"{package}.msg.dds_.{kind}_", fields)
    return annotate.autoid("sequential")(annotate.final(made))


def _type(node: int, what: Any) -> Any:
    if node == _BASE:
        return _OTHER_NAMES.get(what[0]) or getattr(types, what[0])
    if node == _NAME:
        return _struct(str(what))
    (inner_node, inner), count = what
    inside = _type(int(inner_node), inner)
    return types.array[inside, count] if node == _ARRAY else types.sequence[inside]


@lru_cache(maxsize=64)
def raw(name: str) -> Any:
    """A type whose messages are bytes: `encoded`, a whole message in CDR with the four bytes before it."""
    made = _struct(name)
    # A base class would become a part of the type that others see.
    made.of = made.deserialize = classmethod(_of)
    made.serialize = lambda message, *args, **more: message.encoded
    return made


def _of(kind: Any, encoded: bytes, *args: Any, **more: Any) -> Any:
    message = kind.__new__(kind)
    message.encoded = encoded
    return message
