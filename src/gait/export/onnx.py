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


class Graph:
    """Nodes, constants, inputs and outputs, gathered one by one."""

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

    def constant(self, name: str, value: Any, kind: Any = np.float32) -> str:
        """A constant, by its name."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def input(self, name: str, *shape: int, boolean: bool = False) -> str:
        """An input of the graph, by its name."""
        self.inputs.append(self._value(name, shape, boolean))
        return name

    def output(self, name: str, *shape: int, boolean: bool = False) -> str:
        """An output of the graph; its name is for the node that gives it."""
        self.outputs.append(self._value(name, shape, boolean))
        return name

    def node(self, kind: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        """A node; returns the name of its first output."""
        self.nodes.append(
            self.onnx.helper.make_node(kind, inputs, list(outputs), name=f"{kind}_{outputs[-1]}", **attributes)
        )
        return outputs[0]

    def layer(self, name: str, x: str, weight: Array, bias: Array) -> str:
        """Rows of x through a linear layer (outputs, inputs)."""
        return self.node(
            "Gemm", [x, self.constant(f"{name}_weight", weight.T), self.constant(f"{name}_bias", bias)], name
        )

    def relu(self, x: str) -> str:
        """The positive part."""
        return self.node("Relu", [x], f"{x}_active")

    def bounded(self, raw: str, low: float, high: float, name: str) -> str:
        """A log-std within its bounds."""
        share = self.node("Sigmoid", [raw], "share")
        above = self.node("Mul", [share, self.constant("span", [high - low])], "above")
        return self.node("Add", [above, self.constant("low", [low])], name)

    def _value(self, name: str, shape: tuple[int, ...], boolean: bool) -> Any:
        kind = self.onnx.TensorProto.BOOL if boolean else self.onnx.TensorProto.FLOAT
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)


def onnx_model(model: Model) -> ModelProto:
    """The ONNX form of a model: see `docs/export.md` for its inputs and outputs.

    Raises:
        GaitError: if onnx is not installed.
    """
    graph, a = Graph(), model.architecture
    if isinstance(a, LegsArchitecture):
        from gait.export.onnx_legs import legs_graph

        legs_graph(graph, model)
    else:
        _sequence_graph(graph, model)
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
    tables = {
        "leg_names": model.leg_names,
        "joint_names": model.joint_names,
        "architecture": model.architecture.as_dict(),
        "training": model.training,
        "data": model.data,
        "results": model.results,
    }
    return {
        "gait": "model",
        "version": str(VERSION),
        "gait_version": __version__,
        "robot": model.robot,
        "rate": repr(model.rate),
        "commit": model.commit,
        **{name: json.dumps(value, sort_keys=True) for name, value in tables.items()},
    }


def _sequence_graph(graph: Graph, model: Model) -> None:
    """From a sample to velocity and log-std, for the networks with GRUs."""
    a, p = model.architecture, parts_of(model)
    features = _features(graph, model)
    if isinstance(a, AttentionArchitecture):
        vector = _attention(graph, p, a, features)
        p = p._replace(gate_weight=_gates_of_rows(p, a))
    else:
        vector = graph.node("Concat", features, "features", axis=0)
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
        names.append(graph.node("Sub", [graph.input("q_des", joints), "q"], "e"))
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
    numbers = graph.node("Concat", [*features, graph.constant("zero_one", [0.0, 1.0])], "numbers", axis=0)
    rows = graph.node("Gather", [numbers, graph.constant("pick", pick, np.int64)], "sample", axis=0)
    always = graph.constant("always", [True, True], np.bool_)
    if slots > 1:
        rows = graph.node("Concat", [graph.input("history", before, width), rows], "window", axis=0)
        known = [graph.input("history_seen", before, boolean=True), seen, always]
        ends = [graph.constant("first", [tokens], np.int64), graph.constant("last", [tokens + before], np.int64)]
        graph.node("Slice", [rows, *ends], graph.output("next_history", before, width))
        visible = graph.node("Concat", known, "visible", axis=0)
        graph.node("Slice", [visible, *ends], graph.output("next_history_seen", before, boolean=True))
    else:
        visible = graph.node("Concat", [seen, always], "visible", axis=0)
    slot = np.zeros((slots * tokens + 2, slots))
    slot[: slots * tokens] = np.repeat(np.eye(slots), tokens, axis=0)
    rows = graph.node("Concat", [rows, graph.constant("slot", slot)], "rows", axis=1)  # (Nt C + 2, P)

    question = np.zeros((queries + 1, width + slots))
    question[:queries] = p.score
    bias = np.zeros((queries + 1, slots * tokens + 2))
    bias[:queries, -2:] = NOTHING, HIDDEN
    bias[queries, :-1] = HIDDEN
    hidden = graph.constant("hidden", [HIDDEN])
    bias_of = graph.node("Where", [visible, graph.constant("bias", bias), hidden], "visible_bias")
    scores = graph.node("Gemm", [graph.constant("question", question), rows, bias_of], "scores", transB=1)
    weights = graph.node("Softmax", [scores], "weights", axis=1)
    return graph.node("MatMul", [weights, rows], "pooled")  # (Q + 1, P)


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
    arrays = [
        graph.constant("gate_weight", _onnx_order(p.gate_weight)),
        graph.constant("recurrent_weight", _onnx_order(p.recurrent_weight)),
        graph.constant("gate_bias", np.concatenate([_onnx_order(p.gate_bias), _onnx_order(offset)], axis=1)),
    ]
    sequence = graph.node("Reshape", [vector, graph.constant("one_step", [1, 1, -1], np.int64)], "inputs")
    graph.node(
        "GRU",
        [sequence, *arrays, "", graph.input("hidden_state", grus, 1, hidden)],
        "",
        graph.output("next_hidden_state", grus, 1, hidden),
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
    flat = graph.node("Reshape", ["next_hidden_state", graph.constant("one_row", [1, -1], np.int64)], "state_row")
    layer = graph.relu(graph.layer("layer", flat, first.reshape(2 * mlp, -1), p.hidden_bias.ravel()))
    both = graph.layer("both_row", layer, second.reshape(2 * OUTPUTS, -1), p.output_bias.ravel())
    both = graph.node("Reshape", [both, graph.constant("flat", [-1], np.int64)], "both")
    graph.output("velocity", OUTPUTS)
    graph.node("Split", [both, graph.constant("halves", [OUTPUTS, OUTPUTS], np.int64)], "velocity", "raw", axis=0)
    graph.bounded("raw", *bounds, graph.output("log_std", OUTPUTS))


def _onnx_order(gates: AnyArray) -> AnyArray:
    """ONNX has the update gate first."""
    reset, update, new = np.split(gates, 3, axis=1)
    return np.concatenate([update, reset, new], axis=1)
