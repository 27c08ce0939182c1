"""Files that travel with tasks: robots, policies, scenes, observations, estimators. A node needs the package alone."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from gait.errors import os_errors
from gait.robot import Robot
from gait.robot.chain_yaml import robot_tree
from gait.robot.robot import MODELS, YAML
from gait.sim.plan import CollectConfig
from gait.sim.store import sha256


@dataclass
class Parcel:
    """Contents of files by their path in the folder that a node unpacks them to."""

    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, section: str, paths: Sequence[Path]) -> str:
        """Add files that keep their places relative to each other; the name of the first."""
        # Links are not followed: recordings hold the name of the policy that was given.
        whole = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 - Path.resolve follows links
        root = Path(os.path.commonpath([path.parent for path in whole]))
        for path in whole:
            with os_errors(f"cannot read {path}"):
                self.files[f"{section}/{path.relative_to(root)}"] = path.read_bytes()
        return f"{section}/{whole[0].relative_to(root)}"

    def open(self) -> Path:
        """The folder of this process that has the files; it goes when the process ends."""
        parts = (f"{name}\0{sha256(data)}\n" for name, data in sorted(self.files.items()))
        here = Path(_folder(sha256("".join(parts).encode())).name)
        for name, data in self.files.items():
            if not (path := here / name).exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return here


@lru_cache(maxsize=8)
def _folder(digest: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"gait-{digest[:8]}-")


def add_robot(parcel: Parcel, robot: str) -> str:
    """Add a robot that is a file, and name it in the parcel; one that ships with gait keeps its name.

    A URDF or MJCF travels as the description that gait makes of it, so that the files which it names need not.
    """
    path = Path(robot)
    if path.suffix in YAML:
        return parcel.add("robot", [path])
    if path.suffix.lower() not in MODELS:
        return robot
    name = f"robot/{path.stem}.yaml"
    parcel.files[name] = yaml.safe_dump(robot_tree(Robot.load(path)), sort_keys=False).encode()
    return name


@dataclass(frozen=True)
class Luggage:
    """Settings of a collection, and the files they name."""

    config: CollectConfig
    parcel: Parcel
    names: dict[str, str]
    """Settings that name a file: which one of the parcel."""


def pack(config: CollectConfig) -> Luggage:
    """Read the files that settings name on this machine."""
    parcel, names = Parcel(), dict[str, str]()
    if (robot := add_robot(parcel, config.robot)) != config.robot:
        names["robot"] = robot
    if Path(config.feedback).is_file():
        names["feedback"] = parcel.add("feedback", [Path(config.feedback)])
    if config.policy:
        from gait.sim.policy.rig import rig_of, shipped_observations

        names["policy"] = parcel.add("policy", [Path(config.policy)])
        names["model"] = parcel.add("model", scene_files(rig_of(config.files).scene.path))
        # A scene that was named by the robot brings its observation along.
        if not config.observation and config.model in shipped_observations():
            config = replace(config, observation=config.model)
        if config.observation and config.observation not in shipped_observations():
            names["observation"] = parcel.add("observation", [Path(config.observation)])
    return Luggage(config, parcel, names)


def unpack(luggage: Luggage) -> CollectConfig:
    """The settings with paths of this machine."""
    if not luggage.names:
        return luggage.config
    here = luggage.parcel.open()
    changes: dict[str, Any] = {setting: str(here / name) for setting, name in luggage.names.items()}
    return replace(luggage.config, **changes)


def scene_files(scene: Path) -> list[Path]:
    """A scene in MJCF and every file that it names: parts that it includes, meshes, textures, height fields."""
    parts, texts = [scene], list[str]()
    for path in parts:
        texts.append(path.read_text(encoding="utf-8"))
        for name in re.findall(r'<include[^>]*file="([^"]+)"', texts[-1]):
            inside = (folder / name for folder in (path.parent, scene.parent))
            parts += [one for one in inside if one.is_file() and one not in parts][:1]
    text = "".join(texts)
    folders = [scene.parent, *(path.parent for path in parts)]
    folders += [scene.parent / name for name in re.findall(r'(?:mesh|texture|asset)dir="([^"]*)"', text)]
    named = dict.fromkeys(re.findall(r'\bfile\w*="([^"]+)"', text))
    found = [next((path for folder in folders if (path := folder / name).is_file()), None) for name in named]
    return list(dict.fromkeys([*parts, *(path for path in found if path is not None)]))
