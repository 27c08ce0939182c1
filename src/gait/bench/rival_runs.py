"""Estimators of others on a Log, by name: what `gait bench rivals` compares ours with.

| name | what |
| --- | --- |
| `gtsam-ekf`, `gtsam-iekf`, `gtsam-lag`, `gtsam-lag-bias` | the four legged estimators of gtsam 4.3 |
| `ukf` | unscented filter with outlier rejection (Bloesch et al. 2013), a method in Python |
| `iekf-learned` | contacts by a network (Lin et al. 2021), feeding the contact-aided invariant filter |

All get the IMU noise, the prior, the kinematics and, but for `iekf-learned`, the contacts of `iekf`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gait import methods
from gait.arrays import BoolArray
from gait.bench.gtsam_legged import CLASSES, GtsamSettings, run_gtsam
from gait.bench.rivals import MissingRivalError
from gait.documents import load_yaml, named
from gait.engine import Engine
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.log import Log, Trajectory
from gait.log.fields import refuse_unknown
from gait.parameters import BASELINES
from gait.reference.contact_network import ContactNetwork
from gait.reference.unscented import UnscentedFeet, UnscentedSettings
from gait.robot import Robot

SETTINGS_FILE = Path(__file__).with_name("rival_settings.yaml")
"""Written by benchmarks/tune_rivals.py."""
CONTACT_WEIGHTS = Path(__file__).with_name("contact_network.safetensors")
"""Written by benchmarks/train_contacts.py."""


@dataclass(frozen=True)
class LearnedSettings:
    """What is tuned of `iekf-learned`; its filter is that of `iekf`."""

    contact: float = 0.02
    """Random walk of a foot on the ground, m/sqrt(s)."""
    kinematics: float = 0.005
    """Standard deviation of a foot position, m."""


class Run(NamedTuple):
    """An estimate, and how long it took."""

    trajectory: Trajectory
    seconds: float
    """Of one core, without reading the log; of a rival also without finding the contacts that it is given."""


class Front(NamedTuple):
    """What rivals are given."""

    log: Log
    robot: Robot
    contact: BoolArray
    """Feet on the ground by the torques, as `iekf` detects them, or by what the log has in their place (N, L)."""
    start: Trajectory
    """Whose first row is the state at the first sample."""


Settings = GtsamSettings | UnscentedSettings | LearnedSettings
SETTINGS: dict[str, type[Settings]] = {
    **dict.fromkeys(CLASSES, GtsamSettings),
    "ukf": UnscentedSettings,
    "iekf-learned": LearnedSettings,
}
"""Rivals by name, and what is tuned of each."""
RIVALS = tuple(SETTINGS)


def front_of(log: Log, robot: Robot, start: str) -> Front:
    """Contacts and start of a Log."""
    log = log.reorder(robot)
    trajectory, states = Estimator.load(robot, "iekf").run_with_details(log, start)
    return Front(log, robot, np.asarray(states.contact, dtype=bool), trajectory)


def run_rival(name: str, front: Front, start: str, settings: Settings | None = None) -> Run:
    """The estimate of a rival.

    Args:
        name: of `RIVALS`.
        front: the log, and what all rivals are given.
        start: as `Estimator.run` has it.
        settings: the tuned ones by default.

    Raises:
        MissingRivalError: if it cannot run here.
        GaitError: if it does not get through the log.
    """
    settings = tuned()[name] if settings is None else settings
    if isinstance(settings, GtsamSettings):
        return Run(*run_gtsam(name, front.log, front.robot, front.contact, front.start, settings))
    if isinstance(settings, UnscentedSettings):
        methods.register(name, lambda robot: UnscentedFeet(robot, settings), "contact")
        estimator = Estimator.load(front.robot, name)
        return _timed(lambda: estimator.run(front.log.replace(contact=front.contact), start))
    return _learned(front, start, settings)


def _learned(front: Front, start: str, settings: LearnedSettings) -> Run:
    """The network's contacts in the place of those of the log, and the invariant filter on them."""
    network = _contact_network()
    began = time.process_time()
    log = front.log.replace(contact=network.contacts(front.log, front.robot))
    spent = time.process_time() - began
    params = replace(BASELINES["iekf"], contact=settings.contact, kinematics=settings.kinematics)
    engine = Engine(front.robot, contacts=params, contact_from="contact")
    run = _timed(lambda: Estimator(front.robot, engine, "iekf").run(log, start))
    return run._replace(seconds=run.seconds + spent)


def _timed(run: Callable[[], Trajectory]) -> Run:
    began = time.process_time()
    found = run()
    return Run(found, time.process_time() - began)


@cache
def _contact_network() -> ContactNetwork:
    if not CONTACT_WEIGHTS.is_file():
        raise MissingRivalError("its network is not trained yet: type python benchmarks/train_contacts.py --write")
    return ContactNetwork.load(CONTACT_WEIGHTS)


@cache
def tuned() -> dict[str, Settings]:
    """The settings by rival: those of the file, else those of `gtsam-ekf` where they fit, else the defaults."""
    found = settings_file()
    like_gtsam = dict.fromkeys(CLASSES, found.get("gtsam-ekf", GtsamSettings()))
    return {name: kind() for name, kind in SETTINGS.items()} | like_gtsam | found


def settings_file() -> dict[str, Settings]:
    """What the file has, by rival."""
    tree = load_yaml(SETTINGS_FILE.read_text(encoding="utf-8"))
    if not isinstance(tree, Mapping):
        raise GaitError(f"{SETTINGS_FILE.name} must hold the settings of each rival: write it with tune_rivals.py")
    refuse_unknown(map(named, tree), RIVALS, SETTINGS_FILE.name, "rival")
    return {name: settings_of(name, values) for name, values in tree.items()}


def settings_of(name: str, values: Mapping[str, Any]) -> Settings:
    """Settings of a rival from some of their values; the rest keeps its default."""
    kind = SETTINGS[name]
    refuse_unknown(map(named, values), [one.name for one in fields(kind)], f"settings of {name}", "setting")
    return kind(**{key: float(value) for key, value in values.items()})
