"""Where sequences come from: a data set on disk, or rollouts simulated for each iteration (`gait.train.rollouts`).

What iteration i gets depends on the seed and on i alone, never on the iterations before. A resumed training therefore
needs no memory of its random numbers. Episodes are in single precision, features and ground truth side by side.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from gait.arrays import Array
from gait.errors import GaitError
from gait.io import open_log
from gait.io.storage import Storage, joined, local_copy
from gait.log.log import Log
from gait.nets.architecture import Architecture, LegsArchitecture
from gait.nets.features import PER_LEG, SHARED, features, flipped, physical_features
from gait.parameters import Options
from gait.sim.store import INDEX, SETTINGS, read_index, read_settings, robot_of_episode
from gait.train.config import TrainConfig
from gait.train.faults import MILD, MILD_SHARE, FaultRanges, delayed, with_faults

Item = TypeVar("Item")
Float32 = npt.NDArray[np.float32]
GRAVITY = 9.81
SPLIT, BATCH, NOISE, MASK, VALIDATION, FAULTS, FILTER, ORDER = range(8)
"""What a generator is for."""


class Episode(NamedTuple):
    """One recording, or a batch of sequences with one more axis in front."""

    features: Float32
    """(N, F)."""
    velocity: Float32
    """True velocity of the base in its own frame (N, 3)."""
    contact: Float32
    """1 where a foot is on the ground, 0 elsewhere (N, L)."""
    present: npt.NDArray[np.bool_]
    """Which legs the robot has (N, L): one with fewer legs than the network is padded with legs that are not used."""

    def rows(self, first: int, end: int) -> Episode:
        """A piece of it."""
        return Episode(*(cast("Any", array)[first:end] for array in self))


class Subject(NamedTuple):
    """What all episodes of a training have in common."""

    robot: str
    leg_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    rate: float
    """Samples a second."""

    @staticmethod
    def of(log: Log) -> Subject:
        """The robot and the rate of a log."""
        return Subject(log.robot, log.leg_names, log.joint_names, float(round(log.rate, 3)))


def episode_of(
    log: Log, architecture: Architecture, path: Path | None = None, faults: np.random.Generator | None = None
) -> Episode:
    """The part of a Log that training uses, with faults of its sensors; `gait-legs` and faults need its file.

    For `gait-legs` the velocity is that of the time to which the filter assigns the joint readings: a delay beyond that
    is an error, as in use.
    """
    velocity, legs = log.vel_b, architecture if isinstance(architecture, LegsArchitecture) else None
    if legs or faults is not None:
        assert path is not None
        robot = robot_of_episode(path, log)
        log = log.reorder(robot)
    if faults is not None:
        ranges = MILD if faults.random() < MILD_SHARE else FaultRanges()
        log, robot, _ = with_faults(log, robot, faults, ranges)
        velocity = delayed(velocity, Options().joint_delay, 1.0 / log.rate) if legs else velocity
    values = physical_features(log, legs, robot) if legs else features(log, architecture)
    contact = np.zeros((len(log), len(log.leg_names))) if log.contact is None else log.contact
    present = np.ones(contact.shape, dtype=np.bool_)
    return Episode(values.astype(np.float32), velocity.astype(np.float32), contact.astype(np.float32), present)


def padded(episode: Episode, legs: int) -> Episode:
    """The episode of a robot with fewer legs than its training has: the missing ones are zero and not present."""
    missing = legs - episode.present.shape[1]
    if missing == 0:
        return episode

    def wider(array: Any, columns: int) -> Any:
        return np.pad(array, ((0, 0), (0, columns)))

    return Episode(
        wider(episode.features, PER_LEG * missing),
        episode.velocity,
        wider(episode.contact, missing),
        wider(episode.present, missing),
    )


def read_collection(folder: str | Path) -> tuple[list[str], dict[str, Any]]:
    """The files of a collection, by path or URL, and what they are: its settings, and a digest of its index.

    Raises:
        GaitError: if there is no collection, or it is one of the benchmark's robot.
    """
    rows = read_index(folder)
    if not rows:
        raise GaitError(f"the collection in {folder} is empty: run `gait sim --sensors exact --out {folder}`")
    settings = read_settings(folder)
    if settings is None:
        raise GaitError(f"{folder} has no readable {SETTINGS}: collect again with `gait sim --sensors exact`")
    if str(settings.get("sensors")).startswith("twin"):
        raise GaitError(
            f"{folder} was recorded on the benchmark's robot, which must not enter a training: collect"
            " another with `gait sim --sensors exact`"
        )
    digest = hashlib.sha256(Storage(folder).read(INDEX)).hexdigest()
    return [joined(folder, row["file"]) for row in rows], {**settings, "index_sha256": digest}


def most_legs(folders: Sequence[str]) -> int:
    """Legs of the robot with the most of them, by the first episode of each collection."""
    return max(len(open_log(read_collection(folder)[0][0]).leg_names) for folder in folders)


def read_episodes(
    paths: Sequence[str], architecture: Architecture, faults: Sequence[np.random.Generator | None]
) -> tuple[list[Episode], list[Subject]]:
    """Read recordings of one robot; for `gait-legs` of any robots, each with faults of its own.

    Returns:
        The episodes, all with the legs of the architecture, and whose they are.
    """
    episodes, subjects = list[Episode](), list[Subject]()
    for path, rng in zip(paths, faults, strict=True):
        # The robot of an episode is a file beside it.
        with local_copy(path, (f"{Path(path).stem}.yaml", SETTINGS)) as here:
            log = open_log(here)
            subjects.append(subject := Subject.of(log))
            if not isinstance(architecture, LegsArchitecture) and subject != subjects[0]:
                raise GaitError(f"{path} is of another robot or rate than {paths[0]}: train on one robot at one rate")
            if round(subject.rate) != round(subjects[0].rate):
                raise GaitError(f"{path} has another rate than {paths[0]}: train at one rate")
            legs = len(subject.leg_names)
            if legs > architecture.legs:
                raise GaitError(
                    f"{path} has {legs} legs, the first episodes of its training at most {architecture.legs}: collect"
                    " robots with other numbers of legs to other folders"
                )
            own = replace(architecture, legs=legs) if legs < architecture.legs else architecture
            episodes.append(padded(episode_of(log, own, here, rng), architecture.legs))
    return episodes, subjects


def common_subject(subjects: Sequence[Subject], architecture: Architecture, robots: Sequence[str]) -> Subject:
    """Robot of the recordings, for the model file: the first robot with all legs.

    Args:
        subjects: of the episodes.
        architecture: of the network.
        robots: the robot of each episode's collection. `gait-legs` serves any robot, so that its file names the one
            that others were drawn around.
    """
    first = next(i for i, subject in enumerate(subjects) if len(subject.leg_names) == architecture.legs)
    if not isinstance(architecture, LegsArchitecture):
        return subjects[first]
    return subjects[first]._replace(robot=robots[first] or subjects[first].robot)


def leg_normaliser(episodes: Sequence[Episode], architecture: LegsArchitecture) -> tuple[Array, Array]:
    """Mean and standard deviation of a leg's numbers in a frame, over all legs; what a mirror flips is centred on 0."""
    shared = np.concatenate([episode.features[::10, :SHARED] for episode in episodes])
    own = np.concatenate(
        [episode.features[::10, SHARED:].reshape(-1, PER_LEG)[episode.present[::10].ravel()] for episode in episodes]
    )
    own = own[:, architecture.leg_columns]
    mean, std = np.append(shared.mean(0), own.mean(0)), np.append(shared.std(0), own.std(0))
    return np.where(flipped(len(architecture.leg_columns) // 3), 0.0, mean), np.maximum(std, 1e-3)


def normaliser(episodes: Sequence[Episode], architecture: Architecture) -> tuple[Array, Array]:
    """Mean and standard deviation (F,) of the features over all episodes.

    All legs share the statistics of their joints, so that a leg's numbers mean the same whichever leg it is. The gyro
    is centred on zero and the accelerometer on gravity: what else the data average to is the walk, not the sensor.
    """
    if isinstance(architecture, LegsArchitecture):
        return leg_normaliser(episodes, architecture)
    count = sum(len(episode.features) for episode in episodes)
    total = np.sum([episode.features.sum(0, dtype=np.float64) for episode in episodes], 0)
    square = np.sum([np.square(episode.features, dtype=np.float64).sum(0) for episode in episodes], 0)
    mean, second = total / count, square / count
    for name in architecture.joint_features:
        columns = np.array([architecture.columns(name, leg) for leg in range(architecture.legs)])
        mean[columns], second[columns] = mean[columns].mean(0), second[columns].mean(0)
    centre = mean.copy()
    centre[:6] = (0.0, 0.0, 0.0, 0.0, 0.0, GRAVITY)
    variance = second - 2.0 * centre * mean + centre**2
    # A constant feature holds no information and must not be scaled up.
    return centre, np.sqrt(np.maximum(variance, 1e-6))


def generator(config: TrainConfig, purpose: int, number: int = 0) -> np.random.Generator:
    """Random numbers for one purpose in one iteration."""
    return np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(purpose, number)))


class SequenceSource:
    """Gives the sequences of each iteration, and what else a training takes from its data."""

    config: TrainConfig
    subject: Subject
    """Whose recordings they are."""
    validation: Sequence[Episode]
    """Whole episodes that no batch touches, with a noisy IMU."""
    training: Sequence[Episode]
    """Episodes to take the normaliser from."""
    data: Sequence[dict[str, Any]]
    """What the sequences are, for the model file."""

    def batch(self, iteration: int) -> Episode:
        """The sequences of an iteration, stacked (B, T, ...), with fresh noise on the IMU."""
        batch = self._clean(iteration)
        rng = generator(self.config, NOISE, iteration)
        return batch._replace(features=noisy(self.config, batch.features, rng))

    def close(self) -> None:
        """End the processes."""

    def _clean(self, iteration: int) -> Episode:
        """The sequences of an iteration without noise."""
        raise NotImplementedError


def stacked(episodes: Sequence[Episode]) -> Episode:
    """Sequences of one length side by side (B, T, ...)."""
    return Episode(*(np.stack(arrays) for arrays in zip(*episodes, strict=True)))


def noisy(config: TrainConfig, features: Float32, rng: np.random.Generator) -> Float32:
    """Sequences (B, T, F) with noise and a constant error on the IMU; the joints stay as they are."""
    white = np.repeat([config.gyro_noise, config.accel_noise], 3)
    bias = np.repeat([config.gyro_bias, config.accel_bias], 3)
    errors = rng.standard_normal((*features.shape[:-1], 6), dtype=np.float32) * white
    errors += rng.standard_normal((len(features), 1, 6)) * bias
    result = features.copy()
    result[..., :6] += errors.astype(np.float32)
    return result


def noisy_episodes(config: TrainConfig, episodes: Sequence[Episode]) -> list[Episode]:
    """Validation episodes, each with its own noise that is the same in every validation."""
    return [
        episode._replace(features=noisy(config, episode.features[None], generator(config, VALIDATION, i))[0])
        for i, episode in enumerate(episodes)
    ]


class DataSet(SequenceSource):
    """Sequences cut at random from the episodes of one or more collections, split by episode."""

    def __init__(self, config: TrainConfig, architecture: Architecture) -> None:
        """Read the collections that the configuration names."""
        self.config = config
        paths, self.data = read_collections(config)
        everything = [path for folder in paths for path in folder]
        draws = [generator(config, FAULTS, i) if config.faults else None for i in range(len(everything))]
        read, subjects = read_episodes(everything, architecture, draws)
        robots = [robot_name(one) for one, folder in zip(self.data, paths, strict=True) for _ in folder]
        self.subject = common_subject(subjects, architecture, robots)
        episodes = iter(read)
        self.folders: list[list[Episode]] = []
        """Training episodes by folder."""
        held, per_folder = list[Episode](), math.ceil(config.validation_episodes / len(paths))
        for number, folder in enumerate(paths):
            train, rest = split(config, list(itertools.islice(episodes, len(folder))), number)
            self.folders.append([episode for episode in train if len(episode.features) >= config.steps])
            held += rest[:per_folder]
            if not self.folders[-1]:
                raise GaitError(
                    f"{config.data[number]} has no training episode of {config.steps} steps: collect longer ones"
                )
        self.validation = noisy_episodes(config, held)
        self.training = [episode for folder in self.folders for episode in folder]

    def _clean(self, iteration: int) -> Episode:
        return drawn(self.config, self.folders, iteration)


def robot_name(settings: dict[str, Any]) -> str:
    """The robot of a collection, empty where its settings do not say: the scene of a policy brings its own."""
    return "" if settings.get("policy") else str(settings.get("robot", ""))


def read_collections(config: TrainConfig) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """The files of each folder that a configuration names, and what they are."""
    noise, paths, data = max(config.gyro_noise, config.accel_noise) > 0.0, [], []
    for folder in config.data:
        files, settings = read_collection(folder)
        if settings.get("sensors") != "exact" and noise:
            raise GaitError(
                f"the IMU in {folder} is noisy already, and always in the same way: collect with `--sensors exact`,"
                " or set gyro_noise and accel_noise to 0"
            )
        paths.append(files[: config.episodes or None])
        data.append(settings)
    return paths, data


def drawn(config: TrainConfig, folders: Sequence[Sequence[Episode]], iteration: int) -> Episode:
    """Random pieces of random episodes for an iteration, the folders in turn."""
    rng = generator(config, BATCH, iteration)
    steps, pieces = config.steps, []
    for i in range(config.sequences):
        folder = folders[i % len(folders)]
        episode = folder[int(rng.integers(len(folder)))]
        first = int(rng.integers(len(episode.features) - steps + 1))
        pieces.append(episode.rows(first, first + steps))
    return stacked(pieces)


def split(config: TrainConfig, episodes: Sequence[Item], number: int) -> tuple[list[Item], list[Item]]:
    """Episodes for training and for validation, at least one of each."""
    if len(episodes) < 2:
        raise GaitError("a data set needs two episodes or more, one of them for validation: collect more")
    count = min(max(round(config.validation_share * len(episodes)), 1), len(episodes) - 1)
    order = generator(config, SPLIT, number).permutation(len(episodes))
    held = set(order[:count].tolist())
    return [e for i, e in enumerate(episodes) if i not in held], [episodes[i] for i in sorted(held)]
