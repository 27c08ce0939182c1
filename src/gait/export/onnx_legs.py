"""One step of `gait-legs` as ONNX nodes, on the features of a sample. A state of zeros is the start of a log."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.export.onnx_graph import Graph
from gait.nets.architecture import LegsArchitecture
from gait.nets.features import PER_LEG, SHARED, VELOCITY
from gait.nets.model import Model
from gait.nets.parts import LegParts, leg_parts
from gait.nets.shapes import OUTPUTS

HIDDEN = -1e30
"""Score of a leg that may not be looked at."""
NOTHING = 1e-30
"""Information of all legs together if none is seen."""


def legs_graph(graph: Graph, model: Model) -> None:
    """From the features of a sample (6 + 12 L) to the measurement of each leg, and to that of all together."""
    a, p = model.architecture, leg_parts(model)
    assert isinstance(a, LegsArchitecture)
    features, seen = graph.input("features", a.num_features), graph.input("seen", a.legs, boolean=True)
    x = _frames(graph, a, features, seen)
    shared, own = (matrix.reshape(a.hidden, a.frames, -1) for matrix in (p.shared[:, 1:], p.own))
    frames = np.concatenate([shared, own], axis=2).reshape(a.hidden, -1)
    x = graph.node("Relu", graph.layer(x, frames, p.shared[:, 0]))
    x = graph.node("Relu", _layer(graph, x, p.hidden))
    if a.attention_width:
        x = graph.node("Concat", x, _looks(graph, a, p, x, seen), axis=1)
    y = _layer(graph, graph.node("Relu", _layer(graph, x, p.mix)), p.output)

    columns = SHARED + VELOCITY + PER_LEG * np.arange(a.legs)[:, None] + np.arange(OUTPUTS)
    velocity = graph.node("Gather", features, columns, axis=0)
    column = graph.node("Reshape", seen, [-1, 1])
    if len(p.output) > OUTPUTS:
        y = graph.node("Split", y, [OUTPUTS, OUTPUTS], to=("raw", "shift"), axis=1)
        velocity = graph.node("Where", column, graph.node("Add", velocity, "shift"), velocity)
    log_std = graph.bounded(y, a.log_std_min, a.log_std_max)
    log_std = graph.node("Where", column, log_std, [a.log_std_max], to=graph.output("leg_log_std", a.legs, OUTPUTS))
    graph.node("Identity", velocity, to=graph.output("leg_velocity", a.legs, OUTPUTS))
    _together(graph, column, velocity, log_std)


def _frames(graph: Graph, a: LegsArchitecture, features: str, seen: str) -> str:
    """The frames of each leg (L, frames token), newest first, and the state for the next step."""
    reach, width = a.lags[-1], a.num_features
    row = graph.node("Reshape", features, [1, -1])
    if reach:
        # What was not there, or not in use, in the step before is taken to have been like this sample.
        owner = [0] * SHARED + [1 + leg for leg in range(a.legs) for _ in range(PER_LEG)]
        known = graph.node("Gather", graph.input("known", 1 + a.legs, boolean=True), owner, axis=0)
        past = graph.node("Where", known, graph.input("history", reach, width), row)
        row = graph.node("Concat", past, row, axis=0)
        graph.node("Slice", row, [1], [reach + 1], to=graph.output("next_history", reach, width))
        graph.node("Concat", [True], seen, to=graph.output("next_known", 1 + a.legs, boolean=True), axis=0)
    own = SHARED + PER_LEG * np.arange(a.legs)[:, None] + a.leg_columns  # (L, own)
    columns = np.hstack([np.tile(np.arange(SHARED), (a.legs, 1)), own])  # (L, token)
    starts = width * (reach - np.array(a.lags))
    pick = (starts[:, None] + columns[:, None]).reshape(a.legs, -1)  # (L, frames token)
    return graph.node("Gather", graph.node("Reshape", row, [-1]), pick, axis=0)


def _looks(graph: Graph, a: LegsArchitecture, p: LegParts, x: str, seen: str) -> str:
    """What each leg finds at the others (L, heads head_width)."""
    parts = []
    for layer, order in zip(p.look, ((1, 0, 2), (1, 2, 0), (1, 0, 2)), strict=True):
        rows = _layer(graph, x, layer.reshape(-1, 1 + a.hidden))
        rows = graph.node("Reshape", rows, [a.legs, a.heads, a.head_width])
        parts.append(graph.node("Transpose", rows, perm=order))
    query, key, value = parts
    scores = graph.node("Where", seen, graph.node("MatMul", query, key), [HIDDEN])  # (heads, L, L)
    found = graph.node("MatMul", graph.node("Softmax", scores, axis=2), value)
    return graph.node("Reshape", graph.node("Transpose", found, perm=(1, 0, 2)), [a.legs, -1])


def _together(graph: Graph, seen: str, velocity: str, log_std: str) -> None:
    """All legs, weighted by their information."""
    information = graph.node("Exp", graph.node("Mul", log_std, [-2.0]))
    information = graph.node("Where", seen, information, [0.0])
    total = graph.node("Max", graph.node("ReduceSum", information, [0], keepdims=0), [NOTHING])
    weighted = graph.node("ReduceSum", graph.node("Mul", information, velocity), [0], keepdims=0)
    graph.node("Div", weighted, total, to=graph.output("velocity", OUTPUTS))
    graph.node("Mul", graph.node("Log", total), [-0.5], to=graph.output("log_std", OUTPUTS))


def _layer(graph: Graph, x: str, layer: Array) -> str:
    """Rows of x through a layer whose offset is its first column."""
    return graph.layer(x, layer[:, 1:], layer[:, 0])
