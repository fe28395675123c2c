"""Containers: the broker through testcontainers, and the compose files, on a real Docker engine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import docker  # type: ignore[import-untyped]
import pytest

from testbed import container_broker, find_broker, wait
from testbed.compose import Project, composed
from testbed.engine import Engine, engine
from testbed.image import SILENCE, any_image, pull
from testbed.needs import needed
from testbed.probe import answers, get

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def docker_engine() -> Iterator[Engine]:
    """Give one engine to all tests of this file."""
    with needed(engine()) as found:
        yield found


@pytest.fixture
def client(docker_engine: Engine) -> Iterator[docker.DockerClient]:
    """Give a client of the engine."""
    with docker_engine.client() as opened:
        yield opened


@pytest.fixture
def image(docker_engine: Engine, client: docker.DockerClient) -> str:
    """Give the name of an image of RabbitMQ 4.3."""
    return any_image(client, docker_engine)


@pytest.fixture(autouse=True)
def engine_named(docker_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the code under test find this engine, and no broker that the caller named."""
    monkeypatch.setenv("DOCKER_HOST", docker_engine.host)
    monkeypatch.delenv("DELAYCTL_URL", raising=False)
    monkeypatch.delenv("DELAYCTL_MANAGEMENT_URL", raising=False)


def test_a_container_answers_and_leaves_nothing(client: docker.DockerClient) -> None:
    """A broker of the newest series runs in a container, which is removed at the end with its network."""
    networks = {network.name for network in client.networks.list()}
    with needed(container_broker()) as broker:
        assert broker.version.startswith("4.3.")
        assert broker.how == f"container rabbitmq {broker.version}"
        overview = get(broker.management_url, "/api/overview", url=broker.url)
        assert "x-consistent-hash" in {kind["name"] for kind in overview["exchange_types"]}
        url, management_url = broker.url, broker.management_url

    assert answers("", url=url, management_url=management_url) is None
    assert client.containers.list(all=True) == []
    assert {network.name for network in client.networks.list()} == networks


def test_an_engine_with_the_image_is_preferred_to_a_private_node(image: str) -> None:
    """The order of the ways to a broker holds where an engine answers."""
    assert image
    with needed(find_broker()) as broker:
        assert broker.how.startswith("container rabbitmq 4.3.")


def test_an_image_that_cannot_be_pulled_is_given_up_quickly(client: docker.DockerClient) -> None:
    """A registry out of reach costs seconds, and its reason is told."""
    start = time.monotonic()

    reason = pull(client, "registry.invalid/rabbitmq:4.3")

    assert reason
    assert time.monotonic() - start < SILENCE + 2


def health(client: docker.DockerClient, project: Project) -> set[str]:
    """Return what the health checks of a project say."""
    return {client.containers.get(each).attrs["State"]["Health"]["Status"] for each in project.containers()}


@pytest.mark.parametrize(("file", "nodes"), [("single.yaml", 1), ("cluster.yaml", 3)])
def test_a_compose_file_comes_up_healthy(
    file: str, nodes: int, docker_engine: Engine, client: docker.DockerClient, image: str
) -> None:
    """Every broker answers, all nodes run as one cluster, every health check agrees, and nothing stays behind."""
    with needed(composed(file, engine=docker_engine, image=image)) as project:
        for broker in project.brokers:
            listed = get(broker.management_url, "/api/nodes", url=broker.url)
            assert [node["running"] for node in listed] == [True] * nodes
        wait.until(lambda: health(client, project) == {"healthy"}, 120, what=f"the health of {file}", every=1)

    assert client.containers.list(all=True) == []
    assert client.volumes.list() == []


def engine_folder(owner: int) -> Path:
    """Return the folder of the private engine that this process started: the last argument of its keeper."""
    children = Path(f"/proc/{owner}/task/{owner}/children").read_text().split()
    commands = [Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0") for pid in children]
    return next(Path(argv[-1]) for argv in commands if argv[-2].endswith("keeper.py"))


def test_a_private_engine_does_not_outlive_a_killed_owner(
    docker_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After kill -9 of the program that asked for it, an engine stops with its container and removes its files."""
    if not docker_engine.is_private:
        pytest.skip("this machine has a Docker engine of its own, so none is started for a broker")
    note, log = tmp_path / "note", tmp_path / "log"
    monkeypatch.delenv("DOCKER_HOST")
    script = f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 600"
    argv = [sys.executable, "-m", "testbed", "run", "--kind", "container", "--", "sh", "-c", script]
    with log.open("w") as errors:
        owner = subprocess.Popen(argv, cwd=ROOT, stderr=errors)
    try:
        wait.until(lambda: note.exists() or owner.poll() is not None, 240, what="the command beside the container")
        assert note.exists(), log.read_text()
        folder = engine_folder(owner.pid)
        owner.kill()

        wait.until(lambda: not folder.exists(), 90, what="the end of the engine")
        assert str(folder) not in Path("/proc/self/mounts").read_text()
    finally:
        owner.kill()
        owner.wait()
        if note.exists():
            os.kill(int(note.read_text()), signal.SIGKILL)
