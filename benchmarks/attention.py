"""Where `gait` looks on held-out walks: the attention study of docs/training.md and its figures.

    python benchmarks/attention.py                                              # the models that come with gait
    python benchmarks/attention.py --models runs/train/gait-s*/model.safetensors --write

A token's share is its attention weight summed over the history, averaged over latents and heads; the shares of a step
sum to one. Contacts are the simulator's. Figures show the median seed, by the rule of benchmarks/networks.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from held import HELD, make_walk
from looks import Look, joined, looks_of
from networks import Entry, group_models, load_models, median_entry
from sections import DOCS, markdown, paragraph, spread, write_section

from gait.arrays import Array, BoolArray
from gait.errors import GaitError, need_extra
from gait.io.atomic import atomic_path
from gait.nets.architecture import AttentionArchitecture
from gait.nets.model import Model
from gait.rows import Row, rows_to_json

GAITS = ("trot", "bound", "pace", "pronk")
IMAGES = DOCS / "images"
LEGS_FIGURE, FLIGHT_FIGURE = "attention-legs.png", "attention-pronk.png"
WINDOW = (4.0, 1.0)
"""What figures show of the first episode: from this second, for so many."""
LEAST_SHARE = 0.01
"""A phase that takes less of the time than this gives no figures."""
# Okabe and Ito: told apart by colour-blind eyes, and line styles differ besides.
BLUE, ORANGE, GREEN, SHADE = "#0072B2", "#D55E00", "#009E73", "0.88"


def leg_figures(look: Look) -> dict[str, float]:
    """How a leg's share goes with its contact."""
    single = [correlation(share, look.contact) for share in look.by_head.swapaxes(0, 1)]
    return {
        "stance_share": float(look.contact.mean()),
        "flight_share": float(look.flight.mean()),
        "leg_share_in_stance": float(look.legs[look.contact].mean()),
        "leg_share_in_swing": float(look.legs[~look.contact].mean()),
        "correlation_with_contact": correlation(look.legs, look.contact),
        "lowest_head_correlation": min(single),
        "highest_head_correlation": max(single),
    }


def correlation(share: Array, contact: BoolArray) -> float:
    """Of a leg's share (N, L) with its contact (N, L) over time, averaged over legs; a share that rests counts as 0."""
    share, touch = share - share.mean(0), contact - contact.mean(0)
    scale = np.sqrt(np.square(share).sum(0) * np.square(touch).sum(0))
    return float(((share * touch).sum(0) / np.where(scale > 0.0, scale, 1.0)).mean())


def phase_figures(look: Look, rows: BoolArray) -> dict[str, float]:
    """What the network looks at and how far off it is in some of the samples."""
    error = look.truth[rows] - look.velocity[rows]
    std = look.std[rows]
    return {
        "gyro_share": float(look.gyro[rows].mean()),
        "accel_share": float(look.accel[rows].mean()),
        "legs_share": float(look.legs[rows].sum(1).mean()),
        "newest_slot_share": float(look.newest[rows].mean()),
        "predicted_std": float(np.sqrt(np.square(std).sum(1).mean())),
        "velocity_rmse": float(np.sqrt(np.square(error).sum(1).mean())),
        "velocity_rmse_z": float(np.sqrt(np.square(error[:, 2]).mean())),
        "within_2_sigma": float((np.abs(error) <= 2.0 * std).mean()),
    }


def figures_of(look: Look) -> dict[str, float]:
    """All figures of one gait; phases too short to tell are left out."""
    figures = leg_figures(look)
    for phase, rows in (("support", ~look.flight), ("flight", look.flight)):
        if rows.mean() >= LEAST_SHARE:
            figures |= {f"{phase}.{name}": value for name, value in phase_figures(look, rows).items()}
    return figures


Study = Mapping[str, Sequence[Mapping[str, float]]]
"""Figures of each model, by gait."""

_LEG_HEADS = {
    "stance_share": "in stance, of the time",
    "flight_share": "all in flight",
    "leg_share_in_stance": "attention in stance",
    "leg_share_in_swing": "in swing",
    "correlation_with_contact": "correlation with contact",
    "lowest_head_correlation": "lowest of a head",
    "highest_head_correlation": "highest of a head",
}
_PHASE_HEADS = {
    "gyro_share": "gyro",
    "accel_share": "accelerometer",
    "legs_share": "four legs",
    "newest_slot_share": "newest slot",
    "predicted_std": "predicted std, m/s",
    "velocity_rmse": "error, m/s",
    "velocity_rmse_z": "of it z, m/s",
    "within_2_sigma": "within 2 std",
}


def leg_table(study: Study, names: Sequence[str]) -> str:
    """A leg's share of the attention by gait and model: a mean over models would hide that they disagree."""
    rows = [
        [f"{gait}, `{name}`", *(f"{figures[head]:.2f}" for head in _LEG_HEADS)]
        for gait, models in study.items()
        for name, figures in zip(names, models, strict=True)
    ]
    return markdown(["a leg", *_LEG_HEADS.values()], rows)


def phase_table(study: Study) -> str:
    """Attention, predicted deviation and error in support and in flight, for gaits that have both."""
    rows = [
        [f"{gait}, {phase}", *(_cell(models, f"{phase}.{name}") for name in _PHASE_HEADS)]
        for gait, models in study.items()
        if all(f"flight.{name}" in figures for figures in models for name in _PHASE_HEADS)
        for phase in ("support", "flight")
    ]
    return markdown(["", *_PHASE_HEADS.values()], rows)


def _cell(models: Sequence[Mapping[str, float]], name: str) -> str:
    return spread([figures[name] for figures in models])


def report(study: Study, models: Mapping[str, Model], shown: str) -> str:
    """The section of the documentation."""
    architecture = models[shown].architecture
    assert isinstance(architecture, AttentionArchitecture)
    tokens, slots = len(architecture.tokens), architecture.history
    names = ", ".join(f"`{name}`" for name in models)
    when = f"{WINDOW[1]:g} s"
    return "\n\n".join(
        [
            "## Where it looks",
            paragraph(
                f"""`python benchmarks/attention.py --write` makes this section, here for {names}. A token's share is
                its attention weight summed over the history and averaged over latents and heads. The shares of a step
                sum to one: attention that did not care would give each of the {tokens} tokens {1 / tokens:.3f}, and
                each of the {slots} slots of the history {1 / slots:.3f}. Contacts are the simulator's. The correlation
                is that of a leg's share with its contact (0 or 1) over time, averaged over legs: 1 if it looks at legs
                that stand, -1 if it looks at legs that swing. Lowest and highest are those of a single latent and
                head."""
            ),
            leg_table(study, list(models)),
            f"![Attention on each leg over {when} of trot and of bound, true contacts shaded](images/{LEGS_FIGURE})",
            paragraph(
                f"""In support a foot is on the ground, in flight none is; gaits that fly for less than
                {100 * LEAST_SHARE:g} % of the time are left out. Deviations and errors are root mean squares of their
                length; ± is the standard deviation over seeds."""
            ),
            phase_table(study),
            f"![Attention, predicted std and velocity over {when} of pronk, flight shaded](images/{FLIGHT_FIGURE})",
            f"Figures show `{shown}` from second {WINDOW[0]:g} of the first episode of a collection.",
        ]
    )


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise need_extra("matplotlib", "viz") from None
    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    return pyplot


def _shade(axes: Any, t: Array, rows: BoolArray, label: str) -> None:
    axes.fill_between(
        t, 0, 1, where=rows, step="mid", color=SHADE, lw=0, transform=axes.get_xaxis_transform(), label=label
    )


def draw_legs(looks: Mapping[str, Look], legs: Sequence[str], path: Path) -> None:
    """A leg's attention over a second of each gait, its contacts shaded."""
    pyplot = _pyplot()
    figure, grid = pyplot.subplots(
        len(legs), len(looks), figsize=(8, 5), sharex=True, sharey=True, layout="constrained", squeeze=False
    )
    for column, (gait, whole) in zip(grid.T, looks.items(), strict=True):
        look = whole.cut(*WINDOW)
        column[0].set_title(gait)
        for i, (axes, leg) in enumerate(zip(column, legs, strict=True)):
            _shade(axes, look.t, look.contact[:, i], "foot on the ground")
            axes.plot(look.t, look.legs[:, i], color=BLUE, lw=1.2, label="attention on the leg")
            axes.margins(x=0)
            if axes is grid[i, 0]:
                axes.set_ylabel(leg)
        column[-1].set_xlabel("time (s)")
    grid[0, 0].set_ylim(bottom=0)
    figure.supylabel("share of the attention on each leg", fontsize=9)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    _save(figure, path)


def draw_flight(whole: Look, path: Path) -> None:
    """Attention on the inertial tokens, predicted deviation and vertical velocity, flight shaded."""
    pyplot, look = _pyplot(), whole.cut(*WINDOW)
    figure, rows = pyplot.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
    for axes in rows:
        _shade(axes, look.t, look.flight, "flight" if axes is rows[0] else "_")
        axes.margins(x=0)
    top, middle, bottom = rows
    for share, colour, style, label in (
        (look.gyro, BLUE, "-", "gyro"),
        (look.accel, ORANGE, "--", "accelerometer"),
        (look.legs.sum(1), GREEN, ":", "four legs"),
    ):
        top.plot(look.t, share, color=colour, ls=style, label=label)
    top.set(ylabel="share of attention", ylim=(0, 1))
    for i, (axis, colour, style) in enumerate((("x", BLUE, "-"), ("y", GREEN, ":"), ("z", ORANGE, "--"))):
        middle.plot(look.t, look.std[:, i], color=colour, ls=style, label=axis)
    middle.set(ylabel="predicted std (m/s)", ylim=(0, None))
    bottom.plot(look.t, look.truth[:, 2], color="black", ls="--", lw=1.2, label="true")
    bottom.plot(look.t, look.velocity[:, 2], color=BLUE, lw=1.2, label="predicted")
    low, high = (look.velocity[:, 2] + sign * 2.0 * look.std[:, 2] for sign in (-1.0, 1.0))
    bottom.fill_between(look.t, low, high, color=BLUE, alpha=0.25, lw=0, label="± 2 std")
    bottom.set(ylabel="vertical velocity (m/s)", xlabel="time (s)")
    for axes in rows:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        # Without the version of matplotlib in it, so that the same picture is the same file.
        figure.savefig(temporary, dpi=110, format="png", metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[], metavar="FILE", help="gait models that differ by seed")
    parser.add_argument("--held", type=Path, default=HELD, help="folder of the held-out walks")
    parser.add_argument("--workers", type=int, default=1, help="processes that simulate missing walks")
    parser.add_argument("--images", type=Path, help="draw the figures into this folder")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/training.md, draw the figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        models = load_gait_models(options.models)
        entries = [
            Entry(name, int(m.training["seed"]), float(m.results["validation_velocity_rmse"]), {})
            for name, m in models.items()
        ]
        shown = median_entry(entries).name
        study: dict[str, list[dict[str, float]]] = {}
        firsts: dict[str, Look] = {}
        for gait in GAITS:
            logs = make_walk(f"{gait}-flat", options.held, options.workers).logs
            looks = {name: looks_of(model, logs) for name, model in models.items()}
            study[gait] = [figures_of(joined(episodes)) for episodes in looks.values()]
            firsts[gait] = looks[shown][0]
        images = options.images or (IMAGES if options.write else None)
        if images is not None:
            draw_legs({g: firsts[g] for g in ("trot", "bound")}, models[shown].leg_names, images / LEGS_FIGURE)
            draw_flight(firsts["pronk"], images / FLIGHT_FIGURE)
        if options.write:
            write_section("attention", report(study, models, shown), DOCS / "training.md")
    except GaitError as error:
        sys.exit(str(error))
    if options.json:
        units = {"predicted_std": "m/s", "velocity_rmse": "m/s", "velocity_rmse_z": "m/s"}
        print(
            rows_to_json(
                Row(f"{name}.{gait}.{figure}", value, units.get(figure.split(".")[-1], "-"))
                for gait, all_figures in study.items()
                for name, figures in zip(models, all_figures, strict=True)
                for figure, value in figures.items()
            )
        )
    else:
        print(report(study, models, shown))


def load_gait_models(paths: Sequence[str]) -> dict[str, Model]:
    """The models given, or the plain `gait` ones of those that come with gait; all of one group."""
    models = load_models(paths)
    groups = group_models(models)
    if not paths:
        groups = {group: seeds for group, seeds in groups.items() if group.network == "gait" and group.targets}
    if not groups:
        raise GaitError("there is no gait model: give one with --models")
    if paths and len(groups) > 1:
        raise GaitError(f"the models are of {len(groups)} kinds: give seeds of one with --models")
    return {name: models[name] for name in next(iter(groups.values())).values()}


if __name__ == "__main__":
    main()
