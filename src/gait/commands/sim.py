"""`gait sim`: simulate a walking robot and record its sensors."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from gait.cluster.ray_option import CONNECTING, RayAddress, node_note, node_rows, processors
from gait.commands import Common, Outcome, count_bar, quote, starting
from gait.errors import GaitError
from gait.rows import Row
from gait.sim.plan import CollectConfig

if TYPE_CHECKING:
    from gait.sim.collect import CollectionProgress


@dataclass(frozen=True)
class SimOptions(Common, CollectConfig):
    """Simulate a walking robot: one Log file an episode and an index, or a picture; see docs/simulator.md.

    A folder that holds part of the collection is completed. The files do not depend on --workers.
    """

    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """Folder of the collection; runs/sim/GAIT-TERRAIN-SENSORS-SEED by default."""
    workers: Optional[int] = None  # noqa: UP045
    """Processes that share the work, 1 by default; with --ray, those of a cluster that is started here, by default one
    a core."""
    ray: RayAddress = None
    """Simulate on a Ray cluster: the one at this address, or the one of this machine, which is started if there is
    none. --out may then be object storage, such as s3://bucket/folder; see docs/cluster.md."""
    render: Optional[Path] = None  # noqa: UP045
    """Draw the first episode to this .gif, or as a strip of frames to this .png; records nothing unless --out is
    given too."""
    estimate: str = ""
    """With --render: draw the true velocity and the one that this method (gait, iekf, ...) or model file estimates."""
    speed: float = 0.5
    """Speed of a .gif: half by default, since a trot is quick; 1 is real time."""

    def __post_init__(self) -> None:
        """Check the settings, which loads the simulator."""
        with starting(self.interactive):
            super().__post_init__()
            from gait.sim.collect import warm_up

            warm_up()
        if self.estimate and self.render is None:
            raise GaitError("--estimate is for pictures: say where to draw with --render walk.gif")
        if not 0.05 <= self.speed <= 4.0:
            raise GaitError(f"speed must lie between 0.05 and 4, got {self.speed:g}")


def run(options: SimOptions) -> Outcome:
    """Draw, collect, or both."""
    from gait.io.storage import is_remote, joined, location

    if options.ray is None and options.out is not None and is_remote(options.out):
        raise GaitError(f"{location(options.out)} is object storage, which takes a cluster: add --ray")
    if options.ray is not None:
        from gait.cluster.tasks import load_ray

        load_ray()
    config = CollectConfig(**{field.name: getattr(options, field.name) for field in fields(CollectConfig)})
    rows: list[Row] = []
    if options.render is not None:
        rows += _draw(config, options, options.render)
        if options.out is None:
            again = _policy_words(config) if config.policy else f"--gait {config.gait}"
            words = f"{again} --terrain {config.terrain} --episodes 10 --out runs/sim/{_name(config)}"
            return Outcome(rows, _title(config), wrote=options.render, next=f"gait sim {words}", notes=_notes(config))
    out = options.out or Path("runs/sim") / f"{_name(config)}-{config.terrain}-{config.sensors}-{config.seed}"
    rows += _collect(config, out, options)
    first = quote(joined(out, "episode_00000.npz"))
    place = location(out)
    return Outcome(rows, title=_title(config), wrote=place, next=f"gait info {first}", notes=_notes(config))


def _collect(config: CollectConfig, out: Path, options: SimOptions) -> list[Row]:
    from gait.io.storage import location
    from gait.sim.collect import collect

    last: CollectionProgress | None = None

    def remember(now: CollectionProgress) -> None:
        nonlocal last
        last = now
        note = f"{now.realtime_factor:.1f} x real time, {now.falls} falls" if now.simulated else ""
        if len(now.nodes) > 1:
            note += f", {node_note(_speeds(now))}"
        update(now.finished, now.total, note)

    if not options.interactive and not options.json:
        episodes = "1 episode" if config.episodes == 1 else f"{config.episodes} episodes"
        print(f"simulating {episodes} of {config.seconds:g} s: {location(out)}", file=sys.stderr)
    try:
        with count_bar(options.interactive, "episodes", lines=not options.json) as update:
            if options.ray is None:
                end = collect(config, out, 1 if options.workers is None else options.workers, remember)
            else:
                from gait.cluster.collection import collect_on_cluster

                count = processors(options.workers)
                update(0, config.episodes, CONNECTING)
                end = collect_on_cluster(config, location(out), options.ray, count, remember)
    except KeyboardInterrupt:
        # The process is about to end: an impatient second Ctrl-C has nothing left to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if last is not None:
            safe = f"{last.finished} of {last.total} episodes are safe in {location(out)}"
            print(f"gait: stopped: {safe}, and the same command goes on from there", file=sys.stderr)
        raise
    rows = [Row("episodes", end.finished, "-"), Row("resumed", end.resumed, "-")]
    rows += [Row("recorded", end.recorded, "s"), Row("falls", end.falls, "-")]
    rows += [Row("realtime_factor", end.realtime_factor, "-")] if end.simulated else []
    return rows + node_rows(_speeds(end), "realtime_factor", "-")


def _speeds(now: CollectionProgress) -> dict[str, float]:
    """How many seconds each node simulates in one second."""
    return {name: seconds / now.elapsed for name, seconds in now.nodes.items()}


def _draw(config: CollectConfig, options: SimOptions, path: Path) -> list[Row]:
    from gait.sim.collect import episode_feedback
    from gait.sim.episode import Simulation
    from gait.sim.episode_sampling import draw_episode
    from gait.sim.render import RenderConfig, Velocities, check_path, frames, save

    check_path(path)
    episode, seed, noise = draw_episode(config, 0)
    look, images, velocities = RenderConfig(speed=options.speed), [], None
    if options.estimate:
        # From the side and from higher up, so that no arrow points at the camera.
        look = replace(look, azimuth=100.0, elevation=-25.0)
        with starting(options.interactive):
            from gait.estimator import Estimator
            from gait.sim.episode import described_robot, run_episode
            from gait.sim.mismatch import sensors_of
            from gait.sim.sensors import sense

            # The episode is simulated for the estimates; drawing repeats the same steps.
            robot = described_robot(episode)
            estimator = Estimator.load(robot, options.estimate)
            raw = run_episode(episode, seed, episode_feedback(config, episode, seed))
            velocities = Velocities.of(sense(raw, robot, sensors_of(config.sensors, seed=seed), noise), estimator)
    total = round(config.seconds * look.fps)
    with count_bar(options.interactive, "frames") as update:
        for image in frames(Simulation(episode, seed, episode_feedback(config, episode, seed)), look, velocities):
            images.append(image)
            update(len(images), total, "")
    count = save(images, path, look)
    rows = [Row("frames", count, "-"), Row("drawn", len(images) / look.fps, "s")]
    return rows if velocities is None else [*rows, Row("velocity_rmse", velocities.rmse, "m/s")]


def _name(config: CollectConfig) -> str:
    return Path(config.policy).stem if config.policy else config.gait


def _policy_words(config: CollectConfig) -> str:
    given = {name: getattr(config, name) for name in ("policy", "model", "observation")}
    return " ".join(f"--{name} {quote(value)}" for name, value in given.items() if value)


def _notes(config: CollectConfig) -> tuple[str, ...]:
    """What the scene of a policy lacks."""
    if not config.policy:
        return ()
    from gait.sim.policy.rig import rig_of

    return rig_of(config.files).notices


def _title(config: CollectConfig) -> str:
    if config.policy:
        return f"{_name(config)} on {config.terrain}, {config.sensors} sensors"
    robots = f"robots like {config.robot}" if config.random_robots else config.robot
    return f"{robots}: {config.gait} on {config.terrain}, {config.sensors} sensors"
