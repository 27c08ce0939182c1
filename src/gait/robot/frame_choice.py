"""Frames of a model by name, its IMU, and the link that is estimated; what cannot be told is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gait.errors import GaitError
from gait.robot.model_tree import Frame, ModelTree


def choices(option: str, names: Sequence[str]) -> str:
    """Options to paste, one for each name."""
    shown = [f"--{option} {name}" for name in dict.fromkeys(names)]
    return "; ".join(shown[:12]) + ("; ..." if len(shown) > 12 else "")


def frame_named(tree: ModelTree, name: str, option: str) -> Frame:
    """The link, site or shape that the user named."""
    found = tree.named(name)
    if not found:
        known = [frame.name for frame in tree.frames if frame.name]
        near = [other for other in known if name.lower() in other.lower() or other.lower() in name.lower()]
        raise GaitError(f"{tree.source} has no link or site '{name}': choose from {choices(option, near or known)}")
    return found[0]


def imu_frame(tree: ModelTree, imu: str, base: str) -> Frame | None:
    """Where the IMU is: as given, or the one that the file names; the nearest to the root, where there are several."""
    if imu:
        return frame_named(tree, imu, "imu")
    found = [frame for name in tree.imus for frame in tree.named(name)[:1]]
    if base:
        root = tree.group[frame_named(tree, base, "base").body]
        here = [frame for frame in found if tree.group[frame.body] == root]
    else:
        # Those on limbs count joints of limbs: what the legs hang on is the fewest joints away.
        joints = {id(frame): len(tree.joints_between(0, frame.body)) for frame in found}
        here = [frame for frame in found if joints[id(frame)] == min(joints.values())]
    if not here:
        return None
    poses = tree.poses(0)
    places = {tuple(np.round(poses[f.body][1] + poses[f.body][0] @ f.p, 4)) for f in here}
    turns = {tuple(np.round(poses[f.body][0] @ f.R, 3).ravel()) for f in here}
    if len(places) > 1 or len(turns) > 1:
        raise GaitError(f"{tree.source} has several IMUs: choose with {choices('imu', [frame.name for frame in here])}")
    others = [frame.name for frame in found if frame not in here]
    if others:
        tree.notes.append(f"IMU {here[0].name}; others: {choices('imu', others)}")
    return here[0]


def base_body(tree: ModelTree, base: str, imu: Frame | None) -> int:
    """The link to estimate: as given, or the first of those that are fixed to the IMU and have mass."""
    if base:
        return frame_named(tree, base, "base").body
    root = tree.group[imu.body] if imu is not None else 0
    rigid = [i for i, group in enumerate(tree.group) if group == root]
    total = sum(tree.bodies[i].link.mass for i in rigid)
    heaviest = max(rigid, key=lambda i: tree.bodies[i].link.mass)
    R, p = tree.poses(root)[heaviest]
    light = total > 0.0 and tree.bodies[root].link.mass < 0.02 * total
    return heaviest if light and not (np.allclose(R, np.eye(3)) and np.allclose(p, 0.0)) else root
