"""The small parts: waiting, ports, the cache folder, the layout of a node, the marks on an engine."""

import os
import socket
from pathlib import Path

import pytest

from testbed import wait
from testbed.cache import cache_folder, cached
from testbed.compose import unpacked_compose
from testbed.leftovers import is_abandoned, labels
from testbed.node import configuration, environment, lay_out
from testbed.ports import CANDIDATES, LOOPBACK, free_ports, is_free, share
from testbed.server import Server, unpacked_server


def test_waiting_ends_with_the_first_true_value() -> None:
    """The value itself is returned, so that a condition can also fetch something."""
    values = iter(["", "", "ready"])

    assert wait.until(lambda: next(values), 5, every=0) == "ready"


def test_waiting_in_vain_says_for_what_and_how_long() -> None:
    """The message of a time-out is readable by itself."""
    with pytest.raises(TimeoutError, match="the queue's end did not come true within 0 s"):
        wait.until(lambda: False, 0, what="the queue's end")


def test_ports_are_different_and_free() -> None:
    """Every picked port can be listened on."""
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)


def test_processes_of_a_split_run_look_for_ports_apart() -> None:
    """No port is in two shares, and one process alone has them all."""
    shares = [share(f"gw{number}") for number in range(12)]

    assert [port for each in shares for port in each] == list(CANDIDATES)
    assert share("") == CANDIDATES


def test_a_port_in_use_is_not_free() -> None:
    """A listener on 127.0.0.1 is noticed."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        assert not is_free(listener.getsockname()[1])


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """DELAYCTL_CACHE wins over XDG_CACHE_HOME, which wins over the home folder."""
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("DELAYCTL_CACHE", raising=False)
    assert cache_folder() == Path("/home/someone/.cache/delayctl")

    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/someone")
    assert cache_folder() == Path("/var/cache/someone/delayctl")

    monkeypatch.setenv("DELAYCTL_CACHE", "/srv/cache")
    assert cache_folder() == Path("/srv/cache")


def test_an_interrupted_fetch_leaves_the_cache_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Half of a download is never taken for the whole, and the next try starts anew."""
    monkeypatch.setenv("DELAYCTL_CACHE", str(tmp_path))
    wanted = tmp_path / "packages" / "thing"

    def broken(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(wanted, broken)
    assert list((tmp_path / "packages").iterdir()) == []

    assert cached(wanted, lambda folder: folder.mkdir()) == wanted
    assert cached(wanted, broken) == wanted


def test_every_listener_of_a_node_is_on_loopback(tmp_path: Path) -> None:
    """AMQP, management, distribution and epmd are all bound to 127.0.0.1."""
    [node] = lay_out(tmp_path, 1)
    env = environment(node, Server(Path("/s"), Path("/bin/epmd")))

    assert f"listeners.tcp.1 = 127.0.0.1:{node.amqp_port}\n" in configuration(node, [node])
    assert "management.tcp.ip = 127.0.0.1\n" in configuration(node, [node])
    assert "inet_dist_use_interface {127,0,0,1}" in env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"]
    assert env["ERL_EPMD_ADDRESS"] == "127.0.0.1"


def test_a_node_writes_below_its_folder_only(tmp_path: Path) -> None:
    """Every path that a node is told is its own."""
    [node] = lay_out(tmp_path, 1)
    env = environment(node, Server(Path("/s"), Path("/bin/epmd")))
    paths = [value for key, value in env.items() if value.startswith("/") and key != "PATH"]

    assert len(paths) >= 10
    assert all(path.startswith(str(node.folder)) for path in paths)


def test_nodes_of_a_cluster_know_each_other(tmp_path: Path) -> None:
    """Each lists all of them, and no port is given twice."""
    nodes = lay_out(tmp_path, 3)
    ports = [p for n in nodes for p in (n.amqp_port, n.management_port, n.distribution_port)]

    assert len({*ports, nodes[0].epmd_port}) == 10
    for number, node in enumerate(nodes, start=1):
        line = f"cluster_formation.classic_config.nodes.{number} = {node.name}\n"
        assert all(line in configuration(each, nodes) for each in nodes)


def test_a_node_is_told_what_a_test_adds(tmp_path: Path) -> None:
    """After the settings that all nodes have, so that it wins."""
    [node] = lay_out(tmp_path, 1)

    text = configuration(node, [node], ["disk_free_limit.absolute = 1GB"])

    assert text == configuration(node, [node]) + "disk_free_limit.absolute = 1GB\n"


def test_unpacked_erlang_can_be_anywhere(tmp_path: Path) -> None:
    """The place that Debian wrote into Erlang's start script becomes a variable."""
    scripts = tmp_path / "usr/lib/erlang/bin", tmp_path / "usr/lib/erlang/erts-13.1.5/bin"
    for folder in scripts:
        folder.mkdir(parents=True)
        (folder / "erl").write_text("ROOTDIR=/usr/lib/erlang\n")

    server = unpacked_server(tmp_path)

    assert server.env["ERL_ROOTDIR"] == str(tmp_path / "usr/lib/erlang")
    for folder in scripts:
        assert (folder / "erl").read_text() == 'ROOTDIR="${ERL_ROOTDIR:-/usr/lib/erlang}"\n'


def test_compose_is_run_as_what_debian_ships(tmp_path: Path) -> None:
    """Older releases have a Python script, newer ones a program."""
    program = tmp_path / "usr/bin/docker-compose"
    program.parent.mkdir(parents=True)

    program.write_bytes(b"#!/usr/bin/python3\n")
    assert unpacked_compose(tmp_path).argv == ["/usr/bin/python3", str(program)]

    program.write_bytes(b"\x7fELF")
    assert unpacked_compose(tmp_path).argv == [str(program)]


def test_only_what_a_dead_process_of_this_machine_left_is_abandoned() -> None:
    """Containers of this process and of other machines are not ours to remove."""
    [mine] = labels().values()

    assert not is_abandoned(mine)
    assert is_abandoned(mine.replace(f":{os.getpid()}", ":999999999"))
    assert not is_abandoned("another-machine:999999999")
