"""What the paper leaves open about training, decided on validation episodes: short trainings, three seeds each.

    python benchmarks/choices.py --write       # about a quarter of an hour of one core; what is done is not done again

Each training is short (120 iterations of 16 sequences, a quarter of an hour of trot), so that the errors are large, but
the same for all. Judged by trot that is like the training's, and by bound and pace, which are not; all from a seed that
neither trainings nor the held-out walks of benchmarks/networks.py use.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from sections import DOCS, markdown, spread, write_section

from gait.io import open_log
from gait.nets.model import load_model
from gait.rows import Row, rows_to_json
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig
from gait.sim.store import read_index
from gait.train.config import TrainConfig
from gait.train.loop import CHECKPOINT, MODEL, train
from gait.train.validate import evaluate_model

RUNS = Path(__file__).parents[1] / "runs/choices"
SEEDS = (0, 1, 2)
TRAINING = CollectConfig("trot", "flat", episodes=90, seconds=10.0, seed=31, sensors="exact", stationary_share=0.1)
VALIDATION = {
    name: CollectConfig(name, "flat", episodes=8, seconds=10.0, seed=32, sensors="training")
    for name in ("trot", "bound", "pace")
}
USUAL = TrainConfig(
    data=(str(RUNS / "training"),), iterations=120, l1_iterations=48, warmup=12, sequences=16, validate_every=120
)
CHOICES: dict[str, TrainConfig] = {
    "as in docs/training.md": USUAL,
    "one update in 1000 steps instead of four": replace(USUAL, truncate=1000),
    "ten updates in 1000 steps": replace(USUAL, truncate=100),
    "burn-in of 50 steps": replace(USUAL, burn_in=50),
    "gradients clipped at 10 instead of 1": replace(USUAL, clip=10.0),
    "log-std from -5 to 1 instead of -7 to 2": replace(USUAL, log_std_min=-5.0, log_std_max=1.0),
    "IMU biases of 0.003 rad/s and 0.1 m/s^2": replace(USUAL, gyro_bias=0.003, accel_bias=0.1),
    "no mask": replace(USUAL, mask=0.0),
}


def trained(name: str, config: TrainConfig) -> Path:
    """The model file of a training, made if it is not there yet."""
    out = RUNS / f"{list(CHOICES).index(name)}-{config.seed}"
    if not (out / MODEL).exists():
        out.mkdir(parents=True, exist_ok=True)
        train(config, out, resume=(out / CHECKPOINT).exists())
    return out / MODEL


def measure() -> dict[str, dict[str, list[float]]]:
    """Velocity error in m/s of each seed, by choice and gait."""
    collect(TRAINING, RUNS / "training", 1)
    logs = {}
    for gait, walk in VALIDATION.items():
        collect(walk, RUNS / gait, 1)
        logs[gait] = [open_log(RUNS / gait / row["file"]) for row in read_index(RUNS / gait)]
    result: dict[str, dict[str, list[float]]] = {}
    for name, config in CHOICES.items():
        models = [load_model(trained(name, replace(config, seed=seed))) for seed in SEEDS]
        result[name] = {gait: [evaluate_model(model, walks).norm for model in models] for gait, walks in logs.items()}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/training.md")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    result = measure()
    table = markdown(
        ["m/s, mean ± std over three seeds", *VALIDATION],
        [[name, *(spread(errors[gait]) for gait in VALIDATION)] for name, errors in result.items()],
    )
    if args.json:
        print(
            rows_to_json([
                Row(f"{name}.{gait}.{seed}", value, "m/s")
                for name, errors in result.items()
                for gait, values in errors.items()
                for seed, value in zip(SEEDS, values, strict=True)
            ])
        )  # fmt: skip
        return
    print(table)
    if args.write:
        write_section("choices", table, DOCS / "training.md")


if __name__ == "__main__":
    main()
