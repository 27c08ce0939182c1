"""Collecting episodes: many Logs from one seed, on any number of processes, to a folder that can be picked up again."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gait._version import __version__
from gait.errors import GaitError, os_errors
from gait.io.locks import folder_lock
from gait.log.log import Log
from gait.robot import Robot
from gait.sim.episode import TRUTH, Feedback, RawEpisode, described_robot, episode_robot, run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.gaits import TRANSITIONS, ZMP, leg_corners
from gait.sim.mismatch import sensors_for, sensors_of
from gait.sim.plan import CollectConfig
from gait.sim.policy.rig import rig_of
from gait.sim.sensors import SensedFeedback, SensorStream, sense
from gait.sim.settings import SCENE, EpisodeConfig, own_friction
from gait.sim.store import ROBOT_DIGEST, Store, sha256, write_robot
from gait.sim.variety import description, description_text, varied
from gait.sim.workers import hold_ctrl_c, worker_pool
from gait.sim.zmp.biped_variety import check_biped

MAX_ATTEMPTS = 20
"""Attempts at an episode, of which each may fall, before its settings are refused."""


@dataclass(frozen=True)
class CollectionProgress:
    """How far a collection has come."""

    finished: int
    """Episodes in the folder."""
    total: int
    resumed: int = 0
    """Of the finished ones, those that were there before."""
    falls: int = 0
    """Falls met so far, in all finished episodes."""
    recorded: float = 0.0
    """Seconds in all finished episodes."""
    simulated: float = 0.0
    """Seconds simulated in this call, with the attempts that fell."""
    elapsed: float = 0.0
    """Seconds that took."""
    nodes: Mapping[str, float] = field(default_factory=dict)
    """On a cluster: seconds simulated in this call by node."""

    @property
    def realtime_factor(self) -> float:
        """Seconds simulated in one second, over all processes."""
        return self.simulated / self.elapsed if self.elapsed > 0.0 else 0.0


OnProgress = Callable[[CollectionProgress], None]
Job = tuple[CollectConfig, int, Path]
"""What `record_episode` takes."""


def episode_feedback(config: CollectConfig, episode: EpisodeConfig, seed: int) -> Feedback | None:
    """The estimator in the loop of one episode; None feeds ground truth to the controller."""
    if config.feedback == TRUTH:
        return None
    # Imported here: without an estimator in the loop its modules are not loaded.
    from gait.estimator import Estimator

    estimator = Estimator.load(described_robot(episode), config.feedback)
    robot = episode_robot(episode)
    return SensedFeedback(estimator, robot, sensors_for(config.sensors, robot, seed), np.random.default_rng(seed))


def warm_up() -> None:
    """Compile everything the simulator needs, or read it from the cache, by simulating a few milliseconds.

    A process that starts workers calls it first: they then read the cache instead of compiling all at once.
    """
    for gait in ("trot", "airborne"):
        config = EpisodeConfig(gait=gait, seconds=0.02, settle=0.6)
        raw, robot, rng = run_episode(config, 3), episode_robot(config), np.random.default_rng(0)
    sense(raw, robot, sensors_of("exact"), rng)
    stream = SensorStream(robot, sensors_of("exact"), rng)
    stream.step(*(x[0] for x in (raw.quat_wb_wxyz, raw.vel_w, raw.omega_b, raw.q, raw.dq, raw.q_des, raw.tau)))


class Recorded(NamedTuple):
    """One episode of a collection."""

    raw: RawEpisode
    log: Log
    attempt: int
    """How many attempts before it fell and were replaced."""
    simulated: float
    """Seconds simulated, with the attempts that fell."""
    where: str
    """Which episode of which seed it is."""


def simulate_episode(config: CollectConfig, number: int) -> Recorded:
    """Simulate one episode of a collection, replacing falls unless they are to be kept."""
    simulated = 0.0
    for attempt in range(MAX_ATTEMPTS):
        episode, seed, noise = draw_episode(config, number, attempt)
        raw = run_episode(episode, seed, episode_feedback(config, episode, seed))
        simulated += episode.settle + float(raw.t[-1])
        if raw.fell_at is None or config.keep_falls:
            where = f"seed {config.seed}, episode {number}, attempt {attempt}"
            walked = config.gait if config.gait in TRANSITIONS else episode.gait
            walked = f"{walked} {Path(config.policy).name}" if config.policy else walked
            robot = episode_robot(episode)
            source = f"gait sim: {walked} on {episode.terrain}, {config.sensors} sensors, {where}"
            log = sense(raw, robot, sensors_for(config.sensors, robot, seed), noise, source)
            return Recorded(raw, log, attempt, simulated, where)
    raise GaitError(
        f"episode {number} fell in {MAX_ATTEMPTS} attempts ({config.gait} on {config.terrain}):"
        " choose another gait or terrain, or keep falls"
    )


def record_episode(config: CollectConfig, number: int, path: Path) -> tuple[dict[str, Any], float]:
    """Simulate one episode and write its Log.

    Returns:
        The episode's line in the index, and the seconds simulated for it.
    """
    done, own = simulate_episode(config, number), dict[str, Any]()
    raw, episode = done.raw, done.raw.config
    if episode.variant is not None and (config.policy or episode.gait == ZMP):
        # Its description is in the Log.
        own = {"robot": episode.variant.name}
    elif episode.variant is not None:
        # Before the Log, which is of no use without its robot.
        tree = varied(description(config.robot), episode.variant)
        comment = f"The robot of {path.name}, drawn at random: {done.where}, from {Path(config.robot).name}."
        own = {"robot": episode.variant.name, **write_robot(path, description_text(tree, comment))}
    done.log.save(path)
    steps = np.linalg.norm(np.diff(raw.pos_w[:, :2], axis=0), axis=1)
    gains = () if config.policy or episode.gait == ZMP else ("kp", "kd")  # these have their own
    row = {
        "episode": number,
        "file": path.name,
        "gait": episode.gait,
        "terrain": episode.terrain,
        "seconds": round(float(raw.t[-1]), 3),
        "falls": done.attempt + (raw.fell_at is not None),
        "fell_at": raw.fell_at,
        "friction": None if episode.terrain == SCENE and episode.friction is None else own_friction(episode),
        **{name: getattr(episode, name) for name in ("payload_mass", "control_rate", *gains)},
        "path_length": round(float(steps.sum()), 3),
        "sha256": sha256(path.read_bytes()),
        **own,
    }
    return row, done.simulated


def collect(
    config: CollectConfig, out: str | Path, workers: int = 1, on_progress: OnProgress | None = None
) -> CollectionProgress:
    """Record the episodes of a collection that its folder does not hold yet.

    The files are the same for any number of workers. An interrupt (KeyboardInterrupt) stops the work at once;
    finished episodes are safe, and the same call goes on from there. So it does after a crash.

    Args:
        config: what to record.
        out: folder of the collection.
        workers: processes to share the work; 1 works in this one.
        on_progress: called at the start and after every episode.

    Returns:
        The state at the end.
    """
    if workers < 1:
        raise GaitError(f"workers must be 1 or more, got {workers}")
    settings = collection_settings(config)
    with os_errors(f"cannot use {out} for a collection"):
        Path(out).mkdir(parents=True, exist_ok=True)
    with folder_lock(Path(out)):
        return _collect(config, Path(out), settings, workers, on_progress)


def _collect(
    config: CollectConfig, out: Path, settings: dict[str, Any], workers: int, on_progress: OnProgress | None
) -> CollectionProgress:
    store = Store(out, settings)
    resumed = sum(number < config.episodes for number in store.rows)
    started, simulated = time.perf_counter(), 0.0

    def report() -> CollectionProgress:
        falls = sum(row["falls"] for row in store.rows.values())
        recorded = sum(row["seconds"] for row in store.rows.values())
        elapsed = time.perf_counter() - started
        progress = CollectionProgress(len(store.rows), config.episodes, resumed, falls, recorded, simulated, elapsed)
        if on_progress is not None:
            on_progress(progress)
        return progress

    def take(row: dict[str, Any], seconds: float) -> None:
        nonlocal simulated
        store.add(row)
        simulated += seconds
        report()

    report()
    missing = [number for number in range(config.episodes) if number not in store.rows]
    try:
        with os_errors("cannot write"):
            _work([(config, number, store.path(number)) for number in missing], workers, take)
    except KeyboardInterrupt:
        store.sweep()
        raise
    except (GaitError, BrokenProcessPool) as error:
        killed = "a worker process was killed, perhaps for want of memory: use fewer --workers"
        why = killed if isinstance(error, BrokenProcessPool) else error
        raise GaitError(
            f"{why}; {len(store.rows)} of {config.episodes} episodes are safe in {out},"
            " and the same command goes on from there"
        ) from None
    return report()


def collection_settings(config: CollectConfig) -> dict[str, Any]:
    """What the folder of a collection says about it, with what tells robots and policies of one name apart."""
    settings = {"version": __version__, **config.as_dict()}
    if config.policy:
        return settings | rig_of(config.files).digests()
    # A robot that cannot walk must be known before anything is written.
    (check_biped if config.gait == ZMP else leg_corners)(Robot.load(config.robot))
    # Without comments and layout; the order of the legs counts, so keys stay as they are.
    return settings | {ROBOT_DIGEST: sha256(json.dumps(description(config.robot), default=str).encode())}


def _work(jobs: Sequence[Job], workers: int, take: Callable[[dict[str, Any], float], None]) -> None:
    """Do the jobs and hand each result over as it comes in, in this process or in several."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            take(*record_episode(*job))
        return
    warm_up()
    with worker_pool(min(workers, len(jobs))) as pool:
        with hold_ctrl_c():
            futures = [pool.submit(record_episode, *job) for job in jobs]
        finished = as_completed(futures)
        try:
            for future in finished:
                take(*future.result())
        except Exception:
            # Whatever it was, episodes in flight may still come home.
            for future in futures:
                future.cancel()
            for future in finished:
                with contextlib.suppress(Exception):
                    take(*future.result())
            raise
