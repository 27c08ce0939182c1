"""What a sweep is made of: methods x seeds x data sets, from one YAML file. This module imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gait.documents import load_yaml, shown
from gait.errors import GaitError, os_errors
from gait.train.config import TrainConfig, config_of, read_config

KEYS = ("config", "values", "methods", "seeds", "data", "stop_early")
STOP_KEYS = ("after", "keep")


@dataclass(frozen=True)
class Trial:
    """One training of a sweep."""

    name: str
    """Of its folder."""
    method: str
    data: str
    """Name of the data set."""
    seed: int
    config: TrainConfig


@dataclass(frozen=True)
class StopEarly:
    """Trials that do worse than others are stopped (asynchronous successive halving)."""

    after: int
    """Iterations before the first comparison."""
    keep: float
    """Share that continues at each: 0.5 stops half of the trials."""


@dataclass(frozen=True)
class Sweep:
    """A sweep."""

    trials: tuple[Trial, ...]
    stop_early: StopEarly | None = None


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep's YAML file; an unknown key or a wrong value is an error that names it.

    Example:
        config: configs/gait.yaml      # values that all trainings share, or `values:` with them
        methods: [gait, gait-flat, nmn]
        seeds: [0, 1, 2]
        data: {trot: runs/sim/trot, both: [runs/sim/trot, runs/sim/bound]}
        stop_early: {after: 200, keep: 0.5}
    """
    import yaml

    try:
        with os_errors(f"cannot read {path}"):
            tree = load_yaml(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError):
        raise GaitError(f"{path} is not valid YAML: correct its syntax") from None
    if not isinstance(tree, dict):
        raise GaitError(f"{path} must map names to values: see docs/cluster.md")
    if unknown := [str(key) for key in tree if key not in KEYS]:
        raise GaitError(f"{path} has an unknown key '{unknown[0]}': choose from {', '.join(KEYS)}")
    shared = read_config(Path(path).parent / str(tree["config"])) if "config" in tree else {}
    given = _of_type(tree, "values", dict, {}, path)
    base = config_of({**shared, **given}, str(path))
    methods = _of_type(tree, "methods", list, [base.network], path)
    seeds = _of_type(tree, "seeds", list, [base.seed], path)
    data = _of_type(tree, "data", dict, {"data": list(base.data)}, path)
    trials = []
    for name, folders in data.items():
        places = [folders] if isinstance(folders, str) else folders
        for method in methods:
            for seed in seeds:
                changes = {"network": method, "seed": seed, "data": places}
                config = config_of({**base.as_dict(), **changes}, f"{path}, {name}")
                trials.append(Trial(f"{method}-{name}-{seed}", str(method), str(name), config.seed, config))
    names = [trial.name for trial in trials]
    if twice := [name for name in names if names.count(name) > 1]:
        raise GaitError(f"{path} asks for {twice[0]} twice: name each method, seed and data set once")
    if bad := [name for name in names if "/" in name or name.startswith(".")]:
        raise GaitError(f"{path}: '{bad[0]}' is no name for a folder, call the data set something else")
    return Sweep(tuple(trials), _stop_early(tree, base, path))


def _stop_early(tree: Mapping[str, Any], base: TrainConfig, path: str | Path) -> StopEarly | None:
    if "stop_early" not in tree:
        return None
    given = _of_type(tree, "stop_early", dict, {}, path)
    if set(given) != set(STOP_KEYS):
        raise GaitError(f"{path}: stop_early takes {' and '.join(STOP_KEYS)}, such as {{after: 200, keep: 0.5}}")
    after, keep = given["after"], given["keep"]
    if type(after) is not int or not base.validate_every <= after < base.iterations:
        limits = f"between validate_every ({base.validate_every}) and iterations ({base.iterations})"
        raise GaitError(f"{path}: stop_early.after must be a number {limits}, got {shown(after)}")
    if type(keep) not in (int, float) or not 0.0 < keep <= 0.5:
        raise GaitError(f"{path}: stop_early.keep must be above 0 and at most 0.5, got {shown(keep)}")
    return StopEarly(after, float(keep))


def _of_type(tree: Mapping[str, Any], key: str, kind: type, default: Any, path: str | Path) -> Any:
    value = tree.get(key, default)
    if not isinstance(value, kind) or (kind is list and not value):
        raise GaitError(f"{path}: {key} must be a {'list' if kind is list else 'map of names'}, got {shown(value)}")
    return value


def at_home(trial: Trial, home: Path) -> Trial:
    """The trial with paths of data sets that do not depend on the folder a process works in."""
    from gait.io.storage import is_remote, location

    data = tuple(location(one) if is_remote(one) else str((home / one).absolute()) for one in trial.config.data)
    return replace(trial, config=replace(trial.config, data=data))
