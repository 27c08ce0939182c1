"""Blosc 1 buffers, in which Zarr keeps its chunks by default: blocks, split by bytes and compressed each."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from gait.io.limits import UnpackError

_HEADER = struct.Struct("<4B3I")
_SHUFFLED, _STORED, _BITS, _WHOLE = 0x01, 0x02, 0x04, 0x10
"""Flags: bytes are shuffled, blocks are stored as they are, bits are shuffled, blocks are not split."""
_CODECS = {0: "blosclz", 1: "lz4", 2: "snappy", 3: "zlib", 4: "zstd"}


def blosc_size(data: bytes) -> int:
    """Bytes that a buffer says to unpack to."""
    if len(data) < _HEADER.size:
        raise UnpackError("cut short")
    return int(_HEADER.unpack_from(data)[4])


def unpack_blosc(data: bytes) -> bytes:
    """The content of a buffer; pay for `blosc_size` of it first.

    Raises:
        UnpackError: if it is damaged, or packed by a codec that is not known.
    """
    if len(data) < _HEADER.size:
        raise UnpackError("cut short")
    _, _, flags, width, size, block, packed = _HEADER.unpack_from(data)
    if packed > len(data) or (size and not block > 0) or not width:
        raise UnpackError("damaged")
    if flags & _STORED:
        return _exactly(data[_HEADER.size : _HEADER.size + size], size)
    if flags & _BITS:
        raise UnpackError("blosc with bit shuffle")
    count = -(-size // block) if size else 0
    if _HEADER.size + 4 * count > len(data):
        raise UnpackError("cut short")
    starts = struct.unpack_from(f"<{count}i", data, _HEADER.size)
    out = []
    for i, start in enumerate(starts):
        length = min(block, size - i * block)
        # The last block is not split if it is shorter than the others.
        parts = 1 if flags & _WHOLE or length < block else width
        content = _block(data, start, length, parts, _CODECS.get(flags >> 5, "unknown"))
        out.append(_unshuffled(content, width) if flags & _SHUFFLED else content)
    return b"".join(out)


def _block(data: bytes, start: int, length: int, parts: int, codec: str) -> bytes:
    each, out = length // parts, []
    if each * parts != length:
        raise UnpackError("damaged")
    for _ in range(parts):
        if not 0 < start <= len(data) - 4:
            raise UnpackError("cut short")
        (packed,) = struct.unpack_from("<i", data, start)
        start += 4
        if not 0 <= packed <= len(data) - start:
            raise UnpackError("cut short")
        content = data[start : start + packed]
        out.append(content if packed == each else _exactly(_codec(codec, content, each), each))
        start += packed
    return b"".join(out)


def _codec(codec: str, data: bytes, size: int) -> bytes:
    try:
        if codec == "lz4":
            import lz4.block

            return bytes(lz4.block.decompress(data, uncompressed_size=size))
        if codec == "zlib":
            return zlib.decompressobj().decompress(data, size)
        if codec == "zstd":
            import zstandard

            with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                return bytes(reader.read(size))
    except (ValueError, RuntimeError, zlib.error, MemoryError):
        raise UnpackError("damaged") from None
    except Exception as error:  # those of lz4 and zstandard have no base of their own
        if type(error).__name__ in ("LZ4BlockError", "ZstdError"):
            raise UnpackError("damaged") from None
        raise
    raise UnpackError(f"blosc with {codec}")


def _unshuffled(data: bytes, width: int) -> bytes:
    """Elements out of all their first bytes, all their second bytes, and so on; what is no whole element stays."""
    whole = len(data) // width * width
    table = np.frombuffer(data, dtype=np.uint8, count=whole).reshape(width, -1)
    return table.T.tobytes() + data[whole:]


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise UnpackError("cut short")
    return data
