"""Make the sample log that ships with the package: `python tools/make_sample.py`.

20 s of the benchmark twin trotting on rubber, from a seed that the benchmark does not use, as MCAP with standard ROS 2
messages. Sensors are rounded to single precision, which is finer than any of them, and the truth to a micrometre, so
that the file stays small.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace

import mcap.writer
import numpy as np
import zstandard

from gait import Log
from gait.arrays import AnyArray
from gait.samples import SAMPLE
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig

BITS = {"pos_w": 20, "quat_wb_wxyz": 24, "foot_vel_w": 12}
"""Of the truth, bits behind the point; the velocity is rounded where it is written."""
LEVEL = 19


def main() -> None:
    config = CollectConfig(gait="trot", terrain="rubber", sensors="twin", episodes=1, seconds=20.0, seed=20261115)
    with tempfile.TemporaryDirectory() as folder:
        collect(config, Path(folder), 1)
        log = Log.load(Path(folder) / "episode_00000.npz")
    write(log)


def write(log: Log) -> None:
    """Round, and write as small as can be; the writer has no option for the level of its compression."""
    rounded = {name: _round(name, array) for name, array in log.arrays().items() if array.dtype == np.float64}
    mcap.writer.zstandard = SimpleNamespace(compress=lambda data: zstandard.compress(data, LEVEL))
    log.replace(**{**rounded, "t": log.t}).save(SAMPLE, compress=True)
    print(f"wrote {SAMPLE.name}: {log}, {SAMPLE.stat().st_size / 1e6:.2f} MB")


def _round(name: str, array: AnyArray) -> AnyArray:
    if name in BITS:
        step = 2.0 ** -BITS[name]
        return np.asarray(np.rint(array / step) * step)
    return array.astype(np.float32).astype(np.float64)


if __name__ == "__main__":
    main()
