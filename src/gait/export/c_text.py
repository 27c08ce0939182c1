"""What a network brings to the C code, and its arrays as C constants, in the order in which that code reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from gait.arrays import AnyArray, Array

BLOCK = 32
"""Outputs of a matrix that are summed together: eight vector registers of four floats, or four of eight."""


class CNetwork(NamedTuple):
    """What differs from one kind of network to another."""

    constants: str
    """All that its code names in capitals, and the arrays."""
    templates: tuple[str, ...]
    """Its code, from the sample on."""
    samples: str
    """Template between network and filter: which samples it takes, and what its answer is worth."""
    prototypes: str
    """Template of the functions in the header."""
    state: str
    """Fields of `gait_network_t`."""
    words: dict[str, str]
    """What else it puts into the templates of all; see `NO_WORDS`."""


NO_WORDS = {"tau_argument": "", "tau_name": "", "torques_note": "", "legs_note": "", "leg_fields": "", "leg_memory": ""}
"""The words of a network that takes no torques and does not tell legs apart."""


def plain(text: str) -> str:
    """A name as it may stand in a comment or between quotes."""
    return re.sub(r"[^A-Za-z0-9_., ()+-]", "_", text)


def enum(sizes: dict[str, int]) -> str:
    """Whole numbers by name."""
    return "\nenum { " + ", ".join(f"{name} = {value}" for name, value in sizes.items()) + " };\n"


def defines(values: dict[str, float]) -> str:
    """Numbers in double precision by name."""
    return "".join(f"#define {name} ({float(value)!r})\n" for name, value in values.items())


def padded(count: int) -> int:
    """Up to whole blocks."""
    return -(-count // BLOCK) * BLOCK


def pad(array: Array, count: int) -> Array:
    """Zeros at the end of the second axis, up to `count`."""
    missing = [(0, 0)] * array.ndim
    missing[1] = (0, count - array.shape[1])
    return np.pad(array, missing)


def blocks(matrix: Array) -> Array:
    """A matrix (outputs, inputs) flattened as `multiply` reads it: by blocks of outputs, column by column."""
    outputs, inputs = matrix.shape
    return matrix.reshape(outputs // BLOCK, BLOCK, inputs).swapaxes(1, 2).ravel()


def doubles(name: str, array: Array) -> str:
    """A constant in double precision."""
    return _array(name, "double", array, [repr(float(value)) for value in array.ravel()])


def floats(name: str, array: Array) -> str:
    """A constant in single precision."""
    return _array(name, "float", array, [number(value) for value in array.ravel()])


def number(value: float) -> str:
    """The shortest text that reads back as the same float."""
    text = str(np.float32(value))
    return f"{text}f" if any(mark in text for mark in ".e") else f"{text}.0f"


def _array(name: str, kind: str, array: AnyArray, numbers: list[str]) -> str:
    """A constant; rows of more than one dimension in braces of their own."""
    shape = "".join(f"[{size}]" for size in array.shape)
    return f"static const {kind} {name}{shape} = {_braces(array.shape, numbers)};\n"


def _braces(shape: tuple[int, ...], numbers: list[str]) -> str:
    if len(shape) > 1:
        step = len(numbers) // shape[0]
        parts = [_braces(shape[1:], numbers[i * step : (i + 1) * step]) for i in range(shape[0])]
        return "{\n" + ",\n".join(parts) + "}"
    lines = [", ".join(numbers[i : i + 12]) for i in range(0, len(numbers), 12)]
    return "{" + ",\n".join(lines) + "}"
