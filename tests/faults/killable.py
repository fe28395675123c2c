"""Brokers of a test's own that can be killed and started again with their data, on both ends of the range."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from testbed import RunningBroker
from testbed.node import Node, commands, environment, lay_out, write_files
from testbed.probe import answers
from testbed.processes import Command, kept
from testbed.server import Server, fetched_server, installed_server
from testbed.wait import until

READY_WITHIN = 120.0


class Killable(Protocol):
    """A broker that is ours to kill."""

    @property
    def broker(self) -> RunningBroker:
        """Where it answers."""

    def kill(self) -> None:
        """End it as the kernel does when memory is out: nothing is said, nothing is saved."""

    def start(self) -> None:
        """Start it again with its data; returns when it answers."""

    def rabbitmqctl(self, *arguments: str) -> None:
        """Run its own command-line tool."""


class KillableNode:
    """A private node of Debian's package."""

    def __init__(self, node: Node, command: Command, server: Server) -> None:
        self._node, self._command, self._server = node, command, server
        self._running = ExitStack()
        self._runs = 0
        self.start()
        found = answers("private node {version}", url=node.url, management_url=node.management_url)
        assert found is not None
        self.broker = found

    def start(self) -> None:
        """Start it with its data."""
        self._runs += 1
        folder = self._node.folder / f"run-{self._runs}"
        folder.mkdir()
        processes = self._running.enter_context(kept([self._command], folder, grace=0))

        def is_ready() -> bool:
            assert processes.end() is None, f"{processes.end()}: {processes.tail()}"
            url, management_url = self._node.url, self._node.management_url
            return answers("private node {version}", url=url, management_url=management_url) is not None

        until(is_ready, READY_WITHIN, what="the node's readiness")

    def kill(self) -> None:
        """Kill -9 of the Erlang machine."""
        os.kill(int((self._node.folder / "node.pid").read_text()), signal.SIGKILL)
        self._running.close()

    def rabbitmqctl(self, *arguments: str) -> None:
        """Run the tool of the same package with the node's own cookie."""
        tool = self._server.script.parent / "rabbitmqctl"
        env = environment(self._node, self._server)
        subprocess.run([str(tool), "-n", self._node.name, *arguments], env=env, check=True, capture_output=True)

    def close(self) -> None:
        """End it."""
        self._running.close()


class KillableContainer:
    """A container of the newest RabbitMQ; killed and started again, it keeps its volume."""

    def __init__(self, container: object, broker: RunningBroker) -> None:
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415 (not installed on every laptop)

        assert isinstance(container, DockerContainer)
        self._container = container.get_wrapped_container()
        self.broker = broker

    def start(self) -> None:
        """Start it with its data."""
        self._container.start()
        url, management_url = self.broker.url, self.broker.management_url
        until(lambda: answers(self.broker.how, url=url, management_url=management_url), READY_WITHIN)

    def kill(self) -> None:
        """Kill -9 of everything in it."""
        self._container.kill(signal="SIGKILL")
        until(lambda: self._container.wait(timeout=1), 30, what="the container's end")

    def rabbitmqctl(self, *arguments: str) -> None:
        """Run the tool in the container, as the user that owns the cookie."""
        code, output = self._container.exec_run(["rabbitmqctl", *arguments], user="rabbitmq")
        assert code == 0, output.decode(errors="replace")


@contextmanager
def killable_node() -> Iterator[Killable]:
    """A private node until the block ends."""
    server = installed_server() or fetched_server()
    folder = Path(tempfile.mkdtemp(prefix="delayctl-node-"))
    try:
        nodes = lay_out(folder, 1)
        write_files(nodes)
        epmd, command = commands(nodes, server)
        with kept([epmd], folder, grace=0):
            node = KillableNode(nodes[0], command, server)
            try:
                yield node
            finally:
                node.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def killable_container() -> Iterator[Killable]:
    """A container until the block ends."""
    from testbed.docker_container import held_container  # noqa: PLC0415 (not installed on every laptop)

    with held_container() as (container, broker):
        yield KillableContainer(container, broker)
