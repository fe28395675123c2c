"""What a private node consists of: names, ports, files and environment, worked out before anything is started."""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.ports import LOOPBACK, free_ports
from testbed.processes import Command
from testbed.server import Server

PLUGINS = ("rabbitmq_management", "rabbitmq_consistent_hash_exchange")
STATISTICS_MS = 1000
ERLANG_OPTIONS = (
    *("-kernel", "inet_dist_use_interface", "{127,0,0,1}"),
    *("-start_epmd", "false"),
    # Where the machine's clock is set, Erlang before 26 lets time pass up to 1 % faster or slower until it has caught
    # up, and so messages come early. Newer ones keep the pace by themselves.
    *("+C", "multi_time_warp"),
)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Node:
    """One private node: everything that it owns is below its folder or bound to 127.0.0.1."""

    name: str
    folder: Path
    amqp_port: int
    management_port: int
    distribution_port: int
    epmd_port: int

    @property
    def url(self) -> str:
        """Return the AMQP address."""
        return f"amqp://guest:guest@{LOOPBACK}:{self.amqp_port}/"

    @property
    def management_url(self) -> str:
        """Return the address of the management API."""
        return f"http://{LOOPBACK}:{self.management_port}"


def lay_out(folder: Path, count: int) -> tuple[Node, ...]:
    """Choose names and free ports for `count` nodes below `folder`; they share one epmd of their own."""
    epmd_port, *ports = free_ports(1 + 3 * count)
    tag = f"delayctl-{os.getpid()}-{secrets.token_hex(3)}"
    return tuple(
        Node(f"{tag}-{number}@localhost", folder / f"node-{number}", *own, epmd_port)
        for number, own in enumerate(zip(ports[::3], ports[1::3], ports[2::3], strict=True), start=1)
    )


def write_files(nodes: Sequence[Node], settings: Sequence[str] = ()) -> None:
    """Write cookie, configuration (with these lines added) and plugin list of each node below its folder."""
    cookie = secrets.token_hex(16)
    for node in nodes:
        node.folder.mkdir(mode=0o700)
        (node.folder / "conf.d").mkdir()
        (node.folder / "rabbitmq.conf").write_text(configuration(node, nodes, settings))
        (node.folder / "advanced.config").write_text("[].\n")
        (node.folder / "rabbitmq-env.conf").write_text("")
        (node.folder / "enabled_plugins").write_text(f"[{','.join(PLUGINS)}].\n")
        (node.folder / ".erlang.cookie").write_text(cookie)
        (node.folder / ".erlang.cookie").chmod(0o400)


def configuration(node: Node, cluster: Sequence[Node], added: Sequence[str] = ()) -> str:
    """Return rabbitmq.conf of a node; with more than one node they form a cluster by themselves."""
    settings = [
        f"listeners.tcp.1 = {LOOPBACK}:{node.amqp_port}",
        f"management.tcp.ip = {LOOPBACK}",
        f"management.tcp.port = {node.management_port}",
        # The default of 5 s makes every test that looks at a queue's length wait for it.
        f"collect_statistics_interval = {STATISTICS_MS}",
        "management.rates_mode = basic",
        # A laptop's full disk or memory must not block publishers in a test of something else.
        "disk_free_limit.absolute = 50MB",
    ]
    if len(cluster) > 1:
        settings.append("cluster_formation.peer_discovery_backend = classic_config")
        settings += [f"cluster_formation.classic_config.nodes.{i + 1} = {n.name}" for i, n in enumerate(cluster)]
    return "\n".join([*settings, *added]) + "\n"


def environment(node: Node, server: Server) -> dict[str, str]:
    """Return the whole environment of a node; nothing of the caller's RABBITMQ_* or ERL_* leaks in."""
    path = server.env.get("PATH", "")
    folder = node.folder
    return {
        **server.env,
        "PATH": f"{path}:{SYSTEM_PATH}" if path else f"{server.epmd.parent}:{SYSTEM_PATH}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_EPMD_PORT": str(node.epmd_port),
        "RABBITMQ_NODENAME": node.name,
        "RABBITMQ_DIST_PORT": str(node.distribution_port),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_CONFIG_FILES": str(folder / "conf.d"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": str(folder / "log" / "node.log"),
        "RABBITMQ_PID_FILE": str(folder / "node.pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(ERLANG_OPTIONS),
    }


def commands(nodes: Sequence[Node], server: Server) -> list[Command]:
    """Return the processes to run: an epmd of their own, then each node."""
    first = nodes[0]
    epmd = [str(server.epmd), "-address", LOOPBACK, "-port", str(first.epmd_port)]
    log = first.folder.parent / "epmd.log"
    return [
        Command(epmd, environment(first, server), log),
        *(Command([str(server.script)], environment(n, server), n.folder / "output.log") for n in nodes),
    ]
