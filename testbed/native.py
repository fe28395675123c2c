"""A private node of RabbitMQ, or several, on this machine: loopback only, gone at the end."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testbed import wait
from testbed.broker import BrokerUnavailable, RunningBroker
from testbed.node import Node, commands, lay_out, write_files
from testbed.probe import answers, get
from testbed.processes import Kept, kept
from testbed.server import Server, fetched_server, installed_server

READY_WITHIN = 90.0
HOW = "private node {version}"


@contextmanager
def native_node(*, server: Server | None = None) -> Iterator[RunningBroker]:
    """Run one private node until the block ends, of the installed RabbitMQ or else of Debian's, fetched."""
    with native_cluster(1, server=server) as brokers:
        yield brokers[0]


@contextmanager
def native_cluster(count: int, *, server: Server | None = None) -> Iterator[tuple[RunningBroker, ...]]:
    """Run `count` private nodes as one cluster until the block ends."""
    server = server or installed_server() or fetched_server()
    folder = Path(tempfile.mkdtemp(prefix="delayctl-node-"))
    try:
        nodes = lay_out(folder, count)
        write_files(nodes)
        # Its data is thrown away, so nothing is gained by the 6 seconds of an orderly stop.
        with kept(commands(nodes, server), folder, grace=0, remove=[folder]) as processes:
            yield _ready(nodes, processes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ready(nodes: Sequence[Node], processes: Kept) -> tuple[RunningBroker, ...]:
    def look() -> tuple[RunningBroker, ...] | str | None:
        end = processes.end()
        if end:
            return end
        found = [answers(HOW, url=node.url, management_url=node.management_url) for node in nodes]
        brokers = tuple(broker for broker in found if broker)
        return brokers if len(brokers) == len(nodes) and _joined(brokers) else None

    try:
        seen = wait.until(look, READY_WITHIN * len(nodes), what="a private node's readiness", every=0.2)
    except TimeoutError as error:
        raise BrokerUnavailable(f"{error}; its last words: {processes.tail()}") from error
    if isinstance(seen, str):
        raise BrokerUnavailable(f"{seen}; its last words: {processes.tail()}")
    assert seen is not None
    return seen


def _joined(brokers: Sequence[RunningBroker]) -> bool:
    if len(brokers) == 1:
        return True
    listed = [get(broker.management_url, "/api/nodes", url=broker.url) for broker in brokers]
    return all(sum(bool(node["running"]) for node in nodes) == len(brokers) for nodes in listed)
