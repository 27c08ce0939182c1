"""A Ray cluster: connect to it or start one, and spread tasks over it with bounded memory."""

from __future__ import annotations

import io
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, cast

from gait.errors import GaitError, need_extra
from gait.sim.workers import hold_ctrl_c

AHEAD = 2
"""Tasks in flight for each processor: one that runs, one that waits on its node."""
RETRIES = 20
"""How often a task is repeated whose node or process was lost."""
POLL = 1.0
"""Seconds between two looks at how many processors the cluster has, where no task ends meanwhile."""
GATHER = 0.05
"""Seconds that a result waits for others, so that thousands of processors do not mean a look for every task."""
LOCAL = "local"
"""Address of a cluster that is started for a command."""
AUTO = "auto"
"""Address of one that must be there already: that of RAY_ADDRESS or of `ray start`."""
STARTS = 3
"""How often a cluster is started that does not come up: Ray gives its processes 30 s each time, too little for a
machine with much else to do."""
KNOCK_SECONDS = 20.0
"""How long an address may take to answer."""
OBJECT_STORE = 256 << 20
"""Bytes of shared memory of a cluster that we start: tasks exchange rows of an index, not arrays."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_TRAIN_ENABLE_STATE_TRACKING": "0",
    "RAY_raylet_report_resources_period_milliseconds": "1000",
    "RAY_gcs_pull_resource_loads_period_milliseconds": "5000",
    "RAY_LOG_MONITOR_MANY_FILES_THRESHOLD": "0",
    "LOG_NAME_UPDATE_INTERVAL_S": "10",
}
"""Of a cluster that we start, unless the environment says otherwise: nothing is sent anywhere, and tasks have the
priority of the command, as local workers have, in place of Ray's nice 15. The rest makes Ray look less often for new
log files, and for the load of other nodes, of which such a cluster has none."""
ENDED = "the Ray cluster has ended, or cannot be reached any more"
Job = TypeVar("Job")
Result = TypeVar("Result")


class NodeResult(NamedTuple):
    """What a task gave, and where it ran."""

    value: Any
    node: str
    failure: str = ""
    """Why it failed, in a sentence, where the input was at fault."""


def load_ray() -> Any:
    """The module ray, or the error that names its extra."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise need_extra(error.name or "ray", "cluster") from None
    return ray


class OwnWords:
    """Standard output for this thread alone.

    Ray prints there from threads of its own, such as forty lines when a node is lost: none of that is a result.
    """

    def __init__(self) -> None:
        """Take what standard output is now."""
        self._stream, self._owner = sys.stdout, threading.get_ident()

    def write(self, text: str) -> int:
        """Write what this thread prints; leave out the rest."""
        return self._stream.write(text) if threading.get_ident() == self._owner else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def cluster_address(given: str) -> str:
    """The address of the cluster to connect to; empty where one is to be started.

    A cluster that another command began for itself does not count: it ends with that command.
    """
    named = (given if given != AUTO else "") or os.environ.get("RAY_ADDRESS", "")
    if named not in ("", AUTO):
        return "" if named == LOCAL else named
    folder = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp")
    with suppress(OSError):
        noted = (folder / "ray" / "ray_current_cluster").read_text(encoding="utf-8").strip()
        knock(noted)
        return noted
    if AUTO in (given, named):
        raise ConnectionError("`ray start` has begun none here that still runs")
    return ""


def knock(address: str) -> None:
    """Raise ConnectionError where nothing listens: Ray itself tries for minutes, and no Ctrl-C stops it."""
    host, _, port = address.rpartition(":")
    if "://" in address or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()
    except OSError as error:
        raise ConnectionError(error.strerror or str(error)) from None


@contextmanager
def connected(address: str, processors: int) -> Iterator[Any]:
    """The module ray, connected to a cluster for as long as the block runs.

    Args:
        address: of a cluster, as `ray.init` takes it. Empty means RAY_ADDRESS, or the cluster that `ray start` began
            on this machine; where there is neither, and for `local`, one is started here and ended with the block.
        processors: of the cluster that is started here.
    """
    ray = load_ray()
    if ray.is_initialized():
        yield ray
        return
    _connect(ray, address, processors)
    try:
        with redirect_stdout(cast("IO[str]", OwnWords())):
            yield ray
    finally:
        # What Ray held back it prints now, from this thread.
        with hold_ctrl_c(), redirect_stdout(io.StringIO()):
            ray.shutdown()


def _connect(ray: Any, address: str, processors: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    named = address or os.environ.get("RAY_ADDRESS") or "this machine"
    try:
        if where := cluster_address(address):
            knock(where)
            ray.init(address=where, **quiet)
            return
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise GaitError(
            f"no Ray cluster answers at {named} ({_why(error)}): start one with `ray start --head`, or leave out the"
            " address"
        ) from None
    ours = {"num_cpus": processors, "include_dashboard": False, "object_store_memory": OBJECT_STORE}
    _start(ray, {"address": LOCAL, "_node_ip_address": "127.0.0.1", **ours, **quiet})


def _start(ray: Any, settings: dict[str, Any]) -> None:
    """Start a cluster, with a few attempts."""
    why = ""
    for _ in range(STARTS):
        with hold_ctrl_c():
            why = _attempt(ray, settings)
        if not why:
            return
    raise GaitError(f"Ray does not start on this machine ({why}): try again, or leave out --ray")


def _attempt(ray: Any, settings: dict[str, Any]) -> str:
    """Start a cluster, or end what was started of it and raise the reason."""
    import psutil  # comes with Ray

    before = set(psutil.Process().children(recursive=True))
    try:
        ray.init(**settings)
    except Exception as error:  # a plain Exception where the machine is too busy
        for process in set(psutil.Process().children(recursive=True)) - before:
            with suppress(psutil.Error):
                process.kill()
        ray.shutdown()
        return _why(error) or type(error).__name__
    return ""


def _why(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def node_name(ray: Any) -> str:
    """Of the node that a task runs on: several of one machine have different names."""
    return f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:6]}"


def on_node(work: Callable[..., Any], *words: Any) -> NodeResult:
    """Do some work in a task; what is wrong with its input comes back as a sentence."""
    import ray

    try:
        return NodeResult(work(*words), node_name(ray))
    except GaitError as error:
        return NodeResult(None, node_name(ray), str(error))


def spread(
    ray: Any,
    work: Callable[..., Any],
    jobs: Iterable[tuple[Job, tuple[Any, ...]]],
    take: Callable[[Job, NodeResult], bool],
) -> None:
    """Do jobs on the cluster, each in a task of one processor, and take their results as they come.

    There are never more than `AHEAD` tasks in flight for each processor, however many jobs there are. A task whose
    node is lost is repeated on another. An interrupt ends all tasks.

    Args:
        ray: the module, connected.
        work: what a task does.
        jobs: each with what `work` gets.
        take: called with a job and its result; where it returns False no more jobs are begun, and those in flight
            are still taken.

    Raises:
        GaitError: if the cluster ends before the jobs do.
    """
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(on_node)
    waiting, begin = iter(jobs), True
    pending: dict[Any, Job] = {}
    try:
        while True:
            most = AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
            while begin and len(pending) < most and (following := next(waiting, None)) is not None:
                pending[task.remote(work, *following[1])] = following[0]
            if not pending:
                return
            for reference in _ready(ray, list(pending)):
                begin = take(pending.pop(reference), _result(ray, reference)) and begin
    except BaseException as error:
        with hold_ctrl_c(), suppress(Exception):
            for reference in pending:
                ray.cancel(reference, force=True)
        if cluster_failed(ray, error):
            raise GaitError(ENDED) from None
        raise


def _ready(ray: Any, references: list[Any]) -> list[Any]:
    """Those that are there: sleeps until the first is, so that waiting costs no processor time."""
    first, _ = ray.wait(references, timeout=POLL, fetch_local=False)
    if not first:
        return []
    ready: list[Any] = ray.wait(references, num_returns=len(references), timeout=GATHER, fetch_local=False)[0]
    return ready


def _result(ray: Any, reference: Any) -> NodeResult:
    try:
        found: NodeResult = ray.get(reference)
        return found
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError):
        return NodeResult(None, "", f"a worker was killed {RETRIES + 1} times, perhaps for want of memory")


def cluster_failed(ray: Any, error: BaseException) -> bool:
    """Whether an error is Ray's own, as when a cluster is shut down, and not one of the work that it does."""
    return isinstance(getattr(error, "cause", error), (ray.exceptions.RayError, ConnectionError))


def beside(work: Callable[[], Result], look: Callable[[], None], seconds: float = 0.5) -> Result:
    """Do some work in a thread and look at it now and then from this one; returns its result, or raises its error.

    Ray Train and Ray Tune put a handler of their own in the place of Ctrl-C's, which ends the process; in a thread they
    leave it alone, and the work ends with the connection to the cluster.
    """
    found: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(seconds)
        look()
    if failed:
        raise failed[0]
    return found[0]
