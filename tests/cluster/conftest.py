"""A real Ray cluster of several nodes on this machine, and a real S3 server."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import needs
import pytest

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# On a loaded machine tasks with Ray's nice 15 would hardly run, and agents take longer than Ray waits for them.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_agent_register_timeout_ms", "300000")
PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
"""Of a node's agents: where they are not given, a node waits 15 s for the agents to tell, or ends."""


def ports() -> dict[str, int]:
    """Free ports for the agents of a node."""
    with ExitStack() as stack:
        free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
        return {name: one.getsockname()[1] for name, one in zip(PORTS, free, strict=True)}


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without processors, so that every task runs on a node that may be killed; add nodes with `add_node`."""
    ray = needs.package("ray")
    utils = needs.package("ray.cluster_utils")
    # Nodes of this cluster, whatever ran before in this process.
    ray.shutdown()
    head = {"num_cpus": 0, "object_store_memory": 100 << 20, "include_dashboard": False, **ports()}
    made = utils.Cluster(initialize_head=True, head_node_args=head)
    made.processors = lambda: made.add_node(num_cpus=1, object_store_memory=100 << 20, **ports())
    os.environ["RAY_ADDRESS"] = made.address
    yield made
    os.environ.pop("RAY_ADDRESS", None)
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Makes buckets on moto's server, which speaks S3 over HTTP on the loopback interface; the URL of a new one."""
    needs.package("s3fs")
    needs.package("moto")
    boto3 = needs.package("boto3")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = (tmp_path_factory.mktemp("s3") / "server.log").open("w")
    server = subprocess.Popen(words, stdout=log, stderr=log)
    settings = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    settings |= {"AWS_ENDPOINT_URL": endpoint, "FSSPEC_S3_ENDPOINT_URL": endpoint}
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(endpoint, timeout=5)
                break
            except OSError:
                assert server.poll() is None, Path(log.name).read_text()
                time.sleep(0.2)

        def bucket(name: str) -> str:
            boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=name)
            return f"s3://{name}"

        yield bucket
    finally:
        server.terminate()
        server.wait()
        log.close()
        os.environ.clear()
        os.environ.update(before)
