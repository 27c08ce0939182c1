"""Models from PyPI that tests read, and a hexapod written here."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import needs

PACKAGES = Path(sysconfig.get_paths()["purelib"])
DATA = PACKAGES / "cmeel.prefix/share/example-robot-data/robots"
PLAYGROUND = PACKAGES / "mujoco_playground/_src/locomotion"
URDF = {
    "go1": "go1_description/urdf/go1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "b1": "b1_description/urdf/b1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "solo": "solo_description/robots/solo.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "bolt": "bolt_description/robots/bolt.urdf",
    "centauro": "centauro_description/urdf/centauro.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "romeo": "romeo_description/urdf/romeo.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "alexander": "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf",
    "simple_humanoid": "simple_humanoid_description/urdf/simple_humanoid.urdf",
}
"""Quadrupeds with knees forward and backward, bipeds and humanoids, legs of two to twelve joints."""
MJCF = {
    "g1": "g1/xmls/scene_mjx_feetonly_flat_terrain.xml",
    "h1": "h1/xmls/scene_mjx_feetonly.xml",
    "t1": "t1/xmls/scene_mjx_feetonly_flat_terrain.xml",
    "apollo": "apollo/xmls/scene_mjx_feetonly_flat_terrain.xml",
    "berkeley_humanoid": "berkeley_humanoid/xmls/scene_mjx_feetonly_flat_terrain.xml",
    "op3": "op3/xmls/scene_mjx_feetonly.xml",
    "spot": "spot/xmls/scene_mjx_feetonly_flat_terrain.xml",
    "go1": "go1/xmls/scene_mjx_feetonly_flat_terrain.xml",
}


def urdf(name: str) -> Path:
    """A URDF of example-robot-data."""
    path = DATA / URDF[name]
    if not path.is_file():
        needs.lacking("example-robot-data", "pip install -e '.[dev]'")
    return path


def mjcf(name: str) -> Path:
    """An MJCF of playground, whose meshes are missing."""
    path = PLAYGROUND / MJCF[name]
    if not path.is_file():
        needs.lacking("playground", "pip install --no-deps playground==0.2.0")
    return path


def _link(name: str, mass: float, com: str, size: float, shape: str = "") -> str:
    parts = {"ixx": 0.9, "iyy": 1.0, "izz": 1.1, "ixy": 0.1, "ixz": -0.05, "iyz": 0.02}
    inertia = " ".join(f'{key}="{mass * size**2 * part:.6g}"' for key, part in parts.items())
    geometry = f"<collision>{shape}</collision>" if shape else ""
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}" rpy="0.1 0.2 -0.3"/><mass value="{mass}"/>'
        f"<inertia {inertia}/></inertial>{geometry}</link>"
    )


def _joint(name: str, kind: str, parent: str, child: str, origin: str, axis: str, more: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin {origin}/>'
        f'<axis xyz="{axis}"/><limit lower="-1" upper="1" effort="30" velocity="10"/>{more}</joint>'
    )


def hexapod() -> str:
    """Six legs around a body, with slanted axes, a sliding shank, a knuckle that follows the knee, and fixed feet."""
    sphere = '<origin xyz="0 0 -0.01"/><geometry><sphere radius="0.012"/></geometry>'
    parts = [_link("body", 8.0, "0.01 0 0.02", 0.2), _link("imu_link", 0.01, "0 0 0", 0.01)]
    parts.append(_joint("imu_joint", "fixed", "body", "imu_link", 'xyz="0.05 0.01 0.03" rpy="0 0 1.5708"', "1 0 0"))
    for i in range(6):
        x, y, yaw = 0.2 * (1 - i // 2), (-0.12, 0.12)[i % 2], (-1.57, 1.57)[i % 2] + 0.4 * (i // 2 - 1)
        n = f"leg{i}"
        parts += [
            _link(f"{n}_coxa", 0.3, "0.02 0.001 0", 0.03),
            _link(f"{n}_femur", 0.4, "0.05 0 0.01", 0.05),
            _link(f"{n}_shank", 0.2, "0.04 0.002 -0.01", 0.04),
            _link(f"{n}_knuckle", 0.05, "0.01 0 0", 0.02),
            _link(f"{n}_slider", 0.1, "0.03 0 0", 0.03),
            _link(f"{n}_foot", 0.05, "0 0 0", 0.01, sphere),
            _joint(f"{n}_yaw", "revolute", "body", f"{n}_coxa", f'xyz="{x} {y} 0" rpy="0.1 -0.2 {yaw}"', "0 0.1 1"),
            _joint(f"{n}_hip", "revolute", f"{n}_coxa", f"{n}_femur", 'xyz="0.05 0 0" rpy="0 0.3 0"', "0 1 0"),
            _joint(f"{n}_knee", "revolute", f"{n}_femur", f"{n}_shank", 'xyz="0.12 0 0" rpy="0 0.9 0.1"', "0.2 1 0.3"),
            _joint(
                f"{n}_follow", "revolute", f"{n}_shank", f"{n}_knuckle", 'xyz="0.05 0 0"', "0 1 0",
                f'<mimic joint="{n}_knee" multiplier="-0.4" offset="0.1"/>',
            ),
            _joint(f"{n}_slide", "prismatic", f"{n}_knuckle", f"{n}_slider", 'xyz="0.04 0 0" rpy="0 0.2 0"', "1 0.1 0"),
            _joint(f"{n}_fixed", "fixed", f"{n}_slider", f"{n}_foot", 'xyz="0.06 0 0" rpy="0 0 0.5"', "1 0 0"),
        ]  # fmt: skip
    return f'<robot name="hexapod">{"".join(parts)}</robot>'
