"""The paper's network trained on walks of one controller or of two, tested on each: a section of docs/training.md.

    gait train --config configs/gait.yaml --data runs/sim/policy --out runs/train/policy0      # policy walks alone
    gait train --config configs/gait-user.yaml --out runs/train/user0                          # both
    python benchmarks/controllers.py --policy go1_policy.onnx \
        --models "our controller=gait-0,gait-1,gait-2" "the policy=runs/train/policy0/model.safetensors" --write

A row of `--models` is a name and the models of its seeds. Held-out walks are of seeds that no training uses: our trot
as in benchmarks/held.py, and the policy in its own scene, soft feet, and on nearly rigid ground.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from held import HELD, SECONDS, make_walk
from sections import DOCS, markdown, paragraph, spread, write_section

from gait import Estimator, Log
from gait.io import open_log
from gait.nets.model import load_model
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig
from gait.sim.store import read_index
from gait.train.validate import evaluate_model

EPISODES, SEEDS = 12, {"policy-flat": 779, "policy-rigid": 780}
COURSES = {"trot-flat": "our trot", "policy-flat": "the policy, soft feet", "policy-rigid": "the policy, rigid ground"}
NOTE = (
    "Length of the velocity error, root mean square, of the network alone and after the filter; mean over the seeds,"
    " and ± their standard deviation where there are several. Walks of 10 s on `flat` with a noisy IMU: 6 of our"
    " controller, 12 of the policy on each ground."
)


def policy_walks(name: str, policy: str) -> list[Log]:
    """The held-out walks of the policy; those that their folder lacks are simulated first."""
    config = CollectConfig(
        terrain="flat", episodes=EPISODES, seconds=SECONDS, seed=SEEDS[name], sensors="training", policy=policy,
        model="go1", rigid=name == "policy-rigid",
    )  # fmt: skip
    collect(config, HELD / name)
    return [open_log(HELD / name / row["file"]) for row in read_index(HELD / name)[:EPISODES]]


def errors_of(model: str, logs: Sequence[Log]) -> tuple[float, float]:
    """Of the network alone, and after the filter, m/s."""
    loaded = load_model(model)
    squares = []
    for log in logs:
        trajectory = Estimator.load(log.robot, loaded).run(log)
        squares.append(np.sum((trajectory.vel_b - log.vel_b) ** 2, axis=1))
    return evaluate_model(loaded, logs).norm, float(np.sqrt(np.mean(np.concatenate(squares))))


def main() -> None:
    """Make the walks, run the models, print or write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", required=True, help="the ONNX file of the Go1 policy")
    parser.add_argument("--models", nargs="+", required=True, help="NAME=MODEL,MODEL,...: a row of the table")
    parser.add_argument("--write", action="store_true", help="put the section into docs/training.md")
    args = parser.parse_args()
    courses = {"trot-flat": list(make_walk("trot-flat").logs)}
    courses |= {name: policy_walks(name, args.policy) for name in SEEDS}
    rows = []
    for one in args.models:
        name, models = one.split("=", 1)
        found = {
            course: np.array([errors_of(model, logs) for model in models.split(",")])
            for course, logs in courses.items()
        }
        seeds = str(models.count(",") + 1)
        rows.append([name, seeds, *(spread(found[course][:, k]) for course in courses for k in range(2))])
    heads = ["trained on", "seeds"]
    heads += [f"{COURSES[course]}{after}" for course in courses for after in ("", ", filtered")]
    text = f"{markdown(heads, rows)}\n\n{paragraph(NOTE)}"
    if args.write:
        write_section("controllers", text, DOCS / "training.md")
    print(text)


if __name__ == "__main__":
    main()
