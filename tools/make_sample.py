"""Make the sample log that ships with the package: `python tools/make_sample.py`.

20 s of the benchmark twin trotting on rubber, from a seed that the benchmark does not use. Values are rounded to single
precision, which is finer than any of its sensors, so that the file stays small.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from gait import Log
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig

SAMPLE = Path(__file__).parents[1] / "src/gait/samples/go1_trot.npz"


def main() -> None:
    config = CollectConfig(gait="trot", terrain="rubber", sensors="twin", episodes=1, seconds=20.0, seed=20261115)
    with tempfile.TemporaryDirectory() as folder:
        collect(config, Path(folder), 1)
        log = Log.load(Path(folder) / "episode_00000.npz")
    rounded = {
        name: array.astype(np.float32).astype(np.float64)
        for name, array in log.arrays().items()
        if array.dtype == np.float64 and name != "t"
    }
    log.replace(**rounded).save(SAMPLE, compress=True)
    print(f"wrote {SAMPLE.name}: {log}, {SAMPLE.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
