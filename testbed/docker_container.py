"""A broker in a container, through testcontainers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import docker  # type: ignore[import-untyped]
import requests
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from testbed import wait
from testbed.broker import BrokerUnavailable, RunningBroker
from testbed.cache import say
from testbed.compose import find_compose
from testbed.engine import Engine, engine, find_engine
from testbed.image import any_image, ready_image
from testbed.leftovers import labels, sweep
from testbed.node import PLUGINS, STATISTICS_MS
from testbed.ports import LOOPBACK, free_ports
from testbed.probe import answers

READY_WITHIN = 120.0
HOST = "delayctl"
HOW = "container rabbitmq {version}"
CONFIGURATION = f"""loopback_users.guest = false
collect_statistics_interval = {STATISTICS_MS}
management.rates_mode = basic
disk_free_limit.absolute = 50MB
"""


@contextmanager
def any_container() -> Iterator[RunningBroker]:
    """Run the broker on the engine that answers or on a private one, of an image that is pulled or built."""
    with engine() as found, _running(found, any_image) as (_, broker):
        yield broker


@contextmanager
def held_container() -> Iterator[tuple[DockerContainer, RunningBroker]]:
    """Run the broker as `any_container` does, and hand over the container too, to be killed and started again."""
    with engine() as found, _running(found, any_image) as held:
        yield held


@contextmanager
def ready_container() -> Iterator[RunningBroker]:
    """Run the broker where an engine answers and the image is there or can be pulled, or raise."""
    found = find_engine()
    if found is None:
        raise BrokerUnavailable("container: no Docker engine answers")
    with _running(found, ready_image) as (_, broker):
        yield broker


def prepare() -> None:
    """Fetch the engine's programs, the image and compose, as far as they are missing."""
    with _refusals_explained(), engine() as found, found.client() as client:
        say(f"the image {any_image(client, found)} is there")
    say(f"compose is there: {find_compose().argv[-1]}")


@contextmanager
def _running(
    found: Engine, choose: Callable[[docker.DockerClient, Engine], str]
) -> Iterator[tuple[DockerContainer, RunningBroker]]:
    with _refusals_explained(), found.client() as client:
        sweep(client)
        image = choose(client, found)
        network = Network(docker_client_kw=_client(found), docker_network_kw={"labels": labels()})
    with _refusals_explained():
        network.create()
    try:
        with _container(found, image, network) as held:
            yield held
    finally:
        network.remove()
        # testcontainers leaves this connection open.
        network._docker.client.close()


@contextmanager
def _container(found: Engine, image: str, network: Network) -> Iterator[tuple[DockerContainer, RunningBroker]]:
    # The container that cleans up after testcontainers comes from a registry; `sweep` does that work here.
    testcontainers_config.ryuk_disabled = True
    ports = free_ports(2)
    container = _configured(found, image, network, ports)
    try:
        with _refusals_explained():
            container.start()
        amqp_port, management_port = ports
        url, management_url = f"amqp://guest:guest@{LOOPBACK}:{amqp_port}/", f"http://{LOOPBACK}:{management_port}"
        yield container, _ready(container, url, management_url)
    finally:
        container.stop()


def _configured(found: Engine, image: str, network: Network, ports: tuple[int, ...]) -> DockerContainer:
    container = DockerContainer(image, docker_client_kw=_client(found), network=network, hostname=HOST, labels=labels())
    # Published on loopback only, at ports that we choose: no address has to be asked for or guessed.
    published: dict[str, Any] = {"5672/tcp": (LOOPBACK, ports[0]), "15672/tcp": (LOOPBACK, ports[1])}
    container.ports.update(published)
    # Read after the image's own settings, as its name sorts after theirs.
    container.with_copy_into_container(CONFIGURATION.encode(), "/etc/rabbitmq/conf.d/90-testbed.conf")
    container.with_copy_into_container(f"[{','.join(PLUGINS)}].\n".encode(), "/etc/rabbitmq/enabled_plugins")
    return container


def _client(found: Engine) -> dict[str, Any]:
    return {"environment": found.env()}


@contextmanager
def _refusals_explained() -> Iterator[None]:
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise BrokerUnavailable(f"container: the Docker engine refused: {error}") from error


def _ready(container: DockerContainer, url: str, management_url: str) -> RunningBroker:
    def look() -> RunningBroker | str | None:
        container.reload()
        if container.status in ("exited", "dead"):
            return f"the container ended: {_last_words(container)}"
        return answers(HOW, url=url, management_url=management_url)

    try:
        seen = wait.until(look, READY_WITHIN, what="the container's readiness", every=0.2)
    except TimeoutError as error:
        raise BrokerUnavailable(f"container: {error}; its last words: {_last_words(container)}") from error
    if not isinstance(seen, RunningBroker):
        raise BrokerUnavailable(f"container: {seen}")
    return seen


def _last_words(container: DockerContainer) -> str:
    output, errors = container.get_logs()
    return "\n".join((output + errors).decode(errors="replace").splitlines()[-12:])
