"""Figures of docs/legs.md: what `gait-legs` thinks of each leg through a change of gait, a pronk and a slip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gait import Estimator, Log
from gait.arrays import Array
from gait.io import open_log
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig
from gait.sim.store import read_index

RUNS = Path(__file__).parents[1] / "runs/legs-figures"
SEED = 73001
SCENES = {
    "trot-to-bound": ("trot-to-bound", "rubber", "from trot to bound, which was not trained"),
    "pronk": ("pronk", "rubber", "pronk, which was not trained: no leg bears anything in flight"),
    "slip": ("trot", "slippery", "trot on slippery ground"),
}
SECONDS, SHOWN = 10.0, 1.2
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
SLIDES = 0.3
"""A foot on the ground that is faster, m/s, slips."""


def scene(name: str) -> Log:
    """A walk on the twin, made when first needed."""
    gait, terrain, _ = SCENES[name]
    config = CollectConfig(gait, terrain, episodes=1, seconds=SECONDS, seed=SEED, sensors="twin")
    collect(config, RUNS / name)
    return open_log(RUNS / name / read_index(RUNS / name)[0]["file"])


def start_of(name: str, log: Log) -> float:
    """Where the interesting part begins."""
    assert log.contact is not None and log.foot_vel_w is not None
    if name == "trot-to-bound":
        return float(log.t[0] + 0.5 * SECONDS - 0.5 * SHOWN)
    if name == "slip":
        sliding = ((np.linalg.norm(log.foot_vel_w, axis=2) > SLIDES) & log.contact).sum(1)
        window = np.convolve(sliding, np.ones(int(0.3 * log.rate)), "same")
        window[: int(log.rate)] = window[-int(log.rate) :] = 0
        return float(log.t[int(window.argmax())] - 0.5 * SHOWN)
    return float(log.t[0] + 4.0)


def draw_figures(weights: str, folder: Path) -> list[tuple[Path, str]]:
    """One picture for each scene; returns where they are and what they show."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    drawn = []
    for name, (_, _, words) in SCENES.items():
        log = scene(name)
        trajectory, details = Estimator.load("go1", weights, attention=True).run_with_details(log)
        assert details.legs is not None and details.attention is not None and trajectory.vel_cov is not None
        first = start_of(name, log)
        rows = (log.t >= first) & (log.t < first + SHOWN)
        figure, axes = plt.subplots(3, 1, figsize=(9, 7), sharex=True, layout="constrained")
        _velocities(axes[0], log, trajectory.vel_b, np.sqrt(trajectory.vel_cov[:, 0, 0]), rows)
        _legs(axes[1], log, details.legs[1], rows)
        _attention(axes[2], log, details.attention, rows)
        axes[0].set_title(f"gait-legs, {words}", loc="left", fontsize=10)
        axes[-1].set_xlabel("time, s")
        path = folder / f"legs-{name}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        drawn.append((path, words))
    return drawn


def _velocities(axis: Any, log: Log, vel_b: Array, std: Array, rows: Array) -> None:
    t = log.t[rows]
    axis.plot(t, log.vel_b[rows, 0], color="black", lw=1.5, label="truth")
    axis.plot(t, vel_b[rows, 0], color=COLOURS[0], lw=1.2, ls="--", label="estimate")
    axis.fill_between(
        t,
        (vel_b[:, 0] - 2 * std)[rows],
        (vel_b[:, 0] + 2 * std)[rows],
        color=COLOURS[0],
        alpha=0.2,
        lw=0,
        label="2 std",
    )
    axis.set_ylabel("forward velocity, m/s")
    axis.legend(loc="upper right", ncols=3, fontsize=8)


def _legs(axis: Any, log: Log, std: Array, rows: Array) -> None:
    """Each leg's standard deviation; bars below show true contact, dark where the foot slides."""
    assert log.contact is not None and log.foot_vel_w is not None
    t = log.t[rows]
    for leg, (name, colour) in enumerate(zip(log.leg_names, COLOURS, strict=True)):
        axis.semilogy(t, std[rows, leg].mean(-1), color=colour, lw=1.2, label=name)
    _contacts(axis, log, rows)
    axis.set_ylabel("std of each leg, m/s")
    axis.legend(loc="upper right", ncols=4, fontsize=8)


def _attention(axis: Any, log: Log, attention: Array, rows: Array) -> None:
    """How much the others look at each leg."""
    seen = attention.mean(1)
    for leg, (name, colour) in enumerate(zip(log.leg_names, COLOURS, strict=True)):
        axis.plot(log.t[rows], seen[rows, leg], color=colour, lw=1.2, label=name)
    _contacts(axis, log, rows)
    axis.set_ylabel("attention that a leg gets")


def _contacts(axis: Any, log: Log, rows: Array) -> None:
    assert log.contact is not None and log.foot_vel_w is not None
    sliding = (np.linalg.norm(log.foot_vel_w, axis=2) > SLIDES) & log.contact
    t, bars = log.t[rows], axis.get_xaxis_transform()
    for leg, colour in enumerate(COLOURS):
        low = 0.02 + 0.04 * leg
        axis.fill_between(
            t, low, low + 0.03, where=log.contact[rows, leg], transform=bars, color=colour, alpha=0.45, lw=0
        )
        axis.fill_between(t, low, low + 0.03, where=sliding[rows, leg], transform=bars, color="black", lw=0)
