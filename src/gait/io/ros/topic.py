"""One topic of a bag, as the files that hold it give it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

CUT = "is damaged or cut short, and was read up to there"


@dataclass
class Topic:
    """The messages of one topic."""

    name: str
    kind: str
    """Type, as in ROS 2: package/msg/Name."""
    definition: str = ""
    language: str = ""
    """Of the definition: msg or idl; empty if there is none."""
    encoding: str = "cdr"
    """cdr or ros1; messages in anything else cannot be read."""
    stamps: list[int] = field(default_factory=list)
    """When each message was recorded, ns."""
    messages: list[bytes] = field(default_factory=list)
    """Only those of types that are asked for are kept."""
    count: int = 0

    def add(self, stamp: int, message: bytes, keep: bool) -> None:
        """Take a message."""
        self.count += 1
        self.stamps.append(stamp)
        if keep:
            self.messages.append(message)


Wanted = Callable[[str], bool]
"""Whether messages of a type are to be kept."""


def ros2_name(name: str) -> str:
    """The name of a type as ROS 2 has it, with msg in the middle."""
    package, _, bare = name.rpartition("/")
    return f"{package.removesuffix('/msg')}/msg/{bare}" if package else name
