"""Brokers of a test's own that can be killed and started again with their data, on both ends of the range."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from testbed import RunningBroker
from testbed.cluster import private_nodes


class Killable(Protocol):
    """A broker that is ours to kill."""

    @property
    def broker(self) -> RunningBroker:
        """Where it answers."""

    def kill(self) -> None:
        """End it as the kernel does when memory is out: nothing is said, nothing is saved."""

    def start(self) -> None:
        """Start it again with its data; returns when it answers."""

    def rabbitmqctl(self, *arguments: str) -> str:
        """Run its own command-line tool; returns what it says."""


@contextmanager
def killable_node() -> Iterator[Killable]:
    """A private node until the block ends."""
    with private_nodes(1) as [node]:
        yield node


@contextmanager
def killable_container() -> Iterator[Killable]:
    """A container until the block ends."""
    # What they need is not installed on every laptop.
    from testbed.container_members import ContainerMember  # noqa: PLC0415
    from testbed.docker_container import HOST, held_container  # noqa: PLC0415

    with held_container() as (container, broker):
        yield ContainerMember(container.get_wrapped_container(), broker, host=HOST)
