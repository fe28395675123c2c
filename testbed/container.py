"""A broker in a container: the door, which opens only where testcontainers is installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from testbed.broker import BrokerUnavailable, RunningBroker


@contextmanager
def container_broker() -> Iterator[RunningBroker]:
    """Run RabbitMQ 4.3 in a container until the block ends, with engine and image made where they are missing."""
    docker_container = _docker_container()
    with docker_container.any_container() as broker:
        yield broker


@contextmanager
def ready_container() -> Iterator[RunningBroker]:
    """Run RabbitMQ 4.3 in a container only where an engine answers and the image is there or can be pulled."""
    docker_container = _docker_container()
    with docker_container.ready_container() as broker:
        yield broker


def prepare_container() -> None:
    """Fetch or build what `container_broker` and the compose files need."""
    _docker_container().prepare()


def _docker_container() -> ModuleType:
    # The demo runs without the packages that only tests need, and then has the other ways to a broker.
    try:
        from testbed import docker_container  # noqa: PLC0415
    except ImportError as error:
        raise BrokerUnavailable(f"container: pip install testcontainers ({error.name} is missing)") from error
    return docker_container
