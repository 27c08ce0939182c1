"""`gait export`: a method or a model for programs that are not Python."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, refuse_overwriting
from gait.errors import GaitError
from gait.rows import Row

if TYPE_CHECKING:
    from gait.nets.model import Model


@dataclass(frozen=True)
class ExportOptions(Common):
    """Write one step of a network as an ONNX graph, or the whole estimator as one C file and its header."""

    model: Positional[str]
    """A method (gait-legs, gait, iekf, ...), a model that comes with gait, or the path of a model file."""
    format: Literal["onnx", "c"]
    """onnx: the network alone. c: the whole estimator, C99 without dependencies."""
    # Not `... | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """The file to write: NAME.onnx, or NAME for NAME.c and NAME.h. By default named after the method and the robot."""
    robot: Optional[str] = None  # noqa: UP045
    """For c: whose legs, drives and IMU pose go in (a name, or the path of a YAML file); by default the robot of the
    model, or the Go1."""
    force: bool = False
    """Write over files that are there."""


def run(options: ExportOptions) -> Outcome:
    """Read the model and write its other form."""
    from gait.export.c import model_of
    from gait.nets.cost import folded_multiply_adds

    model = model_of(options.model)
    robot = options.robot or (model.robot if model else "go1")
    rows = [Row("robot", robot, "-")]
    if model is not None:
        a = model.architecture
        rows = [Row("network", a.kind, "-"), *rows, Row("rate", model.rate, "Hz")]
        rows += [Row("inputs", " ".join(a.inputs), "-"), Row("multiply_adds", folded_multiply_adds(a), "-")]
    if options.format == "c":
        return _c(options, robot, rows)
    if options.robot is not None:
        raise GaitError("--robot is for --format c: the ONNX graph holds the network alone")
    if model is None:
        raise GaitError(f"method {options.model} has no network: ask for --format c")
    return _onnx(options, model, rows)


def _onnx(options: ExportOptions, model: Model, rows: list[Row]) -> Outcome:
    from gait.export.onnx import save_onnx

    out = options.out or Path(f"{Path(options.model).stem}.onnx")
    if out.suffix != ".onnx":
        raise GaitError(f"{out} does not end in .onnx: rename it, or ask for --format c")
    refuse_overwriting([out], options.force)
    graph = save_onnx(model, out).graph
    counts = {"inputs": graph.input, "outputs": graph.output, "nodes": graph.node}
    rows += [Row(f"graph_{name}", len(some), "-") for name, some in counts.items()]
    rows.append(Row("size", out.stat().st_size, "B"))
    code = f"import onnxruntime as o; print([i.name for i in o.InferenceSession({json.dumps(str(out))}).get_inputs()])"
    return Outcome(rows, title=f"{options.model} as ONNX", wrote=out, next=f"python -c {shlex.quote(code)}")


def _c(options: ExportOptions, name: str, rows: list[Row]) -> Outcome:
    from gait.export.c import save_c
    from gait.robot import Robot

    robot = Robot.load(name)
    out = options.out or Path(f"{re.sub(r'[^A-Za-z0-9]', '_', Path(options.model).stem)}_{robot.name}")
    if out.suffix not in ("", ".c", ".h"):
        raise GaitError(f"{out} is no name for C files: give {out.with_suffix('')}, or ask for --format onnx")
    refuse_overwriting([out.with_suffix(".c"), out.with_suffix(".h")], options.force)
    source, header = save_c(options.model, out, robot)
    rows += [Row(f"{what}_size", file.stat().st_size, "B") for what, file in (("source", source), ("header", header))]
    command = shlex.join(["gcc", "-std=c99", "-O3", "-c", str(source), "-o", str(source.with_suffix(".o"))])
    return Outcome(rows, title=f"{options.model} as C", wrote=source, next=command)
