"""Damage to files, a function of a seed: flipped bytes, cuts, splices, forged lengths, forged words, deep nesting."""

import random
import re
from collections.abc import Callable, Sequence

LENGTHS = (0, 1, 127, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
WORDS = (
    "9" * 5000, "-" + "9" * 400, "0x" + "f" * 4000, "1e999", "-1e308", "nan", "inf", "-0", "1_000", "1:1:1:1", "0o777",
    "", "null", "true", "~", "{}", "[]", "[[[[]]]]", "'", '"', "\\", "\0", "\u2028", "\ud7ff", "%", "&a", "*a",
    "!!python/object/apply:os.system [true]", "!!binary x", "!!timestamp x", "2020-13-45", "2001-01-01", "? x",
    "<<: *a", "- - - -", "a" * 70000, "0" * 300 + "1", "1,2", "1;2", "\t", "\r", "#", "# gait: {}", "---", "...",
    "\ufeff", "x.y.z",
)  # fmt: skip


def mutant(data: bytes, rng: random.Random, text: bool) -> bytes:
    """One damaged copy of a file."""
    kinds: Sequence[Callable[[bytes, random.Random], bytes]] = (flips, cut, splice, forge, forge, forge)
    if text:
        kinds = (flips, cut, splice, words, words, words, nest)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(kinds)(data, rng)
    return data


def flips(data: bytes, rng: random.Random) -> bytes:
    """Some bytes have other values."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 2, 5, 20, 100))):
        if out:
            out[rng.randrange(len(out))] = rng.choice((rng.randrange(256), 0, 255))
    return bytes(out)


def cut(data: bytes, rng: random.Random) -> bytes:
    """The file ends early, or a part of it is missing."""
    first = rng.randrange(len(data) + 1)
    return data[:first] if rng.random() < 0.5 else data[:first] + data[first + rng.choice((1, 8, 100, 5000)) :]


def splice(data: bytes, rng: random.Random) -> bytes:
    """A part of the file stands at another place, in the place of what was there or before it."""
    start, at = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    part = data[start : start + rng.choice((1, 4, 9, 64, 1000, 20000))] * rng.choice((1, 1, 1, 2, 50))
    return data[:at] + part + data[at + (len(part) if rng.random() < 0.5 else 0) :]


def forge(data: bytes, rng: random.Random) -> bytes:
    """A number that may be a length says something else."""
    width = rng.choice((1, 2, 4, 4, 8, 8))
    places = _lengths(data, width, rng) or [rng.randrange(max(len(data) - width, 1))]
    at, order = rng.choice(places), rng.choice(("little", "little", "big"))
    value = rng.choice((*LENGTHS, len(data), len(data) * 1000, rng.randrange(2**64)))
    return data[:at] + (value % 2 ** (8 * width)).to_bytes(width, order) + data[at + width :]


def _lengths(data: bytes, width: int, rng: random.Random) -> list[int]:
    """Places whose number could be the length of something in the file, some of them."""
    if width < 4:
        return []
    start = rng.randrange(len(data) + 1)
    seen = ((at, int.from_bytes(data[at : at + width], "little")) for at in range(start, min(start + 4000, len(data))))
    return [at for at, value in seen if 0 < value <= len(data)]


def words(data: bytes, rng: random.Random) -> bytes:
    """A number or a name in a text is another one."""
    found = list(re.finditer(rb"[\w.+-]+", data[:200_000]))
    if not found:
        return data
    one, word = rng.choice(found), rng.choice(WORDS).encode("utf-8", errors="surrogatepass")
    return data[: one.start()] + word + data[one.end() :]


def nest(data: bytes, rng: random.Random) -> bytes:
    """Brackets in brackets in brackets."""
    depth, at = rng.choice((10, 300, 3000, 50000)), rng.randrange(len(data) + 1)
    opening = rng.choice((b"[", b'{"a":', b"{a: ", b"- ", b"(", b"? "))
    closing = {b"[": b"]", b"(": b")"}.get(opening, b"}") if rng.random() < 0.5 else b""
    found = list(re.finditer(rb"[\w.+-]+", data[:200_000]))
    if found and rng.random() < 0.7:
        one = rng.choice(found)
        return data[: one.start()] + opening * depth + b"1" + closing * depth + data[one.end() :]
    return data[:at] + opening * depth + b"1" + closing * depth + data[at:]
