"""One step of a network as an ONNX graph of about twenty nodes, float32. A state of zeros is the start of a log.

The attention as matrices, for Nt samples of C tokens (P and Q as in `gait.nets.parts`):

    rows     (Nt C + 2, P)      a token's raw numbers at its embedding's place, a one for the token, a one for the slot
    weights  (Q + 1, Nt C + 2)  softmax(queries rows' + bias), the bias of a hidden row being -1e30
    pooled   (Q + 1, P)         weights rows, straight into the gates

Two rows are not tokens. "Nothing" is all zeros and wins only if every token is hidden. "Now" holds the gyro and the
accelerometer of this sample, and the last query looks at it alone: so they reach the GRU whatever is hidden. The two
GRUs are the two directions of one, which is the same thing for a sequence of one step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gait._version import __version__
from gait.arrays import AnyArray, Array
from gait.export.onnx_graph import Graph
from gait.export.onnx_legs import legs_graph
from gait.io.atomic import atomic_path
from gait.nets.architecture import JOINTS, AttentionArchitecture, LegsArchitecture
from gait.nets.model import VERSION, Model
from gait.nets.parts import Parts, parts_of
from gait.nets.shapes import OUTPUTS

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET, IR_VERSION = 17, 8
"""Old enough for ONNX Runtime 1.13 and later."""
HIDDEN, NOTHING = -1e30, -1e29
"""Scores of what may not be seen, and of the row that stands in if there is nothing else."""


def onnx_model(model: Model) -> ModelProto:
    """The ONNX form of a model: see `docs/export.md` for its inputs and outputs.

    Raises:
        GaitError: if onnx is not installed.
    """
    graph, a = Graph(), model.architecture
    (legs_graph if isinstance(a, LegsArchitecture) else _sequence_graph)(graph, model)
    onnx = graph.onnx
    name = f"gait_{a.kind}_{model.robot}"
    proto: ModelProto = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, name, graph.inputs, graph.outputs, graph.constants),
        producer_name="gait",
        producer_version=__version__,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        doc_string=f"One step of {a.kind} for {model.robot} at {model.rate:g} Hz; a state of zeros starts a log.",
    )
    onnx.helper.set_model_props(proto, metadata_of(model))
    onnx.checker.check_model(proto, full_check=True)
    return proto


def metadata_of(model: Model) -> dict[str, str]:
    """What a model file says about its network, as texts: lists and tables are JSON."""
    return {
        "gait": "model",
        "version": str(VERSION),
        "gait_version": __version__,
        **{
            name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for name, value in model.header.items()
        },
    }


def _sequence_graph(graph: Graph, model: Model) -> None:
    """From a sample to velocity and log-std, for the networks with GRUs."""
    a, p = model.architecture, parts_of(model)
    features = _features(graph, model)
    if isinstance(a, AttentionArchitecture):
        vector = _attention(graph, p, a, features)
        p = p._replace(gate_weight=_gates_of_rows(p, a))
    else:
        vector = graph.node("Concat", *features, axis=0)
    _heads(graph, p, vector, (a.log_std_min, a.log_std_max))


def save_onnx(model: Model, path: str | Path) -> ModelProto:
    """Write the ONNX form of a model, whole or not at all, and return it."""
    proto = onnx_model(model)
    with atomic_path(path) as temporary:
        temporary.write_bytes(proto.SerializeToString(deterministic=True))
    return proto


def _features(graph: Graph, model: Model) -> list[str]:
    """The inputs of a sample, in the order of the feature vector."""
    joints = JOINTS * model.architecture.legs
    names = [graph.input("gyro", 3), graph.input("accel", 3), graph.input("q", joints), graph.input("dq", joints)]
    if model.architecture.targets:
        names.append(graph.node("Sub", graph.input("q_des", joints), "q"))
    return names


def _attention(graph: Graph, p: Parts, a: AttentionArchitecture, features: list[str]) -> str:
    """From the features to the pooled numbers."""
    tokens, slots, queries = len(a.tokens), a.history, a.latents * a.heads
    width, before = sum(a.embeddings.values()) + tokens, (slots - 1) * tokens
    seen = graph.input("seen", tokens, boolean=True)

    # Rows of this sample: numbers are picked from [features, 0, 1], so that one node lays them all out.
    pick = np.full((tokens + 2, width), a.num_features)
    pick[:tokens] = a.pooled_columns
    pick[tokens + 1, :6] = range(6)
    rows = graph.node("Gather", graph.node("Concat", *features, [0.0, 1.0], axis=0), pick, axis=0)
    known, ends = [seen], ([tokens], [tokens + before])
    if slots > 1:
        rows = graph.node("Concat", graph.input("history", before, width), rows, axis=0)
        graph.node("Slice", rows, *ends, to=graph.output("next_history", before, width))
        known = [graph.input("history_seen", before, boolean=True), seen]
    visible = graph.node("Concat", *known, [True, True], axis=0)
    if slots > 1:
        graph.node("Slice", visible, *ends, to=graph.output("next_history_seen", before, boolean=True))
    slot = np.zeros((slots * tokens + 2, slots))
    slot[: slots * tokens] = np.repeat(np.eye(slots), tokens, axis=0)
    rows = graph.node("Concat", rows, slot, axis=1)  # (Nt C + 2, P)

    question = np.zeros((queries + 1, width + slots))
    question[:queries] = p.score
    bias = np.zeros((queries + 1, slots * tokens + 2))
    bias[:queries, -2:] = NOTHING, HIDDEN
    bias[queries, :-1] = HIDDEN
    scores = graph.node("Gemm", question, rows, graph.node("Where", visible, bias, [HIDDEN]), transB=1)
    return graph.node("MatMul", graph.node("Softmax", scores, axis=1), rows)  # (Q + 1, P)


def _gates_of_rows(p: Parts, a: AttentionArchitecture) -> Array:
    """The gates' matrix (2, 3 H, (Q + 1) P) on what the queries pool; the last one pools gyro, accelerometer, zeros."""
    grus, gates, _ = p.gate_weight.shape
    encoder, now = np.split(p.gate_weight, [a.latents * a.width], axis=2)
    pooled = np.einsum("grmo,hop->grmhp", encoder.reshape(grus, gates, a.latents, a.width), p.encode)
    rest = np.zeros((grus, gates, p.encode.shape[2] - 6))
    return np.concatenate([pooled.reshape(grus, gates, -1), now, rest], axis=2)


def _heads(graph: Graph, p: Parts, vector: str, bounds: tuple[float, float]) -> None:
    """From the numbers that the gates read to velocity, log-std and the next hidden state."""
    grus, hidden, mlp = len(p.gate_weight), p.recurrent_weight.shape[2], p.hidden_weight.shape[1]
    offset = np.concatenate([np.zeros((grus, 2 * hidden)), p.recurrent_bias], axis=1)
    graph.node(
        "GRU",
        graph.node("Reshape", vector, [1, 1, -1]),
        _onnx_order(p.gate_weight),
        _onnx_order(p.recurrent_weight),
        np.concatenate([_onnx_order(p.gate_bias), _onnx_order(offset)], axis=1),
        "",
        graph.input("hidden_state", grus, 1, hidden),
        to=("", graph.output("next_hidden_state", grus, 1, hidden)),
        hidden_size=hidden,
        linear_before_reset=1,
        direction="bidirectional" if grus == 2 else "forward",
    )
    # One matrix for both heads: where each has its own GRU, what would cross over is zero.
    first = np.zeros((2, mlp, grus, hidden))
    second = np.zeros((2, OUTPUTS, 2, mlp))
    for i in range(2):
        first[i, :, i % grus] = p.hidden_weight[i]
        second[i, :, i] = p.output_weight[i]
    state = graph.node("Reshape", "next_hidden_state", [1, -1])
    layer = graph.node("Relu", graph.layer(state, first.reshape(2 * mlp, -1), p.hidden_bias.ravel()))
    both = graph.layer(layer, second.reshape(2 * OUTPUTS, -1), p.output_bias.ravel())
    velocity = graph.output("velocity", OUTPUTS)
    graph.node("Split", graph.node("Reshape", both, [-1]), [OUTPUTS, OUTPUTS], to=(velocity, "raw"), axis=0)
    graph.bounded("raw", *bounds, to=graph.output("log_std", OUTPUTS))


def _onnx_order(gates: AnyArray) -> AnyArray:
    """ONNX has the update gate first."""
    reset, update, new = np.split(gates, 3, axis=1)
    return np.concatenate([update, reset, new], axis=1)
