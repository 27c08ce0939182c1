"""One step of `gait-legs` as ONNX nodes, on the features of a sample. A state of zeros is the start of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.nets.architecture import LegsArchitecture
from gait.nets.leg_features import PER_LEG, SHARED, VELOCITY
from gait.nets.leg_parts import LegParts, leg_parts
from gait.nets.model import Model
from gait.nets.shapes import OUTPUTS

if TYPE_CHECKING:
    from gait.export.onnx import Graph

HIDDEN = -1e30
"""Score of a leg that may not be looked at."""
NOTHING = 1e-30
"""What all legs together are worth if none is seen."""


def legs_graph(graph: Graph, model: Model) -> None:
    """From the features of a sample (6 + 12 L) to what each leg says, and to what they say together."""
    a, p = model.architecture, leg_parts(model)
    assert isinstance(a, LegsArchitecture)
    features, seen = graph.input("features", a.num_features), graph.input("seen", a.legs, boolean=True)
    x = _frames(graph, a, features, seen)
    own = p.own.reshape(a.hidden, a.frames, -1)
    first = np.concatenate([p.shared[:, 1:].reshape(a.hidden, a.frames, SHARED), own], axis=2).reshape(a.hidden, -1)
    x = graph.relu(_layer(graph, "frames", x, np.concatenate([p.shared[:, :1], first], axis=1)))
    x = graph.relu(_layer(graph, "hidden", x, p.hidden))
    if a.attention_width:
        x = graph.node("Concat", [x, _looks(graph, a, p, x, seen)], "joined", axis=1)
    y = _layer(graph, "output", graph.relu(_layer(graph, "mix", x, p.mix)), p.output)

    columns = SHARED + VELOCITY + PER_LEG * np.arange(a.legs)[:, None] + np.arange(OUTPUTS)
    measured = graph.node("Gather", [features, graph.constant("measured_at", columns, np.int64)], "measured", axis=0)
    column = graph.node("Reshape", [seen, graph.constant("as_column", [-1, 1], np.int64)], "seen_column")
    raw, velocity = y, measured
    if len(p.output) > OUTPUTS:
        halves = graph.constant("halves", [OUTPUTS, OUTPUTS], np.int64)
        graph.node("Split", [y, halves], "raw", "shift", axis=1)
        raw, shifted = "raw", graph.node("Add", [measured, "shift"], "shifted")
        velocity = graph.node("Where", [column, shifted, measured], "leg_velocities")
    unsure = graph.bounded(raw, a.log_std_min, a.log_std_max, "log_stds")
    none = graph.constant("high", [a.log_std_max])
    log_std = graph.node("Where", [column, unsure, none], graph.output("leg_log_std", a.legs, OUTPUTS))
    graph.node("Identity", [velocity], graph.output("leg_velocity", a.legs, OUTPUTS))
    _together(graph, column, velocity, log_std)


def _frames(graph: Graph, a: LegsArchitecture, features: str, seen: str) -> str:
    """The frames of each leg (L, frames token), newest first, and the state for the next step."""
    reach, width = a.lags[-1], a.num_features
    row = graph.node("Reshape", [features, graph.constant("as_row", [1, -1], np.int64)], "sample")
    if reach:
        # What was not there, or not in use, in the step before is taken to have been like this sample.
        owner = np.concatenate([np.zeros(SHARED), 1 + np.repeat(np.arange(a.legs), PER_LEG)])
        known = graph.input("known", 1 + a.legs, boolean=True)
        by_column = graph.node("Gather", [known, graph.constant("owner", owner, np.int64)], "known_columns", axis=0)
        past = graph.node("Where", [by_column, graph.input("history", reach, width), row], "past")
        row = graph.node("Concat", [past, row], "window", axis=0)
        ends = [graph.constant("first", [1], np.int64), graph.constant("last", [reach + 1], np.int64)]
        graph.node("Slice", [row, *ends], graph.output("next_history", reach, width))
        begun = graph.constant("begun", [True], np.bool_)
        graph.node("Concat", [begun, seen], graph.output("next_known", 1 + a.legs, boolean=True), axis=0)
    flat = graph.node("Reshape", [row, graph.constant("flat", [-1], np.int64)], "numbers")
    pick = [
        [
            (reach - lag) * width + column
            for lag in a.lags
            for column in (*range(SHARED), *(SHARED + PER_LEG * leg + i for i in a.leg_columns))
        ]
        for leg in range(a.legs)
    ]
    return graph.node("Gather", [flat, graph.constant("pick", pick, np.int64)], "tokens", axis=0)


def _looks(graph: Graph, a: LegsArchitecture, p: LegParts, x: str, seen: str) -> str:
    """What each leg finds at the others (L, heads head_width)."""
    shape = graph.constant("by_head", [a.legs, a.heads, a.head_width], np.int64)
    parts = []
    for name, layer, order in zip(("query", "key", "value"), p.look, ((1, 0, 2), (1, 2, 0), (1, 0, 2)), strict=True):
        rows = graph.node("Reshape", [_layer(graph, name, x, layer.reshape(-1, 1 + a.hidden)), shape], f"{name}_heads")
        parts.append(graph.node("Transpose", [rows], f"{name}_turned", perm=order))
    scores = graph.node("MatMul", parts[:2], "scores")  # (heads, L, L)
    visible = graph.node("Where", [seen, scores, graph.constant("unseen", [HIDDEN])], "visible")
    shares = graph.node("Softmax", [visible], "shares", axis=2)
    found = graph.node("MatMul", [shares, parts[2]], "found")
    found = graph.node("Transpose", [found], "found_by_leg", perm=(1, 0, 2))
    return graph.node("Reshape", [found, graph.constant("by_leg", [a.legs, -1], np.int64)], "looks")


def _together(graph: Graph, seen: str, velocity: str, log_std: str) -> None:
    """All legs, weighed by what each is worth."""
    twice = graph.node("Mul", [log_std, graph.constant("minus_two", [-2.0])], "twice")
    worth = graph.node("Exp", [twice], "worth_of_all")
    worth = graph.node("Where", [seen, worth, graph.constant("zero", [0.0])], "worth")
    axis = graph.constant("over_legs", [0], np.int64)
    total = graph.node("ReduceSum", [worth, axis], "total_worth", keepdims=0)
    total = graph.node("Max", [total, graph.constant("nothing", [NOTHING])], "total")
    part = graph.node("Mul", [worth, velocity], "weighed")
    summed = graph.node("ReduceSum", [part, axis], "summed", keepdims=0)
    graph.node("Div", [summed, total], graph.output("velocity", OUTPUTS))
    log = graph.node("Log", [total], "log_total")
    graph.node("Mul", [log, graph.constant("minus_half", [-0.5])], graph.output("log_std", OUTPUTS))


def _layer(graph: Graph, name: str, x: str, layer: Array) -> str:
    """Rows of x through a layer whose offset is its first column."""
    return graph.layer(name, x, layer[:, 1:], layer[:, 0])
