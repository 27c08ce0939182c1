"""MJCF: bodies, joints, contact geometry, sites and keys, as MuJoCo compiles them; meshes may be missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError, need_extra
from gait.lie import rotation_from_quat
from gait.robot.model_tree import Body, ContactShape, Frame, ModelJoint, ModelTree, box, checked, rod, sphere, words_of
from gait.robot.serial_chain import Link

_STANCES = ("knees_bent", "home", "stand", "standing", "stance")
"""Names of the key that is the stance, in order of preference."""
_STANDING = {*_STANCES, "default", "nominal", "init", "initial", "ready", "neutral"}
"""Words of other keys that may be it."""
_ONE_LEG = {"left", "right", "one", "l", "r", "up"}
"""Words of keys in which a robot stands on one leg, or stands up."""
_BESIDE, _TOP = 100, 100_000
"""How many files beside a broken one, and how many bytes of each, are searched for the scene that it is a part of."""


def read_mjcf(path: Path) -> ModelTree:
    """The model of an MJCF file."""
    try:
        from gait.sim.physics import mujoco
    except ImportError:
        raise need_extra("mujoco", "sim") from None
    spec, dropped = parsed_spec(path, mujoco, weightless=True)
    try:
        model = spec.compile()
    except ValueError as error:
        raise refused(path, error) from None
    return tree_of(model, path, dropped)


def tree_of(model: Any, path: Path, dropped: tuple[str, ...] = ()) -> ModelTree:
    """The model that MuJoCo compiled from a file, some meshes of which may have been dropped."""
    from gait.sim.physics import mujoco

    return checked(_Reader(mujoco, model, path, dropped).tree())


def refused(path: Path, error: Exception) -> GaitError:
    """What to say about a file that MuJoCo does not take."""
    whole = f"; {path.name} is a part of {scene}: name that file" if (scene := _scene_of(path)) else ""
    return GaitError(f"MuJoCo cannot load {path}: {' '.join(str(error).split())}{whole}")


def _scene_of(path: Path) -> Path | None:
    """A file beside this one that includes it: what is missing here, as the floor of a contact pair, may be there."""
    included = re.compile(rb'<include\s+file\s*=\s*["\']' + re.escape(path.name.encode()) + rb'["\']')
    beside = [other for other in sorted(path.parent.glob("*.xml"))[:_BESIDE] if other != path and other.is_file()]
    return next((other for other in beside if included.search(other.read_bytes()[:_TOP])), None)


def parsed_spec(path: Path, mujoco: Any, weightless: bool = False) -> tuple[Any, tuple[str, ...]]:
    """The spec of a file without the meshes and textures that are missing, and their names.

    Args:
        path: of the file.
        mujoco: the module.
        weightless: let bodies that take their mass from a missing mesh have none, where it is an error otherwise.
    """
    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except (ValueError, OSError) as error:
        raise refused(path, error) from None

    def lacks(name: str) -> bool:
        folders = (path.parent, path.parent / spec.meshdir, path.parent / spec.texturedir)
        return bool(name) and not any((folder / name).is_file() for folder in folders)

    missing = {mesh.name or Path(mesh.file).stem: mesh for mesh in spec.meshes if lacks(mesh.file)}
    names = {mesh.name for mesh in missing.values()} | set(missing)
    for body in spec.bodies:
        lost = [geom for geom in body.geoms if geom.meshname and geom.meshname in names]
        if lost and not body.explicitinertial and body.id != 0 and _heavy(lost):
            if not weightless:
                raise GaitError(
                    f"{path}: the body {body.name} takes its mass from the mesh {lost[0].meshname}, whose file is"
                    " missing: put the file there, or give the body an <inertial>"
                )
            if len(lost) == len(body.geoms):
                body.explicitinertial, body.mass, body.inertia = True, 1e-6, [1e-9] * 3
        for geom in lost:
            delete(spec, geom)
    for mesh in missing.values():
        delete(spec, mesh)
    scenery = [skin for skin in spec.skins if lacks(skin.file)]
    fields = {field.name: field for field in spec.hfields if lacks(field.file)}
    for geom in [geom for geom in spec.geoms if geom.hfieldname in fields]:
        delete(spec, geom)
    for thing in (*scenery, *fields.values()):
        delete(spec, thing)
    pictures = {t.name: t for t in spec.textures if lacks(t.file)}
    for material in spec.materials:
        if any(name in pictures for name in material.textures if name):
            material.textures = [""] * len(material.textures)
    for texture in pictures.values():
        delete(spec, texture)
    return spec, (*missing, *(skin.name for skin in scenery), *fields, *pictures)


def delete(spec: Any, item: Any) -> None:
    """Take something out of a scene, in whichever way this MuJoCo does it."""
    if hasattr(spec, "delete"):
        spec.delete(item)
    else:
        item.delete()


def _heavy(geoms: list[Any]) -> bool:
    """Whether a body could get mass from these geoms."""
    return any(geom.density > 0.0 or geom.mass > 0.0 for geom in geoms)


class _Reader:
    """The robot of a compiled model: the tree below the first body with a free joint, or below the first body."""

    def __init__(self, mujoco: Any, model: Any, path: Path, dropped: tuple[str, ...]) -> None:
        self.mujoco, self.model, self.path = mujoco, model, path
        self.notes = [f"{len(dropped)} missing meshes, textures and the like are left out"] if dropped else []
        kinds = mujoco.mjtJoint
        free = [
            int(b) for b, kind in zip(model.jnt_bodyid, model.jnt_type, strict=True) if kind == int(kinds.mjJNT_FREE)
        ]
        if model.nbody < 2:
            raise GaitError(f"{path} has no bodies: is it a scene without its robot?")
        self.root = self._root(free)
        self.balls: dict[int, str] = {}
        self.loops: list[tuple[int, int]] = []
        self.paired = {int(g) for pair in zip(model.pair_geom1, model.pair_geom2, strict=True) for g in pair}

    def _root(self, free: list[int]) -> int:
        """The floating body with the most joints below it; without one, the first body with joints below it."""
        model = self.model
        tops = free or [b for b in range(1, model.nbody) if model.body_parentid[b] == 0]

        def joints(top: int) -> int:
            return sum(self._below(int(b), top) for b in model.jnt_bodyid)

        return max(tops, key=joints)

    def _below(self, body: int, top: int) -> bool:
        while body not in (0, top):
            body = int(self.model.body_parentid[body])
        return body == top

    def tree(self) -> ModelTree:
        m = self.model
        old = [b for b in range(m.nbody) if self._below(b, self.root)]
        new = {b: i for i, b in enumerate(old)}
        stance = self._stance()
        bodies = [self._body(b, new.get(int(m.body_parentid[b]), -1), stance) for b in old]
        bodies[0].R, bodies[0].p = np.eye(3), np.zeros(3)
        frames = [Frame(body.name, i, np.eye(3), np.zeros(3)) for i, body in enumerate(bodies)]
        for s in range(m.nsite):
            if int(m.site_bodyid[s]) in new:
                place = rotation_from_quat(m.site_quat[s]), m.site_pos[s].copy()
                frames.append(Frame(m.site(s).name, new[int(m.site_bodyid[s])], *place))
        for i, body in enumerate(bodies):
            frames += [Frame(s.name, i, np.eye(3), s.points.mean(axis=0)) for s in body.shapes if s.name]
        self._follow(bodies)
        gyros = [m.site(int(m.sensor_objid[k])).name for k in range(m.nsensor) if self._is_gyro(k)]
        sites = [frame.name for frame in frames if "imu" in frame.name.lower() and frame.name not in gyros]
        imus = [name for name in dict.fromkeys(gyros or sites) if any(frame.name == name for frame in frames)]
        name = self._model_name()
        balls = {new[b]: joint for b, joint in self.balls.items()}
        loops = [(new[a], new[b]) for a, b in self.loops if a in new and b in new]
        return ModelTree(name, bodies, frames, imus, str(self.path), self.notes, balls, loops)

    def _model_name(self) -> str:
        name = bytes(self.model.names).split(b"\0", 1)[0].decode(errors="replace")
        return (name or self.path.stem).removesuffix(" scene").strip()

    def _is_gyro(self, k: int) -> bool:
        m = self.model
        site = int(self.mujoco.mjtObj.mjOBJ_SITE)
        return int(m.sensor_type[k]) == int(self.mujoco.mjtSensor.mjSENS_GYRO) and int(m.sensor_objtype[k]) == site

    def _stance(self) -> Array:
        """Joint positions of the stance: of the key that is named so or the only one, or as the model is drawn."""
        keys = {self.model.key(k).name: k for k in range(self.model.nkey)}
        words = {name: set(words_of(name)) for name in keys}
        alike = [name for name, own in words.items() if own & _STANDING and not own & _ONE_LEG]
        for name in (*_STANCES, *alike, *(keys if len(keys) == 1 else ())):
            if name in keys:
                return np.array(self.model.key_qpos[keys[name]])
        why = f"none of the keys {', '.join(keys)} is named stand or home" if keys else "it has no key"
        self.notes.append(f"stance: as drawn, since {why}; `stand` in the YAML file changes it")
        return np.array(self.model.qpos0)

    def _body(self, b: int, parent: int, stance: Array) -> Body:
        m = self.model
        axes = rotation_from_quat(m.body_iquat[b])
        link = Link(float(m.body_mass[b]), m.body_ipos[b].copy(), axes @ np.diag(m.body_inertia[b]) @ axes.T)
        if link.mass < 1e-5:
            link = Link(0.0, np.zeros(3), np.zeros((3, 3)))
        first, count = int(m.body_jntadr[b]), int(m.body_jntnum[b])
        joints = [joint for j in range(first, first + count) if (joint := self._joint(j, stance)) is not None]
        geoms = range(int(m.body_geomadr[b]), int(m.body_geomadr[b]) + int(m.body_geomnum[b]))
        shapes = [shape for g in geoms if (shape := self._shape(g)) is not None]
        name = m.body(b).name or f"body{b}"
        return Body(name, parent, rotation_from_quat(m.body_quat[b]), m.body_pos[b].copy(), link, joints, shapes)

    def _joint(self, j: int, stance: Array) -> ModelJoint | None:
        m, kinds = self.model, self.mujoco.mjtJoint
        if m.jnt_type[j] == int(kinds.mjJNT_FREE):
            return None
        name = m.joint(j).name or f"joint{j}"
        if m.jnt_type[j] == int(kinds.mjJNT_BALL):
            self.balls[int(m.jnt_bodyid[j])] = name
            return None
        at, dof = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
        values = {"stand": float(stance[at]), **self._drive(j)}
        values["armature"] = float(m.dof_armature[dof])
        values |= {"damping": float(m.dof_damping[dof]), "friction": float(m.dof_frictionloss[dof])}
        if m.jnt_limited[j] and m.jnt_range[j, 0] < m.jnt_range[j, 1]:
            values |= {"lower": float(m.jnt_range[j, 0]), "upper": float(m.jnt_range[j, 1])}
        slides = m.jnt_type[j] == int(kinds.mjJNT_SLIDE)
        axis, anchor = m.jnt_axis[j].copy(), m.jnt_pos[j].copy()
        return ModelJoint(name, axis, anchor, slides, float(m.qpos0[at]), values)

    def _drive(self, j: int) -> dict[str, float]:
        """Gains and torque limit of the actuator of a joint."""
        m, out = self.model, dict[str, float]()
        if m.jnt_actfrclimited[j]:
            out["torque"] = float(m.jnt_actfrcrange[j, 1])
        for a in range(m.nu):
            if m.actuator_trntype[a] != int(self.mujoco.mjtTrn.mjTRN_JOINT) or m.actuator_trnid[a, 0] != j:
                continue
            gear = abs(float(m.actuator_gear[a, 0])) or 1.0
            if m.actuator_forcelimited[a]:
                out["torque"] = min(out.get("torque", np.inf), gear * float(m.actuator_forcerange[a, 1]))
            if m.actuator_biastype[a] == int(self.mujoco.mjtBias.mjBIAS_AFFINE) and m.actuator_gainprm[a, 0] > 0.0:
                out["kp"] = gear * gear * float(m.actuator_gainprm[a, 0])
                # A servo without a velocity gain is damped by the joint.
                damping = -gear * gear * float(m.actuator_biasprm[a, 2])
                out["kd"] = damping or float(m.dof_damping[m.jnt_dofadr[j]])
            elif m.actuator_ctrllimited[a] and "torque" not in out:
                out["torque"] = gear * float(m.actuator_ctrlrange[a, 1])
        return {key: value for key, value in out.items() if value > 0.0}

    def _shape(self, g: int) -> ContactShape | None:
        m, kinds = self.model, self.mujoco.mjtGeom
        kind, size = int(m.geom_type[g]), m.geom_size[g]
        R, p = rotation_from_quat(m.geom_quat[g]), m.geom_pos[g].copy()
        collides = bool(m.geom_contype[g] or m.geom_conaffinity[g] or g in self.paired)
        own: dict[str, Any] = {"collides": collides, "name": m.geom(g).name}
        if kind == int(kinds.mjGEOM_SPHERE):
            return sphere(p, float(size[0]), **own)
        if kind in (int(kinds.mjGEOM_CAPSULE), int(kinds.mjGEOM_CYLINDER)):
            return rod(R, p, float(size[0]), float(size[1]), kind == int(kinds.mjGEOM_CAPSULE), **own)
        if kind == int(kinds.mjGEOM_BOX):
            return box(R, p, size.copy(), **own)
        if kind == int(kinds.mjGEOM_ELLIPSOID):
            ends = np.vstack([np.diag(size), -np.diag(size)])
            return ContactShape(p + ends @ R.T, **own)
        if kind == int(kinds.mjGEOM_MESH) and m.geom_dataid[g] >= 0:
            mesh = int(m.geom_dataid[g])
            start, count = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
            return ContactShape(p + m.mesh_vert[start : start + count].astype(np.float64) @ R.T, **own)
        return None

    def _follow(self, bodies: list[Body]) -> None:
        """Joints that an equality makes follow another one, in a straight line."""
        m = self.model
        joints = {joint.name: joint for body in bodies for joint in body.joints}
        kinds = self.mujoco.mjtEq
        for e in (e for e in range(m.neq) if m.eq_active0[e]):
            kind, ends = int(m.eq_type[e]), (int(m.eq_obj1id[e]), int(m.eq_obj2id[e]))
            if kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
                sites = int(m.eq_objtype[e]) == int(self.mujoco.mjtObj.mjOBJ_SITE)
                one, two = (int(m.site_bodyid[k]) if sites else k for k in ends)
                self.loops.append((one, two))
            if kind != int(kinds.mjEQ_JOINT) or ends[1] < 0:
                continue
            one, two = (m.joint(k).name for k in ends)
            if one not in joints or two not in joints:
                continue
            if np.any(m.eq_data[e, 2:5]):
                self.notes.append(f"{one} follows {two} by a curve, which is left out: the log must have both")
                continue
            follower, leader = joints[one], joints[two]
            # q1 - ref1 = c0 + c1 (q2 - ref2)
            follower.leader, follower.ratio = two, float(m.eq_data[e, 1])
            follower.shift = follower.reference + float(m.eq_data[e, 0]) - follower.ratio * leader.reference
