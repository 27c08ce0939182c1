"""Finding or starting a Ray cluster, and spreading tasks over it."""

import contextlib
import socket
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import needs
import pytest

from gait import GaitError
from gait.cluster import tasks
from gait.cluster.ray_option import node_note, processors, ray_words


def test_only_our_words_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Ray prints from threads of its own, to standard output, which --json keeps for the results."""
    with contextlib.redirect_stdout(tasks.OwnWords()):  # type: ignore[type-var]
        print("ours")
        thread = threading.Thread(target=print, args=("theirs",))
        thread.start()
        thread.join()
    print("after")
    assert capsys.readouterr().out == "ours\nafter\n"


def test_progress_by_node_fits_a_terminal() -> None:
    note = node_note({f"node-{i:04d}.cluster.example.org/0123ab": 1.0 + i for i in range(1000)})
    assert note == "1000 nodes with 1.0 to 1000.0"


def test_which_cluster_is_meant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert tasks.cluster_address("") == "" == tasks.cluster_address("local")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray/ray_current_cluster").write_text(f"{address}\n")
        assert tasks.cluster_address("") == address == tasks.cluster_address("auto")
        assert tasks.cluster_address("10.0.0.1:6379") == "10.0.0.1:6379" and tasks.cluster_address("local") == ""
    # It was killed, and what it noted is still there.
    assert tasks.cluster_address("") == ""
    with pytest.raises(ConnectionError, match="begun none here that still runs"):
        tasks.cluster_address("auto")
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert tasks.cluster_address("") == address == tasks.cluster_address("auto")


def test_an_address_that_does_not_answer_is_said_at_once() -> None:
    needs.package("ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with (
        pytest.raises(GaitError, match=rf"no Ray cluster answers at {address} \(Connection refused\): start one with"),
        tasks.connected(address, 1),
    ):
        pass


def test_an_error_of_the_cluster_is_told_from_one_of_the_work() -> None:
    ray = needs.package("ray")
    errors = needs.package("ray.exceptions")
    ended = errors.RaySystemError("the owner has exited")
    assert tasks.cluster_failed(ray, ended) and tasks.cluster_failed(ray, ConnectionError())
    assert tasks.cluster_failed(ray, errors.RayTaskError("on_node", "", ended).as_instanceof_cause())
    # A bug of ours keeps its traceback, and Ctrl-C is none.
    assert not tasks.cluster_failed(ray, errors.RayTaskError("on_node", "", ValueError("x")).as_instanceof_cause())
    assert not tasks.cluster_failed(ray, KeyboardInterrupt())


class SlowRay:
    """Stands in for Ray: a task ends with every tenth look at the first result; two processors join meanwhile."""

    def __init__(self) -> None:
        self.looks, self.timeouts, self.begun = 0, set[float](), list[int]()

    def remote(self, **_: Any) -> Any:
        return lambda _: SimpleNamespace(remote=self.begin)

    def begin(self, _: Any, number: int) -> int:
        self.begun.append(number)
        return number

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0 if self.looks < 19 else 3.0}

    def wait(self, references: list[int], num_returns: int = 1, timeout: float = 0.0, **_: Any) -> Any:
        if timeout == tasks.GATHER:
            return references[:1], references[1:]
        self.looks += 1
        self.timeouts.add(timeout if num_returns == 1 else 0.0)
        return ([], references) if self.looks % 10 else (references[:1], references[1:])

    def get(self, number: int) -> tasks.NodeResult:
        return tasks.NodeResult(number, "node")


def test_waiting_is_no_busy_loop_and_sees_new_nodes() -> None:
    """Results are taken as they come, and nodes that join meanwhile get work without waiting for a result."""
    ray, taken, begun = SlowRay(), list[int](), dict[int, int]()

    def take(number: int, result: tasks.NodeResult) -> bool:
        taken.append(result.value)
        begun[number] = len(ray.begun)
        return True

    tasks.spread(ray, abs, ((number, (number,)) for number in range(12)), take)
    assert taken == list(range(12)) and ray.looks == 120
    assert ray.timeouts == {tasks.POLL} and tasks.POLL >= 1.0, "each look sleeps until the first result is there"
    assert begun[0] == 2 and begun[1] == 7, "before the second result: one task for the first, four for two processors"


class BusyRay:
    """Stands in for a Ray that starts processes and then gives up, as often as it is told."""

    def __init__(self, failures: int) -> None:
        self.failures, self.started = failures, list[subprocess.Popen[bytes]]()

    def init(self, **_: Any) -> None:
        self.started.append(subprocess.Popen(["sleep", "600"]))
        if len(self.started) <= self.failures:
            raise Exception("The current node timed out during startup.")

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize("failures", [tasks.STARTS - 1, tasks.STARTS])
def test_a_cluster_that_does_not_come_up_is_started_again(failures: int) -> None:
    needs.package("ray")
    ray, other = BusyRay(failures), subprocess.Popen(["sleep", "600"])
    try:
        if failures < tasks.STARTS:
            tasks._start(ray, {})
        else:
            with pytest.raises(GaitError, match=r"does not start on this machine \(The current node timed out .*\)"):
                tasks._start(ray, {})
        assert len(ray.started) == tasks.STARTS
        assert all(one.wait(timeout=30) < 0 for one in ray.started[:failures]), "nothing is left of an attempt"
        assert other.poll() is None and all(one.poll() is None for one in ray.started[failures:])
    finally:
        for one in (other, *ray.started):
            one.kill()
            one.wait()


def test_the_number_of_processors() -> None:
    assert processors(1) == 1 and processors(3) == 3 and processors() >= 1
    with pytest.raises(GaitError, match="workers must be 1 or more, got 0"):
        processors(0)


def test_words_that_name_the_same_cluster() -> None:
    assert ray_words(None, None) == [] and ray_words("", 2) == ["--ray", "--workers", "2"]
    assert ray_words("10.0.0.1:6379", None) == ["--ray", "10.0.0.1:6379"]
