"""Private nodes that can be killed and started again with their data, one alone or several as a cluster."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed import wait
from testbed.broker import BrokerUnavailable, RunningBroker
from testbed.node import Node, commands, environment, lay_out, write_files
from testbed.probe import answers, get
from testbed.processes import Command, Kept, kept
from testbed.server import Server, fetched_server, installed_server

READY_WITHIN = 90.0
GONE_WITHIN = 30.0
HOW = "private node {version}"


class PrivateNode:
    """A running node, alone or of a cluster; what it was told to keep outlives a kill."""

    def __init__(self, node: Node, command: Command, server: Server, broker: RunningBroker) -> None:
        self.broker = broker
        self.name = node.name
        self._node, self._command, self._server = node, command, server
        self._restarts: list[ExitStack] = []

    def kill(self) -> None:
        """End it as the kernel does when memory is out: nothing is said, nothing is saved."""
        pid = int((self._node.folder / "node.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        wait.until(lambda: not Path(f"/proc/{pid}").exists(), GONE_WITHIN, what=f"the end of {self.name}")

    def start(self) -> None:
        """Start it again with its data; returns when it answers."""
        folder = self._node.folder / f"restart-{len(self._restarts) + 1}"
        folder.mkdir()
        self._restarts.append(ExitStack())
        processes = self._restarts[-1].enter_context(kept([self._command], folder, grace=0))
        await_ready([self._node], processes)

    def rabbitmqctl(self, *arguments: str) -> str:
        """Run the command-line tool of the same package with the node's own cookie; returns what it says."""
        argv = [str(self._server.script.parent / "rabbitmqctl"), "-n", self.name, *arguments]
        env = environment(self._node, self._server)
        return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout

    def close(self) -> None:
        """End what was started again; the first start ends with the block that gave the node."""
        for restart in self._restarts:
            restart.close()


@contextmanager
def private_nodes(
    count: int, *, server: Server | None = None, settings: Sequence[str] = ()
) -> Iterator[tuple[PrivateNode, ...]]:
    """Run `count` private nodes as one cluster until the block ends, with these lines added to their rabbitmq.conf."""
    server = server or installed_server() or fetched_server()
    folder = Path(tempfile.mkdtemp(prefix="delayctl-node-"))
    with ExitStack() as closing:
        closing.callback(shutil.rmtree, folder, ignore_errors=True)
        layout = lay_out(folder, count)
        write_files(layout, settings)
        to_run = commands(layout, server)
        # Its data is thrown away, so nothing is gained by the 6 seconds of an orderly stop.
        processes = closing.enter_context(kept(to_run, folder, grace=0, remove=[folder]))
        brokers = await_ready(layout, processes)
        # The first command is the name service that all of them share.
        made = zip(layout, to_run[1:], brokers, strict=True)
        nodes = tuple(PrivateNode(node, command, server, broker) for node, command, broker in made)
        for node in nodes:
            closing.callback(node.close)
        yield nodes


def await_ready(nodes: Sequence[Node], processes: Kept) -> tuple[RunningBroker, ...]:
    """Wait until all nodes answer and see each other, or raise with what they said last."""

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
