"""An ONNX file as a controller: observation in, action out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gait.arrays import Array
from gait.errors import GaitError, need_extra

Float32 = npt.NDArray[np.float32]
Memory = dict[str, Any]
"""Recurrent inputs by name; empty for a policy without any."""


class OnnxPolicy:
    """A network that takes an observation (1, N) and gives an action (1, J).

    A recurrent network has further inputs `x_in` and outputs `x_out` of the same shape, as rsl_rl exports them.

    Attributes:
        observation_size: N, or None where the file leaves it open.
        action_size: J, or None.
        metadata: text by name.
    """

    def __init__(self, path: Path) -> None:
        try:
            import onnxruntime
        except ModuleNotFoundError:
            raise need_extra("onnxruntime", "sim") from None
        if not path.is_file():
            raise GaitError(f"there is no policy {path}: give the path of an ONNX file with --policy")
        options = onnxruntime.SessionOptions()
        # Small networks: threads cost more than they bring, and workers share the machine.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises a class of its own for each kind of damage
            first = str(error).splitlines()[0]
            raise GaitError(f"{path} is no ONNX file that onnxruntime can run: {first}") from None
        observation, *others = self._session.get_inputs()
        outputs = {output.name: output for output in self._session.get_outputs()}
        action = self._session.get_outputs()[0]
        self._observation, self._action = observation.name, action.name
        self.observation_size, self.action_size = (_last(tensor.shape) for tensor in (observation, action))
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        self._recurrent: dict[str, tuple[str, tuple[int, ...]]] = {}
        for tensor in others:
            out = tensor.name.removesuffix("_in") + "_out"
            if out not in outputs:
                raise GaitError(
                    f"{path} has an input '{tensor.name}' beside the observation, and no output '{out}' to feed it"
                    " from: export a policy that takes an observation alone"
                )
            shape = tuple(n if isinstance(n, int) else 1 for n in tensor.shape)
            self._recurrent[tensor.name] = out, shape

    def start(self) -> Memory:
        """Initial state of a recurrent policy."""
        return {name: np.zeros(shape, dtype=np.float32) for name, (_, shape) in self._recurrent.items()}

    def __call__(self, observation: Float32, memory: Memory) -> Array:
        """The action (J,) for an observation (N,); `memory` is updated."""
        outputs = [self._action, *(out for out, _ in self._recurrent.values())]
        action, *after = self._session.run(outputs, {self._observation: observation[None], **memory})
        memory.update(zip(self._recurrent, after, strict=True))
        return np.asarray(action, dtype=np.float64).reshape(-1)


def _last(shape: list[Any]) -> int | None:
    return shape[-1] if shape and isinstance(shape[-1], int) else None
