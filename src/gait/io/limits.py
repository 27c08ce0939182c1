"""How much a file may unpack to, and unpacking within that. A few kilobytes can claim, or really hold, gigabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gait.errors import GaitError, os_errors

LEAST = 128 << 20
"""Bytes that any file may unpack to."""
RATIO = 100
"""How many times its size a larger file may unpack to; sensor data shrink by less than ten."""
PART = 1 << 20
"""Bytes that are unpacked at once."""
WINDOW = 1 << 27
"""Memory of past bytes that a zstd stream may ask for, as `zstd -d` grants it."""


class UnpackError(ValueError):
    """Compressed bytes that are damaged, or compressed in an unknown way."""


class Budget:
    """Bytes that the parts of one file may still unpack to."""

    def __init__(self, path: Path) -> None:
        """Allow what the size of the file allows."""
        self.path = path
        with os_errors(f"cannot read {path}"):
            self._allow(path.stat().st_size)

    @classmethod
    def of(cls, path: Path, size: int) -> Budget:
        """Allow what the size of all files in a folder allows."""
        made = cls(path)
        made._allow(size)
        return made

    def _allow(self, size: int) -> None:
        self.limit = self.left = max(LEAST, RATIO * size)

    def take(self, size: int) -> None:
        """Spend some; raise if there is not so much left."""
        self.left -= size
        if self.left < 0:
            raise GaitError(
                f"{self.path} unpacks to more than {self.limit >> 20} MB, which no recording of its size does: copy it"
                " again, or write it without compression"
            )


def unpack(kind: str, data: bytes, budget: Budget) -> bytes:
    """Bytes without their compression.

    Args:
        kind: none, bz2, lz4 or zstd, as bags name it; empty for none.
        data: compressed.
        budget: pays for them, part by part, before there is more than it allows.

    Raises:
        UnpackError: if they are damaged or cut short.
    """
    if kind in ("", "none"):
        return data
    if kind not in _UNPACKERS:
        raise UnpackError(f"compression {kind}")
    parts = []
    for part in _UNPACKERS[kind](data):
        budget.take(len(part))
        parts.append(part)
    return b"".join(parts)


def zstd_parts(stream: Any) -> Iterator[bytes]:
    """The parts of a zstd file or of bytes; those before a damage come first."""
    import zstandard

    try:
        # A frame may claim any size, or none: it is read without asking.
        with zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(stream) as reader:
            while part := reader.read(PART):
                yield part
    except zstandard.ZstdError:
        raise UnpackError("zstd") from None


def _lz4_parts(data: bytes) -> Iterator[bytes]:
    from lz4.frame import LZ4FrameDecompressor

    return _parts(LZ4FrameDecompressor, data)


def _bz2_parts(data: bytes) -> Iterator[bytes]:
    from bz2 import BZ2Decompressor

    return _parts(BZ2Decompressor, data)


def _parts(make: Callable[[], Any], data: bytes) -> Iterator[bytes]:
    """The parts of one or more streams, by the interface that Python's decompressors share."""
    while data:
        one = make()
        try:
            while not one.eof:
                part = one.decompress(data, PART)
                if not part and not one.eof:
                    raise UnpackError("cut short")
                data = b""
                yield part
        except (OSError, RuntimeError, EOFError):
            raise UnpackError("damaged") from None
        data = one.unused_data or b""


_UNPACKERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {"bz2": _bz2_parts, "lz4": _lz4_parts, "zstd": zstd_parts}
