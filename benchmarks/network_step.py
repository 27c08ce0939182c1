"""Speed of one step of each network, interleaved in one run: `python benchmarks/network_step.py`, or add `--json`.

Core: core/network.c and core/leg_network.c in a loop of C, for this machine and for older ones. numpy: the reference.
torch: the network itself, one step with its state, eager.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gait.bench.timing import Burst, burst_medians, burst_of
from gait.binding import aligned_bytes, pointer
from gait.nets.architecture import LegsArchitecture
from gait.nets.build import network_of
from gait.nets.leg_pack import pack_legs
from gait.nets.model import Model
from gait.nets.pack import pack
from gait.reference.network import NumpyLegs, NumpyNetwork
from gait.report.table_text import rows_to_table
from gait.rows import Row, rows_to_json

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from net_samples import random_model

ROOT = Path(__file__).parents[1]
BUILDS = {"core": "native", "core_v3": "x86-64-v3", "core_x86_64": "x86-64"}
LOOP = """
#include "network.h"
void loop(const gait_network *n, float *memory, const float *x, const unsigned char *seen, float *out, int steps)
{
    for (int i = 0; i < steps; i++) gait_network_step(n, memory, x, seen, out);
}
void loop_legs(const gait_leg_network *n, float *memory, const double *x, const unsigned char *seen, float *out,
               int steps)
{
    for (int i = 0; i < steps; i++) gait_leg_network_step(n, 4, memory, x, seen, seen, out);
}
"""


def build(folder: Path, march: str) -> Any:
    (folder / "loop.c").write_text(LOOP)
    sources = [ROOT / "core/network.c", ROOT / "core/leg_network.c", folder / "loop.c"]
    flags = ["-std=c99", "-O3", "-ffp-contract=off", "-shared", "-fPIC", f"-march={march}", f"-I{ROOT / 'core'}"]
    subprocess.run(["cc", *flags, *map(str, sources), "-o", str(folder / f"{march}.so")], check=True)
    library = ctypes.CDLL(str(folder / f"{march}.so"))
    library.gait_network_floats.restype = library.gait_leg_network_floats.restype = ctypes.c_size_t
    return library


def core_burst(library: Any, model: Model, x: np.ndarray) -> Burst:
    by_leg = isinstance(model.architecture, LegsArchitecture)
    packed = pack_legs(model) if by_leg else pack(model)
    at, seen, out = ctypes.byref(packed), np.ones(16, dtype=np.uint8), np.zeros(24, dtype=np.float32)
    count = library.gait_leg_network_floats(at, 4) if by_leg else library.gait_network_floats(at)
    memory, x = aligned_bytes(4 * count), x.astype(np.float64 if by_leg else np.float32)
    loop = library.loop_legs if by_leg else library.loop
    arrays = (memory, x, seen, out)

    def burst(steps: int) -> float:
        return burst_of(lambda: loop(at, *(ctypes.c_void_p(pointer(array)) for array in arrays), steps))(1)

    return burst


def rivals(model: Model, libraries: dict[str, Any]) -> dict[str, Burst]:
    x, every = np.random.default_rng(0).normal(size=model.architecture.num_features), np.ones(4, dtype=bool)
    net = network_of(model)
    one, state = torch.from_numpy(x.astype(np.float32))[None, None], net.start(1)

    def torch_step() -> None:
        nonlocal state
        with torch.no_grad():
            _, _, state = net(one, state)

    bursts = {name: core_burst(library, model, x) for name, library in libraries.items()}
    if isinstance(model.architecture, LegsArchitecture):
        legs = NumpyLegs(model)
        return bursts | {"numpy": burst_of(lambda: legs.step(x, every, every)), "torch": burst_of(torch_step)}
    network = NumpyNetwork(model)
    return bursts | {"numpy": burst_of(lambda: network.step(x)), "torch": burst_of(torch_step)}


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        libraries = {name: build(Path(folder), march) for name, march in BUILDS.items()}
        for kind in ("gait", "gait-flat", "nmn", "gait-legs"):
            # Bursts shorter than a time slice: on a busy machine most of them are left alone.
            times = burst_medians(rivals(random_model(kind), libraries), rounds=301, seconds=0.0003)
            rows += [Row(f"{kind}.{name}_step", value, "us") for name, value in times.items()]
            rows.append(Row(f"{kind}.times_faster_than_torch", times["torch"] / times["core"], "x"))
    if "--json" in sys.argv:
        print(rows_to_json(rows))
    else:
        from rich.console import Console

        print("networks: median time of one step")
        Console().print(rows_to_table(rows))


if __name__ == "__main__":
    main()
