"""Private nodes of a real RabbitMQ."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import RunningBroker, native_cluster, native_node, wait
from testbed.needs import needed
from testbed.probe import answers, get

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


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of processes that were started with a path below this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environment = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        # TMPDIR of the test's own processes names the folder too, HOME of a node lies below it.
        if f"HOME={folder}/".encode() in environment:
            found.append((entry / "cmdline").read_text())
    return found


def test_a_private_node_answers_and_leaves_nothing(folder: Path) -> None:
    """A node has management and its plugins, and is gone with its processes and files at the end."""
    with needed(native_node()) as broker:
        assert broker.how == f"private node {broker.version}"
        overview = get(broker.management_url, "/api/overview", url=broker.url)
        kinds = {kind["name"] for kind in overview["exchange_types"]}
        assert {"topic", "headers", "x-consistent-hash"} <= kinds
        assert {listener["ip_address"] for listener in overview["listeners"]} <= {"127.0.0.1"} | distribution(overview)
        assert processes_of(folder)
        url, management_url = broker.url, broker.management_url

    assert answers("", url=url, management_url=management_url) is None
    assert processes_of(folder) == []
    assert list(folder.iterdir()) == []


def distribution(overview: dict[str, list[dict[str, str]]]) -> set[str]:
    """Return the addresses reported for the distribution port, whose entry says `::` whatever it is bound to."""
    return {entry["ip_address"] for entry in overview["listeners"] if entry["protocol"] == "clustering"}


def test_a_node_does_not_outlive_a_killed_owner(folder: Path, tmp_path: Path) -> None:
    """After kill -9 of the program that asked for it, a node stops and removes its files by itself."""
    note = tmp_path / "note"
    script = f'echo "$$ $DELAYCTL_URL" > {note}.new; mv {note}.new {note}; exec sleep 600'
    argv = [sys.executable, "-m", "testbed", "run", "--kind", "native", "--", "sh", "-c", script]
    with needed(native_node()):
        pass
    owner = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE)
    try:
        wait.until(lambda: note.exists() or owner.poll() is not None, 120, what="the command beside the node")
        assert note.exists()
        owner.kill()

        wait.until(lambda: not processes_of(folder), 30, what="the end of the node")
        wait.until(lambda: not list(folder.iterdir()), 30, what="the removal of the node's files")
    finally:
        owner.kill()
        owner.communicate()
        if note.exists():
            os.kill(int(note.read_text().split()[0]), signal.SIGKILL)


def test_three_private_nodes_are_one_cluster(folder: Path) -> None:
    """Each node of a cluster sees three running ones."""
    with needed(native_cluster(3)) as brokers:
        assert [running_nodes(broker) for broker in brokers] == [3, 3, 3]

    assert processes_of(folder) == []


def running_nodes(broker: RunningBroker) -> int:
    """Count the running nodes that a broker sees."""
    return sum(node["running"] for node in get(broker.management_url, "/api/nodes", url=broker.url))
