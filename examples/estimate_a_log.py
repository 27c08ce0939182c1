"""From a log to an estimate: `python examples/estimate_a_log.py [LOG]`.

LOG is any file that `gait info` can read; without one, the sample that comes with the package. Needs no extras.
"""

import sys
from pathlib import Path

import numpy as np

import gait
from gait.metrics import relative_error, velocity_rmse

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"


def main(path: str | Path = SAMPLE) -> None:
    log = gait.open_log(path)
    print(log)

    estimator = gait.Estimator.load(log.robot)
    # Without a truth to start from, the robot is taken to stand still in the first sample.
    estimate = estimator.run(log, start="truth" if log.has_truth else "gravity")

    speed = np.linalg.norm(estimate.vel_b, axis=1)
    print(f"speed           mean {speed.mean():.2f} m/s, at most {speed.max():.2f} m/s")
    print(f"last position   {np.array2string(estimate.pos_w[-1], precision=2)} m")
    print(f"samples in which all was well   {np.mean(estimate.health == 0):.0%}")

    if log.has_truth:
        print(f"velocity error  {velocity_rmse(estimate, log).rmse:.3f} m/s, root mean square")
        if log.duration > 5.0:
            print(f"position drift  {relative_error(estimate, log, 5.0).position.rmse:.3f} m in 5 s")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except gait.GaitError as error:
        sys.exit(str(error))
