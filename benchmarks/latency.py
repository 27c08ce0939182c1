"""How long a step takes, ours and that of rivals, in one run: `make bench`; see `gait.bench.latency` for the rows.

python benchmarks/latency.py           # add --json for machines
python benchmarks/latency.py --write   # into docs/estimator.md
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from importlib.metadata import version

from sections import DOCS, markdown, paragraph, write_section

from gait.bench.latency import latency_report
from gait.estimator import METHODS
from gait.report.describe import installation
from gait.report.table import rows_to_table
from gait.rows import Row, rows_to_json

RUNTIMES = {
    "core": "`Estimator.update`",
    "onnxruntime": "ONNX Runtime, then our filter",
    "torch_jit": "torch.jit, then our filter",
    "torch_eager": "torch, then our filter",
    "gtsam": "gtsam's LeggedInvariantEKF, feet given",
}
"""Columns of the JSON names and how the documentation calls them."""


def section(rows: Sequence[Row]) -> str:
    """Tables and a word on the machine, as they stand in the documentation."""
    values = {row.name: row.value for row in rows if not isinstance(row.value, str)}
    methods = [method for method in METHODS if f"{method}.core.step_us" in values]

    def cell(name: str) -> str:
        value = values.get(name)
        if value is None:
            return ""
        return f"{value:.1f}" if value < 100.0 else f"{value:.0f}"

    lines = [
        ["in C: the loop of `run`, or the exported file", *(cell(f"{method}.core.kernel_us") for method in methods)]
    ]
    lines += [
        [text, *(cell(f"{method}.{name}.step_us") for method in methods)]
        for name, text in RUNTIMES.items()
        if any(f"{method}.{name}.step_us" in values for method in methods)
    ]
    parts = [markdown(["median time of a step, us", *(f"`{method}`" for method in methods)], lines)]
    paced = [name for name in RUNTIMES if f"gait.{name}.paced_p50_us" in values]
    if paced:
        lines = [[RUNTIMES[n], cell(f"gait.{n}.paced_p50_us"), cell(f"gait.{n}.paced_p99_us")] for n in paced]
        parts.append(markdown(["`gait`, a sample every 2 ms, us", "median", "99 % are below"], lines))
    parts.append(paragraph(_rest(values)))
    return "\n\n".join(parts)


def _rest(values: dict[str, float]) -> str:
    """What is not a table: throughput, start, memory, and the machine."""
    about = {row.name: row.value for row in installation()}
    texts = []
    if "gait.run.samples_per_second" in values:
        texts.append(f"`Estimator.run` with `gait` does {values['gait.run.samples_per_second']:,.0f} samples a second.")
    if "gait.start_s" in values:
        text = f"A fresh process has its first state after {values['gait.start_s']:.2f} s"
        if "gait.memory_mb" in values:
            text += f", and has grown by {values['gait.memory_mb']:.0f} MB"
        texts.append(f"{text}.")
    texts.append(
        f"Measured on {about['cpu']}, {about['cores']} cores, at a load average of {values['load_average']:.1f};"
        f" Python {platform.python_version()}, torch {version('torch')}, ONNX Runtime"
        f" {version('onnxruntime')}, each on one thread."
    )
    return " ".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each rival")
    parser.add_argument("--methods", nargs="+", default=None, metavar="METHOD")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/estimator.md")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = latency_report(args.methods, args.seconds)
    if args.json:
        print(rows_to_json(rows))
    else:
        from rich.console import Console

        print("latency: one sample in, state out")
        Console().print(rows_to_table(rows))
    if args.write:
        write_section("latency", section(rows), DOCS / "estimator.md")


if __name__ == "__main__":
    main()
