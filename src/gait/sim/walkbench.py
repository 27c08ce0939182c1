"""Does it really walk? Falls, footfall patterns, speed and real-time factor, measured over many seeds."""

from __future__ import annotations

import cProfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from gait.rows import Row
from gait.sim.episode import RawEpisode, described_robot, run_episode
from gait.sim.gaits import gait_of
from gait.sim.mismatch import sensors_of
from gait.sim.mpc.planner import ForcePlanner
from gait.sim.sensors import sense
from gait.sim.settings import Command, CommandRanges, EpisodeConfig, randomise
from gait.sim.world import CIRCLE_RADIUS

WALKING_GAITS = ("trot", "bound", "pace", "pronk")
"""The gaits that `walking_report` measures."""
_SETTLED = 1.0
"""Seconds after a new command that do not count for the speed: the robot is still on its way to it."""
_FREE = CommandRanges(hold=(4.0, 8.0), still_share=0.0)
_STRAIGHT = replace(_FREE, vx=(0.3, 1.0), vy=(0.0, 0.0), yaw_rate=(0.0, 0.0), frequency_scale=(1.0, 1.0))


@dataclass(frozen=True)
class WalkFigures:
    """Quality of the walk in one episode."""

    fell: bool
    pair_agreement: float
    """Share of samples in which legs that belong together agree on being in contact; nan for gaits without pairs."""
    speed_ratio: float
    """Speed along the command relative to the command, one second and more after every change of command."""
    flight_share: float
    """Share of samples with no foot on the ground."""
    slip_share: float
    """Share of the samples of feet in contact that slide faster than 0.1 m/s."""
    slip_event_share: float
    """Share of the samples that the contact estimator calls contact in which the foot moves faster than 0.5 m/s."""
    peak_load: float
    """Highest sum of the vertical foot forces, in body weights."""


def walk_config(gait: str, seed: int, seconds: float, terrain: str = "flat") -> EpisodeConfig:
    """The episode of the walking study: 0.3 to 1.0 m/s on friction 0.3 to 1.0, everything else randomised.

    Gains, control rate, payload, centre of mass, motors and contacts are drawn as for training. The trot also goes
    backwards, sideways and round bends. On `circular` it walks circles of 2 m diameter instead.
    """
    # Slips come with changes of speed: on slippery ground commands change as often as in training.
    free = CommandRanges(still_share=0.0) if terrain == "slippery" else _FREE
    ranges, rng = free if gait == "trot" else _STRAIGHT, np.random.default_rng([seed, 20])
    config = randomise(rng, EpisodeConfig(gait=gait, terrain=terrain, seconds=seconds), ranges, pushed=False)
    if terrain == "circular":
        speed = rng.uniform(0.3, 0.6)
        config = replace(config, commands=(Command(vx=speed, yaw_rate=speed / CIRCLE_RADIUS),))
    elif terrain == "debris":
        config = replace(config, commands=(Command(vx=rng.uniform(0.25, 0.5)),))
    return config


def figures(episode: RawEpisode) -> WalkFigures:
    """Measure an episode."""
    contact = episode.contact
    pairs = gait_of(episode.config.gait, described_robot(episode.config)).pairs
    agree = [contact[:, pair].all(axis=1) | ~contact[:, pair].any(axis=1) for pair in pairs]
    speed = np.linalg.norm(episode.foot_vel_w[..., :2], axis=2)
    weight = episode.foot_force_w[..., 2].sum(axis=1)
    return WalkFigures(
        fell=episode.fell_at is not None,
        pair_agreement=float(np.mean(agree)) if pairs else float("nan"),
        speed_ratio=_speed_ratio(episode),
        flight_share=float((~contact.any(axis=1)).mean()),
        slip_share=float((speed[contact] > 0.1).mean()) if contact.any() else float("nan"),
        slip_event_share=_slip_event_share(episode),
        peak_load=float(weight.max() / weight.mean()),
    )


def walking_report(quick: bool = False, progress: Callable[[str], None] | None = None) -> list[Row]:
    """Walk every gait over 20 seeds, 20 s each, and report what happened.

    Args:
        quick: three short episodes a gait and no extra terrains, in well under a minute.
        progress: called with a line after every gait.

    Returns:
        Rows such as `trot.falls` (share of episodes), `trot.pair_agreement` (mean over episodes),
        `trot.speed_ratio`, `pronk.flight_share`; then where the time went and `realtime_factor_per_core`.
    """
    seeds, seconds = (3, 6.0) if quick else (20, 20.0)
    rows: list[Row] = []
    studies = [(gait, "flat") for gait in WALKING_GAITS]
    if not quick:
        studies += [("trot", terrain) for terrain in ("slippery", "circular", "rough", "slope", "debris")]
    for gait, terrain in studies:
        # Debris costs ten times as much: every pebble is a body of its own.
        count, length = (seeds // 4, 10.0) if terrain == "debris" else (seeds, seconds)
        results = [figures(run_episode(walk_config(gait, k, length, terrain), k)) for k in range(count)]
        rows += _rows(gait if terrain == "flat" else f"{gait}_{terrain}", results)
        if progress is not None:
            falls = sum(result.fell for result in results)
            progress(f"{gait} on {terrain}: {falls} of {count} fell")
    return rows + speed_report(2.0 if quick else 10.0)


def speed_report(seconds: float) -> list[Row]:
    """Real-time factor of a trot at 250 control steps a second on one core, and where its time goes.

    Processor time is what counts, so that other work on the machine does not.
    """
    config = EpisodeConfig(seconds=seconds)
    run_episode(replace(config, seconds=0.2), 0)  # compiled functions load on their first call
    started = time.process_time()
    run_episode(config, 0)
    factor = (config.seconds + config.settle) / (time.process_time() - started)
    profile, planner = cProfile.Profile(), ForcePlanner.plan.__code__
    profile.runcall(run_episode, config, 0)
    calls = [(call.code, call.totaltime) for call in profile.getstats()]
    total = max(seconds for _, seconds in calls)
    shares = {
        "physics": sum(seconds for code, seconds in calls if "mj_step" in str(code)) / total,
        "planner": sum(seconds for code, seconds in calls if code is planner) / total,
    }
    shares["rest"] = 1.0 - sum(shares.values())
    rows = [Row(f"{name}_share", share, "-") for name, share in shares.items()]
    return [*rows, Row("realtime_factor_per_core", factor, "-")]


def _rows(name: str, results: Sequence[WalkFigures]) -> list[Row]:
    rows = []
    for field in fields(WalkFigures):
        values = np.array([getattr(result, field.name) for result in results], dtype=np.float64)
        mean = float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")
        figure = "falls" if field.name == "fell" else field.name
        rows.append(Row(f"{name}.{figure}", mean, "body weights" if figure == "peak_load" else "-"))
    return rows


def _slip_event_share(episode: RawEpisode) -> float:
    """With exact sensors and contacts from joint torque, as those of the baseline `iekf`."""
    from gait.estimator import Estimator

    robot = described_robot(episode.config)
    log = sense(episode, robot, sensors_of("exact"), np.random.default_rng(0))
    called = np.asarray(Estimator.load(robot, "iekf").run_with_details(log)[1].contact)
    speed = np.linalg.norm(log.need("foot_vel_w"), axis=2)
    return float((speed[called] > 0.5).mean()) if called.any() else float("nan")


def _speed_ratio(episode: RawEpisode) -> float:
    w, x, y, z = episode.quat_wb_wxyz.T
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    # As complex numbers: turning into the heading frame is a product.
    velocity = (episode.vel_w[:, 0] + 1j * episode.vel_w[:, 1]) * np.exp(-1j * yaw)
    command = episode.command[:, 0] + 1j * episode.command[:, 1]
    asked = np.abs(command)
    counts = asked > 0.0
    for later in episode.config.commands[1:]:
        # The first command has had the settling time already.
        counts &= ~((episode.t >= later.start) & (episode.t < later.start + _SETTLED))
    along = (velocity * command.conj()).real[counts] / asked[counts]
    return float(along.sum() / asked[counts].sum()) if counts.any() else float("nan")
