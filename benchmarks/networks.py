"""How well trained networks predict velocity on held-out walks: the tables of docs/training.md.

    python benchmarks/networks.py                                     # the models that come with gait
    python benchmarks/networks.py --models runs/train/*/model.safetensors --write
    python benchmarks/networks.py --collect --workers 2               # only make the held-out walks

The walks are fixed by the settings below and made once. Nothing is chosen by them: where one seed of a group must stand
for it, it is the one with the median error on its own validation episodes, which the model file tells.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from held import HEADS, HELD, SECONDS, SEED, UNSEEN, WALKS, Walk, make_walk
from sections import DOCS, markdown, paragraph, spread, write_section

from gait.errors import GaitError
from gait.nets.architecture import KINDS
from gait.nets.model import Model, load_model, model_names
from gait.rows import Row, rows_to_json
from gait.sim.gaits import GAIT_NAMES, STATIONARY
from gait.train.config import TrainConfig
from gait.train.validate import NetworkScore, evaluate_model

PAPER_ORDER = ("gait", "gait-flat", "nmn")
"""Best first on gaits that were not trained, as the paper has it."""


@dataclass(frozen=True, order=True)
class Group:
    """What models have in common that differ by their seed alone."""

    network: str
    gaits: tuple[str, ...] = ("trot",)
    """Gaits they were trained on."""
    targets: bool = True
    airborne: bool = False
    """Whether the robot was also held in the air in training."""
    others: tuple[str, ...] = ()
    """Settings that are not the usual ones, in words."""

    @property
    def plain(self) -> bool:
        """Whether the network is all that tells it from the others of the main tables."""
        return self == Group(self.network)

    @property
    def label(self) -> str:
        """The group in words."""
        words = [f"`{self.network}`", f"on {' + '.join(self.gaits)}"]
        words += [] if self.targets else ["without q_des"]
        words += ["with airborne episodes"] if self.airborne else []
        return ", ".join([*words, *self.others])


@dataclass(frozen=True)
class Entry:
    """One model with its results."""

    name: str
    seed: int
    validation: float
    """Velocity error on its own validation episodes, m/s."""
    scores: Mapping[str, NetworkScore]
    """By walk."""


Groups = Mapping[Group, Sequence[Entry]]


def group_of(model: Model) -> Group:
    """The group of a model, from what its file says about its training."""
    usual, told = {**_RETIRED, **TrainConfig().as_dict()}, model.training
    gaits = {str(entry["gait"]) for entry in model.data if "gait" in entry} or set(map(str, told.get("gaits", ())))
    airborne = {gait for gait in gaits if gait.startswith("airborne")}
    settings = [setting for tree in (told, *model.data) for setting in tree.items()]
    others = [f"{name} {value}" for name, value in told.items() if name not in _GROUPED and value != usual.get(name)]
    if told.get("dead_leg"):
        # Trained on from another training; all its settings say the same.
        others = ["for a dead leg"]
    others += [f"on {entry['terrain']}" for entry in model.data if entry.get("terrain", "flat") != "flat"]
    order = (*GAIT_NAMES, STATIONARY)
    return Group(
        network=model.architecture.kind,
        gaits=tuple(sorted(gaits - airborne, key=lambda gait: order.index(gait) if gait in order else len(order))),
        targets=model.architecture.targets,
        airborne=bool(airborne) or any(name.startswith("airborne") and value for name, value in settings),
        others=tuple(others),
    )


_RETIRED = {"mask_hold": 1}
"""Settings that older models have and trainings no longer, with what was usual."""
_GROUPED = {
    "network", "targets", "data", "seed", "half", "validate_every",
    # Of fresh rollouts; the data in the file tell them.
    "fresh", "gaits", "terrain", "stationary_share", "robot",
    "airborne_share",
}  # fmt: skip
"""Settings that a group has by another name, or that do not decide what the weights are."""


def group_models(models: Mapping[str, Model]) -> dict[Group, dict[int, str]]:
    """Names of the models by group and seed.

    Raises:
        GaitError: if two models of a group share a seed, or were trained on different data.
    """
    groups: dict[Group, dict[int, str]] = {}
    for name, model in models.items():
        group, seed = group_of(model), int(model.training["seed"])
        members = groups.setdefault(group, {})
        if seed in members:
            raise GaitError(f"{members[seed]} and {name} are both seed {seed} of {group.label}: give one with --models")
        for other in members.values():
            if _digests(models[other]) != _digests(model):
                raise GaitError(
                    f"{other} and {name} ({group.label}) were trained on different data: give one kind with --models"
                )
        members[seed] = name
    ordered = sorted(groups, key=lambda group: (not group.plain, KINDS.index(group.network), group))
    return {group: dict(sorted(groups[group].items())) for group in ordered}


def _digests(model: Model) -> list[str]:
    return sorted(str(entry.get("index_sha256")) for entry in model.data)


def median_entry(entries: Sequence[Entry]) -> Entry:
    """The model with the median validation error, the better of the middle two if their number is even."""
    return sorted(entries, key=lambda entry: (entry.validation, entry.seed))[(len(entries) - 1) // 2]


def norm_table(groups: Groups) -> str:
    """Velocity error of each group, one column a walk."""
    rows = [
        [_title(group), str(len(entries)), *(spread([entry.scores[walk].norm for entry in entries]) for walk in WALKS)]
        for group, entries in groups.items()
    ]
    return markdown(["m/s", "seeds", *HEADS.values()], rows)


def axis_table(groups: Groups) -> str:
    """Mean over seeds of the error along each axis."""
    rows = [
        [f"{_title(group)}, {axis}", *(_mean([entry.scores[walk].rmse[i] for entry in entries]) for walk in WALKS)]
        for group, entries in groups.items()
        for i, axis in enumerate("xyz")
    ]
    return markdown(["m/s", *HEADS.values()], rows)


def calibration_table(groups: Groups) -> str:
    """Mean over seeds of the shares of errors within one and two predicted standard deviations."""
    rows = [
        [_title(group), *(_shares([entry.scores[walk] for entry in entries]) for walk in WALKS)]
        for group, entries in groups.items()
    ]
    return markdown(["%", *HEADS.values()], rows)


def median_table(groups: Groups) -> str:
    """Which seed stands for each group."""
    rows = []
    for group, entries in groups.items():
        errors = ", ".join(f"{entry.validation:.4f} ({entry.seed})" for entry in entries)
        rows.append([group.label, errors, str(median_entry(entries).seed)])
    return markdown(["group", "validation error of each seed, m/s", "median seed"], rows)


def order_lines(groups: Groups) -> list[str]:
    """Whether the networks stand in the paper's order on gaits that were not trained."""
    main = {group.network: entries for group, entries in groups.items() if group.plain}
    if any(network not in main for network in PAPER_ORDER):
        return []
    lines = []
    for gait in UNSEEN:
        means = [statistics.fmean(entry.scores[f"{gait}-flat"].norm for entry in main[kind]) for kind in PAPER_ORDER]
        answer = "yes" if means == sorted(means) else "no"
        found = ", ".join(f"{kind} {mean:.3f}" for mean, kind in sorted(zip(means, PAPER_ORDER, strict=True)))
        lines.append(f"{gait}: {answer} ({found})")
    return lines


def _title(group: Group) -> str:
    return f"`{group.network}`" if group.plain else group.label


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3f}"


def _shares(scores: Sequence[NetworkScore]) -> str:
    return ", ".join(f"{100.0 * np.mean([score.within[i] for score in scores]):.0f}" for i in (0, 1))


def report(groups: Groups, walks: Mapping[str, Walk]) -> str:
    """The section of the documentation."""
    main = {group: entries for group, entries in groups.items() if group.plain}
    rest = {group: entries for group, entries in groups.items() if not group.plain}
    parts = ["## Networks compared", paragraph(_INTRODUCTION), paragraph(_about(walks))]
    if main:
        parts += [
            "Length of the velocity error, trained on trot on `flat` alone:",
            norm_table(main),
            "Along each axis, mean over seeds:",
            axis_table(main),
            paragraph(f"{_CALIBRATION}, mean over seeds:"),
            calibration_table(main),
        ]
    order = order_lines(groups)
    if order:
        parts.append(paragraph(f"The paper's order on unseen gaits, {' < '.join(PAPER_ORDER)}: {'; '.join(order)}."))
    if rest:
        parts += [
            "Other inputs, training sets and settings, length of the velocity error:",
            norm_table(rest),
            paragraph(f"{_CALIBRATION}:"),
            calibration_table(rest),
        ]
    return "\n\n".join([*parts, paragraph(_CHOICE), median_table(groups)])


_INTRODUCTION = """`python benchmarks/networks.py --write` makes this section, of the models that come with gait or of
the files given with `--models`. Each column is a held-out collection: trot on each terrain, then the other gaits on
`flat`. Errors are root mean squares over all samples; ± is the standard deviation over seeds."""
_CALIBRATION = """Share of the error's components within one and within two predicted standard deviations, in per cent
(68, 95 would be honest)"""
_CHOICE = """Where one seed must stand for a group, it is the one with the median error on its own validation episodes;
held-out collections have no say:"""


def _about(walks: Mapping[str, Walk]) -> str:
    episodes = ", ".join(f"{HEADS[name]} {len(walk.logs)}" for name, walk in walks.items())
    falls = ", ".join(f"{HEADS[name]} {walk.falls}" for name, walk in walks.items() if walk.falls)
    return (
        f"Held-out episodes are randomised like those of training but come from seed {SEED}, with a noisy IMU,"
        f" {SECONDS:g} s each: {episodes}. One in which the robot falls is replaced; falls met: {falls or 'none'}."
    )


def json_rows(groups: Groups, walks: Mapping[str, Walk]) -> list[Row]:
    """Everything, for machines."""
    rows = [Row(f"held.{name}.falls", walk.falls, "-") for name, walk in walks.items()]
    for group, entries in groups.items():
        rows.append(Row(f"{group.label}.median_seed", median_entry(entries).seed, "-"))
        for entry in entries:
            rows.append(Row(f"{entry.name}.group", group.label, "-"))
            rows.append(Row(f"{entry.name}.validation_velocity_rmse", entry.validation, "m/s"))
            for walk, score in entry.scores.items():
                rows += score.rows(f"{entry.name}.{walk}.")
    return rows


def load_models(paths: Sequence[str]) -> dict[str, Model]:
    """Models by a short name: that of the file, or of its folder where all files are called alike."""
    # gait-legs says something about each leg, not about the body: docs/legs.md is about it.
    files = list(paths) or [name for name in model_names() if not name.startswith("gait-legs")]
    names = [Path(file).parent.name if Path(file).stem == "model" else Path(file).stem for file in files]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise GaitError(f"two models would be called {twice[0]}: rename a file or its folder")
    return {name: load_model(file) for name, file in zip(names, files, strict=True)}


def evaluate(models: Mapping[str, Model], walks: Mapping[str, Walk]) -> dict[Group, list[Entry]]:
    """Run every model through every walk."""
    groups = group_models(models)
    scores: dict[str, dict[str, NetworkScore]] = {name: {} for name in models}
    for walk, held in walks.items():
        print(f"evaluating {walk}", file=sys.stderr)
        for name, model in models.items():
            scores[name][walk] = evaluate_model(model, held.logs)
    return {
        group: [
            Entry(name, seed, float(models[name].results["validation_velocity_rmse"]), scores[name])
            for seed, name in seeds.items()
        ]
        for group, seeds in groups.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[], metavar="FILE", help="model files; else those of gait")
    parser.add_argument("--held", type=Path, default=HELD, help="folder of the held-out walks")
    parser.add_argument("--workers", type=int, default=1, help="processes that simulate missing walks")
    parser.add_argument("--collect", action="store_true", help="only make the held-out walks")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/training.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        models = {} if options.collect else load_models(options.models)
        group_models(models)  # What cannot be grouped is better known before an hour of simulation.
        walks = {}
        for name in WALKS:
            walks[name] = make_walk(name, options.held, options.workers)
            print(f"{name}: {len(walks[name].logs)} episodes, {walks[name].falls} falls replaced", file=sys.stderr)
        if options.collect:
            return
        groups = evaluate(models, walks)
        if options.write:
            write_section("networks", report(groups, walks), DOCS / "training.md")
    except GaitError as error:
        sys.exit(str(error))
    print(rows_to_json(json_rows(groups, walks)) if options.json else report(groups, walks))


if __name__ == "__main__":
    main()
