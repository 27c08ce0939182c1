"""The studies of docs/legs.md: what each part of `gait-legs` is worth, another robot, and what it looks at.

    python benchmarks/legs.py --train            # train the variants (about four minutes of one core each; resumable)
    python benchmarks/legs.py                    # print the studies, as far as variants are trained
    python benchmarks/legs.py --write            # and write the sections and figures of docs/legs.md

Variants are trained for a third as long as the shipped weights and judged on held-out walks (benchmarks/held.py), with
sensor faults of other seeds: not on the benchmark's twin, which no choice may look at. The other robot is a Go2 with
all of the twin's imperfections, beside a Go1 with the same ones, from seeds of their own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from held import HEADS, make_walk
from sections import DOCS, markdown, paragraph, write_section

from gait import Estimator, Log, Robot
from gait.io import open_log
from gait.nets.model import Model, load_model, model_names
from gait.parameters import LEGS_NOISE, Options, ProcessNoise
from gait.rows import Row, rows_to_json
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig
from gait.sim.store import read_index
from gait.train.config import TrainConfig, config_of, read_config
from gait.train.faults import MILD, FaultRanges, with_faults

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs/legs"
CONFIG = ROOT / "configs/gait-legs.yaml"
PAGE = DOCS / "legs.md"
IMAGES = DOCS / "images"
SHORT = {"iterations": 1200, "l1_iterations": 900, "episodes": 80}
"""What variants have less of."""
WALKS = ("trot-flat", "trot-slippery", "trot-rough", "bound-flat", "pace-flat", "pronk-flat")
FAULT_SEED = 9
Walks = dict[str, list[Log]]
TROT = ("runs/sim/random",)
GO2_SEED, GO2_GAITS, GO2_SECONDS, GO2_EPISODES = 72001, ("trot", "bound", "pace", "pronk"), 20.0, 3


@dataclass(frozen=True)
class Variant:
    """The usual training with something changed."""

    name: str
    words: str
    changes: dict[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    """Of the filter behind it."""
    noise: ProcessNoise = LEGS_NOISE
    """Of the IMU, in that filter."""
    of: str = "usual"
    """Whose weights it runs, if it has none of its own."""

    @property
    def config(self) -> TrainConfig:
        """How it is trained."""
        return replace(config_of(read_config(CONFIG), str(CONFIG)), **{**SHORT, **self.changes})

    @property
    def weights(self) -> Path:
        """Where its model is, once it is trained."""
        return RUNS / (self.name if self.changes or self.name == "usual" else self.of) / "model.safetensors"


INFLATION = Options().leg_inflation
VARIANTS = (
    Variant("usual", "as usual"),
    Variant("correction", "and a learned correction", {"correction": True}),
    Variant("alone", "no attention across legs", {"across_legs": False}),
    Variant("no-position", "without the foot's position", {"position": False}),
    Variant("no-force", "without the ground's force (kinematics alone)", {"targets": False}),
    Variant("trot-alone", "trained on trot alone: no random robots, ice, hand or rising", {"data": TROT}),
    Variant("exact", "trained without sensor faults", {"faults": False}),
    Variant("in-order", "legs never taken from moments of their own", {"legs_apart": 0.0}),
    Variant("single", "each leg by itself: not through a filter", {"l1_iterations": SHORT["iterations"]}),
    Variant("no-guard", "no guard in the filter", options=Options(leg_guard=1e9)),
    Variant("half", "standard deviations halved", options=Options(leg_inflation=0.5 * INFLATION)),
    Variant("double", "standard deviations doubled", options=Options(leg_inflation=2.0 * INFLATION)),
    Variant("no-delay", "joints taken to be in time", options=Options(joint_delay=0.0)),
    Variant("noisy-imu", "IMU noise of the other methods", noise=ProcessNoise()),
    Variant("even-imu", "IMU noise that does not grow with acceleration", noise=replace(LEGS_NOISE, accel_share=0)),
    Variant("sure-delay", "the joints' delay taken to be known", options=Options(joint_delay_std=0.0)),
)


@dataclass(frozen=True)
class Result:
    """A method on some walks."""

    rmse: float
    """Velocity error, m/s."""
    nees: float
    """Mean normalised squared velocity error; 3 is honest."""
    within: float
    """Share of components within two standard deviations."""

    @property
    def text(self) -> str:
        """For a cell of a table."""
        return f"{self.rmse:.4f} ({self.nees:.1f}, {100 * self.within:.0f} %)"


def faulty_walks(ranges: FaultRanges) -> Walks:
    """The held-out walks, with faults."""
    robot = Robot.load("go1")
    return {
        name: [
            with_faults(log, robot, np.random.default_rng([FAULT_SEED, i]), ranges).log
            for i, log in enumerate(make_walk(name).logs)
        ]
        for name in WALKS
    }


def measure(
    robot: Robot | str,
    method: str | Path | Model,
    logs: Sequence[Log],
    options: Options | None = None,
    noise: ProcessNoise | None = None,
) -> Result:
    """Run a method on logs with truth."""
    estimator = Estimator.load(robot, method, options=options, noise=noise)
    errors, nees, within = [], [], []
    for log in logs:
        trajectory = estimator.run(log)
        error = trajectory.vel_b - log.vel_b
        assert trajectory.vel_cov is not None
        solved = np.linalg.solve(trajectory.vel_cov, error[..., None])[..., 0]
        errors.append(np.square(error).sum(1).mean())
        nees.append(np.einsum("ni,ni->n", error, solved).mean())
        std = np.sqrt(np.einsum("nii->ni", trajectory.vel_cov))
        within.append((np.abs(error) <= 2.0 * std).mean())
    return Result(float(np.sqrt(np.mean(errors))), float(np.mean(nees)), float(np.mean(within)))


def train_variants(names: Sequence[str]) -> None:
    """Train whatever is missing."""
    from gait.train.loop import CHECKPOINT, train

    for variant in VARIANTS:
        if variant.weights.parent.name != variant.name or (names and variant.name not in names):
            continue
        if not variant.weights.exists():
            print(f"training {variant.name}", file=sys.stderr)
            out = variant.weights.parent
            out.mkdir(parents=True, exist_ok=True)
            train(variant.config, out, resume=(out / CHECKPOINT).exists())


def ablation(walks: Walks) -> tuple[str, list[Row]]:
    """The table of variants, and its rows."""
    lines, rows = [], []
    for method in ("iekf", "iekf-sr"):
        for words, noise in ((method, ProcessNoise()), (f"{method}, IMU noise of gait-legs", LEGS_NOISE)):
            found = [measure("go1", method, logs, noise=noise) for logs in walks.values()]
            lines.append([f"({words})", *(one.text for one in found)])
    for variant in VARIANTS:
        if not variant.weights.exists():
            print(f"not trained yet: {variant.name}", file=sys.stderr)
            continue
        found = [measure("go1", variant.weights, logs, variant.options, variant.noise) for logs in walks.values()]
        lines.append([variant.words, *(one.text for one in found)])
        for name, one in zip(walks, found, strict=True):
            rows.append(Row(f"{variant.name}.{name}.velocity_rmse", one.rmse, "m/s"))
            rows.append(Row(f"{variant.name}.{name}.nees", one.nees, "-"))
    return markdown(["m/s (NEES, within 2 std)", *(HEADS[name] for name in walks)], lines), rows


def shipped(walks: Walks) -> tuple[str, list[Row]]:
    """All weights of `gait-legs` that come with gait, beside other methods."""
    lines, rows = [], []
    for name in [*(name for name in model_names() if name.startswith("gait-legs-")), "gait", "iekf", "iekf-sr"]:
        found = [measure("go1", name, logs) for logs in walks.values()]
        lines.append([f"`{name}`", *(one.text for one in found)])
        rows += [Row(f"{name}.{walk}.velocity_rmse", one.rmse, "m/s") for walk, one in zip(walks, found, strict=True)]
    return markdown(["m/s (NEES, within 2 std)", *(HEADS[name] for name in walks)], lines), rows


def other_robot(weights: str) -> tuple[str, list[Row]]:
    """The same weights on a Go2 that they never saw and on a Go1, walk by walk."""
    heads, lines, rows = ["m/s"], [], []
    table: dict[str, list[str]] = {}
    for gait in GO2_GAITS:
        found = []
        for robot in ("go1", "go2"):
            folder = ROOT / f"runs/go2/{robot}-{gait}"
            config = CollectConfig(
                gait, "rubber", episodes=GO2_EPISODES, seconds=GO2_SECONDS, seed=GO2_SEED, robot=robot, sensors="twin"
            )
            collect(config, folder)
            logs = [open_log(folder / row["file"]) for row in read_index(folder)[:GO2_EPISODES]]
            for method in (weights, "iekf"):
                found.append(measure(robot, method, logs))
                rows.append(Row(f"{robot}.{gait}.{method}.velocity_rmse", found[-1].rmse, "m/s"))
        heads.append(gait)
        for name, one in zip(
            ("gait-legs on Go1", "iekf on Go1", "gait-legs on Go2", "iekf on Go2"), found, strict=True
        ):
            table.setdefault(name, []).append(f"{one.rmse:.4f}")
        table.setdefault("gait-legs: Go2 to Go1", []).append(f"{found[2].rmse / found[0].rmse:.2f} x")
    lines = [[name, *cells] for name, cells in table.items()]
    return markdown(heads, lines), rows


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs="*", default=None, metavar="VARIANT", help="train variants, all by default")
    parser.add_argument("--weights", default="gait-legs-1", help="of the study of another robot and of the figures")
    parser.add_argument("--write", action="store_true", help="write the sections and figures of docs/legs.md")
    options = parser.parse_args()
    if options.train is not None:
        train_variants(options.train)
        return
    load_model(options.weights)
    walks = faulty_walks(MILD)
    sections = {"shipped": shipped(walks), "shipped-real": shipped(faulty_walks(FaultRanges()))}
    sections |= {"other-robot": other_robot(options.weights)}
    if VARIANTS[0].weights.exists():
        sections["ablation"] = ablation(walks)
    for name, (text, rows) in sections.items():
        print(f"{name}\n\n{text}\n\n{rows_to_json(rows)}\n")
        if options.write:
            write_section(name, text, PAGE)
    if options.write:
        from leg_figures import draw_figures

        for path, words in draw_figures(options.weights, IMAGES):
            print(paragraph(f"{path.name}: {words}"))


if __name__ == "__main__":
    main()
