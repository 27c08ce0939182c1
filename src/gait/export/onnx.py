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
from typing import TYPE_CHECKING, Any

import numpy as np

from gait._version import __version__
from gait.arrays import AnyArray, Array
from gait.errors import need_extra
from gait.io.atomic import atomic_path
from gait.nets.architecture import HIDDEN, JOINTS, OUTPUTS, AttentionArchitecture, LegsArchitecture
from gait.nets.features import PER_LEG, SHARED, VELOCITY
from gait.nets.model import VERSION, Model
from gait.nets.parts import LegParts, Parts, leg_parts, parts_of

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET, IR_VERSION = 17, 8
"""Old enough for ONNX Runtime 1.13 and later."""
NOTHING = -1e29
"""Score of the row that stands in if there is nothing else."""
NO_INFORMATION = 1e-30
"""Of all legs together if none is seen."""
Constant = AnyArray | list[float] | list[int] | list[bool]


class Graph:
    """Nodes, constants, inputs and outputs, gathered one by one; everything goes by its name."""

    def __init__(self) -> None:
        try:
            import onnx
        except ModuleNotFoundError:
            raise need_extra("onnx", "export") from None
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, *shape: int, boolean: bool = False) -> str:
        """An input of the graph."""
        self.inputs.append(self._value(name, shape, boolean))
        return name

    def output(self, name: str, *shape: int, boolean: bool = False) -> str:
        """An output of the graph, for the node that gives it."""
        self.outputs.append(self._value(name, shape, boolean))
        return name

    def node(self, kind: str, *inputs: str | Constant, to: str | tuple[str, ...] = "", **attributes: Any) -> str:
        """A node on inputs that are names or constants; its output has a name of its own unless `to` gives one."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        outputs = to if isinstance(to, tuple) else (to or f"{kind}_{len(self.nodes)}",)
        self.nodes.append(self.onnx.helper.make_node(kind, names, outputs, f"{kind}_{len(self.nodes)}", **attributes))
        return outputs[0]

    def layer(self, x: str, weight: AnyArray, bias: AnyArray) -> str:
        """Rows of x through a linear layer (outputs, inputs)."""
        return self.node("Gemm", x, weight.T, bias)

    def bounded(self, raw: str, low: float, high: float, to: str = "") -> str:
        """A log-std within its bounds."""
        return self.node("Add", self.node("Mul", self.node("Sigmoid", raw), [high - low]), [low], to=to)

    def _constant(self, value: Constant) -> str:
        array, name = np.ascontiguousarray(value), f"constant_{len(self.constants)}"
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def _value(self, name: str, shape: tuple[int, ...], boolean: bool) -> Any:
        kind = self.onnx.TensorProto.BOOL if boolean else self.onnx.TensorProto.FLOAT
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)


def onnx_model(model: Model) -> ModelProto:
    """The ONNX form of a model: see `docs/export.md` for its inputs and outputs.

    Raises:
        GaitError: if onnx is not installed.
    """
    graph, a = Graph(), model.architecture
    (_legs_graph if isinstance(a, LegsArchitecture) else _sequence_graph)(graph, model)
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
    # Lists and tables are JSON.
    header = {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in model.header.items()
    }
    about = {"gait": "model", "version": str(VERSION), "gait_version": __version__}
    onnx.helper.set_model_props(proto, about | header)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def _sequence_graph(graph: Graph, model: Model) -> None:
    """From a sample to velocity and log-std, for the networks with GRUs."""
    a, p = model.architecture, parts_of(model)
    joints = JOINTS * a.legs
    features = [graph.input("gyro", 3), graph.input("accel", 3), graph.input("q", joints), graph.input("dq", joints)]
    if a.targets:
        features.append(graph.node("Sub", graph.input("q_des", joints), "q"))
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


def _legs_graph(graph: Graph, model: Model) -> None:
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
        y = graph.node("Split", y, [OUTPUTS, 1], to=("raw", "shift"), axis=1)
        along_z = graph.node("Mul", "shift", [0.0, 0.0, 1.0])
        velocity = graph.node("Where", column, graph.node("Add", velocity, along_z), velocity)
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
    total = graph.node("Max", graph.node("ReduceSum", information, [0], keepdims=0), [NO_INFORMATION])
    weighted = graph.node("ReduceSum", graph.node("Mul", information, velocity), [0], keepdims=0)
    graph.node("Div", weighted, total, to=graph.output("velocity", OUTPUTS))
    graph.node("Mul", graph.node("Log", total), [-0.5], to=graph.output("log_std", OUTPUTS))


def _layer(graph: Graph, x: str, layer: Array) -> str:
    """Rows of x through a layer whose offset is its first column."""
    return graph.layer(x, layer[:, 1:], layer[:, 0])
