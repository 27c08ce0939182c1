"""Scenes of others: an MJCF file as it was published, without the files that it lacks."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.robot import Link
from gait.robot.mjcf_reader import delete, parsed_spec, refused
from gait.sim.physics import mujoco


class Scene:
    """An MJCF file.

    Attributes:
        path: of the file.
        dropped: names of the meshes and textures whose files are missing.
        nominal: the compiled model as it was published, for names, gains and keys.
        base: name of the body that floats.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise GaitError(f"there is no scene {path}: give the path of an MJCF file with --model")
        self.path = path
        spec, self.dropped = self._parsed()
        try:
            self.nominal: Any = spec.compile()
        except ValueError as error:
            raise refused(path, error) from None
        free = int(mujoco.mjtJoint.mjJNT_FREE)
        if self.nominal.njnt == 0 or self.nominal.jnt_type[0] != free:
            raise GaitError(f"{path} has no floating base: its first joint must be a free joint")
        self.base: str = self.nominal.body(int(self.nominal.jnt_bodyid[0])).name
        if not self.base:
            raise GaitError(f"{path}: the body that floats has no name, give it one")

    def spec(self) -> Any:
        """A copy to change: without what is missing, and without sensors and keys, which name things that change."""
        spec, _ = self._parsed()
        for item in (*spec.sensors, *spec.keys):
            delete(spec, item)
        return spec

    def _parsed(self) -> tuple[Any, tuple[str, ...]]:
        """The file, without the meshes and textures that are missing, and their names."""
        return parsed_spec(self.path, mujoco)

    def digest(self) -> str:
        """Identifies a scene by the contents of its files."""
        contents, todo, seen = hashlib.sha256(), [self.path], set[Path]()
        while todo:
            path = todo.pop(0).resolve()
            if path in seen or not path.is_file():
                continue
            seen.add(path)
            text = path.read_bytes()
            contents.update(text)
            included = re.findall(rb'<include[^>]*file="([^"]+)"', text)
            todo += [folder / name.decode() for name in included for folder in (path.parent, self.path.parent)]
        return contents.hexdigest()


def joint_names(model: Any) -> tuple[str, ...]:
    """Hinge and slide joints, in the model's order."""
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return tuple(model.joint(j).name for j in range(model.njnt) if model.jnt_type[j] in kinds)


class Drive:
    """Actuator of a joint in a scene; kp is 0 where it has no position actuator."""

    def __init__(self, model: Any, joint: str) -> None:
        j = model.joint(joint).id
        dof = model.jnt_dofadr[j]
        self.kp, self.kd, self.damps, self.actuated = 0.0, 0.0, False, False
        self.limit, self.range = np.inf, (-np.inf, np.inf)
        if model.jnt_actfrclimited[j]:
            self.limit = float(model.jnt_actfrcrange[j, 1])
        for a in range(model.nu):
            if model.actuator_trntype[a] != int(mujoco.mjtTrn.mjTRN_JOINT) or model.actuator_trnid[a, 0] != j:
                continue
            if model.actuator_gear[a, 0] != 1.0:
                raise GaitError(f"the actuator of {joint} has a gear of {model.actuator_gear[a, 0]:g}: it must be 1")
            self.actuated = True
            if model.actuator_forcelimited[a]:
                self.limit = min(self.limit, float(model.actuator_forcerange[a, 1]))
            if model.actuator_biastype[a] != int(mujoco.mjtBias.mjBIAS_AFFINE):
                continue
            self.kp, self.kd = float(model.actuator_gainprm[a, 0]), -float(model.actuator_biasprm[a, 2])
            if model.actuator_ctrllimited[a]:
                self.range = tuple(model.actuator_ctrlrange[a])
            if self.kd == 0.0:
                # A servo without a velocity gain is damped by the joint: that damping is the drive's.
                self.kd, self.damps = float(model.dof_damping[dof]), True


def key_pose(model: Any, name: str, joints: tuple[str, ...]) -> list[float]:
    """Joint angles of a key."""
    keys = [model.key(k).name for k in range(model.nkey)]
    if name not in keys:
        raise GaitError(
            f"the scene has no key '{name}': {'its keys are ' + ', '.join(keys) if keys else 'give values'}"
        )
    qpos = model.key_qpos[keys.index(name)]
    return [float(qpos[model.jnt_qposadr[model.joint(joint).id]]) for joint in joints]


def fixed_place(model: Any, name: str, base: str) -> tuple[Array, Array]:
    """Position (3,) and axes (3, 3) in the base of a site or body that is fixed to it."""
    data = mujoco.MjData(model)
    data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    mujoco.mj_kinematics(model, data)
    sites = [model.site(i).name for i in range(model.nsite)]
    bodies = [model.body(i).name for i in range(model.nbody)]
    if name in sites:
        item = sites.index(name)
        body, place, axes = model.site_bodyid[item], data.site_xpos[item], data.site_xmat[item]
    elif name in bodies:
        body = bodies.index(name)
        place, axes = data.xpos[body], data.xmat[body]
    else:
        raise GaitError(f"the scene has no site or body '{name}' for the IMU: its sites are {', '.join(sites)}")
    root = model.body(base).id
    if model.body_weldid[body] != root:
        raise GaitError(
            f"the IMU '{name}' is on {bodies[body]}, which moves against the base {base}: name one fixed to it"
        )
    R_wb = data.xmat[root].reshape(3, 3)
    return R_wb.T @ (place - data.xpos[root]), R_wb.T @ axes.reshape(3, 3)


def base_link(model: Any, base: str) -> Link:
    """Mass properties of the base."""
    body = model.body(base).id
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, model.body_iquat[body])
    axes = R.reshape(3, 3)
    inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
    return Link(float(model.body_mass[body]), model.body_ipos[body].copy(), inertia)
