"""The settings of an episode of a collection, drawn from the collection's seed and the episode's number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gait.robot import Robot
from gait.sim.episode import described_robot
from gait.sim.gaits import AIRBORNE, OTHERS, STATIONARY, TRANSITIONS, ZMP, find_gait
from gait.sim.mismatch import body_of
from gait.sim.plan import CollectConfig
from gait.sim.policy.rig import rig_of
from gait.sim.policy.scene_variety import draw_relative, episode_rig
from gait.sim.proportions import Proportions
from gait.sim.settings import (
    POLICY,
    PUSHES,
    SCHEDULES,
    VARIED,
    Command,
    CommandRanges,
    EpisodeConfig,
    change_gait,
    fit_commands,
    fit_episode,
    random_pushes,
    randomise,
    vary_contact,
)  # fmt: skip
from gait.sim.variety import draw_variant
from gait.sim.world import CIRCLE_RADIUS
from gait.sim.zmp.biped_variety import draw_biped, draw_biped_episode

DEBRIS_LENGTH = 2.4
"""How far an episode on debris walks ahead before it walks back, m: the extent of the debris."""
Drawn = tuple[EpisodeConfig, int, np.random.Generator]
"""The settings, the physics seed and the sensor noise of one attempt at one episode."""


def draw_episode(config: CollectConfig, number: int, attempt: int = 0) -> Drawn:
    """The settings, the physics seed and the sensor noise of one attempt at one episode.

    They depend on the collection's seed, the episode's number and the attempt only, never on the episodes before.
    """
    root = np.random.SeedSequence(config.seed, spawn_key=(number, attempt))
    settings, physics, noise, body, shoves, ground = root.spawn(6)
    rng = np.random.default_rng(settings)
    gait, later = TRANSITIONS.get(subject := _subject(config, number), (subject, ""))
    variant = None
    if config.policy and (config.random_robots or (config.varied and rig_of(config.files).known is not None)):
        name = f"{rig_of(config.files).robot.name}-{config.seed}-{number}"
        # Of each attempt another one: a policy may not walk with all of them.
        variant = draw_relative(np.random.default_rng(body), name)
    elif config.random_robots:
        name = f"{Robot.load(config.robot).name}-{config.seed}-{number}"
        draw = draw_biped if config.gait == ZMP else draw_variant
        variant = draw(np.random.default_rng(body), name)
    same = {name: getattr(config, name) for name in ("robot", "terrain", "seconds", "feedback")}
    base = EpisodeConfig(**same, variant=variant, gait=gait, stop_at_fall=not config.keep_falls)
    if config.policy:
        base = replace(base, gait=POLICY, policy=config.files, control_rate=rig_of(config.files).rate)
    episode = base if config.nominal else randomise(rng, base)
    episode = replace(episode, control_rate=base.control_rate) if config.policy else episode
    episode = draw_biped_episode(rng, episode) if gait == ZMP and not config.nominal else episode
    ranges = VARIED if config.varied else CommandRanges()
    episode = replace(episode, commands=_commands(rng, episode, config.commands, ranges), **_chosen(config))
    episode = vary_contact(np.random.default_rng(ground), episode) if config.varied else episode
    if config.pushes and config.nominal:
        pushes = random_pushes(np.random.default_rng(shoves), config.seconds, *PUSHES)
        episode = replace(episode, pushes=pushes)
    if later:
        quicker = find_gait(gait).period / find_gait(later).period
        episode = replace(episode, commands=change_gait(episode.commands, config.seconds / 2.0, later, quicker))
    # What is asked for by name wins over the body of the twin.
    seed = int(physics.generate_state(1)[0])
    episode = _fitted(replace(body_of(config.sensors, episode, seed=seed), **_chosen(config)))
    return episode, seed, np.random.default_rng(noise)


def _chosen(config: CollectConfig) -> dict[str, Any]:
    """Settings of the episode that the collection asks for by name."""
    asked = {"friction": config.friction, "payload_mass": config.payload, "motor_strength": config.motor_strength}
    return {name: value for name, value in asked.items() if value is not None}


def _fitted(episode: EpisodeConfig) -> EpisodeConfig:
    """The episode with loads and pushes that fit its robot."""
    if episode.gait == ZMP:
        return Proportions.of_mass(described_robot(episode).mass).fit(episode, payload_mass="mass")
    if episode.policy is None:
        return fit_episode(episode, described_robot(episode))
    size = Proportions.of_mass(episode_rig(episode).mass)
    pushes = tuple(size.fit(push, force_w="mass") for push in episode.pushes)
    return replace(size.fit(episode, payload_mass="mass"), pushes=pushes)


def _subject(config: CollectConfig, number: int) -> str:
    """The kind of an episode: the gait, stationary or airborne."""
    # Spread evenly: the share holds in every stretch of the collection.
    before = np.floor(number * config.stationary_share)
    if np.floor((number + 1) * config.stationary_share) > before:
        return STATIONARY
    # The others are counted by themselves, so that the two never ask for the same episode.
    share, count = config.airborne_share / (1.0 - config.stationary_share), number - before
    return AIRBORNE if np.floor((count + 1) * share + 1e-9) > np.floor(count * share + 1e-9) else config.gait


def _commands(
    rng: np.random.Generator, episode: EpisodeConfig, kind: str, ranges: CommandRanges
) -> tuple[Command, ...]:
    """A route that fits the terrain: round the circle, up the slope, to and fro over debris, anywhere elsewhere."""
    if episode.gait in OTHERS:
        return episode.commands
    speed = rng.uniform(0.3, 0.6)
    if episode.terrain == "circular":
        return (Command(vx=speed, yaw_rate=speed / CIRCLE_RADIUS),)
    if episode.terrain == "slope":
        return (Command(vx=speed),)
    if episode.terrain == "debris":
        turns = np.arange(0.0, episode.seconds, DEBRIS_LENGTH / speed)
        return tuple(Command(start=float(start), vx=speed * (-1.0) ** i) for i, start in enumerate(turns))
    if episode.policy is not None:
        return SCHEDULES[kind](rng, episode.seconds, "trot", rig_of(episode.policy).ranges)
    schedule = SCHEDULES[kind](rng, episode.seconds, episode.gait, ranges)
    return fit_commands(schedule, described_robot(episode))
