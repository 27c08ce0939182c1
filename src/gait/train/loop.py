"""The training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io.atomic import commit, sweep_files
from gait.io.locks import folder_lock
from gait.nets.architecture import architecture_of
from gait.nets.base import RecurrentState, VelocityNet
from gait.nets.build import build, network_of, weights_of
from gait.nets.gait import GaitNet
from gait.nets.model import Model, load_model
from gait.robot import Robot
from gait.train.checkpoint import load_checkpoint, save_checkpoint
from gait.train.config import TrainConfig, write_config
from gait.train.data import MASK, DataSet, SequenceSource, generator, most_legs, normaliser
from gait.train.devices import CPU, device_of, tensor_on
from gait.train.episode_pool import EpisodePool
from gait.train.losses import loss_of
from gait.train.recorder import Recorder
from gait.train.validate import NetworkScore, score

CONFIG, CHECKPOINT, MODEL = "config.yaml", "checkpoint.safetensors", "model.safetensors"


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training has come."""

    iteration: int
    """Iterations finished."""
    total: int
    loss: float
    rmse: float
    """Velocity error of the last validation, m/s; nan before the first."""
    within: float
    """Share within one predicted standard deviation in the last validation."""
    samples_per_second: float


class Trainer:
    """A training that can be stopped after any iteration."""

    def __init__(self, config: TrainConfig, source: SequenceSource, device: torch.device = CPU) -> None:
        """Make a network with fresh weights for the data of a source, on a device."""
        # One core: with more, sums are split differently and the last bits would depend on the machine.
        torch.set_num_threads(1)
        self.config, self.source, self.device = config, source, device
        architecture = architecture_of({**config.architecture, "legs": len(source.subject.leg_names)})
        self.net: VelocityNet
        if config.init:
            first = load_model(config.init)
            if first.architecture != architecture:
                raise GaitError(
                    f"{config.init} is not the network that is to be trained: give the same settings to both"
                )
            self.net = network_of(first).train()
        else:
            mean, std = normaliser(source.training, architecture)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(config.seed)
                self.net = build(architecture, mean, std)
        # Drawn or read on the processor: the weights at the start are the same on every device.
        self.net.to(device)
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=config.learning_rate)
        self.history: list[dict[str, Any]] = []
        # Of the code that runs: by the end of a long training the files may have moved on.
        self.commit = commit()

    def iterate(self) -> dict[str, Any]:
        """One iteration, which is a new row of the history."""
        number = len(self.history)
        row = {"iteration": number, **self._learn(number), "learning_rate": learning_rate(self.config, number)}
        self.history.append(row)
        return row

    def _learn(self, number: int) -> dict[str, float]:
        """From a batch of sequences, with an update after every `truncate` steps; returns loss and gradient."""
        config = self.config
        uncertain = number >= config.l1_iterations
        features, velocity, contact = map(self._tensor, self.source.batch(number)[:3])
        keep = self._keep(number)
        state: RecurrentState | None = None
        losses, norms = [], []
        for first in range(0, config.steps, config.truncate):
            end = first + config.truncate
            seen = None if keep is None else keep[:, first:end]
            outputs = self.net.run(features[:, first:end], state, seen, uncertain)
            state = outputs.state.detach()
            counted = slice(max(first, config.burn_in), end)
            if counted.start >= end:
                continue
            loss = loss_of(outputs, velocity[:, counted], contact[:, counted], config.contact_weight)
            norms.append(self._update(loss, number))
            losses.append(float(loss.detach()))
        return {"loss": float(np.mean(losses)), "gradient": float(np.mean(norms))}

    def _update(self, loss: torch.Tensor, number: int) -> float:
        """Take a step down the loss, with the learning rate of the iteration; returns the length of the gradient."""
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.config, number)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.config.clip))
        if not np.isfinite(norm):
            raise GaitError(f"the gradient is not finite in iteration {number}: lower learning_rate and try again")
        self.optimiser.step()
        return norm

    def validate(self) -> NetworkScore:
        """Run through the validation episodes and enter the result in the last row of the history."""
        result = self.score()
        self.history[-1].update(result.as_dict("validation_"))
        return result

    def score(self) -> NetworkScore:
        """How well the network does on the validation episodes."""
        return score(self.net, self.source.validation)

    def model(self) -> Model:
        """The network as it is now, ready to be saved."""
        return Model(
            architecture=self.net.architecture,
            weights=weights_of(self.net),
            **self.source.subject._asdict(),
            training=self.config.as_dict(),
            data=tuple(self.source.data),
            results={name: value for name, value in self.history[-1].items() if name.startswith("validation_")},
            commit=self.commit,
        )

    def _keep(self, number: int) -> torch.Tensor | None:
        if self.config.mask == 0.0 or not isinstance(self.net, GaitNet):
            return None
        a = self.net.architecture
        rng = generator(self.config, MASK, number)
        draw = torch.Generator().manual_seed(int(rng.integers(2**62)))
        shape = (self.config.sequences, self.config.steps, a.history, len(a.tokens))
        keep = torch.rand(shape, generator=draw) >= self.config.mask
        if a.kind == "gait" and self.config.dead_leg > 0.0:
            dead = np.flatnonzero(rng.random(shape[0]) < self.config.dead_leg)
            keep[dead, :, :, 2 + rng.integers(a.legs, size=len(dead))] = False
        return keep.to(self.device)

    def _tensor(self, array: AnyArray) -> torch.Tensor:
        """An array on the device of the training."""
        return tensor_on(self.device, array)


def trainer_of(config: TrainConfig) -> type[Trainer]:
    """How a network is trained."""
    if config.network != "gait-legs":
        return Trainer
    from gait.train.leg_trainer import LegsTrainer

    return LegsTrainer


def learning_rate(config: TrainConfig, number: int) -> float:
    """Learning rate of an iteration: a linear rise, then a linear fall that would reach zero after the last one."""
    if number < config.warmup:
        return config.learning_rate * (number + 1) / config.warmup
    return config.learning_rate * (config.iterations - number) / max(config.iterations - config.warmup, 1)


def open_source(config: TrainConfig, workers: int = 1) -> SequenceSource:
    """The sequences a configuration asks for."""
    if config.fresh:
        from gait.train.rollouts import Rollouts

        legs = Robot.load(config.robot).num_legs
        return Rollouts(config, architecture_of({**config.architecture, "legs": legs}), workers)
    architecture = architecture_of({**config.architecture, "legs": most_legs(config.data)})
    return EpisodePool(config, architecture) if config.memory else DataSet(config, architecture)


def train(
    config: TrainConfig,
    out: str | Path,
    resume: bool = False,
    workers: int = 1,
    checkpoint_seconds: float = 120.0,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    device: str = "cpu",
) -> Model:
    """Train a network and leave its model file, curves and a log for TensorBoard in a folder.

    Args:
        config: what to train.
        out: folder of the run; it must exist.
        resume: go on from the checkpoint in the folder. The weights at the end are those of a run without a pause.
        workers: processes that simulate, if rollouts are fresh.
        checkpoint_seconds: time between two checkpoints.
        on_progress: called after every iteration.
        device: what computes: cpu, cuda, or auto, which is cuda where torch finds it.

    Returns:
        The model, as it was written to `model.safetensors`.
    """
    out, where = Path(out), device_of(device)
    with folder_lock(out, "choose another folder"):
        sweep_files(out)
        with closing(open_source(config, workers)) as source:
            return _train(trainer_of(config)(config, source, where), out, resume, checkpoint_seconds, on_progress)


def _train(
    trainer: Trainer,
    out: Path,
    resume: bool,
    checkpoint_seconds: float,
    on_progress: Callable[[TrainingProgress], None] | None,
) -> Model:
    if resume:
        load_checkpoint(out / CHECKPOINT, trainer)
    else:
        write_config(trainer.config, out / CONFIG)
    with closing(Recorder(out, trainer.history)) as recorder:
        save = partial(save_checkpoint, out / CHECKPOINT, trainer)
        for progress in iterations(trainer, recorder, save, checkpoint_seconds):
            if on_progress is not None:
                on_progress(progress)
        return finish(trainer, out, recorder)


def iterations(
    trainer: Trainer, recorder: Recorder, save: Callable[[], None], seconds: float
) -> Iterator[TrainingProgress]:
    """All iterations that are left, with a checkpoint every so many seconds."""
    config, history = trainer.config, trainer.history
    saved = time.monotonic()
    progress = TrainingProgress(len(history), config.iterations, np.nan, np.nan, np.nan, np.nan)
    if not history:
        # Whatever stops a run, it can be resumed.
        save()
    while len(history) < config.iterations:
        started = time.perf_counter()
        row = trainer.iterate()
        rate = config.sequences * config.steps / (time.perf_counter() - started)
        if len(history) % config.validate_every == 0 or len(history) == config.iterations:
            result = trainer.validate()
            progress = replace(progress, rmse=result.norm, within=result.within[0])
        recorder.add(row)
        progress = replace(progress, iteration=len(history), loss=row["loss"], samples_per_second=rate)
        if time.monotonic() - saved >= seconds:
            save()
            saved = time.monotonic()
        yield progress
    save()


def finish(trainer: Trainer, out: Path, recorder: Recorder) -> Model:
    """Write the model; where it is rounded, measure what was written."""
    model = trainer.model()
    path = out / MODEL
    model.save(path, half=trainer.config.half)
    if trainer.config.half:
        rounded = load_model(path)
        trainer.net = network_of(rounded).to(trainer.device)
        model = replace(rounded, results=trainer.score().as_dict("validation_"))
        model.save(path, half=True)
    recorder.draw()
    return model
