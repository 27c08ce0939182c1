"""Settings of an episode, with its command schedule and pushes on the base, and how they are drawn at random."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gait.errors import GaitError
from gait.robot import Robot
from gait.sim.gaits import OTHERS, RISING, find_gait
from gait.sim.proportions import Proportions
from gait.sim.variety import Variant
from gait.sim.world import PLATE_FRICTION, find_terrain

SCENE = "scene"
"""Stands in a terrain's place for the ground that the scene of a policy brings."""
PUSHES = 6.0, (1.0, 5.0)
"""Seconds from push to push on average, and their impulses in N s, for a Go1."""
POLICY = "policy"
"""Stands in a gait's place for walks of a learned controller."""


@dataclass(frozen=True)
class PolicyFiles:
    """A learned controller; see `gait.sim.policy`."""

    policy: str
    """Path of the ONNX file."""
    model: str = ""
    """Path of the MJCF scene, or the name of one that the package has an observation file for."""
    observation: str = ""
    """Path of the YAML file that describes the observation, or the name of one of the package's."""
    rigid: bool = False
    """Nearly rigid ground contacts in place of the scene's own."""


@dataclass(frozen=True)
class Command:
    """One entry of a command schedule: in force from `start` until the next entry begins."""

    start: float = 0.0
    """Seconds from the start of the recording."""
    vx: float = 0.0
    """Forward velocity in m/s, in the heading frame."""
    vy: float = 0.0
    """Velocity to the left in m/s, in the heading frame."""
    yaw_rate: float = 0.0
    """Turning rate in rad/s, positive to the left."""
    height: float = 0.0
    """Height of the base above its usual walking height, in metres."""
    step_height: float = 0.0
    """How high the feet are lifted in metres; 0 takes the gait's own."""
    step_frequency: float = 0.0
    """Cycles per second; 0 takes the gait's own."""
    shift: float = 0.0
    """How far ahead of their usual places the feet land, in metres."""
    spread: float = 0.0
    """How far outward of their usual places the feet land, in metres."""
    carried: float = 0.0
    """Share of the body's velocity that a swinging foot still has where it lands and lifts off: 0 is at rest above the
    ground, 1 is at rest below the body."""
    abrupt: float = 0.0
    """How steeply feet rise and land: 0 is without vertical speed, 1 with four step heights in a swing."""
    gait: str = ""
    """Gait to change to; empty keeps the present one."""


@dataclass(frozen=True)
class Push:
    """A force on the base for a short time."""

    start: float
    """Seconds from the start of the recording."""
    duration: float
    """Seconds."""
    force_w: tuple[float, float, float]
    """Newtons, in the world frame."""


@dataclass(frozen=True)
class PostureRanges:
    """Postures of other controllers than ours, drawn once an episode, uniformly; metres, of a Go1."""

    height: tuple[float, float] = (-0.08, 0.095)
    """The usual height is 0.63 of the length of a leg; a Go2 under the policy of docs/realism.md walks at 0.86."""
    shift: tuple[float, float] = (-0.04, 0.03)
    spread: tuple[float, float] = (-0.06, 0.05)
    carried: tuple[float, float] = (0.0, 1.1)
    """Controllers plan swings in the world or in the body's frame; who sees only feet that come to rest before they
    land weights feet that have not landed too much."""
    abrupt: tuple[float, float] = (0.0, 0.5)


@dataclass(frozen=True)
class CommandRanges:
    """What random command schedules are drawn from, uniformly."""

    vx: tuple[float, float] = (-0.6, 1.0)
    vy: tuple[float, float] = (-0.4, 0.4)
    yaw_rate: tuple[float, float] = (-0.8, 0.8)
    height: tuple[float, float] = (-0.03, 0.02)
    step_height: tuple[float, float] = (0.05, 0.10)
    frequency_scale: tuple[float, float] = (0.9, 1.15)
    """Step frequency relative to the gait's own."""
    hold: tuple[float, float] = (1.5, 4.0)
    """Seconds until the next command."""
    still_share: float = 0.1
    """Share of commands that ask for no velocity at all: stepping on the spot."""
    posture: PostureRanges | None = None
    """Around which heights are drawn; the usual one if there is none."""


VARIED = CommandRanges(
    height=(-0.015, 0.015), step_height=(0.015, 0.13), frequency_scale=(0.7, 1.4), hold=(0.7, 4.0),
    yaw_rate=(-1.2, 1.2), posture=PostureRanges(),
)  # fmt: skip
"""Commands of varied walks: steps of other controllers than ours."""
SINKS = 0.3, (0.001, 0.015)
"""Of varied walks: share on nearly rigid ground, and how far feet give way elsewhere, m, evenly in the logarithm.
The authors of the A1 log in docs/realism.md saw its calf change its effective length by up to 4 cm within a stance."""


def check_schedule(commands: Sequence[Command]) -> None:
    """Raise a GaitError unless the schedule starts at or before 0 s and its start times increase."""
    starts = [command.start for command in commands]
    if not starts or starts[0] > 0.0:
        raise GaitError("the command schedule must begin with an entry whose start is 0")
    if any(later <= earlier for earlier, later in itertools.pairwise(starts)):
        raise GaitError("the command schedule must be sorted by strictly increasing start times")


def random_schedule(
    rng: np.random.Generator, seconds: float, gait: str, ranges: CommandRanges | None = None
) -> tuple[Command, ...]:
    """Random commands for `seconds`.

    Args:
        rng: source of randomness.
        seconds: length of the schedule.
        gait: name of the gait, whose own step frequency `frequency_scale` multiplies.
        ranges: what to draw from.
    """
    ranges = ranges or CommandRanges()
    posture = {name: rng.uniform(*span) for name, span in vars(ranges.posture).items()} if ranges.posture else {}
    middle, places = posture.pop("height", 0.0), posture
    commands, start = [], 0.0
    while start < seconds:
        moving = float(rng.random() >= ranges.still_share)
        velocity = {name: moving * rng.uniform(*getattr(ranges, name)) for name in ("vx", "vy", "yaw_rate")}
        heights = {name: rng.uniform(*getattr(ranges, name)) for name in ("height", "step_height")}
        frequency = 1.0 / find_gait(gait).period * rng.uniform(*ranges.frequency_scale)
        heights["height"] += middle
        commands.append(Command(start=start, **velocity, **heights, **places, step_frequency=frequency))
        start += rng.uniform(*ranges.hold)
    return tuple(commands)


def _constant(rng: np.random.Generator, seconds: float, gait: str, ranges: CommandRanges) -> tuple[Command, ...]:
    """One command for all of it."""
    return random_schedule(rng, seconds, gait, replace(ranges, still_share=0.0))[:1]


def _turning(rng: np.random.Generator, seconds: float, gait: str, ranges: CommandRanges) -> tuple[Command, ...]:
    """Forward, in bends to the left and to the right in turn, at half the largest yaw rate and more."""
    drawn = random_schedule(rng, seconds, gait, replace(ranges, still_share=0.0, vx=(0.0, ranges.vx[1]), vy=(0.0, 0.0)))
    most = max(map(abs, ranges.yaw_rate))
    rates = most * rng.uniform(0.5, 1.0, len(drawn)) * (-1.0) ** np.arange(len(drawn))
    return tuple(replace(command, yaw_rate=float(rate)) for command, rate in zip(drawn, rates, strict=True))


def _stop_and_go(rng: np.random.Generator, seconds: float, gait: str, ranges: CommandRanges) -> tuple[Command, ...]:
    """A command, then none, in turn."""
    drawn = random_schedule(rng, seconds, gait, replace(ranges, still_share=0.0))
    return tuple(
        replace(command, vx=0.0, vy=0.0, yaw_rate=0.0) if i % 2 else command for i, command in enumerate(drawn)
    )


SCHEDULES: dict[str, Callable[[np.random.Generator, float, str, CommandRanges], tuple[Command, ...]]] = {
    "random": random_schedule,
    "constant": _constant,
    "turning": _turning,
    "stop-and-go": _stop_and_go,
}
"""Ways to steer a robot, by name."""


def change_gait(commands: Sequence[Command], at: float, gait: str, quicker: float) -> tuple[Command, ...]:
    """The same schedule with another gait from a moment on.

    Args:
        commands: the schedule.
        at: seconds from the start of the recording.
        gait: name of the new gait.
        quicker: step frequency of the new gait relative to the old one.
    """
    before = [command for command in commands if command.start < at]
    later = [replace(before[-1], start=at, gait=gait), *(command for command in commands if command.start > at)]
    return (*before, *(replace(command, step_frequency=quicker * command.step_frequency) for command in later))


def random_pushes(
    rng: np.random.Generator, seconds: float, every: float, impulse: tuple[float, float]
) -> tuple[Push, ...]:
    """Horizontal pushes of random direction, on average one in `every` seconds.

    Args:
        rng: source of randomness.
        seconds: length of the episode.
        every: mean time between pushes in seconds; 0 means none.
        impulse: range of the impulse in N s; 13 N s change a Go1's velocity by about 1 m/s.
    """
    pushes: list[Push] = []
    start = rng.exponential(every) if every > 0.0 else seconds
    while start < seconds:
        angle, size, duration = rng.uniform(-np.pi, np.pi), rng.uniform(*impulse), rng.uniform(0.05, 0.2)
        force = size / duration
        pushes.append(Push(start, duration, (force * float(np.cos(angle)), force * float(np.sin(angle)), 0.0)))
        start += duration + rng.exponential(every)
    return tuple(pushes)


@dataclass(frozen=True)
class EpisodeConfig:
    """One episode. All randomness of its settings is already drawn: config and seed make the episode."""

    robot: str = "go1"
    """Name of a robot, or the path of its YAML file."""
    policy: PolicyFiles | None = None
    """The learned controller that walks; None is the model-predictive one. Gains and rate are then the policy's."""
    variant: Variant | None = None
    """How the robot differs from that one in sizes and masses; None is the robot itself."""
    gait: str = "trot"
    """Gait at the start; commands may change it. `stationary` follows random joint targets instead of walking,
    `airborne` is lifted, carried and dropped, and `rising` lies down and gets up."""
    terrain: str = "flat"
    """Kind of ground; see `gait.sim.world.TERRAINS`."""
    seconds: float = 10.0
    """Length of the recording."""
    settle: float = 1.5
    """Seconds simulated before the recording starts: the robot stands up to speed."""
    friction: float | None = None
    """Sliding friction of the ground; None takes the terrain's own."""
    slippery_friction: float = PLATE_FRICTION
    """Sliding friction of the slippery half of the terrain `circular`."""
    restitution: float = 0.1
    """Share of the speed a foot keeps when it bounces off the ground, 0.1 at least."""
    contact_stiffness: float = 1.0
    """Stiffness of the ground contact relative to the usual."""
    sink: float = 0.0
    """How far foot and ground give way in the stance of a trot, m; 0 is the nearly rigid contact above."""
    payload_mass: float = 0.0
    """Kilograms added to the base."""
    payload_position: tuple[float, float, float] = (0.0, 0.0, 0.08)
    """Where the payload sits, in the base frame."""
    com_shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Shift of the base's own centre of mass."""
    motor_strength: float = 1.0
    """Torque that acts relative to the torque that is asked for."""
    motor_time_constant: float = 0.0
    """First-order lag of the joint torque in seconds; 0 is none."""
    joint_friction: float = 1.0
    """Dry friction of the joints relative to the published one."""
    joint_damping: float = 1.0
    """Viscous friction of the joints relative to the published one."""
    link_scale: tuple[tuple[float, float, float], ...] | None = None
    """True lengths of the hip, thigh and calf links of each leg relative to the controller's model."""
    foot_scale: float = 1.0
    """True radius of the feet relative to the described one."""
    kp: float = 40.0
    """Position gain of the joint PD, in N m/rad."""
    kd: float = 1.0
    """Velocity gain of the joint PD, in N m s/rad."""
    control_rate: int = 250
    """Joint targets a second, 50 to 500; one target is held until the next."""
    commands: tuple[Command, ...] = (Command(vx=0.5),)
    """Velocity commands, sorted by start time, the first at 0 s."""
    pushes: tuple[Push, ...] = ()
    """Forces on the base."""
    feedback: str = "truth"
    """Where the controller's velocity and orientation come from: `truth`, or the name of a method or
    model."""
    stop_at_fall: bool = True
    """End the episode at the moment of a fall."""


def friction_range(terrain: str) -> tuple[float, float]:
    """What randomised episodes draw friction from; the ground of a scene is taken for a plane."""
    return find_terrain("flat" if terrain == SCENE else terrain).friction_range


def own_friction(config: EpisodeConfig) -> float:
    """The friction of an episode, its own or the terrain's."""
    return find_terrain(config.terrain).friction if config.friction is None else config.friction


def randomise(
    rng: np.random.Generator, base: EpisodeConfig, commands: CommandRanges | None = None, pushed: bool = True
) -> EpisodeConfig:
    """A copy of `base` with its physics, gains, commands and pushes drawn at random.

    Robot, gait, terrain, length, feedback and the benchmark's own differences (links, motor lag) stay as they are. A
    friction that `base` gives stays too; otherwise it comes from the terrain's range.

    Args:
        rng: source of randomness.
        base: what stays.
        commands: what commands are drawn from.
        pushed: whether there are pushes, of 1 to 5 N s every 6 s.
    """
    friction = rng.uniform(*friction_range(base.terrain))
    still = base.gait in OTHERS
    # Nothing steps out to catch a robot that only follows joint targets; the hand pushes by itself.
    pushed &= not still or base.gait == RISING
    # Evenly in the logarithm.
    kp = float(np.exp(rng.uniform(*np.log((20.0, 100.0)))))
    along = rng.uniform(-0.06, 0.06)
    return replace(
        base,
        friction=friction if base.friction is None else base.friction,
        restitution=rng.uniform(0.1, 0.3),
        contact_stiffness=rng.uniform(0.7, 1.4),
        payload_mass=rng.uniform(0.0, 1.5),
        payload_position=(along, rng.uniform(-0.06, 0.06) / 3.0, base.payload_position[2]),
        com_shift=(rng.uniform(-0.015, 0.015), rng.uniform(-0.015, 0.015) / 2.0, 0.0),
        motor_strength=rng.uniform(0.9, 1.1),
        joint_friction=rng.uniform(0.5, 1.5),
        joint_damping=rng.uniform(0.5, 2.0),
        kp=kp,
        # kd / sqrt(kp): 0.11 is 20 and 0.5, as policies use on a Go1.
        kd=float(np.sqrt(kp)) * rng.uniform(0.10, 0.20),
        control_rate=int(rng.choice((50, 100, 200, 250, 500))),
        commands=base.commands if still or base.policy else random_schedule(rng, base.seconds, base.gait, commands),
        pushes=random_pushes(rng, base.seconds, *PUSHES) if pushed else (),
    )


def vary_contact(rng: np.random.Generator, config: EpisodeConfig) -> EpisodeConfig:
    """The episode with feet and ground that give way as soft rubber, mats and turf do."""
    rigid, sinks = SINKS
    sink = 0.0 if rng.random() < rigid else float(np.exp(rng.uniform(*np.log(sinks))))
    return replace(config, sink=sink, restitution=rng.uniform(0.1, 0.5))


def fit_commands(commands: Sequence[Command], robot: Robot) -> tuple[Command, ...]:
    """Commands for a Go1 as a robot of another size can follow them."""
    speeds = {"vx": "time", "vy": "time", "yaw_rate": "/time", "step_frequency": "/time"}
    lengths = dict.fromkeys(("height", "step_height", "shift", "spread"), "length")
    rules, size = {**speeds, **lengths}, Proportions.of(robot)
    return tuple(size.fit(command, **rules) for command in commands)


def fit_episode(config: EpisodeConfig, robot: Robot) -> EpisodeConfig:
    """An episode of a Go1 with gains, loads and pushes that fit a robot; commands stay as they are."""
    size = Proportions.of(robot)
    config = replace(config, pushes=tuple(size.fit(push, force_w="impulse") for push in config.pushes))
    places = {"payload_position": "length", "com_shift": "length"}
    return size.fit(config, **places, payload_mass="mass", kp="stiffness", kd="damping")
