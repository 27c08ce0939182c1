"""An ONNX graph, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from gait.arrays import AnyArray
from gait.errors import need_extra

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
