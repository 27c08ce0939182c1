"""A policy, the scene it walks in and the description of its observation, put together and checked."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array, IntArray
from gait.errors import GaitError, located
from gait.robot import BareRobot, Robot, robot_names
from gait.sim.policy.mjcf import Drive, Scene, fixed_place, joint_names, key_pose
from gait.sim.policy.observation import PolicyConfig, per_joint, policy_config_of_metadata, read_policy_config
from gait.sim.policy.observer import check_size
from gait.sim.policy.onnx_policy import OnnxPolicy
from gait.sim.settings import CommandRanges, PolicyFiles
from gait.sim.store import sha256

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Rig:
    """A policy, its scene and its robot. Joints are in the order of the Log unless stated."""

    files: PolicyFiles
    policy: OnnxPolicy
    scene: Scene
    config: PolicyConfig
    robot: Robot | BareRobot
    """Gait's own description where the file names one; with other joints than those of its legs, beside their names."""
    order: IntArray
    """Where in the Log the joints of the policy are (P,)."""
    pose: Array
    """Joint angles at rest (J,)."""
    action_scale: Array
    """In the order of the policy (P,)."""
    kp: Array
    kd: Array
    limit: Array
    """N m."""
    lower: Array
    """Least joint target."""
    upper: Array
    damped: IntArray
    """Joints whose damping in the scene is the velocity gain of their drive."""
    p_bi: Array
    """Lever arm of the IMU that the policy was trained with (3,)."""
    R_bi: Array
    feet: tuple[str, ...]
    """A geom or body for each leg."""
    notices: tuple[str, ...]

    @property
    def known(self) -> Robot | None:
        """Gait's description of the legs, if it has one."""
        return self.robot if isinstance(self.robot, Robot) else self.robot.described

    @property
    def rate(self) -> int:
        """Control steps a second."""
        assert self.config.rate is not None
        return self.config.rate

    @property
    def mass(self) -> float:
        """Of the robot, kg."""
        model = self.scene.nominal
        return float(model.body_subtreemass[model.body(self.scene.base).id])

    @property
    def ranges(self) -> CommandRanges:
        """What commands are drawn from."""
        limits: dict[str, Any] = dict(self.config.commands)
        return replace(CommandRanges(), **limits)

    def digests(self) -> dict[str, str]:
        """By what a collection knows its policy."""
        policy, scene = sha256(Path(self.files.policy).read_bytes()), self.scene.digest()
        # The description as it is used: where it comes from does not matter.
        return {
            "policy_sha256": policy,
            "scene_sha256": scene,
            "observation_sha256": sha256(repr(self.config).encode()),
        }


def shipped_observations() -> list[str]:
    """Names of the observation files that come with the package."""
    return sorted(path.stem for path in _HERE.glob("*.yaml"))


@lru_cache(maxsize=4)
def rig_of(files: PolicyFiles) -> Rig:
    """Read the files of a policy. What they lack is asked for by name."""
    policy = OnnxPolicy(Path(files.policy))
    config = _description(files)
    with located(files.policy):
        config = config.over(policy_config_of_metadata(policy.metadata))
    scene = Scene(_scene_path(files, config))
    with located(files.observation or files.policy):
        return _put_together(files, policy, scene, config)


def _description(files: PolicyFiles) -> PolicyConfig:
    """The observation file that is named, or the one of the package that goes with the model's name."""
    shipped = shipped_observations()
    name = files.observation or (files.model if files.model in shipped else "")
    if not name:
        return PolicyConfig()
    return read_policy_config(_HERE / f"{name}.yaml" if name in shipped else Path(name))


def _scene_path(files: PolicyFiles, config: PolicyConfig) -> Path:
    if files.model and files.model not in shipped_observations():
        return Path(files.model)
    if config.model is None:
        raise GaitError("no scene to walk in: name an MJCF file with --model")
    package, _, inside = config.model.rpartition(":")
    if not package:
        folder = Path(files.observation).parent if files.observation else Path()
        return folder / config.model
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise GaitError(
            f"the scene {inside} is in the Python package {package}, which is not installed: name an MJCF file with"
            f" --model, or run `pip install --no-deps {_DISTRIBUTIONS.get(package, package)}`"
        )
    return Path(found.submodule_search_locations[0]) / inside


_DISTRIBUTIONS = {"mujoco_playground": "playground==0.2.0"}
"""What pip calls a package that has another name, in the version that has the scenes."""


def _need(config: PolicyConfig, names: Sequence[str]) -> None:
    """Raise a GaitError that asks for what a description lacks."""
    lacking = [name for name in names if not getattr(config, name) and getattr(config, name) != 0.0]
    if lacking:
        *first, last = (f"`{name}`" for name in lacking)
        keys, ready = " and ".join(filter(None, (", ".join(first), last))), ", ".join(shipped_observations())
        raise GaitError(
            f"the policy says nothing about {keys}: write {'them' if len(lacking) > 1 else 'it'} to a YAML file, to be"
            f" named with --observation (docs/deploy.md explains the keys; {ready} come with gait)"
        )


def _put_together(files: PolicyFiles, policy: OnnxPolicy, scene: Scene, config: PolicyConfig) -> Rig:
    model, own = scene.nominal, joint_names(scene.nominal)
    config = replace(config, joints=config.joints or tuple(name for name in own if Drive(model, name).actuated))
    _need(config, ("terms", "pose", "action_scale", "rate", "imu", "feet", "joints"))
    for name in config.joints:
        if name not in own:
            raise GaitError(f"the scene has no joint '{name}': its joints are {', '.join(own)}")
    count = len(config.joints)
    if policy.action_size is not None and policy.action_size != count:
        raise GaitError(
            f"the policy gives {policy.action_size} actions but `joints` names {count} joints: correct them"
        )
    if policy.observation_size is not None:
        check_size(config, count, policy.observation_size)
    assert config.imu is not None and config.pose is not None and config.action_scale is not None
    p_bi, R_bi = fixed_place(model, config.imu, scene.base)
    robot = _robot_of(config, scene, own, p_bi, R_bi)
    drives = [Drive(model, name) for name in robot.joint_names]
    order = np.array([robot.joint_names.index(name) for name in config.joints])
    pose = np.array([float(model.qpos0[model.jnt_qposadr[model.joint(name).id]]) for name in robot.joint_names])
    pose[order] = (
        key_pose(model, config.pose, config.joints)
        if isinstance(config.pose, str)
        else per_joint(config.pose, config.joints, "pose")
    )
    gains = {name: np.array([getattr(drive, name) for drive in drives]) for name in ("kp", "kd", "limit")}
    for name, key in (("kp", "kp"), ("kd", "kd"), ("limit", "torque_limit")):
        if (value := getattr(config, key)) is not None:
            gains[name][order] = per_joint(value, config.joints, key)
    for i in order:
        if not gains["kp"][i] > 0.0:
            raise GaitError(
                f"the scene has no position actuator at {robot.joint_names[i]}: give the gains `kp` and `kd`"
            )
    damped = np.array([i for i, drive in enumerate(drives) if drive.damps and config.kd is None], dtype=np.int64)
    lost = scene.dropped
    some = f"{', '.join(lost[:3])}{' and others' if len(lost) > 3 else ''}"
    notices = (
        [f"{scene.path.name}: left out meshes whose files are missing, {len(lost)} in all: {some}"] if lost else []
    )
    return Rig(
        files=files, policy=policy, scene=scene, config=config, robot=robot, order=order, pose=pose,
        action_scale=np.array(per_joint(config.action_scale, config.joints, "action_scale")),
        **gains, lower=np.array([drive.range[0] for drive in drives]),
        upper=np.array([drive.range[1] for drive in drives]), damped=damped, p_bi=p_bi, R_bi=R_bi,
        feet=tuple(config.feet[leg] for leg in robot.leg_names), notices=tuple(notices),
    )  # fmt: skip


def _robot_of(config: PolicyConfig, scene: Scene, own: Sequence[str], p_bi: Array, R_bi: Array) -> Robot | BareRobot:
    """gait's description of the robot, or its names alone."""
    from gait.sim.physics import mujoco

    for leg, name in config.feet.items():
        if name not in _names(scene.nominal, "geom") and name not in _names(scene.nominal, "body"):
            raise GaitError(f"the scene has no geom or body '{name}', which `feet` names for {leg}")
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R_bi).ravel())
    drives = tuple(name for name in own if name in config.joints or Drive(scene.nominal, name).actuated)
    if config.robot is None:
        name = scene.nominal.names[: scene.nominal.names.index(b"\0")].decode() or scene.path.stem
        return BareRobot("_".join(name.split()), scene.base, tuple(config.feet), drives, p_bi, quat)
    robot = Robot.load(config.robot)
    missing = [name for name in robot.joint_names if name not in own]
    missing += [leg for leg in robot.leg_names if leg not in config.feet]
    if missing:
        raise GaitError(f"the scene is not of the robot {config.robot}: it lacks {missing[0]}; leave out `robot`")
    if set(config.joints) <= set(robot.joint_names):
        return robot
    return BareRobot(robot.name, scene.base, robot.leg_names, drives, p_bi, quat, robot)


def _names(model: Any, kind: str) -> list[str]:
    item = getattr(model, kind)
    return [item(i).name for i in range(getattr(model, f"n{kind}"))]


def known_robot(rig: Rig) -> Robot:
    """gait's description of the robot, which an estimator needs."""
    if rig.known is None:
        raise GaitError(
            f"gait has no description of {rig.robot.name}, so no estimator can feed its policy: use the feedback truth,"
            f" or name one of {', '.join(robot_names())} with `robot` in the observation file"
        )
    return rig.known
