"""Speed of one step of each network, four ways in the same run: `python benchmarks/network_step.py`, or add `--json`.

Compiled: `gait.runtime.network` inside a compiled loop, as a filter calls it. numpy: its twin. Reference: the readable
fold in double precision, which `nmn` has none of. torch: the network itself, one step with its state, eager.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from gait.runtime.network import network_step, new_memory, pack
from gait.runtime.network_numpy import NumpyNetwork

from gait._compile import compiled
from gait.bench.timing import medians
from gait.nets.build import network_of
from gait.nets.fold import FoldedStep
from gait.nets.model import Model
from gait.report.table_text import rows_to_table
from gait.rows import Row, rows_to_json

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from net_samples import random_model

STEPS = 20


@compiled("void(int64[::1], float32[::1], float32[::1], float32[:, ::1], boolean[::1], float32[::1])")
def go_through(sizes, weights, memory, features, seen, out):
    for i in range(len(features)):
        network_step(sizes, weights, memory, features[i], seen, out)


def rivals(model: Model) -> dict[str, Callable[[], object]]:
    a = model.architecture
    inputs = np.random.default_rng(0).normal(size=(STEPS, a.num_features)).astype(np.float32)
    packed, twin, net = pack(model), NumpyNetwork(model), network_of(model)
    memory, out = new_memory(packed), np.zeros(6, dtype=np.float32)
    seen = np.ones(len(getattr(a, "tokens", ())), dtype=np.bool_)
    x, one = inputs[0], torch.from_numpy(inputs[:1])[None]
    state = net.start(1)

    def torch_step() -> None:
        nonlocal state
        with torch.no_grad():
            _, _, state = net(one, state)

    ways: dict[str, Callable[[], object]] = {
        "numba": lambda: go_through(packed.sizes, packed.weights, memory, inputs, seen, out),
        "numpy": lambda: twin.step(x, seen),
        "torch": torch_step,
    }
    if a.kind != "nmn":
        reference, double = FoldedStep(model), inputs[0].astype(np.float64)
        ways["reference"] = lambda: reference(double)
    return ways


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for kind in ("gait", "gait-flat", "nmn"):
        # Bursts shorter than a time slice: on a busy machine most of them are left alone.
        times = medians(rivals(random_model(kind)), rounds=301, burst=0.0003)
        times["numba"] /= STEPS
        rows += [Row(f"{kind}.{name}_step", value, "us") for name, value in times.items()]
        rows.append(Row(f"{kind}.times_faster_than_torch", times["torch"] / times["numba"], "x"))
    if "--json" in sys.argv:
        print(rows_to_json(rows))
    else:
        from rich.console import Console

        print("networks: median time of one step")
        Console().print(rows_to_table(rows))


if __name__ == "__main__":
    main()
