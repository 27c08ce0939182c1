"""Other ground under the robot of a scene.

Contact parameters stay the scene's, soft feet included, whatever the terrain: a policy was trained with them. `rigid`
takes the nearly rigid contact of `gait.sim.world` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gait.robot.mjcf_reader import delete
from gait.sim.physics import mujoco
from gait.sim.settings import SCENE, EpisodeConfig, own_friction
from gait.sim.world import find_terrain, let_things_sleep

_CONTACT = ("solref", "solimp", "solmix", "margin", "gap", "condim", "priority")
"""How hard a contact is, to which the number of its rows belongs; friction is the terrain's."""


def lay_ground(spec: Any, config: EpisodeConfig, rng: np.random.Generator, rigid: bool) -> None:
    """Replace the ground of a scene by a terrain, or change its friction."""
    pairs = list(spec.pairs)
    paired = {name for pair in pairs for name in (pair.geomname1, pair.geomname2)}
    old = [geom for geom in spec.worldbody.geoms if geom.contype or geom.conaffinity or geom.name in paired]
    robot = [geom for geom in spec.geoms if geom.parent.name != "world"]
    if config.terrain == SCENE:
        if config.friction is not None:
            for geom in old:
                geom.friction[0] = config.friction
            _slide(old, robot)
            for pair in pairs:
                if {pair.geomname1, pair.geomname2} & {geom.name for geom in old}:
                    pair.friction[:2] = config.friction
        return
    floor = {name: np.copy(getattr(old[0], name)) for name in (*_CONTACT, "contype", "conaffinity")} if old else {}
    feet = [_Pair(pair, {geom.name for geom in old}) for pair in pairs]
    for item in (*(pair.pair for pair in feet if pair.foot), *old):
        delete(spec, item)
    new = _build(spec, config, rng)
    if rigid:
        spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 20.0
    for geom in new:
        geom.contype |= int(floor.get("contype", 1))
        geom.conaffinity |= int(floor.get("conaffinity", 1))
        for name in _CONTACT if not rigid and floor else ():
            setattr(geom, name, floor[name].item() if floor[name].ndim == 0 else floor[name])
    _slide(new, robot)
    for pair in feet:
        if pair.foot:
            for geom in new:
                pair.repeat(spec, geom, rigid)


class _Pair:
    """A contact pair of a foot with the ground, which a scene may name instead of letting geoms collide."""

    def __init__(self, pair: Any, grounds: set[str]) -> None:
        names = (pair.geomname1, pair.geomname2)
        self.pair = pair
        self.foot = next((name for name in names if name not in grounds), "") if grounds & set(names) else ""
        self.values = {name: np.copy(getattr(pair, name)) for name in ("solref", "solimp", "margin", "gap", "friction")}
        self.condim = int(pair.condim)

    def repeat(self, spec: Any, geom: Any, rigid: bool) -> None:
        """The same pair with other ground."""
        values: dict[str, Any] = {**self.values, "friction": [geom.friction[0]] * 2 + list(self.values["friction"][2:])}
        if rigid:
            values |= {"solref": list(geom.solref), "solimp": list(geom.solimp)}
        spec.add_pair(
            name=f"{self.foot}_{geom.name}", geomname1=self.foot, geomname2=geom.name, condim=self.condim,
            **{name: value.item() if np.ndim(value) == 0 else list(value) for name, value in values.items()},
        )  # fmt: skip


def _build(spec: Any, config: EpisodeConfig, rng: np.random.Generator) -> list[Any]:
    """Add a terrain; returns its geoms, each with a name."""
    before, terrain = list(spec.geoms), find_terrain(config.terrain)
    if terrain.loose:
        let_things_sleep(spec)
    _add_looks(spec)
    terrain.build(spec, replace(config, friction=own_friction(config)), rng)
    new = [geom for geom in spec.geoms if geom not in before]
    for number, geom in enumerate(new):
        geom.name = geom.name or f"ground_{number}"
    return new


def _slide(grounds: Sequence[Any], robot: Sequence[Any]) -> None:
    """Let the friction of the ground count: MuJoCo takes the larger of two, or that of the geom with priority."""
    least = min((float(geom.friction[0]) for geom in grounds), default=1.0)
    colliding = [geom for geom in robot if geom.contype or geom.conaffinity]
    for geom in colliding:
        geom.friction[0] = min(float(geom.friction[0]), least)
    first = max((int(geom.priority) for geom in colliding), default=0)
    for geom in grounds:
        geom.priority = max(int(geom.priority), first)


def _add_looks(spec: Any) -> None:
    """The materials that terrains are drawn with."""
    have = {material.name for material in spec.materials}
    for name, dark, light in (
        ("grid", (0.24, 0.26, 0.28), (0.34, 0.36, 0.38)),
        ("plate", (0.55, 0.65, 0.75), (0.62, 0.72, 0.82)),
    ):
        if name in have:
            continue
        look = {"type": mujoco.mjtTexture.mjTEXTURE_2D, "builtin": mujoco.mjtBuiltin.mjBUILTIN_CHECKER}
        texture = spec.add_texture(
            name=f"{name}_checker", width=256, height=256, rgb1=list(dark), rgb2=list(light), **look
        )
        material = spec.add_material(name=name, texrepeat=[2, 2], texuniform=True)
        material.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = texture.name
