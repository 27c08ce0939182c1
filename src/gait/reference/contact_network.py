"""Contacts by a network on a window of IMU and joints, after Lin et al. 2021 (deep contact estimator), in numpy.

The inputs are theirs: angular rate, specific force, and for each leg joint angles, joint velocities, position and
velocity of the foot by forward kinematics. Two blocks of two convolutions and a maximum each, then two dense layers,
give one class for each combination of feet on the ground. `benchmarks/train_contacts.py` trains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gait.arrays import Array, BoolArray
from gait.errors import GaitError
from gait.log.log import Log
from gait.nets.model import read_arrays
from gait.robot import Robot

RATE, WINDOW = 500.0, 75
"""Samples a second, and how many of them the network sees: 0.15 s, as theirs."""
CONVOLUTIONS = ("conv0", "conv1", "conv2", "conv3")
KIND = "contact network"
BATCH = 512
"""Windows at once: more would not fit a cache."""
Float32 = npt.NDArray[np.float32]


def contact_features(log: Log, robot: Robot) -> Float32:
    """What the network reads (N, 6 + 12 L): angular rate, specific force, then by leg q, dq, position, velocity."""
    log = log.reorder(robot)
    legs = zip(robot.chains, robot.by_leg(robot.expanded(log.q)), robot.by_leg(robot.expanded(log.dq)), strict=True)
    columns: list[Array] = [log.gyro, log.accel]
    for chain, q, dq in legs:
        if chain.num_joints != 3:
            raise GaitError(f"the contact network reads legs with three joints, and {robot.name} has others")
        velocity = np.einsum("nij,nj->ni", chain.jacobians(q)[0], dq)
        columns += [q, dq, chain.link_poses(q)[1][:, -1], velocity]
    return np.concatenate(columns, axis=1).astype(np.float32)


@dataclass(frozen=True)
class ContactNetwork:
    """The trained network."""

    weights: dict[str, Float32]

    @staticmethod
    def load(path: str | Path) -> ContactNetwork:
        """Read the file that training wrote."""
        about, arrays = read_arrays(path)
        if about.get("gait") != KIND:
            raise GaitError(f"{path} holds no contact network: train one with benchmarks/train_contacts.py")
        return ContactNetwork(arrays)

    def classes(self, windows: Float32) -> Float32:
        """Scores of the combinations of feet (B, 2^L) of windows of features (B, WINDOW, F)."""
        w = self.weights
        x = (windows - w["mean"]) / w["std"]
        for i, name in enumerate(CONVOLUTIONS):
            x = np.maximum(_convolved(x, w[f"{name}.weight"]) + w[f"{name}.bias"], 0.0)
            if i % 2:
                pairs = x.shape[1] // 2
                x = x[:, : 2 * pairs].reshape(len(x), pairs, 2, -1).max(axis=2)
        x = x.transpose(0, 2, 1).reshape(len(x), -1)
        x = np.maximum(x @ w["dense0.weight"].T + w["dense0.bias"], 0.0)
        return np.asarray(x @ w["dense1.weight"].T + w["dense1.bias"])

    def contacts(self, log: Log, robot: Robot) -> BoolArray:
        """Which feet are on the ground (N, L), by the samples up to each; the first one fills an incomplete window."""
        even = log if abs(log.rate - RATE) < 1.0 else log.resample(RATE)
        features = contact_features(even, robot)
        padded = np.concatenate([np.repeat(features[:1], WINDOW - 1, axis=0), features])
        windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW, axis=0).transpose(0, 2, 1)
        best = np.concatenate(
            [self.classes(windows[i : i + BATCH]).argmax(axis=1) for i in range(0, len(windows), BATCH)]
        )
        found = (best[:, None] >> np.arange(robot.num_legs)) & 1 > 0
        return np.asarray(found[np.clip(np.searchsorted(even.t, log.t, "right") - 1, 0, None)])


def _convolved(x: Float32, weight: Float32) -> Float32:
    """A convolution over time with zeros at both ends: (B, T, C) with weights (D, C, 3) to (B, T, D)."""
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    stacked = np.concatenate([padded[:, k : k + x.shape[1]] for k in range(3)], axis=2)  # (B, T, 3 C)
    flat = weight.transpose(2, 1, 0).reshape(-1, len(weight))
    return np.asarray(stacked @ flat)


def class_of(contact: BoolArray) -> npt.NDArray[np.int64]:
    """The class (N,) of feet on the ground (N, L)."""
    return contact.astype(np.int64) @ (1 << np.arange(contact.shape[1]))
