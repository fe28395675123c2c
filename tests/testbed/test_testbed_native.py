"""Private nodes of a real RabbitMQ."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from testbed import BrokerUnavailable, RunningBroker, native_cluster, native_node, wait
from testbed.needs import give_up, needed
from testbed.probe import answers, get
from testbed.server import Server, fetched_server, installed_server

LISTEN = "0A"
LOOPBACKS = {"0100007F", "00000000000000000000000001000000"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder that nodes of this test are made in."""
    path = tmp_path / "nodes"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield path
    monkeypatch.undo()


def processes_of(folder: Path) -> list[Path]:
    """Return the entries in /proc of processes whose home lies below this folder, as that of a node does."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"HOME={folder}/".encode() in (entry / "environ").read_bytes():
                found.append(entry)
    return found


def listening(processes: list[Path]) -> set[str]:
    """Return the local addresses that these processes listen on, as the kernel writes them."""
    inodes = set()
    for entry in processes:
        for descriptor in (entry / "fd").iterdir():
            with suppress(OSError):
                inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return {row[1].partition(":")[0] for row in rows if row[3] == LISTEN and row[9] in inodes}


def test_a_private_node_answers_and_leaves_nothing(folder: Path) -> None:
    """A node has management and its plugins, and is gone with its processes and files at the end."""
    with needed(native_node()) as broker:
        assert broker.how == f"private node {broker.version}"
        overview = get(broker.management_url, "/api/overview", url=broker.url)
        kinds = {kind["name"] for kind in overview["exchange_types"]}
        assert {"topic", "headers", "x-consistent-hash"} <= kinds
        assert listening(processes_of(folder)) <= LOOPBACKS
        assert len(processes_of(folder)) >= 3
        url, management_url = broker.url, broker.management_url

    assert answers("", url=url, management_url=management_url) is None
    assert processes_of(folder) == []
    assert list(folder.iterdir()) == []


def test_a_node_does_not_outlive_a_killed_owner(folder: Path, tmp_path: Path) -> None:
    """After kill -9 of the program that asked for it, a node stops and removes its files by itself."""
    note = tmp_path / "note"
    script = f'echo "$$ $DELAYCTL_URL" > {note}.new; mv {note}.new {note}; exec sleep 600'
    argv = [sys.executable, "-m", "testbed", "run", "--kind", "native", "--", "sh", "-c", script]
    server_or_skip()
    owner = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        wait.until(lambda: note.exists() or owner.poll() is not None, 120, what="the command beside the node")
        assert note.exists()
        owner.kill()

        wait.until(lambda: not processes_of(folder), 30, what="the end of the node")
        wait.until(lambda: not list(folder.iterdir()), 30, what="the removal of the node's files")
    finally:
        owner.kill()
        owner.wait()
        if note.exists():
            os.kill(int(note.read_text().split()[0]), signal.SIGKILL)


def server_or_skip() -> None:
    """Give up where there is no RabbitMQ to make a node of."""
    try:
        if installed_server() is None:
            fetched_server()
    except BrokerUnavailable as error:
        give_up(str(error))


def test_three_private_nodes_are_one_cluster(folder: Path) -> None:
    """Each node of a cluster sees three running ones."""
    with needed(native_cluster(3)) as brokers:
        assert [running_nodes(broker) for broker in brokers] == [3, 3, 3]

    assert processes_of(folder) == []


def running_nodes(broker: RunningBroker) -> int:
    """Count the running nodes that a broker sees."""
    return sum(node["running"] for node in get(broker.management_url, "/api/nodes", url=broker.url))


def test_a_server_that_cannot_be_started_is_named_at_once(folder: Path) -> None:
    """The message names the program and the reason, long before the time for a start is over, and nothing stays."""
    missing = Server(Path("/nowhere/rabbitmq-server"), Path("/nowhere/epmd"))

    with pytest.raises(BrokerUnavailable, match="/nowhere/epmd cannot be started: No such file"):
        native_node(server=missing).__enter__()

    assert list(folder.iterdir()) == []
