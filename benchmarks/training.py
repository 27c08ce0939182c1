"""Speed of training on one core: the folded form against unfolded windows, and each network; add `--json` for rows.

Times are CPU seconds of this process, so that neighbours on a busy machine do not count. The rivals take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from gait.nets import architecture_of
from gait.nets.base import Outputs, VelocityNet
from gait.nets.build import build
from gait.nets.gait import GaitNet
from gait.report.table import rows_to_table
from gait.rows import Row, rows_to_json
from gait.train.config import TrainConfig
from gait.train.losses import loss_of

CONFIG = TrainConfig()


def network(kind: str) -> VelocityNet:
    architecture = architecture_of({"kind": kind})
    torch.manual_seed(0)
    return build(architecture, np.zeros(architecture.num_features), np.ones(architecture.num_features))


def update(net: VelocityNet, sequences: int, form: str, uncertain: bool = True) -> Callable[[], None]:
    """One update of the weights: `truncate` steps forward and back, masked as in training, and a step of Adam."""
    steps, a = CONFIG.truncate, net.architecture
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(sequences, steps, a.num_features, generator=draw)
    velocity, contact = torch.randn(sequences, steps, 3, generator=draw), torch.zeros(sequences, steps, a.legs)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-6)
    state = net.start(sequences)

    def keep() -> torch.Tensor | None:
        if not isinstance(net, GaitNet):
            return None
        return torch.rand(sequences, steps, net.architecture.history, len(net.architecture.tokens)) >= CONFIG.mask

    def forward() -> Outputs:
        if form == "folded":
            return net.run(inputs, state, keep(), uncertain)
        assert isinstance(net, GaitNet)
        return net.plain(inputs, state, keep())

    def run() -> None:
        loss = loss_of(forward(), velocity, contact, CONFIG.contact_weight)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), CONFIG.clip)
        optimiser.step()

    return run


def medians(rivals: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of a call of each rival, in turn, after one call to warm up."""
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    for number in range(rounds + 1):
        for name, rival in rivals.items():
            start = time.process_time()
            rival()
            if number:
                samples[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    forms = medians({form: update(network("gait"), 64, form) for form in ("folded", "unfolded")}, args.rounds)
    rows = [Row(f"gait.64_sequences.{form}_update", seconds, "s") for form, seconds in forms.items()]
    rows.append(Row("gait.folded_times_faster", forms["unfolded"] / forms["folded"], "x"))
    updates = CONFIG.steps // CONFIG.truncate
    first = CONFIG.l1_iterations / CONFIG.iterations
    for sequences in (32, 64):
        for kind in ("gait", "gait-flat", "nmn"):
            net = network(kind)
            rivals = {str(stage): update(net, sequences, "folded", stage == 2) for stage in (1, 2)}
            stages = medians(rivals, args.rounds)
            mean = updates * (first * stages["1"] + (1.0 - first) * stages["2"])
            rows.append(Row(f"{kind}.{sequences}_sequences.iteration", mean, "s"))
            rows.append(Row(f"{kind}.{sequences}_sequences.training", mean * CONFIG.iterations / 60.0, "min"))
    if args.json:
        print(rows_to_json(rows))
    else:
        from rich.console import Console

        print("training on one core: CPU time")
        Console().print(rows_to_table(rows))


if __name__ == "__main__":
    main()
