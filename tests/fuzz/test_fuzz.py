"""No file ends in a traceback, a hang or a full memory: mutants of every format, and files made to exhaust a reader.

`python tests/fuzz/fuzzing.py 2000 mcap npz` prints counts and the first failures of some formats.
"""

from collections import Counter
from typing import Any

import needs
import pytest
from fuzzing import GOOD, fuzz
from hostile import HOSTILE
from readers import READERS

MANY, SOME = 2000, 60
SLOW_TO_MAKE = tuple(number for number, name in enumerate(HOSTILE) if "bomb" in name or "zstd-in" in name)


def held(name: str, found: list[dict[str, Any]], count: int) -> None:
    bad = [one for one in found if one["kind"] not in GOOD]
    assert not bad, (name, Counter(one["kind"] for one in bad), bad[:3])
    assert len(found) == count


def has_packages(name: str) -> None:
    if name == "hdf5":
        needs.package("h5py")
    if name == "collection":
        needs.package("torch")


@pytest.mark.parametrize("name", READERS)
def test_some_mutants_are_read_or_refused_in_one_sentence(name: str) -> None:
    has_packages(name)
    held(name, fuzz(name, 0, SOME), SOME)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", READERS)
def test_mutants_are_read_or_refused_in_one_sentence(name: str) -> None:
    """Each within 1 GB and 20 s, by the limits of the worker."""
    has_packages(name)
    held(name, fuzz(name, SOME, MANY), MANY - SOME)


@pytest.mark.parametrize("name", sorted({kind for kind, _ in HOSTILE.values()}))
def test_hostile_files_are_refused_or_read_within_limits(name: str) -> None:
    has_packages(name)
    numbers = [n for n, (kind, _) in enumerate(HOSTILE.values()) if kind == name and n not in SLOW_TO_MAKE]
    held(name, [one for run in runs(numbers) for one in fuzz("hostile", *run)], len(numbers))


def runs(numbers: list[int]) -> list[tuple[int, int]]:
    """First and end of each run of numbers that follow each other: a process for each."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", SLOW_TO_MAKE)
def test_a_bomb_is_refused_within_limits(number: int) -> None:
    found = fuzz("hostile", number, number + 1)
    held(list(HOSTILE)[number], found, 1)
    assert found[0]["kind"] == "refused" and "unpacks to more than" in found[0]["detail"]


@pytest.mark.parametrize(("name", "number"), [("mcap", 1379), ("mcap", 1463), ("mcap", 1735), ("hdf5", 844)])
def test_mutants_that_once_failed(name: str, number: int) -> None:
    """A type without rotations, a chunk of 2^63 bytes, joints without names, a text that claims gigabytes."""
    has_packages(name)
    held(name, fuzz(name, number, number + 1), 1)
