"""A private node of RabbitMQ, or several, on this machine: loopback only, gone at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.broker import RunningBroker
from testbed.cluster import private_nodes
from testbed.server import Server


@contextmanager
def native_node(*, server: Server | None = None) -> Iterator[RunningBroker]:
    """Run one private node until the block ends, of the installed RabbitMQ or else of Debian's, fetched."""
    with native_cluster(1, server=server) as brokers:
        yield brokers[0]


@contextmanager
def native_cluster(count: int, *, server: Server | None = None) -> Iterator[tuple[RunningBroker, ...]]:
    """Run `count` private nodes as one cluster until the block ends."""
    with private_nodes(count, server=server) as nodes:
        yield tuple(node.broker for node in nodes)
