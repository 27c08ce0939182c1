"""`gait train --ray`: one model on several workers, with Ray Train and torch's DistributedDataParallel.

Checkpoints go to the folder of the run, which all nodes see. When a worker is lost, Ray Train starts all of them again,
and they go on from the last checkpoint; since an iteration depends on the seed and its number alone, the loss curve is
that of a run without the loss. The folder is that of a local training: either can go on with the other's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gait.cluster.luggage import Parcel
from gait.cluster.tasks import RETRIES, beside, connected
from gait.errors import GaitError
from gait.io.atomic import sweep_files
from gait.io.locks import folder_lock
from gait.io.storage import Storage, is_remote, location
from gait.nets.model import Model, load_model
from gait.train.checkpoint import load_checkpoint, save_checkpoint
from gait.train.config import TrainConfig, write_config
from gait.train.devices import CHOICES, CPU
from gait.train.loop import CHECKPOINT, CONFIG, MODEL, TrainingProgress, finish, iterations, open_source, trainer_of
from gait.train.recorder import Recorder

OnProgress = Callable[[TrainingProgress], None]


@dataclass(frozen=True)
class TrainJob:
    """What a worker gets."""

    config: TrainConfig
    parcel: Parcel
    init: str
    """The model to go on from, in the parcel; empty if there is none or all nodes know it by name."""
    place: str
    """Folder of the run, or its URL."""
    seconds: float
    """Between two checkpoints."""
    home: str
    """Folder in which the command was given: paths of data sets are relative to it."""
    gpu: bool
    """Whether each worker has a GPU, on which it computes."""


class Board:
    """An actor that keeps the reports of workers for the command."""

    def __init__(self) -> None:
        self.latest: dict[str, Any] | None = None
        self.failure = ""

    def put(self, progress: dict[str, Any]) -> None:
        """Remember the progress."""
        self.latest = progress

    def fail(self, why: str) -> None:
        """Remember that the input is at fault."""
        self.failure = self.failure or why

    def get(self) -> tuple[dict[str, Any] | None, str]:
        """The latest progress, and the failure."""
        return self.latest, self.failure


def train_worker(words: dict[str, Any]) -> None:
    """What each worker does; bad input is reported to the command at once.

    Ray Train would restart the workers several times before it reports it.
    """
    import ray

    try:
        _train(words)
    except GaitError as error:
        ray.get(words["board"].fail.remote(str(error)))
        raise


def _train(words: dict[str, Any]) -> None:
    """The same iterations on each worker, each its part of them; the first one writes files."""
    import ray.train
    from ray.train.torch import get_device
    from torch import distributed

    from gait.cluster.data_parallel import share

    job: TrainJob = words["job"]
    with suppress(OSError):
        os.chdir(job.home)
    config = replace(job.config, init=str(job.parcel.open() / job.init)) if job.init else job.config
    first, storage = ray.train.get_context().get_world_rank() == 0, Storage(job.place)
    source = open_source(config)
    with closing(source), tempfile.TemporaryDirectory(prefix="gait-") as here:
        # The GPU that Ray gave to this worker, of those of its node.
        trainer = trainer_of(config)(config, source, get_device() if job.gpu else CPU)
        trainer.config = job.config
        with suppress(FileNotFoundError):
            Path(here, CHECKPOINT).write_bytes(storage.read(CHECKPOINT))
            load_checkpoint(Path(here, CHECKPOINT), trainer)
        share(trainer.net)
        # The first worker must not write the next checkpoint before all have read the last one.
        distributed.barrier()
        if first:
            _lead(trainer, job, Path(here) if storage.remote else Path(job.place), storage, words["board"])
        while len(trainer.history) < config.iterations:
            trainer.iterate()
        distributed.barrier()


def _lead(trainer: Any, job: TrainJob, work: Path, storage: Storage, board: Any) -> None:
    """All iterations, with checkpoints, validation and what a training leaves."""

    def save() -> None:
        save_checkpoint(work / CHECKPOINT, trainer)
        if storage.remote:
            storage.write(CHECKPOINT, (work / CHECKPOINT).read_bytes())

    with closing(Recorder(work, trainer.history)) as recorder:
        for progress in iterations(trainer, recorder, save, job.seconds):
            board.put.remote(asdict(progress))
        finish(trainer, work, recorder)
    if storage.remote:
        # The model last: where it is, everything is.
        for path in sorted(work.iterdir(), key=lambda path: path.name == MODEL):
            storage.write(path.name, path.read_bytes())


def train_on_cluster(
    config: TrainConfig,
    place: str,
    address: str = "",
    workers: int = 1,
    resume: bool = False,
    checkpoint_seconds: float = 120.0,
    on_progress: OnProgress | None = None,
    device: str = "cpu",
) -> Model:
    """Train a network on several workers; the files are those of `gait.train.loop.train`.

    Args:
        config: what to train. A batch is shared by the workers: `sequences` is that of all together.
        place: folder of the run that all nodes see, which must exist, or a URL of object storage.
        address: of the cluster; see `connected`.
        workers: processes that share each batch, one processor each.
        resume: go on from the checkpoint in the folder.
        checkpoint_seconds: time between two checkpoints.
        on_progress: called now and then.
        device: cpu; cuda, a GPU for each worker; or auto, which is cuda where the cluster has as many.
    """
    _check(config, workers)
    place = location(place) if is_remote(place) else str(Path(place).absolute())
    storage, parcel = Storage(place), Parcel()
    init = parcel.add("init", [Path(config.init)]) if Path(config.init).is_file() else ""
    with ExitStack() as stack:
        if not storage.remote:
            stack.enter_context(folder_lock(Path(place), "choose another folder"))
            sweep_files(Path(place))
        here = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gait-")))
        if not resume:
            write_config(config, here / CONFIG)
            storage.write(CONFIG, (here / CONFIG).read_bytes())
        elif CHECKPOINT not in storage.names():
            raise GaitError(f"{place} has no checkpoint to go on from: start the training again without --resume")
        ray = stack.enter_context(connected(address, workers))
        job = TrainJob(config, parcel, init, place, checkpoint_seconds, str(Path.cwd()), _gpu(ray, device, workers))
        _fit(ray, job, workers, here, on_progress)
        (here / MODEL).write_bytes(storage.read(MODEL))
        return load_model(here / MODEL)


def _check(config: TrainConfig, workers: int) -> None:
    if workers < 1:
        raise GaitError(f"workers must be 1 or more, got {workers}")
    if config.fresh:
        raise GaitError("--ray trains on a data set: collect one with `gait sim --ray` and name it with `data`")
    if config.sequences % workers:
        raise GaitError(f"{workers} workers cannot share {config.sequences} sequences evenly: change one of the two")


def _gpu(ray: Any, device: str, workers: int) -> bool:
    """Whether workers compute on GPUs: those of the cluster count, not those of the machine that gives the command."""
    if device not in CHOICES:
        raise GaitError(f"unknown device '{device}': choose one of {', '.join(CHOICES)}")
    there = int(ray.cluster_resources().get("GPU", 0))
    if device == "cuda" and there < workers:
        raise GaitError(
            f"the Ray cluster has {there} GPUs for {workers} workers, and each takes one: train with --device cpu, or"
            " fewer --workers"
        )
    return device != "cpu" and there >= workers


def _scaling(workers: int, gpu: bool) -> Any:
    """A processor for each worker, and a GPU if it computes there."""
    from ray.train import ScalingConfig

    each = {"CPU": 1.0} | ({"GPU": 1.0} if gpu else {})
    return ScalingConfig(num_workers=workers, use_gpu=gpu, resources_per_worker=each)


def _fit(ray: Any, job: TrainJob, workers: int, here: Path, on_progress: OnProgress | None) -> None:
    from ray.train import FailureConfig, RunConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    # Beside the process that all wait for: where it is lost, so is this.
    pin = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=True
    )
    board = ray.remote(num_cpus=0)(Board).options(scheduling_strategy=pin).remote()
    trainer = TorchTrainer(
        train_worker,
        train_loop_config={"job": job, "board": board},
        torch_config=TorchConfig(backend="nccl" if job.gpu else "gloo"),
        scaling_config=_scaling(workers, job.gpu),
        # Nothing of ours goes there: checkpoints are in the folder of the run.
        run_config=RunConfig(storage_path=str(here), failure_config=FailureConfig(max_failures=RETRIES)),
    )

    def look() -> None:
        latest, failure = None, ""
        # Progress is for the eye: a cluster that is busy must not stop anything.
        with suppress(ray.exceptions.RayError):
            latest, failure = ray.get(board.get.remote(), timeout=5.0)
        if failure:
            raise GaitError(failure)
        if latest is not None and on_progress is not None:
            on_progress(TrainingProgress(**latest))

    try:
        beside(trainer.fit, look)
    except (GaitError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise _explained(error) from None


def _explained(error: BaseException) -> BaseException:
    """The sentence of a worker whose input was at fault, or the error as it is."""
    seen: BaseException | None = error
    while seen is not None:
        for one in (seen, *getattr(seen, "worker_failures", {}).values()):
            cause = getattr(one, "cause", one)
            if isinstance(cause, GaitError):
                return GaitError(str(cause))
        seen = seen.__cause__ or seen.__context__
    return error
